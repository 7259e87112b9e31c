//! `--warc`, `--warc-gz` and `cat`: what is archived is what the file layout stores, readers
//! that others wrote agree, and a crash leaves whole records.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig, content};
use exitfetch::model::{Outcome, Record};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::Signal;
use serde_json::Value;

use crate::shells::{send, tree, until, whole_records};
use crate::world::{Run, World};

const ARGS: [&str; 4] = ["--rate", "unlimited", "--cacert", "lab-ca.pem"];

/// One of each scheme; logins for those that take one.
fn world() -> World {
    World::new(LabConfig::with([
        ExitConfig::http().login("warc-user", "warc-pass"),
        ExitConfig::https().login("warc-user", "warc-pass"),
        ExitConfig::socks5(),
    ]))
}

/// Python with `warcio` and `fastwarc`, as `test.sh` installs them.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/warc-tools/bin/python");
    if !python.exists() {
        eprintln!("left out: reading with warcio and fastwarc; run ./test.sh to install them");
        return None;
    }
    Some(python)
}

fn segments(out: &Path) -> Vec<PathBuf> {
    tree(out, "warc")
        .into_keys()
        .map(|file| out.join(file))
        .collect()
}

/// What FastWARC reads, after `warcio check` has agreed with every digest.
fn read_by_others(out: &Path) -> Option<Vec<Value>> {
    let python = python()?;
    let files = segments(out);
    let warcio = python.with_file_name("warcio");
    let checked = Command::new(warcio).arg("check").args(&files).output();
    let checked = checked.unwrap();
    let said = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    assert!(checked.status.success() && said.is_empty(), "{said}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/warc/read.py");
    let read = Command::new(python).arg(script).args(&files).output();
    let read = read.unwrap();
    assert!(
        read.status.success(),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
    let lines = String::from_utf8(read.stdout).unwrap();
    Some(
        lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect(),
    )
}

impl World {
    fn cat(&self, out: &str, id: &str) -> std::process::Output {
        self.exitfetch(["cat", out, id]).output().unwrap()
    }

    /// What `cat` prints for a record of `out`.
    #[track_caller]
    fn printed(&self, out: &str, record: &Record) -> Vec<u8> {
        let output = self.cat(out, &record.id);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", record.url);
        output.stdout
    }

    /// A record's own bytes in a plain segment.
    fn archived(&self, out: &str, record: &Record) -> Vec<u8> {
        let file = self.dir().join(out).join(record.file.as_ref().unwrap());
        let start = record.offset.unwrap() as usize;
        let bytes = std::fs::read(file).unwrap();
        bytes[start..start + record.length.unwrap() as usize].to_vec()
    }
}

fn ok(records: &[Record]) -> impl Iterator<Item = &Record> {
    records
        .iter()
        .filter(|record| record.outcome == Outcome::Ok)
}

fn urls() -> Vec<String> {
    let mut urls: Vec<String> = [
        "http://a.test/bytes/1000",
        "https://a.test/bytes/5000",
        "http://a.test/chunked/5000",
        "https://b.test/chunked/70000",
        "http://a.test/gzip/30000",
        "https://a.test/br/300000",
        "http://a.test/zstd/300",
        "http://a.test/gzip/0",
        "http://a.test/archive/4000",
        "http://a.test/no-content",
        "http://a.test/bytes/0",
        "http://a.test/early",
        "http://a.test/garbage-after",
        "http://a.test/http10/3000",
        "http://a.test/last/3000",
        "http://a.test/redirect/2?n=1",
        "https://c.test/bytes/1500000",
        "http://c.test/chunked/300000",
        "http://a.test/status/404",
        "http://u:secret-of-url@a.test/bytes/10",
    ]
    .map(str::to_owned)
    .into();
    // The same text at six addresses.
    urls.extend((0..6).map(|n| format!("http://same.test/status/203/{n}")));
    urls
}

/// The three layouts of one list: `cat` prints the same bytes from each, which are those of
/// the file; readers that others wrote find every response; no login is in any of them.
#[test]
fn an_archive_holds_what_the_files_hold_and_others_can_read_it() {
    let world = world();
    let lines = urls();
    world.urls(&lines);
    for coding in [&["--compressed"][..], &[]] {
        let run = |form: &[&str], out: &str| -> Run {
            let _ = std::fs::remove_dir_all(world.dir().join(out));
            let args = [&ARGS[..], coding, form, &["--out", out]].concat();
            world.run(&args).expect(3)
        };
        run(&[], "files");
        run(&["--warc"], "plain");
        run(&["--warc-gz"], "gz");
        let files = whole_records(&world.dir().join("files"));
        for out in ["plain", "gz"] {
            let records = whole_records(&world.dir().join(out));
            let count = (records.len(), ok(&records).count());
            assert_eq!(count, (lines.len(), lines.len() - 1), "{out}");
            for record in ok(&records) {
                let stored = files.iter().find(|other| other.id == record.id).unwrap();
                let facts = |r: &Record| (r.bytes, r.wire_bytes, r.sha256.clone());
                assert_eq!(facts(record), facts(stored), "{}", record.url);
                let path = world
                    .dir()
                    .join("files")
                    .join(stored.file.as_ref().unwrap());
                let body = std::fs::read(path).unwrap();
                if coding.is_empty() && record.content_encoding.is_none() {
                    // As in the round before.
                    continue;
                }
                assert!(world.printed(out, record) == body, "{out} {}", record.url);
                if out == "plain" {
                    assert!(world.printed("files", record) == body, "{}", record.url);
                }
            }
            assert!(tree(&world.dir().join(out), "bodies").is_empty());
            check_by_others(&world.dir().join(out), &records);
        }
        check_exact_bytes(&world, &whole_records(&world.dir().join("plain")));
    }
}

/// What FastWARC finds is what the records point to.
fn check_by_others(out: &Path, records: &[Record]) {
    let Some(read) = read_by_others(out) else {
        return;
    };
    let count = |kind: &str| read.iter().filter(|r| r["type"] == kind).count();
    let all = ok(records).count();
    assert_eq!((count("request"), count("metadata")), (all, all));
    assert_eq!(count("warcinfo"), segments(out).len());
    assert_eq!((count("response"), count("revisit")), (all - 5, 5));
    for record in ok(records) {
        let file = out.join(record.file.as_ref().unwrap());
        let found = read
            .iter()
            .find(|r| r["file"] == file.to_str().unwrap() && r["offset"] == record.offset.unwrap());
        let found = found.unwrap_or_else(|| panic!("{} is not there", record.url));
        let url = record.final_url.as_ref().unwrap_or(&record.url);
        assert_eq!(found["uri"].as_str().unwrap(), url.replace("***@", ""));
        assert_eq!(found["status"], u64::from(record.status.unwrap()), "{url}");
        let verified: &[Value] = if found["type"] == "response" {
            &[Value::Bool(true)]
        } else {
            &[]
        };
        assert_eq!(found["verified"].as_array().unwrap(), verified, "{url}");
        if record.content_encoding.is_none() && found["type"] == "response" {
            assert_eq!(found["sha256"], *record.sha256.as_ref().unwrap(), "{url}");
        }
    }
}

fn check_exact_bytes(world: &World, records: &[Record]) {
    let block = |path: &str| {
        let record = ok(records)
            .find(|record| record.url.ends_with(path))
            .unwrap();
        let bytes = world.archived("plain", record);
        let head = bytes.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        String::from_utf8_lossy(&bytes[head + 4..]).into_owned()
    };
    let early = block("/early");
    assert!(
        early.starts_with("HTTP/1.1 200") && !early.contains("103"),
        "{early}"
    );
    let (head, body) = block("/garbage-after")
        .split_once("\r\n\r\n")
        .map(|(h, b)| (h.len(), b.len()))
        .unwrap();
    assert!(head > 0 && body == 20 + 4, "{body}");
    let chunked = block("a.test/chunked/5000");
    assert!(
        chunked.ends_with("\r\n0\r\n\r\n\r\n\r\n"),
        "with its framing"
    );
    let empty = block("/no-content");
    assert!(empty.starts_with("HTTP/1.1 204") && empty.ends_with("\r\n\r\n\r\n\r\n"));
    let mut all = Vec::new();
    for segment in segments(&world.dir().join("plain")) {
        all.extend(std::fs::read(segment).unwrap());
    }
    let text = String::from_utf8_lossy(&all);
    for secret in ["warc-user", "warc-pass", "secret-of-url", "roxy-", "Basic "] {
        assert!(!text.contains(secret), "{secret} is in the archive");
    }
    assert!(text.contains("\r\nauthorization: ***\r\n"));
    assert!(text.contains("GET /bytes/1000 HTTP/1.1\r\n") && !text.contains("GET http:"));
    assert!(text.contains("via: http://a.test/redirect/2?n=1\r\n"));
    assert!(text.contains("\r\nexit: lab-3\r\n") || text.contains("\r\nexit: lab-2\r\n"));
}

/// A long answer is no reason to keep it in memory or to copy it.
#[test]
fn a_long_answer_has_a_segment_of_its_own() {
    let world = world();
    world.urls([
        "http://a.test/bytes/10",
        "http://a.test/chunked/17000000?wait=200",
    ]);
    let run = world.run(&[&ARGS[..], &["--warc"]].concat()).expect(0);
    assert_eq!(run.line(1).file.as_deref(), Some("warc/00001.warc"));
    assert_eq!(run.line(2).file.as_deref(), Some("warc/00002.warc"));
    let body = content("a.test", "/chunked/17000000?wait=200", 17_000_000);
    assert!(world.printed("exitfetch-out", run.line(2)) == body);
    if let Some(read) = read_by_others(&world.out()) {
        let own = read
            .iter()
            .filter(|r| r["file"].as_str().unwrap().ends_with("2.warc"));
        let kinds: Vec<&str> = own.map(|r| r["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["warcinfo", "response", "request", "metadata"]);
    }
}

/// A run killed again and again: after each kill everything recorded can be printed, at the
/// end every segment is whole, under its final name, and nothing is fetched twice.
#[test]
fn an_archive_survives_kills() {
    let world = World::new(LabConfig::alike(3, &ExitConfig::http()));
    world.urls((0..120).map(|n| match n % 4 {
        0 => format!("http://a.test/drip/{n}?bytes=2000&ms=150"),
        1 => format!("http://a.test/chunked/300000/{n}"),
        2 => format!("http://a.test/status/203/{n}"),
        _ => format!("http://a.test/bytes/{}/{n}", n * 100),
    }));
    let mut rng = StdRng::seed_from_u64(11);
    for kill in 0..6 {
        let form = ["--warc", "--warc-gz"][kill % 2];
        let done = whole_records(&world.out()).len();
        // At a rate at which no kill comes too late, however busy the machine is.
        let slow = [form, "--per-exit", "2", "--rate", "30"];
        let mut child = world.start(&[&ARGS[..], &slow].concat());
        until("records", || whole_records(&world.out()).len() > done);
        std::thread::sleep(Duration::from_millis(rng.random_range(0..150)));
        if child.try_wait().unwrap().is_none() {
            send(&child, Signal::KILL);
        }
        child.wait().unwrap();
        let records = whole_records(&world.out());
        for record in records.iter().rev().take(8) {
            let printed = world.printed("exitfetch-out", record);
            assert_eq!(Some(printed.len() as u64), record.bytes, "kill {kill}");
        }
    }
    let recorded = whole_records(&world.out()).len();
    assert!((7..120).contains(&recorded), "{recorded} under the kills");
    let run = world.run(&[&ARGS[..], &["--warc"]].concat()).expect(0);
    assert_eq!((run.records.len(), run.count(Outcome::Ok)), (120, 120));
    for record in run.records.iter().step_by(7) {
        world.printed("exitfetch-out", record);
    }
    let named = segments(&world.out());
    assert!(
        named.iter().all(|path| !path.ends_with(".open")),
        "{named:?}"
    );
    let requests = world.lab.origin_stats().requests;
    assert!(requests <= 120 + 6 * 6, "{requests}");
    if let Some(read) = read_by_others(&world.out()) {
        let bodies = read
            .iter()
            .filter(|r| r["type"] == "response" || r["type"] == "revisit");
        assert_eq!(bodies.count(), 120, "each once");
    }
    world.run(&ARGS).expect(0);
    assert_eq!(
        world.lab.origin_stats().requests,
        requests,
        "nothing is left"
    );
}

/// While a run is under way, the segment it writes can be read already.
#[test]
fn a_body_can_be_printed_before_the_run_ends() {
    let world = world();
    world.urls(["http://a.test/bytes/100/1", "http://a.test/silent"]);
    let mut child = world.start(&[&ARGS[..], &["--warc-gz"]].concat());
    until("a record", || !whole_records(&world.out()).is_empty());
    let record = &whole_records(&world.out())[0];
    assert_eq!(world.printed("exitfetch-out", record).len(), 100);
    assert!(world.out().join("warc/00001.warc.gz.open").exists());
    send(&child, Signal::KILL);
    child.wait().unwrap();
}

/// Files and archives in one directory, in turn: each run takes the others' work as done.
/// `--refresh` in an archive: 304 keeps the exchange of the first run, and its record leads there.
#[test]
fn what_a_refresh_finds_unchanged_is_printed_from_where_it_is() {
    for form in ["--warc", "--warc-gz"] {
        let world = world();
        world.urls(["http://a.test/versions/2", "http://a.test/bytes/100/1"]);
        let args = [&ARGS[..], &[form, "--refresh"]].concat();
        let first = world.run(&args).expect(0);
        let second = world.run(&args).expect(0);
        let last = |run: &Run| run.records.iter().rfind(|r| r.line == 1).unwrap().clone();
        let (before, kept) = (last(&first), last(&second));
        assert_eq!((kept.status, kept.not_modified), (Some(304), Some(true)));
        assert_eq!((&kept.file, kept.offset), (&before.file, before.offset));
        assert!(
            world
                .printed("exitfetch-out", &kept)
                .starts_with(b"version 1 ")
        );
        let third = world.run(&args).expect(0);
        assert_eq!(last(&third).status, Some(200));
        assert!(
            world
                .printed("exitfetch-out", &last(&third))
                .starts_with(b"version 2 ")
        );
        let requests = world.lab.origin_stats().requests;
        world.run(&ARGS).expect(0);
        assert_eq!(world.lab.origin_stats().requests, requests, "all is stored");
    }
}

#[test]
fn layouts_may_be_mixed_in_one_directory() {
    let world = world();
    let all: Vec<String> = (0..9)
        .map(|n| format!("http://a.test/bytes/{n}00/{n}"))
        .collect();
    for (n, form) in [&[][..], &["--warc"], &["--warc-gz"]]
        .into_iter()
        .enumerate()
    {
        world.urls(&all[..3 * n + 3]);
        let run = world.run(&[&ARGS[..], form].concat()).expect(0);
        assert_eq!(run.records.len(), 3 * n + 3);
        assert_eq!(world.lab.origin_stats().requests, 3 * n as u64 + 3);
    }
    let records = world.records();
    for record in &records {
        let printed = world.printed("exitfetch-out", record);
        assert_eq!(Some(printed.len() as u64), record.bytes, "{}", record.url);
    }
    // A segment that is gone or too short holds nothing.
    let of = |record: &Record| world.out().join(record.file.as_ref().unwrap());
    std::fs::remove_file(of(&records[3])).unwrap();
    std::fs::OpenOptions::new()
        .write(true)
        .open(of(&records[8]))
        .unwrap()
        .set_len(records[8].offset.unwrap() + records[8].length.unwrap() - 1)
        .unwrap();
    let run = world.run(&ARGS).expect(0);
    assert_eq!(run.records.len(), 9 + 4);
    world.run(&ARGS).expect(0);
    assert_eq!(world.lab.origin_stats().requests, 9 + 4);
}

/// What cannot be printed is told in one line.
#[test]
fn cat_says_what_is_missing() {
    let world = world();
    world.urls([
        "http://a.test/bytes/10",
        "http://a.test/status/500/1",
        "http://a.test/bytes/300000",
    ]);
    let run = world
        .run(&[&ARGS[..], &["--warc", "--retries", "0"]].concat())
        .expect(3);
    let tells = |out: &str, id: &str, status: i32, words: &str| {
        let output = world.cat(out, id);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{said}");
    };
    tells(
        "exitfetch-out",
        "nobody",
        2,
        "has no record of the id nobody",
    );
    tells("nowhere", "x", 2, "nowhere is no output directory");
    tells(
        "exitfetch-out",
        &run.line(2).id,
        2,
        "nothing was stored for",
    );
    let segment = world.out().join("warc/00001.warc");
    let mut bytes = std::fs::read(&segment).unwrap();
    let third = run.line(3);
    let end = (third.offset.unwrap() + third.length.unwrap()) as usize;
    bytes[end - 100] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    tells("exitfetch-out", &third.id, 1, "is not what was recorded");
    std::fs::remove_file(segment).unwrap();
    tells("exitfetch-out", &run.line(1).id, 1, "warc/00001.warc");
}

/// Names are for files.
#[test]
fn an_archive_takes_no_name_template() {
    let world = world();
    world.urls(["http://a.test/bytes/10"]);
    for form in ["--warc", "--warc-gz"] {
        let run = world.run(&[form, "--name-template", "{id}"]).expect(2);
        assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
    }
    assert_eq!(world.lab.origin_stats().requests, 0);
}
