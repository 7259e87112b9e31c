//! Lists longer than memory: jobs that go to disk and come back.

use std::time::Duration;

use proptest::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::model::{ErrorKind, FaultKind, Phase, Time};

use super::super::*;
use super::world::*;

fn limited(rate: f64) -> Rules {
    Rules {
        rate: Some(rate),
        ..rules()
    }
}

/// Lines `0..` of these many jobs for each origin, one origin after the other.
fn sorted(counts: &[u64]) -> Vec<(u64, String)> {
    let of = |(origin, &count): (usize, &u64)| (0..count).map(move |_| origin);
    let origins = counts.iter().enumerate().flat_map(of);
    (0..)
        .zip(origins)
        .map(|(line, origin)| (line, format!("http://o{origin}.test/")))
        .collect()
}

#[test]
fn of_a_crowded_origin_a_minute_of_work_is_in_memory_and_the_rest_on_disk() {
    let mut world = World::new(limited(0.5), &[10], |_, _, _| (secs(0.1), answer(200)));
    // Half of it is full with 20 jobs, all of it with 40.
    let size = Work::new(job(0, "http://o0.test/"), Time::ZERO).size();
    world.scheduler.intake.crowded_at(40 * size);
    world.list = sorted(&[1000, 1]).into();
    world.step();
    assert!(world.list.is_empty());
    assert_eq!(world.scheduler.frontier.bytes() / size, 29);
    assert_eq!(world.on_disk(), 970);
    assert_eq!(world.scheduler.waiting_for_budget(), 999);
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 1001);
    // Two seconds apart, as if all had been in memory.
    assert_eq!(world.now, Time::from_millis(1_998_100));
}

#[test]
fn one_origin_paused_for_an_hour_delays_nobody_else() {
    let rules = Rules {
        max_pause: Duration::from_secs(7200),
        ..limited(10.0)
    };
    let mut world = World::new(rules, &[4; 25], |_, work, now| {
        match work.target().host_str() {
            Some("o0.test") if now < Time::from_secs(10) => (secs(0.1), retry_after(503, 3600)),
            _ => (secs(1.0), answer(200)),
        }
    });
    let mut counts = vec![2000];
    counts.extend([1; 5000]);
    world.list = sorted(&counts).into();
    world.run(Time::from_secs(60));
    // 100 slots, a second each: 5,000 jobs take 50 s.
    assert_eq!(world.ok(), 5000, "{:?}", world.now);
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 7000);
}

/// Memory is full of jobs that may not start; those on disk do not wait for it.
#[test]
fn a_free_exit_takes_what_sleeps_on_disk_though_memory_is_full() {
    let mut world = World::new(limited(0.01), &[10], |_, _, _| (secs(1.0), answer(200)));
    world.scheduler.intake.crowded_at(10_000);
    let mut counts = vec![20; 30];
    counts.extend([1; 400]);
    world.list = sorted(&counts).into();
    world.step();
    assert!(world.scheduler.frontier.is_any_asleep());
    world.run(Time::from_secs(50));
    // Each of the 430 origins may be asked once in 100 s; ten slots take 43 s for that.
    assert_eq!(world.ok(), 430);
    assert!(!world.scheduler.has_room() || world.scheduler.frontier.bytes() > 10_000);
    world.run(Time::NEVER);
    assert_eq!(world.ok(), 1000);
    assert_eq!(world.on_disk(), 0);
}

#[test]
fn jobs_on_disk_of_an_origin_that_is_given_up_end_too() {
    let mut world = World::new(limited(10.0), &[3; 4], |_, work, _| {
        match work.target().host_str() {
            Some("o0.test") => (secs(0.1), fault(Phase::Head, FaultKind::Eof)),
            _ => (secs(0.1), answer(200)),
        }
    });
    world.list = sorted(&[5000, 3000]).into();
    world.run(Time::NEVER);
    assert_eq!((world.ends.len(), world.ok()), (8000, 3000));
    assert_eq!(world.failure(4999).kind, ErrorKind::OriginDead);
}

#[test]
fn with_no_exit_left_what_sleeps_on_disk_is_given_up() {
    let mut world = World::new(limited(1.0), &[1], |_, _, _| {
        (secs(0.01), fault(Phase::Handshake, FaultKind::Credentials))
    });
    world.scheduler.intake.crowded_at(1000);
    world.list = sorted(&[7; 3000]).into();
    world.run(Time::NEVER);
    assert_eq!((world.ends.len(), world.ok()), (21_000, 0));
    assert_eq!(world.on_disk(), 0);
}

/// One host with very many URLs in front of many hosts: the reading goes past it.
#[test]
fn a_giant_at_the_head_of_the_list_starves_no_exit() {
    let mut world = World::new(limited(10.0), &[3; 100], |_, _, _| (secs(1.0), answer(200)));
    world.scheduler.intake.crowded_at(1 << 20);
    let mut counts = vec![20_000];
    counts.extend([1; 3000]);
    world.list = sorted(&counts).into();
    world.run(Time::from_secs(5));
    assert!(world.in_flight() >= 295, "{}", world.in_flight());
    assert!(world.scheduler.frontier.bytes() < 1 << 20);
}

/// The jobs that stayed in memory are done, so memory is empty; those on disk come back little by
/// little all the same.
#[test]
fn what_comes_back_from_disk_does_not_fill_memory() {
    for crowd in [vec![20_000], vec![1000; 20]] {
        let mut world = World::new(limited(100.0), &[500], |_, _, _| (secs(0.1), answer(200)));
        world.scheduler.intake.crowded_at(1 << 20);
        world.list = sorted(&crowd).into();
        world.step();
        assert!(world.on_disk() > 10_000, "{} on disk", world.on_disk());
        for second in 1.. {
            world.run(Time::from_secs(second));
            let bytes = world.scheduler.frontier.bytes();
            assert!(bytes < 1 << 20, "{bytes} bytes after {second} s");
            if world.scheduler.is_empty() {
                break;
            }
        }
        assert_eq!(world.ok(), 20_000);
    }
}

/// What attempts have left of a job counts as memory, too: where most fail it is half of all.
#[test]
fn a_job_that_was_tried_takes_more_memory_than_a_fresh_one() {
    let mut world = World::new(limited(10.0), &[1; 3], |_, _, _| {
        (secs(0.1), fault(Phase::Head, FaultKind::Eof))
    });
    world.push(0..1, "http://o0.test/");
    let fresh = world.scheduler.frontier.bytes();
    world.step();
    assert_eq!(world.scheduler.frontier.bytes(), 0);
    world.advance();
    let tried = world.scheduler.frontier.bytes();
    assert!(tried > fresh + 128, "{fresh} bytes, then {tried}");
}

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    rate: Option<f64>,
    crowded: usize,
    ceilings: Vec<u32>,
    jobs: Vec<u64>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let few = prop::collection::vec(0u64..30, 1..40);
    let giant =
        (200u64..500, prop::collection::vec(0u64..4, 1..60)).prop_map(|(giant, mut rest)| {
            rest.push(giant);
            rest
        });
    (
        any::<u64>(),
        prop::option::of(0.05f64..40.0),
        prop::sample::select(vec![0usize, 500, 5000, 40_000, 1 << 24]),
        prop::collection::vec(1u32..5, 1..6),
        prop_oneof![few, giant],
    )
        .prop_map(|(seed, rate, crowded, ceilings, jobs)| Plan {
            seed,
            rate,
            crowded,
            ceilings,
            jobs,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// In memory, on disk, asleep or under way: each job comes out once, whatever happens.
    #[test]
    fn each_job_comes_out_once_in_whatever_order_the_list_is(plan in plans()) {
        let rules = Rules { rate: plan.rate, seed: plan.seed, origin_patience: Duration::from_secs(20), ..rules() };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!plan.seed);
        let mut list = sorted(&plan.jobs);
        if rng.random_bool(0.7) {
            list.shuffle(&mut rng);
        }
        let mut world = World::new(rules, &plan.ceilings, move |_, _, _| {
            let end = match rng.random_range(0..20) {
                0 => fault(Phase::Dial, FaultKind::Refused),
                1 => retry_after(503, rng.random_range(0..5)),
                2 => fault(Phase::Head, FaultKind::Timeout),
                3 => with(answer(302), http::header::LOCATION, "http://o1.test/moved"),
                4 => answer(404),
                _ => answer(200),
            };
            (Duration::from_millis(rng.random_range(0..3000)), end)
        });
        world.scheduler.intake.crowded_at(plan.crowded);
        let jobs: u64 = plan.jobs.iter().sum();
        world.list = list.into();
        world.run(Time::NEVER);
        prop_assert!(world.ends.keys().copied().eq(0..jobs));
        prop_assert_eq!(world.on_disk(), 0);
    }
}
