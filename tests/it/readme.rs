//! The documents say what is so: README's usage, flags, examples and lists against the built
//! program, links and names of tests against the sources.
//!
//! A comment right above a code block of README says what is done with it: `usage` and `the table`
//! are compared, `file NAME` is read by `--dry-run`, `runs` is run by bash beside a lab's files, `cron`
//! is a line of a crontab, and the block of `terminal 1` runs while that of `terminal 2` does.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Record;

use crate::world::World;

const DOCUMENTS: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// The blocks of README whose comment begins with `mark`: what follows in the comment, the text.
fn blocks(mark: &str) -> Vec<(String, String)> {
    let readme = document("README.md");
    let mut found = Vec::new();
    for part in readme.split("\n<!-- ").skip(1) {
        let (comment, rest) = part.split_once(" -->\n```").unwrap();
        let (text, _) = rest.split_once("\n```").unwrap();
        // Behind the fence stands the language.
        let (_, text) = text.split_once('\n').unwrap();
        if let Some(more) = comment.strip_prefix(mark) {
            found.push((more.trim().to_owned(), text.to_owned() + "\n"));
        }
    }
    assert!(!found.is_empty(), "README has no block marked {mark}");
    found
}

fn block(mark: &str) -> String {
    blocks(mark).remove(0).1
}

/// `exitfetch run --help` at a width that README can show.
fn help() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_exitfetch"))
        .args(["run", "--help"])
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_usage_block_is_what_help_says() {
    assert_eq!(
        block("usage"),
        help(),
        "put the output of `COLUMNS=100 exitfetch run --help` into README"
    );
}

#[test]
fn every_flag_of_run_is_in_the_text() {
    let text = document("README.md").replace(&block("usage"), "");
    let toml = block("file exitfetch.toml");
    let help = help();
    let (flags, _) = help.split_once("\nExamples:").unwrap();
    let mut missing = Vec::new();
    for line in flags
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('-'))
    {
        let Some(flag) = line.split(' ').find(|word| word.starts_with("--")) else {
            continue;
        };
        let key = format!("\n{} = ", flag[2..].replace('-', "_"));
        let named = text.match_indices(flag).any(|(at, _)| {
            !text[at + flag.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-')
        });
        if flag != "--help" && !named && !toml.contains(&key) {
            missing.push(flag);
        }
    }
    assert!(missing.is_empty(), "README explains nowhere: {missing:?}");
}

/// A heading's anchor, as the hosts of repositories make it.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(kept)
        .collect::<String>()
        .replace(' ', "-")
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    for name in DOCUMENTS {
        let text = document(name);
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            if target.starts_with("https://") {
                continue;
            }
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { name } else { file };
            assert!(root().join(file).exists(), "{name}: {target}");
            let other = if wanted.is_empty() {
                String::new()
            } else {
                document(file)
            };
            let mut headings = other.lines().filter(|line| line.starts_with('#'));
            assert!(
                wanted.is_empty()
                    || headings.any(|line| anchor(line.trim_start_matches('#')) == wanted),
                "{name}: no heading for {target}"
            );
        }
    }
}

#[test]
fn lines_of_the_documents_are_at_most_120_characters_long() {
    for name in DOCUMENTS {
        for (number, line) in document(name).lines().enumerate() {
            assert!(line.chars().count() <= 120, "{name}:{}", number + 1);
        }
    }
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

/// The names of all tests in `src` and `tests`.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    sources(&root().join("tests"), &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        for (at, _) in text
            .match_indices("#[test]")
            .chain(text.match_indices("#[tokio::test"))
        {
            let name = text[at..].split_once("fn ").map_or("", |(_, rest)| rest);
            names.insert(name.split('(').next().unwrap().to_owned());
        }
    }
    assert!(names.len() > 400, "found {} tests only", names.len());
    names
}

#[test]
fn every_test_that_the_architecture_names_exists_and_every_invariant_names_one() {
    let text = document("ARCHITECTURE.md");
    let known = tests();
    let is_sentence = |word: &&str| {
        word.matches('_').count() >= 3
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    for name in text.split('`').filter(is_sentence) {
        assert!(
            known.contains(name),
            "ARCHITECTURE.md names a test that is not there: {name}"
        );
    }
    let (_, invariants) = text.split_once("\n## Invariants\n").unwrap();
    let (invariants, _) = invariants.split_once("\n## ").unwrap();
    for number in 1..=12 {
        let (_, from) = invariants.split_once(&format!("\n{number}. ")).unwrap();
        let (own, _) = from
            .split_once(&format!("\n{}. ", number + 1))
            .unwrap_or((from, ""));
        assert!(
            own.split('`').any(|word| is_sentence(&word)),
            "invariant {number} names no test"
        );
    }
}

#[test]
fn every_place_that_the_architecture_names_exists() {
    let text = document("ARCHITECTURE.md");
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let is_path = |word: &&str| {
        (word.ends_with(".rs") || word.ends_with('/')) && !word.contains(' ') && word.len() > 1
    };
    for path in text.split('`').filter(is_path) {
        let found = [root().join(path), root().join("src").join(path)]
            .iter()
            .any(|p| p.exists());
        let below = Path::new(path);
        let inside = files.iter().any(|file| {
            file.ends_with(below) || file.ancestors().any(|folder| folder.ends_with(below))
        });
        assert!(
            found || inside,
            "ARCHITECTURE.md names {path}, which is not there"
        );
    }
}

#[test]
fn every_part_of_the_sources_is_in_the_architecture() {
    let text = document("ARCHITECTURE.md");
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let part = format!("\n- `{name}/` (floor ");
        assert!(
            !entry.path().is_dir() || text.contains(&part),
            "say what src/{name}/ owns"
        );
    }
}

#[test]
fn the_record_shown_is_one_as_the_program_writes_it() {
    let text = block("record");
    let record: Record = serde_json::from_str(&text).unwrap();
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    let read: serde_json::Value = serde_json::to_value(record).unwrap();
    assert_eq!(
        shown, read,
        "a member of the record shown is not one of records"
    );
}

#[test]
fn every_kind_of_error_is_in_the_table() {
    let source = std::fs::read_to_string(root().join("src/model/failure.rs")).unwrap();
    let (_, from) = source.split_once("pub enum ErrorKind {").unwrap();
    let (variants, _) = from.split_once("\n}").unwrap();
    let readme = document("README.md");
    let variants = variants
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','));
    for variant in variants.filter(|name| !name.starts_with("//")) {
        let mut kind = String::new();
        for c in variant.chars() {
            if c.is_uppercase() && !kind.is_empty() {
                kind.push('_');
            }
            kind.extend(c.to_lowercase());
        }
        assert!(
            readme.contains(&format!("`{kind}`")),
            "README does not explain {kind}"
        );
    }
}

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
fn every_command_that_readme_shows_is_run_by_a_test() {
    let readme = document("README.md");
    for (at, _) in readme.match_indices("\n```sh\n") {
        let before = readme[..at].lines().next_back().unwrap();
        let run = ["<!-- runs -->", "<!-- here -->", "<!-- terminal"];
        assert!(
            run.iter().any(|mark| before.starts_with(mark)),
            "not run by a test: {}",
            readme[at..].lines().nth(2).unwrap()
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
                dry(&format!("--exits {name}")).contains(" exits carry "),
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
