//! The main job through every kind of exit.

use exitfetch::lab::{ExitConfig, LabConfig, content};
use exitfetch::model::Outcome;

use crate::world::World;

/// 40 URLs over four sites, http and https in turn, all stored as they were served, caps kept
/// on the exits' own count.
fn fetches_through(exit: &ExitConfig) {
    let world = World::new(LabConfig::alike(3, exit));
    let urls: Vec<String> = (0..40)
        .map(|n| {
            let scheme = if n % 2 == 0 { "http" } else { "https" };
            format!("{scheme}://site-{}.test/bytes/{}", n % 4, 100 + n)
        })
        .collect();
    world.urls(&urls);
    let run = world
        .run(&[
            "--rate",
            "unlimited",
            "--per-exit",
            "2",
            "--cacert",
            "lab-ca.pem",
        ])
        .expect(0);
    assert_eq!(run.count(Outcome::Ok), 40);
    for record in &run.records {
        let url: url::Url = record.url.parse().unwrap();
        let expected = content(
            url.host_str().unwrap(),
            url.path(),
            record.bytes.unwrap() as usize,
        );
        assert_eq!(world.body(record), expected, "{}", record.url);
    }
    assert!(
        run.stdout
            .contains("peak in flight never above the cap: yes")
    );
    for exit in world.lab.exits() {
        let stats = exit.stats();
        assert!(
            stats.sockets.peak <= 2 && stats.in_flight.peak <= 2,
            "{stats:?}"
        );
    }
}

#[test]
fn an_http_exit_serves_http_and_https() {
    fetches_through(&ExitConfig::http());
}

#[test]
fn an_https_exit_serves_http_and_https() {
    fetches_through(&ExitConfig::https());
}

#[test]
fn a_socks5_exit_serves_http_and_https() {
    fetches_through(&ExitConfig::socks5());
}

#[test]
fn exits_with_a_login_are_given_it() {
    fetches_through(&ExitConfig::http().login("alice-s7", "p:@ss/#%"));
    fetches_through(&ExitConfig::https().login("alice-s7", "p:@ss/#%"));
    fetches_through(&ExitConfig::socks5().login("alice-s7", "p:@ss/#%"));
}
