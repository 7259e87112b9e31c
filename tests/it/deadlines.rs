//! Peers that trickle, never end, keep silent or do not speak HTTP.

use std::collections::HashMap;
use std::time::Duration;

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::{Blame, ErrorKind, Outcome};

use crate::footprint::watched;
use crate::world::{ONE_RETRY, Run, World};

const LIMITS: [&str; 16] = [
    "--rate",
    "unlimited",
    "--timeout",
    "4s",
    "--first-byte-timeout",
    "1500ms",
    "--stall-timeout",
    "1s",
    "--connect-timeout",
    "1s",
    "--max-body",
    "200000",
    "--retries",
    "1",
    "--cacert",
    "lab-ca.pem",
];

const PEERS: [(&str, ErrorKind); 6] = [
    ("drip?bytes=100&ms=20000", ErrorKind::Timeout),
    ("drip-head?ms=20000", ErrorKind::FirstByteTimeout),
    ("endless", ErrorKind::TooLarge),
    ("endless?ms=100", ErrorKind::Timeout),
    ("silent", ErrorKind::FirstByteTimeout),
    ("half/1000", ErrorKind::StallTimeout),
];

fn leftovers(world: &World) -> Vec<String> {
    fn walk(dir: &std::path::Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, into);
            } else {
                into.push(path.display().to_string());
            }
        }
    }
    let mut files = Vec::new();
    walk(&world.out().join("bodies"), &mut files);
    files
}

fn each_limit_holds(world: &World, scheme: &str) -> Run {
    let urls = PEERS
        .iter()
        .enumerate()
        .map(|(n, (path, _))| format!("{scheme}://o{n}.test/{path}"));
    world.urls(urls.chain([format!("{scheme}://good.test/ok/1")]));
    let run = world.run(&LIMITS).expect(3);
    for (n, (path, kind)) in PEERS.iter().enumerate() {
        let record = run.line(n as u64 + 1);
        let error = record.error.as_ref().unwrap();
        assert_eq!(error.kind, *kind, "{path}: {record:?}");
        assert_ne!(error.blame, Blame::Exit, "{path}: {record:?}");
        assert!(record.file.is_none());
        let most = if *kind == ErrorKind::TooLarge { 1 } else { 2 };
        let asked = world
            .lab
            .origin_stats()
            .host(&format!("o{n}.test"))
            .requests;
        assert!(asked <= most, "{path}: asked {asked} times");
    }
    assert_eq!(run.line(PEERS.len() as u64 + 1).outcome, Outcome::Ok);
    assert_eq!(leftovers(world).len(), 1, "{:?}", leftovers(world));
    assert!(run.took < Duration::from_secs(50), "{:?}", run.took);
    run
}

/// D09, the origin's side.
#[test]
fn no_peer_beats_the_limits_of_head_gap_attempt_and_size() {
    std::thread::scope(|scope| {
        for (exit, scheme) in [
            (ExitConfig::http(), "http"),
            (ExitConfig::http(), "https"),
            (ExitConfig::socks5(), "http"),
        ] {
            scope.spawn(move || each_limit_holds(&World::new(LabConfig::alike(1, &exit)), scheme));
        }
    });
}

/// D09, the exits' side: mute ones beside a good one cost no job.
#[test]
fn exits_silent_in_dial_handshake_or_answer_have_the_faults() {
    let exits = [
        ExitConfig::http().named("good"),
        ExitConfig::http().named("mute").behaving(Behaviour::Hang),
        ExitConfig::socks5()
            .named("mute-socks")
            .behaving(Behaviour::HangHandshake),
        ExitConfig::https()
            .named("mute-tls")
            .behaving(Behaviour::Hang),
        ExitConfig::http()
            .named("no-syn")
            .behaving(Behaviour::DropSyn),
    ];
    let world = World::new(LabConfig::with(exits));
    world.urls((0..20).map(|n| format!("https://o{}.test/ok/100/{n}", n % 4)));
    let run = world.run(&LIMITS).expect(0);
    let rows: HashMap<String, _> = world
        .exits_csv()
        .into_iter()
        .map(|row| (row["id"].clone(), row))
        .collect();
    for name in ["mute", "mute-socks", "mute-tls", "no-syn"] {
        let row = &rows[name];
        assert_eq!(row["ok"], "0", "{row:?}");
        assert_ne!(row["faults"], "0", "{row:?}");
    }
    assert_eq!(rows["good"]["faults"], "0");
    assert!(run.took < Duration::from_secs(50), "{:?}", run.took);
}

/// D10.
fn only_http_is_an_answer(exit: &ExitConfig, scheme: &str) {
    let world = World::new(LabConfig::alike(2, exit));
    let args = [&ONE_RETRY[..], &["--fresh"]].concat();
    world.urls([format!("{scheme}://o.test/ok/1000")]);
    let (_, ordinary) = watched(&world, &args);
    world.urls([
        format!("{scheme}://a.test/no-http"),
        format!("{scheme}://b.test/head/20000"),
        format!("{scheme}://c.test/head/60000"),
        format!("{scheme}://d.test/head/5000000"),
        format!("{scheme}://e.test/switching"),
        format!("{scheme}://f.test/early"),
        format!("{scheme}://g.test/close"),
    ]);
    let (run, peak) = watched(&world, &args);
    let run = run.expect(3);
    let kind = |line| run.line(line).error.as_ref().map(|error| error.kind);
    assert_eq!(kind(1), Some(ErrorKind::NotHttp));
    assert_eq!(run.line(1).status, None);
    assert_eq!(run.line(2).outcome, Outcome::Ok, "{:?}", run.line(2));
    assert_eq!(run.line(3).outcome, Outcome::Ok, "{:?}", run.line(3));
    assert_eq!(kind(4), Some(ErrorKind::HeadTooLarge));
    assert_eq!(kind(5), Some(ErrorKind::NotHttp));
    assert_eq!(run.line(6).outcome, Outcome::Ok);
    assert_eq!(kind(7), Some(ErrorKind::NoAnswer));
    let large = world.lab.origin_stats().host("d.test").requests;
    assert!(large <= 2, "asked {large} times for the same large head");
    assert!(
        peak < ordinary + 30 * 1024,
        "{peak} KiB, ordinary {ordinary}"
    );
    // The three, and the one of the ordinary run.
    assert_eq!(leftovers(&world).len(), 4);
}

/// D10.
#[test]
fn text_is_no_answer_and_heads_are_read_up_to_a_limit_in_bounded_memory() {
    only_http_is_an_answer(&ExitConfig::http(), "http");
    only_http_is_an_answer(&ExitConfig::http(), "https");
    only_http_is_an_answer(&ExitConfig::socks5(), "http");
}

/// D10: an exit that is no proxy at all.
#[test]
fn a_mail_server_in_the_exit_list_costs_no_job() {
    for (exit, bad) in [
        (ExitConfig::http(), Behaviour::Mail),
        (ExitConfig::socks5(), Behaviour::Mail),
        (ExitConfig::https(), Behaviour::Mail),
        (ExitConfig::http(), Behaviour::Garbage),
        (ExitConfig::socks5(), Behaviour::Garbage),
    ] {
        for scheme in ["http", "https"] {
            let exits = [
                exit.clone().named("good"),
                exit.clone().named("mail").behaving(bad.clone()),
            ];
            let world = World::new(LabConfig::with(exits));
            world.urls((0..20).map(|n| format!("{scheme}://o{}.test/ok/100/{n}", n % 3)));
            let run = world.run(&LIMITS).expect(0);
            assert_eq!(run.count(Outcome::Ok), 20);
            let row = &world.exits_csv()[1];
            assert_eq!((&*row["id"], &*row["ok"]), ("mail", "0"), "{row:?}");
            assert_ne!(row["faults"], "0", "{row:?}");
        }
    }
}
