//! A large fleet and a long list: every URL once, every cap kept.

use std::collections::HashSet;
use std::os::unix::fs::symlink;
use std::path::Path;

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
    // 20,000 files are deleted faster in memory than on some disks.
    let memory = Path::new("/dev/shm");
    let out = memory
        .is_dir()
        .then(|| tempfile::tempdir_in(memory).unwrap());
    if let Some(out) = &out {
        symlink(out.path(), world.out()).unwrap();
    }
    let run = world
        .run(&["--rate", "unlimited", "--per-exit", "3", "--min-free", "0"])
        .expect(0);
    assert_eq!(run.count(Outcome::Ok), 20_000);
    assert!(
        run.stdout
            .contains("peak in flight never above the cap: yes")
    );
    let files: HashSet<_> = run.records.iter().map(|record| &record.file).collect();
    assert_eq!(files.len(), 20_000);
    assert_eq!(world.lab.origin_stats().requests, 20_000);
    let (mut served, mut late) = (0, 0);
    for exit in world.lab.exits() {
        let stats = exit.stats();
        // A socket that the program has closed and the kernel knows as closed counts here until
        // the lab comes to read its end, which a busy machine may delay.
        assert!(
            stats.sockets.peak <= 4 && stats.in_flight.peak <= 3,
            "{stats:?}"
        );
        late += u64::from(stats.sockets.peak > 3);
        served += u64::from(stats.requests > 0);
    }
    assert_eq!(served, 200, "every exit has work");
    assert!(late <= 2, "{late} exits saw a socket more than the cap");
    // Without rates nobody waits for a budget.
    let budget: f64 = run
        .records
        .iter()
        .map(|record| record.waits.unwrap_or_default().budget_ms)
        .sum();
    assert!(budget < 1.0, "{budget} ms");
}
