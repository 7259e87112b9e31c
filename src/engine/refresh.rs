//! `--refresh`: what is stored is asked for again, with what its last answer said of itself.
//!
//! Owns which entries are asked again, by which record a request is conditional, and the
//! record of an answer that nothing has changed. Nothing is kept of a waiting job: its record
//! is looked up when it starts. Leaves the request to `fetch`, and what a 304 means for exit
//! and origin to `schedule`.
//!
//! Invariant: a 304 is believed only for the request that asked by validators, at the URL
//! they came from, and only while the file they are about is there.

use http::Method;

use super::Engine;
use super::records;
use crate::fetch::Validators;
use crate::model::{Attempt, Job, Origin, Outcome, Record, Time};
use crate::schedule::Work;
use crate::store::Rest;

/// What becomes of entries whose body is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// They are done.
    Done,
    /// They are asked for again (`--refresh`).
    AskedAgain,
}

impl Engine {
    /// Whether an entry that `record` answers is asked for again.
    pub(super) fn refreshes(&self, job: &Job, record: &Record) -> bool {
        self.stored == Stored::AskedAgain
            && record.outcome == Outcome::Ok
            && job.method == Method::GET
            && job.body.is_none()
    }

    /// The record by which the next request of `work` may be conditional.
    pub(super) fn known(&self, work: &Work) -> Option<Box<Record>> {
        if self.stored != Stored::AskedAgain
            || work.method() != Method::GET
            || work.body().is_some()
        {
            return None;
        }
        // A journal that cannot be read costs a whole answer here, and the run at its end.
        let past = self.store.journal.lookup(&work.job.id).ok()??;
        let record = past.record;
        let came_from_here = match (&record.final_url, work.final_url()) {
            (None, None) => true,
            (Some(then), _) => then == work.target().as_str(),
            (None, Some(_)) => false,
        };
        (came_from_here && self.store.journal.is_stored(&record)).then(|| Box::new(record))
    }

    /// If all that was replaced is recorded now, the directory says so.
    pub(super) fn end_replacing(&mut self) {
        if self.storing.has_lost() {
            return;
        }
        let rest = match self.has_nothing_left() {
            true => Rest::Nothing,
            false => Rest::Some,
        };
        // What fails here fails again, and is told, when the journal is closed.
        let _ = self.store.journal.end_replacing(rest);
    }

    /// Records that what is stored still holds. If its file has gone meanwhile the job begins
    /// anew, and asks for all of it.
    pub(super) fn not_modified(&mut self, flight: Flew, work: Box<Work>, now: Time) {
        let Some(known) = flight
            .known
            .filter(|known| self.store.journal.is_stored(known))
        else {
            self.scheduler.push(work.job, now);
            return;
        };
        let waited = work.waited().budget;
        self.tally.waited(&Origin::of(work.target()), waited);
        let at = self.at(now);
        let record = records::not_modified(&work, flight.attempt, *known, &self.exits, at);
        self.settle(&record);
    }
}

/// An attempt that has ended, and the record that it asked by.
pub(super) struct Flew<'a> {
    pub(super) attempt: &'a Attempt,
    pub(super) known: Option<Box<Record>>,
}

/// What the request asks by.
pub(super) fn validators(known: Option<&Record>) -> Option<Validators> {
    let known = known?;
    Validators::new(known.etag.as_deref(), known.last_modified.as_deref())
}
