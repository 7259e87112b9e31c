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
