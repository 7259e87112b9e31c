//! Standard input, output and error in every state a shell can leave them in.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{Outcome, Record};

use crate::world::{Run, World};

fn world() -> World {
    let world = World::new(LabConfig::with([ExitConfig::http(), ExitConfig::socks5()]));
    world.urls((0..200).map(|n| format!("http://o.test/ok/{n}?wait=5")));
    world
}

/// Runs `script`, which prints the program's status last as `status N` on its standard error
/// `3`, kept apart from what the program may do to its own.
fn shell(world: &World, script: &str) -> (i32, Run) {
    let script = format!("{script}\necho ${{PIPESTATUS[0]}} > status");
    let run = world.finish(world.shell(&script));
    let status = std::fs::read_to_string(world.dir().join("status")).unwrap();
    (status.trim().parse().unwrap(), run)
}

#[track_caller]
fn assert_quiet(script: &str, status: i32, run: &Run) {
    assert!(
        [0, 1, 141].contains(&status),
        "{script}: {status}\n{}",
        run.stderr
    );
    assert!(!run.stderr.contains("panicked"), "{script}: {}", run.stderr);
    assert!(
        !run.stderr.contains(['\r', '\u{1b}']),
        "{script}: {}",
        run.stderr
    );
    if status == 0 {
        assert_eq!(run.count(Outcome::Ok), 200, "{script}");
    }
}

/// E07: whatever happens to the reader, no panic and no lost record.
#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let world = world();
    for script in [
        "$RUN --rate unlimited --results - | head -1 > first",
        "$RUN --rate unlimited --results - | true",
        "$RUN --rate unlimited | true",
        "$RUN --rate unlimited --summary json | true",
        "$RUN --rate unlimited -v 2>&1 | head -1 > first",
        "$RUN --rate unlimited --progress always -v 2>&1 >/dev/null | true",
    ] {
        let (status, run) = shell(&world, script);
        assert_quiet(script, status, &run);
        world.assert_whole();
        let _ = std::fs::remove_dir_all(world.out());
    }
}

/// E07.
#[test]
fn closed_and_full_streams_cost_their_text_only() {
    let world = world();
    for (script, expected) in [
        ("$RUN --rate unlimited >&-", &[0, 1][..]),
        ("$RUN --rate unlimited 2>&-", &[0]),
        ("$RUN --rate unlimited <&-", &[0]),
        ("$RUN --rate unlimited <&- >&- 2>&-", &[0, 1]),
        ("$RUN --rate unlimited --results - >&-", &[0, 1]),
        ("$RUN --rate unlimited > /dev/full", &[1]),
        ("$RUN --rate unlimited 2> /dev/full", &[0]),
        (
            "$RUN --rate unlimited -v --log-format json 2> /dev/full",
            &[0],
        ),
        ("$RUN --rate unlimited --progress always 2>&-", &[0]),
    ] {
        let (status, run) = shell(&world, script);
        assert_quiet(script, status, &run);
        assert!(
            expected.contains(&status),
            "{script}: {status}\n{}",
            run.stderr
        );
        assert_eq!(run.count(Outcome::Ok), 200, "{script}: the files are there");
        world.assert_whole();
        let _ = std::fs::remove_dir_all(world.out());
    }
}

/// E07: records that cannot be shown end the run as a local failure; none is lost.
#[test]
fn records_into_a_full_device_are_a_local_failure() {
    let world = world();
    for script in [
        "$RUN --rate unlimited --results - > /dev/full",
        "$RUN --rate unlimited --results /dev/full",
    ] {
        let (status, run) = shell(&world, script);
        assert_eq!(status, 1, "{script}: {}", run.stderr);
        assert!(!run.stderr.contains("panicked"));
        world.assert_whole();
        let _ = std::fs::remove_dir_all(world.out());
    }
}

/// E07: with `--results -` standard output is records and nothing else.
#[test]
fn records_on_stdout_are_whole_lines_and_nothing_else() {
    let world = world();
    for form in ["table", "json", "csv", "none"] {
        let run = world
            .run(&["--rate", "unlimited", "--results", "-", "--summary", form])
            .expect(0);
        let shown: Vec<Record> = run
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(shown, run.records, "{form}");
        assert_eq!(shown.len(), 200);
        assert!(run.stdout.ends_with('\n'));
        assert_eq!(
            run.stderr.contains("lab-1"),
            form != "none",
            "{}",
            run.stderr
        );
        assert_quiet(form, 0, &run);
        std::fs::remove_dir_all(world.out()).unwrap();
    }
    let run = world
        .run(&["--rate", "unlimited", "--results", "copy.jsonl"])
        .expect(0);
    let copy = std::fs::read_to_string(world.dir().join("copy.jsonl")).unwrap();
    assert_eq!(copy.lines().count(), run.records.len());
    assert!(
        run.stdout
            .contains("peak in flight never above the cap: yes")
    );
}

/// E07: words that only print.
#[test]
fn help_and_the_like_into_nothing_end_quietly() {
    let world = world();
    for words in [
        "--help",
        "--version",
        "run --help",
        "man",
        "completions bash",
        "completions zsh",
        "run --exits exits.txt --urls urls.txt --dry-run",
    ] {
        for (redirection, expected) in [
            ("| true", &[0, 141][..]),
            (">&-", &[0, 1]),
            ("> /dev/full", &[0, 1]),
            ("2>&-", &[0]),
        ] {
            let script = format!("$EXITFETCH {words} {redirection}");
            let (status, run) = shell(&world, &script);
            assert!(
                expected.contains(&status),
                "{script}: {status}\n{}",
                run.stderr
            );
            assert!(!run.stderr.contains("panicked"), "{script}: {}", run.stderr);
        }
    }
    assert_eq!(world.lab.origin_stats().requests, 0);
    assert!(!world.out().exists());
}

/// What programs collect says when it was; what people read, how long after the start.
#[test]
fn log_lines_in_json_carry_the_time_of_day() {
    let world = world();
    world.urls(["http://o.test/ok/1".to_owned()]);
    let run = world
        .run(&["-v", "--log-format", "json", "--progress", "never"])
        .expect(0);
    assert!(!run.stderr.is_empty());
    for line in run.stderr.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }
}
