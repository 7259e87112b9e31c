//! The health of all exits together: what one attempt's end means for its exit and the pool.
//!
//! Owns the exits' [`Health`], the pool's usual fault rate and share of 429s, panic and the end, and
//! keeps them in step: a good answer through one exit ends a panic and gives all of them hope.
//! Leaves to `blame` and `split` what is charged, to `census` who is counted how, and to the pool
//! of exits who is picked.
//!
//! The scheduler tells [`Fleet::has_slots`], asks [`Fleet::gate`] before each pick and calls
//! [`Fleet::started`] after it, tells each end with one of `good`, `fault`, `congested`, `neutral`
//! or `evict`, and calls [`Fleet::wake`] when an exit's [`Fleet::changes_at`] has come. After each
//! of these it reads the exit's `cap` and `usable_at` anew.

use std::time::Duration;

use rand::Rng;

use crate::model::Time;

use super::census::{Census, Standing};
use super::health::{
    Change, Charge, Ejection, Health, Odds, PoolShare, Proven, Reason, Span, State, Throttled,
};
use super::last_hope::{Failed, LastHope, Usable};
use super::panic_mode::{Gate, Panic};
use super::split::{Counter, Ejects, Evidence, PoolRate, Share};

/// All exits' health.
#[derive(Debug)]
pub struct Fleet {
    exits: Vec<Member>,
    rate: PoolRate,
    throttled: PoolShare,
    panic: Panic,
    hope: LastHope,
    census: Census,
    slots: Slots,
}

/// Whether an exit can take one more attempt at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// At least one can.
    Free,
    /// All carry what they may, rest, or are evicted.
    Taken,
}

#[derive(Debug)]
struct Member {
    health: Health,
    failed: Failed,
    /// It carried a fault that was mostly its own.
    failed_once: bool,
    /// When statistics last took it out of use.
    out_at: Option<Time>,
}

impl Member {
    fn standing(&self) -> Standing {
        let standing = Standing::of(&self.health);
        match self.failed_once {
            true => standing.once_failed(),
            false => standing,
        }
    }
}

/// An unclear fault, for [`Fleet::weigh`].
#[derive(Clone, Copy, Debug)]
pub struct Unclear<'a> {
    /// The exit it came through.
    pub exit: u32,
    /// The origin it may be the fault of.
    pub origin: u32,
    /// That origin's record without this event.
    pub record: &'a Counter,
    /// Another exit had a good answer there in the last minute.
    pub answered_elsewhere: bool,
    /// The exit said nothing of its own: see [`super::blame::is_mute`].
    pub mute: bool,
}

impl Fleet {
    /// Exits with these ceilings, all healthy. `no_exit_timeout`: how long the run waits while
    /// none is usable.
    pub fn new(ceilings: impl IntoIterator<Item = u32>, no_exit_timeout: Duration) -> Fleet {
        let member = |ceiling| Member {
            health: Health::new(ceiling),
            failed: Failed::default(),
            failed_once: false,
            out_at: None,
        };
        let exits: Vec<Member> = ceilings.into_iter().map(member).collect();
        let count = exits.len() as u32;
        Fleet {
            exits,
            rate: PoolRate::default(),
            throttled: PoolShare::default(),
            panic: Panic::default(),
            hope: LastHope::new(count, no_exit_timeout),
            census: Census::new(count),
            slots: Slots::Free,
        }
    }

    /// One exit's health, to read.
    pub fn health(&self, exit: u32) -> &Health {
        &self.exits[exit as usize].health
    }

    /// How many attempts the exit may carry now.
    pub fn cap(&self, exit: u32, now: Time) -> u32 {
        self.health(exit).cap(now)
    }

    /// From when on the exit may be given one; `None`: never again.
    pub fn usable_at(&self, exit: u32) -> Option<Time> {
        self.health(exit).usable_at()
    }

    /// When time alone changes the exit's cap or usability next.
    pub fn changes_at(&self, exit: u32, now: Time) -> Option<Time> {
        self.health(exit).changes_at(now)
    }

    /// Exits that are not evicted.
    pub fn left(&self) -> u32 {
        self.hope.left()
    }

    /// Exits in use: neither resting after an ejection nor evicted.
    pub fn up(&self) -> u32 {
        self.census.up
    }

    /// How many exits are in each state.
    pub fn by_state(&self) -> [(State, u32); State::ALL.len()] {
        self.census.by_state()
    }

    /// Whether a lease may be given out now.
    pub fn gate(&self, now: Time) -> Gate {
        self.panic.gate(self.left(), now)
    }

    /// To be told before each look at [`Fleet::is_over`] and [`Fleet::over_at`].
    pub fn has_slots(&mut self, slots: Slots, now: Time) {
        self.slots = slots;
        self.note_usable(now);
    }

    /// The head of an answer came through the exit; its body may take long.
    pub fn heard(&mut self, exit: u32, now: Time) {
        self.hope.good(now);
        self.change(exit, now, |health| {
            health.proves(Proven::Answers);
            Change::None
        });
    }

    /// Whether the pool is in panic.
    pub fn panics(&self) -> bool {
        self.panic.is_on()
    }

    /// A lease was given out.
    pub fn started(&mut self, now: Time) {
        if self.gate(now) == Gate::Probe {
            self.panic.probe_started();
        }
    }

    /// The time [`Fleet::changes_at`] told has come.
    pub fn wake(&mut self, exit: u32, now: Time) -> Change {
        self.change(exit, now, |health| health.wake(now))
    }

    /// How much of an unclear fault the exit carries. Call it once per fault, before
    /// [`Fleet::fault`]: it also notes where the exit's unclear faults come from.
    pub fn weigh(&mut self, fault: Unclear<'_>) -> Share {
        let p0 = self.rate.p0();
        let health = &mut self.exits[fault.exit as usize].health;
        health.unclear_at(fault.origin);
        let stranger = fault.mute && health.proven() == Proven::Nothing;
        let evidence = if stranger && !fault.answered_elsewhere {
            Evidence::NeverWorked
        } else if fault.answered_elsewhere || health.fails_everywhere() {
            Evidence::AgainstExit
        } else {
            Evidence::None
        };
        Share::of_unclear(health.record(), fault.record, p0, evidence)
    }

    /// An answer of an origin came through the exit; it proves at least this much.
    pub fn good(&mut self, exit: u32, proves: Proven, span: Span) -> Change {
        self.rate.record(0.0);
        self.panic.good(span.now);
        self.hope.good(span.now);
        let odds = self.odds();
        let member = &mut self.exits[exit as usize];
        let restored = member.health.is_current(span)
            && member
                .out_at
                .take_if(|at| self.panic.explains(*at))
                .is_some();
        self.change(exit, span.now, |health| {
            health.proves(proves);
            match (health.good(odds, span), restored) {
                (_, true) => health.restore(),
                (change, false) => change,
            }
        })
    }

    /// Whether that answer was a 429. An exit that gets far more of them than others is halved.
    pub fn answered(&mut self, exit: u32, throttled: Throttled, span: Span) -> Change {
        self.throttled.record(throttled);
        let pool = self.throttled;
        self.change(exit, span.now, |health| {
            health.answered(throttled, &pool, span)
        })
    }

    /// A fault of which the exit carries `share`.
    pub fn fault(&mut self, exit: u32, share: Share, span: Span, rng: &mut impl Rng) -> Change {
        self.rate.record(share.exit);
        if share.is_mostly_exit() {
            self.lose_hope(exit, share, span);
        }
        let charge = Charge {
            share,
            odds: self.odds(),
            ejection: self.ejection(),
        };
        let before = self.health(exit).reason();
        let change = self.change(exit, span.now, |health| health.fault(charge, span, rng));
        if self.panic.is_probe(span.dispatched) {
            self.panic.probe_failed(self.left(), span.now);
        }
        let member = &mut self.exits[exit as usize];
        if share.ejects == Ejects::Yes && member.health.is_suspect() {
            self.hope.suspect(&mut member.failed);
        }
        if change == Change::Spared || Panic::is_common(self.left(), self.hope.suspects()) {
            self.panic.alarm(span.now);
        }
        if matches!(change, Change::Spared | Change::Ejected) {
            self.exits[exit as usize].out_at = Some(span.now);
        }
        self.note_usable(span.now);
        match change {
            Change::Spared if before == Reason::Spared => Change::None,
            other => other,
        }
    }

    /// A fault that is mostly the exit's own. One that may be an origin's, since the exit said that
    /// it cannot reach it, is no sign of a dead exit: all sites of a stale list are like that.
    fn lose_hope(&mut self, exit: u32, share: Share, span: Span) {
        let probe = self.is_probe(exit, span);
        let member = &mut self.exits[exit as usize];
        if probe {
            self.hope.probe_failed(&mut member.failed);
        }
        if share.tells_of_origin() {
            return;
        }
        if member.health.proven() == Proven::Nothing {
            self.hope.stranger_failed(&mut member.failed, span);
        }
        let before = member.standing();
        member.failed_once = true;
        self.census.moved(before, member.standing());
    }

    /// The exit refused with this many in flight, itself included.
    pub fn congested(&mut self, exit: u32, in_flight: u32, span: Span) -> Change {
        self.neutral(span);
        self.change(exit, span.now, |health| health.congested(in_flight, span))
    }

    /// The attempt said nothing about its exit: cancelled, local, the pair's affair.
    pub fn neutral(&mut self, span: Span) {
        if self.panic.is_probe(span.dispatched) {
            self.panic.probe_void();
        }
    }

    /// The exit can never be used.
    pub fn evict(&mut self, exit: u32, why: Reason, span: Span) -> Change {
        self.neutral(span);
        self.change(exit, span.now, |health| health.evict(why))
    }

    /// A certificate that the exit showed was not the origin's. An exit that never had a valid one
    /// intercepts; another one is charged with a fault.
    pub fn wrong_certificate(&mut self, exit: u32, span: Span, rng: &mut impl Rng) -> Change {
        if self.health(exit).proven() < Proven::Tls {
            return self.change(exit, span.now, |health| health.evict(Reason::Intercepts));
        }
        let charge = Charge {
            share: Share::WHOLE,
            odds: self.odds(),
            ejection: self.ejection(),
        };
        self.change(exit, span.now, |health| health.fault(charge, span, rng))
    }

    /// An attempt through the exit was cut.
    pub fn was_cut(&mut self, exit: u32, span: Span) {
        self.exits[exit as usize].health.was_cut(span);
    }

    /// The last charge of `share` to the exit turned out to be the origin's.
    pub fn pardon(&mut self, exit: u32, share: Share) {
        let odds = self.odds();
        self.exits[exit as usize].health.pardon(share, odds);
    }

    /// Whether the run is over for want of exits.
    pub fn is_over(&self, now: Time) -> bool {
        self.hope.is_over(now)
    }

    /// When it will be if no exit becomes usable before.
    pub fn over_at(&self) -> Option<Time> {
        self.hope.over_at()
    }

    fn odds(&self) -> Odds {
        Odds::new(self.rate.p0())
    }

    fn ejection(&self) -> Ejection {
        if self.panic.is_on() {
            return Ejection::Panic;
        }
        Panic::ejection(self.exits.len() as u32 - self.census.unfit, self.census.out)
    }

    fn is_probe(&self, exit: u32, span: Span) -> bool {
        self.health(exit).is_probe(span) || self.panic.is_probe(span.dispatched)
    }

    /// Lets `event` happen to the exit and keeps the pool's counts in step with its state.
    fn change(
        &mut self,
        exit: u32,
        now: Time,
        event: impl FnOnce(&mut Health) -> Change,
    ) -> Change {
        let member = &mut self.exits[exit as usize];
        let before = member.standing();
        let change = event(&mut member.health);
        self.census.moved(before, member.standing());
        if change == Change::Evicted {
            self.hope.evicted(&mut member.failed);
        }
        self.note_usable(now);
        change
    }

    /// An exit that has answered before is usable as long as it does not rest after an ejection.
    /// Of one that never did, a free slot is a chance, and so are the attempts that it carries:
    /// until it has failed, or most of the pool has.
    fn note_usable(&mut self, now: Time) {
        let gate = self.gate(now);
        let chance = matches!(gate, Gate::Open | Gate::Probe) && self.slots == Slots::Free;
        let Census { known, fresh, .. } = self.census;
        let trusted = known > 0 || fresh > 0 && !self.hope.most_failed();
        let usable = match gate {
            Gate::Shut(_) => Usable::None,
            Gate::Open | Gate::Probe | Gate::Probing if chance || trusted => Usable::Some,
            Gate::Open | Gate::Probe | Gate::Probing => Usable::None,
        };
        self.hope.usable(usable, now);
    }
}

#[cfg(test)]
mod tests;
