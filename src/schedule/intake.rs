//! How far the list is read ahead, and what of it stays in memory.
//!
//! Owns two bounds. How many origins have jobs waiting that were never tried: enough that the
//! exits are busy although each origin takes only so many requests; the number grows while a slot
//! is idle for want of a job that may start. (Origins at which only retries wait are not
//! counted: a list with many dead hosts would be read at their pace.) And how many jobs of one
//! origin, and of all, are in memory: the rest waits on disk. Leaves to `frontier` the counting,
//! to the engine the disk.
//!
//! The first bound is reckoned with the budget that all origins have by default; where many
//! have one of their own, growth makes up for it.

use std::time::Duration;

use crate::model::Time;

use super::budget::Allowance;
use super::settings::{Rules, Seat, slots};

/// Reading goes on while fewer origins have jobs that wait. Larger: more memory; smaller: a slow
/// origin is noticed in the others' pace.
const ORIGINS_LEAST: f64 = 1000.0;
/// Reading goes on, too, while the jobs in memory take fewer bytes (some 10,000 jobs): what costs
/// little is read, so that dead hosts are a small part of what is known. Simulated with two of
/// five hosts dead and 20,000 jobs (`stale-list.json`): 36 good answers per second in the first
/// 45 s without this, 69 with it, and no more with all in memory. Twice as much costs 25 MiB
/// where each job has an origin of its own.
const LITTLE: usize = 4 << 20;
/// More are never asked for.
const ORIGINS_MOST: f64 = 1e7;
/// So much more than the exits need by the formula, since some origins wait longer than others.
const AHEAD: f64 = 1.5;
/// The bound grows by this …
const GROWTH: f64 = 1.5;
/// … when a slot was idle so long while no job might start.
const IDLE: Duration = Duration::from_millis(100);
/// An attempt is taken to last this long before one has ended.
const FIRST_GUESS_S: f64 = 1.0;
/// Ends that the mean of attempts looks back on.
const MEMORY: f64 = 64.0;
/// Seconds that the jobs of an origin in memory last at its rate, within the bounds below.
const LASTS_S: f64 = 60.0;
const QUEUE_LEAST: usize = 4;
const QUEUE_MOST: usize = 64;
/// Bytes of jobs in memory from which on origins get [`QUEUE_LEAST`] each, and none at twice
/// that. Below half of it nothing goes to disk: a short list (some 20,000 jobs) never needs it.
/// Larger: fewer jobs are written to disk and read back (measured: 4 µs each).
const CROWDED: usize = 16 << 20;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Intake {
    slots: f64,
    allowance: Allowance,
    /// Of the number of origins, by what was idle.
    growth: f64,
    idle_since: Option<Time>,
    /// Mean length of the last attempts, and how many of them there were.
    attempt_s: f64,
    attempts: f64,
    crowded: usize,
}

impl Intake {
    pub(super) fn new(rules: &Rules, seats: &[Seat], groups: &[u32]) -> Intake {
        Intake {
            slots: slots(seats, groups).min(u64::from(rules.max_in_flight)) as f64,
            allowance: rules.default_allowance(),
            growth: 1.0,
            idle_since: None,
            attempt_s: FIRST_GUESS_S,
            attempts: 0.0,
            crowded: CROWDED,
        }
    }

    /// Other bounds on memory, for tests.
    #[cfg(test)]
    pub(super) fn crowded_at(&mut self, bytes: usize) {
        self.crowded = bytes;
    }

    /// Reading goes on while fewer origins than this have jobs that wait.
    pub(super) fn origins(&self) -> usize {
        let bound = f64::from(self.allowance.bound());
        let carries = match self.allowance.rate {
            Some(rate) => bound.min(rate * self.attempt_s),
            None => bound,
        };
        let needed = AHEAD * self.slots / carries.max(f64::MIN_POSITIVE);
        (needed.max(ORIGINS_LEAST) * self.growth).min(ORIGINS_MOST) as usize
    }

    /// Whether more of the list is to be read: so many origins have untried jobs, and all jobs in
    /// memory take `bytes`.
    pub(super) fn wants_more(&self, origins: usize, bytes: usize) -> bool {
        bytes < LITTLE || origins < self.origins()
    }

    /// How many jobs an origin with this `quota` may have in memory while all jobs there take
    /// `bytes`.
    pub(super) fn quota(&self, quota: usize, bytes: usize) -> usize {
        if bytes < self.crowded / 2 {
            usize::MAX
        } else if bytes < self.crowded {
            quota
        } else if bytes < 2 * self.crowded {
            quota.min(QUEUE_LEAST)
        } else {
            0
        }
    }

    /// How many of the jobs that such an origin has on disk come back at a time. A minute of work
    /// where memory is empty, too: what waits there may be the whole list.
    pub(super) fn refill(&self, quota: usize, bytes: usize) -> usize {
        self.quota(quota, bytes).clamp(1, quota.max(1))
    }

    /// Whether memory is far from full.
    pub(super) fn is_roomy(&self, bytes: usize) -> bool {
        bytes < self.crowded
    }

    /// Whether memory takes any job at all.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes < 2 * self.crowded
    }

    /// The quota of an origin of which only the default budget is known.
    pub(super) fn default_quota(&self) -> usize {
        quota_of(self.allowance)
    }

    /// An attempt has ended after `took`.
    pub(super) fn landed(&mut self, took: Duration) {
        self.attempts = (self.attempts + 1.0).min(MEMORY);
        self.attempt_s += (took.as_secs_f64() - self.attempt_s) / self.attempts;
    }

    /// How long attempts take; `None` before one has ended.
    pub(super) fn attempt(&self) -> Option<Duration> {
        (self.attempts > 0.0).then(|| Duration::from_secs_f64(self.attempt_s))
    }

    /// Slots of the fleet.
    pub(super) fn slots(&self) -> f64 {
        self.slots
    }

    /// All slots are taken, or must not be.
    pub(super) fn busy(&mut self) {
        self.idle_since = None;
    }

    /// A slot is free and no job may start, with `origins` that have jobs waiting. Answers when to
    /// look again for that reason.
    pub(super) fn idle(&mut self, origins: usize, now: Time) -> Option<Time> {
        let since = *self.idle_since.get_or_insert(now);
        let most = self.origins();
        if origins < most || most as f64 >= ORIGINS_MOST {
            return None;
        }
        if now < since + IDLE {
            return Some(since + IDLE);
        }
        self.growth *= GROWTH;
        self.idle_since = Some(now);
        Some(now + IDLE)
    }
}

/// How many jobs an origin with this budget may have in memory at most.
pub(super) fn quota_of(allowance: Allowance) -> usize {
    match allowance.rate {
        Some(rate) => ((LASTS_S * rate).ceil() as usize).clamp(QUEUE_LEAST, QUEUE_MOST),
        None => QUEUE_MOST,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::world::{rules, seats};
    use super::*;

    fn intake(rate: Option<f64>, slots: u32) -> Intake {
        Intake::new(&Rules { rate, ..rules() }, &seats(&[slots]), &[])
    }

    #[test]
    fn enough_origins_are_read_to_keep_the_slots_busy_at_the_rate() {
        assert_eq!(intake(None, 9_000).origins(), 1000);
        assert_eq!(intake(Some(10.0), 3_000).origins(), 1000);
        assert_eq!(intake(Some(1.0), 3_000).origins(), 4500, "one second each");
        let mut fast = intake(Some(1.0), 3_000);
        (0..200).for_each(|_| fast.landed(Duration::from_millis(100)));
        assert!(
            (44_000..=45_000).contains(&fast.origins()),
            "{}",
            fast.origins()
        );
        // Ten times the latency, and the bound in flight at one origin holds: 4 s at the rate.
        let mut slow = intake(Some(1.0), 3_000);
        (0..900).for_each(|_| slow.landed(Duration::from_secs(10)));
        assert_eq!(slow.origins(), 1125);
    }

    #[test]
    fn a_slot_that_is_idle_for_long_widens_the_reading() {
        let mut intake = intake(Some(10.0), 100);
        let at = Time::from_millis;
        assert_eq!(intake.idle(999, at(0)), None, "more may be read as it is");
        assert_eq!(intake.idle(1000, at(50)), Some(at(100)));
        intake.busy();
        assert_eq!(intake.idle(1000, at(90)), Some(at(190)));
        assert_eq!(intake.idle(1000, at(190)), Some(at(290)));
        assert_eq!(intake.origins(), 1500);
        for n in 2.. {
            if intake.idle(usize::MAX, at(100 * n)).is_none() {
                assert!(n < 60, "it does not wake for ever");
                break;
            }
        }
    }

    #[test]
    fn an_origin_keeps_a_minute_of_work_in_memory_within_bounds() {
        let quota = |rate| quota_of(Rules { rate, ..rules() }.default_allowance());
        assert_eq!(
            [Some(0.01), Some(0.5), Some(10.0), None].map(quota),
            [4, 30, 64, 64]
        );
        let intake = intake(None, 1);
        let quotas = [0, CROWDED / 2, CROWDED, 2 * CROWDED].map(|bytes| intake.quota(64, bytes));
        assert_eq!(quotas, [usize::MAX, 64, 4, 0]);
    }
}
