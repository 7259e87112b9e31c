//! The health of one exit: what it may carry now, and why.
//!
//! Owns the states and the caps they allow, what the exit has shown it can do, and how capacity is
//! earned back; `faults` has what takes it, `suspicion` the detector of broken exits, `learned` the
//! ceiling learned from refusals, `throttle` the share of 429s. Leaves to `blame` and `split` what
//! is charged, to `fleet` what only the whole pool can know (the usual fault rate, panic), and to
//! the pool of exits how many are in flight. Since nothing here counts what is in flight, a probe that is cancelled
//! cannot keep its place.
//!
//! Invariant: `cap` never exceeds the ceiling; an attempt that was dispatched before the
//! last cut cannot cause another ("once per epoch"), so a burst that fails as one counts as one.
//!
//! Each exit takes about a hundred bytes: fleets have 100,000 of them.

mod faults;
mod learned;
mod state;
mod suspicion;
mod throttle;

use std::time::Duration;

use crate::model::Time;

use super::distinct::Distinct;
use super::split::{Counter, Share};

use learned::Learned;
use suspicion::{Level, Suspicion};
use throttle::ExitShare;

pub use state::{Change, Reason, State};
pub use suspicion::Odds;
pub use throttle::{PoolShare, Throttled};

/// An exit that was ejected this often without earning it back is evicted.
const EJECTIONS_MOST: u8 = 5;
/// Good answers that end probation.
const PROBATION_GOODS: u8 = 3;
/// Good answers that double a lowered cap.
const GROWTH_GOODS: u8 = 10;
/// Good answers at full cap that take back one ejection. Without it the rare false ejections of a
/// good exit would add up over a long run; a broken exit does not reach it.
const FORGIVE_GOODS: u8 = 50;
/// Unclear faults at this many origins in a row speak against the exit.
const UNCLEAR_ORIGINS: usize = 3;
/// No limit below the ceiling.
const UNLIMITED: u32 = u32::MAX;

/// When an attempt ran.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When its lease was given out.
    pub dispatched: Time,
    /// When it ended: the present.
    pub now: Time,
}

/// Whether the pool may lose one more exit to statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ejection {
    /// It may.
    Allowed,
    /// Half of it is out already: the cause is likely not this exit.
    Withheld,
    /// The pool is in panic: failed probes say no more about single exits.
    Panic,
}

/// A fault as it is charged to an exit.
#[derive(Clone, Copy, Debug)]
pub struct Charge {
    /// The exit's part in it.
    pub share: Share,
    /// What it means in a pool like this.
    pub odds: Odds,
    /// Whether it may eject.
    pub ejection: Ejection,
}

/// The health of one exit.
#[derive(Clone, Debug)]
pub struct Health {
    /// What it may carry at best; at least 1.
    ceiling: u32,
    /// The cap that faults have left it; [`UNLIMITED`] if none.
    limit: u32,
    suspicion: Suspicion,
    state: State,
    reason: Reason,
    /// Attempts dispatched before this cannot cut again.
    epoch: Time,
    /// End of its rest if it is ejected, else of its hold-off.
    rest_until: Time,
    /// Faults of attempts dispatched before this do not prolong the hold-off.
    held_from: Time,
    learned: Learned,
    record: Counter,
    unclear_origins: Distinct<UNCLEAR_ORIGINS>,
    /// Faults in a row, each hold-off counted once.
    in_a_row: u8,
    ejections: u8,
    goods: u8,
    throttled: ExitShare,
    proven: Proven,
}

/// What the exit has shown it can do in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proven {
    /// Nothing yet.
    #[default]
    Nothing,
    /// An origin's answer came through.
    Answers,
    /// One came over TLS whose certificate was valid: it does not intercept.
    Tls,
}

impl Health {
    /// A healthy exit that may carry `ceiling` (at least 1).
    pub fn new(ceiling: u32) -> Health {
        Health {
            ceiling: ceiling.max(1),
            limit: UNLIMITED,
            suspicion: Suspicion::default(),
            state: State::Healthy,
            reason: Reason::None,
            epoch: Time::ZERO,
            rest_until: Time::ZERO,
            held_from: Time::ZERO,
            learned: Learned::default(),
            record: Counter::default(),
            unclear_origins: Distinct::default(),
            in_a_row: 0,
            ejections: 0,
            goods: 0,
            throttled: ExitShare::default(),
            proven: Proven::Nothing,
        }
    }

    /// How many attempts it may carry now; 0 if ejected or evicted. Hold-off is apart:
    /// see [`Health::usable_at`].
    pub fn cap(&self, now: Time) -> u32 {
        match self.state {
            State::Ejected | State::Evicted => 0,
            State::Probation => 1,
            State::Healthy | State::Limited => {
                let learned = self.learned.cap(now).unwrap_or(UNLIMITED);
                self.ceiling
                    .min(self.limit)
                    .min(learned)
                    .min(self.trial())
                    .max(1)
            }
        }
    }

    /// One attempt at a time through an exit that has never worked once it fails again after a
    /// hold-off: else one that fails at once would take a job for each of its slots after each.
    /// (Simulated: it met 11 of 90 jobs without this bound, 9 with it. An exit that has worked is
    /// not bound so: in a list with many dead hosts that cost a fifth of the pace. From the first
    /// fault on, a dead fleet would take longer to be known as one.)
    fn trial(&self) -> u32 {
        if self.in_a_row > 1 && self.proven == Proven::Nothing {
            1
        } else {
            UNLIMITED
        }
    }

    /// From when on it may be given an attempt; `None`: never again. An ejected exit needs
    /// [`Health::wake`] then.
    pub fn usable_at(&self) -> Option<Time> {
        match self.state {
            State::Evicted => None,
            State::Ejected | State::Healthy | State::Limited | State::Probation => {
                Some(self.rest_until)
            }
        }
    }

    /// The next instant at which time alone changes the cap or the usability: the end of the rest,
    /// of the hold-off or of a learned ceiling.
    pub fn changes_at(&self, now: Time) -> Option<Time> {
        let ends = match self.state {
            State::Evicted => return None,
            State::Ejected => return Some(self.rest_until),
            State::Probation => [self.rest_until, Time::ZERO],
            State::Healthy | State::Limited => [self.rest_until, self.learned.until()],
        };
        ends.into_iter().filter(|&end| end > now).min()
    }

    /// What it is fit for.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why it is not simply healthy.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// How often it failed lately.
    pub fn record(&self) -> &Counter {
        &self.record
    }

    /// What it has shown it can do.
    pub fn proven(&self) -> Proven {
        self.proven
    }

    /// Notes that it can do this.
    pub fn proves(&mut self, what: Proven) {
        self.proven = self.proven.max(what);
    }

    /// Its unclear faults since its last good answer come from enough origins to speak
    /// against it.
    pub fn fails_everywhere(&self) -> bool {
        self.unclear_origins.is_full()
    }

    /// Notes the origin of an unclear fault, before it is weighed.
    pub fn unclear_at(&mut self, origin: u32) {
        self.unclear_origins.insert(origin);
    }

    /// Whether its faults make it likely to be broken: enough to limit or to eject it.
    pub fn is_suspect(&self) -> bool {
        self.suspicion.level() > Level::Low
    }

    /// Whether an attempt of this span is a probe of an exit on probation.
    pub fn is_probe(&self, span: Span) -> bool {
        self.state == State::Probation && self.is_current(span)
    }

    /// Whether an attempt was dispatched after the last cut or change of state.
    pub fn is_current(&self, span: Span) -> bool {
        span.dispatched >= self.epoch
    }

    /// Time has passed: an ejected exit whose rest is over goes on probation, one that was only
    /// limited by refusals is healthy when what it learned from them has run out.
    pub fn wake(&mut self, now: Time) -> Change {
        match self.state {
            State::Ejected if now >= self.rest_until => {
                self.state = State::Probation;
                self.epoch = now;
                self.goods = 0;
                Change::Probation
            }
            State::Limited if self.limit == UNLIMITED && now >= self.learned.until() => {
                self.earn_back(Change::None)
            }
            State::Healthy | State::Limited | State::Ejected => Change::None,
            State::Probation | State::Evicted => Change::None,
        }
    }

    /// An answer of an origin came through.
    pub fn good(&mut self, odds: Odds, span: Span) -> Change {
        self.record.good();
        self.proves(Proven::Answers);
        self.unclear_origins = Distinct::default();
        match self.state {
            State::Ejected | State::Evicted => Change::None,
            State::Probation if !self.is_current(span) => Change::None,
            State::Probation => self.good_probe(),
            State::Healthy | State::Limited => {
                self.in_a_row = 0;
                self.suspicion.good(odds);
                self.grow()
            }
        }
    }

    fn good_probe(&mut self) -> Change {
        self.in_a_row = 0;
        self.goods += 1;
        if self.goods < PROBATION_GOODS {
            return Change::None;
        }
        self.state = State::Healthy;
        self.suspicion = Suspicion::default();
        self.goods = 0;
        self.limit = 1;
        self.earn_back(Change::Recovered)
    }

    /// Good answers double a lowered cap; at the full cap they take back ejections.
    fn grow(&mut self) -> Change {
        if self.suspicion.level() > Level::Low {
            return Change::None;
        }
        self.goods += 1;
        if self.limit == UNLIMITED {
            if self.goods >= FORGIVE_GOODS {
                self.goods = 0;
                self.ejections = self.ejections.saturating_sub(1);
            }
            return Change::None;
        }
        if self.goods < GROWTH_GOODS {
            return Change::None;
        }
        self.goods = 0;
        self.limit = self.limit.saturating_mul(2);
        self.earn_back(Change::Grown)
    }

    /// At the ceiling nothing is left to earn.
    fn earn_back(&mut self, otherwise: Change) -> Change {
        if self.limit < self.ceiling {
            return otherwise;
        }
        self.limit = UNLIMITED;
        self.state = State::Healthy;
        self.reason = Reason::None;
        Change::Recovered
    }

    /// What took it out of use turned out to be common to the whole pool, and it works: as if
    /// that had not happened.
    pub fn restore(&mut self) -> Change {
        match self.state {
            State::Ejected | State::Evicted => Change::None,
            State::Healthy | State::Limited | State::Probation => {
                self.ejections = self.ejections.saturating_sub(1);
                self.suspicion = Suspicion::default();
                self.goods = 0;
                self.limit = UNLIMITED;
                self.earn_back(Change::None)
            }
        }
    }
}

/// `base · 2^times`, at most `most`.
fn doubled(base: Duration, times: u8, most: Duration) -> Duration {
    base.saturating_mul(1_u32.checked_shl(times.into()).unwrap_or(u32::MAX))
        .min(most)
}

#[cfg(test)]
mod tests;
