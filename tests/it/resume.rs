//! A second run in the same directory, and one that may not be.

use std::collections::HashMap;

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig, Page};
use exitfetch::model::Outcome;

use crate::shells::until;
use crate::world::World;

const FAST: [&str; 2] = ["--rate", "unlimited"];

/// An http and a SOCKS5 exit.
fn world() -> World {
    World::new(LabConfig::with([ExitConfig::http(), ExitConfig::socks5()]).logging(1000))
}

impl World {
    /// Targets the origin was asked for since the last call.
    fn asked(&self) -> Vec<String> {
        let mut targets: Vec<String> = self.lab.log().into_iter().map(|s| s.target).collect();
        targets.sort();
        self.lab.reset();
        targets
    }
}

/// What is ok is not fetched again; what failed is, unless the user says no; refused lines get
/// no second record.
#[test]
fn ok_stays_and_failed_is_tried_again() {
    let world = world();
    world.urls([
        "http://o.test/ok/10",
        "http://o.test/status/404",
        "no url",
        "http://o.test/ok/11",
        "http://o.test/ok/10",
    ]);
    let run = world.run(&FAST).expect(3);
    assert_eq!(run.records.len(), 5);
    assert_eq!(world.asked(), ["/ok/10", "/ok/11", "/status/404"]);

    let run = world
        .run(&[&FAST[..], &["--no-retry-failed"]].concat())
        .expect(3);
    assert_eq!((run.records.len(), world.asked().len()), (5, 0));
    assert!(run.stdout.contains("3 ok"), "{}", run.stdout);

    let run = world.run(&FAST).expect(3);
    assert_eq!(world.asked(), ["/status/404"]);
    assert_eq!(run.records.len(), 6, "one more for the failed one");
}

/// A job that failed for want of an exit is fetched by the next run.
#[test]
fn what_failed_for_the_exit_is_ok_through_a_better_one() {
    let world = world();
    world.urls((0..10).map(|n| format!("http://o.test/ok/{n}")));
    let dead = Behaviour::Everything(Page::bare(407));
    for n in 0..2 {
        let exit = world.exit(n).clone();
        world.runtime.block_on(exit.set_behaviour(dead.clone()));
    }
    let run = world.run(&FAST).expect(4);
    assert_eq!(run.count(Outcome::Failed), 10);
    for n in 0..2 {
        let exit = world.exit(n).clone();
        world.runtime.block_on(exit.set_behaviour(Behaviour::Good));
    }
    let run = world.run(&FAST).expect(0);
    assert_eq!((run.records.len(), run.count(Outcome::Ok)), (20, 10));
}

/// An ok record whose file is gone or has another size counts for nothing.
#[test]
fn a_missing_or_resized_file_is_fetched_again() {
    let world = world();
    let urls = ["/ok/100", "/ok/101", "/ok/102", "/ok/103", "/ok/104"];
    world.urls(urls.map(|target| format!("http://o.test{target}")));
    let run = world.run(&FAST).expect(0);
    world.asked();
    let file: HashMap<u64, std::path::PathBuf> = run
        .records
        .iter()
        .map(|r| (r.line, world.out().join(r.file.as_ref().unwrap())))
        .collect();
    std::fs::remove_file(&file[&1]).unwrap();
    std::fs::write(&file[&2], "shorter").unwrap();
    std::fs::write(&file[&3], vec![b'x'; 500]).unwrap();
    std::fs::remove_file(&file[&4]).unwrap();
    std::fs::create_dir(&file[&4]).unwrap();
    // The directory in the way is the user's: it cannot be replaced, the others can.
    let run = world.run(&FAST);
    assert_eq!(run.status, Some(1), "{}", run.stderr);
    std::fs::remove_dir(&file[&4]).unwrap();
    world.run(&FAST).expect(0);
    let asked = world.asked();
    assert!(!asked.contains(&"/ok/104".to_owned()), "{asked:?}");
    world.assert_whole();
    world.run(&FAST).expect(0);
    assert_eq!(world.asked().len(), 0);
}

/// A torn last line is dropped, not continued; a line that is no record is passed over with a
/// warning; stale temporary files go, the user's stay.
#[test]
fn a_damaged_journal_costs_only_what_is_damaged() {
    let world = world();
    world.urls((0..6).map(|n| format!("http://o.test/ok/{n}")));
    world.run(&FAST).expect(0);
    world.asked();
    let journal = world.out().join("results.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let torn = &lines[5][..lines[5].len() / 2];
    lines[2] = "{\"not\": \"a record\"}";
    std::fs::write(&journal, lines[..5].join("\n") + "\n" + torn).unwrap();
    std::fs::create_dir_all(world.out().join(".tmp")).unwrap();
    std::fs::write(world.out().join(".tmp/17.part"), "stale").unwrap();
    std::fs::write(world.out().join("bodies/mine.txt"), "the user's").unwrap();

    let mut command = world.command(&FAST);
    command.args(["--summary", "json"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("results.jsonl"), "{stderr}");
    assert_eq!(world.asked().len(), 2, "the damaged two");
    let text = std::fs::read_to_string(&journal).unwrap();
    let records: Vec<exitfetch::model::Record> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    assert_eq!(records.len(), 6);
    assert!(!world.out().join(".tmp").exists());
    assert!(world.out().join("bodies/mine.txt").exists());
}

/// Only what is new in the list is fetched; what is no more in it does not count.
#[test]
fn a_changed_list_is_what_the_second_run_is_about() {
    let world = world();
    world.urls(["http://o.test/ok/1", "http://o.test/status/404"]);
    world.run(&FAST).expect(3);
    world.asked();
    world.urls(["http://o.test/ok/3", "http://o.test/ok/1"]);
    let run = world.run(&FAST).expect(0);
    assert_eq!(world.asked(), ["/ok/3"]);
    assert!(run.stdout.contains("2 ok"), "{}", run.stdout);
}

/// `--fresh` fetches all again and keeps the old journal.
#[test]
fn a_fresh_run_keeps_the_old_journal_as_a_backup() {
    let world = world();
    world.urls(["http://o.test/ok/1", "http://o.test/ok/2"]);
    let first = world.run(&FAST).expect(0).records;
    world.asked();
    let run = world.run(&[&FAST[..], &["--fresh"]].concat()).expect(0);
    assert!(run.stderr.contains("results.1.jsonl"), "{}", run.stderr);
    assert_eq!(world.asked().len(), 2);
    let backup = std::fs::read_to_string(world.out().join("results.1.jsonl")).unwrap();
    assert_eq!(backup.lines().count(), first.len());
}

/// Two runs in one directory: the second is turned away at once, the first is not disturbed;
/// also when the second wants to start afresh.
#[test]
fn a_second_run_at_the_same_time_is_turned_away() {
    let world = world();
    world.urls((0..6).map(|n| format!("http://o.test/delay/400/{n}")));
    let first = world.start(&["--rate", "unlimited", "--per-exit", "1"]);
    world.until_asked(1);
    until("the journal", || world.out().join("results.jsonl").exists());
    for args in [&["--rate", "unlimited"][..], &["--fresh"]] {
        let output = world.command(args).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("another run") && stderr.contains("exitfetch-out"),
            "{stderr}"
        );
    }
    let run = world.wait(first).expect(0);
    assert_eq!((run.records.len(), world.asked().len()), (6, 6));
    world.assert_whole();
}
