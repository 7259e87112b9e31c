//! A fleet with one bad exit: the bad one gets little of the list and costs little time.

use std::collections::HashMap;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::{Run, World};

const JOBS: usize = 90;
/// What holds for all runs here.
const ARGS: [&str; 6] = [
    "--rate",
    "unlimited",
    "--per-exit",
    "2",
    "--cacert",
    "lab-ca.pem",
];
/// Short limits, so that an exit that hangs is noticed as such.
const SHORT: [&str; 4] = ["--connect-timeout", "1s", "--first-byte-timeout", "1500ms"];

/// 90 URLs of half a second each, or of a part of it, through these exits.
fn fetch(exits: Vec<ExitConfig>, scheme: &str, ms: u32, limits: &[&str]) -> (World, Run) {
    let world = World::new(LabConfig::with(exits));
    world.urls((0..JOBS).map(|n| format!("{scheme}://o-{}.test/delay/{ms}/{n}", n % 5)));
    let run = world.run(&[&ARGS[..], limits].concat()).expect(0);
    assert_eq!(run.count(Outcome::Ok), JOBS);
    world.assert_whole();
    (world, run)
}

/// F01, with three good exits of the same kind beside the bad one.
fn one_bad_exit(exit: &ExitConfig, behaviour: &str, scheme: &str, ms: u32) {
    let bad = one_bad_exit_within(exit, behaviour, (scheme, ms), &SHORT);
    assert_ne!(bad["state"], "healthy");
}

/// The same with other time limits, under which it need not have shown yet what it is. Answers
/// the bad one's row.
fn one_bad_exit_within(
    exit: &ExitConfig,
    behaviour: &str,
    (scheme, ms): (&str, u32),
    limits: &[&str],
) -> HashMap<String, String> {
    let good = vec![exit.clone(); 3];
    let bad = exit.clone().behaving(behaviour.parse().unwrap());
    let (_, without) = fetch(good.clone(), scheme, ms, limits);
    let (world, run) = fetch([vec![bad], good].concat(), scheme, ms, limits);
    let rows = world.exits_csv();
    let (bad, good) = rows.split_first().unwrap();
    let stats = world.exit(0).stats();
    println!(
        "{behaviour} ({scheme} through {}): {} attempts by its row, {} turned away by its own count; {:.2} s, {:.2} × the {:.2} s without it; {} {}",
        stats.scheme,
        bad["attempts"],
        stats.turned_away,
        run.took.as_secs_f64(),
        run.took.as_secs_f64() / without.took.as_secs_f64(),
        without.took.as_secs_f64(),
        bad["state"],
        bad["reason"],
    );
    let attempts: u64 = bad["attempts"].parse().unwrap();
    assert!((1..=10).contains(&attempts), "{attempts} attempts");
    assert!(stats.turned_away <= 10, "{stats:?}");
    assert_eq!(stats.requests, 0, "none reached the origin");
    assert_eq!(bad["ok"], "0");
    assert_ne!(bad["faults"], "0");
    assert_ne!(bad["reason"], "");
    for row in good {
        assert_eq!(
            (&*row["faults"], &*row["state"], &*row["reason"]),
            ("0", "healthy", "")
        );
    }
    // Less than a third more is the bound; a busy machine gets some seconds.
    let bound = without.took.mul_f64(1.3) + Duration::from_secs(4);
    assert!(run.took < bound, "{:?}, alone {:?}", run.took, without.took);
    bad.clone()
}

/// F01.
#[test]
fn an_exit_that_answers_502_at_once_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::http(), "502", "http", 500);
}

/// F01.
#[test]
fn an_exit_that_refuses_tunnels_with_502_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::http(), "connect:502", "https", 250);
}

/// F01.
#[test]
fn an_exit_that_resets_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::http(), "reset", "http", 500);
}

/// F01.
#[test]
fn an_exit_that_resets_socks_clients_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::socks5(), "reset", "http", 250);
}

/// F01.
#[test]
fn an_exit_that_wants_another_login_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::http(), "407", "http", 500);
}

/// F01.
#[test]
fn a_socks_exit_that_wants_another_login_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::socks5(), "407", "https", 250);
}

/// F01.
#[test]
fn an_exit_with_a_closed_port_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::https(), "refuse", "https", 500);
}

/// F01.
#[test]
fn an_exit_that_hangs_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::http(), "hang", "http", 500);
}

/// F01.
#[test]
fn an_exit_that_hangs_in_the_handshake_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::socks5(), "hang", "http", 500);
}

/// F01, where the time limits alone would let it keep its first jobs for 30 s, or 10.
#[test]
fn an_exit_that_hangs_costs_little_with_the_limits_that_are_the_default() {
    one_bad_exit_within(&ExitConfig::http(), "hang", ("http", 500), &[]);
    one_bad_exit_within(&ExitConfig::socks5(), "hang", ("https", 250), &[]);
}

/// An exit whose first answers were not waited for is not condemned, and no page is lost.
#[test]
fn an_exit_that_hangs_at_first_is_used_later() {
    let late = ExitConfig::http().behaving("first:2:hang".parse().unwrap());
    let world = World::new(LabConfig::with([late, ExitConfig::http()]));
    // Sixteen seconds of work that leave the other one idle now and then: after two the late one
    // is cut, and for six more it rests.
    world.urls((0..80).map(|n| format!("http://o-{}.test/delay/300/{n}", n % 5)));
    let args = ["--rate", "1", "--retries", "0"];
    let run = world.run(&[&ARGS[2..], &args].concat()).expect(0);
    assert_eq!(run.count(Outcome::Ok), 80);
    let late = &world.exits_csv()[0];
    assert_ne!(late["ok"], "0", "{late:?}");
    // Well below --first-byte-timeout.
    assert!(run.took < Duration::from_secs(28), "{:?}", run.took);
    world.assert_whole();
}

/// F01: a socks exit that reaches nobody.
#[test]
fn an_exit_without_a_way_out_gets_little_of_the_list() {
    one_bad_exit(&ExitConfig::socks5(), "socks:1", "http", 250);
}
