//! Signals and `--max-time`: start nothing new, give what runs a moment, then stop; never a
//! half record.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;
use rustix::process::Signal;

use crate::shells::{send, until, whole_records};
use crate::world::{Run, World};

const ARGS: [&str; 4] = ["--rate", "unlimited", "--per-exit", "2"];

fn world() -> World {
    World::new(LabConfig::with([ExitConfig::http(), ExitConfig::socks5()]))
}

/// Sends each signal with a pause after it, then waits for the end.
fn signalled(world: &World, args: &[&str], requests: u64, signals: &[Signal]) -> Run {
    let child = world.start(args);
    world.until_asked(requests);
    for signal in signals {
        send(&child, *signal);
        std::thread::sleep(Duration::from_millis(300));
    }
    world.wait(child)
}

/// The first signal lets running bodies end, starts nothing, writes everything.
#[test]
fn the_first_signal_lets_running_bodies_end() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let world = world();
        world.urls((0..40).map(|n| format!("http://o.test/drip/{n}?bytes=500&ms=1500")));
        let run = signalled(&world, &ARGS, 4, &[signal]).expect(status);
        assert_eq!(run.count(Outcome::Ok), 4, "what was running has ended");
        assert_eq!(world.lab.origin_stats().requests, 4, "nothing was started");
        assert_eq!(run.records.len(), 4);
        assert!(run.stdout.contains("36 not reached"), "{}", run.stdout);
        assert!(run.took < Duration::from_secs(15));
        assert!(
            run.stderr.contains("4 under way get up to 5 s"),
            "{}",
            run.stderr
        );
        world.assert_whole();
        assert!(world.out().join("summary.json").exists());
        assert_eq!(world.exits_csv().len(), 2);
        // A second run does the rest.
        world.urls((0..8).map(|n| format!("http://o.test/drip/{n}?bytes=500&ms=1500")));
        assert!(world.run(&ARGS).expect(0).count(Outcome::Ok) >= 8);
    }
}

/// What does not end within the five seconds has no record, no file, and is not blamed.
#[test]
fn bodies_that_take_longer_than_the_grace_are_not_recorded() {
    let world = world();
    world.urls((0..6).map(|n| format!("http://o.test/drip/{n}?bytes=100&ms=60000")));
    let run = signalled(&world, &ARGS, 4, &[Signal::INT]).expect(130);
    assert!(run.took > Duration::from_secs(3), "they had their moment");
    assert!(run.took < Duration::from_secs(20));
    assert_eq!(run.records.len(), 0);
    assert!(world.stored().is_empty());
    assert!(run.stdout.contains("6 not reached"), "{}", run.stdout);
    for row in world.exits_csv() {
        assert_eq!(row["faults"], "0");
    }
    world.assert_whole();
}

/// The second signal, of either kind, stops at once, still without half a record.
#[test]
fn the_second_signal_stops_now() {
    for (signals, status) in [
        ([Signal::INT, Signal::INT], 130),
        ([Signal::TERM, Signal::INT], 143),
        ([Signal::INT, Signal::TERM], 130),
    ] {
        let world = world();
        world.urls((0..9).map(|n| format!("http://o.test/drip/{n}?bytes=100000&ms=60000")));
        let run = signalled(&world, &ARGS, 4, &signals).expect(status);
        assert!(run.took < Duration::from_secs(4), "{:?}", run.took);
        assert_eq!((run.records.len(), world.stored().len()), (0, 0));
        world.assert_whole();
    }
}

/// Every wait is cut: for a pause of the origin, a rate, a body, a dial, a list.
#[test]
fn a_signal_cuts_every_wait() {
    let quick = Duration::from_secs(12);
    let wait_for = |urls: &[&str], args: &[&str], exit: ExitConfig, asked: u64| {
        let world = World::new(LabConfig::alike(1, &exit));
        world.urls(urls);
        let child = world.start(args);
        world.until_asked(asked);
        std::thread::sleep(Duration::from_millis(400));
        send(&child, Signal::INT);
        let start = Instant::now();
        let run = world.wait(child).expect(130);
        assert!(start.elapsed() < quick, "{args:?}: {:?}", start.elapsed());
        assert!(run.stdout.contains("not reached"), "{}", run.stdout);
    };
    let good = ExitConfig::http;
    wait_for(&["http://o.test/retry-after/600"], &[], good(), 1);
    wait_for(
        &["http://o.test/ok/1", "http://o.test/ok/2"],
        &["--rate", "1/h"],
        good(),
        1,
    );
    wait_for(&["http://o.test/silent"], &[], good(), 1);
    wait_for(
        &["http://o.test/ok/1"],
        &[],
        good().behaving("hang".parse().unwrap()),
        0,
    );
    wait_for(
        &["https://o.test/ok/1"],
        &[],
        ExitConfig::socks5().behaving("hang-handshake".parse().unwrap()),
        0,
    );
    wait_for(
        &["http://o.test/ok/1"],
        &[],
        good().behaving("502".parse().unwrap()),
        0,
    );
}

/// A list on standard input that never ends does not hold the program up.
#[test]
fn a_signal_ends_a_run_whose_list_is_still_coming() {
    let world = world();
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut list = child.stdin.take().unwrap();
    list.write_all(b"http://o.test/ok/1\nhttp://o.test/o")
        .unwrap();
    list.flush().unwrap();
    world.until_asked(1);
    std::thread::sleep(Duration::from_millis(300));
    send(&child, Signal::TERM);
    let run = world.wait(child).expect(143);
    assert!(run.took < Duration::from_secs(10), "{:?}", run.took);
    assert_eq!(run.count(Outcome::Ok), 1);
    drop(list);
}

/// A dry run reads the list to its end, however long that takes: it too can be stopped.
#[test]
fn a_signal_ends_a_dry_run_whose_list_is_still_coming() {
    let world = world();
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "-"]);
    command.arg("--dry-run").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut list = child.stdin.take().unwrap();
    list.write_all(b"http://o.test/ok/1\n").unwrap();
    list.flush().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    send(&child, Signal::INT);
    let run = world.wait(child).expect(130);
    assert!(run.stderr.contains("nothing was sent"), "{}", run.stderr);
    drop(list);
}

/// Records that nobody reads hold the end up no longer than the user wants.
#[test]
fn a_signal_ends_the_wait_for_a_reader_of_the_records() {
    let world = world();
    world.urls((0..400).map(|n| format!("http://o.test/ok/{n}")));
    let mut child = world.start(&["--rate", "unlimited", "--results", "-"]);
    until("all is recorded", || {
        whole_records(&world.out()).len() == 400
    });
    // More than a pipe takes, so the program waits for its reader.
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "nobody read");
    let start = Instant::now();
    send(&child, Signal::INT);
    until("it ends", || child.try_wait().unwrap().is_some());
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(world.wait(child).expect(130).count(Outcome::Ok), 400);
}

/// The statuses of an early end are for runs with work left.
#[test]
fn an_end_that_comes_early_but_leaves_nothing_is_an_ordinary_one() {
    let world = world();
    world.urls((0..2).map(|n| format!("http://o.test/drip/{n}?bytes=50&ms=2000")));
    let run = signalled(&world, &ARGS, 2, &[Signal::INT]).expect(0);
    assert_eq!(run.count(Outcome::Ok), 2);
    assert!(run.stdout.contains("0 not reached"), "{}", run.stdout);
    world.urls((2..4).map(|n| format!("http://o.test/drip/{n}?bytes=50&ms=2000")));
    let run = world
        .run(&[&ARGS[..], &["--max-time", "1s"]].concat())
        .expect(0);
    assert_eq!(run.count(Outcome::Ok), 4);
}

/// The demo can be stopped in each of its parts.
#[test]
fn a_signal_ends_the_demo_behind_its_main_job_too() {
    let world = world();
    let mut child = world.exitfetch(["demo"]).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    while !said.next().unwrap().unwrap().starts_with("for contrast") {}
    send(&child, Signal::TERM);
    world.wait(child).expect(143);
}

/// E08: `--max-time` ends the run with 5; what was not reached is not recorded as failed.
#[test]
fn out_of_time_leaves_the_rest_unrecorded() {
    let world = world();
    world.urls((0..20).map(|n| format!("http://o.test/ok/{n}")));
    let run = world.run(&["--rate", "1", "--max-time", "3s"]).expect(5);
    let ok = run.count(Outcome::Ok);
    assert!((2..=5).contains(&ok), "{ok}");
    assert_eq!(run.records.len(), ok);
    assert!(
        run.stdout.contains(&format!("{} not reached", 20 - ok)),
        "{}",
        run.stdout
    );
    // Time enough: the same flag, and nothing is left.
    let run = world
        .run(&["--rate", "unlimited", "--max-time", "60s"])
        .expect(0);
    assert_eq!(run.count(Outcome::Ok), 20);
}

/// An endless or silent answer does not outlast `--max-time` by more than the grace.
#[test]
fn out_of_time_cuts_what_runs_after_its_grace() {
    let world = world();
    world.urls([
        "http://o.test/endless?ms=50",
        "http://o.test/silent",
        "http://o.test/ok/5",
    ]);
    let run = world
        .run(&["--rate", "unlimited", "--max-time", "1s"])
        .expect(5);
    assert!(run.took < Duration::from_secs(15), "{:?}", run.took);
    assert_eq!((run.records.len(), run.count(Outcome::Ok)), (1, 1));
    world.assert_whole();
}

/// A run that is blocked in a call which no signal ends: nobody opens the other end of a FIFO.
/// Signals end it all the same, soon.
#[test]
fn a_signal_ends_a_run_that_waits_for_somebody_else_for_ever() {
    let world = world();
    world.urls((0..20).map(|n| format!("http://o.test/ok/{n}")));
    let fifo = world.dir().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut child = world.start(&[&ARGS[..], &["--results", "fifo"]].concat());
        std::thread::sleep(Duration::from_secs(2));
        assert!(child.try_wait().unwrap().is_none(), "it is blocked");
        send(&child, signal);
        let start = Instant::now();
        let ended = loop {
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{signal:?}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(ended.code(), Some(status), "{signal:?}");
    }
}
