use super::*;
use crate::store::temp::Kind;
use std::fs::OpenOptions;
use std::path::Path;

fn bodies(dir: &Path) -> Bodies {
    let files = TempFiles::open(dir).unwrap().keeping(Kind::Named);
    Bodies::new(files, Space::new(dir, 0))
}

fn temps(dir: &Path) -> usize {
    std::fs::read_dir(dir.join(".tmp")).unwrap().count()
}

#[tokio::test]
async fn a_small_body_touches_the_disk_only_when_it_is_committed() {
    let dir = tempfile::tempdir().unwrap();
    let bodies = bodies(dir.path());
    let mut body = bodies.create();
    body.write(Bytes::from_static(b"te")).await.unwrap();
    body.write(Bytes::from_static(b"st")).await.unwrap();
    assert_eq!(temps(dir.path()), 0);
    let finished = body.finish().await.unwrap();
    assert_eq!(temps(dir.path()), 0);
    assert_eq!(finished.bytes, 4);
    assert!(finished.in_memory() >= 4);
    assert_eq!(
        finished.commit("bodies/9f/86/a.txt").unwrap(),
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    );
    let file = dir.path().join("bodies/9f/86/a.txt");
    assert_eq!(std::fs::read(file).unwrap(), b"test");
    assert_eq!(temps(dir.path()), 0);
}

#[tokio::test]
async fn a_large_body_streams_with_bounded_memory_and_arrives_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let bodies = bodies(dir.path());
    let mut body = bodies.create();
    let mut whole = Vec::new();
    for n in 0..200u32 {
        // Both kinds of pieces: those that are joined and those that are kept.
        let chunk = vec![n as u8; 7_000 + 313 * n as usize];
        whole.extend_from_slice(&chunk);
        body.write(chunk.into()).await.unwrap();
        assert!(body.waiting <= LARGE && body.buffer.capacity() <= 2 * LARGE);
    }
    let finished = body.finish().await.unwrap();
    assert_eq!(finished.bytes, whole.len() as u64);
    assert_eq!(finished.in_memory(), 0);
    let sha256 = finished.commit("bodies/x").unwrap();
    assert_eq!(sha256, hex(&Sha256::digest(&whole)));
    assert!(std::fs::read(dir.path().join("bodies/x")).unwrap() == whole);
}

#[tokio::test]
async fn a_body_that_is_dropped_leaves_no_file_whatever_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let bodies = bodies(dir.path());
    drop(bodies.create());
    let mut large = bodies.create();
    large.write(vec![1; 300_000].into()).await.unwrap();
    large.sink = Some(large.idle().await.unwrap());
    assert_eq!(temps(dir.path()), 1);
    drop(large);
    drop(bodies.create().finish().await.unwrap());
    assert_eq!(temps(dir.path()), 0);
    assert!(!dir.path().join("bodies").exists());
}

#[tokio::test]
async fn an_empty_body_is_an_empty_file() {
    let dir = tempfile::tempdir().unwrap();
    let finished = bodies(dir.path()).create().finish().await.unwrap();
    assert_eq!(finished.bytes, 0);
    finished.commit("bodies/empty").unwrap();
    assert_eq!(std::fs::read(dir.path().join("bodies/empty")).unwrap(), b"");
}

#[test]
fn stale_temporary_files_go_and_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let temp = dir.path().join(".tmp");
    std::fs::create_dir(&temp).unwrap();
    for name in ["0.part", "17.part", "notes.txt", "x.part"] {
        std::fs::write(temp.join(name), "x").unwrap();
    }
    let bodies = bodies(dir.path());
    assert!(!temp.join("0.part").exists() && !temp.join("17.part").exists());
    assert!(temp.join("notes.txt").exists() && temp.join("x.part").exists());
    bodies.close();
    assert!(temp.exists(), "what is not ours stays");
}

#[tokio::test]
async fn a_commit_that_fails_names_the_file_and_leaves_no_temporary_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("bodies"), "in the way").unwrap();
    let bodies = bodies(dir.path());
    let error = bodies.create().finish().await.unwrap().commit("bodies/a/b");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("bodies/a"), "{error}");
    assert_eq!(temps(dir.path()), 0);
    assert!(bodies.probe().is_err());
}

#[tokio::test]
async fn a_full_disk_ends_the_body_with_an_error_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let bodies = bodies(dir.path());
    let mut body = bodies.create();
    // `/dev/full` takes no byte: the same answer as a full disk gives.
    std::os::unix::fs::symlink("/dev/full", dir.path().join(".tmp/full")).unwrap();
    let full = OpenOptions::new()
        .write(true)
        .open(dir.path().join(".tmp/full"))
        .unwrap();
    let file = TempFile::named(full, dir.path().join(".tmp/full"));
    body.sink = Some(Sink {
        file: Some(file),
        ..Sink::default()
    });
    body.write(vec![0; 200_000].into()).await.unwrap();
    let error = body.finish().await.unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(error.to_string().contains(".tmp/full"), "{error}");
}
