//! `kill -9` at any moment: nothing recorded is lost, nothing looks whole that is not.
//!
//! A few kills for each way to store and ask; by `bench/crash.sh` two hundred in all.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::job::hex;
use exitfetch::model::{Outcome, Record};
use exitfetch::store::open_body;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::Signal;
use sha2::{Digest, Sha256};

use crate::shells::{send, tree, until, whole_records};
use crate::world::World;

const KILLS: u64 = 20;

/// Kills of each of the tests that `bench/crash.sh` makes longer.
fn kills() -> u64 {
    let given = std::env::var("CRASH_KILLS").ok();
    given.map_or(5, |kills| kills.parse().unwrap())
}
const ARGS: [&str; 6] = [
    "--rate",
    "unlimited",
    "--per-exit",
    "2",
    "--cacert",
    "lab-ca.pem",
];

/// What a record says whenever, through whichever exit and into whichever segment its job was
/// done.
fn lasting(record: &Record) -> String {
    let Record {
        id, url, final_url, ..
    } = record;
    let file = record.file.as_ref().filter(|_| record.offset.is_none());
    let (status, bytes) = (record.status, &record.bytes);
    let (sha256, kind) = (&record.sha256, &record.content_type);
    format!("{id} {url} {final_url:?} {status:?} {file:?} {bytes:?} {sha256:?} {kind:?}")
}

/// The digest of the body that a record points to.
fn digest(world: &World, record: &Record) -> Option<String> {
    let mut body = Vec::new();
    let opened = open_body(&world.out(), record);
    opened.ok()?.read_to_end(&mut body).ok()?;
    Some(hex(&Sha256::digest(body)))
}

/// Kills a run, unless it has ended.
fn kill(child: &mut Child) {
    if child.try_wait().unwrap().is_none() {
        send(child, Signal::KILL);
    }
    child.wait().unwrap();
}

/// Small and large bodies, plain and in tunnels, slow ones, redirects, answers that come on
/// the second try only.
fn urls() -> Vec<String> {
    (0..280)
        .map(|n| match n % 7 {
            0 => format!("http://slow.test/drip/{n}?bytes=1000&ms=200"),
            1 => format!("https://a.test/bytes/{n}"),
            2 => format!("http://a.test/redirect/2?n={n}"),
            3 => format!("http://b.test/flaky/1/{n}?how=reset"),
            4 => format!("http://b.test/bytes/400000/{n}"),
            5 => format!("https://slow.test/chunked/70000/{n}?ms=150"),
            _ => format!("http://c.test/bytes/0/{n}?wait=50"),
        })
        .collect()
}

fn clean_run(world: &World, layout: &[&str]) -> (BTreeMap<PathBuf, Vec<u8>>, HashMap<u64, String>) {
    let args = [&ARGS[..], layout, &["--out", "clean"]].concat();
    world.run(&args).expect(0);
    let out = world.dir().join("clean");
    let records = whole_records(&out);
    let lasting = records.iter().map(|r| (r.line, lasting(r))).collect();
    (tree(&out, "bodies"), lasting)
}

/// What may be under a final name at any instant: whole bodies, and one for each ok record.
fn check(world: &World, clean: &BTreeMap<PathBuf, Vec<u8>>, moment: u64) {
    for (file, content) in world.stored() {
        assert!(
            file.ends_with(".writable") || clean.get(&file) == Some(&content),
            "after kill {moment}: {} is not whole",
            file.display()
        );
    }
    for record in whole_records(&world.out()) {
        if record.outcome == Outcome::Ok {
            let stored = digest(world, &record);
            assert_eq!(stored, record.sha256, "after kill {moment}: {record:?}");
        }
    }
}

/// Twenty kills at moments from `seed`, resumed each time; at the end everything equals a run
/// that nobody killed, byte by byte.
fn ends_like_one_that_was_not_killed(layout: &[&str], seed: u64, kills: u64) {
    let world = World::new(LabConfig::with([
        ExitConfig::http(),
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ]));
    world.urls(urls());
    let (clean, lasting_clean) = clean_run(&world, layout);
    let clean_requests = world.lab.origin_stats().requests;
    world.lab.reset();

    let args = [&ARGS[..], layout].concat();
    let mut rng = StdRng::seed_from_u64(seed);
    for moment in 0..kills {
        let before = world.lab.origin_stats().requests;
        let recorded = whole_records(&world.out()).len();
        let mut child = world.start(&args);
        // Most kills while requests are under way, half of these not before something is
        // recorded, however slow the machine is; some at the very start.
        if moment % 5 != 4 {
            let all = || whole_records(&world.out()).len() >= 280;
            until("a request", || {
                world.lab.origin_stats().requests > before || all()
            });
            if moment % 2 == 0 {
                until("a record", || {
                    whole_records(&world.out()).len() > recorded || all()
                });
            }
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..200)));
        kill(&mut child);
        check(&world, &clean, moment);
    }
    let recorded = whole_records(&world.out()).len();
    let run = world.run(&args).expect(0);
    println!("{recorded} of 280 recorded under {kills} kills of {layout:?} by seed {seed}");
    assert!((10..280).contains(&recorded), "{recorded}");

    assert_eq!(world.stored(), clean, "the same files with the same bytes");
    let ok = run.records.iter().filter(|r| r.outcome == Outcome::Ok);
    let ended: HashMap<u64, String> = ok.map(|r| (r.line, lasting(r))).collect();
    assert_eq!(ended, lasting_clean);
    assert_eq!(run.count(Outcome::Ok), 280, "one ok record each");
    check(&world, &clean, kills);
    assert_nothing_unfinished(&world);
    let requests = world.lab.origin_stats().requests;
    // At most eight under way at each kill and as many that had just come, three requests each.
    assert!(
        requests <= clean_requests + kills * 2 * 8 * 3,
        "{requests} requests, {clean_requests} without kills"
    );
    world.run(&args).expect(0);
    assert_eq!(
        world.lab.origin_stats().requests,
        requests,
        "nothing is left"
    );
}

#[track_caller]
fn assert_nothing_unfinished(world: &World) {
    let unfinished = |path: &PathBuf| {
        let name = path.to_string_lossy();
        [".part", ".open", ".writable"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    let left: Vec<PathBuf> = tree(&world.out(), "")
        .into_keys()
        .filter(unfinished)
        .collect();
    assert!(
        left.is_empty() && !world.out().join(".tmp").exists(),
        "{left:?}"
    );
}

/// E05.
#[test]
fn a_run_killed_twenty_times_ends_like_one_that_was_not() {
    ends_like_one_that_was_not_killed(&[], 5, KILLS);
}

/// The first of the seeds that the long tests take.
fn first_seed() -> u64 {
    let given = std::env::var("CRASH_SEED").ok();
    given.map_or(100, |seed| seed.parse().unwrap())
}

/// E05, for each way to store.
#[test]
fn each_layout_survives_kills_at_other_moments() {
    let layouts: [&[&str]; 4] = [&[], &["--warc"], &["--warc-gz"], &[]];
    for (seed, layout) in (first_seed()..).zip(layouts.iter().chain(&layouts)) {
        ends_like_one_that_was_not_killed(layout, seed, kills());
    }
}

/// E05, where files are replaced: what is there is whole at any instant, though it may be newer
/// than its record; a run that follows brings both together.
#[test]
fn a_refresh_that_is_killed_leaves_files_and_records_that_agree() {
    let world = World::new(LabConfig::alike(3, &ExitConfig::http()));
    world.urls((0..150).map(|n| format!("http://o.test/versions/3/{n}")));
    let plain = ["--rate", "unlimited"];
    world.run(&plain).expect(0);
    let mut rng = StdRng::seed_from_u64(first_seed());
    let refresh = ["--refresh", "--rate", "500"];
    for moment in 0..kills() {
        let before = world.lab.origin_stats().requests;
        let mut child = world.start(&refresh);
        if moment % 4 != 0 {
            world.until_asked(before + 1);
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..300)));
        kill(&mut child);
        for (file, content) in world.stored() {
            let text = String::from_utf8(content).unwrap();
            let whole = text.starts_with("version ") && text.ends_with('\n');
            assert!(
                whole || file.ends_with(".writable"),
                "{}: {text}",
                file.display()
            );
        }
        // Now and then by a run that refreshes nothing.
        if moment % 3 == 2 {
            world.run(&plain).expect(0);
            assert_last_records_hold(&world, 150);
        }
    }
    world.run(&["--refresh", "--rate", "unlimited"]).expect(0);
    assert_last_records_hold(&world, 150);
    assert_nothing_unfinished(&world);
    assert!(!world.out().join(".refresh").exists());
}

#[track_caller]
fn assert_last_records_hold(world: &World, lines: usize) {
    let records = whole_records(&world.out());
    let last: HashMap<u64, &Record> = records.iter().map(|r| (r.line, r)).collect();
    assert_eq!(last.len(), lines);
    for record in last.values() {
        assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
        assert_eq!(digest(world, record), record.sha256, "{record:?}");
    }
}

/// Whether a program has a long file without a name open, as jobs wait in one.
fn waits_on_disk(child: &Child) -> bool {
    let open = std::fs::read_dir(format!("/proc/{}/fd", child.id()));
    open.into_iter().flatten().flatten().any(|entry| {
        let unnamed = |link: PathBuf| link.to_string_lossy().contains("/.tmp/");
        std::fs::read_link(entry.path()).is_ok_and(unnamed)
            && std::fs::metadata(entry.path()).is_ok_and(|meta| meta.len() >= 64 << 10)
    })
}

/// E05, where most of the list waits on disk.
#[test]
fn a_list_that_waits_on_disk_survives_kills() {
    let world = World::new(LabConfig::alike(3, &ExitConfig::http()));
    // Long URLs, so that few of them are too many for memory.
    let path = "path/".repeat(80);
    let giant = (0..20_000).map(|n| format!("http://giant.test/ok/10/{path}{n}"));
    let others = (0..100).map(|n| format!("https://o{n}.test/ok/10"));
    world.urls(giant.chain(others));
    let mut rng = StdRng::seed_from_u64(first_seed());
    let mut waited_on_disk = 0;
    for moment in 0..kills() {
        let before = world.lab.origin_stats().requests;
        let mut child = world.start(&["--rate", "200", "--cacert", "lab-ca.pem"]);
        if moment % 4 != 0 {
            world.until_asked(before + 1);
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..2000)));
        waited_on_disk += u64::from(waits_on_disk(&child));
        kill(&mut child);
        assert_eq!(tree(&world.out(), ".tmp").len(), 0, "kill {moment}");
    }
    println!("{waited_on_disk} of {} while jobs waited on disk", kills());
    assert!(
        waited_on_disk > 0,
        "none of the kills came while jobs waited on disk"
    );
    let run = world.run(&ARGS).expect(0);
    let lines: HashSet<u64> = run.records.iter().map(|record| record.line).collect();
    assert_eq!((run.records.len(), lines.len()), (20_100, 20_100));
    assert_eq!(run.count(Outcome::Ok), 20_100);
    let requests = world.lab.origin_stats().requests;
    assert!(requests <= 20_100 + kills() * 2 * 9, "{requests}");
    assert_nothing_unfinished(&world);
}

/// E05: the case as it is written: bodies of 1000 bytes over a second, five kills, half a
/// record by hand.
#[test]
fn half_a_record_is_dropped_and_its_job_done_again() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls((0..40).map(|n| format!("http://o.test/drip/{n}?bytes=1000&ms=1000")));
    let args = ["--rate", "unlimited", "--per-exit", "4"];
    for kill in 0..5u64 {
        let before = world.lab.origin_stats().requests;
        let mut child = world.start(&args);
        world.until_asked(before + 1);
        std::thread::sleep(Duration::from_millis(250 + 300 * kill));
        send(&child, Signal::KILL);
        child.wait().unwrap();
        assert!(
            world
                .stored()
                .values()
                .all(|body| body.len() == 1000 || body.len() == 1)
        );
    }
    let journal = world.out().join("results.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(
        &journal,
        text + "{\"id\":\"torn\",\"line\":7,\"url\":\"http://o.te",
    )
    .unwrap();
    let run = world.run(&args).expect(0);
    assert_eq!(run.count(Outcome::Ok), 40);
    assert_eq!(world.stored().len(), 40);
    let requests = world.lab.origin_stats().requests;
    assert!(requests <= 40 + 5 * 6, "{requests}");
    world.run(&args).expect(0);
    assert_eq!(world.lab.origin_stats().requests, requests);
    world.assert_whole();
}
