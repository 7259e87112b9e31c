use serde_json::json;
use sha2::{Digest, Sha256};

use super::*;
use crate::model::job::hex;
use crate::model::record::RecordError;
use crate::model::{Blame, ErrorKind, Job, Refusal};
use crate::store::tests::ok_record;
use crate::store::{lock, test_job};

pub(super) fn open(dir: &Path) -> Journal {
    open_with(dir, FailedBefore::TryAgain)
}

pub(super) fn open_with(dir: &Path, failed: FailedBefore) -> Journal {
    let file = lock::open(&dir.join("results.jsonl")).unwrap();
    Journal::open(dir, file, failed).unwrap()
}

pub(super) fn failed_record(id: &str, line: u64) -> Record {
    Record {
        outcome: Outcome::Failed,
        file: None,
        offset: None,
        length: None,
        bytes: None,
        error: Some(RecordError {
            kind: ErrorKind::Status,
            blame: Blame::Origin,
            detail: "404".into(),
        }),
        ..ok_record(id, line)
    }
}

pub(super) fn entry(id: &str, line: u64) -> Job {
    Job {
        line,
        ..test_job(id)
    }
}

/// Puts the body where the record says.
pub(super) fn store_body(dir: &Path, record: &Record) {
    let path = dir.join(record.file.as_deref().unwrap());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "abc").unwrap();
}

pub(super) fn records(dir: &Path) -> Vec<Record> {
    std::fs::read_to_string(dir.join("results.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn what_is_ok_and_stored_is_done_and_what_is_not_is_fetched_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    for id in ["whole", "missing", "short"] {
        assert_eq!(journal.decide(&test_job(id)).unwrap(), Decision::Fetch);
        store_body(dir.path(), &ok_record(id, 1));
        journal.settle(&ok_record(id, 1)).unwrap();
    }
    journal.settle(&failed_record("failed", 4)).unwrap();
    journal.flush().unwrap();
    drop(journal);
    std::fs::remove_file(dir.path().join("bodies/missing")).unwrap();
    std::fs::write(dir.path().join("bodies/short"), "ab").unwrap();
    let mut journal = open(dir.path());
    assert_eq!(journal.loaded().records, 4);
    let mut decide = |id| journal.decide(&test_job(id)).unwrap();
    assert!(matches!(decide("whole"), Decision::Done(r) if r.id == "whole"));
    assert_eq!(decide("missing"), Decision::Fetch);
    assert_eq!(decide("short"), Decision::Fetch);
    assert_eq!(decide("failed"), Decision::Fetch);
    assert_eq!(decide("new"), Decision::Fetch);
}

#[test]
fn a_body_fetched_again_but_not_recorded_does_not_pass_for_the_recorded_one() {
    let dir = tempfile::tempdir().unwrap();
    let sha256 = |content: &str| Some(hex(&Sha256::digest(content)));
    let stored = Record {
        sha256: sha256("abc"),
        ..ok_record("a", 1)
    };
    let again = |content: &str, known: &Record| {
        let mut journal = open(dir.path());
        let decision = journal.decide(&test_job("a")).unwrap();
        if decision == Decision::Fetch {
            store_body(dir.path(), known);
            std::fs::write(dir.path().join("bodies/a"), content).unwrap();
        }
        (journal, decision)
    };
    let (mut journal, _) = again("abc", &stored);
    journal.settle(&stored).unwrap();
    journal.end_replacing(Rest::Nothing).unwrap();
    drop(journal);
    std::fs::write(dir.path().join("bodies/a"), "a").unwrap();
    // Killed once the file is there.
    let (killed, decision) = again("new", &stored);
    assert_eq!(decision, Decision::Fetch);
    drop(killed);
    let (mut journal, decision) = again("new", &stored);
    assert_eq!(
        decision,
        Decision::Fetch,
        "the size is right, the digest not"
    );
    let recorded = Record {
        sha256: sha256("new"),
        ..stored
    };
    journal.settle(&recorded).unwrap();
    journal.end_replacing(Rest::Nothing).unwrap();
    drop(journal);
    let (_journal, decision) = again("new", &recorded);
    assert!(matches!(decision, Decision::Done(_)));
}

#[test]
fn a_refresh_settles_the_doubt_about_its_own_list_only() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    for id in ["a", "b"] {
        store_body(dir.path(), &ok_record(id, 1));
        journal.settle(&ok_record(id, 1)).unwrap();
    }
    journal.begin_refresh().unwrap();
    journal.flush().unwrap();
    // Killed.
    drop(journal);
    let refresh = |ids: &[&str]| {
        let mut journal = open(dir.path());
        journal.begin_refresh().unwrap();
        for id in ids {
            journal.decide(&test_job(id)).unwrap();
        }
        journal.end_replacing(Rest::Nothing).unwrap();
        dir.path().join(".refresh").exists()
    };
    assert!(refresh(&["b", "new"]), "a was not looked at");
    assert!(!refresh(&["a", "b"]));
}

#[test]
fn failed_ones_can_be_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.settle(&failed_record("f", 1)).unwrap();
    journal.flush().unwrap();
    drop(journal);
    let mut journal = open_with(dir.path(), FailedBefore::LeaveAlone);
    assert!(matches!(
        journal.decide(&entry("f", 1)).unwrap(),
        Decision::Done(_)
    ));
    assert!(matches!(
        journal.decide(&entry("f", 2)).unwrap(),
        Decision::Twin(_)
    ));
}

#[test]
fn an_entry_listed_again_waits_and_gets_a_record_of_its_own_without_cost() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    assert_eq!(journal.decide(&entry("a", 1)).unwrap(), Decision::Fetch);
    let mut second = entry("a", 2);
    second.extra = Some(Box::new(
        json!({"note": "two"}).as_object().unwrap().clone(),
    ));
    assert_eq!(journal.decide(&second).unwrap(), Decision::Wait);
    store_body(dir.path(), &ok_record("a", 1));
    let twins = journal.settle(&ok_record("a", 1)).unwrap();
    assert_eq!(twins.len(), 1);
    assert_eq!((twins[0].line, twins[0].attempts), (2, 0));
    assert_eq!(twins[0].extra.as_ref().unwrap()["note"], "two");
    assert_eq!(twins[0].file.as_deref(), Some("bodies/a"));
    // A third comes after the end of the first.
    let Decision::Twin(third) = journal.decide(&entry("a", 3)).unwrap() else {
        panic!("the job is done");
    };
    journal.append(&third).unwrap();
    journal.flush().unwrap();
    let lines: Vec<u64> = records(dir.path()).iter().map(|r| r.line).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[test]
fn a_job_that_failed_in_this_run_is_not_tried_again_for_its_next_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.decide(&entry("f", 1)).unwrap();
    journal.settle(&failed_record("f", 1)).unwrap();
    let Decision::Twin(twin) = journal.decide(&entry("f", 2)).unwrap() else {
        panic!("it has ended");
    };
    assert_eq!((twin.line, twin.outcome), (2, Outcome::Failed));
}

#[test]
fn a_list_with_one_more_entry_of_a_done_job_gets_one_more_record() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    store_body(dir.path(), &ok_record("a", 1));
    journal.settle(&ok_record("a", 1)).unwrap();
    journal.append(&ok_record("a", 2)).unwrap();
    journal.flush().unwrap();
    drop(journal);
    let mut journal = open(dir.path());
    let mut decide = |line| journal.decide(&entry("a", line)).unwrap();
    assert!(matches!(decide(1), Decision::Done(_)));
    assert!(matches!(decide(2), Decision::Done(_)));
    assert!(matches!(decide(3), Decision::Twin(r) if r.line == 3));
}

#[test]
fn an_id_of_another_request_is_refused_while_and_after_the_first_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    let first = entry("a", 1);
    let mut other_url = entry("a", 2);
    other_url.url.set_path("elsewhere");
    let mut other_body = entry("a", 3);
    other_body.body = Some(bytes::Bytes::from_static(b"x"));
    journal.decide(&first).unwrap();
    let refused = Decision::DuplicateId { line: 1 };
    assert_eq!(journal.decide(&other_url).unwrap(), refused);
    store_body(dir.path(), &ok_record("a", 1));
    journal.settle(&ok_record("a", 1)).unwrap();
    assert_eq!(journal.decide(&other_url).unwrap(), refused);
    assert_eq!(journal.decide(&other_body).unwrap(), refused);
    journal.flush().unwrap();
    drop(journal);
    let mut journal = open(dir.path());
    assert_eq!(journal.decide(&other_url).unwrap(), refused);
    assert!(matches!(journal.decide(&first).unwrap(), Decision::Done(_)));
    assert_eq!(journal.decide(&other_body).unwrap(), refused);
}

#[test]
fn the_url_of_an_id_that_failed_in_an_earlier_run_may_be_corrected() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.settle(&failed_record("a", 1)).unwrap();
    journal.flush().unwrap();
    drop(journal);
    let mut corrected = entry("a", 1);
    corrected.url.set_path("right");
    assert_eq!(
        open(dir.path()).decide(&corrected).unwrap(),
        Decision::Fetch
    );
}

#[test]
fn a_refusal_never_hides_what_is_known_of_its_id_and_is_recorded_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    store_body(dir.path(), &ok_record("a", 1));
    journal.settle(&ok_record("a", 1)).unwrap();
    let refused = Record {
        outcome: Outcome::Refused,
        ..failed_record("a", 2)
    };
    journal.append(&refused).unwrap();
    journal.flush().unwrap();
    drop(journal);
    let mut journal = open(dir.path());
    assert!(matches!(
        journal.decide(&entry("a", 1)).unwrap(),
        Decision::Done(_)
    ));
    let refusal = |line| Refusal {
        line,
        id: "a".into(),
        url: "x".into(),
        kind: ErrorKind::DuplicateId,
        reason: String::new(),
        extra: None,
    };
    assert!(journal.is_refused_already(&refusal(2)));
    assert!(!journal.is_refused_already(&refusal(3)));
}

#[test]
fn a_file_outside_the_directory_is_never_taken_for_a_stored_body() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(dir.path().join("abc"), "abc").unwrap();
    let journal = open(&out);
    let outside = dir.path().join("abc").to_str().unwrap().to_owned();
    for file in ["../abc", &outside, "bodies/../../abc"] {
        let record = Record {
            file: Some(file.into()),
            ..ok_record("a", 1)
        };
        assert!(!journal.is_stored(&record), "{file}");
    }
}

#[test]
fn a_journal_cut_at_any_byte_is_read_up_to_its_last_whole_record() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let mut journal = open(dir.path());
    let mut ends = vec![0];
    for id in ["one", "two", "zwölf"] {
        journal.append(&ok_record(id, 1)).unwrap();
        journal.flush().unwrap();
        ends.push(journal.written);
    }
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let mut journal = open(dir.path());
        let kept = ends.iter().filter(|end| **end <= cut as u64).count() - 1;
        assert_eq!(journal.loaded().records, kept as u64, "cut at {cut}");
        assert_eq!(journal.loaded().torn_bytes, cut as u64 - ends[kept]);
        // What comes next is a line of its own.
        journal.append(&ok_record("next", 9)).unwrap();
        journal.flush().unwrap();
        assert_eq!(records(dir.path()).len(), kept + 1);
    }
}

#[test]
fn malformed_lines_are_counted_in_the_middle_and_cut_off_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let line = |id| serde_json::to_string(&ok_record(id, 1)).unwrap();
    let text = format!("{}\nrubbish\n\n{}\n{{\"id\":\"half\n", line("a"), line("b"));
    std::fs::write(&path, text).unwrap();
    let journal = open(dir.path());
    let loaded = journal.loaded();
    assert_eq!(
        (loaded.records, loaded.malformed, loaded.torn_bytes),
        (2, 2, 12)
    );
    assert_eq!(journal.lookup("b").unwrap().unwrap().record.id, "b");
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("}\n"));
}

#[test]
fn a_file_of_somebody_else_is_refused_and_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.jsonl");
    let theirs = "{\"score\": 1}\n{\"score\": 2}\n";
    std::fs::write(&path, theirs).unwrap();
    let file = lock::open(&path).unwrap();
    let error = Journal::open(dir.path(), file, FailedBefore::TryAgain).unwrap_err();
    assert!(format!("{error:#}").contains("no records"), "{error:#}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
}

#[test]
fn records_longer_than_any_block_are_found_again_before_and_after_they_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    let long = Record {
        url: "u".repeat(10_000),
        ..ok_record("long", 1)
    };
    journal.append(&ok_record("short", 1)).unwrap();
    journal.append(&long).unwrap();
    assert_eq!(journal.lookup("long").unwrap().unwrap().record, long);
    journal.flush().unwrap();
    assert_eq!(journal.lookup("long").unwrap().unwrap().record, long);
    assert_eq!(journal.lookup("short").unwrap().unwrap().record.id, "short");
    assert_eq!(journal.lookup("other").unwrap(), None);
}

#[test]
fn a_journal_that_cannot_be_written_keeps_its_records_and_no_half_line() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(dir.path());
    journal.append(&ok_record("a", 1)).unwrap();
    journal.flush().unwrap();
    let good = std::mem::replace(
        &mut journal.file,
        std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap(),
    );
    journal.append(&ok_record("b", 2)).unwrap();
    let error = journal.flush().unwrap_err();
    assert!(
        error.is_full() && error.to_string().contains("results.jsonl"),
        "{error}"
    );
    journal.file = good;
    journal.flush().unwrap();
    assert_eq!(records(dir.path()).len(), 2);
}
