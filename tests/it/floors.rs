//! The floors of `ARCHITECTURE.md`: imports in `src` go down only, and what one place alone may
//! name is named nowhere else. Read from the sources' text, so that nothing has to be run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Every part and its floor. Parts of one floor do not import each other.
const FLOORS: [(&str, u8); 13] = [
    ("model", 0),
    ("threads", 0),
    ("input", 1),
    ("wake", 1),
    ("schedule", 2),
    ("fetch", 2),
    ("store", 2),
    ("report", 2),
    ("lab", 2),
    ("engine", 3),
    ("simulate", 3),
    ("probe", 3),
    ("cli", 4),
];

fn floor(part: &str) -> Option<u8> {
    let known = FLOORS.iter().find(|(name, _)| *name == part);
    known.map(|(_, floor)| *floor)
}

/// A source file without its comments.
struct Source {
    /// Below `src`.
    path: PathBuf,
    /// `model`, `input`, …; `lib` and `main` are those two files.
    part: String,
    /// How many `super` lead from its top to the crate's root.
    depth: usize,
    text: String,
}

impl Source {
    fn new(path: &Path, text: &str) -> Source {
        let mut names: Vec<&str> = path
            .iter()
            .map(|name| name.to_str().unwrap().trim_end_matches(".rs"))
            .collect();
        if names.last() == Some(&"mod") {
            names.pop();
        }
        let code = |line: &&str| !line.trim_start().starts_with("//");
        Source {
            path: path.to_owned(),
            part: names[0].to_owned(),
            depth: names.len(),
            text: text.lines().filter(code).collect::<Vec<_>>().join("\n"),
        }
    }

    /// The parts that this file names in a path.
    fn imports(&self) -> BTreeSet<String> {
        let mut parts = BTreeSet::new();
        for root in ["crate::", "exitfetch::"] {
            for (at, _) in self.text.match_indices(root) {
                if self.text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                    continue;
                }
                parts.extend(first_names(&self.text[at + root.len()..]));
            }
        }
        let ups = "super::".repeat(self.depth);
        for (at, _) in self.text.match_indices(&ups) {
            parts.extend(first_names(&self.text[at + ups.len()..]));
        }
        parts.retain(|name| *name != self.part && floor(name).is_some());
        parts
    }
}

/// The first name of a path, or of each path in `{…}`.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else {
        return vec![name(rest)];
    };
    let (mut depth, mut names, mut item) = (1, Vec::new(), String::new());
    for c in group.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 1 => names.push(name(&std::mem::take(&mut item))),
            _ if depth == 0 => break,
            c => item.push(c),
        }
    }
    names.push(name(&item));
    names
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push(Source::new(path.strip_prefix(&root).unwrap(), &text));
            }
        }
    }
    assert!(found.len() > 50, "the sources are not where they were");
    found
}

/// What is wrong with the imports of `source`, one line each.
fn faults(source: &Source) -> Vec<String> {
    let path = source.path.display();
    let Some(own) = floor(&source.part) else {
        // `lib` declares the parts, `main` calls the command line.
        let allowed = |name: &String| source.part == "main" && name == "cli";
        return match (source.part.as_str(), source.imports()) {
            ("lib" | "main", parts) if parts.iter().all(allowed) => Vec::new(),
            ("lib" | "main", parts) => vec![format!("src/{path} names {parts:?}")],
            (part, _) => vec![format!("src/{path}: give {part} a floor in floors.rs")],
        };
    };
    let is_up = |part: &String| floor(part).is_none_or(|other| other >= own);
    let imports = source.imports().into_iter().filter(is_up);
    imports
        .map(|part| format!("src/{path} (floor {own}) imports {part}"))
        .collect()
}

#[test]
fn imports_go_down_only() {
    let faults: Vec<String> = sources().iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn an_import_that_goes_up_or_sideways_is_found_however_it_is_written() {
    let wrong = |path: &str, text: &str| !faults(&Source::new(Path::new(path), text)).is_empty();
    assert!(wrong("input/urls.rs", "use crate::schedule::Work;"));
    assert!(wrong(
        "store/mod.rs",
        "use crate::{model::Job, report::{Tally, Progress}};"
    ));
    assert!(wrong(
        "store/mod.rs",
        "use crate::{model::{Job, Exit}, lab::Lab};"
    ));
    assert!(wrong("model/job.rs", "fn f() -> crate::engine::Plan {"));
    assert!(wrong(
        "fetch/tests/body.rs",
        "use super::super::super::lab::Lab;"
    ));
    assert!(wrong("fetch/mod.rs", "use super::schedule::Rules;"));
    assert!(wrong("new/mod.rs", "fn f() {}"));
    assert!(wrong("lib.rs", "use crate::cli;"));
    assert!(!wrong(
        "store/mod.rs",
        "// see crate::engine\nuse crate::model::Job;"
    ));
    assert!(!wrong(
        "engine/mod.rs",
        "use crate::{fetch::Conns, schedule::Lease};"
    ));
    assert!(!wrong(
        "cli/lab.rs",
        "use super::lab::X; use crate::lab::Lab;"
    ));
    assert!(!wrong("main.rs", "exitfetch::cli::main()"));
}

/// Asserts that files which name one of `names` lie below one of `places`.
#[track_caller]
fn only(places: &[&str], names: &[&str]) {
    for source in sources() {
        let named = names.iter().find(|name| source.text.contains(**name));
        let allowed = places.iter().any(|place| source.path.starts_with(place));
        if let (Some(name), false) = (named, allowed) {
            panic!("src/{} names {name}", source.path.display());
        }
    }
}

#[test]
fn only_fetch_names_hyper_and_only_progress_names_indicatif() {
    only(&["fetch"], &["hyper::", "hyper_util::"]);
    only(&["report/progress"], &["indicatif::"]);
    only(&["input/download.rs"], &["reqwest::"]);
    only(&["cli"], &["clap::", "clap_complete::", "clap_mangen::"]);
}

#[test]
fn only_the_engine_and_the_lab_read_the_clock() {
    // clippy.toml bans these calls; this holds the places where the ban is lifted.
    let readings = ["Instant::now", "SystemTime::now", "disallowed_methods"];
    let tests_alone = ["fetch/testing.rs", "store/mod.rs"];
    only(
        &[&["engine/mod.rs", "lab"], &tests_alone[..]].concat(),
        &readings,
    );
}

#[test]
fn the_scheduler_and_the_model_do_no_io_and_draw_no_randomness_of_their_own() {
    let forbidden = [
        "std::fs",
        "std::net",
        "std::io",
        "std::env",
        "std::thread",
        "std::process",
        "tokio",
        "::now()",
        ".elapsed(",
        "rand::rng(",
        "rand::random",
        "ThreadRng",
        "from_os_rng",
        "SysRng",
        "RandomState",
        "println!",
        "eprintln!",
        "tracing::",
    ];
    for source in sources() {
        // The clock itself, which only the engine and the lab make.
        let is_clock = source.path.ends_with("model/time.rs");
        let pure = !is_clock && ["schedule", "model"].contains(&source.part.as_str());
        let named = forbidden.iter().find(|name| source.text.contains(**name));
        if let (true, Some(name)) = (pure, named) {
            panic!("src/{} names {name}", source.path.display());
        }
    }
}
