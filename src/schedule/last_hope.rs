//! The end: when no exit is left to hope for (ALGORITHMS section 5, "The end").
//!
//! Owns the two ways a run ends for want of exits: each one is evicted or has failed its last
//! three probes with no good answer from any exit since; or no exit was usable for
//! `--no-exit-timeout`. Leaves to the scheduler to give up the jobs. All questions are O(1):
//! a good answer does not touch 100,000 counters but starts a new generation of them.
//!
//! Time without a usable exit adds up until a good answer comes. The moments in which an exit
//! is being probed interrupt it but do not set it back, else a pool that only ever probes would go on
//! for ever; and time in which exits are ready but no job may go (an origin's pause) does not count.

use std::time::Duration;

use crate::model::Time;

/// An exit that rests for the first time is not dead; after this many failed probes it is.
const PROBES: u8 = 3;

/// What went wrong at one exit since the last good answer of any exit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failed {
    generation: u32,
    probes: u8,
    suspect: bool,
}

/// What is left of the pool.
#[derive(Clone, Debug)]
pub struct LastHope {
    exits: u32,
    evicted: u32,
    hopeless: u32,
    suspects: u32,
    generation: u32,
    patience: Duration,
    /// Time without a usable exit before `idle_since`.
    idle: Duration,
    idle_since: Option<Time>,
}

impl LastHope {
    /// A pool of `exits`, given up when none is usable for `patience`.
    pub fn new(exits: u32, patience: Duration) -> LastHope {
        LastHope {
            exits,
            evicted: 0,
            hopeless: 0,
            suspects: 0,
            generation: 0,
            patience,
            idle: Duration::ZERO,
            idle_since: None,
        }
    }

    /// A good answer came through some exit: everybody may hope again.
    pub fn good(&mut self, now: Time) {
        self.generation = self.generation.wrapping_add(1);
        self.hopeless = 0;
        self.suspects = 0;
        self.idle = Duration::ZERO;
        self.idle_since = self.idle_since.map(|_| now);
    }

    /// An exit is suspected of being broken.
    pub fn suspect(&mut self, exit: &mut Failed) {
        self.renew(exit);
        self.suspects += u32::from(!exit.suspect);
        exit.suspect = true;
    }

    /// How many exits are suspected since the last good answer of any exit.
    pub fn suspects(&self) -> u32 {
        self.suspects
    }

    fn renew(&self, exit: &mut Failed) {
        if exit.generation != self.generation {
            *exit = Failed {
                generation: self.generation,
                ..Failed::default()
            };
        }
    }

    /// A probe of an exit failed.
    pub fn probe_failed(&mut self, exit: &mut Failed) {
        self.renew(exit);
        exit.probes = exit.probes.saturating_add(1);
        if exit.probes == PROBES {
            self.hopeless += 1;
        }
    }

    /// An exit was evicted.
    pub fn evicted(&mut self, exit: &mut Failed) {
        self.renew(exit);
        self.evicted += 1;
        self.hopeless -= u32::from(exit.probes >= PROBES);
        self.suspects -= u32::from(exit.suspect);
    }

    /// Exits that are not evicted.
    pub fn left(&self) -> u32 {
        self.exits - self.evicted
    }

    /// Tells whether an exit is usable now, that is, might be given an attempt if a job was ready.
    pub fn usable(&mut self, usable: Usable, now: Time) {
        match (usable, self.idle_since) {
            (Usable::Some, Some(since)) => {
                self.idle += now - since;
                self.idle_since = None;
            }
            (Usable::None, None) => self.idle_since = Some(now),
            (Usable::Some, None) | (Usable::None, Some(_)) => {}
        }
    }

    /// Whether the pool is to be given up.
    pub fn is_over(&self, now: Time) -> bool {
        self.evicted + self.hopeless >= self.exits || self.over_at().is_some_and(|at| now >= at)
    }

    /// When it will be if no exit becomes usable before.
    pub fn over_at(&self) -> Option<Time> {
        let left = self.patience.saturating_sub(self.idle);
        self.idle_since.map(|since| since + left)
    }
}

/// Whether any exit is usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usable {
    /// At least one.
    Some,
    /// All rest, are evicted, or the pool is paused.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn over_when_each_exit_is_evicted_or_failed_three_probes() {
        let mut hope = LastHope::new(2, PATIENCE);
        let (mut a, mut b) = (Failed::default(), Failed::default());
        hope.evicted(&mut b);
        for _ in 0..2 {
            hope.probe_failed(&mut a);
            assert!(!hope.is_over(secs(1)));
        }
        hope.probe_failed(&mut a);
        assert!(hope.is_over(secs(1)));
    }

    #[test]
    fn a_good_answer_of_any_exit_gives_all_of_them_hope() {
        let mut hope = LastHope::new(1, PATIENCE);
        let mut exit = Failed::default();
        (0..2).for_each(|_| hope.probe_failed(&mut exit));
        hope.good(secs(5));
        (0..2).for_each(|_| hope.probe_failed(&mut exit));
        assert!(!hope.is_over(secs(6)));
        hope.probe_failed(&mut exit);
        assert!(hope.is_over(secs(6)));
    }

    #[test]
    fn an_exit_that_had_failed_before_the_good_answer_has_to_fail_again() {
        let mut hope = LastHope::new(2, PATIENCE);
        let (mut a, mut b) = (Failed::default(), Failed::default());
        (0..3).for_each(|_| hope.probe_failed(&mut a));
        hope.good(secs(5));
        (0..3).for_each(|_| hope.probe_failed(&mut b));
        assert!(!hope.is_over(secs(6)));
        (0..3).for_each(|_| hope.probe_failed(&mut a));
        assert!(hope.is_over(secs(6)));
    }

    #[test]
    fn an_exit_that_is_evicted_after_its_probes_counts_once() {
        let mut hope = LastHope::new(2, PATIENCE);
        let mut exit = Failed::default();
        (0..5).for_each(|_| hope.probe_failed(&mut exit));
        hope.evicted(&mut exit);
        assert_eq!(hope.left(), 1);
        assert!(!hope.is_over(secs(1)));
    }

    #[test]
    fn suspects_count_once_each_until_a_good_answer_of_any_exit() {
        let mut hope = LastHope::new(3, PATIENCE);
        let (mut a, mut b) = (Failed::default(), Failed::default());
        (0..2).for_each(|_| hope.suspect(&mut a));
        hope.suspect(&mut b);
        assert_eq!(hope.suspects(), 2);
        hope.evicted(&mut b);
        assert_eq!(hope.suspects(), 1);
        hope.good(secs(1));
        assert_eq!(hope.suspects(), 0);
        hope.suspect(&mut a);
        assert_eq!(hope.suspects(), 1);
    }

    #[test]
    fn over_when_none_was_usable_for_long_enough() {
        let mut hope = LastHope::new(1, PATIENCE);
        assert_eq!(hope.over_at(), None);
        hope.usable(Usable::None, secs(10));
        hope.usable(Usable::None, secs(20));
        assert_eq!(hope.over_at(), Some(secs(70)));
        assert!(!hope.is_over(secs(69)) && hope.is_over(secs(70)));
    }

    #[test]
    fn probing_interrupts_the_wait_and_only_a_good_answer_sets_it_back() {
        let mut hope = LastHope::new(1, PATIENCE);
        hope.usable(Usable::None, secs(0));
        hope.usable(Usable::Some, secs(40));
        assert!(
            !hope.is_over(secs(1000)),
            "ready, but no job to try it with"
        );
        hope.usable(Usable::None, secs(1000));
        assert_eq!(hope.over_at(), Some(secs(1020)));
        hope.good(secs(1010));
        assert_eq!(hope.over_at(), Some(secs(1070)));
    }
}
