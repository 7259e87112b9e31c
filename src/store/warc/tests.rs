//! Captures into segments and back: the exact bytes of records, what fills a segment, what a
//! crash leaves.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use flate2::read::GzDecoder;

use super::*;
use crate::model::{Framing, Outcome, PhaseTimes, Record};
use crate::store::space::Space;
use crate::store::temp::TempFiles;
use crate::store::test_clock;

struct Bench {
    dir: tempfile::TempDir,
    archive: Archive,
    segments: Segments,
    journal: String,
}

impl Bench {
    fn new(form: WarcForm) -> Bench {
        Bench::at(tempfile::tempdir().unwrap(), form)
    }

    /// In a directory that may have been used before.
    fn at(dir: tempfile::TempDir, form: WarcForm) -> Bench {
        let path = dir.path().join("results.jsonl");
        let mut options = std::fs::File::options();
        let journal = options.read(true).append(true).create(true);
        let journal = journal.open(path).unwrap();
        recover(dir.path(), &journal).unwrap();
        let files = TempFiles::open(dir.path()).unwrap();
        let bodies = Bodies::new(files, Space::new(dir.path(), 0));
        let archive = Archive::new(bodies, form, test_clock());
        let segments = Segments::open(dir.path(), archive.clone(), &journal).unwrap();
        let segments = segments.with_bounds(1_000_000, 400_000);
        let journal = std::fs::read_to_string(dir.path().join("results.jsonl")).unwrap();
        Bench {
            dir,
            archive,
            segments,
            journal,
        }
    }

    fn capture(&self, framing: Framing, received: &[u8]) -> Captured {
        let mut capture = self.archive.capture(Opening {
            target: "http://o.test/a".to_owned(),
            framing,
            decoded: false,
            since_sent: Duration::ZERO,
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let sent = b"GET http://o.test/a HTTP/1.1\r\nproxy-authorization: x\r\n\r\n";
        runtime.block_on(async move {
            for piece in received.chunks(50_000) {
                capture.incoming().extend_from_slice(piece);
                capture.body(&[]).await.unwrap();
            }
            capture.finish(sent).await.unwrap()
        })
    }

    /// Archives an answer with this body and records it.
    fn add(&mut self, body: &[u8]) -> Record {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let received = [head.as_bytes(), body].concat();
        let framing = Framing::Length(body.len() as u64);
        self.add_received(framing, &received)
    }

    fn add_received(&mut self, framing: Framing, received: &[u8]) -> Record {
        let record = self.add_unwritten(framing, received);
        self.segments.flush().unwrap();
        record
    }

    /// The same, but it may wait in memory still.
    fn add_unwritten(&mut self, framing: Framing, received: &[u8]) -> Record {
        let captured = self.capture(framing, received);
        let (bytes, sha256) = (captured.bytes, captured.sha256.clone());
        let phases = PhaseTimes::default();
        let facts = Facts {
            exit: "e",
            listed: None,
            phases: &phases,
        };
        let placed = self.segments.append(captured, facts).unwrap();
        let record = Record {
            file: Some(placed.file),
            offset: Some(placed.offset),
            length: Some(placed.length),
            bytes: Some(bytes),
            sha256: Some(sha256),
            ..Record::empty(Outcome::Ok, String::new())
        };
        self.journal += &(serde_json::to_string(&record).unwrap() + "\n");
        std::fs::write(self.path("results.jsonl"), &self.journal).unwrap();
        record
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.dir.path().join(file)
    }

    fn payload(&self, record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut payload = payload(self.dir.path(), record).unwrap();
        payload.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// The record's own bytes, uncompressed.
    fn raw(&self, record: &Record) -> Vec<u8> {
        let file = record.file.as_ref().unwrap();
        let path = Some(self.path(file)).filter(|path| path.exists());
        let all = std::fs::read(path.unwrap_or(self.path(&format!("{file}.open")))).unwrap();
        let start = record.offset.unwrap() as usize;
        let own = &all[start..start + record.length.unwrap() as usize];
        if !file.ends_with(".gz") {
            return own.to_vec();
        }
        let (mut plain, mut member) = (Vec::new(), own);
        let mut decoder = GzDecoder::new(&mut member);
        decoder.read_to_end(&mut plain).unwrap();
        assert!(member.is_empty(), "one member and no more");
        plain
    }

    fn files(&self) -> Vec<String> {
        names(&self.path("warc"))
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Bytes that no compression makes shorter.
fn content(seed: u8, length: usize) -> Vec<u8> {
    let words = (0..length as u64 / 8 + 1).map(|n| {
        let mixed = (n + 1 + u64::from(seed)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
            .to_le_bytes()
    });
    let mut bytes: Vec<u8> = words.flatten().collect();
    bytes.truncate(length);
    bytes
}

const FORMS: [WarcForm; 2] = [WarcForm::Plain, WarcForm::Gzip];

#[test]
fn a_response_holds_the_bytes_as_they_came_and_nothing_else() {
    let chunks = "HTTP/1.1 200 Fine\r\nTransfer-Encoding:  chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for form in FORMS {
        let mut bench = Bench::new(form);
        let received = format!("HTTP/1.1 103 Hints\r\nA: b\r\n\r\n{chunks}beyond the end");
        let record = bench.add_received(Framing::Chunked, received.as_bytes());
        let text = String::from_utf8(bench.raw(&record)).unwrap();
        let (header, block) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(block, format!("{chunks}\r\n\r\n"));
        let length = format!("Content-Length: {}", chunks.len());
        assert!(
            header.starts_with("WARC/1.1\r\nWARC-Type: response\r\n") && header.ends_with(&length)
        );
        // Readers disagree about the payload of a chunked answer, not about its block.
        assert!(header.contains("WARC-Block-Digest: sha256:") && !header.contains("Payload"));
        assert_eq!(bench.payload(&record), b"abc");
        assert_eq!(record.bytes, Some(3));
    }
}

/// In memory, copied behind others, and as a segment of its own: one record, the same bytes.
#[test]
fn small_long_and_very_long_answers_read_back_the_same() {
    for form in FORMS {
        let mut bench = Bench::new(form);
        let ends = [1000_usize, 300_000, 500_005, 2000];
        let bodies = ends.map(|length| content(length as u8, length));
        let records: Vec<Record> = bodies.iter().map(|body| bench.add(body)).collect();
        for (record, body) in records.iter().zip(&bodies) {
            assert!(bench.payload(record) == *body, "{form:?} {}", body.len());
            let raw = bench.raw(record);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let block = [head.as_bytes(), body, b"\r\n\r\n"].concat();
            assert!(raw.ends_with(&block), "{form:?} {}", body.len());
            let header = String::from_utf8_lossy(&raw[..raw.len() - block.len()]).into_owned();
            let length: usize = block.len() - 4;
            let told = header.trim_end().rsplit(' ').next().unwrap();
            assert_eq!(told.parse::<usize>().unwrap(), length);
            let digest = record.sha256.as_ref().unwrap();
            assert!(header.contains(&format!("WARC-Payload-Digest: sha256:{digest}\r\n")));
        }
        assert_ne!(records[2].file, records[1].file, "one of its own");
        assert_eq!(records[3].file, records[0].file, "the open one goes on");
        assert!(names(&bench.path(".tmp")).is_empty());
    }
}

#[test]
fn a_request_is_shown_without_what_was_for_the_exit() {
    let mut bench = Bench::new(WarcForm::Plain);
    bench.add(b"x");
    let text = std::fs::read(bench.path("warc/00001.warc.open")).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("\r\n\r\nGET /a HTTP/1.1\r\n\r\n\r\n\r\n"),
        "{text}"
    );
    assert!(text.contains("\r\n\r\nexit: e\r\n"));
}

#[test]
fn a_payload_that_is_there_already_is_pointed_to_also_by_the_next_run() {
    for form in FORMS {
        let mut bench = Bench::new(form);
        let long = content(3, 500_000);
        let (first, own) = (bench.add(b"the same"), bench.add(&long));
        let repeat = |bench: &mut Bench, of: &Record, body: &[u8]| {
            let again = bench.add(body);
            let text = String::from_utf8_lossy(&bench.raw(&again)).into_owned();
            assert!(text.contains("WARC-Type: revisit\r\n"), "{form:?} {text}");
            let segment = of.file.as_ref().unwrap().strip_prefix("warc/").unwrap();
            assert!(text.contains(&format!("WARC-Refers-To-Filename: {segment}\r\n")));
            assert!(text.contains("WARC-Refers-To-Target-URI: http://o.test/a\r\n"));
            assert!(text.contains("WARC-Refers-To-Date: "), "{text}");
            assert!(
                text.ends_with("\r\n\r\n\r\n\r\n") && !text.contains("the same"),
                "{text}"
            );
            assert!(bench.payload(&again) == body);
            again
        };
        repeat(&mut bench, &first, b"the same");
        repeat(&mut bench, &own, &long);
        bench.segments.end().unwrap();
        let mut bench = Bench::at(bench.dir, form);
        repeat(&mut bench, &first, b"the same");
        repeat(&mut bench, &own, &long);
        // Where the first one is gone, the payload is written again.
        std::fs::remove_file(bench.path(own.file.as_ref().unwrap())).unwrap();
        let anew = bench.add(&long);
        assert!(bench.payload(&anew) == long);
        let nothing = [bench.add(b""), bench.add(b"")];
        let empty = bench.raw(&nothing[1]);
        assert!(String::from_utf8_lossy(&empty).contains("WARC-Type: response\r\n"));
    }
}

#[test]
fn a_payload_that_was_not_written_is_no_original_of_a_later_one() {
    let mut bench = Bench::new(WarcForm::Plain);
    let answer = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}");
    let mut add = |body: &str| bench.add_unwritten(Framing::Length(5), answer(body).as_bytes());
    let lost = add("first");
    bench.segments.forget();
    let mut add = |body: &str| bench.add_unwritten(Framing::Length(5), answer(body).as_bytes());
    let records = ["other", "first"].map(&mut add);
    assert_eq!(records[0].offset, lost.offset, "in its place");
    bench.segments.flush().unwrap();
    assert_eq!(bench.payload(&records[1]), b"first");
}

#[test]
fn exchanges_that_wait_are_written_together_and_a_twin_of_one_points_to_it() {
    let mut bench = Bench::new(WarcForm::Gzip);
    let answer = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let mut add = |body: &str| {
        let framing = Framing::Length(body.len() as u64);
        bench.add_unwritten(framing, answer(body).as_bytes())
    };
    let records = ["first", "second", "first", "third"].map(&mut add);
    let open = bench.path(&format!("{}.open", records[3].file.as_ref().unwrap()));
    let before = std::fs::metadata(&open).unwrap().len();
    assert!(before <= records[3].offset.unwrap(), "the last one waits");
    bench.segments.flush().unwrap();
    assert!(std::fs::metadata(&open).unwrap().len() > before);
    for (record, body) in records.iter().zip(["first", "second", "first", "third"]) {
        assert_eq!(bench.payload(record), body.as_bytes());
    }
    let twin = String::from_utf8(bench.raw(&records[2])).unwrap();
    assert!(twin.contains("WARC-Type: revisit"), "{twin}");
}

#[test]
fn a_full_segment_ends_and_the_next_one_begins_with_its_own_warcinfo() {
    let mut bench = Bench::new(WarcForm::Plain);
    bench.segments = bench.segments.with_bounds(10_000, 1_000_000);
    for n in 0..30 {
        bench.add(&content(n, 1000));
        bench.segments.roll().unwrap();
    }
    bench.segments.end().unwrap();
    let files = bench.files();
    assert!((4..=8).contains(&files.len()), "{files:?}");
    for (n, file) in files.iter().enumerate() {
        assert_eq!(*file, format!("{:05}.warc", n + 1));
        let bytes = std::fs::read(bench.path("warc").join(file)).unwrap();
        assert!(bytes.starts_with(b"WARC/1.1\r\nWARC-Type: warcinfo\r\n"));
        assert!(n + 1 == files.len() || bytes.len() >= 10_000);
    }
}

/// Whatever a crash leaves behind the last record of the journal is cut, to the byte.
#[test]
fn a_torn_segment_is_cut_back_to_what_was_recorded() {
    for form in FORMS {
        let mut bench = Bench::new(form);
        let kept = [bench.add(b"one"), bench.add(&content(1, 200_000))];
        let recorded = bench.journal.clone();
        let extension = form.extension();
        let open = bench.path(&format!("warc/00001.{extension}.open"));
        let end = std::fs::metadata(&open).unwrap().len();
        bench.add(b"three, not recorded");
        let whole = std::fs::read(&open).unwrap();
        for cut in [end, end + 1, end + 300, whole.len() as u64] {
            std::fs::write(&open, &whole[..cut as usize]).unwrap();
            let torn = format!("{recorded}{{\"id\":\"\",\"file\":\"warc/00001.{extension}\",\"off");
            std::fs::write(bench.path("results.jsonl"), torn).unwrap();
            bench = Bench::at(bench.dir, form);
            assert_eq!(bench.files(), [format!("00001.{extension}")]);
            let named = bench.path(&format!("warc/00001.{extension}"));
            assert!(std::fs::read(&named).unwrap() == whole[..end as usize]);
            assert_eq!(bench.payload(&kept[0]), b"one");
            assert_eq!(is_stored(bench.dir.path(), &kept[1]), Some(true));
            std::fs::rename(named, &open).unwrap();
        }
        let named = bench.path(&format!("warc/00001.{extension}"));
        std::fs::write(&named, &whole[..end as usize - 1]).unwrap();
        assert_eq!(is_stored(bench.dir.path(), &kept[1]), Some(false));
        std::fs::rename(named, &open).unwrap();
        std::fs::write(bench.path("results.jsonl"), "").unwrap();
        let bench = Bench::at(bench.dir, form);
        assert!(bench.files().is_empty(), "nothing of it was recorded");
    }
}

/// Its second entry came late: the journal's last line is not of the segment's last exchange.
#[test]
fn what_was_recorded_before_an_entry_listed_again_is_not_cut() {
    let mut bench = Bench::new(WarcForm::Plain);
    let first = bench.add(b"one");
    let second = bench.add(b"two");
    let twin = serde_json::to_string(&first).unwrap() + "\n";
    std::fs::write(bench.path("results.jsonl"), bench.journal.clone() + &twin).unwrap();
    let bench = Bench::at(bench.dir, WarcForm::Plain);
    assert_eq!(is_stored(bench.dir.path(), &second), Some(true));
    assert_eq!(bench.payload(&second), b"two");
}

#[test]
fn the_next_run_begins_a_segment_of_its_own() {
    let mut bench = Bench::new(WarcForm::Plain);
    bench.add(b"one");
    bench.segments.end().unwrap();
    let mut bench = Bench::at(bench.dir, WarcForm::Gzip);
    let two = bench.add(b"two");
    bench.segments.end().unwrap();
    assert_eq!(bench.files(), ["00001.warc", "00002.warc.gz"]);
    assert_eq!(bench.payload(&two), b"two");
}

#[test]
fn a_place_outside_the_directory_is_not_read() {
    let bench = Bench::new(WarcForm::Plain);
    for file in [
        "../x.warc",
        "/etc/passwd",
        "warc/none.warc",
        "results.jsonl",
    ] {
        let record = Record {
            file: Some(file.to_owned()),
            offset: Some(0),
            length: Some(0),
            ..Record::empty(Outcome::Ok, String::new())
        };
        assert!(payload(bench.dir.path(), &record).is_err(), "{file}");
    }
}
