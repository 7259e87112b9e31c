//! A journal that anything was done to: read as far as it is good, never beyond.

use std::io::Write;

use proptest::prelude::*;

use super::tests::{failed_record, open};
use super::*;
use crate::store::lock;
use crate::store::tests::ok_record;

/// A journal of seven records.
fn text() -> Vec<u8> {
    let mut text = String::new();
    for n in 1..=7 {
        let record = match n % 3 {
            0 => failed_record(&format!("failed-{n}"), n),
            _ => ok_record(&"n".repeat(n as usize * 9), n),
        };
        text += &serde_json::to_string(&record).unwrap();
        text.push('\n');
    }
    text.into_bytes()
}

/// Bytes that JSON gives a meaning to more often than noise does.
fn telling() -> impl Strategy<Value = u8> {
    prop_oneof![
        prop::sample::select(b"\n\n\"\"{}[]:,\\u0-9e.\xff\0 ".to_vec()),
        any::<u8>(),
    ]
}

/// Opens it, or is told that it is somebody else's and finds it as it was.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    std::fs::write(&path, bytes).unwrap();
    let file = lock::open(&path).unwrap();
    let Ok(mut journal) = Journal::open(dir.path(), file, FailedBefore::TryAgain) else {
        prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
        return Ok(());
    };
    let loaded = journal.loaded();
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    prop_assert!(loaded.records + loaded.malformed <= lines);
    let kept = bytes.len() - usize::try_from(loaded.torn_bytes).unwrap();
    prop_assert!(kept == 0 || bytes[kept - 1] == b'\n');
    prop_assert_eq!(std::fs::read(&path).unwrap(), &bytes[..kept]);
    // What comes next is a line of its own, and is found again.
    journal.append(&ok_record("next", 99)).unwrap();
    journal.flush().unwrap();
    drop(journal);
    let again = open(dir.path());
    let wanted = Loaded {
        records: loaded.records + 1,
        torn_bytes: 0,
        ..loaded
    };
    prop_assert_eq!(again.loaded(), wanted);
    prop_assert_eq!(again.lookup("next").unwrap().unwrap().record.line, 99);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_journal_with_any_bytes_changed_is_read_as_far_as_it_is_good(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(telling(), 0..6), 0usize..40),
            1..5,
        ),
    ) {
        let mut bytes = text();
        for (at, new, gone) in changes {
            let at = at.index(bytes.len() + 1);
            let end = bytes.len().min(at + gone);
            bytes.splice(at..end, new);
        }
        check(&bytes)?;
    }

    #[test]
    fn noise_is_no_journal(noise in prop::collection::vec(telling(), 0..400)) {
        check(&noise)?;
        check(&[text(), noise].concat())?;
    }
}

/// Far larger than a block, with and without records around it.
#[test]
fn a_line_of_many_megabytes_is_passed_over_and_costs_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(dir.path().join("results.jsonl")).unwrap();
    file.write_all(&text()).unwrap();
    let long = format!("{{\"id\": \"{}\n", "x".repeat(40 << 20));
    file.write_all(long.as_bytes()).unwrap();
    file.write_all(&text()).unwrap();
    let loaded = open(dir.path()).loaded();
    assert_eq!(
        (loaded.records, loaded.malformed, loaded.torn_bytes),
        (14, 1, 0)
    );
    file.write_all(long.as_bytes()).unwrap();
    let journal = open(dir.path());
    assert_eq!(journal.loaded().torn_bytes, long.len() as u64);
    drop(journal);
    let kept = std::fs::metadata(dir.path().join("results.jsonl"))
        .unwrap()
        .len();
    assert_eq!(kept, (2 * text().len() + long.len()) as u64);
}
