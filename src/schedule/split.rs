//! Who carries a fault that may be the exit's or the origin's.
//!
//! Owns the decayed fault counters of an exit and of an origin, the pool's fault rate, and
//! the share of an unclear fault that the exit carries. Leaves to `health` and `breaker` what
//! is done with the share.
//!
//! The one with the worse recent record gets the larger share, so a dead origin soon carries
//! its own faults and cannot put exits out of use, and a dead exit cannot condemn origins.
//! Both records count the fault in full: counting only the share would let the first guess
//! confirm itself.

/// Per event; halves a count over 30 events.
const KEEP: f32 = 0.977_16;
/// Per event; halves the pool's counts over 1,000 events.
const POOL_KEEP: f64 = 0.999_307_092;
/// The pool starts as if it had seen this many events at [`P0_LEAST`]; without them the first
/// fault of a run would look like a rate of one half.
const POOL_PRIOR: f64 = 200.0;
/// The pool's fault rate is taken to be at least this: below, single faults would be signs.
const P0_LEAST: f64 = 0.05;
/// And at most this: above, an exit that fails half the time would look ordinary.
const P0_MOST: f64 = 0.3;
/// The largest share that falls on an exit without evidence against it in particular.
const UNPROVEN_SHARE: f32 = 0.25;
/// The least share of an exit that stays mute and has never worked, whatever the origin's record.
const NEVER_WORKED_SHARE: f32 = 0.5;

/// How often something failed lately: counts that halve every 30 events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counter {
    faults: f32,
    events: f32,
}

impl Counter {
    /// An event without fault.
    pub fn good(&mut self) {
        self.events = self.events * KEEP + 1.0;
        self.faults *= KEEP;
    }

    /// An event with one.
    pub fn fault(&mut self) {
        self.good();
        self.faults += 1.0;
    }

    /// The last fault turned out to be somebody else's.
    pub fn pardon(&mut self) {
        self.faults = (self.faults - 1.0).max(0.0);
    }

    /// Which part of the recent events were faults; 0 without any.
    pub fn share(&self) -> f32 {
        self.faults / self.events.max(1.0)
    }

    /// The estimated fault probability; `p0` where nothing is known yet.
    fn rate(&self, p0: f32) -> f32 {
        (self.faults + 1.0) / (self.events + 1.0 / p0)
    }
}

/// The pool's rate of exit faults, the p0 of the rules.
#[derive(Clone, Copy, Debug)]
pub struct PoolRate {
    faults: f64,
    events: f64,
}

impl Default for PoolRate {
    fn default() -> PoolRate {
        PoolRate {
            faults: POOL_PRIOR * P0_LEAST,
            events: POOL_PRIOR,
        }
    }
}

impl PoolRate {
    /// An attempt of which the exits carry `weight` (0 to 1).
    pub fn record(&mut self, weight: f32) {
        self.faults = self.faults * POOL_KEEP + f64::from(weight);
        self.events = self.events * POOL_KEEP + 1.0;
    }

    /// The fault rate an ordinary exit has, between 0.05 and 0.3.
    pub fn p0(&self) -> f32 {
        (self.faults / self.events).clamp(P0_LEAST, P0_MOST) as f32
    }
}

/// What, beyond the two records, points at the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Nothing: an origin that fails everybody looks just like this.
    None,
    /// Another exit had a good answer from this origin in the last minute, or the exit's
    /// unclear faults since its last good answer came from at least three origins.
    AgainstExit,
    /// The exit stayed mute and has never worked in this run: it says nothing about origins.
    NeverWorked,
}

/// An exit's part in a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The exit's, 0 to 1.
    pub exit: f32,
    /// The origin's, 0 to 1. 0 for an unclear fault that says nothing about the origin: then it
    /// is not to be told, and no other exit's charge moves to it.
    pub origin: f32,
    /// May the fault take part in putting the exit out of use? Not without evidence: a silent
    /// origin behind the only exit must not.
    pub ejects: Ejects,
}

/// Whether a charge may add up to an ejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ejects {
    /// It may.
    Yes,
    /// It may limit the exit, not more.
    No,
}

impl Share {
    /// All of it: the fault is the exit's for certain.
    pub const WHOLE: Share = Share {
        exit: 1.0,
        origin: 0.0,
        ejects: Ejects::Yes,
    };

    /// Each one's share of an unclear fault. The records are those before this event.
    pub fn of_unclear(exit: &Counter, origin: &Counter, p0: f32, evidence: Evidence) -> Share {
        let (by_exit, by_origin) = (exit.rate(p0), origin.rate(p0));
        let share = by_exit / (by_exit + by_origin);
        match evidence {
            Evidence::AgainstExit => Share {
                exit: share,
                origin: 1.0 - share,
                ejects: Ejects::Yes,
            },
            Evidence::NeverWorked => Share {
                exit: share.max(NEVER_WORKED_SHARE),
                origin: 0.0,
                ejects: Ejects::Yes,
            },
            Evidence::None => Share::without_evidence(share),
        }
    }

    /// Where nothing points at the exit in particular it carries a quarter at most.
    fn without_evidence(share: f32) -> Share {
        let exit = share.min(UNPROVEN_SHARE);
        Share {
            exit,
            origin: 1.0 - exit,
            ejects: Ejects::No,
        }
    }

    /// Whether the fault says anything about the origin.
    pub fn tells_of_origin(&self) -> bool {
        self.origin > 0.0
    }

    /// Whether the exit carries at least as much as the origin.
    pub fn is_mostly_exit(&self) -> bool {
        self.exit >= 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(faults: u32, goods: u32) -> Counter {
        let mut counter = Counter::default();
        (0..goods).for_each(|_| counter.good());
        (0..faults).for_each(|_| counter.fault());
        counter
    }

    #[test]
    fn a_count_halves_every_thirty_events() {
        let mut counter = counter(1, 0);
        (0..30).for_each(|_| counter.good());
        assert!((counter.faults - 0.5).abs() < 1e-3, "{counter:?}");
        let mut pool = PoolRate {
            faults: 1.0,
            events: 1.0,
        };
        (0..1000).for_each(|_| pool.record(0.0));
        assert!((pool.faults - 0.5).abs() < 1e-3, "{pool:?}");
    }

    #[test]
    fn the_share_is_the_formula_of_the_rules() {
        let (exit, origin) = (counter(1, 0), Counter::default());
        // pe = 2/21, po = 1/20.
        let share = Share::of_unclear(&exit, &origin, 0.05, Evidence::AgainstExit);
        let expected = (2.0 / 21.0) / (2.0 / 21.0 + 1.0 / 20.0);
        assert!((share.exit - expected).abs() < 1e-6, "{share:?}");
    }

    #[test]
    fn strangers_share_evenly_and_without_evidence_the_exit_carries_a_quarter_at_most() {
        let new = Counter::default();
        let even = Share::of_unclear(&new, &new, 0.05, Evidence::AgainstExit);
        assert_eq!((even.exit, even.ejects), (0.5, Ejects::Yes));
        assert!(even.is_mostly_exit());
        let bound = Share::of_unclear(&counter(40, 0), &new, 0.05, Evidence::None);
        assert_eq!((bound.exit, bound.ejects), (0.25, Ejects::No));
    }

    #[test]
    fn an_exit_that_has_never_worked_says_nothing_about_an_origin() {
        let share = Share::of_unclear(
            &Counter::default(),
            &counter(40, 0),
            0.05,
            Evidence::NeverWorked,
        );
        assert!(share.is_mostly_exit() && !share.tells_of_origin());
        assert_eq!(share.ejects, Ejects::Yes);
    }

    #[test]
    fn a_dead_origin_soon_carries_its_own_faults() {
        let share = Share::of_unclear(
            &counter(1, 50),
            &counter(20, 0),
            0.05,
            Evidence::AgainstExit,
        );
        assert!(share.exit < 0.1, "{share:?}");
    }

    #[test]
    fn a_dead_exit_soon_carries_its_own_faults() {
        let share = Share::of_unclear(
            &counter(10, 0),
            &counter(2, 50),
            0.05,
            Evidence::AgainstExit,
        );
        assert!(share.exit > 0.8, "{share:?}");
    }

    #[test]
    fn the_pool_rate_stays_in_its_bounds_and_starts_at_the_lower_one() {
        let mut pool = PoolRate::default();
        assert!((pool.p0() - 0.05).abs() < 1e-6);
        (0..10).for_each(|_| pool.record(1.0));
        assert!(
            pool.p0() < 0.11,
            "the first faults of a run are not yet a rate"
        );
        (0..5_000).for_each(|_| pool.record(1.0));
        assert!((pool.p0() - 0.3).abs() < 1e-6);
        (0..20_000).for_each(|_| pool.record(0.0));
        assert!((pool.p0() - 0.05).abs() < 1e-6);
    }

    #[test]
    fn a_pardon_takes_back_one_fault() {
        let mut pardoned = counter(2, 0);
        pardoned.pardon();
        assert!(pardoned.rate(0.05) < counter(2, 0).rate(0.05));
        let mut clean = Counter::default();
        clean.pardon();
        assert!(clean.faults >= 0.0);
    }
}
