//! The invariants of the design over random events.

use std::collections::HashMap;
use std::time::Duration;

use http::header::LOCATION;
use proptest::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::model::{Attempt, FaultKind, Phase, Time};

use super::super::*;
use super::world::*;

/// Any end of an attempt, the likely ones more often.
fn any_end(rng: &mut Xoshiro256PlusPlus) -> Attempt {
    match rng.random_range(0..24) {
        0 => fault(Phase::Dial, FaultKind::Refused),
        1 => fault(Phase::Dial, FaultKind::Reset),
        2 => fault(Phase::Handshake, FaultKind::Timeout),
        3 => fault(Phase::Handshake, FaultKind::SocksReply(2)),
        4 => fault(Phase::OriginTls, FaultKind::Certificate),
        5 => fault(Phase::Head, FaultKind::Timeout),
        6 => fault(Phase::Body, FaultKind::Truncated),
        7 => fault(Phase::Body, FaultKind::TooLarge),
        8 => fault(Phase::Dial, FaultKind::LocalLimit),
        9 => forward(403),
        10 => answer(404),
        11 => answer(429),
        12 => answer(500),
        13 => retry_after(503, rng.random_range(0..2000)),
        14 => with(answer(302), LOCATION, "http://o1.test/moved"),
        15 => fault(Phase::Handshake, FaultKind::Credentials),
        _ => answer(200),
    }
}

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    ceilings: Vec<u32>,
    groups: Vec<u32>,
    rate: Option<f64>,
    burst: u32,
    max_in_flight: u32,
    jobs: u64,
    origins: u64,
}

fn plans() -> impl Strategy<Value = Plan> {
    (
        any::<u64>(),
        prop::collection::vec(1u32..5, 1..8),
        prop::collection::vec(1u32..6, 0..3),
        prop::option::of(0.5f64..40.0),
        1u32..4,
        1u32..30,
        1u64..120,
        1u64..6,
    )
        .prop_map(
            |(seed, ceilings, groups, rate, burst, max_in_flight, jobs, origins)| Plan {
                seed,
                ceilings,
                groups,
                rate,
                burst,
                max_in_flight,
                jobs,
                origins,
            },
        )
}

/// What a run did: each start, each end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Story {
    starts: Vec<(Time, usize, u64)>,
    ends: HashMap<u64, bool>,
}

/// Runs a plan to its end and checks the invariants at every step.
fn play(plan: &Plan) -> Story {
    let mut seats = seats(&plan.ceilings);
    for (index, seat) in seats.iter_mut().enumerate() {
        seat.group = plan
            .groups
            .get(index % (plan.groups.len() + 1))
            .map(|_| (index % (plan.groups.len() + 1)) as u32);
    }
    let rules = Rules {
        rate: plan.rate,
        burst: plan.burst,
        max_in_flight: plan.max_in_flight,
        seed: plan.seed,
        ..rules()
    };
    let mut scheduler = Scheduler::new(rules, &seats, &plan.groups);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(!plan.seed);
    let mut story = Story::default();
    let mut running: Vec<(Time, Start)> = Vec::new();
    let mut dispatched: HashMap<String, Vec<Time>> = HashMap::new();
    let (mut now, mut pushed) = (Time::ZERO, 0);
    loop {
        if pushed < plan.jobs && rng.random_bool(0.5) {
            for _ in 0..rng.random_range(1..10) {
                let origin = rng.random_range(0..plan.origins);
                scheduler.push(job(pushed, &format!("http://o{origin}.test/")), now);
                pushed += 1;
            }
        }
        let wake = loop {
            match scheduler.next(now) {
                Next::Start(start) => {
                    let line = start.work.job.line;
                    story.starts.push((now, start.exit.index(), line));
                    let origin = start.work.target().host_str().unwrap().to_owned();
                    dispatched.entry(origin).or_default().push(now);
                    let takes = Duration::from_millis(rng.random_range(0..3000));
                    running.push((now + takes, start));
                }
                Next::GiveUp(work, _) => {
                    assert_eq!(story.ends.insert(work.job.line, false), None);
                }
                Next::At(at) => {
                    assert!(at > now, "an instant of the past");
                    break Some(at);
                }
                Next::Refill(_) => panic!("nothing is on disk"),
                Next::Idle => break None,
            }
            check_load(&scheduler, plan, &seats, now);
        };
        scheduler.check(now);
        let done = scheduler.is_empty() && pushed >= plan.jobs;
        if done {
            return story;
        }
        // The next event: an end, the scheduler's instant, or the next push.
        running.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let landing = running.last().map(|(at, _)| *at);
        let push = (pushed < plan.jobs).then(|| now + Duration::from_millis(50));
        now = [wake, landing, push]
            .into_iter()
            .flatten()
            .min()
            .expect("it hangs");
        while running.last().is_some_and(|(at, _)| *at <= now) {
            let (_, start) = running.pop().unwrap();
            let verdict = if rng.random_range(0..20) == 0 {
                scheduler.abandon(start.lease, start.work, now)
            } else {
                let end = any_end(&mut rng);
                if end.not_delivered() {
                    // It may be refunded, and then it is none of the origin's requests.
                    let origin = start.work.target().host_str().unwrap();
                    let times = dispatched.get_mut(origin).unwrap();
                    let at = times.iter().rposition(|at| *at == start.lease.dispatched());
                    times.remove(at.unwrap());
                }
                scheduler.finish(start.lease, start.work, &end, now)
            };
            let (line, ok) = match verdict {
                Verdict::Ok(work) => (work.job.line, true),
                Verdict::Failed(work, _) => (work.job.line, false),
                Verdict::Again => continue,
            };
            assert_eq!(story.ends.insert(line, ok), None, "{line} ended twice");
        }
        scheduler.check(now);
        check_windows(plan, &dispatched);
    }
}

/// Invariants 1 and 2.
fn check_load(scheduler: &Scheduler, plan: &Plan, seats: &[Seat], now: Time) {
    let mut groups = vec![0; plan.groups.len()];
    for (index, seat) in seats.iter().enumerate() {
        let exit = scheduler.exit(ExitIx::new(index as u32), now);
        assert!(exit.in_flight <= seat.ceiling && exit.peak <= seat.ceiling);
        if let Some(group) = seat.group {
            groups[group as usize] += exit.in_flight;
        }
    }
    for (load, cap) in groups.iter().zip(&plan.groups) {
        assert!(load <= cap);
    }
}

/// Invariant 3.
fn check_windows(plan: &Plan, dispatched: &HashMap<String, Vec<Time>>) {
    let Some(rate) = plan.rate else { return };
    for times in dispatched.values() {
        // Recent windows only: the older ones were looked at before.
        let recent = &times[times.len().saturating_sub(30)..];
        for (from, start) in recent.iter().enumerate() {
            let window = (*recent.last().unwrap() - *start).as_secs_f64();
            let allowed = f64::from(plan.burst) + rate * window + 1e-6;
            assert!((recent.len() - from) as f64 <= allowed, "{window} s");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn caps_budgets_places_and_ends_hold_over_any_events(plan in plans()) {
        let story = play(&plan);
        prop_assert!(story.ends.len() as u64 >= plan.jobs, "a job without end");
    }

    #[test]
    fn the_same_seed_and_events_give_the_same_decisions(plan in plans()) {
        prop_assert_eq!(play(&plan), play(&plan));
    }

    #[test]
    fn no_ready_job_stands_beside_a_free_exit(
        ceilings in prop::collection::vec(1u32..5, 1..8),
        jobs in 1u64..80,
        origins in 1u64..5,
        seed: u64,
    ) {
        let rules = Rules { seed, ..rules() };
        let slots: u32 = ceilings.iter().sum();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut world = World::new(rules, &ceilings, move |_, _, _| {
            let takes = Duration::from_millis(rng.random_range(1..1000));
            (takes, answer(200))
        });
        for line in 0..jobs {
            world.push(line..line + 1, &format!("http://o{}.test/", line % origins));
        }
        while !world.scheduler.is_empty() {
            let wake = world.step();
            prop_assert_eq!(wake, None);
            let waiting = world.scheduler.waiting_for_exit();
            prop_assert!(waiting == 0 || world.in_flight() == slots as usize);
            world.advance();
        }
    }
}
