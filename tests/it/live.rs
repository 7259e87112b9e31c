//! What is seen of a run while it goes: live lines on a terminal, plain ones elsewhere, the
//! status line on request, and log lines that nobody has to read.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;
use rustix::process::Signal;

use crate::screen::Screen;
use crate::shells::send;
use crate::world::{Run, World};

const COLUMNS: usize = 60;

fn world() -> World {
    let world = World::new(LabConfig::with([ExitConfig::http(), ExitConfig::http()]));
    // Two seconds of one site's budget.
    world.urls((0..20).map(|n| format!("http://o.test/ok/{n}?wait=50")));
    world
}

/// Runs `$RUN ARGS` with stderr on a terminal of its own. `stdout` of the answer is what went
/// to that terminal.
fn on_a_terminal(world: &World, args: &str, variables: &[(&str, &str)]) -> Run {
    let inner = format!("stty cols {COLUMNS} rows 24; exec $RUN {args} > table.txt");
    let mut command: Command = world.shell("exec script -qec \"$INNER\" /dev/null");
    command.env("INNER", inner).env("TERM", "xterm");
    command.envs(variables.iter().copied());
    world.finish(command).expect(0)
}

#[test]
fn a_terminal_shows_live_lines_with_the_log_above_and_loses_them_at_the_end() {
    let world = world();
    let run = on_a_terminal(&world, "-v", &[("NO_COLOR", "1")]);
    let mut screen = Screen::new(COLUMNS);
    let mut most = String::new();
    screen.show(&run.stdout, |screen| {
        let text = screen.text();
        // Whole only between two drawings.
        let parts = ["00:00:0", "/s, ", "in flight", "waiting", "held back"];
        if parts.iter().all(|part| text.contains(part)) {
            most = text;
        }
    });
    assert!(!most.is_empty(), "never drawn: {:?}", run.stdout);
    let live: Vec<&str> = most.lines().rev().take(5).collect();
    assert!(live[4].starts_with("00:00:0"), "{most}");
    assert!(live[3].contains("/s"), "{most}");
    assert!(live[0].starts_with("held back: o.test "), "{most}");
    assert!(live.iter().all(|line| line.len() <= COLUMNS), "{most}");
    assert_eq!(most.matches("in flight").count(), 1, "drawn once: {most}");
    let left = screen.text();
    for gone in ["in flight", "held back", "00:00:0"] {
        assert!(!left.contains(gone), "{gone} is still there:\n{left}");
    }
    // Lines longer than the terminal wrap, so the beginnings are counted.
    assert_eq!(left.matches("DEBUG").count(), 20, "{left}");
    let table = std::fs::read_to_string(world.dir().join("table.txt")).unwrap();
    assert!(table.contains("peak in flight never above the cap: yes"));
    assert!(!table.contains('\u{1b}'));
}

#[test]
fn a_terminal_that_can_only_print_gets_lines_and_no_control_character() {
    let world = world();
    for variables in [&[("TERM", "dumb")], &[("TERM", "")]] {
        let run = on_a_terminal(&world, "--fresh", variables);
        let text = run.stdout.replace("\r\n", "\n");
        let shows = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(shows), "{variables:?}: {text:?}");
        assert!(!text.contains("in flight"), "{text}");
    }
}

#[test]
fn a_pipe_gets_no_control_character_and_the_status_line_when_asked_for() {
    let world = world();
    for flags in [
        &["-q"][..],
        &["--progress", "never"],
        &["--log-format", "json"],
    ] {
        let child = world.start(&[flags, &["--fresh"]].concat());
        // The origin is asked, so signals are caught and entries have been read.
        world.until_asked(1);
        send(&child, Signal::USR1);
        let run = world.wait(child).expect(0);
        world.lab.reset();
        assert_eq!(run.count(Outcome::Ok), 20, "it went on");
        let lines: Vec<&str> = run.stderr.lines().collect();
        let status: Vec<&&str> = lines.iter().filter(|l| l.contains("in flight ")).collect();
        assert_eq!(status.len(), 1, "{flags:?}: {}", run.stderr);
        assert!(status[0].contains(" of 20 done: "), "{}", status[0]);
        assert!(status[0].contains("exits: 2 healthy"), "{}", status[0]);
        let shows = |c: char| c.is_control() && c != '\n';
        assert!(!run.stderr.contains(shows), "{flags:?}: {:?}", run.stderr);
        if flags[0] == "--log-format" {
            let line: serde_json::Value = serde_json::from_str(status[0]).unwrap();
            assert_eq!(line["level"], "INFO");
        }
    }
}

#[test]
fn live_lines_are_drawn_into_a_pipe_where_they_are_forced() {
    let world = world();
    let run = world.run(&["--progress", "always"]).expect(0);
    let mut screen = Screen::new(80);
    let mut drawn = false;
    screen.show(&run.stderr, |screen| {
        drawn |= screen.text().contains("in flight")
    });
    assert!(drawn, "{:?}", run.stderr);
    assert_eq!(screen.text(), "", "erased");
}

/// More log lines than a pipe holds, and nobody reads them.
#[test]
fn a_run_whose_stderr_nobody_reads_ends_by_itself() {
    let world = world();
    world.urls((0..600).map(|n| format!("http://o.test/ok/{n}")));
    let mut child = world.start(&["--rate", "unlimited", "-v", "--log-format", "json"]);
    let mut unread = child.stderr.take().unwrap();
    let start = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            Some(ended) => break ended,
            None if start.elapsed() < Duration::from_secs(150) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            None => {
                child.kill().unwrap();
                panic!("it waits for a reader");
            }
        }
    };
    assert_eq!(ended.code(), Some(0));
    let mut table = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut table).unwrap();
    assert!(table.contains("600 entries: 600 ok"), "{table}");
    let mut text = String::new();
    unread.read_to_string(&mut text).unwrap();
    assert!(text.len() > 4096, "the pipe was full");
    assert!(text.lines().count() < 600, "not all can have gone out");
}

/// The order on one stream: log lines, the summary, the error.
#[test]
fn everything_on_stderr_comes_in_the_order_in_which_it_was_said() {
    let world = world();
    let mut command = world.command(&["--results", "-", "--rate", "unlimited"]);
    command.args(["--retries", "0", "--no-exit-timeout", "2s"]);
    world.urls(["http://o.test/status/503", "http://o.test/ok/1", "no url"]);
    let run = world.finish({
        command.stdout(Stdio::null());
        command
    });
    let run = run.expect(3);
    let at = |text: &str| {
        run.stderr
            .find(text)
            .unwrap_or_else(|| panic!("no {text}: {}", run.stderr))
    };
    let log = at("given up (tries: 1): status 503");
    assert_eq!(run.stderr.matches("given up").count(), 1, "{}", run.stderr);
    assert!(at("urls.txt:3: ") < at("exit   tier") && log < at("exit   tier"));
    assert!(at("exit   tier") < at("where jobs spent"));
}
