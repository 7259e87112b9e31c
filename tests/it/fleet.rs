//! A large fleet and a long list: every URL once, every cap kept.

use std::collections::HashSet;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::World;

/// 200 exits of all kinds, 20,000 URLs of 500 sites.
#[test]
fn two_hundred_exits_fetch_twenty_thousand_urls_within_their_caps() {
    let exits = (0..200).map(|n| match n % 10 {
        0..=5 => ExitConfig::http(),
        6..=8 => ExitConfig::socks5(),
        _ => ExitConfig::http().login("user", "word"),
    });
    let world = World::new(LabConfig::with(exits));
    world.urls((0..20_000).map(|n| format!("http://o{}.test/ok/{}/{n}", n % 500, 50 + n % 200)));
    let run = world
        .run(&["--rate", "unlimited", "--per-exit", "3"])
        .expect(0);
    assert_eq!(run.count(Outcome::Ok), 20_000);
    assert!(
        run.stdout
            .contains("peak in flight never above the cap: yes")
    );
    let files: HashSet<_> = run.records.iter().map(|record| &record.file).collect();
    assert_eq!(files.len(), 20_000);
    assert_eq!(world.lab.origin_stats().requests, 20_000);
    let mut served = 0;
    for exit in world.lab.exits() {
        let stats = exit.stats();
        assert!(
            stats.sockets.peak <= 3 && stats.in_flight.peak <= 3,
            "{stats:?}"
        );
        served += u64::from(stats.requests > 0);
    }
    assert_eq!(served, 200, "every exit has work");
    let took: f64 = run.took.as_secs_f64();
    eprintln!("20,000 URLs in {took:.1} s");
}
