//! All exits as the scheduler uses them: load, health and counters, kept in step.
//!
//! Owns: the step from health to load. After each event of an exit its cap is read anew and
//! set in the pool, 0 while it is held off, rests or is evicted, and an alarm is set for the
//! instant at which time alone changes that. Leaves to `fleet` what an event means, to `pool`
//! who is picked.
//!
//! Invariant: an exit's cap in the pool is what its health allows at the time of its last
//! event or alarm. A held-off exit comes back by its alarm and by nothing else.

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;

use crate::model::Time;

use super::alarms::Alarms;
use super::distinct::Distinct;
use super::first_answer::Cuts;
use super::fleet::{Fleet, Slots, Unclear};
use super::health::{Change, Proven, Reason, Span, State, Throttled};
use super::latency::{Median, Slowest, slowness};
use super::logins::Logins;
use super::panic_mode::Gate;
use super::pool::Pool;
use super::settings::Seat;
use super::split::Share;
use super::steps::{ExitIx, ExitState, Note};

/// An exit that refuses this many origins is at fault itself; more need not be told apart.
const REFUSED_ORIGINS: usize = 4;

/// What is counted of one exit.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) id: Arc<str>,
    ceiling: u32,
    pub(super) attempts: u64,
    pub(super) ok: u64,
    pub(super) faults: u64,
    pub(super) status_429: u64,
    pub(super) last_error: Option<Box<str>>,
    refused_origins: Distinct<REFUSED_ORIGINS>,
    latency: Median,
    cuts: Cuts,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Exits {
    pub(super) pool: Pool,
    fleet: Fleet,
    rows: Vec<Row>,
    alarms: Alarms,
    logins: Logins,
    latency: Median,
    /// Of all origins.
    slowest: Slowest,
    /// Free slots that turned up since [`Exits::take_freed`].
    freed: u32,
    notes: Vec<Note>,
}

impl Exits {
    /// All exits healthy and empty. `groups`: the groups' caps.
    pub(super) fn new(seats: &[Seat], groups: &[u32], no_exit_timeout: Duration) -> Exits {
        let row = |seat: &Seat| Row {
            id: seat.id.clone(),
            ceiling: seat.ceiling.max(1),
            attempts: 0,
            ok: 0,
            faults: 0,
            status_429: 0,
            last_error: None,
            refused_origins: Distinct::default(),
            latency: Median::ZERO,
            cuts: Cuts::default(),
        };
        let mut exits = Exits {
            pool: Pool::new(groups, seats.iter().map(|seat| seat.group)),
            fleet: Fleet::new(seats.iter().map(|seat| seat.ceiling), no_exit_timeout),
            rows: seats.iter().map(row).collect(),
            alarms: Alarms::default(),
            logins: Logins::new(seats),
            latency: Median::default(),
            slowest: Slowest::default(),
            freed: 0,
            notes: Vec::new(),
        };
        for exit in 0..exits.pool.len() {
            exits.sync(ExitIx::new(exit), Time::ZERO);
        }
        exits
    }

    /// Lets exits whose instant has come take part again.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some(index) = self.alarms.due(now) {
            let change = self.fleet.wake(index, now);
            self.changed(ExitIx::new(index), change, now);
        }
    }

    /// When time alone changes an exit next.
    pub(super) fn next_change(&self) -> Option<Time> {
        self.alarms.first()
    }

    /// Whether the pool as a whole may give out leases.
    pub(super) fn gate(&self, now: Time) -> Gate {
        self.fleet.gate(now)
    }

    /// Notes whether an exit is usable at this moment.
    pub(super) fn note_usable(&mut self, now: Time) {
        let slots = if self.pool.has_free() {
            Slots::Free
        } else {
            Slots::Taken
        };
        self.fleet.has_slots(slots, now);
    }

    /// The head of an answer came through the exit.
    pub(super) fn heard(&mut self, exit: ExitIx, now: Time) {
        self.fleet.heard(exit.number(), now);
        self.sync(exit, now);
    }

    /// Takes a slot of an exit that the pool named.
    pub(super) fn lease(&mut self, exit: ExitIx, now: Time) {
        self.pool.lease(exit);
        self.fleet.started(now);
    }

    /// Gives a slot back. To be followed by the event that ended the attempt.
    pub(super) fn release(&mut self, exit: ExitIx) {
        self.pool.release(exit);
        self.freed = self.freed.saturating_add(1);
    }

    /// An answer of an origin came through.
    pub(super) fn good(&mut self, exit: ExitIx, proves: Proven, status: u16, span: Span) {
        let panicked = self.fleet.panics();
        let change = self.fleet.good(exit.number(), proves, span);
        self.changed(exit, change, span.now);
        let throttled = if status == 429 {
            Throttled::Yes
        } else {
            Throttled::No
        };
        let change = self.fleet.answered(exit.number(), throttled, span);
        self.changed(exit, change, span.now);
        if panicked && !self.fleet.panics() {
            self.notes.push(Note::PanicOver);
        }
    }

    /// A fault of which the exit carries `share`.
    pub(super) fn fault(&mut self, exit: ExitIx, share: Share, span: Span, rng: &mut impl Rng) {
        let panicked = self.fleet.panics();
        let change = self.fleet.fault(exit.number(), share, span, rng);
        self.rows[exit.index()].faults += u64::from(share.is_mostly_exit());
        self.changed(exit, change, span.now);
        if !panicked && self.fleet.panics() {
            self.notes.push(Note::Panic);
        }
    }

    /// How much of an unclear fault the exit carries.
    pub(super) fn weigh(&mut self, fault: Unclear<'_>) -> Share {
        self.fleet.weigh(fault)
    }

    /// It refused with this many in flight, itself included.
    pub(super) fn congested(&mut self, exit: ExitIx, in_flight: u32, span: Span) {
        let change = self.fleet.congested(exit.number(), in_flight, span);
        self.rows[exit.index()].faults += 1;
        self.changed(exit, change, span.now);
    }

    /// The attempt said nothing about its exit.
    pub(super) fn neutral(&mut self, exit: ExitIx, span: Span) {
        self.fleet.neutral(span);
        self.sync(exit, span.now);
    }

    /// It can never be used.
    pub(super) fn evict(&mut self, exit: ExitIx, why: Reason, span: Span) {
        let change = self.fleet.evict(exit.number(), why, span);
        self.rows[exit.index()].faults += 1;
        self.changed(exit, change, span.now);
    }

    /// Another exit had a valid certificate where this one showed an invalid one.
    pub(super) fn wrong_certificate(&mut self, exit: ExitIx, span: Span, rng: &mut impl Rng) {
        let change = self.fleet.wrong_certificate(exit.number(), span, rng);
        self.rows[exit.index()].faults += 1;
        self.changed(exit, change, span.now);
    }

    /// A fault charged with `share` turned out to be the origin's.
    pub(super) fn pardon(&mut self, exit: ExitIx, share: Share, now: Time) {
        self.fleet.pardon(exit.number(), share);
        self.rows[exit.index()].faults -= u64::from(share.is_mostly_exit());
        self.sync(exit, now);
    }

    /// How often attempts through the exit were cut.
    pub(super) fn cuts(&self, exit: ExitIx) -> Cuts {
        self.rows[exit.index()].cuts
    }

    /// An attempt through the exit was cut.
    pub(super) fn was_cut(&mut self, exit: ExitIx, span: Span) {
        self.rows[exit.index()].cuts.add(span);
        self.fleet.was_cut(exit.number(), span);
        self.sync(exit, span.now);
    }

    /// The counters of one exit.
    pub(super) fn row_mut(&mut self, exit: ExitIx) -> &mut Row {
        &mut self.rows[exit.index()]
    }

    /// Whether the exit's login was ever taken, here or at another exit with the same one.
    pub(super) fn login_worked(&self, exit: ExitIx) -> bool {
        self.logins.worked(exit)
    }

    /// The exit's login was taken.
    pub(super) fn login_works(&mut self, exit: ExitIx) {
        self.logins.works(exit);
    }

    /// What the exit has shown it can do.
    pub(super) fn proven(&self, exit: ExitIx) -> Proven {
        self.fleet.health(exit.number()).proven()
    }

    /// How many origins the exit refused to reach, `origin` included; four are told apart.
    pub(super) fn refusing(&mut self, exit: ExitIx, origin: u32) -> u32 {
        let refused = &mut self.rows[exit.index()].refused_origins;
        refused.insert(origin);
        refused.len() as u32
    }

    /// Learns from a time to the first byte; `origin` is that origin's own median.
    pub(super) fn answered_after(
        &mut self,
        exit: ExitIx,
        origin: &mut Median,
        first_byte: Duration,
    ) {
        let own = &mut self.rows[exit.index()].latency;
        let slowness = slowness(own, origin, &mut self.latency, first_byte);
        self.pool.set_slowness(exit, slowness);
    }

    /// Learns how long an answer took in all, from the dial to its head.
    pub(super) fn head_after(&mut self, took: Duration) {
        self.slowest.add(took);
    }

    /// How long answers took of late, where enough came to speak for any origin.
    pub(super) fn slowest(&self) -> Option<Slowest> {
        Some(self.slowest).filter(|slowest| slowest.speaks_for_others())
    }

    /// Exits that are not evicted.
    pub(super) fn left(&self) -> u32 {
        self.fleet.left()
    }

    /// How many exits are in each state.
    pub(super) fn by_state(&self) -> [(State, u32); 5] {
        self.fleet.by_state()
    }

    /// Exits that are in use: neither resting after an ejection nor evicted.
    pub(super) fn up(&self) -> u32 {
        self.fleet.up()
    }

    /// Whether one exit is in use.
    pub(super) fn is_up(&self, exit: ExitIx) -> bool {
        match self.fleet.health(exit.number()).state() {
            State::Healthy | State::Limited | State::Probation => true,
            State::Ejected | State::Evicted => false,
        }
    }

    /// Whether the run is over for want of exits.
    pub(super) fn is_over(&self, now: Time) -> bool {
        self.fleet.is_over(now)
    }

    /// When it will be if no exit becomes usable before.
    pub(super) fn over_at(&self) -> Option<Time> {
        self.fleet.over_at()
    }

    /// How many free slots turned up since the last call.
    pub(super) fn take_freed(&mut self) -> u32 {
        std::mem::take(&mut self.freed)
    }

    /// One exit for summaries.
    pub(super) fn state(&self, exit: ExitIx, now: Time) -> ExitState<'_> {
        let row = &self.rows[exit.index()];
        let health = self.fleet.health(exit.number());
        ExitState {
            cap: health.cap(now),
            open: self.pool.cap(exit),
            ceiling: row.ceiling,
            in_flight: self.pool.in_flight_of(exit),
            peak: self.pool.peak(exit),
            state: health.state(),
            reason: told(health.reason(), row.last_error.as_deref()),
            attempts: row.attempts,
            ok: row.ok,
            faults: row.faults,
            status_429: row.status_429,
            last_error: row.last_error.as_deref(),
        }
    }

    /// Adds a note that is not about an exit.
    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Takes the notes out.
    pub(super) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn changed(&mut self, exit: ExitIx, change: Change, now: Time) {
        self.sync(exit, now);
        if change == Change::None {
            return;
        }
        if matches!(change, Change::Ejected | Change::Evicted) {
            // Jobs that waited for this exit may have to take one that they know.
            self.freed = u32::MAX;
        }
        let health = self.fleet.health(exit.number());
        self.notes.push(Note::Exit {
            id: self.rows[exit.index()].id.clone(),
            change,
            state: health.state(),
            cap: health.cap(now),
            reason: health.reason().to_string(),
        });
    }

    /// What the exit's health lets it carry now.
    fn open_cap(&self, exit: ExitIx, now: Time) -> u32 {
        let usable_at = self.fleet.usable_at(exit.number());
        match usable_at.is_some_and(|at| at <= now) {
            true => self.fleet.cap(exit.number(), now),
            false => 0,
        }
    }

    fn sync(&mut self, exit: ExitIx, now: Time) {
        let cap = self.open_cap(exit, now);
        let before = self.pool.free(exit);
        self.pool.set_cap(exit, cap);
        let more = self.pool.free(exit).saturating_sub(before);
        self.freed = self.freed.saturating_add(more);
        match self.fleet.changes_at(exit.number(), now) {
            Some(at) => self.alarms.set(exit.number(), at),
            None => self.alarms.cancel(exit.number()),
        }
    }

    /// Panics if the pool and the health of an exit disagree. For tests; O(fleet).
    pub(super) fn check(&self, now: Time) {
        self.pool.check();
        for (state, count) in self.by_state() {
            let in_it = |index: &u32| self.fleet.health(*index).state() == state;
            let counted = (0..self.pool.len()).filter(in_it).count();
            assert_eq!(count as usize, counted, "exits that are {}", state.as_str());
        }
        for index in 0..self.pool.len() {
            let exit = ExitIx::new(index);
            assert!(self.pool.peak(exit) <= self.rows[exit.index()].ceiling);
            // Exact unless an alarm is due that `wake` has not been told of.
            if self.alarms.first().is_none_or(|at| at > now) {
                let cap = self.open_cap(exit, now);
                assert_eq!(self.pool.cap(exit), cap, "cap of exit {index}");
            }
        }
    }
}

/// A reason for people, with the last error where that says more.
fn told(reason: Reason, last_error: Option<&str>) -> String {
    match (reason, last_error) {
        (Reason::None | Reason::CredentialsRefused | Reason::Intercepts, _) | (_, None) => {
            reason.to_string()
        }
        (_, Some(error)) => format!("{reason}; last: {error}"),
    }
}
