//! Panic: when so many exits fail that the cause is likely a common one.
//!
//! Owns the bound on how many exits statistics may take out of use, and the pause of the whole
//! pool with its few probes. Leaves to `health` the single exit and to `last_hope` when to give
//! up. After Envoy's "panic threshold" and "max ejection percent": a detector that ejects
//! everybody has found out something about our network, the plan or the provider, not about exits.
//!
//! A pool in which some exits still work is not paused: the broken ones over the bound keep a cap
//! of 1 and their hold-off instead.

use std::time::Duration;

use crate::model::Time;

use super::health::Ejection;

/// Pools smaller than this have no majority to speak of: each exit rests by itself.
const POOL_LEAST: u32 = 4;
/// No good answer from any exit for this long makes the cause a common one.
const QUIET: Duration = Duration::from_secs(5);
/// The exits that went out of use this long before a panic did so for its cause: it takes the
/// detectors that long to see it in half of the pool.
const PRELUDE: Duration = Duration::from_secs(30);
/// The first pause, doubled with each round of failed probes.
const PAUSE: Duration = Duration::from_secs(5);
/// Longer pauses would keep the pool from coming back within 30 s after an outage.
const PAUSE_MOST: Duration = Duration::from_secs(20);
/// Probes per round: enough that a few broken exits among them do not hide that the rest is back.
const PROBES: u32 = 8;

/// Whether the pool may give out leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Yes.
    Open,
    /// Not before this instant.
    Shut(Time),
    /// One more probe may start; then ask again.
    Probe,
    /// All probes of the round are under way: nothing before one of them ends.
    Probing,
}

/// A round of a pause and the probes after it.
#[derive(Clone, Copy, Debug)]
struct Round {
    until: Time,
    pause: Duration,
    started: u32,
    open: u32,
}

/// The pool's panic, if there is one.
#[derive(Clone, Debug, Default)]
pub struct Panic {
    round: Option<Round>,
    last_good: Option<Time>,
    /// When the last one began and ended.
    began: Time,
    ended: Time,
}

impl Panic {
    /// Whether one more of `pool` exits may be ejected when `out` are already out of use by
    /// statistics. At most half may be.
    pub fn ejection(pool: u32, out: u32) -> Ejection {
        if pool < POOL_LEAST || (out + 1) * 2 <= pool {
            Ejection::Allowed
        } else {
            Ejection::Withheld
        }
    }

    /// Whether so many of `pool` exits are suspected since the last good answer of any that
    /// the cause is likely a common one, before statistics have ejected half of them.
    pub fn is_common(pool: u32, suspects: u32) -> bool {
        pool >= POOL_LEAST && suspects * 2 > pool
    }

    /// The cause is likely a common one: an ejection was withheld, or most exits are suspected.
    /// Starts a panic (`true`) unless there is one, or some exit worked just now.
    pub fn alarm(&mut self, now: Time) -> bool {
        let quiet = self.last_good.is_none_or(|good| now - good >= QUIET);
        if !quiet || self.round.is_some() {
            return false;
        }
        self.round = Some(Round::new(now, PAUSE));
        self.began = now;
        true
    }

    /// Whether the pool is in panic.
    pub fn is_on(&self) -> bool {
        self.round.is_some()
    }

    /// Whether a lease may be given out; `pool` exits are not evicted.
    pub fn gate(&self, pool: u32, now: Time) -> Gate {
        match self.round {
            None => Gate::Open,
            Some(round) if now < round.until => Gate::Shut(round.until),
            Some(round) if round.started < quota(pool) => Gate::Probe,
            Some(_) => Gate::Probing,
        }
    }

    /// A lease was given out at a [`Gate::Probe`].
    pub fn probe_started(&mut self) {
        if let Some(round) = &mut self.round {
            round.started += 1;
            round.open += 1;
        }
    }

    /// Whether an attempt dispatched then is one of the round's probes. Those from before the
    /// pause are not.
    pub fn is_probe(&self, dispatched: Time) -> bool {
        self.round.is_some_and(|round| dispatched >= round.until)
    }

    /// A good answer came through some exit; ends a panic (`true`).
    pub fn good(&mut self, now: Time) -> bool {
        self.last_good = Some(now);
        let ends = self.round.take().is_some();
        if ends {
            self.ended = now;
        }
        ends
    }

    /// Whether an exit that went out of use then did so for the cause of the last panic, which
    /// is over: during it or shortly before.
    pub fn explains(&self, out_at: Time) -> bool {
        self.round.is_none() && self.began.back(PRELUDE) <= out_at && out_at < self.ended
    }

    /// A probe failed. When all of the round have, the next pause begins: an exit that fails at
    /// once must not be the round's only one.
    pub fn probe_failed(&mut self, pool: u32, now: Time) {
        let Some(round) = &mut self.round else { return };
        round.open = round.open.saturating_sub(1);
        if round.open == 0 && round.started >= quota(pool) {
            let pause = round.pause.saturating_mul(2).min(PAUSE_MOST);
            self.round = Some(Round::new(now, pause));
        }
    }

    /// A probe ended without saying anything (cancelled, local, the pair's affair): its place is
    /// free again.
    pub fn probe_void(&mut self) {
        if let Some(round) = &mut self.round {
            round.started = round.started.saturating_sub(1);
            round.open = round.open.saturating_sub(1);
        }
    }
}

/// Probes of a round in a pool of so many exits that are not evicted.
fn quota(pool: u32) -> u32 {
    PROBES.min(pool.max(1))
}

impl Round {
    fn new(now: Time, pause: Duration) -> Round {
        Round {
            until: now + pause,
            pause,
            started: 0,
            open: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn at_most_half_of_a_pool_is_ejected_and_small_pools_are_left_to_each_exit() {
        for (pool, out, allowed) in [
            (1, 0, true),
            (3, 2, true),
            (4, 1, true),
            (4, 2, false),
            (5, 2, false),
            (100, 49, true),
            (100, 50, false),
        ] {
            let ejection = Panic::ejection(pool, out);
            assert_eq!(ejection == Ejection::Allowed, allowed, "{out} of {pool}");
        }
    }

    #[test]
    fn a_pool_in_which_some_exit_works_is_not_paused() {
        let mut panic = Panic::default();
        panic.good(secs(10));
        assert!(!panic.alarm(secs(14)));
        assert_eq!(panic.gate(10, secs(14)), Gate::Open);
        assert!(panic.alarm(secs(15)), "quiet for five seconds");
        assert!(!panic.alarm(secs(16)), "one panic at a time");
    }

    #[test]
    fn pauses_double_to_their_bound_with_a_round_of_probes_after_each() {
        let mut panic = Panic::default();
        assert!(panic.alarm(secs(0)));
        let mut now = secs(0);
        for pause in [5, 10, 20, 20] {
            let until = now + Duration::from_secs(pause);
            assert_eq!(panic.gate(2, now), Gate::Shut(until));
            now = until;
            assert_eq!(panic.gate(2, now), Gate::Probe);
            panic.probe_started();
            assert_eq!(panic.gate(2, now), Gate::Probe);
            panic.probe_started();
            assert_eq!(panic.gate(2, now), Gate::Probing);
            panic.probe_failed(2, now);
            assert_eq!(panic.gate(2, now), Gate::Probing, "one is still under way");
            panic.probe_failed(2, now);
        }
    }

    #[test]
    fn a_probe_that_fails_at_once_leaves_the_others_their_turn() {
        let mut panic = Panic::default();
        panic.alarm(secs(0));
        for _ in 0..3 {
            assert_eq!(panic.gate(3, secs(5)), Gate::Probe);
            panic.probe_started();
            panic.probe_failed(3, secs(5));
        }
        assert_eq!(panic.gate(3, secs(5)), Gate::Shut(secs(15)));
    }

    #[test]
    fn one_good_answer_ends_it() {
        let mut panic = Panic::default();
        panic.alarm(secs(0));
        assert!(panic.good(secs(6)));
        assert_eq!(panic.gate(10, secs(6)), Gate::Open);
        assert!(!panic.good(secs(7)));
    }

    #[test]
    fn a_panic_that_is_over_explains_what_happened_in_it_and_shortly_before() {
        let mut panic = Panic::default();
        assert!(!panic.explains(secs(0)));
        panic.alarm(secs(100));
        assert!(!panic.explains(secs(100)), "not before it is over");
        panic.good(secs(150));
        for (at, explained) in [(69, false), (70, true), (149, true), (150, false)] {
            assert_eq!(panic.explains(secs(at)), explained, "{at} s");
        }
    }

    #[test]
    fn a_probe_that_says_nothing_frees_its_place() {
        let mut panic = Panic::default();
        panic.alarm(secs(0));
        panic.probe_started();
        assert_eq!(panic.gate(1, secs(5)), Gate::Probing);
        panic.probe_void();
        assert_eq!(panic.gate(1, secs(5)), Gate::Probe);
    }

    #[test]
    fn attempts_from_before_the_pause_are_no_probes() {
        let mut panic = Panic::default();
        panic.alarm(secs(10));
        assert!(!panic.is_probe(secs(9)) && panic.is_probe(secs(15)));
    }
}
