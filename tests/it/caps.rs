//! The cap of an exit: leases that live as long as the body, sockets that count while idle.
//!
//! All numbers are the exits' own: what they accepted, not what the program says of itself.

use std::collections::HashMap;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, ExitStats, LabConfig};
use exitfetch::model::Outcome;

use crate::world::{Run, World};

const FREE: [&str; 6] = [
    "--rate",
    "unlimited",
    "--cacert",
    "lab-ca.pem",
    "--per-origin",
    "100",
];

/// A run without a budget; `more` are further flags.
fn run(world: &World, per_exit: &str, more: &[&str]) -> Run {
    let args: Vec<&str> = FREE
        .into_iter()
        .chain(["--per-exit", per_exit])
        .chain(more.iter().copied())
        .collect();
    world.run(&args)
}

/// The exit, the program's own table and the proof line agree on the peak.
#[track_caller]
fn holds(world: &World, run: &Run, cap: u32) -> ExitStats {
    let stats = world.exit_at_rest(0);
    assert!(stats.sockets.peak <= cap, "{stats:?}");
    assert!(stats.in_flight.peak <= cap, "{stats:?}");
    let row = &world.exits_csv()[0];
    assert_eq!(row["cap"], cap.to_string());
    assert_eq!(row["peak"], cap.to_string());
    assert_eq!(row["peak_sockets"], stats.sockets.peak.to_string());
    let proof = "peak in flight never above the cap: yes";
    assert!(run.stdout.contains(proof), "{}", run.stdout);
    stats
}

/// Twelve bodies of 500 ms each, two at a time.
fn a_slow_body_holds_its_place(exit: &ExitConfig, scheme: &str) {
    let world = World::new(LabConfig::alike(1, exit));
    world.urls((0..12).map(|n| format!("{scheme}://o.test/drip/{n}?bytes=20&ms=500")));
    let run = run(&world, "2", &[]).expect(0);
    let stats = holds(&world, &run, 2);
    assert_eq!((stats.in_flight.peak, stats.sockets.peak), (2, 2));
    let origin = world.lab.origin_stats();
    assert_eq!(origin.host("o.test").in_flight.peak, 2);
    let least = Duration::from_millis(12 * 500 / 2);
    assert!(run.took >= least, "{:?}", run.took);
}

/// C01.
#[test]
fn a_lease_lasts_until_the_body_is_read_through_every_exit() {
    for scheme in ["http", "https"] {
        a_slow_body_holds_its_place(&ExitConfig::http(), scheme);
        a_slow_body_holds_its_place(&ExitConfig::socks5(), scheme);
    }
    a_slow_body_holds_its_place(&ExitConfig::https(), "https");
}

/// C01, bodies that do not end well: cut, reset, stalled, too large, too slow, undecodable.
#[test]
fn a_lease_whose_body_breaks_is_kept_until_then_and_given_back() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(1, &exit));
        let routes = [
            "truncated/5000",
            "reset-body/5000",
            "half/5000",
            "endless",
            "drip?ms=20000",
            "gzip-lie",
        ];
        let urls: Vec<String> = (0..12)
            .map(|n| {
                let scheme = if n % 2 == 0 { "http" } else { "https" };
                let route = routes[n / 2];
                format!("{scheme}://bad-{n}.test/{route}")
            })
            .chain((0..8).map(|n| format!("http://good.test/ok/100/{n}")))
            .collect();
        world.urls(urls);
        let limits = [
            "--stall-timeout",
            "400ms",
            "--timeout",
            "900ms",
            "--max-body",
            "300000",
            "--retries",
            "0",
            "--compressed",
        ];
        let run = run(&world, "2", &limits).expect(3);
        assert_eq!(run.count(Outcome::Ok), 8);
        assert_eq!(run.count(Outcome::Failed), 12);
        holds(&world, &run, 2);
    }
}

/// C01, statuses that are not stored: their bodies count like any other.
#[test]
fn a_body_nobody_wants_holds_its_place_too() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let unwanted = (0..6).map(|n| format!("http://o.test/redirect-to/{n}?url=/ok/1/{n}"));
    let large = (0..6).map(|n| format!("https://o.test/status/404/{n}"));
    world.urls(unwanted.chain(large));
    let run = run(&world, "2", &[]).expect(3);
    assert_eq!(run.count(Outcome::Ok), 6);
    holds(&world, &run, 2);
}

/// C02: nine URLs over three origins; a tunnel to one is of no use to the next.
#[test]
fn an_idle_tunnel_is_closed_before_the_next_one_is_dialled() {
    for scheme in ["http", "https"] {
        let world = World::new(LabConfig::alike(1, &ExitConfig::socks5()));
        world.urls((0..9).map(|n| format!("{scheme}://o{}.test/ok/300/{n}", n % 3)));
        let run = run(&world, "1", &[]).expect(0);
        let stats = holds(&world, &run, 1);
        assert_eq!(stats.sockets.peak, 1);
    }
}

/// C02: absolute-form and tunnels share the exit's places.
#[test]
fn plain_and_tunnelled_requests_of_many_origins_share_the_sockets_of_an_exit() {
    for exit in [ExitConfig::http(), ExitConfig::https()] {
        let world = World::new(LabConfig::alike(1, &exit));
        let urls: Vec<String> = (0..60)
            .map(|n| {
                let scheme = if n % 3 == 0 { "http" } else { "https" };
                format!("{scheme}://o{}.test/ok/500/{n}", n % 7)
            })
            .collect();
        world.urls(&urls);
        let run = run(&world, "2", &[]).expect(0);
        assert_eq!(run.count(Outcome::Ok), 60);
        holds(&world, &run, 2);
    }
}

/// C02: an idle socket that fits is used again.
#[test]
fn many_requests_of_one_origin_need_few_connections() {
    for (exit, url) in [
        (ExitConfig::http(), "http://o.test"),
        (ExitConfig::http(), "https://o.test"),
        (ExitConfig::https(), "https://o.test"),
        (ExitConfig::socks5(), "http://o.test"),
        (ExitConfig::socks5(), "https://o.test:8443"),
    ] {
        let world = World::new(LabConfig::alike(1, &exit));
        world.urls((0..60).map(|n| format!("{url}/ok/500/{n}")));
        let run = run(&world, "2", &[]).expect(0);
        let stats = holds(&world, &run, 2);
        assert!(stats.connections <= 6, "{url}: {stats:?}");
    }
}

/// C02: peers that end a kept-alive socket by themselves, with and without a word before.
#[test]
fn a_socket_that_the_other_side_closed_is_replaced_without_a_second_one_beside_it() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(1, &exit));
        let urls: Vec<String> = (0..40)
            .map(|n| {
                let scheme = if n % 2 == 0 { "http" } else { "https" };
                let route = ["stale/100", "last/100", "garbage-after", "http10/100"][n / 2 % 4];
                format!("{scheme}://o{}.test/{route}/{n}", n % 3)
            })
            .collect();
        world.urls(&urls);
        let run = run(&world, "2", &[]).expect(0);
        assert_eq!(run.count(Outcome::Ok), 40);
        holds(&world, &run, 2);
        let faults: u64 = world.exits_csv()[0]["faults"].parse().unwrap();
        assert_eq!(faults, 0);
    }
}

/// A provider that answers the socket above its limit with a refusal never has to.
#[test]
fn an_exit_that_refuses_more_sockets_than_the_cap_refuses_nothing() {
    for exit in ["http", "socks5"] {
        let behaviour = "limit:2:reset".parse().unwrap();
        let config = match exit {
            "http" => ExitConfig::http(),
            _ => ExitConfig::socks5(),
        };
        let world = World::new(LabConfig::alike(1, &config.behaving(behaviour)));
        let urls: Vec<String> = (0..60)
            .map(|n| {
                let scheme = if n % 2 == 0 { "http" } else { "https" };
                format!("{scheme}://o{}.test/ok/2000/{n}", n % 5)
            })
            .collect();
        world.urls(&urls);
        let run = run(&world, "2", &[]).expect(0);
        let stats = holds(&world, &run, 2);
        assert_eq!(stats.turned_away, 0);
        assert!(run.records.iter().all(|record| record.attempts == 1));
    }
}

/// Groups: the cap of an account above the caps of its exits.
#[test]
fn the_exits_of_a_group_share_its_cap_and_others_do_not_wait_for_it() {
    let account = |n| ExitConfig::http().named(n).attributes("group=account");
    let exits = [account("a1"), account("a2"), account("a3")]
        .into_iter()
        .chain([ExitConfig::http().named("own")]);
    let world = World::new(LabConfig::with(exits).logging(1000));
    world.write("exitfetch.toml", "[groups.account]\ncap = 2\n");
    world.urls((0..40).map(|n| format!("http://o{}.test/delay/100/{n}", n % 4)));
    let run = run(&world, "2", &[]).expect(0);
    let rows: HashMap<String, _> = world
        .exits_csv()
        .into_iter()
        .map(|row| (row["id"].clone(), row))
        .collect();
    assert_eq!(rows["a1"]["group"], "account");
    // Two places of the group and two of the exit beside it: both were filled.
    let origin = world.lab.origin_stats();
    assert_eq!(origin.in_flight.peak, 4);
    let summary = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["groups"][0]["cap"], 2);
    assert_eq!(summary["groups"][0]["peak"], 2);
    let served = |name: &str| -> u64 { rows[name]["ok"].parse().unwrap() };
    assert_eq!(
        served("a1") + served("a2") + served("a3") + served("own"),
        40
    );
    assert!(served("own") >= 10 && served("a1") + served("a2") + served("a3") >= 10);
    assert!(run.took >= Duration::from_millis(1000), "{:?}", run.took);
}
