//! The ladder against simulated exits, a thousand seeds each.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::knee::Reason;
use super::ladder::{Ladder, Obstacle, Scope, Step, Verdict, within};
use super::level::{Level, Measured, Outcome, Plan};
use crate::model::Time;

/// Who is served next where all slots are taken.
#[derive(Clone, Copy, PartialEq)]
enum Queue {
    /// Who came first.
    Fair,
    /// Who came last: the others starve, and no median shows it.
    Starving,
    /// Nobody waits: all are served, slower in proportion.
    Stretch,
}

/// An exit made of figures.
#[derive(Clone, Copy)]
struct Model {
    slots: usize,
    queue: Queue,
    /// Standard deviation of the logarithm of the service time.
    sigma: f64,
    /// Requests in flight above which it refuses.
    limit: usize,
    /// How it does.
    refusal: Outcome,
    /// Share of requests that fail, and how.
    errors: (f64, Outcome),
    /// The first requests take ten times as long.
    cold: u32,
}

const SOUND: Model = Model {
    slots: usize::MAX,
    queue: Queue::Fair,
    sigma: 0.3,
    limit: usize::MAX,
    refusal: Outcome::Refused,
    errors: (0.0, Outcome::ExitFault),
    cold: 0,
};

/// Median service time.
const SERVICE: f64 = 0.1;

/// Service times to draw from, made once for all seeds: a million draws of a normal deviate
/// are what a build without optimisation would spend its time on.
struct Times(Vec<f64>);

impl Times {
    const COUNT: usize = 4096;

    fn of(sigma: f64) -> Times {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let pairs = (0..Times::COUNT / 2).flat_map(|_| {
            let (a, b): (f64, f64) = (rng.random(), rng.random());
            let normal = (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos();
            [normal, -normal]
        });
        Times(
            pairs
                .map(|normal| SERVICE * (sigma * normal).exp())
                .collect(),
        )
    }
}

struct Sim<'a> {
    model: Model,
    times: &'a Times,
    draws: u64,
    now: f64,
    served: u32,
    /// Slots taken.
    busy: usize,
}

/// A request at the exit.
#[derive(Clone, Copy)]
struct Pending {
    begun: f64,
    target: usize,
    /// `None`: it waits for a slot.
    ends: Option<f64>,
    outcome: Outcome,
}

impl Sim<'_> {
    fn new(model: Model, times: &Times, seed: u64) -> Sim<'_> {
        Sim {
            model,
            times,
            draws: seed.wrapping_mul(0xd134_2543_de82_ef95),
            now: 0.0,
            served: 0,
            busy: 0,
        }
    }

    /// splitmix64 (Steele, Lea, Flood 2014).
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draws;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn service(&mut self) -> f64 {
        let at = self.draw() as usize % Times::COUNT;
        self.served += 1;
        let cold = if self.served <= self.model.cold {
            10.0
        } else {
            1.0
        };
        cold * self.times.0[at]
    }

    fn arrive(&mut self, at: &mut Vec<Pending>, target: usize) {
        let service = self.service();
        let model = self.model;
        let (share, bad) = model.errors;
        let fails = share > 0.0 && (self.draw() >> 11) as f64 / ((1_u64 << 53) as f64) < share;
        let pending = Pending {
            begun: self.now,
            target,
            ends: match model.queue {
                _ if at.len() >= model.limit => Some(self.now + 0.001),
                Queue::Stretch => {
                    let crowd = (at.len() + 1) as f64 / model.slots as f64;
                    Some(self.now + service * crowd.max(1.0))
                }
                Queue::Fair | Queue::Starving => {
                    (self.busy < model.slots).then_some(self.now + service)
                }
            },
            outcome: match fails {
                _ if at.len() >= model.limit => model.refusal,
                true => bad,
                false => Outcome::Answer,
            },
        };
        self.busy += usize::from(pending.ends.is_some());
        at.push(pending);
    }

    /// The next end.
    fn leave(&mut self, at: &mut Vec<Pending>) -> Pending {
        let (mut first, mut soonest) = (0, f64::INFINITY);
        for (n, pending) in at.iter().enumerate() {
            let ends = pending.ends.unwrap_or(f64::INFINITY);
            if ends < soonest {
                (first, soonest) = (n, ends);
            }
        }
        self.now = soonest;
        self.busy -= 1;
        at.remove(first)
    }

    /// A waiting request takes a free slot.
    fn serve_waiting(&mut self, at: &mut [Pending]) {
        if self.busy >= self.model.slots || self.busy == at.len() {
            return;
        }
        let mut waiting = at.iter_mut().filter(|p| p.ends.is_none());
        let next = match self.model.queue {
            Queue::Starving => waiting.next_back(),
            Queue::Fair | Queue::Stretch => waiting.next(),
        };
        if let Some(next) = next {
            next.ends = Some(self.now + self.service());
            self.busy += 1;
        }
    }

    fn measure(&mut self, plan: Plan) -> Measured {
        let time = |seconds: f64| Time::from_nanos((seconds * 1e9) as u64);
        let mut level = Level::new(plan, time(self.now));
        let mut at = Vec::with_capacity(plan.concurrency as usize);
        loop {
            while level.wants_more() {
                let target = level.next_target();
                level.start(time(self.now));
                self.arrive(&mut at, target);
            }
            if at.is_empty() {
                break;
            }
            let gone = self.leave(&mut at);
            level.end(time(gone.begun), gone.target, gone.outcome, time(self.now));
            if self.model.queue == Queue::Fair {
                self.serve_waiting(&mut at);
            }
            if level.wants_more() {
                let target = level.next_target();
                level.start(time(self.now));
                self.arrive(&mut at, target);
            }
            self.serve_waiting(&mut at);
        }
        level.finish()
    }
}

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

/// A ladder over this scope with so many requests, against a flat exit.
fn climb(scope: Scope, mut left: u32) -> (Verdict, Vec<u32>) {
    let times = Times::of(SOUND.sigma);
    let mut sim = Sim::new(SOUND, &times, 1);
    let mut ladder = Ladder::new(scope);
    let mut asked = Vec::new();
    loop {
        match ladder.next(left) {
            Step::Done(verdict) => return (verdict, asked),
            Step::Measure { plan, .. } => {
                asked.push(plan.concurrency);
                let found = sim.measure(plan);
                left = left.checked_sub(found.sent).unwrap();
                ladder.take(found);
            }
        }
    }
}

fn scope(levels: &[u32]) -> Scope {
    Scope {
        levels: levels.to_vec(),
        targets: 1,
        pace: None,
    }
}

#[test]
fn levels_are_climbed_in_order_and_the_baseline_is_looked_at_again() {
    let (verdict, asked) = climb(scope(&[1, 2, 4, 8, 16]), 400);
    assert_eq!(verdict, Verdict::NoKnee { carries: 16 });
    assert_eq!(asked, [1, 1, 2, 4, 1, 8, 16, 1]);
}

#[test]
fn a_contract_ends_the_ladder() {
    let levels = |cap| within(&[1, 2, 4, 8, 16], cap);
    assert_eq!(levels(None), [1, 2, 4, 8, 16]);
    assert_eq!(levels(Some(40)), [1, 2, 4, 8, 16]);
    assert_eq!(levels(Some(1)), [1]);
    assert_eq!(levels(Some(2)), [1, 2]);
    assert_eq!(levels(Some(5)), [1, 2, 5]);
    assert_eq!(levels(Some(6)), [1, 2, 4, 6]);
    assert_eq!(levels(Some(12)), [1, 2, 4, 8, 12]);
}

#[test]
fn no_step_takes_more_than_is_left() {
    for left in (0..420).step_by(7) {
        let (verdict, _) = climb(scope(&[1, 2, 4, 8, 16]), left);
        let spent = verdict == Verdict::None(Obstacle::Spent);
        assert!(
            spent || verdict == Verdict::NoKnee { carries: 16 },
            "{left}: {verdict:?}"
        );
        assert_eq!(spent, left < 300 || spent, "{left}");
    }
    assert!(Ladder::most(&scope(&[1, 2, 4, 8, 16])) <= 400);
}

#[test]
fn a_budget_that_binds_is_told_and_is_no_knee() {
    let bound = Scope {
        pace: Some(30.0),
        ..scope(&[1, 2, 4, 8, 16])
    };
    let (verdict, asked) = climb(bound, 400);
    let Verdict::None(Obstacle::Budget { level, needs }) = verdict else {
        panic!("{verdict:?}");
    };
    // Ten a second each: four workers need forty.
    assert_eq!(level, 4);
    assert!((30.0..50.0).contains(&needs), "{needs}");
    assert_eq!(asked, [1, 1, 2]);
}

#[test]
fn a_baseline_that_moves_is_looked_at_again_and_then_there_is_no_verdict() {
    let verdict = |slow_from: usize, slow_to: usize| {
        let (times, slow) = (Times::of(0.3), Times(vec![3.0 * SERVICE; Times::COUNT]));
        let mut ladder = Ladder::new(scope(&[1, 2, 4, 8, 16]));
        let (mut asked, mut left) = (0, 400);
        loop {
            match ladder.next(left) {
                Step::Done(verdict) => return (verdict, asked),
                Step::Measure { plan, .. } => {
                    asked += 1;
                    let is_slow = (slow_from..slow_to).contains(&asked);
                    let times = if is_slow { &slow } else { &times };
                    let found = Sim::new(SOUND, times, 1).measure(plan);
                    left -= found.sent;
                    ladder.take(found);
                }
            }
        }
    };
    // The fifth step is the second look at the baseline.
    assert_eq!(verdict(99, 99), (Verdict::NoKnee { carries: 16 }, 8));
    let unstable = Verdict::None(Obstacle::Unstable);
    assert_eq!(verdict(5, 99), (unstable, 6));
    // Slow once, and not when looked at again.
    assert_eq!(verdict(5, 6), (Verdict::NoKnee { carries: 16 }, 9));
}
