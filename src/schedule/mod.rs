//! The scheduler: which job starts next, through which exit, and what its end means.
//!
//! Owns: the state of the run's jobs, origins and exits, behind a few verbs. `push` files a
//! job, `next` says what to do now, `heard` notes the head of an answer where `next` asked for
//! it, `finish` and `abandon` take a lease back. A long list waits on disk: `room` says where a
//! job goes, `spilled` and `refilled` tell what became of it; all that is kept of such a job is
//! where the newest one of its origin is. Leaves to others: fetching, storing, logging (it hands
//! out [`Note`]s).
//!
//! Sans-IO: it reads no clock and does no I/O. `now` is an argument and all randomness comes
//! from one generator seeded by the run's rules, so the same seed and the same events give
//! the same decisions (invariant 12), and tests play hours in milliseconds.
//!
//! Invariants: budget and lease are taken together in one step inside `next` (4), so a waiting
//! job holds nothing but memory; and after a step no origin that may be asked stands beside
//! a free exit that its jobs may take (5). A job that failed at every exit that is free waits
//! for another one that is in use, for ten seconds at most (`dispatch`).
//!
//! Parts: `dispatch` (what starts, through which exit: `choice`; what is waited for no longer:
//! `first_answer`) over `frontier` (origins by place: `site`, `queue`, `budget`, `asleep`), `intake`
//! (how far the list is read) and `exits` (`pool` for load, `fleet` for health); `settle`, `judge` and
//! `charge` (what an end means) over the pure rules `blame`, `split`, `health`, `breaker`, `pair`,
//! `retry`, `redirect`, `retry_after`. Every decision is O(1) in exits and origins, O(log n) where
//! a timer is set.

mod alarms;
mod asleep;
pub mod blame;
pub mod breaker;
pub mod budget;
mod census;
mod charge;
mod choice;
mod dispatch;
pub mod distinct;
mod exits;
mod first_answer;
pub mod fleet;
mod floor;
mod frontier;
pub mod health;
mod held_back;
mod intake;
mod judge;
pub mod last_hope;
mod latency;
mod lists;
mod logins;
pub mod pair;
pub mod panic_mode;
mod pool;
pub mod proxy_error;
mod queue;
mod redirect;
pub mod retry;
pub mod retry_after;
mod settings;
mod settle;
mod shelf;
mod site;
pub mod split;
mod steps;
mod warm;
mod work;

#[cfg(test)]
mod tests;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use crate::model::{Job, Origin, Time};

use exits::Exits;
use first_answer::FirstAnswers;
use frontier::{Frontier, SiteIx};
use held_back::Looks;
use intake::Intake;
use site::{Closed, Site};

pub use first_answer::Ticket;
pub use floor::Floor;
pub use health::{Change, State};
pub use held_back::HeldBack;
pub use settings::{OriginRules, Rules, Seat, slots};
pub use steps::{
    Berth, ExitIx, ExitState, Lease, Next, Note, PauseCause, Refill, Room, Start, Verdict,
};
pub use work::{LastAttempt, Waited, Work};

/// See the module's text.
#[derive(Debug)]
pub struct Scheduler {
    rules: Rules,
    exits: Exits,
    frontier: Frontier,
    intake: Intake,
    /// The only source of chance. This generator's sequence is fixed across versions and machines.
    rng: Xoshiro256PlusPlus,
    firsts: FirstAnswers,
    /// Those under way were asked for a sign of life before the end.
    called: bool,
    over: bool,
    looks: Looks,
}

impl Scheduler {
    /// A scheduler without jobs. `groups`: the caps of the groups that seats name by index.
    pub fn new(rules: Rules, seats: &[Seat], groups: &[u32]) -> Scheduler {
        Scheduler {
            exits: Exits::new(seats, groups, rules.no_exit_timeout),
            frontier: Frontier::default(),
            intake: Intake::new(&rules, seats, groups),
            rng: Xoshiro256PlusPlus::seed_from_u64(rules.seed),
            firsts: FirstAnswers::default(),
            called: false,
            over: false,
            looks: Looks::default(),
            rules,
        }
    }

    /// Files a job under its origin.
    pub fn push(&mut self, job: Job, now: Time) {
        let work = Work::new(job, now);
        self.file_by_target(work, now);
    }

    /// Where a job of `origin` that is new from the list is to wait: on disk where others of the
    /// origin do, or where it or all origins together have enough in memory.
    pub fn room(&self, origin: &Origin) -> Room {
        let (berth, site) = self.frontier.berth(origin);
        if self.over || site.is_some_and(|site| site.closed.is_some()) {
            return Room::Memory;
        }
        let (has, quota) = match site {
            Some(site) => (site.queue.len(), site.quota),
            None => (0, self.intake.default_quota()),
        };
        match berth.after() {
            None if has < self.intake.quota(quota, self.frontier.bytes()) => Room::Memory,
            _ => Room::Disk(berth),
        }
    }

    /// The job that this place was for is on disk now, at `newest`.
    pub fn spilled(&mut self, berth: Berth, newest: u64, now: Time) {
        self.frontier.spilled(&berth, newest, now);
    }

    /// `read` jobs were read from disk, and the rest of the chain begins at `rest`. To be followed
    /// by a `push` of each that is still to be fetched.
    pub fn refilled(&mut self, refill: Refill, read: usize, rest: Option<u64>, now: Time) {
        self.frontier.refilled(&refill, read, rest, now);
    }

    /// Whether more of the list is to be read; ask again after each `next`. After the end without
    /// exits it stays true: the rest of the list is taken in and given up.
    pub fn wants_more(&self) -> bool {
        self.intake
            .wants_more(self.frontier.origins(), self.frontier.bytes())
    }

    /// Whether memory has room for a job that the disk has none for.
    pub fn has_room(&self) -> bool {
        self.intake.has_room(self.frontier.bytes())
    }

    /// The least time that what waits now will take. Origins asleep are left out: they have few
    /// jobs each. It looks at every origin.
    pub fn floor(&self) -> Option<Floor> {
        let (slots, attempt) = (self.intake.slots(), self.intake.attempt()?);
        let jobs = self.frontier.waiting_at();
        Some(Floor::new(jobs, &self.rules, slots, attempt))
    }

    /// Nothing waits and nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.frontier.jobs() == 0 && self.in_flight() == 0
    }

    /// Leases that are out.
    pub fn in_flight(&self) -> u32 {
        self.exits.pool.in_flight()
    }

    /// Jobs that wait for their origin's budget, a back-off or the in-flight bound.
    pub fn waiting_for_budget(&self) -> usize {
        self.frontier.jobs() - self.frontier.startable()
    }

    /// Jobs that wait for nothing but an exit.
    pub fn waiting_for_exit(&self) -> usize {
        self.frontier.startable()
    }

    /// No exit has a free slot that may be used, and one would have but for its group's cap.
    pub fn groups_hold(&self) -> bool {
        self.exits.pool.groups_hold()
    }

    /// What the run was allowed.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// No exit was left: all further jobs are given up.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// How many exits there are.
    pub fn exits(&self) -> u32 {
        self.exits.pool.len()
    }

    /// Whom a lease may ask.
    pub fn origin(&self, lease: &Lease) -> &Origin {
        &self.frontier.site(lease.site).origin
    }

    /// Exits in use: neither resting after an ejection nor evicted.
    pub fn exits_in_use(&self) -> u32 {
        self.exits.up()
    }

    /// How many exits are in each state.
    pub fn exits_by_state(&self) -> [(State, u32); 5] {
        self.exits.by_state()
    }

    /// Requests that all exits may carry at a time at best.
    pub fn slots(&self) -> u32 {
        self.intake.slots() as u32
    }

    /// The origins that hold their jobs back longest, at most three, the longest first. With
    /// more than a thousand origins each call looks at a part of them, in turn.
    pub fn held_back(&mut self, now: Time) -> Vec<HeldBack> {
        self.looks.look(&self.frontier, now)
    }

    /// One exit.
    pub fn exit(&self, exit: ExitIx, now: Time) -> ExitState<'_> {
        self.exits.state(exit, now)
    }

    /// The most leases that a group had at once.
    pub fn group_peak(&self, group: u32) -> u32 {
        self.exits.pool.group_peak(group)
    }

    /// What changed since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        self.exits.take_notes()
    }

    /// The head of this attempt's answer is there, though its body is not yet read: the exit
    /// works.
    pub fn heard(&mut self, lease: &Lease, now: Time) {
        self.exits.heard(lease.exit, now);
    }

    /// Panics if a count or a place is not what it must be. For tests and the simulator;
    /// it looks at every exit and origin.
    pub fn check(&self, now: Time) {
        self.exits.check(now);
        self.frontier.check(now);
        let landed: u32 = self
            .frontier
            .all()
            .map(|site| self.frontier.site(site).in_flight)
            .sum();
        assert_eq!(landed, self.in_flight(), "attempts in flight");
        assert!(self.in_flight() <= self.rules.max_in_flight);
    }

    fn file_by_target(&mut self, work: Box<Work>, now: Time) {
        let site = self.site_of(Origin::of(work.target()), now);
        self.frontier.file(site, work, now);
    }

    fn site_of(&mut self, origin: Origin, now: Time) -> SiteIx {
        let (rules, over) = (&self.rules, self.over);
        self.frontier.open(origin, now, |origin| {
            let allowance = rules.allowance(&origin);
            let mut site = Site::new(origin, allowance);
            site.closed = over.then_some(Closed::NoExit);
            site
        })
    }
}
