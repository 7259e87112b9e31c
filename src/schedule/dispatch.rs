//! What starts now: the step in which budget and lease are taken together.
//!
//! Owns: `next`. The origin whose turn it is meets the free exits; a job and an exit leave as
//! one [`Start`], or the origin steps aside. An idle exit is also what an attempt that waits for
//! an answer in vain is cut for. Leaves to others: whose turn it is (`frontier`), which exit a job
//! may take (`choice`) and which is best (`pool`), what the end will mean (`settle`).
//!
//! Each round of the loop starts a job, asks for jobs from disk, or moves one origin out of the
//! ready lists, and origins come back to them only by an event or an alarm, so `next` ends and
//! cannot spin. The instant it answers lies ahead: alarms that are due are taken out first.

use std::time::Duration;

use crate::model::Time;

use super::Scheduler;
use super::choice::{Choice, PATIENCE};
use super::first_answer::{Waiting, patience};
use super::frontier::SiteIx;
use super::health::Proven;
use super::panic_mode::Gate;
use super::site::Closed;
use super::steps::{ExitIx, Lease, Next, Note, Refill, Start};
use super::work::Work;

/// At most this many retries of an origin, and this many origins that stepped aside, are
/// looked at in one step.
const LOOKS: usize = 64;

impl Scheduler {
    /// What to do now. Call it until it answers [`Next::At`] or [`Next::Idle`]; call it again
    /// at that instant, after a `push` and after each attempt's end.
    pub fn next(&mut self, now: Time) -> Next {
        self.exits.wake(now);
        self.frontier.wake(now);
        self.exits.note_usable(now);
        if let Some(last_call) = self.end(now) {
            return last_call;
        }
        if let Some(given_up) = self.give_up(now) {
            return given_up;
        }
        if self.frontier.jobs() == 0 || self.in_flight() >= self.rules.max_in_flight {
            self.intake.busy();
            return self.cut(now).unwrap_or_else(|| self.wait_for_room());
        }
        match self.exits.gate(now) {
            Gate::Open | Gate::Probe => self
                .start(now)
                .or_else(|| self.cut(now))
                .unwrap_or_else(|| self.wait(now)),
            Gate::Shut(until) => self.until(Some(until)),
            Gate::Probing => self.until(None),
        }
    }

    /// Whether no exit is left. Then those under way are asked for a sign of life, and without
    /// one every job is given up from now on.
    fn end(&mut self, now: Time) -> Option<Next> {
        let over = self.frontier.jobs() > 0 && self.exits.is_over(now);
        if self.over || !over {
            self.called = false;
            return None;
        }
        if self.in_flight() > 0 && !self.called {
            self.called = true;
            return Some(Next::LastCall);
        }
        self.give_all_up(now);
        None
    }

    fn give_all_up(&mut self, now: Time) {
        self.over = true;
        self.exits.note(Note::NoExit);
        for site in self.frontier.all() {
            self.frontier.site_mut(site).closed = Some(Closed::NoExit);
            self.frontier.settle(site, now);
        }
    }

    fn give_up(&mut self, now: Time) -> Option<Next> {
        let Some(site) = self.frontier.first_closed() else {
            let asleep = if self.over { self.wake_one() } else { None };
            return asleep.map(Next::Refill);
        };
        let Some(work) = self.frontier.take_any(site, now) else {
            return self.refill(site).map(Next::Refill);
        };
        let mut failure = self.frontier.site(site).why_closed(now);
        if let Some(last) = work.last().and_then(|last| last.failure.as_ref()) {
            failure.detail = format!("{}; last attempt: {}", failure.detail, last.detail);
        }
        Some(Next::GiveUp(work, failure))
    }

    /// A job to start, or jobs to read first: those of origins that sleep once there is room in
    /// memory, or an exit that nobody else has work for.
    fn start(&mut self, now: Time) -> Option<Next> {
        self.recall_misfits(now);
        if self.frontier.is_any_asleep() && self.intake.is_roomy(self.frontier.bytes()) {
            return self.wake_one().map(Next::Refill);
        }
        while self.exits.pool.has_free() {
            let Some(site) = self.frontier.first_ready() else {
                return self.wake_one().map(Next::Refill);
            };
            if let Some(next) = self.start_at(site, now) {
                return Some(next);
            }
        }
        None
    }

    /// Reads jobs of this origin from disk, as many as memory has room for.
    fn refill(&mut self, site: SiteIx) -> Option<Refill> {
        let quota = self.frontier.site(site).quota;
        let most = self.intake.refill(quota, self.frontier.bytes());
        self.frontier.refill(site, most)
    }

    /// The same for the origin that sleeps longest.
    fn wake_one(&mut self) -> Option<Refill> {
        let quota = self.intake.default_quota();
        let most = self.intake.refill(quota, self.frontier.bytes());
        self.frontier.wake_one(most)
    }

    /// Starts a job of this origin or reads some, or lets the origin step aside if none of its
    /// jobs may take an exit that is free.
    fn start_at(&mut self, index: SiteIx, now: Time) -> Option<Next> {
        let site = self.frontier.site_mut(index);
        site.queue.ripen(now);
        let choice = Choice {
            exits: &self.exits,
            pairs: &site.pairs,
            warm: &site.warm,
            waited: site.misfit_since.map(|since| now - since),
            now,
        };
        let rng = &mut self.rng;
        let Some((work, exit)) = site
            .queue
            .take_fitting(LOOKS, |work| choice.pick(work, rng))
        else {
            if site.lacks_fresh() {
                return self.refill(index).map(Next::Refill);
            }
            let since = *site.misfit_since.get_or_insert(now);
            let wake = site.queue.next_back_off().unwrap_or(Time::NEVER);
            let wake = wake.min(since + PATIENCE);
            self.frontier.set_aside(index, wake);
            return None;
        };
        Some(Next::Start(self.dispatch(index, work, exit, now)))
    }

    /// Takes the request out of the budget and the slot from the exit, in one step.
    fn dispatch(&mut self, index: SiteIx, mut work: Box<Work>, exit: ExitIx, now: Time) -> Start {
        let site = self.frontier.site_mut(index);
        site.book_wait(&mut work, now);
        let charge = site.budget.dispatch(now);
        let trial = site.started();
        site.warm.remove(exit);
        self.frontier.taken(index, &work, now);
        self.exits.lease(exit, now);
        let stranger = self.exits.proven(exit) == Proven::Nothing;
        let ticket = (stranger && work.method().is_idempotent()).then(|| {
            self.firsts.started(Waiting {
                exit,
                site: index,
                dispatched: now,
            })
        });
        Start {
            lease: Lease {
                exit,
                site: index,
                charge,
                trial,
                dispatched: now,
                ticket,
            },
            exit,
            work,
        }
    }

    /// An attempt that has waited too long for its exit's first answer, while an exit that
    /// has answered stands idle.
    fn cut(&mut self, now: Time) -> Option<Next> {
        while self.exits.pool.has_free()
            && let Some((ticket, waiting)) = self.firsts.due(now)
        {
            if self.exits.proven(waiting.exit) > Proven::Nothing {
                self.firsts.forget(ticket);
                continue;
            }
            let due = self
                .patience(&waiting)
                .map(|span| waiting.dispatched + span);
            match due {
                Some(due) if due > now => self.firsts.look_at(ticket, due),
                Some(_) if self.has_better(&waiting, now) => {
                    self.firsts.cut(ticket);
                    return Some(Next::Cut(ticket));
                }
                Some(_) | None => self.firsts.look_at(ticket, waiting.later(now)),
            }
        }
        None
    }

    /// How long the attempt may wait, by how long answers take of the same origin, or of any.
    fn patience(&self, waiting: &Waiting) -> Option<Duration> {
        let own = self.frontier.site(waiting.site).slowest;
        let usual = own.get().map(|_| own).or_else(|| self.exits.slowest())?;
        patience(usual, self.exits.cuts(waiting.exit).times())
    }

    /// Whether another exit that has answered before is free for the same job.
    fn has_better(&mut self, waiting: &Waiting, now: Time) -> bool {
        let pairs = &self.frontier.site(waiting.site).pairs;
        let exits = &self.exits;
        let better = |exit: ExitIx| {
            exits.proven(exit) > Proven::Nothing && !pairs.is_held(exit.number(), now)
        };
        let any = std::iter::empty();
        exits.pool.pick(&mut self.rng, better, any).is_some()
    }

    /// Lets origins that stepped aside take part again, one for each slot that became free.
    fn recall_misfits(&mut self, now: Time) {
        let mut freed = self.exits.take_freed();
        for _ in 0..LOOKS.min(self.frontier.misfits() as usize) {
            let Some(site) = self.frontier.first_misfit() else {
                return;
            };
            if freed == 0 {
                return;
            }
            if self.fits(site, now) {
                self.frontier.settle(site, now);
                freed -= 1;
            } else {
                self.frontier.turn_misfit(site);
            }
        }
    }

    /// Whether some free exit may take a job of this origin.
    fn fits(&mut self, index: SiteIx, now: Time) -> bool {
        let site = self.frontier.site(index);
        let choice = Choice {
            exits: &self.exits,
            pairs: &site.pairs,
            warm: &site.warm,
            waited: None,
            now,
        };
        site.queue
            .candidates(LOOKS)
            .any(|work| choice.pick(work, &mut self.rng).is_some())
    }

    /// As many are under way as may be: only the end of one makes room, or a cut.
    fn wait_for_room(&mut self) -> Next {
        let look = self.firsts.next_look();
        self.until(look.filter(|_| self.exits.pool.has_free()))
    }

    /// Nothing can start. With a free exit the next origin's instant counts; without one only
    /// an exit's, or the end of an attempt.
    fn wait(&mut self, now: Time) -> Next {
        debug_assert!(self.frontier.next_wake().is_none_or(|at| at > now));
        let free = self.exits.pool.has_free();
        let origin = self.frontier.next_wake().filter(|_| free);
        let wanted = self.frontier.jobs() > 0 && (!free || self.frontier.misfits() > 0);
        let exit = self.exits.next_change().filter(|_| wanted);
        let look = self.firsts.next_look().filter(|_| free);
        let more = match free {
            true => self.intake.idle(self.frontier.origins(), now),
            false => {
                self.intake.busy();
                None
            }
        };
        self.until([origin, exit, look, more].into_iter().flatten().min())
    }

    /// At this instant, or earlier if the run ends for want of exits before.
    fn until(&self, at: Option<Time>) -> Next {
        let ends = !self.over && self.frontier.jobs() > 0;
        let over = self.exits.over_at().filter(|_| ends);
        match [at, over].into_iter().flatten().min() {
            Some(at) => Next::At(at),
            None => Next::Idle,
        }
    }
}
