//! An exit that was bad for a while comes back.

use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::World;

const ARGS: [&str; 6] = [
    "--rate",
    "unlimited",
    "--timeout",
    "2s",
    "--cacert",
    "lab-ca.pem",
];

fn recovers(exit: ExitConfig, behaviour: &str, scheme: &str) {
    let exit = exit.behaving(behaviour.parse().unwrap());
    let world = World::new(LabConfig::with([exit]));
    world.urls((0..20).map(|n| format!("{scheme}://o.test/ok/{n}")));
    let run = world
        .run(&[&ARGS[..], &["--retries", "8"]].concat())
        .expect(0);
    println!(
        "{behaviour} ({scheme}): back after {:.1} s",
        run.took.as_secs_f64()
    );
    assert_eq!(run.count(Outcome::Ok), 20);
    assert!(run.took < Duration::from_secs(170));
    assert_eq!(world.exits_csv()[0]["ok"], "20");
}

/// F03: the only exit, six faults long.
#[test]
fn the_only_exit_comes_back_after_six_faults() {
    recovers(ExitConfig::http(), "first:6:502", "http");
}

/// F03.
#[test]
fn the_only_exit_comes_back_after_six_refused_tunnels() {
    recovers(ExitConfig::http(), "first:6:connect:502", "https");
}

/// F03.
#[test]
fn the_only_socks_exit_comes_back_after_six_resets() {
    recovers(ExitConfig::socks5(), "first:6:reset", "http");
}

/// F03: probes that end in the origin's faults or in timeouts free the probe's place.
#[test]
fn probes_that_end_as_the_origins_fault_show_a_working_exit() {
    let exit = ExitConfig::http().behaving("first:6:502".parse().unwrap());
    let world = World::new(LabConfig::with([exit]));
    let gone = (0..5).map(|n| format!("http://o.test/status/404/{n}"));
    let silent = (0..2).map(|n| format!("http://o.test/silent/{n}"));
    let good = (0..13).map(|n| format!("http://o.test/ok/{n}"));
    world.urls(gone.chain(silent).chain(good));
    let run = world
        .run(&[&ARGS[..], &["--retries", "2"]].concat())
        .expect(3);
    println!("404 and silence first: {:.1} s", run.took.as_secs_f64());
    assert_eq!(run.count(Outcome::Ok), 13, "{}", run.stdout);
    for line in 1..=5 {
        assert_eq!(run.line(line).status, Some(404));
    }
    let row = &world.exits_csv()[0];
    assert!(!["ejected", "evicted"].contains(&&*row["state"]), "{row:?}");
}
