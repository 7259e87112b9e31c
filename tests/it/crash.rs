//! `kill -9` at any moment: nothing recorded is lost, nothing looks whole that is not.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{Outcome, Record};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rustix::process::Signal;

use crate::shells::{send, tree, until, whole_records};
use crate::world::World;

const KILLS: u64 = 20;
const ARGS: [&str; 6] = [
    "--rate",
    "unlimited",
    "--per-exit",
    "2",
    "--cacert",
    "lab-ca.pem",
];

/// What a record says whenever and through whichever exit its job was done.
fn lasting(record: &Record) -> String {
    let Record {
        id, url, final_url, ..
    } = record;
    let (status, file, bytes) = (record.status, &record.file, record.bytes);
    let (sha256, kind) = (&record.sha256, &record.content_type);
    format!("{id} {url} {final_url:?} {status:?} {file:?} {bytes:?} {sha256:?} {kind:?}")
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

fn clean_run(world: &World) -> (BTreeMap<PathBuf, Vec<u8>>, HashMap<u64, String>) {
    let args = [&ARGS[..], &["--out", "clean"]].concat();
    world.run(&args).expect(0);
    let out = world.dir().join("clean");
    let records = whole_records(&out);
    let lasting = records.iter().map(|r| (r.line, lasting(r))).collect();
    (tree(&out, "bodies"), lasting)
}

/// What may be under a final name at any instant: whole bodies, and one for each ok record.
fn check(world: &World, clean: &BTreeMap<PathBuf, Vec<u8>>, moment: u64) {
    let stored = world.stored();
    for (file, content) in &stored {
        if file.ends_with(".writable") {
            continue;
        }
        assert!(
            clean.get(file).is_some_and(|whole| whole == content),
            "after kill {moment}: {} is not whole",
            file.display()
        );
    }
    for record in whole_records(&world.out()) {
        if record.outcome == Outcome::Ok {
            let file = record.file.as_ref().unwrap();
            assert!(
                stored.contains_key(Path::new(file)),
                "after kill {moment}: no {file}"
            );
        }
    }
}

/// E05: twenty kills at moments from a seed, resumed each time; at the end everything equals
/// a run that nobody killed, byte by byte.
#[test]
fn a_run_killed_twenty_times_ends_like_one_that_was_not() {
    let world = World::new(LabConfig::with([
        ExitConfig::http(),
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ]));
    world.urls(urls());
    let (clean, lasting_clean) = clean_run(&world);
    let clean_requests = world.lab.origin_stats().requests;
    world.lab.reset();

    let mut rng = StdRng::seed_from_u64(5);
    for kill in 0..KILLS {
        let before = world.lab.origin_stats().requests;
        let recorded = whole_records(&world.out()).len();
        let mut child = world.start(&ARGS);
        // Most kills while requests are under way, half of these not before something is
        // recorded, however slow the machine is; some at the very start.
        if kill % 5 != 4 {
            let all = || whole_records(&world.out()).len() >= 280;
            until("a request", || {
                world.lab.origin_stats().requests > before || all()
            });
            if kill % 2 == 0 {
                until("a record", || {
                    whole_records(&world.out()).len() > recorded || all()
                });
            }
        }
        std::thread::sleep(Duration::from_millis(rng.random_range(0..200)));
        let _ = child
            .try_wait()
            .unwrap()
            .is_none()
            .then(|| send(&child, Signal::KILL));
        child.wait().unwrap();
        check(&world, &clean, kill);
    }
    let recorded = whole_records(&world.out()).len();
    let run = world.run(&ARGS).expect(0);
    println!("{recorded} of 280 recorded under {KILLS} kills");
    assert!((10..280).contains(&recorded), "{recorded}");

    assert_eq!(world.stored(), clean, "the same files with the same bytes");
    let ok = run.records.iter().filter(|r| r.outcome == Outcome::Ok);
    let ended: HashMap<u64, String> = ok.map(|r| (r.line, lasting(r))).collect();
    assert_eq!(ended, lasting_clean);
    assert_eq!(run.count(Outcome::Ok), 280, "one ok record each");
    assert!(tree(&world.out(), ".tmp").is_empty());
    let requests = world.lab.origin_stats().requests;
    // At most eight under way at each kill, three requests each.
    assert!(
        requests <= clean_requests + KILLS * 8 * 3,
        "{requests} requests, {clean_requests} without kills"
    );
    world.run(&ARGS).expect(0);
    assert_eq!(
        world.lab.origin_stats().requests,
        requests,
        "nothing is left"
    );
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
