//! What people who watch are told: origins that hold back, exits by state, jobs given up.

use std::time::Duration;

use crate::model::{FaultKind, Phase, Time};

use super::super::*;
use super::world::*;

fn told(world: &mut World) -> Vec<(String, usize, u64, &'static str)> {
    let held = world.scheduler.held_back(world.now).into_iter();
    held.map(|held| {
        (
            held.origin.to_string(),
            held.jobs,
            held.wait.as_secs(),
            held.why,
        )
    })
    .collect()
}

#[test]
fn the_origins_whose_jobs_wait_longest_are_told_with_the_reason() {
    let rules = Rules {
        rate: Some(1.0),
        ..rules()
    };
    let mut world = World::new(rules, &[20], |_, work, _| match work.job.line {
        0..100 => (secs(0.1), retry_after(503, 300)),
        _ => (secs(0.1), answer(200)),
    });
    world.push(0..2, "http://paused.test/");
    world.push(100..140, "http://long.test/");
    world.push(200..220, "http://short.test/");
    world.push(300..303, "http://least.test/");
    world.push(400..401, "http://none.test/");
    world.run(Time::from_millis(500));
    let told = told(&mut world);
    let names: Vec<&str> = told.iter().map(|held| held.0.as_str()).collect();
    assert_eq!(names, ["paused.test", "long.test", "short.test"]);
    // Two jobs a second apart, after a pause that may be a tenth longer than asked for.
    assert!((300..333).contains(&told[0].2), "{told:?}");
    assert_eq!((told[0].1, told[0].3), (2, "paused"));
    // One of 40 has gone; the last goes 39 s after it.
    assert_eq!((told[1].1, told[1].2, told[1].3), (39, 38, "rate"));
}

#[test]
fn among_very_many_origins_the_longest_is_found_after_a_few_looks() {
    let rules = Rules {
        rate: Some(1.0),
        ..rules()
    };
    let mut world = World::new(rules, &[1], |_, _, _| (secs(60.0), answer(200)));
    for origin in 0..4000 {
        let jobs = if origin == 3999 { 50 } else { 2 };
        let first = origin * 100;
        world.push(first..first + jobs, &format!("http://o{origin}.test/"));
    }
    world.step();
    let first = told(&mut world);
    assert!(first.iter().all(|held| held.0 != "o3999.test"), "{first:?}");
    for _ in 0..3 {
        told(&mut world);
    }
    for _ in 0..10 {
        assert_eq!(told(&mut world)[0].0, "o3999.test", "and it stays found");
    }
}

#[test]
fn every_exit_is_counted_in_its_state() {
    let mut world = World::new(rules(), &[1, 1, 1], |exit, _, _| match exit {
        0 => (secs(0.1), fault(Phase::Handshake, FaultKind::Credentials)),
        _ => (secs(0.1), answer(200)),
    });
    let counts = |world: &World| world.scheduler.exits_by_state().map(|(_, count)| count);
    assert_eq!(counts(&world), [3, 0, 0, 0, 0]);
    world.push(0..30, "http://a.test/");
    world.run(Time::NEVER);
    assert_eq!(counts(&world), [2, 0, 0, 0, 1]);
    assert_eq!(world.scheduler.slots(), 3);
}

#[test]
fn a_job_that_used_up_its_tries_is_told_once() {
    let mut world = World::new(rules(), &[1, 1, 1], |_, work, _| match work.job.line {
        0 => (secs(0.1), answer(500)),
        1 => (secs(0.1), answer(404)),
        _ => (secs(0.1), answer(200)),
    });
    world.push(0..9, "http://a.test/x");
    world.run(Time::NEVER);
    world.now = world.now + Duration::from_secs(1);
    let spent: Vec<String> = world
        .notes
        .iter()
        .filter(|note| matches!(note, Note::TriesSpent { .. }))
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        spent,
        ["http://a.test/x: given up (tries: 4): status 500"],
        "a 404 was an answer, not a try"
    );
}
