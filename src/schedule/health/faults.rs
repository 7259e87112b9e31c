//! What takes capacity from an exit: faults, refusals, too many 429s, and their pardon.
//!
//! Owns hold-off, limits, ejection and eviction of one exit. Leaves to `health` the state itself
//! and how it is earned back, to `suspicion` when the faults are too many.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::model::Time;

use super::suspicion::{Level, Odds};
use super::throttle::{PoolShare, Throttled};
use super::{Change, Charge, EJECTIONS_MOST, Ejection, Health, Reason, Span, State, doubled};
use crate::schedule::split::{Ejects, Share};

/// Hold-off is the exit's share of this, doubled with each fault in a row.
const HOLD_OFF: Duration = Duration::from_millis(250);
const HOLD_OFF_MOST: Duration = Duration::from_secs(10);
/// After a cut it rests this many times as long as the attempt had waited. So the last job of a
/// list, which nobody can hurry when it is given to such an exit, waits a quarter of what the
/// whole list takes at most. Less: it waits longer; more: a slow exit joins in later.
const REST_AFTER_CUT: u32 = 3;
const REST_AFTER_CUT_MOST: Duration = Duration::from_secs(30);
/// The most for faults that cannot be laid on the exit: a silent origin does not stop the only one.
const HOLD_OFF_UNPROVEN: Duration = Duration::from_secs(1);
/// A smaller share of a fault than this is no reason to rest: the origin is known to be bad.
const HOLD_OFF_SHARE: f32 = 0.2;
/// The first rest of an ejected exit, doubled with each further one.
const REST: Duration = Duration::from_secs(5);
pub(super) const REST_MOST: Duration = Duration::from_secs(600);

impl Health {
    /// A fault of which the exit carries a share.
    pub fn fault(&mut self, charge: Charge, span: Span, rng: &mut impl Rng) -> Change {
        let Charge {
            share,
            odds,
            ejection,
        } = charge;
        self.record.fault();
        match self.state {
            State::Ejected | State::Evicted => Change::None,
            State::Probation if !self.is_current(span) => Change::None,
            // A fault that is rather the origin's says nothing about the probe.
            State::Probation if !share.is_mostly_exit() => {
                self.hold_off(share, ejection, span);
                Change::None
            }
            State::Probation => {
                if ejection == Ejection::Panic {
                    self.ejections = self.ejections.saturating_sub(1);
                }
                self.eject(Reason::ProbeFailed, span.now, rng)
            }
            State::Healthy | State::Limited => {
                self.hold_off(share, ejection, span);
                self.suspicion.fault(share, odds);
                if share.is_mostly_exit() {
                    self.goods = 0;
                }
                match self.suspicion.level() {
                    Level::Low => Change::None,
                    Level::Limit => self.halve(Reason::Faults, span),
                    Level::Eject => self.eject_or_spare(ejection, span, rng),
                }
            }
        }
    }

    /// Rests a moment, so that the exit that fails fastest does not look least loaded. A burst
    /// that was under way when the rest began does not prolong it. Of a fault that is only in part
    /// the exit's, it rests that part of the time: with whole rests a list of which two
    /// sites in five are gone (`fixtures/sim/stale-list.json`) lost an eighth of its early pace.
    fn hold_off(&mut self, share: Share, ejection: Ejection, span: Span) {
        if share.exit < HOLD_OFF_SHARE || span.dispatched < self.held_from {
            return;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        let most = match (ejection, share.ejects) {
            // The next probe is to go through another exit, and none after the pause must wait.
            (Ejection::Panic, _) | (_, Ejects::No) => HOLD_OFF_UNPROVEN,
            (_, Ejects::Yes) => HOLD_OFF_MOST,
        };
        let rest = doubled(HOLD_OFF, self.in_a_row, HOLD_OFF_MOST).mul_f32(share.exit);
        self.held_from = span.now;
        self.rest_until = self.rest_until.max(span.now + rest.min(most));
    }

    /// An attempt was cut because it waited for the exit's first answer, others stood idle.
    pub fn was_cut(&mut self, span: Span) {
        let rest = (span.now - span.dispatched).saturating_mul(REST_AFTER_CUT);
        self.rest_until = self
            .rest_until
            .max(span.now + rest.min(REST_AFTER_CUT_MOST));
    }

    fn eject_or_spare(&mut self, ejection: Ejection, span: Span, rng: &mut impl Rng) -> Change {
        match ejection {
            Ejection::Allowed => self.eject(Reason::Faults, span.now, rng),
            Ejection::Withheld | Ejection::Panic => {
                self.suspicion.hold();
                self.limit = 1;
                self.epoch = span.now;
                self.state = State::Limited;
                self.reason = Reason::Spared;
                Change::Spared
            }
        }
    }

    fn eject(&mut self, reason: Reason, now: Time, rng: &mut impl Rng) -> Change {
        if self.ejections >= EJECTIONS_MOST {
            return self.evict(Reason::NeverRecovered);
        }
        let rest = doubled(REST, self.ejections, REST_MOST);
        self.rest_until = now + rest.mul_f64(rng.random_range(0.5..1.0));
        self.ejections += 1;
        self.epoch = now;
        self.state = State::Ejected;
        self.reason = reason;
        Change::Ejected
    }

    fn halve(&mut self, reason: Reason, span: Span) -> Change {
        let cap = self.ceiling.min(self.limit);
        if !self.is_current(span) || cap == 1 {
            return Change::None;
        }
        self.limit = (cap / 2).max(1);
        self.goods = 0;
        self.epoch = span.now;
        self.state = State::Limited;
        self.reason = reason;
        Change::Limited
    }

    /// The exit refused with `in_flight` (this one included, at least 2) under way: it carries
    /// one less. Refusals of one burst lower the ceiling further, but confirm it only once.
    pub fn congested(&mut self, in_flight: u32, span: Span) -> Change {
        if self.state == State::Evicted {
            return Change::None;
        }
        let before = self.cap(span.now);
        let carries = in_flight.saturating_sub(1).max(1);
        if !self.is_current(span) && self.learned.cap(span.now).is_some() {
            self.learned.lower(carries);
        } else {
            self.learned.learn(carries, span.now);
            self.epoch = span.now;
        }
        let cap = self.cap(span.now);
        if cap >= before {
            return Change::None;
        }
        if self.state == State::Healthy {
            self.state = State::Limited;
        }
        self.reason = Reason::Refusals(cap);
        Change::Limited
    }

    /// An answer of an origin came through, a 429 or not. An exit that gets far more of them
    /// than others is halved.
    pub fn answered(&mut self, throttled: Throttled, pool: &PoolShare, span: Span) -> Change {
        let stands_out = self.throttled.record(throttled, pool);
        match self.state {
            State::Healthy | State::Limited if stands_out => self.halve(Reason::Throttled, span),
            _ => Change::None,
        }
    }

    /// Out of use for the rest of the run.
    pub fn evict(&mut self, reason: Reason) -> Change {
        if self.state == State::Evicted {
            return Change::None;
        }
        self.state = State::Evicted;
        self.reason = reason;
        Change::Evicted
    }

    /// A fault that was charged with `share` turned out to be the origin's. With no other fault
    /// in the row its hold-off ends.
    pub fn pardon(&mut self, share: Share, odds: Odds) {
        self.record.pardon();
        self.suspicion.pardon(share, odds);
        self.in_a_row = self.in_a_row.saturating_sub(1);
        if self.in_a_row == 0 && self.state != State::Ejected {
            self.rest_until = Time::ZERO;
        }
    }
}
