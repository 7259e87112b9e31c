//! No exit is left: the run says so, ends, and asks the origin nothing.

use std::time::Duration;

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::{Blame, ErrorKind, Outcome};

use crate::world::{Run, World};

const JOBS: usize = 50;
/// A fixed seed: how long exits rest is drawn, and a bound is asserted.
const ARGS: [&str; 10] = [
    "--seed",
    "1",
    "--rate",
    "unlimited",
    "--timeout",
    "3s",
    "--connect-timeout",
    "2s",
    "--cacert",
    "lab-ca.pem",
];

/// One exit per behaviour.
fn world(exit: &ExitConfig, behaviours: &[&str], scheme: &str) -> World {
    let exits = behaviours
        .iter()
        .map(|word| exit.clone().behaving(word.parse().unwrap()));
    let world = World::new(LabConfig::with(exits));
    world.urls((0..JOBS).map(|n| format!("{scheme}://o-{}.test/ok/{n}", n % 7)));
    world
}

#[track_caller]
fn assert_dead(world: &World, run: &Run) {
    assert_eq!(run.count(Outcome::Failed), JOBS, "{}", run.stdout);
    assert_eq!(run.records.len(), JOBS);
    let mut by_end = 0;
    for record in &run.records {
        let error = record.error.as_ref().unwrap();
        assert!(
            !matches!(error.blame, Blame::Origin | Blame::Job),
            "{error:?}"
        );
        by_end += usize::from(error.kind == ErrorKind::NoUsableExit);
    }
    // One or two may have used up their tries before the end.
    assert!(
        by_end >= JOBS - 5,
        "{by_end} of {JOBS} ended with the fleet"
    );
    assert_eq!(world.lab.origin_stats().requests, 0);
    let summary = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    for (row, facts) in world
        .exits_csv()
        .iter()
        .zip(summary["exits"].as_array().unwrap())
    {
        assert_ne!(row["reason"], "", "{row:?}");
        assert!(
            facts["last_error"].as_str().is_some_and(|e| !e.is_empty()),
            "{facts}"
        );
    }
    assert!(
        run.stderr.contains("no usable exit") || run.stderr.contains("no exit"),
        "{}",
        run.stderr
    );
}

/// F02: closed port, reset, 407, silence; then the same directory with exits that work.
#[test]
fn four_dead_exits_end_the_run_within_a_minute() {
    let world = world(
        &ExitConfig::http(),
        &["refuse", "reset", "407", "hang"],
        "http",
    );
    let run = world.run(&ARGS).expect(4);
    println!(
        "four dead exits: {:.1} s\n{}",
        run.took.as_secs_f64(),
        run.stdout
    );
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
    assert_dead(&world, &run);
    let rows = world.exits_csv();
    assert!(rows[2]["reason"].contains("407"), "{:?}", rows[2]);
    assert!(world.exit(2).stats().turned_away <= 4);
    // Each one's last error is to be read in its row, in the file and in the table.
    let table: Vec<&str> = run.stdout.lines().skip(1).collect();
    let said = ["Connection refused", "Connection reset", "407", "no "];
    for ((row, shown), said) in rows.iter().zip(table).zip(said) {
        assert!(row["reason"].contains(said), "no {said}: {row:?}");
        assert!(shown.contains(said), "no {said}: {shown}");
    }

    for exit in world.lab.exits() {
        world.runtime.block_on(exit.set_behaviour(Behaviour::Good));
    }
    let run = world.run(&ARGS).expect(0);
    assert_eq!(run.count(Outcome::Ok), JOBS);
}

/// F02 with every limit as it is by default: the exit that hangs keeps its jobs for 30 s.
#[test]
fn four_dead_exits_end_the_run_within_a_minute_with_the_default_limits() {
    let dead = ["refuse", "reset", "407", "hang"];
    let world = world(&ExitConfig::http(), &dead, "http");
    let run = world.run(&["--seed", "1"]).expect(4);
    println!("four dead exits, defaults: {:.1} s", run.took.as_secs_f64());
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
    assert_dead(&world, &run);
}

/// What the exit that hangs has under way is not waited for.
#[test]
fn no_exit_timeout_shortens_it_with_the_default_limits() {
    let dead = ["refuse", "reset", "407", "hang"];
    let world = world(&ExitConfig::http(), &dead, "http");
    let run = world
        .run(&["--seed", "1", "--no-exit-timeout", "5s"])
        .expect(4);
    println!(
        "four dead exits, --no-exit-timeout 5s: {:.1} s",
        run.took.as_secs_f64()
    );
    assert!(run.took < Duration::from_secs(25), "{:?}", run.took);
    assert_dead(&world, &run);
    for position in 0..world.lab.exits().len() {
        world.exit_at_rest(position);
    }
}

/// F02, in tunnels through SOCKS5.
#[test]
fn four_dead_socks_exits_end_the_run_within_a_minute() {
    let dead = ["refuse", "reset", "407", "hang"];
    let world = world(&ExitConfig::socks5(), &dead, "https");
    let run = world.run(&ARGS).expect(4);
    println!(
        "four dead socks exits: {:.1} s\n{}",
        run.took.as_secs_f64(),
        run.stdout
    );
    assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
    assert_dead(&world, &run);
    assert!(world.exit(2).stats().turned_away <= 4);
}

/// The bound is the user's.
#[test]
fn no_exit_timeout_shortens_it() {
    let world = world(
        &ExitConfig::http(),
        &["refuse", "reset", "502", "hang"],
        "https",
    );
    let run = world
        .run(&[&ARGS[..], &["--no-exit-timeout", "5s"]].concat())
        .expect(4);
    println!("with --no-exit-timeout 5s: {:.1} s", run.took.as_secs_f64());
    assert!(run.took < Duration::from_secs(25), "{:?}", run.took);
    assert_dead(&world, &run);
}

/// All exits evicted: there is nothing to wait for.
#[test]
fn a_fleet_whose_logins_are_all_refused_ends_at_once() {
    for (exit, scheme) in [
        (ExitConfig::http(), "http"),
        (ExitConfig::http(), "https"),
        (ExitConfig::https(), "https"),
        (ExitConfig::socks5(), "http"),
    ] {
        let world = world(&exit, &["407", "407"], scheme);
        let run = world.run(&ARGS).expect(4);
        assert!(run.took < Duration::from_secs(10), "{:?}", run.took);
        assert_dead(&world, &run);
        for row in world.exits_csv() {
            assert_eq!(row["state"], "evicted");
            assert!(
                row["reason"].contains("407") || row["reason"].contains("credentials"),
                "{row:?}"
            );
        }
    }
}
