//! Lists longer than memory: what waits on disk comes back, once, whatever happens meanwhile.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::{ErrorKind, Outcome, Record};
use rustix::process::Signal;

use crate::shells::{send, tree, until, whole_records};
use crate::world::World;

/// The debug build reads slowly; `bench/long_list.sh` has the long ones.
const GIANT: u64 = 50_000;
const OTHERS: u64 = 200;

/// 50,000 lines of one host, then 200 hosts with one each: lines of the others.
fn giant_first() -> String {
    let mut list = String::new();
    for n in 0..GIANT {
        writeln!(list, "http://user:pa55word@giant.test/ok/10/{n}").unwrap();
    }
    for n in 0..OTHERS {
        writeln!(list, "http://o{n}.test/ok/10").unwrap();
    }
    list
}

fn lines(records: &[Record]) -> BTreeSet<u64> {
    records.iter().map(|record| record.line).collect()
}

#[test]
fn a_giant_at_the_head_holds_up_nobody_and_a_killed_run_is_resumed() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.write("urls.txt", giant_first());
    let others_done = || {
        let records = whole_records(&world.out());
        records.iter().filter(|r| r.line > GIANT).count()
    };
    let mut child = world.start(&["--rate", "20"]);
    until("another host is asked", || others_done() >= 20);
    // What waits on disk has no name: nobody can read the logins, and a kill leaves nothing.
    assert_eq!(tree(&world.out(), ".tmp").len(), 0);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    let before = whole_records(&world.out());
    let child = world.start(&["--rate", "20"]);
    until("all other hosts are done", || {
        others_done() >= usize::try_from(OTHERS).unwrap()
    });
    send(&child, Signal::INT);
    let run = world.wait(child).expect(130);
    // One record for each line that was reached, those of the killed run among them.
    assert_eq!(lines(&run.records).len(), run.records.len());
    assert!(lines(&before).is_subset(&lines(&run.records)));
    assert_eq!(run.count(Outcome::Ok), run.records.len());
    assert!(lines(&run.records).iter().any(|&line| line <= GIANT));
    let reached = run.records.len() as u64;
    let left = format!("{} not reached", GIANT + OTHERS - reached);
    assert!(run.stdout.contains(&left), "{}", run.stdout);
    assert!(!run.stderr.contains("pa55word") && !run.stdout.contains("pa55word"));
    world.assert_whole();
}

/// Every line of a host listed many times over: some are in memory, most on disk, each has its
/// record in the end, and each URL is fetched once.
#[test]
fn lines_listed_again_while_the_first_is_on_disk_are_answered_with_it() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    let (urls, times) = (600, 10);
    world.urls((0..urls * times).map(|n| format!("http://o.test/ok/10/{}", n % urls)));
    let args = ["--rate", "unlimited"];
    let mut child = world.start(&args);
    until("some are done", || whole_records(&world.out()).len() > 100);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    let run = world.run(&args).expect(0);
    assert_eq!(run.count(Outcome::Ok), urls * times);
    assert_eq!(world.stored().len(), urls);
    // At most what was under way at the kill is asked for again, and as much that had just come.
    let requests = world.lab.origin_stats().requests as usize;
    assert!((urls..=urls + 12).contains(&requests), "{requests}");
}

/// A given id for another request, while the first one waits on disk.
#[test]
fn an_id_that_waits_on_disk_belongs_to_its_line() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let mut list = "url,id\n".to_owned();
    for n in 0..300 {
        writeln!(list, "http://o.test/ok/10/{n},id-{n}").unwrap();
    }
    list += "http://o.test/ok/10/x,id-250\nhttp://other.test/ok/10,id-251\n";
    world.write("urls.csv", list);
    let command = world.exitfetch([
        "run",
        "--exits",
        "exits.txt",
        "--urls",
        "urls.csv",
        "--rate",
        "unlimited",
    ]);
    let run = world.finish(command).expect(3);
    assert_eq!(run.count(Outcome::Ok), 300);
    let refused = run.records.iter().filter(|r| r.outcome == Outcome::Refused);
    let reasons: Vec<String> = refused
        .map(|r| r.error.as_ref().unwrap().detail.clone())
        .collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons.iter().any(|reason| reason.contains("line 252")),
        "{reasons:?}"
    );
}

/// The disk has room for the results and not for what waits (a limit on file size in the place of
/// a full disk): the list is read only as far as memory holds, and nothing is lost.
#[test]
fn a_disk_without_room_for_what_waits_loses_nothing() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    let body = "x".repeat(40_000);
    let mut list = String::new();
    for n in 0..600 {
        let url = format!("http://o.test/ok/10/{n}?wait=300");
        writeln!(
            list,
            "{{\"id\": \"{n}\", \"url\": \"{url}\", \"method\": \"PUT\", \"body\": \"{body}\"}}"
        )
        .unwrap();
    }
    world.write("urls.jsonl", list);
    let script = "ulimit -f 500;
         exec $EXITFETCH run --exits exits.txt --urls urls.jsonl --rate unlimited --per-exit 20";
    let run = world.finish(world.shell(script)).expect(0);
    assert!(
        run.stderr.contains("only as far as memory holds"),
        "{}",
        run.stderr
    );
    assert_eq!(run.count(Outcome::Ok), 600);
    assert_eq!(lines(&run.records).len(), 600);
    assert_eq!(world.lab.origin_stats().requests, 600);
}

/// The fleet is dead and tens of thousands of jobs are given up: in steps, between which a reader
/// that takes no records is waited for and a signal is heard.
#[test]
fn a_signal_is_heard_while_a_long_list_is_given_up() {
    let closed = ExitConfig::http().behaving(Behaviour::Refuse);
    let world = World::new(LabConfig::alike(1, &closed));
    let jobs = 60_000;
    world.urls((0..jobs).map(|n| format!("http://o.test/ok/10/{n}")));
    // The list is read meanwhile.
    let mut command = world.command(&["--results", "-", "--no-exit-timeout", "5s"]);
    // Nobody reads before the end.
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.unwrap();
    let given_up = || whole_records(&world.out()).len();
    until("jobs are given up", || given_up() > 1000);
    send(&child, Signal::INT);
    let run = world.wait(child).expect(130);
    assert!(run.records.len() < jobs, "all were given up first");
    let kinds = run.records.iter().map(|r| r.error.as_ref().unwrap().kind);
    assert!(
        kinds
            .filter(|kind| *kind == ErrorKind::NoUsableExit)
            .count()
            > 1000
    );
    // The rest of the list is counted for two seconds, which a busy machine may need for less.
    assert!(run.stderr.contains(" not reached"), "{}", run.stderr);
}

/// A list without end, on standard input: it is read until enough waits, and no further.
#[test]
fn a_list_without_end_is_read_as_far_as_enough_waits() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let writer = std::thread::spawn(move || {
        // Nothing ends while the test looks.
        while writeln!(
            input,
            "http://o{}.test/ok/10?wait=600000",
            count.load(Ordering::Relaxed)
        )
        .is_ok()
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut seen = 0;
    until("the reading rests", || {
        std::thread::sleep(Duration::from_secs(1));
        let before = std::mem::replace(&mut seen, written.load(Ordering::Relaxed));
        seen > 0 && seen == before
    });
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    send(&child, Signal::KILL);
    child.wait().unwrap();
    writer.join().unwrap();
    println!("{seen} lines, {peak} KiB");
    assert!((1000..60_000).contains(&seen), "{seen} lines were read");
    assert!(peak < 120 * 1024, "{peak} KiB");
}
