//! Memory follows the work in hand, not the list; lines are acted on when they come.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;
use rustix::process::Signal;

use crate::shells::{send, until, whole_records};
use crate::world::World;

/// The most KiB of memory that a program has held so far.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// KiB of memory held by the program after some seconds of this list at `--rate 20`.
fn held(list: &str) -> u64 {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.write("urls.txt", list);
    let child = world.start(&["--rate", "20", "--summary", "none"]);
    world.until_asked(1);
    std::thread::sleep(Duration::from_secs(6));
    let peak = peak(&child);
    send(&child, Signal::INT);
    let run = world.wait(child).expect(130);
    assert!(run.took < Duration::from_secs(20), "{:?}", run.took);
    peak
}

fn list(lines: usize, line: impl Fn(usize) -> String) -> String {
    let mut list = String::new();
    for n in 0..lines {
        writeln!(list, "{}", line(n)).unwrap();
    }
    list
}

/// G02, with 300,000 lines in the place of a million (the debug build reads slowly); the bounds
/// are the case's own.
#[test]
fn memory_does_not_grow_with_the_list() {
    let one = |n| format!("http://one.test/ok/10/some/path/that/takes/room/{n}");
    let many = |n| format!("http://host-{n}.many.test/ok/10");
    let few = held(&list(10_000, one));
    let long = held(&list(300_000, one));
    let wide = held(&list(100_000, many));
    println!(
        "10,000 lines: {few} KiB; 300,000 of one origin: +{} KiB; 100,000 origins: +{} KiB",
        long.saturating_sub(few),
        wide.saturating_sub(few)
    );
    assert!(long < few + 40 * 1024, "{few} KiB, then {long} KiB");
    assert!(wide < few + 150 * 1024, "{few} KiB, then {wide} KiB");
}

/// G02, once the jobs that stayed in memory are done: those on disk do not all come at once.
#[test]
fn memory_does_not_grow_when_jobs_come_back_from_disk() {
    let world = World::new(LabConfig::alike(3, &ExitConfig::http()));
    // Long URLs, so that a short list has more than memory takes: some 7,000 jobs.
    let path = "path/".repeat(80);
    let lines = 40_000;
    world.write(
        "urls.txt",
        list(lines, |n| format!("http://giant.test/ok/10/{path}{n}")),
    );
    let child = world.start(&[
        "--rate",
        "unlimited",
        "--per-exit",
        "20",
        "--summary",
        "none",
    ]);
    world.until_asked(5000);
    let before = peak(&child);
    world.until_asked(15_000);
    let after = peak(&child);
    send(&child, Signal::INT);
    world.wait(child).expect(130);
    println!("{before} KiB, then {after} KiB");
    assert!(after < before + 12 * 1024, "{before} KiB, then {after} KiB");
}

/// Records wait for a reader that sleeps, those of refused lines too: the list is then read no
/// further, so its length does not matter.
#[test]
fn a_reader_that_sleeps_stops_the_reading_of_the_list() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let lines = 60_000;
    world.write("urls.txt", list(lines, |n| format!("not a url {n}")));
    let child = world.start(&["--results", "-", "--quiet"]);
    let written = || whole_records(&world.out()).len();
    let mut seen = 0;
    until("the run rests", || {
        std::thread::sleep(Duration::from_secs(2));
        let before = std::mem::replace(&mut seen, written());
        seen > 0 && seen == before
    });
    assert!(seen < lines / 2, "{seen} records for a reader that sleeps");
    let run = world.wait(child).expect(3);
    assert_eq!(run.stdout.lines().count(), lines);
}

/// G02: a line is fetched when it comes, the last one without newline too, and the end of the
/// list is the end of the run.
#[test]
fn a_line_on_standard_input_is_acted_on_when_it_comes() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = child.stdin.take().unwrap();
    lines.write_all(b"http://o.test/ok/1\n").unwrap();
    lines.flush().unwrap();
    world.until_asked(1);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(world.lab.origin_stats().requests, 1);
    lines.write_all(b"http://o.test/ok/2").unwrap();
    let closed = Instant::now();
    drop(lines);
    let run = world.wait(child).expect(0);
    assert_eq!(run.count(Outcome::Ok), 2);
    assert!(
        closed.elapsed() < Duration::from_secs(5),
        "{:?}",
        closed.elapsed()
    );
}
