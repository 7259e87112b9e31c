//! Sites that ask for less: whatever form the request has, it is the site's, not the URL's.

use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{ErrorKind, Outcome};

use crate::world::World;

/// Path value, least and most seconds between the two requests.
const VALUES: [(&str, f64, f64); 11] = [
    ("1", 1.0, 3.0),
    ("0", 0.2, 3.0),
    ("-5", 0.2, 3.0),
    ("1m0s", 0.2, 3.0),
    ("0.5", 0.2, 3.0),
    ("1,2", 0.2, 3.0),
    ("", 0.2, 3.0),
    ("%20%202", 2.0, 4.0),
    ("soon", 0.2, 3.0),
    ("in:-10", 0.0, 3.0),
    ("in:4", 2.9, 6.5),
];

/// D03, values that are waited out or count as absent.
#[test]
fn retry_after_is_waited_out_and_nonsense_is_as_if_absent() {
    for (exit, status) in [(ExitConfig::http(), 429), (ExitConfig::socks5(), 503)] {
        let world = World::new(LabConfig::alike(2, &exit));
        world.urls(VALUES.iter().enumerate().map(|(n, (value, ..))| {
            format!("http://o{n}.test/retry-after/{value}?status={status}")
        }));
        let run = world.run(&["--rate", "unlimited"]).expect(0);
        assert_eq!(run.count(Outcome::Ok), VALUES.len());
        let stats = world.lab.origin_stats();
        for (n, (value, least, most)) in VALUES.iter().enumerate() {
            let host = stats.host(&format!("o{n}.test"));
            assert_eq!(host.requests, 2, "{value}");
            let gap = host.least_gap().unwrap();
            // Without a usable field a 503 is a failure like any other: full jitter from zero.
            let least = if status == 503 && *least == 0.2 {
                0.0
            } else {
                *least
            };
            assert!((least..*most).contains(&gap), "{status} {value:?}: {gap} s");
        }
    }
}

const ENORMOUS: [&str; 4] = [
    "99999999999999999999",
    "9223372036854775807",
    "in:250000000000",
    "18446744073709551616",
];

fn enormous(world: &World) {
    let enormous = ENORMOUS.iter().enumerate().flat_map(|(n, value)| {
        [429, 503]
            .map(|status| format!("http://o{n}-{status}.test/retry-after/{value}?status={status}"))
    });
    let others = (0..10).map(|n| format!("http://good.test/ok/100/{n}"));
    world.urls(enormous.chain(others));
}

fn asked_once(world: &World) {
    let stats = world.lab.origin_stats();
    assert_eq!(stats.host("good.test").requests, 10);
    for n in 0..ENORMOUS.len() {
        for status in [429, 503] {
            assert_eq!(stats.host(&format!("o{n}-{status}.test")).requests, 1);
        }
    }
}

/// D03: an enormous value fails the job at once.
#[test]
fn a_pause_longer_than_the_longest_allowed_fails_the_job_and_no_other() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    enormous(&world);
    let run = world.run(&["--rate", "unlimited"]).expect(3);
    assert_eq!(run.count(Outcome::Ok), 10);
    for record in run.records.iter().filter(|r| r.outcome == Outcome::Failed) {
        assert_eq!(record.error.as_ref().unwrap().kind, ErrorKind::OriginPaused);
        assert_eq!(record.attempts, 1);
    }
    asked_once(&world);
}

/// D03: an enormous value that would be allowed is waited for until the run's time is up.
#[test]
fn an_enormous_pause_does_not_overflow_and_holds_up_nobody_else() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    enormous(&world);
    let run = world.run(&[
        "--rate",
        "unlimited",
        "--max-pause",
        "10000000h",
        "--max-time",
        "3s",
        "--per-exit",
        "1",
    ]);
    let ok = run.count(Outcome::Ok);
    assert_eq!(ok, 10, "{}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    run.expect(5);
    asked_once(&world);
}

/// D04.
#[test]
fn a_429_slows_its_site_for_all_jobs_and_nobody_else() {
    for exit in [ExitConfig::http()] {
        let world = World::new(LabConfig::alike(2, &exit).logging(10_000));
        let limited = (0..60).map(|n| format!("http://slow.test/rate-limited/8/{n}"));
        let healthy = (0..40).map(|n| format!("http://b.test/ok/100/{n}"));
        world.urls(limited.chain(healthy));
        let run = world
            .run(&["--per-exit", "10", "--rate", "20", "--retries", "4"])
            .expect(0);
        assert_eq!(run.count(Outcome::Ok), 100);
        let stats = world.lab.origin_stats();
        let slow = stats.host("slow.test");
        let refused = slow.statuses.get(&429).copied().unwrap_or_default();
        assert!(refused < 60, "{refused} answers of 429");
        let other = stats.host("b.test").at_ns;
        let took = Duration::from_nanos(other.last().unwrap() - other[0]);
        assert!(took < Duration::from_secs(8), "{took:?}");
        let rows = world.exits_csv();
        let counted: u64 = rows
            .iter()
            .map(|row| row["status_429"].parse::<u64>().unwrap())
            .sum();
        assert_eq!(counted, refused);
        for row in &rows {
            assert!(
                row["state"] == "healthy" || row["state"] == "limited",
                "{row:?}"
            );
        }
        // In the last third of the requests, fewer than a fifth were too many.
        let from = slow.at_ns[slow.at_ns.len() * 2 / 3];
        let late = slow.at_ns.iter().filter(|&&at| at >= from);
        let (refused, all) = refused_since(&slow.at_ns, from);
        assert_eq!(all, late.count());
        assert!(refused * 5 < all, "{refused} of {all} in the last third");
    }
}

/// How many of the requests since `from` a limit of eight a second turned away, and of how many.
fn refused_since(at: &[u64], from: u64) -> (usize, usize) {
    let mut admitted: Vec<u64> = Vec::new();
    let mut refused = 0;
    for &now in at {
        let window = admitted.iter().filter(|&&then| then + 1_000_000_000 > now);
        if window.count() < 8 {
            admitted.push(now);
        } else if now >= from {
            refused += 1;
        }
    }
    (refused, at.iter().filter(|&&then| then >= from).count())
}
