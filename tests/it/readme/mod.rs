//! The documents say what is so: flags, examples, tables and lists against the built program,
//! links and names of tests against the sources.
//!
//! A comment right above a code block of README or of a page of `docs/` says what is done with it:
//! `usage -h` and `the table` are compared, `file NAME` is read by `--dry-run`, `runs` is run by
//! bash beside a lab's files, `cron` is a line of a crontab, and the block of `terminal 1` runs
//! while that of `terminal 2` does. Here are the comparisons; `recipes` runs what is shown,
//! `architecture` holds that page to the sources.

mod architecture;
mod recipes;

use std::path::Path;
use std::process::{Command, Stdio};

use exitfetch::model::Record;

/// Documents for those who work on the program.
const FOR_DEVELOPERS: [&str; 3] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// Documents for those who use it: README and the pages that it leads to.
fn for_users() -> Vec<String> {
    let pages = std::fs::read_dir(root().join("docs")).unwrap();
    let names = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.ends_with(".md"))
        .map(|name| format!("docs/{name}"))
        .collect();
    names.sort();
    names.insert(0, "README.md".to_owned());
    names
}

/// The text of all of them.
fn manual() -> String {
    let texts = for_users().into_iter().map(|name| document(&name));
    texts.collect::<Vec<_>>().join("\n")
}

/// The blocks whose comment begins with `mark`: what follows in the comment, the text.
fn blocks(mark: &str) -> Vec<(String, String)> {
    let manual = manual();
    let mut found = Vec::new();
    for part in manual.split("\n<!-- ").skip(1) {
        let (comment, rest) = part.split_once(" -->\n```").unwrap();
        let (text, _) = rest.split_once("\n```").unwrap();
        // Behind the fence stands the language.
        let (_, text) = text.split_once('\n').unwrap();
        if let Some(more) = comment.strip_prefix(mark) {
            found.push((more.trim().to_owned(), text.to_owned() + "\n"));
        }
    }
    assert!(!found.is_empty(), "no block is marked {mark}");
    found
}

fn block(mark: &str) -> String {
    blocks(mark).remove(0).1
}

/// `exitfetch run --help` at a width that a page can show.
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
        "put the output of `COLUMNS=100 exitfetch run --help` there"
    );
}

#[test]
fn the_commands_that_readme_names_tell_their_exit_statuses() {
    assert!(document("README.md").contains("`probe`, `cat`, `urls` and `simulate` name theirs"));
    for command in ["probe", "cat", "urls", "simulate"] {
        let help = Command::new(env!("CARGO_BIN_EXE_exitfetch"))
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("\nExit status: 0 "), "{command}");
    }
}

#[test]
fn every_flag_of_run_is_in_the_text() {
    let text = manual().replace(&block("usage"), "");
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
    assert!(missing.is_empty(), "no page explains: {missing:?}");
}

fn all() -> Vec<String> {
    let mut names = for_users();
    names.extend(FOR_DEVELOPERS.map(str::to_owned));
    names
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
    for name in all() {
        let text = document(&name);
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            if target.starts_with("https://") {
                continue;
            }
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let file = match file {
                "" => root().join(&name),
                _ => root().join(&name).with_file_name(file),
            };
            assert!(file.exists(), "{name}: {target}");
            let other = if wanted.is_empty() {
                String::new()
            } else {
                std::fs::read_to_string(file).unwrap()
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
    for name in all() {
        for (number, line) in document(&name).lines().enumerate() {
            assert!(line.chars().count() <= 120, "{name}:{}", number + 1);
        }
    }
}

#[test]
fn readme_leads_to_every_page() {
    let readme = document("README.md");
    for page in for_users().iter().skip(1) {
        assert!(
            readme.contains(&format!("]({page}")),
            "README has no link to {page}"
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
    let page = document("docs/records.md");
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
            page.contains(&format!("`{kind}`")),
            "docs/records.md does not explain {kind}"
        );
    }
}
