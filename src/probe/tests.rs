//! The ladder against simulated exits, a thousand seeds each; `course` has its steps.

mod course;
mod simulated;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::knee::Reason;
use super::ladder::{Ladder, Step};
use super::level::{Outcome, Plan};
use super::scope::{Scope, within};
use super::verdict::{Obstacle, Verdict};
use simulated::{Model, Queue, SOUND, Sim, Times};

struct Found {
    verdict: Verdict,
    requests: u32,
}

fn probe(model: Model, times: &Times, seed: u64) -> Found {
    let mut sim = Sim::new(model, times, seed);
    let mut ladder = Ladder::new(Scope {
        levels: within(&[1, 2, 4, 8, 16], None),
        targets: 1,
        pace: None,
    });
    let mut left = 400;
    loop {
        match ladder.next(left) {
            Step::Done(verdict) => {
                return Found {
                    verdict,
                    requests: 400 - left,
                };
            }
            Step::Measure { plan, .. } => {
                let found = sim.measure(plan);
                left -= found.sent;
                ladder.take(found);
            }
        }
    }
}

const SEEDS: u64 = 1_000;

/// How many of the seeds satisfy `holds`. Half of them run beside the other half: it is the
/// longest of all unit tests.
fn count(model: Model, holds: impl Fn(Verdict) -> bool + Sync) -> u64 {
    let times = Times::of(model.sigma);
    let seeds = |from: u64| (from..SEEDS).step_by(2);
    let some = |from: u64| {
        let good = seeds(from).filter(|seed| {
            let found = probe(model, &times, *seed);
            assert!(found.requests <= 400, "{} requests", found.requests);
            holds(found.verdict)
        });
        good.count() as u64
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| some(1));
        some(0) + other.join().unwrap()
    })
}

fn carries(verdict: Verdict) -> Option<u32> {
    match verdict {
        Verdict::Knee { carries, .. } | Verdict::NoKnee { carries } => Some(carries),
        Verdict::None(_) => None,
    }
}

/// The plain rule: the first level whose median over 20 samples is above twice that of level 1.
fn plain_rule(model: Model, times: &Times, seed: u64) -> u32 {
    let mut sim = Sim::new(model, times, seed);
    let mut median = |concurrency| {
        let plan = Plan {
            samples: 20,
            ..Plan::of(concurrency, 1)
        };
        sim.measure(plan).quantile(0.5)
    };
    let base = median(1);
    let mut carries = 1;
    for level in [2, 4, 8, 16] {
        if median(level) > 2.0 * base {
            break;
        }
        carries = level;
    }
    carries
}

#[test]
fn the_capacity_of_an_exit_is_found_and_better_than_by_the_plain_rule() {
    for slots in [1_u32, 2, 3, 4, 6, 8, 16] {
        let model = Model {
            slots: slots as usize,
            queue: Queue::Stretch,
            ..SOUND
        };
        let is_right = |found: u32| found >= slots && 2 * found <= 3 * slots;
        let right = count(model, |verdict| carries(verdict).is_some_and(is_right));
        let times = Times::of(model.sigma);
        let plain = (0..SEEDS).filter(|seed| is_right(plain_rule(model, &times, *seed)));
        let plain = plain.count() as u64;
        assert!(right * 100 >= 95 * SEEDS, "{slots} slots: {right} right");
        // Nothing is above the highest level: the plain rule, which knows one criterion only,
        // can hardly be wrong there.
        let better = match slots {
            16 => right + SEEDS / 100 >= plain,
            _ => right > plain,
        };
        assert!(better, "{slots} slots: {right}, by the plain rule {plain}");
    }
}

#[test]
fn a_flat_exit_whose_times_spread_widely_has_no_knee() {
    let flat = Model {
        sigma: 0.8,
        ..SOUND
    };
    let false_knees = AtomicU64::new(0);
    let found = count(flat, |verdict| {
        if matches!(verdict, Verdict::Knee { .. }) {
            false_knees.fetch_add(1, Relaxed);
        }
        verdict == Verdict::NoKnee { carries: 16 }
    });
    let false_knees = false_knees.into_inner();
    assert!(false_knees * 100 < 2 * SEEDS, "{false_knees}");
    assert!(found * 100 >= 90 * SEEDS, "{found}");
}

#[test]
fn an_exit_that_refuses_the_fifth_carries_four_and_the_limit_is_hard() {
    let hard = |verdict| {
        let Verdict::Knee {
            carries, reason, ..
        } = verdict
        else {
            return false;
        };
        carries == 4 && reason == Reason::Hard
    };
    for refusal in [Outcome::Refused, Outcome::TurnedAway] {
        let model = Model {
            limit: 4,
            refusal,
            ..SOUND
        };
        assert_eq!(count(model, hard), SEEDS, "{refusal:?}");
    }
}

#[test]
fn a_queue_that_no_median_shows_is_a_plateau() {
    for queue in [Queue::Starving, Queue::Fair] {
        let model = Model {
            slots: 4,
            queue,
            ..SOUND
        };
        let plateau = count(model, |verdict| {
            let Verdict::Knee {
                carries, reason, ..
            } = verdict
            else {
                return false;
            };
            carries == 4 && reason == Reason::Plateau
        });
        assert!(plateau * 100 >= 95 * SEEDS, "{plateau}");
    }
}

#[test]
fn one_error_in_a_hundred_is_no_knee() {
    for kind in [Outcome::ExitFault, Outcome::Unclear, Outcome::TurnedAway] {
        let model = Model {
            errors: (0.01, kind),
            ..SOUND
        };
        let found = count(model, |verdict| verdict == Verdict::NoKnee { carries: 16 });
        assert!(found * 100 >= 98 * SEEDS, "{found}");
    }
}

#[test]
fn faults_of_the_site_do_not_count_against_the_exit() {
    let model = Model {
        errors: (0.1, Outcome::TargetFault),
        ..SOUND
    };
    let found = count(model, |verdict| verdict == Verdict::NoKnee { carries: 16 });
    assert!(found * 100 >= 98 * SEEDS, "{found}");
}

#[test]
fn a_cold_start_changes_nothing() {
    let exit = Model { slots: 4, ..SOUND };
    let same = |model| count(model, |verdict| carries(verdict) == Some(4));
    let (warm, cold) = (same(exit), same(Model { cold: 5, ..exit }));
    assert!(cold * 100 >= 95 * SEEDS, "{cold}");
    assert!(warm.abs_diff(cold) * 100 <= SEEDS, "{warm} {cold}");
}

#[test]
fn an_exit_that_cannot_serve_one_at_a_time_has_no_verdict() {
    for (kind, why) in [
        (Outcome::ExitFault, Obstacle::Exit),
        (Outcome::Unclear, Obstacle::Unclear),
        (Outcome::TargetFault, Obstacle::Target),
        (Outcome::Throttled, Obstacle::Throttled),
    ] {
        let model = Model {
            errors: (1.1, kind),
            ..SOUND
        };
        let found = probe(model, &Times::of(model.sigma), 1);
        assert_eq!(found.verdict, Verdict::None(why));
        assert!(found.requests <= 8, "{}", found.requests);
    }
    let model = Model {
        errors: (0.3, Outcome::ExitFault),
        ..SOUND
    };
    let faulty = count(model, |verdict| {
        matches!(verdict, Verdict::None(Obstacle::Faulty | Obstacle::Exit))
    });
    assert!(faulty * 100 >= 95 * SEEDS, "{faulty}");
}
