//! Answers that are whole and wait to be stored.
//!
//! A slot is free when its body is read, so the next request goes out first, and what came in
//! is stored when nothing else is to do: file calls take longer than the sending of a request,
//! and a wave of answers would otherwise go out again one file at a time. Where many wait, another
//! thread makes their files, while the loop goes on: one batch at a time, since handing over a
//! single body costs more than its file calls do. An archive is written by the loop itself, many
//! exchanges in one call.
//!
//! Owns the order: bodies, then records, then counts. Besides the batch that the other thread has
//! not more waits than is in flight, and nothing that has a file open already. A program that dies
//! in between has lost answers that nobody was told of; the next run asks for them again.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle, spawn_blocking};

use super::Engine;
use super::flight::Body;
use super::records::Stored;
use crate::model::{Origin, PhaseTimes, Record, Time};
use crate::store::{Captured, Facts, Finished, StoreError};

/// Stored at a time by the loop, and the least that is handed over. More: fewer writes, and fewer
/// changes of thread, for the same; less: an answer that arrives meanwhile waits less (some 15 µs
/// each).
const BATCH: usize = 32;
/// Handed over at a time. More: records come later; less: the other thread waits for the loop.
const LOAD: usize = 4 * BATCH;
/// Bytes that may wait; at most as many more are with the other thread.
const ROOM: usize = 8 << 20;

/// A job that is done but for its place. What is no longer needed has gone by now, the attempt's
/// head above all: the read buffer that it is in serves the connection's next answer.
pub(super) struct Done {
    /// Of the body only its future name is known, and not even that in an archive.
    pub(super) record: Box<Record>,
    /// Index of the exit that it went through.
    pub(super) exit: usize,
    pub(super) phases: PhaseTimes,
    /// Whose budget it waited for, and how long.
    pub(super) waited: (Origin, Duration),
}

/// What waits, and what is being stored.
pub(super) struct Storing {
    /// The oldest first.
    waiting: VecDeque<(Done, Body)>,
    /// Of these.
    bytes: usize,
    /// There is a core for another thread.
    shares: bool,
    /// What another thread is storing.
    away: Option<JoinHandle<Load>>,
    /// Files may have been made that have no record: such a thread died, or the journal failed.
    lost: bool,
}

/// What it has stored.
pub(super) struct Load {
    placed: Vec<(Done, Result<Stored, StoreError>)>,
    took: Duration,
}

impl Storing {
    /// Nothing yet.
    pub(super) fn new() -> Storing {
        Storing {
            waiting: VecDeque::new(),
            bytes: 0,
            shares: std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1),
            away: None,
            lost: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.away.is_none()
    }

    /// The loop has something to store.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty() && self.away.is_none()
    }

    fn push(&mut self, done: Done, body: Body) {
        self.bytes += body.in_memory();
        self.waiting.push_back((done, body));
    }

    /// Files may have been made that nobody has recorded.
    pub(super) fn has_lost(&self) -> bool {
        self.lost
    }

    /// The oldest that wait, at most so many.
    fn take(&mut self, most: usize) -> Vec<(Done, Body)> {
        let most = self.waiting.len().min(most);
        let batch: Vec<(Done, Body)> = self.waiting.drain(..most).collect();
        let bytes = batch.iter().map(|(_, body)| body.in_memory());
        self.bytes -= bytes.sum::<usize>();
        batch
    }

    /// What was handed over, once it is stored. Never done while nothing is away.
    pub(super) async fn back(&mut self) -> Result<Load, JoinError> {
        let Some(away) = &mut self.away else {
            return pending().await;
        };
        let load = away.await;
        self.away = None;
        load
    }
}

impl Engine {
    /// The job's answer is whole: it is stored soon, or at once if its file is open.
    pub(super) fn done(&mut self, done: Done, body: Body) {
        match body.in_memory() {
            0 => self.store(vec![(done, body)]),
            _ => self.storing.push(done, body),
        }
    }

    /// Hands over what is worth it, and stores what is too much to wait.
    pub(super) fn make_room(&mut self) {
        let many = self.storing.waiting.len() >= BATCH && self.storing.away.is_none();
        if many && self.storing.shares && self.store.warc.is_none() {
            self.hand_over();
        }
        while self.storing.waiting.len() > self.tasks.len() || self.storing.bytes > ROOM {
            self.store_some();
        }
    }

    /// Lets another thread store what waits longest.
    fn hand_over(&mut self) {
        let batch = self.storing.take(LOAD);
        let named = batch.into_iter().map(|(done, body)| {
            let Body::File(body) = body else {
                unreachable!("only runs with an archive capture exchanges");
            };
            (done, body)
        });
        let named: Vec<(Done, Finished)> = named.collect();
        let clock = self.clock;
        let thread = spawn_blocking(move || {
            let since = clock.now();
            let placed = named.into_iter();
            let placed = placed.map(|(done, body)| {
                let stored = place(&done, body);
                (done, stored)
            });
            Load {
                placed: placed.collect(),
                took: clock.now() - since,
            }
        });
        self.storing.away = Some(thread);
    }

    /// What was handed over is stored.
    pub(super) fn came_back(&mut self, load: Result<Load, JoinError>) {
        let Ok(load) = load else {
            self.storing.lost = true;
            return self.disk_failed(self.ground.bodies.lost());
        };
        self.recording.stored_elsewhere(load.took);
        for (done, stored) in load.placed {
            match stored {
                Ok(stored) => self.record(done, stored),
                Err(error) => self.disk_failed(error),
            }
        }
    }

    /// Stores what waits longest.
    pub(super) fn store_some(&mut self) {
        let batch = self.storing.take(BATCH);
        self.store(batch);
    }

    /// Stores and records all that waits.
    pub(super) async fn store_all(&mut self) {
        while self.storing.away.is_some() {
            let load = self.storing.back().await;
            self.came_back(load);
            self.flush();
        }
        while self.storing.waits() {
            self.store_some();
            self.flush();
        }
    }

    fn store(&mut self, batch: Vec<(Done, Body)>) {
        let mut placed = Vec::with_capacity(batch.len());
        let mut since = self.clock.now();
        for (done, body) in batch {
            let stored = match body {
                Body::File(body) => place(&done, body),
                Body::Exchange(captured) => self.archive(&done, *captured),
            };
            match stored {
                Ok(stored) => placed.push((done, stored)),
                Err(error) => self.disk_failed(error),
            }
            if self.is_worth_a_write() {
                self.write(&mut placed, since);
                since = self.clock.now();
            }
        }
        self.write(&mut placed, since);
    }

    fn is_worth_a_write(&self) -> bool {
        let warc = self.store.warc.as_ref();
        warc.is_some_and(|warc| warc.segments.is_full())
    }

    /// Records what was placed from `since` on, once an archive has written it.
    fn write(&mut self, placed: &mut Vec<(Done, Stored)>, since: Time) {
        if let Some(warc) = &mut self.store.warc
            && let Err(error) = warc.segments.flush()
        {
            warc.segments.forget();
            placed.clear();
            self.disk_failed(error);
        }
        let took = self.clock.now() - since;
        self.recording.committed(took);
        self.ground.fetcher.stood_still(took);
        for (done, stored) in placed.drain(..) {
            self.record(done, stored);
        }
    }

    fn record(&mut self, mut done: Done, stored: Stored) {
        stored.complete(&mut done.record);
        let (origin, waited) = &done.waited;
        self.tally.waited(origin, *waited);
        if !self.settle(&done.record) {
            self.storing.lost = true;
        }
    }

    /// Adds an exchange to the archive.
    fn archive(&mut self, done: &Done, mut captured: Captured) -> Result<Stored, StoreError> {
        let Some(warc) = &mut self.store.warc else {
            unreachable!("only runs with an archive capture exchanges");
        };
        let (bytes, sha256) = (captured.bytes, std::mem::take(&mut captured.sha256));
        let record = &done.record;
        let placed = warc.segments.append(
            captured,
            Facts {
                exit: &self.exits[done.exit].id,
                listed: record.final_url.is_some().then_some(&*record.url),
                phases: &done.phases,
            },
        )?;
        Ok(Stored {
            place: Some(placed),
            bytes,
            sha256,
        })
    }
}

/// Gives a body its final name.
fn place(done: &Done, body: Finished) -> Result<Stored, StoreError> {
    let bytes = body.bytes;
    let Some(file) = done.record.file.as_deref() else {
        unreachable!("a body that gets a file has its name since its job is done");
    };
    let sha256 = body.commit(file)?;
    Ok(Stored {
        place: None,
        bytes,
        sha256,
    })
}
