//! Far more of something than anybody should send, list or redirect; and clocks that jump.

use std::path::Path;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{ErrorKind, Outcome};

use crate::footprint::watched;
use crate::shells::{until, whole_records};
use crate::world::World;

/// C03: ten thousand sessions of one gateway are ten thousand exits.
#[test]
fn ten_thousand_exits_are_carried_in_little_memory() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls((0..400).map(|n| format!("http://o{n}.test/ok/100")));
    let (run, few_kib) = watched(&world, &["--rate", "unlimited", "--out", "few"]);
    run.expect(0);
    let address = world.exit(0).address();
    let exits = format!("http://user-{{session}}:pa55word@{address} sessions=10000\n");
    world.write("exits.txt", exits);
    let (run, kib) = watched(&world, &["--rate", "unlimited", "--per-exit", "1"]);
    let run = run.expect(0);
    assert_eq!(run.count(Outcome::Ok), 400);
    let rows = world.exits_csv();
    assert_eq!(rows.len(), 10_000);
    let total = |name: &str| -> u64 { rows.iter().map(|r| r[name].parse::<u64>().unwrap()).sum() };
    assert_eq!((total("ok"), total("faults")), (400, 0));
    assert!(
        rows.iter()
            .all(|row| row["peak_sockets"].parse::<u64>().unwrap() <= 1)
    );
    println!("1 exit: {few_kib} KiB; 10,000: {kib} KiB");
    assert!(
        kib < few_kib + 120 * 1024,
        "{kib} KiB, {few_kib} with one exit"
    );
    assert!(!run.stdout.contains("pa55word") && !run.stderr.contains("pa55word"));
}

/// D07: however many redirects are allowed, each is a request of its own and the end comes.
#[test]
fn ten_thousand_redirects_are_followed_in_little_memory_and_then_end() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.urls(["http://o.test/redirect-on/0", "http://p.test/ok/1"]);
    let args = ["--rate", "unlimited", "--max-redirects", "10000"];
    let (run, kib) = watched(&world, &args);
    let run = run.expect(3);
    let record = run.line(1);
    assert_eq!(record.error.as_ref().unwrap().kind, ErrorKind::RedirectLoop);
    assert_eq!(record.status, Some(302));
    assert_eq!(run.line(2).outcome, Outcome::Ok);
    assert_eq!(world.lab.origin_stats().host("o.test").requests, 10_001);
    let line = serde_json::to_string(record).unwrap().len();
    println!("{:?}, a record of {line} bytes, {kib} KiB", run.took);
    assert_eq!((record.attempts, record.tried.len()), (10_001, 10_000));
    assert!(kib < 120 * 1024, "{kib} KiB");
}

/// A library that puts another clock in the place of the machine's, where Debian has it.
fn other_clock() -> Option<&'static str> {
    let places = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    ];
    let found = places.into_iter().find(|place| Path::new(place).exists());
    if found.is_none() {
        eprintln!("left out: libfaketime is not installed");
    }
    found
}

/// D03: the time of day is set back an hour, then forth two, while jobs wait and run: nothing is
/// hurried, nothing waits for it, and records go on from the hour that the run began in.
#[test]
fn a_time_of_day_that_is_set_during_the_run_moves_nothing() {
    let Some(library) = other_clock() else {
        return;
    };
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.urls((0..30).map(|n| match n % 10 {
        0 => format!("http://o{n}.test/retry-after/1"),
        _ => format!("http://o.test/ok/10/{n}?wait=20"),
    }));
    let clock = world.write("clock", "+0");
    let mut command = world.command(&["--rate", "10", "--max-time", "60s", "--log-format", "json"]);
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    let child = command.spawn().unwrap();
    let recorded = || whole_records(&world.out()).len();
    until("a few are recorded", || recorded() >= 5);
    std::fs::write(&clock, "-3600").unwrap();
    until("more are recorded", || recorded() >= 15);
    std::fs::write(&clock, "+3600").unwrap();
    let run = world.wait(child).expect(0);
    assert_eq!(run.count(Outcome::Ok), 30);
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap();
    let times: Vec<_> = run.records.iter().map(|record| at(&record.at)).collect();
    assert!(times.is_sorted(), "{times:?}");
    let span = times[29].duration_since(times[0]).as_secs_f64();
    assert!((1.5..60.0).contains(&span), "{span} s");
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
}
