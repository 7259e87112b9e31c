use std::io::Write;

use super::*;

/// `line:url` of jobs, `line!` of refusals.
fn fates(entries: &[Entry]) -> Vec<String> {
    let fate = |entry: &Entry| match entry {
        Entry::Job(job) => format!("{}:{}", job.line, job.url),
        Entry::Refused(refusal) => format!("{}!", refusal.line),
    };
    entries.iter().map(fate).collect()
}

async fn all(mut urls: Urls) -> anyhow::Result<Batch> {
    let mut entries = Vec::new();
    while let Some(batch) = urls.next().await {
        entries.extend(batch?);
    }
    Ok(entries)
}

/// A named pipe in `dir`.
fn pipe(dir: &std::path::Path) -> std::path::PathBuf {
    let path = dir.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}

async fn fixture(name: &str) -> Vec<String> {
    let path = format!("{}/fixtures/lists/{name}", env!("CARGO_MANIFEST_DIR"));
    let urls = open(ListSource::File(path.into()), None).await.unwrap();
    fates(&all(urls).await.unwrap())
}

#[tokio::test]
async fn a_list_saved_on_windows_is_read_as_it_is_meant() {
    assert_eq!(
        fixture("windows.txt").await,
        [
            "1:http://o.test/1",
            "2:http://o.test/2",
            "4:http://o.test/4"
        ]
    );
    assert_eq!(fixture("windows.csv").await, ["2:http://o.test/1"]);
}

#[tokio::test]
async fn blanks_comments_and_notes_of_a_text_list_have_their_fates() {
    assert_eq!(
        fixture("notes.txt").await,
        [
            "3:http://o.test/1",
            "4!",
            "5:http://o.test/3",
            "6!",
            "8!",
            "9!"
        ]
    );
}

#[tokio::test]
async fn odd_urls_are_refused_alone() {
    assert_eq!(
        fixture("odd-urls.txt").await,
        [
            "1:http://o.test/good",
            "2!",
            "3:http://xn--bcher-kva.test/",
            "4!",
            "5!",
            "6!",
            "7!",
            "8!",
            "9:http://o.test/%7B%7D|^%60",
            "10:http://o.test/last"
        ]
    );
}

#[tokio::test]
async fn csv_and_jsonl_rows_keep_their_lines() {
    let expected = [
        "2:http://o.test/1",
        "3:http://o.test/2",
        "6!",
        "8:http://o.test/4",
    ];
    assert_eq!(fixture("urls.csv").await, expected);
    let expected = ["1:http://o.test/1", "3:http://o.test/2", "4!", "5!", "6!"];
    assert_eq!(fixture("urls.jsonl").await, expected);
    assert_eq!(fixture("urls.txt.gz").await, ["1:http://o.test/1"]);
}

#[tokio::test]
async fn a_list_that_cannot_be_used_is_an_error_before_its_first_entry() {
    let utf16: Vec<u8> = "http://o.test/"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (suffix, list) in [(".txt", &utf16[..]), (".csv", b"link\n"), (".gz", b"text")] {
        let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
        file.write_all(list).unwrap();
        let source = ListSource::File(file.path().to_owned());
        assert!(open(source, None).await.is_err(), "{suffix}");
    }
    assert!(
        open(ListSource::File("/nowhere".into()), None)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn an_empty_list_has_no_entries() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let urls = open(ListSource::File(file.path().to_owned()), None)
        .await
        .unwrap();
    assert!(all(urls).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_longer_than_the_channel_comes_whole_and_in_order() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let count = 3 * BATCH * BATCHES + 7;
    for n in 1..=count {
        writeln!(file, "http://o.test/{n}").unwrap();
    }
    let urls = open(ListSource::File(file.path().to_owned()), None)
        .await
        .unwrap();
    let entries = all(urls).await.unwrap();
    let expected: Vec<_> = (1..=count)
        .map(|n| format!("{n}:http://o.test/{n}"))
        .collect();
    assert_eq!(fates(&entries), expected);
}

#[tokio::test]
async fn a_list_that_breaks_off_gives_its_entries_and_then_an_error() {
    use async_compression::tokio::write::GzipEncoder;
    use tokio::io::AsyncWriteExt;
    let mut encoder = GzipEncoder::new(Vec::new());
    let lines: String = (0..50_000)
        .map(|n| format!("http://o.test/{n}\n"))
        .collect();
    encoder.write_all(lines.as_bytes()).await.unwrap();
    encoder.shutdown().await.unwrap();
    let whole = encoder.into_inner();
    let mut file = tempfile::Builder::new().suffix(".gz").tempfile().unwrap();
    file.write_all(&whole[..whole.len() / 2]).unwrap();
    let source = ListSource::File(file.path().to_owned());
    let mut urls = open(source, None).await.unwrap();
    let mut count = 0;
    let error = loop {
        match urls.next().await {
            Some(Ok(batch)) => count += batch.len(),
            Some(Err(error)) => break error,
            None => panic!("the break passed for the end"),
        }
    };
    assert!(count > 1000 && count < 50_000, "{count}");
    assert!(error.to_string().contains("to its end"), "{error}");
    assert!(urls.next().await.is_none());
}

#[tokio::test]
async fn a_line_of_a_pipe_is_an_entry_while_the_writer_still_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = pipe(dir.path());
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut pipe = std::fs::File::options().write(true).open(path).unwrap();
            pipe.write_all(b"http://o.test/1\nhttp://o.te").unwrap();
            wait.recv().unwrap();
            pipe.write_all(b"st/2").unwrap();
        }
    });
    let mut urls = open(ListSource::File(path), None).await.unwrap();
    let first = urls.next().await.unwrap().unwrap();
    assert_eq!(fates(&first), ["1:http://o.test/1"]);
    go.send(()).unwrap();
    assert_eq!(fates(&all(urls).await.unwrap()), ["2:http://o.test/2"]);
    writer.join().unwrap();
}

#[tokio::test]
async fn dropping_the_list_stops_its_thread_at_a_silent_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let path = pipe(dir.path());
    let held = std::thread::spawn({
        let path = path.clone();
        move || {
            let mut pipe = std::fs::File::options().write(true).open(path).unwrap();
            pipe.write_all(b"http://o.test/1\n").unwrap();
            pipe
        }
    });
    let mut urls = open(ListSource::File(path), None).await.unwrap();
    let thread = urls.thread.take().unwrap();
    drop(urls);
    // Ends although the pipe is still open: a hang here is the failure.
    thread.join().unwrap();
    drop(held.join().unwrap());
}

#[tokio::test]
async fn a_reader_that_died_does_not_pass_for_the_end() {
    let (sender, batches) = mpsc::channel(1);
    let thread = std::thread::spawn(move || {
        let _sender: Sender = sender;
        std::panic::resume_unwind(Box::new("died"));
    });
    let mut urls = Urls {
        first: None,
        batches,
        thread: Some(thread),
    };
    assert!(urls.next().await.is_some_and(|batch| batch.is_err()));
    assert!(urls.next().await.is_none());
}
