//! Bodies that are not what was announced: short, contradictory, coded, bombs.

use std::collections::HashMap;

use async_compression::tokio::bufread::GzipDecoder;
use exitfetch::lab::{ExitConfig, LabConfig, content};
use exitfetch::model::{ErrorKind, Outcome, Record};
use tokio::io::AsyncReadExt;

use crate::footprint::watched;
use crate::world::{ONE_RETRY, World};

fn by_path(records: &[Record]) -> HashMap<String, Record> {
    records
        .iter()
        .map(|record| {
            let url: url::Url = record.url.parse().unwrap();
            (
                url.path().trim_start_matches('/').to_owned(),
                record.clone(),
            )
        })
        .collect()
}

/// Every file below `bodies/`, leftovers included.
fn files(world: &World) -> usize {
    fn count(dir: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(dir) else {
            return 0;
        };
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| if path.is_dir() { count(&path) } else { 1 })
            .sum()
    }
    count(&world.out().join("bodies"))
}

fn short_bodies_fail(exit: &ExitConfig, scheme: &str) {
    let world = World::new(LabConfig::alike(2, exit));
    let paths = [
        "truncated/100000",
        "truncated/10?sent=0",
        "two-lengths",
        "chunked-cut/1000",
        "chunked-bad",
        "reset-body/100000",
        "http10/5000",
        "bytes/5000",
        "chunked/5000",
    ];
    // A site each, so that none is judged by the others' faults.
    world.urls(
        paths
            .iter()
            .enumerate()
            .map(|(n, path)| format!("{scheme}://o{n}.test/{path}")),
    );
    let run = world.run(&ONE_RETRY).expect(3);
    let records = by_path(&run.records);
    let failed = |path: &str| {
        let record = &records[path];
        assert_eq!(record.outcome, Outcome::Failed, "{record:?}");
        assert!(record.attempts >= 2, "{record:?}");
        assert_eq!(record.file, None);
        let error = record.error.clone().unwrap();
        (error.kind, error.detail)
    };
    let (kind, detail) = failed("truncated/100000");
    assert_eq!(kind, ErrorKind::Truncated);
    assert!(
        detail.contains("99999") && detail.contains("100000"),
        "{detail}"
    );
    let (kind, detail) = failed("truncated/10");
    assert_eq!(kind, ErrorKind::Truncated);
    assert!(detail.contains("10") && detail.contains(" 0 "), "{detail}");
    for path in [
        "two-lengths",
        "chunked-cut/1000",
        "chunked-bad",
        "reset-body/100000",
    ] {
        failed(path);
    }
    let closed = &records["http10/5000"];
    assert_eq!(closed.outcome, Outcome::Ok, "{closed:?}");
    assert_eq!(closed.length_verified, Some(false));
    assert_eq!(world.body(closed), content("o6.test", "/http10/5000", 5000));
    for path in ["bytes/5000", "chunked/5000"] {
        assert_eq!(records[path].outcome, Outcome::Ok);
        assert_ne!(records[path].length_verified, Some(false));
    }
    assert_eq!(files(&world), 3);
}

/// D01.
#[test]
fn a_body_shorter_than_announced_is_never_ok_through_http_exits() {
    short_bodies_fail(&ExitConfig::http(), "http");
    short_bodies_fail(&ExitConfig::http(), "https");
}

/// D01.
#[test]
fn a_body_shorter_than_announced_is_never_ok_through_socks5_and_https_exits() {
    short_bodies_fail(&ExitConfig::socks5(), "http");
    short_bodies_fail(&ExitConfig::socks5(), "https");
    short_bodies_fail(&ExitConfig::https(), "http");
}

/// D01: an exit that cuts what others serve whole costs no job.
#[test]
fn a_body_cut_by_one_exit_is_fetched_whole_through_another() {
    let exits = [
        ExitConfig::http().behaving("cut".parse().unwrap()),
        ExitConfig::http(),
    ];
    let world = World::new(LabConfig::with(exits));
    world.urls((0..12).map(|n| format!("http://o{}.test/bytes/50000/{n}", n % 4)));
    let run = world.run(&["--rate", "unlimited"]).expect(0);
    for record in &run.records {
        assert_eq!(world.body(record).len(), 50000);
    }
}

fn gunzip(world: &World, bytes: &[u8]) -> Vec<u8> {
    world.runtime.block_on(async {
        let mut plain = Vec::new();
        GzipDecoder::new(bytes)
            .read_to_end(&mut plain)
            .await
            .unwrap();
        plain
    })
}

const CODED: [&str; 3] = ["gzip-bomb/50000000", "gzip-lie", "archive/2000"];

/// D05, default: what came is stored, whatever it claims to be.
#[test]
fn without_compressed_coded_bodies_are_stored_as_they_came() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(1, &exit));
        world.urls(CODED.iter().map(|path| format!("http://o.test/{path}")));
        let args = ["--rate", "unlimited", "--max-body", "1MB"];
        let run = world.run(&args).expect(0);
        let records = by_path(&run.records);
        for path in CODED {
            let record = &records[path];
            assert_eq!(record.content_encoding.as_deref(), Some("gzip"));
            assert_eq!(record.bytes, record.wire_bytes);
            assert_eq!(world.body(record).len() as u64, record.bytes.unwrap());
        }
        let body = |path: &str| world.body(&records[path]);
        assert_eq!(body("gzip-lie"), b"this is plain text and no archive\n");
        let archive = gunzip(&world, &body("archive/2000"));
        assert_eq!(archive, content("o.test", "/archive/2000", 2000));
        let zeros = gunzip(&world, &body("gzip-bomb/50000000"));
        assert!(zeros.len() >= 50_000_000 && zeros.iter().all(|&byte| byte == 0));
    }
}

/// D05, `--compressed`: the limit is on decoded bytes, and what does not decode fails once.
#[test]
fn with_compressed_bombs_and_lies_fail_after_one_fetch_and_in_little_memory() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let args = [
        "--rate",
        "unlimited",
        "--max-body",
        "1MB",
        "--compressed",
        "--cacert",
        "lab-ca.pem",
    ];
    world.urls(["http://o.test/ok/1000"]);
    let (_, ordinary) = watched(&world, &[&args[..], &["--fresh"]].concat());
    world.lab.reset();
    for scheme in ["http", "https"] {
        world.urls(
            CODED
                .iter()
                .chain(&["gzip/20000", "br/20000", "zstd/20000", "ok/500"])
                .map(|path| format!("{scheme}://o.test/{path}")),
        );
        let (run, peak) = watched(&world, &[&args[..], &["--fresh"]].concat());
        let run = run.expect(3);
        let records = by_path(&run.records);
        let kind = |path: &str| records[path].error.as_ref().unwrap().kind;
        assert_eq!(kind("gzip-bomb/50000000"), ErrorKind::TooLarge);
        assert_eq!(kind("gzip-lie"), ErrorKind::Decode);
        assert_eq!(records["gzip-bomb/50000000"].attempts, 1);
        assert_eq!(records["gzip-lie"].attempts, 1);
        for path in ["gzip/20000", "br/20000", "zstd/20000", "archive/2000"] {
            let record = &records[path];
            let size: usize = path.rsplit('/').next().unwrap().parse().unwrap();
            assert_eq!(
                world.body(record),
                content("o.test", &format!("/{path}"), size)
            );
            assert_eq!(record.bytes, Some(size as u64));
            assert!(record.wire_bytes.unwrap() < size as u64, "{record:?}");
            assert!(record.content_encoding.is_some());
        }
        let plain = &records["ok/500"];
        assert_eq!((plain.bytes, plain.wire_bytes), (Some(500), Some(500)));
        assert!(
            peak < ordinary + 50 * 1024,
            "{peak} KiB, ordinary {ordinary}"
        );
    }
    assert_eq!(world.lab.origin_stats().requests, 14);
}
