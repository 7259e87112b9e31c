//! How entries of the list reach the scheduler: at once, or by way of the disk.
//!
//! Carries out what the scheduler decides about long lists: a job that memory has no room for goes
//! to `store/spill`, and comes back when its origin's turn comes. The journal hears of a job when
//! it is read, as a claim on its id, and again when it comes back. A disk without room loses
//! nothing: the job stays in memory, and the list is read no further than memory holds.

use super::Engine;
use super::refresh::Stored;
use super::stop::Ended;
use crate::model::{Job, Origin};
use crate::schedule::{Berth, Refill, Room};
use crate::store::{Decision, StoreError};

impl Engine {
    /// Whether more of the list is wanted. Entries can end unfetched, as records.
    pub(super) fn reads(&self) -> bool {
        !self.list_read
            && !self.stop.is_asked()
            && !self.copy_is_behind()
            && self.scheduler.wants_more()
            && (self.spills() || self.scheduler.has_room())
    }

    /// Whether what memory has no room for goes to disk. What a refresh asks again does not:
    /// its record is found by the journal's index, in which a claim would take its place.
    fn spills(&self) -> bool {
        self.stored == Stored::Done && !self.store.spill.is_full()
    }

    /// A job of the list goes where there is room for it.
    pub(super) fn admit(&mut self, job: Job) {
        match self.scheduler.room(&Origin::of(&job.url)) {
            Room::Memory => self.file(job),
            Room::Disk(berth) => match self.store.journal.claim(&job) {
                Ok(Decision::Fetch) => self.put_on_disk(job, berth),
                decision => self.carry_out(job, decision),
            },
        }
    }

    /// Hands a job to the scheduler, if it is to be fetched.
    fn file(&mut self, job: Job) {
        let decision = self.store.journal.decide(&job);
        self.carry_out(job, decision);
    }

    fn carry_out(&mut self, job: Job, decision: Result<Decision, StoreError>) {
        match decision {
            Ok(Decision::Fetch) => self.scheduler.push(job, self.clock.now()),
            Ok(Decision::Wait) => {}
            Ok(Decision::Done(record)) if self.refreshes(&job, &record) => {
                self.store.journal.ask_again(&job);
                self.scheduler.push(job, self.clock.now());
            }
            Ok(Decision::Done(record)) => self.tally.already(&record),
            Ok(Decision::Twin(record)) => self.answer_twin(*record),
            Ok(Decision::DuplicateId { line }) => self.refuse_duplicate(job, line),
            Err(error) => self.disk_failed(error),
        }
    }

    fn put_on_disk(&mut self, job: Job, berth: Berth) {
        let was_full = self.store.spill.is_full();
        match self.store.spill.put(berth.after(), &job) {
            Ok(at) => self.scheduler.spilled(berth, at, self.clock.now()),
            Err(error) => {
                if !was_full {
                    tracing::info!("{error}: the list is read only as far as memory holds");
                }
                self.file(job);
            }
        }
    }

    /// Reads jobs back from disk. If that fails the run ends: they are not reached.
    pub(super) fn refill(&mut self, refill: Refill) {
        match self.store.spill.take(refill.newest(), refill.most()) {
            Ok(batch) => {
                let (read, now) = (batch.jobs.len(), self.clock.now());
                self.scheduler.refilled(refill, read, batch.rest, now);
                batch.jobs.into_iter().for_each(|job| self.file(job));
            }
            Err(error) => self.disk_failed(error),
        }
    }

    /// Once the list has been read to its end and the first attempts say how long one takes: what
    /// is left, and the least time that it needs.
    pub(super) fn tell_floor(&mut self) {
        if !self.list_read || self.floor_told {
            return;
        }
        let Some(floor) = self.scheduler.floor() else {
            return;
        };
        self.floor_told = true;
        if floor.seconds() >= TOLD_S {
            let left = self.scheduler.waiting_for_budget() + self.scheduler.waiting_for_exit();
            tracing::info!("{} is read, {left} jobs wait: {floor}", self.list);
        }
    }

    pub(super) fn list_failed(&mut self, error: anyhow::Error) {
        self.stop.ask_once(Ended::Local(error), self.clock.now());
    }
}

/// A run that is over sooner, in seconds, needs no forecast.
const TOLD_S: f64 = 10.0;
