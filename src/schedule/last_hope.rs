//! The end: when no exit is left to hope for.
//!
//! Owns the two ways a run ends for want of exits: each one is evicted or past hope, with no
//! good answer from any exit since; or no exit was usable for `--no-exit-timeout`. Past hope is
//! an exit that has failed its last three probes, and one that never gave a good answer and has
//! failed for half a minute, which is about as long as the rests before three probes are: an
//! exit that hangs would take many times its time limits to get there. Leaves to the scheduler to
//! give up the jobs. All questions are O(1): a good answer does not touch 100,000 counters but
//! starts a new generation of them.
//!
//! Time without a usable exit adds up until a good answer comes. The moments in which an exit
//! is being probed interrupt it but do not set it back, else a pool that only ever probes would go on
//! for ever; and time in which exits are ready but no job may go (an origin's pause) does not count.

use std::time::Duration;

use crate::model::Time;

use super::health::Span;

/// An exit that rests for the first time is not dead; after this many failed probes it is.
const PROBES: u8 = 3;
/// One that never gave a good answer is also after this many faults …
const FAULTS: u8 = 3;
/// … over this long, from the start of the first: three rests of an ejected exit are 17 to 35 s.
/// Less: a short outage at the start ends the run; more: one that hangs costs that much more.
const FAILING: Duration = Duration::from_secs(30);

/// What went wrong at one exit since the last good answer of any exit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Failed {
    generation: u32,
    probes: u8,
    faults: u8,
    suspect: bool,
    hopeless: bool,
    /// When the first attempt that failed was dispatched.
    since: Time,
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

    /// More than half of all exits are evicted or suspected.
    pub fn most_failed(&self) -> bool {
        (self.evicted + self.suspects) * 2 > self.exits
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
        if exit.probes >= PROBES {
            self.past_hope(exit);
        }
    }

    /// An attempt failed through an exit that never gave a good answer.
    pub fn stranger_failed(&mut self, exit: &mut Failed, span: Span) {
        self.renew(exit);
        if exit.faults == 0 || span.dispatched < exit.since {
            exit.since = span.dispatched;
        }
        exit.faults = exit.faults.saturating_add(1);
        if exit.faults >= FAULTS && span.now - exit.since >= FAILING {
            self.past_hope(exit);
        }
    }

    fn past_hope(&mut self, exit: &mut Failed) {
        self.hopeless += u32::from(!exit.hopeless);
        exit.hopeless = true;
    }

    /// An exit was evicted.
    pub fn evicted(&mut self, exit: &mut Failed) {
        self.renew(exit);
        self.evicted += 1;
        self.hopeless -= u32::from(exit.hopeless);
        self.suspects -= u32::from(exit.suspect);
    }

    /// Exits that are not evicted.
    pub fn left(&self) -> u32 {
        self.exits - self.evicted
    }

    /// Tells whether an exit is usable now.
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
    /// At least one might be given an attempt if a job was ready, or carries one that may end well.
    Some,
    /// All rest, are evicted, or carry all they may and are not expected to answer; or the pool
    /// is paused.
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
    fn an_exit_that_never_answered_and_failed_for_half_a_minute_is_past_hope() {
        let mut hope = LastHope::new(1, PATIENCE);
        let mut exit = Failed::default();
        let failed = |at: u64, now: u64| Span {
            dispatched: secs(at),
            now: secs(now),
        };
        for span in [failed(5, 6), failed(2, 15), failed(15, 31)] {
            hope.stranger_failed(&mut exit, span);
            assert!(!hope.is_over(secs(31)));
        }
        hope.stranger_failed(&mut exit, failed(31, 32));
        assert!(hope.is_over(secs(32)));
        hope.good(secs(33));
        hope.stranger_failed(&mut exit, failed(33, 90));
        assert!(!hope.is_over(secs(90)), "one slow fault is not enough");
    }

    #[test]
    fn an_exit_that_is_past_hope_in_both_ways_counts_once() {
        let mut hope = LastHope::new(2, PATIENCE);
        let mut exit = Failed::default();
        for n in 0..5 {
            hope.probe_failed(&mut exit);
            let span = Span {
                dispatched: secs(n * 20),
                now: secs(n * 20 + 10),
            };
            hope.stranger_failed(&mut exit, span);
        }
        assert!(!hope.is_over(secs(200)));
        hope.evicted(&mut exit);
        assert!(!hope.is_over(secs(200)));
    }

    #[test]
    fn most_have_failed_when_more_than_half_are_evicted_or_suspected() {
        let mut hope = LastHope::new(4, PATIENCE);
        let mut exits = [Failed::default(); 3];
        hope.evicted(&mut exits[0]);
        hope.suspect(&mut exits[1]);
        assert!(!hope.most_failed());
        hope.suspect(&mut exits[2]);
        assert!(hope.most_failed());
        hope.good(secs(1));
        assert!(!hope.most_failed());
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
