//! Peers that never come to an end: every place they hold comes back, and they hold few.

use std::time::Duration;

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::{Blame, Outcome};

use crate::world::World;

/// C04.
#[test]
fn every_place_comes_back_from_timeouts_in_dial_handshake_head_and_body() {
    let exits = [
        ExitConfig::http().named("good"),
        ExitConfig::http().named("mute").behaving(Behaviour::Hang),
        ExitConfig::socks5()
            .named("mute-socks")
            .behaving(Behaviour::HangHandshake),
    ];
    let world = World::new(LabConfig::with(exits));
    let silent = (0..5).map(|n| format!("http://silent.test/silent/{n}"));
    let half = (0..5).map(|n| format!("https://half.test/half/1000/{n}"));
    let good = (0..10).map(|n| format!("http://good.test/ok/100/{n}"));
    world.urls(silent.chain(half).chain(good));
    let run = world
        .run(&[
            "--rate",
            "unlimited",
            "--per-exit",
            "2",
            "--timeout",
            "500ms",
            "--retries",
            "3",
            "--origin-patience",
            "5s",
            "--cacert",
            "lab-ca.pem",
        ])
        .expect(3);
    assert_eq!(run.count(Outcome::Ok), 10);
    assert_eq!(run.count(Outcome::Failed), 10);
    for line in 11..=20 {
        assert_eq!(run.line(line).outcome, Outcome::Ok, "{:?}", run.line(line));
    }
    for position in 0..world.lab.exits().len() {
        let stats = world.exit_at_rest(position);
        assert!(stats.sockets.peak <= 2, "{stats:?}");
    }
    // 10 stalled URLs, 4 tries of 0.5 s, 2 slots: 10 s, and the tries at the mute exits.
    assert!(run.took < Duration::from_secs(40), "{:?}", run.took);
}

/// C04, only exits that never let anybody through: the run ends, nothing stays open.
#[test]
fn a_fleet_that_only_hangs_ends_the_run() {
    let exits = [
        ExitConfig::http().behaving(Behaviour::Hang),
        ExitConfig::https().behaving(Behaviour::Hang),
        ExitConfig::socks5().behaving(Behaviour::HangHandshake),
    ];
    let world = World::new(LabConfig::with(exits));
    world.urls((0..6).map(|n| format!("https://o.test/ok/10/{n}")));
    let run = world
        .run(&[
            "--rate",
            "unlimited",
            "--connect-timeout",
            "300ms",
            "--no-exit-timeout",
            "5s",
        ])
        .expect(4);
    assert_eq!(run.count(Outcome::Failed), 6);
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
    assert_eq!(world.lab.origin_stats().requests, 0);
}

/// C06: a list sorted by host, its first host silent.
fn a_silent_site_leaves_room(exit: &ExitConfig, scheme: &str) {
    let world = World::new(LabConfig::alike(1, exit));
    let silent = (0..24).map(|n| format!("{scheme}://a.test/silent/{n}"));
    let healthy = (0..20).map(|n| format!("{scheme}://b.test/ok/100/{n}"));
    world.urls(silent.chain(healthy));
    let run = world
        .run(&[
            "--rate",
            "unlimited",
            "--per-exit",
            "4",
            "--timeout",
            "1500ms",
            "--retries",
            "0",
            "--origin-patience",
            "8s",
            "--cacert",
            "lab-ca.pem",
        ])
        .expect(3);
    assert_eq!(run.count(Outcome::Ok), 20);
    assert_eq!(run.count(Outcome::Failed), 24);
    assert!(
        run.records
            .iter()
            .filter_map(|record| record.error.as_ref())
            .all(|error| error.blame != Blame::Exit)
    );
    let stats = world.lab.origin_stats();
    let host = |name: &str| stats.host(name).at_ns;
    let start = host("a.test")[0].min(host("b.test")[0]);
    let last = *host("b.test").iter().max().unwrap();
    assert!(
        Duration::from_nanos(last - start) < Duration::from_secs(3),
        "the healthy site waited {} ms",
        (last - start) / 1_000_000
    );
    let row = &world.exits_csv()[0];
    assert!(
        row["state"] == "healthy" || row["state"] == "limited",
        "{row:?}"
    );
}

/// C06.
#[test]
fn a_silent_site_does_not_hold_every_place_of_an_http_exit() {
    a_silent_site_leaves_room(&ExitConfig::http(), "http");
    a_silent_site_leaves_room(&ExitConfig::http(), "https");
}

/// C06.
#[test]
fn a_silent_site_does_not_hold_every_place_of_a_socks5_exit() {
    a_silent_site_leaves_room(&ExitConfig::socks5(), "http");
    a_silent_site_leaves_room(&ExitConfig::socks5(), "https");
}
