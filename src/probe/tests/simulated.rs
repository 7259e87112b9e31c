//! An exit made of figures: it queues, refuses, errs and warms up as told, on a clock of its own.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::super::level::{Level, Measured, Outcome, Plan};
use crate::model::Time;

/// Who is served next where all slots are taken.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Queue {
    /// Who came first.
    Fair,
    /// Who came last: the others starve, and no median shows it.
    Starving,
    /// Nobody waits: all are served, slower in proportion.
    Stretch,
}

/// An exit made of figures.
#[derive(Clone, Copy)]
pub(super) struct Model {
    pub(super) slots: usize,
    pub(super) queue: Queue,
    /// Standard deviation of the logarithm of the service time.
    pub(super) sigma: f64,
    /// Requests in flight above which it refuses.
    pub(super) limit: usize,
    /// How it does.
    pub(super) refusal: Outcome,
    /// Share of requests that fail, and how.
    pub(super) errors: (f64, Outcome),
    /// The first requests take ten times as long.
    pub(super) cold: u32,
}

pub(super) const SOUND: Model = Model {
    slots: usize::MAX,
    queue: Queue::Fair,
    sigma: 0.3,
    limit: usize::MAX,
    refusal: Outcome::Refused,
    errors: (0.0, Outcome::ExitFault),
    cold: 0,
};

/// Median service time.
pub(super) const SERVICE: f64 = 0.1;

/// Service times to draw from, made once for all seeds: a million draws of a normal deviate
/// are what a build without optimisation would spend its time on.
pub(super) struct Times(pub(super) Vec<f64>);

impl Times {
    pub(super) const COUNT: usize = 4096;

    pub(super) fn of(sigma: f64) -> Times {
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

pub(super) struct Sim<'a> {
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
    pub(super) fn new(model: Model, times: &Times, seed: u64) -> Sim<'_> {
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

    pub(super) fn measure(&mut self, plan: Plan) -> Measured {
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
