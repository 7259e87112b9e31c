//! Exit statuses, and what a mistake in the call is answered with: one line that says what is
//! wrong and where, no request, no output directory.

use std::process::Stdio;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{Blame, ErrorKind, Outcome};

use crate::world::{Run, World};

fn world() -> World {
    World::new(LabConfig::with([ExitConfig::http()]))
}

/// E08: the worst outcome decides, whatever ends first.
#[test]
fn one_failed_url_among_good_ones_is_status_3() {
    for urls in [
        ["http://o.test/status/404", "http://p.test/delay/500"],
        ["http://o.test/delay/500/1", "http://p.test/status/404"],
    ] {
        let world = world();
        world.urls(urls);
        let run = world.run(&["--rate", "unlimited"]).expect(3);
        assert_eq!((run.count(Outcome::Ok), run.count(Outcome::Failed)), (1, 1));
        let failed = run.records.iter().find(|r| r.outcome == Outcome::Failed);
        let failed = failed.unwrap();
        assert_eq!(failed.status, Some(404));
        assert_eq!(failed.error.as_ref().unwrap().kind, ErrorKind::Status);
    }
}

/// E08: a good URL; and a 404 that is wanted, stored like any other body.
#[test]
fn all_ok_is_status_0() {
    let world = world();
    world.urls(["http://o.test/ok/9"]);
    world.run(&[]).expect(0);
    world.urls(["http://o.test/ok/9", "http://o.test/status/404"]);
    let run = world
        .run(&["--accept", "200-299,404", "--rate", "unlimited"])
        .expect(0);
    let stored = run.line(2);
    assert_eq!((stored.outcome, stored.status), (Outcome::Ok, Some(404)));
    assert!(!world.body(stored).is_empty());
}

/// E08: an empty list is done, in every format, and says so.
#[test]
fn an_empty_list_is_done_and_says_so() {
    for (name, list) in [
        ("urls.txt", ""),
        ("urls.txt", "# nothing\n\n"),
        ("urls.txt", "\u{feff}"),
        ("urls.csv", "url,id\n"),
        ("urls.jsonl", "\n"),
    ] {
        let world = world();
        world.write(name, list);
        let run = world.finish(world.exitfetch(["run", "--exits", "exits.txt", "--urls", name]));
        let run = run.expect(0);
        assert!(run.stderr.contains("empty"), "{name}: {}", run.stderr);
        assert_eq!(world.exit(0).stats().connections, 0);
    }
}

/// E08: a line that is no URL is a record of its own.
#[test]
fn a_refused_line_is_status_3_and_recorded() {
    let world = world();
    world.urls(["not a url"]);
    let run = world.run(&[]).expect(3);
    let record = run.line(1);
    assert_eq!(record.outcome, Outcome::Refused);
    assert_eq!(record.url, "not a url");
    let error = record.error.as_ref().unwrap();
    assert_eq!((error.kind, error.blame), (ErrorKind::BadUrl, Blame::Job));
}

/// E08: time over with work left; what was not reached is no failure.
#[test]
fn time_over_is_status_5_and_leaves_the_rest_unrecorded() {
    let world = world();
    world.urls((0..20).map(|n| format!("http://o.test/ok/{n}")));
    let run = world
        .run(&["--rate", "1", "--max-time", "3s", "--summary", "json"])
        .expect(5);
    assert_eq!(run.count(Outcome::Failed) + run.count(Outcome::Refused), 0);
    assert!((2..=6).contains(&run.count(Outcome::Ok)));
    let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let number = |name: &str| summary["totals"][name].as_u64().unwrap();
    assert_eq!(number("entries"), 20, "{summary}");
    assert_eq!(
        number("ok") + number("failed") + number("refused") + number("not_reached"),
        20
    );
}

/// The bound of a run holds too while nothing comes from standard input.
#[test]
fn a_silent_pipe_does_not_outlast_max_time() {
    let world = world();
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "-"]);
    command.args(["--max-time", "1s"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _silent = child.stdin.take();
    let started = std::time::Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if started.elapsed().as_secs() > 20 => {
                child.kill().unwrap();
                break None;
            }
            None => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    };
    assert_eq!(status, Some(5));
}

/// The mistake is told in one line that begins with `error: ` and names what is wrong.
#[track_caller]
fn assert_usage(world: &World, run: Run, words: &[&str]) {
    let run = run.expect(2);
    let first = run.stderr.lines().find(|line| line.starts_with("error: "));
    let first = first.unwrap_or_else(|| panic!("no error line: {}", run.stderr));
    for word in words {
        assert!(first.contains(word), "{word}: {first}");
    }
    assert!(!world.out().exists());
    assert_eq!(run.stdout, "");
    assert_eq!(world.exit(0).stats().connections, 0);
}

/// E08: mistakes in flags and lists.
#[test]
fn mistakes_in_the_call_are_status_2_without_output_directory() {
    let world = world();
    world.urls(["http://o.test/ok/1"]);
    world.write("false.gz", "http://o.test/ok/1\n");
    world.write("no-url.csv", "uri,id\nhttp://o.test/ok/1,1\n");
    world.write("exits.csv", "exit,colour\n127.0.0.1:1,red\n");
    for (args, words) in [
        (&["--frobnicate"][..], &["--frobnicate"][..]),
        (&["--per-exits", "3"], &["--per-exits"]),
        (&["--urls", "missing.txt"], &["missing.txt"]),
        (&["--exits", "missing.txt"], &["missing.txt"]),
        (&["--urls", "."], &["."]),
        (&["--urls", "-", "--exits", "-"], &["--exits", "--urls"]),
        (&["--urls", "false.gz"], &["false.gz", ".gz"]),
        (&["--urls", "no-url.csv"], &["no-url.csv", "line 1", "url"]),
        (
            &["--exits", "exits.csv"],
            &["exits.csv", "line 1", "column 2"],
        ),
        (&["--rate", "0"], &["--rate", "30/m"]),
        (&["--rate", "5/d"], &["--rate", "30/m"]),
        (&["--per-exit", "0"], &["--per-exit"]),
        (&["--burst", "0"], &["--burst"]),
        (&["--timeout", "soon"], &["--timeout", "10s"]),
        (&["--accept", "2xx"], &["--accept", "200-299"]),
        (&["--max-body", "big"], &["--max-body", "1MB"]),
        (&["--name-template", "{nope}"], &["--name-template", "{id}"]),
        (&["--name-template", "../{id}"], &["--name-template", ".."]),
        (&["--cacert", "missing.pem"], &["missing.pem"]),
        (&["--config", "missing.toml"], &["missing.toml"]),
        (&["--summary", "pie"], &["--summary"]),
        (&["--fresh", "--no-retry-failed"], &["--fresh"]),
        (&["-q", "-v"], &["--quiet", "--verbose"]),
        (&["surplus"], &["word 6 belongs to no flag"]),
        (&["--urls", ""], &["--urls is missing"]),
        (&["-A", "a\u{1}b"], &["user agent"]),
    ] {
        assert_usage(&world, world.run(args), words);
    }
    let exits = world.exitfetch(["run", "--exits", "exits.txt"]);
    assert_usage(&world, world.finish(exits), &["--urls"]);
    let urls = world.exitfetch(["run", "--urls", "urls.txt"]);
    assert_usage(&world, world.finish(urls), &["--exits"]);
}

/// E07: what is printed for people or packagers into a closed pipe ends quietly.
#[test]
fn a_closed_or_full_stdout_is_no_panic() {
    let world = world();
    world.urls(["http://o.test/ok/1"]);
    for words in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["man"],
        &["completions", "bash"],
        &["completions", "zsh"],
        &[
            "run",
            "--exits",
            "exits.txt",
            "--urls",
            "urls.txt",
            "--dry-run",
        ],
        &["run", "--exits", "exits.txt", "--urls", "urls.txt"],
        &[
            "run",
            "--exits",
            "exits.txt",
            "--urls",
            "urls.txt",
            "--summary",
            "json",
        ],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = world.exitfetch(words);
        command.stdout(writer);
        let run = world.finish(command);
        assert!(
            matches!(run.status, Some(0 | 141)),
            "{words:?}: {:?}",
            run.status
        );
        assert_eq!(run.stderr.matches("panic").count(), 0, "{words:?}");
        let mut command = world.exitfetch(words);
        command.stdout(
            std::fs::File::options()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        );
        let run = world.finish(command);
        assert!(
            matches!(run.status, Some(0 | 1)),
            "{words:?}: {:?}",
            run.status
        );
        assert_eq!(run.stderr.matches("panic").count(), 0, "{words:?}");
    }
}

/// E07: the same for stderr, whatever is told there.
#[test]
fn a_closed_or_full_stderr_costs_messages_and_nothing_else() {
    let world = world();
    world.urls(["http://o.test/ok/1", "not a url"]);
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let closed = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        writer
    };
    for extra in [&["--fresh", "-v"][..], &["--fresh", "--progress", "always"]] {
        let mut command = world.command(extra);
        command.stderr(full());
        let run = world.finish(command).expect(3);
        assert_eq!(run.records.len(), 2);
        let mut command = world.command(extra);
        command.stderr(closed());
        let run = world.finish(command).expect(3);
        assert_eq!(run.records.len(), 2);
    }
    let mut command = world.command(&["--urls", "missing.txt"]);
    command.stderr(closed());
    world.finish(command).expect(2);
}
