//! One origin: its budget, its waiting jobs and what is known of how it behaves.
//!
//! Owns: the question "may a job start here now, and if not, when", asked by the frontier
//! after every change. Leaves to the rule files what each part means (`budget`, `breaker`,
//! `pair`, `split`, `retry`), and to `frontier` where the origin stands.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::model::{Blame, ErrorKind, Failure, Origin, Time};

use super::asleep::Chain;
use super::breaker::Breaker;
use super::budget::{Allowance, Budget};
use super::frontier::Place;
use super::intake::quota_of;
use super::latency::Median;
use super::pair::Pairs;
use super::queue::Queue;
use super::retry::RetryBudget;
use super::split::Counter;
use super::steps::Lease;
use super::warm::Warm;
use super::work::Work;

/// An origin that failed is remembered this long without jobs: evidence ages out by then.
const REMEMBERED: Duration = Duration::from_secs(60);

/// What an origin asks the frontier for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// No job waits, neither in memory nor on disk.
    Nothing,
    /// Its jobs are to be given up.
    GiveUp,
    /// Nothing starts before one in flight has ended.
    Land,
    /// Nothing starts before this instant.
    At(Time),
    /// A job may start; it may have to be read from disk first.
    Start,
}

/// Why an origin's jobs are given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// Nothing good came from it for `--origin-patience`.
    Dead,
    /// The run has no exit left.
    NoExit,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) origin: Origin,
    pub(super) budget: Budget,
    pub(super) breaker: Breaker,
    pub(super) retries: RetryBudget,
    pub(super) pairs: Pairs,
    /// How often attempts there failed for the origin's or an unclear reason.
    pub(super) record: Counter,
    pub(super) queue: Queue,
    /// Jobs that wait on disk. Those that come while there are any follow them there.
    pub(super) chain: Option<Chain>,
    /// How many jobs it may have in memory when these are few.
    pub(super) quota: usize,
    pub(super) in_flight: u32,
    /// Of them, those that were started to try whether the origin works again.
    pub(super) trials: u32,
    /// Owned by the frontier.
    pub(super) place: Place,
    /// Owned by the frontier: jobs counted as waiting for an exit.
    pub(super) startable: usize,
    /// Owned by the frontier: counted as one with untried jobs.
    pub(super) counted: bool,
    /// Since when only exits that were tried before are free for its jobs.
    pub(super) misfit_since: Option<Time>,
    /// When an attempt's end last made room below the in-flight bound.
    pub(super) room_since: Time,
    /// How long in all only an exit was missing for its next job.
    pub(super) exit_lack: Duration,
    pub(super) closed: Option<Closed>,
    /// The origin asked for a wait beyond `--max-pause`: no job waits for it before this.
    shut_until: Time,
    faulted_at: Option<Time>,
    pub(super) warm: Warm,
    pub(super) latency: Median,
    tag: u32,
}

impl Site {
    pub(super) fn new(origin: Origin, allowance: Allowance) -> Site {
        let mut hasher = DefaultHasher::new();
        origin.hash(&mut hasher);
        Site {
            origin,
            budget: Budget::new(allowance),
            breaker: Breaker::default(),
            retries: RetryBudget::default(),
            pairs: Pairs::default(),
            record: Counter::default(),
            queue: Queue::default(),
            chain: None,
            quota: quota_of(allowance),
            in_flight: 0,
            trials: 0,
            place: Place::default(),
            startable: 0,
            counted: false,
            misfit_since: None,
            room_since: Time::ZERO,
            exit_lack: Duration::ZERO,
            closed: None,
            shut_until: Time::ZERO,
            faulted_at: None,
            warm: Warm::default(),
            latency: Median::default(),
            tag: hasher.finish() as u32,
        }
    }

    /// A number that stands for the origin, the same in every run and after it was forgotten.
    pub(super) fn tag(&self) -> u32 {
        self.tag
    }

    /// What the origin needs now.
    pub(super) fn wish(&self, now: Time) -> Wish {
        let first = match (self.chain, self.queue.earliest()) {
            (Some(_), _) => Time::ZERO,
            (None, Some(first)) => first,
            (None, None) => return Wish::Nothing,
        };
        if self.closed.is_some() || now < self.shut_until {
            return Wish::GiveUp;
        }
        if self.in_flight >= self.budget.bound() || self.is_on_trial() {
            return Wish::Land;
        }
        let at = first.max(self.open_at());
        if at > now { Wish::At(at) } else { Wish::Start }
    }

    /// Jobs that wait, in memory and on disk.
    pub(super) fn jobs(&self) -> u64 {
        self.queue.len() as u64 + self.chain.map_or(0, |chain| u64::from(chain.jobs))
    }

    /// A job waits that was never tried.
    pub(super) fn has_untried(&self) -> bool {
        self.chain.is_some() || !self.queue.lacks_fresh()
    }

    /// Its next job that was never tried is on disk.
    pub(super) fn lacks_fresh(&self) -> bool {
        self.chain.is_some() && self.queue.lacks_fresh()
    }

    /// Jobs that wait for nothing but an exit: one where the rate lets one at a time go.
    pub(super) fn startable_jobs(&self) -> usize {
        match self.place {
            Place::Ready { .. } | Place::Misfit if self.budget.is_unlimited() => {
                self.queue.ripe() + self.chain.map_or(0, |chain| chain.jobs as usize)
            }
            Place::Ready { .. } | Place::Misfit => 1,
            Place::Idle | Place::Delayed | Place::Parked | Place::Refill | Place::Closed => 0,
        }
    }

    /// From when on the origin could be asked, were there a job.
    pub(super) fn open_at(&self) -> Time {
        self.budget.ready_at().max(self.breaker.paused_until())
    }

    /// Books the wait of the job that starts now. A job behind others waited for an exit as
    /// long as they did: the budget would have let them go before it.
    pub(super) fn book_wait(&mut self, work: &mut Work, now: Time) {
        let startable = self.open_at().max(self.room_since).max(work.since);
        self.exit_lack += now - startable;
        work.book_wait(self.exit_lack - work.lack_before, now);
    }

    /// The breaker is open and its trial under way. Attempts from before it opened do not
    /// count: a long body among them would hold the trial back.
    fn is_on_trial(&self) -> bool {
        let bound = self.breaker.in_flight_bound();
        bound.is_some_and(|bound| self.trials >= bound)
    }

    /// An attempt starts here; the answer says whether it is a trial.
    pub(super) fn started(&mut self) -> bool {
        let trial = self.breaker.in_flight_bound().is_some();
        self.retries.request();
        self.in_flight += 1;
        self.trials += u32::from(trial);
        self.misfit_since = None;
        trial
    }

    /// The attempt of this lease has ended here.
    pub(super) fn landed(&mut self, lease: &Lease, now: Time) {
        self.in_flight -= 1;
        self.trials -= u32::from(lease.trial);
        if self.place == Place::Parked {
            self.room_since = now;
        }
    }

    /// The origin asked to be left alone for `wait`, longer than `max_pause`: jobs that would
    /// have to wait longer than that are given up instead.
    pub(super) fn shut(&mut self, wait: Duration, max_pause: Duration, now: Time) {
        self.shut_until = self.shut_until.max((now + wait).back(max_pause));
    }

    /// Notes a fault, so that the origin is remembered a while.
    pub(super) fn faulted(&mut self, now: Time) {
        self.faulted_at = Some(now);
    }

    /// From when on nothing about the origin is worth remembering; `None`: never.
    pub(super) fn rests_at(&self) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        let settled = self.faulted_at.map_or(Time::ZERO, |at| at + REMEMBERED);
        Some(
            self.budget
                .rests_at()
                .max(self.breaker.paused_until())
                .max(settled),
        )
    }

    /// The failure of a job that is given up here.
    pub(super) fn why_closed(&self, now: Time) -> Failure {
        let (kind, blame, detail) = match self.closed {
            Some(Closed::NoExit) => (
                ErrorKind::NoUsableExit,
                Blame::Exit,
                "no usable exit is left".to_owned(),
            ),
            Some(Closed::Dead) => (
                ErrorKind::OriginDead,
                Blame::Origin,
                format!("nothing good came from {} for too long", self.origin),
            ),
            None => (
                ErrorKind::OriginPaused,
                Blame::Origin,
                format!(
                    "{} asked to be left alone for another {} s, longer than --max-pause",
                    self.origin,
                    (self.budget.paused_until() - now).as_secs()
                ),
            ),
        };
        Failure {
            kind,
            blame,
            detail,
        }
    }
}
