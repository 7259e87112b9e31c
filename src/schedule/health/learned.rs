//! A ceiling learned from refusals: the exit said itself how much is too much.
//!
//! Owns the ceiling and how long it holds: 60 s, doubled each time it is confirmed, so that an
//! exit whose contract is smaller than listed is tested ever more rarely, and one that was only
//! short of room for a moment is soon back.

use std::time::Duration;

use crate::model::Time;

use super::doubled;

/// How long it holds at first.
const HOLD: Duration = Duration::from_secs(60);
const HOLD_MOST: Duration = Duration::from_secs(1800);

/// What refusals have taught.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learned {
    cap: u32,
    confirmed: u8,
    until: Time,
}

impl Learned {
    /// The ceiling while it holds.
    pub(super) fn cap(&self, now: Time) -> Option<u32> {
        (now < self.until).then_some(self.cap)
    }

    /// When it runs out.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// A refusal in a burst that has taught already: the ceiling may be lower still.
    pub(super) fn lower(&mut self, cap: u32) {
        self.cap = self.cap.min(cap);
    }

    /// A refusal of an attempt that was dispatched under the present ceiling or without one.
    pub(super) fn learn(&mut self, cap: u32, now: Time) {
        let held = doubled(HOLD, self.confirmed, HOLD_MOST);
        let first = self.until == Time::ZERO;
        // As long a time without refusals as it held has refuted it.
        self.confirmed = if first || now > self.until + held {
            0
        } else {
            self.confirmed.saturating_add(1)
        };
        self.cap = self.cap(now).map_or(cap, |present| present.min(cap));
        self.until = now + doubled(HOLD, self.confirmed, HOLD_MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_confirmation_doubles_the_time_it_holds_up_to_half_an_hour() {
        let mut learned = Learned::default();
        let mut now = Time::from_secs(1);
        for secs in [60, 120, 240, 480, 960, 1800, 1800] {
            learned.learn(3, now);
            assert_eq!(learned.until() - now, Duration::from_secs(secs));
            now = learned.until();
            assert_eq!(learned.cap(now), None);
        }
    }

    #[test]
    fn a_long_time_without_refusals_makes_the_next_one_short_again() {
        let mut learned = Learned::default();
        learned.learn(3, Time::from_secs(0));
        learned.learn(3, Time::from_secs(60));
        learned.learn(3, Time::from_secs(1000));
        assert_eq!(learned.until(), Time::from_secs(1060));
    }

    #[test]
    fn a_burst_lowers_it_and_never_raises_it() {
        let mut learned = Learned::default();
        learned.learn(9, Time::from_secs(1));
        learned.lower(5);
        learned.lower(7);
        learned.learn(8, Time::from_secs(2));
        assert_eq!(learned.cap(Time::from_secs(3)), Some(5));
    }
}
