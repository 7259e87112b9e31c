//! Answers that are whole and wait to be stored.
//!
//! A slot is free when its body is read, so the next request goes out first, and what came in
//! is stored when nothing else is to do: file calls take longer than the sending of a request,
//! and a wave of answers would otherwise go out again one file at a time.
//!
//! Owns the order: bodies, then records, then counts. Not more waits than is in flight, and
//! nothing that has a file open already. A program that dies in between has lost answers that
//! nobody was told of; the next run asks for them again.

use std::collections::VecDeque;

use http::header::CONTENT_TYPE;

use super::Engine;
use super::flight::Body;
use super::records::{self, Stored};
use crate::model::{Attempt, Origin, Time};
use crate::schedule::Work;
use crate::store::{Captured, Facts, Finished, StoreError};

/// Stored at a time. More: fewer writes for the same; less: an answer that arrives meanwhile
/// waits less (some 15 µs each).
const BATCH: usize = 32;
/// Bytes that may wait.
const ROOM: usize = 8 << 20;

/// A job that is done but for its body and its record.
pub(super) struct Done {
    pub(super) work: Box<Work>,
    pub(super) attempt: Box<Attempt>,
    pub(super) body: Body,
    /// Index of the exit that it went through.
    pub(super) exit: usize,
    /// Whose budget it waited for.
    pub(super) origin: Origin,
    /// When it was done.
    pub(super) at: Time,
}

/// The same, its body at its place.
struct Placed {
    work: Box<Work>,
    attempt: Box<Attempt>,
    origin: Origin,
    at: Time,
    stored: Stored,
}

/// What waits, the oldest first.
#[derive(Default)]
pub(super) struct Storing {
    waiting: VecDeque<Done>,
    bytes: usize,
}

impl Storing {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn push(&mut self, done: Done) {
        self.bytes += done.body.in_memory();
        self.waiting.push_back(done);
    }

    fn take(&mut self) -> Vec<Done> {
        let most = self.waiting.len().min(BATCH);
        let batch: Vec<Done> = self.waiting.drain(..most).collect();
        let bytes = batch.iter().map(|done| done.body.in_memory());
        self.bytes -= bytes.sum::<usize>();
        batch
    }
}

impl Engine {
    /// The job's answer is whole: it is stored soon, or at once if its file is open.
    pub(super) fn done(&mut self, done: Done) {
        match done.body.in_memory() {
            0 => self.store(vec![done]),
            _ => self.storing.push(done),
        }
    }

    /// Stores what is too much to wait.
    pub(super) fn make_room(&mut self) {
        while self.storing.waiting.len() > self.tasks.len() || self.storing.bytes > ROOM {
            self.store_some();
        }
    }

    /// Stores what waits longest.
    pub(super) fn store_some(&mut self) {
        let batch = self.storing.take();
        self.store(batch);
    }

    /// Stores all that waits.
    pub(super) fn store_all(&mut self) {
        while !self.storing.is_empty() {
            self.store_some();
        }
    }

    fn store(&mut self, batch: Vec<Done>) {
        let mut placed = Vec::with_capacity(batch.len());
        let mut since = self.clock.now();
        for Done {
            work,
            attempt,
            body,
            exit,
            origin,
            at,
        } in batch
        {
            let stored = match body {
                Body::File(body) => self.name(&work, &attempt, body),
                Body::Exchange(captured) => self.archive(&work, &attempt, exit, *captured),
            };
            match stored {
                Ok(stored) => placed.push(Placed {
                    work,
                    attempt,
                    origin,
                    at,
                    stored,
                }),
                Err(error) => self.disk_failed(error),
            }
            if self.is_worth_a_write() {
                self.record(&mut placed, since);
                since = self.clock.now();
            }
        }
        self.record(&mut placed, since);
    }

    fn is_worth_a_write(&self) -> bool {
        let warc = self.store.warc.as_ref();
        warc.is_some_and(|warc| warc.segments.is_full())
    }

    /// Records what was placed from `since` on, once an archive has written it.
    fn record(&mut self, placed: &mut Vec<Placed>, since: Time) {
        if let Some(warc) = &mut self.store.warc
            && let Err(error) = warc.segments.flush()
        {
            warc.segments.forget();
            placed.clear();
            self.disk_failed(error);
        }
        self.recording.committed(self.clock.now() - since);
        for Placed {
            work,
            attempt,
            origin,
            at,
            stored,
        } in placed.drain(..)
        {
            let at = self.at(at);
            let record = records::ok(&work, &attempt, stored, &self.exits, at);
            self.tally.waited(&origin, work.waited().budget);
            self.settle(&record);
        }
    }

    /// Gives a body its final name.
    fn name(&self, work: &Work, attempt: &Attempt, body: Finished) -> Result<Stored, StoreError> {
        let head = attempt.head.as_ref();
        let content_type = head.and_then(|head| head.headers.get(CONTENT_TYPE));
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let file = self.store.names.file(&work.job, content_type);
        let bytes = body.bytes;
        let sha256 = body.commit(&file)?;
        Ok(Stored {
            file,
            record: None,
            bytes,
            sha256,
        })
    }

    /// Adds an exchange through the exit of this index to the archive.
    fn archive(
        &mut self,
        work: &Work,
        attempt: &Attempt,
        exit: usize,
        mut captured: Captured,
    ) -> Result<Stored, StoreError> {
        let Some(warc) = &mut self.store.warc else {
            unreachable!("only runs with an archive capture exchanges");
        };
        let (bytes, sha256) = (captured.bytes, std::mem::take(&mut captured.sha256));
        let placed = warc.segments.append(
            captured,
            Facts {
                exit: &self.exits[exit].id,
                listed: work.final_url().map(|_| work.job.shown_url()),
                phases: &attempt.phases,
            },
        )?;
        Ok(Stored {
            file: placed.file,
            record: Some((placed.offset, placed.length)),
            bytes,
            sha256,
        })
    }
}
