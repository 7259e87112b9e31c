//! What an origin allows: rate, burst, in-flight bound, pauses and slowing down.
//!
//! Owns: the generic cell rate algorithm as a *schedule*: one instant, the theoretical arrival
//! time `tat`, says when the next dispatch may be; nothing refills, nothing is counted. Leaves
//! to others: which job goes, what an answer means (`blame`), how long a header asks to wait
//! (`retry_after`).
//!
//! Invariant: dispatches in any window `w` are at most `burst + rate·w`; a refund does not
//! count the attempt that it takes back. `interval` is rounded up to whole nanoseconds and an
//! idle spell never saves up more than the burst.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::model::Time;

/// A slowed rate is never below this share of the configured one.
const LEAST_SHARE: f64 = 1.0 / 64.0;
/// One step of recovery, as a share of the configured rate.
const RECOVERY: f64 = 0.1;
/// Clean answers until the next step of recovery …
const CLEAN_ANSWERS: u32 = 20;
/// … or this much time.
const QUIET: Duration = Duration::from_secs(60);
/// The pause after the first 429 without a longer wait of its own; doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A wait that an origin asks for is lengthened by up to this share, so that runs on several
/// machines do not return together.
const JITTER: f64 = 0.1;
/// Latency that the in-flight bound allows for: enough to reach the rate, few enough that a
/// stalled origin does not take the fleet.
const COVERED_LATENCY_S: f64 = 4.0;

/// What the user allows one origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Requests per second, finite and above 0; `None`: unlimited.
    pub rate: Option<f64>,
    /// How many may go at once after an idle spell, at least 1.
    pub burst: u32,
    /// In-flight bound; `None`: `max(2, ⌈4 s · rate⌉)`, and none where the rate is unlimited.
    pub per_origin: Option<u32>,
}

impl Allowance {
    /// How many attempts may be in flight at the origin.
    pub fn bound(&self) -> u32 {
        match (self.per_origin, self.rate) {
            (Some(bound), _) => bound.max(1),
            (None, Some(rate)) => ((COVERED_LATENCY_S * rate).ceil() as u32).max(2),
            (None, None) => u32::MAX,
        }
    }
}

/// What a dispatch took, for a refund and to tell answers from before a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    before: Time,
    after: Time,
    cut: u32,
}

/// The budget of one origin.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Of the configured rate; `None`: unlimited.
    interval: Option<Duration>,
    burst: u32,
    bound: u32,
    tat: Time,
    paused_until: Time,
    /// Share of the configured rate that is used now.
    share: f64,
    /// How many times the rate was cut; dispatches remember it.
    cuts: u32,
    /// Pauses after 429 in a row, the `k` of the formula.
    pauses: u32,
    clean: u32,
    eased_at: Time,
}

impl Budget {
    /// A budget at rest.
    pub fn new(allowance: Allowance) -> Budget {
        Budget {
            interval: allowance.rate.map(|rate| nanos(1e9 / rate)),
            burst: allowance.burst.max(1),
            bound: allowance.bound(),
            tat: Time::ZERO,
            paused_until: Time::ZERO,
            share: 1.0,
            cuts: 0,
            pauses: 0,
            clean: 0,
            eased_at: Time::ZERO,
        }
    }

    /// When the next dispatch may be; an instant of the past means now.
    pub fn ready_at(&self) -> Time {
        // By the configured interval: a cut widens the spacing, and must not widen this as well,
        // or it would let more through at once.
        let interval = self.interval.unwrap_or_default();
        let tolerance = interval.saturating_mul(self.burst - 1);
        self.tat.back(tolerance).max(self.paused_until)
    }

    /// How many attempts may be in flight.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// Until when the origin asked to be left alone; an instant of the past means it does not.
    pub fn paused_until(&self) -> Time {
        self.paused_until
    }

    /// From when on the budget is what a new one would be, so that it may be forgotten.
    pub fn rests_at(&self) -> Time {
        let settled = if self.share < 1.0 || self.pauses > 0 {
            self.eased_at + QUIET
        } else {
            Time::ZERO
        };
        self.tat.max(self.paused_until).max(settled)
    }

    /// How long until the last of `jobs` that wait may start, if nothing changes.
    pub fn drained_in(&self, jobs: usize, now: Time) -> Duration {
        let spacing = self.spacing();
        let others = u32::try_from(jobs.saturating_sub(1)).unwrap_or(u32::MAX);
        let tolerance = self.interval.unwrap_or_default();
        let tolerance = tolerance.saturating_mul(self.burst - 1);
        let first = self.tat.max(now).max(self.paused_until);
        let last = (first + spacing.saturating_mul(others)).back(tolerance);
        last.max(self.paused_until) - now
    }

    /// Takes one request out. The caller has seen that `ready_at` has come.
    pub fn dispatch(&mut self, now: Time) -> Charge {
        let before = self.tat;
        self.tat = self.tat.max(now) + self.spacing();
        Charge {
            before,
            after: self.tat,
            cut: self.cuts,
        }
    }

    /// Gives back what an attempt took that certainly never reached the origin.
    ///
    /// Only while it was the last dispatch: a later one already had its instant fixed by this
    /// one, and giving the interval back then would let two requests go side by side.
    pub fn refund(&mut self, charge: Charge) {
        if charge.after == self.tat {
            self.tat = charge.before;
        }
    }

    /// Leaves the origin alone for `wait` and up to 10 % more; the answer is how long in all.
    pub fn pause(&mut self, wait: Duration, now: Time, rng: &mut impl Rng) -> Duration {
        let extra = rng.random_range(0.0..=JITTER);
        let wait = wait.saturating_add(nanos(wait.as_nanos() as f64 * extra));
        self.hold(wait, now);
        wait
    }

    /// The origin asked for less (429 or 503): halves the rate, once for all answers to
    /// requests that were under way at the last cut. The answer says whether it did.
    pub fn slow_down(&mut self, charge: Charge, now: Time) -> bool {
        if charge.cut != self.cuts {
            return false;
        }
        self.cuts = self.cuts.wrapping_add(1);
        self.share = (self.share / 2.0).max(LEAST_SHARE);
        self.clean = 0;
        self.eased_at = now;
        true
    }

    /// The pause that a 429 means by itself, growing with each; goes with a `slow_down`.
    pub fn back_off(&mut self, now: Time, rng: &mut impl Rng) -> Duration {
        let full = FIRST_PAUSE
            .saturating_mul(1 << self.pauses.min(16))
            .min(LONGEST_PAUSE);
        let wait = full.mul_f64(rng.random_range(0.5..=1.0));
        self.pauses += 1;
        self.hold(wait, now);
        wait
    }

    /// A clean answer: after enough of them, or enough time, the rate recovers by one step.
    pub fn clean_answer(&mut self, now: Time) {
        if self.share >= 1.0 && self.pauses == 0 {
            return;
        }
        self.clean += 1;
        if self.clean >= CLEAN_ANSWERS || now - self.eased_at >= QUIET {
            self.share = (self.share + RECOVERY).min(1.0);
            self.pauses = self.pauses.saturating_sub(1);
            self.clean = 0;
            self.eased_at = now;
        }
    }

    fn hold(&mut self, wait: Duration, now: Time) {
        self.paused_until = self.paused_until.max(now + wait);
    }

    /// The present distance of two dispatches.
    fn spacing(&self) -> Duration {
        match self.interval {
            Some(interval) if self.share >= 1.0 => interval,
            Some(interval) => nanos(interval.as_nanos() as f64 / self.share),
            None => Duration::ZERO,
        }
    }
}

/// Whole nanoseconds, rounded up, saturating.
fn nanos(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.ceil() as u64)
}

#[cfg(test)]
mod tests;
