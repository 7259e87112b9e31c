//! What README and the pages of `docs/` show is run as it stands there: commands, the line for cron,
//! lists and settings, the two terminals of the rehearsal.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use exitfetch::lab::{ExitConfig, LabConfig};

use super::{block, blocks, manual, root};
use crate::world::World;

/// A lab's directory in which `exitfetch` is a command.
fn beside_a_lab() -> World {
    let world = World::new(LabConfig::alike(6, &ExitConfig::http().capacity(3)));
    let folder = world.dir().join("bin");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_exitfetch"), folder.join("exitfetch")).unwrap();
    std::os::unix::fs::symlink(root().join("fixtures"), world.dir().join("fixtures")).unwrap();
    world
}

#[test]
fn every_command_shown_is_run_by_a_test() {
    let manual = manual();
    for (at, _) in manual.match_indices("\n```sh\n") {
        let before = manual[..at].lines().next_back().unwrap();
        let run = ["<!-- runs -->", "<!-- here -->", "<!-- terminal"];
        assert!(
            run.iter().any(|mark| before.starts_with(mark)),
            "not run by a test: {}",
            manual[at..].lines().nth(2).unwrap()
        );
    }
    // The tests run what `cargo run` and `test.sh` would.
    assert_eq!(block("here"), "cargo run --release -- demo\n./test.sh\n");
    let demo = Command::new(env!("CARGO_BIN_EXE_exitfetch"))
        .arg("demo")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(demo.stdout).unwrap();
    assert!(demo.status.success(), "{said}");
    assert!(
        said.contains("peak in flight never above the cap: yes"),
        "{said}"
    );
}

#[test]
fn the_line_for_cron_runs_as_cron_runs_it() {
    let world = beside_a_lab();
    let line = block("cron");
    let command = line
        .split_whitespace()
        .skip(5)
        .collect::<Vec<_>>()
        .join(" ");
    let lists = world.dir().join("lists");
    let program = world.dir().join(".cargo/bin");
    std::fs::create_dir_all(&program).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_exitfetch"), program.join("exitfetch")).unwrap();
    std::fs::create_dir(&lists).unwrap();
    std::fs::copy(world.dir().join("exits.txt"), lists.join("exits.txt")).unwrap();
    std::fs::write(
        lists.join("urls.txt"),
        "http://o.test/versions/9\nhttp://o.test/ok/1\n",
    )
    .unwrap();
    std::fs::write(
        lists.join("exitfetch.toml"),
        "[run]\nexits = \"exits.txt\"\nurls = \"urls.txt\"\n",
    )
    .unwrap();
    let cron = || {
        let output = Command::new("sh")
            .args(["-c", &command])
            .env_clear()
            .env("HOME", world.dir())
            .env("PATH", "/usr/bin:/bin")
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert_eq!(cron(), "");
    assert_eq!(cron(), "");
    let records = crate::shells::whole_records(&lists.join("exitfetch-out"));
    assert_eq!(records.len(), 4);
    assert_eq!(
        records
            .iter()
            .filter(|r| r.not_modified == Some(true))
            .count(),
        1
    );
    std::fs::write(lists.join("urls.txt"), "http://o.test/status/404\n").unwrap();
    assert_eq!(cron(), "status 3\n");
    std::fs::write(lists.join("exits.txt"), "").unwrap();
    let said = cron();
    assert!(
        said.contains("error: exits.txt has no usable exit") && said.contains("status 2\n"),
        "{said}"
    );
}

/// bash with this script in the world's directory, strict about every failure.
fn bash(world: &World, script: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("bash");
    command
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(world.dir())
        .env_clear()
        .env(
            "PATH",
            format!("{}:{path}", world.dir().join("bin").display()),
        )
        .env("GATE_PASS", "p:@ss/#%")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn the_examples_run() {
    let has_jq = Command::new("jq").arg("--version").output().is_ok();
    std::thread::scope(|scope| {
        for (_, script) in blocks("runs") {
            if script.contains("jq ") && !has_jq {
                eprintln!("left out, because jq is not installed:\n{script}");
                continue;
            }
            scope.spawn(move || example_runs(&script));
        }
    });
}

fn example_runs(script: &str) {
    let world = beside_a_lab();
    let output = bash(&world, script).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{script}\n{stdout}\n{stderr}");
    if script.contains("@tsv") {
        assert_eq!(stdout.lines().count(), 5, "{stdout}");
        assert!(
            stdout.lines().all(|line| line.starts_with("200\tlab-")),
            "{stdout}"
        );
    }
    let lines = |name: &str| {
        let text = std::fs::read_to_string(world.dir().join(name)).unwrap();
        text.lines().count()
    };
    if script.contains("changed.txt") {
        assert_eq!(
            lines("changed.txt"),
            60,
            "the lab's sample has no validators"
        );
    }
    if script.contains("part-0.txt") {
        assert_eq!(lines("part-0.txt") + lines("part-1.txt"), 60);
        assert_eq!(lines("part-0/results.jsonl"), lines("part-0.txt"));
    }
    if script.contains(".jsonl\")") {
        let own = |n: usize| lines(&format!("site-{n}.test.jsonl"));
        assert_eq!((1..=12).map(own).collect::<Vec<_>>(), [5; 12]);
    }
    if script.contains("again.txt") {
        assert_eq!(lines("again.txt"), 0);
        failed_urls_are_a_list(&world, script);
    }
    if script.contains("case $code") {
        assert_eq!(stdout, "every URL is there\n");
        cron_tells_the_other_ends(&world, script);
    }
}

/// The same script where something failed: that alone is the second run's list.
fn failed_urls_are_a_list(world: &World, script: &str) {
    world.urls(["http://o.test/ok/1", "http://o.test/status/404"]);
    let script = script
        .replace(" first", " first-2")
        .replace(" second", " second-2");
    bash(world, &format!("set +e\n{script}")).output().unwrap();
    let again = std::fs::read_to_string(world.dir().join("again.txt")).unwrap();
    assert_eq!(again, "http://o.test/status/404\n");
    let records = crate::shells::whole_records(&world.dir().join("second-2"));
    assert_eq!((records.len(), records[0].status), (1, Some(404)));
}

/// The same script where something failed, where no exit works, and where nothing can run.
fn cron_tells_the_other_ends(world: &World, script: &str) {
    let say = |world: &World, script: &str| {
        let output = bash(world, script).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let script = &script.replace("--out pages", "--out others --no-exit-timeout 2s");
    world.urls(["http://o.test/ok/1", "http://o.test/status/404"]);
    let (status, said) = say(world, script);
    assert!(
        status == Some(0) && said.starts_with("finished; some failed"),
        "{said}"
    );
    world.write("exits.txt", "127.0.0.1:1\n");
    let (status, said) = say(world, script);
    assert!(
        status == Some(0) && said.starts_with("no usable exit"),
        "{said}"
    );
    world.write("exits.txt", "");
    assert_eq!(say(world, script), (Some(1), String::new()));
}

#[test]
fn the_lists_and_settings_shown_are_accepted() {
    let world = beside_a_lab();
    let files = blocks("file ");
    for (name, text) in &files {
        world.write(name, text);
    }
    let dry = |flags: &str| {
        let output = bash(&world, &format!("exitfetch run {flags} --dry-run"))
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && stderr.is_empty(),
            "{flags}: {stderr}"
        );
        String::from_utf8(output.stdout).unwrap()
    };
    for (name, _) in &files {
        match name.split('-').next().unwrap() {
            "urls" => assert!(
                dry(&format!("--urls {name}")).contains("2 to fetch"),
                "{name}"
            ),
            "exits" => assert!(
                dry(&format!("--exits {name}")).contains(" requests at a time"),
                "{name}"
            ),
            _ => assert!(dry("").contains("\n26 exits carry"), "{}", dry("")),
        }
    }
    assert_eq!(files.len(), 7);
}

/// Numbers and units as `0`, blanks and rules of any length as one blank: what is left does not
/// depend on how fast a run was.
fn shape(text: &str) -> Vec<String> {
    let unit = |word: &str| ["ms", "s", "B", "KiB", "MiB"].contains(&word);
    let line = |line: &str| {
        let words = line.split_whitespace().filter(|word| !unit(word));
        let number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
        let words = words.map(|word| if number(word) { "0" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    // Which stage took most is a matter of milliseconds.
    let steady = |line: &&str| !line.trim_start().starts_with("most went to");
    text.lines().filter(steady).map(line).collect()
}

#[test]
fn the_two_terminals_of_the_rehearsal_give_the_table_that_readme_begins_with() {
    let world = beside_a_lab();
    let mut lab = bash(&world, &format!("exec {}", block("terminal 1")))
        .spawn()
        .unwrap();
    let mut said = BufReader::new(lab.stdout.take().unwrap()).lines();
    while said.next().unwrap().unwrap() != "Ctrl-C ends it" {}
    let run = bash(&world, &block("terminal 2")).output().unwrap();
    let pid = rustix::process::Pid::from_child(&lab);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(0));
    assert_eq!(run.status.code(), Some(0));
    let table = block("the table");
    let (command, table) = table.split_once('\n').unwrap();
    assert_eq!(command.trim_start_matches("$ "), block("terminal 2").trim());
    assert_eq!(shape(&String::from_utf8(run.stdout).unwrap()), shape(table));
}
