//! What happens when an attempt comes back or an entry ends: lease, verdict, record, count, in
//! this order. Between verdict and record, a body is stored (`storing`).

use std::time::Duration;

use http::header::CONTENT_TYPE;
use tokio::task::{Id, JoinError};

use super::flight::{Body, Landed};
use super::records;
use super::refresh::Flew;
use super::stop::Ended;
use super::storing::Done;
use super::{Engine, Flight};
use crate::input::urls::{Batch, Entry};
use crate::model::{Attempt, ErrorKind, Failure, FaultKind, Job, Origin, Record, Refusal, Time};
use crate::report::Tried;
use crate::schedule::{Verdict, Work};
use crate::store::StoreError;

/// Refused entries that have a log line of their own.
const REFUSALS_TOLD: u64 = 100;

/// Nothing starts for this long after this machine had no descriptor or port to spare.
const BREATHER: Duration = Duration::from_millis(100);

impl Engine {
    /// An attempt's task has ended, one way or the other.
    pub(super) fn land(&mut self, ended: Result<(Id, Box<Landed>), JoinError>) {
        let now = self.clock.now();
        let (id, landed) = match ended {
            Ok((id, landed)) => (id, Some(landed)),
            Err(error) => {
                if error.is_panic() {
                    tracing::error!("an attempt's task panicked; its job is tried again");
                }
                (error.id(), None)
            }
        };
        let Some(flight) = self.flights.remove(&id) else {
            return;
        };
        self.recording.recorder.landed(flight.exit);
        if let Some(ticket) = flight.lease.ticket() {
            self.tickets.remove(&ticket);
        }
        match landed {
            Some(landed) => self.judge(flight, *landed, now),
            None => self.cut_short(flight, now),
        }
    }

    fn cut_short(&mut self, flight: Flight, now: Time) {
        self.conns.give_back(flight.exit, None, now);
        match self.scheduler.abandon(flight.lease, flight.work, now) {
            Verdict::Failed(work, failure) if !self.stop.is_asked() => self.fail(&work, failure),
            Verdict::Ok(_) | Verdict::Failed(..) | Verdict::Again => {}
        }
    }

    fn judge(&mut self, flight: Flight, landed: Landed, now: Time) {
        let Landed {
            attempt,
            body,
            conn,
            disk,
            at_disk,
        } = landed;
        self.recording.at_disk(at_disk);
        self.conns.give_back(flight.exit, conn, now);
        let origin = self.scheduler.origin(&flight.lease).clone();
        self.log(&flight, &attempt);
        if let Some(error) = disk {
            self.stop.ask_once(Ended::Local(error.into()), now);
        }
        if lacks_resources(&attempt) {
            if self.resume_at == Time::ZERO {
                tracing::warn!(
                    "this machine has no file or port to spare: less is in flight until it has"
                );
            }
            self.resume_at = now + BREATHER;
            self.conns.close_all();
        }
        let verdict = self
            .scheduler
            .finish(flight.lease, flight.work, &attempt, now);
        if let Some(metrics) = &self.metrics {
            metrics.attempt(&attempt);
        }
        self.tally.attempt(&Tried {
            exit: flight.exit,
            origin: &origin,
            attempt: &attempt,
            at: now,
        });
        match (verdict, body) {
            (Verdict::Ok(work), None) if attempt.is_not_modified() => {
                let flew = Flew {
                    attempt: &attempt,
                    known: flight.known,
                };
                self.not_modified(flew, work, now);
            }
            (Verdict::Ok(work), Some(body)) => {
                let file = match body {
                    Body::File(_) => Some(self.file_of(&work, &attempt)),
                    Body::Exchange(_) => None,
                };
                let at = self.at(now);
                let done = Done {
                    record: Box::new(records::ok(&work, &attempt, file, &self.exits, at)),
                    exit: flight.exit,
                    phases: attempt.phases,
                    waited: (origin, work.waited().budget),
                };
                self.done(done, body);
            }
            // The scheduler and `flight` agree on what is accepted, so this is a body that a
            // disk fault took; the run is stopping and the job counts as not reached.
            (Verdict::Ok(_), None) => {}
            (Verdict::Failed(work, failure), _)
                if !ended_here(&failure) || !self.stop.is_asked() =>
            {
                self.fail(&work, failure);
            }
            (Verdict::Failed(..) | Verdict::Again, _) => {}
        }
    }

    /// The final name of the body.
    fn file_of(&self, work: &Work, attempt: &Attempt) -> String {
        let head = attempt.head.as_ref();
        let content_type = head.and_then(|head| head.headers.get(CONTENT_TYPE));
        let content_type = content_type.and_then(|value| value.to_str().ok());
        self.store.names.file(&work.job, content_type)
    }

    fn log(&self, flight: &Flight, attempt: &Attempt) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let exit = &self.exits[flight.exit].id;
        let url = flight.work.job.shown_url();
        match &attempt.fault {
            None => tracing::debug!(
                "{url}: {} through {exit}, {} bytes",
                attempt.status().unwrap_or_default(),
                attempt.wire_bytes
            ),
            Some(fault) => tracing::debug!(
                "{url}: {} fault through {exit}: {}",
                fault.phase.as_str(),
                fault.detail
            ),
        }
    }

    /// Records a job that was given up.
    pub(super) fn fail(&mut self, work: &Work, failure: Failure) {
        let origin = Origin::of(work.target());
        self.tally.waited(&origin, work.waited().budget);
        let at = self.at(self.clock.now());
        let record = records::failed(work, failure, &self.exits, at);
        self.settle(&record);
    }

    /// Writes the record that ends a job, and one for each entry that waited for it. Answers
    /// whether the journal took it.
    pub(super) fn settle(&mut self, record: &Record) -> bool {
        match self.store.journal.settle(record) {
            Ok(twins) => {
                self.count(record);
                for twin in &twins {
                    self.count(twin);
                }
                true
            }
            Err(error) => {
                self.disk_failed(error);
                false
            }
        }
    }

    fn count(&mut self, record: &Record) {
        if let Some(copy) = &mut self.copy {
            copy.push(record);
        }
        self.tally.record(record);
    }

    pub(super) fn disk_failed(&mut self, error: StoreError) {
        self.stop
            .ask_once(Ended::Local(error.into()), self.clock.now());
    }

    /// Entries of the list have come.
    pub(super) fn take_in(&mut self, batch: Batch) {
        for entry in batch {
            self.entries += 1;
            match entry {
                Entry::Job(job) => self.admit(job),
                Entry::Refused(refusal) => self.refuse(refusal),
            }
        }
    }

    /// One more entry of a job that is done.
    pub(super) fn answer_twin(&mut self, mut record: Record) {
        record.at = self.at(self.clock.now());
        match self.store.journal.append(&record) {
            Ok(()) => self.count(&record),
            Err(error) => self.disk_failed(error),
        }
    }

    /// `line` has the id of `job` for another request.
    pub(super) fn refuse_duplicate(&mut self, job: Job, line: u64) {
        self.refuse(Refusal {
            line: job.line,
            url: job.shown_url().into(),
            kind: ErrorKind::DuplicateId,
            reason: format!("line {line} has the same id for another request: give each its own"),
            id: job.id,
            extra: job.extra,
        });
    }

    /// One line each; a list that is wrong throughout does not bury everything else.
    fn tell_refusal(&mut self, refusal: &Refusal) {
        self.refusals += 1;
        if self.refusals <= REFUSALS_TOLD {
            tracing::warn!("{}:{}: {}", self.list, refusal.line, refusal.reason);
        }
        if self.refusals == REFUSALS_TOLD {
            tracing::warn!("what else is refused is told in results.jsonl only");
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.tell_refusal(&refusal);
        let recorded = self.store.journal.is_refused_already(&refusal);
        let record = records::refused(refusal, self.at(self.clock.now()));
        // One record in the journal does for all runs; each run counts it and tells it.
        if !recorded && let Err(error) = self.store.journal.append(&record) {
            return self.disk_failed(error);
        }
        self.count(&record);
    }

    /// `now` as records write it: RFC 3339, UTC, to the millisecond. Written once for the
    /// many records of one millisecond.
    pub(super) fn at(&mut self, now: Time) -> String {
        let unix = self.clock.unix(now);
        let millis = i64::try_from(unix.as_millis()).unwrap_or(i64::MAX);
        if self.stamp.0 != millis {
            let stamp = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
            self.stamp = (millis, format!("{stamp:.3}"));
        }
        self.stamp.1.clone()
    }
}

/// This machine, not the exit, could not open a socket.
fn lacks_resources(attempt: &Attempt) -> bool {
    attempt
        .fault
        .as_ref()
        .is_some_and(|fault| fault.kind == FaultKind::LocalLimit)
}

/// The failure is ours: with the run stopping for it, the job counts as not reached.
fn ended_here(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        ErrorKind::Disk | ErrorKind::Local | ErrorKind::Cancelled
    )
}
