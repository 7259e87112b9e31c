use super::*;
use crate::model::{Outcome, Record};

pub(super) fn options() -> OpenOptions {
    OpenOptions {
        fresh: false,
        failed_before: FailedBefore::TryAgain,
        min_free: 0,
        name_template: None,
        warc: None,
        clock: test_clock(),
    }
}

/// An ok record of `id` whose body is the three bytes `abc` in `bodies/ID`.
pub(in crate::store) fn ok_record(id: &str, line: u64) -> Record {
    let url = test_job(id).url.to_string();
    Record {
        id: id.into(),
        line,
        url,
        status: Some(200),
        file: Some(format!("bodies/{id}")),
        bytes: Some(3),
        wire_bytes: Some(3),
        exit: Some("e".into()),
        attempts: 1,
        ..Record::empty(Outcome::Ok, "2026-01-01T00:00:00Z".into())
    }
}

#[test]
fn a_directory_serves_one_run_at_a_time_and_holds_nothing_stray_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("deep/out");
    let store = Store::open(&out, options()).unwrap();
    let error = Store::open(&out, options()).unwrap_err().to_string();
    assert!(error.contains("deep/out"), "{error}");
    store.close().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["bodies", "results.jsonl"]);
    assert_eq!(std::fs::read_dir(out.join("bodies")).unwrap().count(), 0);
    Store::open(&out, options()).unwrap();
}

#[test]
fn a_file_in_the_way_and_a_full_disk_are_named_before_anything_is_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let error = format!("{:#}", Store::open(&file, options()).unwrap_err());
    assert!(error.contains("is a file"), "{error}");
    let greedy = OpenOptions {
        min_free: u64::MAX,
        ..options()
    };
    let error = format!(
        "{:#}",
        Store::open(&dir.path().join("out"), greedy).unwrap_err()
    );
    assert!(error.contains("--min-free"), "{error}");
}

#[test]
fn a_directory_that_cannot_be_used_is_left_without_our_temporary_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bodies"), "in the way").unwrap();
    let error = format!("{:#}", Store::open(dir.path(), options()).unwrap_err());
    assert!(error.contains("bodies"), "{error}");
    assert!(!dir.path().join(".tmp").exists());
}

#[tokio::test]
async fn fresh_fetches_everything_again_and_keeps_the_old_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path(), options()).unwrap();
    let mut body = store.bodies.create();
    body.write("abc".into()).await.unwrap();
    body.finish().await.unwrap().commit("bodies/a").unwrap();
    store.journal.append(&ok_record("a", 1)).unwrap();
    store.close().unwrap();
    let mut store = Store::open(dir.path(), options()).unwrap();
    assert!(matches!(
        store.journal.decide(&test_job("a")),
        Ok(Decision::Done(_))
    ));
    store.journal.begin_refresh().unwrap();
    store.close().unwrap();
    let mark = dir.path().join(".refresh");
    assert!(mark.exists(), "as a killed refresh leaves it");
    let fresh = OpenOptions {
        fresh: true,
        ..options()
    };
    let mut store = Store::open(dir.path(), fresh).unwrap();
    assert!(!mark.exists(), "no record is left to doubt");
    assert_eq!(store.backup, Some(dir.path().join("results.1.jsonl")));
    assert_eq!(
        store.journal.decide(&test_job("a")).unwrap(),
        Decision::Fetch
    );
}
