//! `ARCHITECTURE.md` names tests, files and parts: each is there, and no part is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{document, root};

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

/// The names in a text of the map: `scope`, `handshake/`.
fn names(text: &str) -> BTreeSet<&str> {
    let is_name = |word: &&str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let quoted = text.split('`').skip(1).step_by(2);
    quoted
        .map(|word| word.trim_end_matches('/'))
        .filter(is_name)
        .collect()
}

/// Files and folders right in a part, by name; not those for tests.
fn modules(part: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(part).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        if !["mod", "tests", "testing"].contains(&name) && !name.ends_with("_tests") {
            names.insert(name.to_owned());
        }
    }
    names
}

#[test]
fn every_part_of_the_sources_and_every_file_in_it_is_on_the_map() {
    let text = document("ARCHITECTURE.md");
    let (_, map) = text.split_once("\n## The modules\n").unwrap();
    let (map, _) = map.split_once("\n## ").unwrap();
    for entry in std::fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        let part = path.file_name().unwrap().to_str().unwrap();
        let (_, own) = map
            .split_once(&format!("\n- `{part}/` (floor "))
            .unwrap_or_else(|| panic!("say what src/{part}/ owns"));
        let mut own = own.split("\n- ").next().unwrap().to_owned();
        if let Some((_, inside)) = map.split_once(&format!("\nInside `{part}/`:\n")) {
            own += inside.split("\nInside ").next().unwrap();
        }
        let told = names(&own);
        let missing: Vec<_> = modules(&path)
            .into_iter()
            .filter(|name| !told.contains(name.as_str()))
            .collect();
        assert!(
            missing.is_empty(),
            "not on the map of src/{part}/: {missing:?}"
        );
    }
}

#[test]
fn every_name_on_the_map_is_a_file_or_a_verb() {
    let text = document("ARCHITECTURE.md");
    let (_, map) = text.split_once("\n## The modules\n").unwrap();
    let (map, _) = map.split_once("\n## ").unwrap();
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    let known: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| {
            file.iter()
                .map(|name| name.to_str().unwrap().trim_end_matches(".rs"))
        })
        .collect();
    let verbs = ["push", "next", "heard", "finish", "abandon"];
    for name in names(map) {
        assert!(
            known.contains(name) || verbs.contains(&name),
            "the map names {name}, which is not there"
        );
    }
}
