//! What an entry of the list needs, in view of earlier runs and of this one.
//!
//! Each entry of the list has one record in the end, and each id at most one writer at a
//! time. An entry listed again while the first is under way waits here, as its line number
//! and columns; when the first ends, [`Journal::settle`] writes a record for it too. So
//! memory follows the jobs in memory, not the list.
//!
//! Over runs: `records` of an id count how many entries of the list are already answered.
//! The k-th entry with an ok id is skipped while k is not above that count; one more gets a
//! record of its own without a fetch. A refused line has no job and is kept apart: it never
//! hides what is known of its id.

use serde_json::{Map, Value};

use super::index::{Entry, Index};
use super::{Journal, Past};
use crate::model::{Job, Outcome, Record, Refusal, Secret};
use crate::store::StoreError;

/// What becomes of jobs that failed in an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedBefore {
    /// They are fetched again.
    TryAgain,
    /// They count as done (`--no-retry-failed`).
    LeaveAlone,
}

/// What to do with an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Fetch it; it counts as under way until [`Journal::settle`].
    Fetch,
    /// This record of an earlier run answers it. Nothing to fetch, nothing to write.
    Done(Box<Record>),
    /// The job is done and this entry is one more of it: stamp this record, append it, count it.
    Twin(Box<Record>),
    /// The same job is under way; [`Journal::settle`] answers this entry with it.
    Wait,
    /// The id belongs to another request, of this line: refuse the entry.
    DuplicateId {
        /// Line of the entry that has the id.
        line: u64,
    },
}

/// An entry that waits for its like.
#[derive(Clone, Debug, PartialEq)]
pub struct Twin {
    /// Its line of the list.
    pub line: u64,
    /// Its own other columns.
    pub extra: Option<Box<Map<String, Value>>>,
}

/// The first entry of a job, not ended yet.
#[derive(Debug)]
pub(super) struct UnderWay {
    what: u32,
    line: u64,
    twins: Vec<Twin>,
}

pub(super) fn refusal_key(index: &Index, id: &str, line: u64) -> u64 {
    index.key((id, line, "refused"))
}

impl Journal {
    /// Decides what the entry `job` needs. Call once per entry, in the order of the list.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn decide(&mut self, job: &Job) -> Result<Decision, StoreError> {
        let key = self.index.key(&*job.id);
        let what = fingerprint(&self.index, job);
        if let Some(first) = self.under_way.get_mut(&key) {
            if first.what != what {
                return Ok(Decision::DuplicateId { line: first.line });
            }
            first.twins.push(twin(job));
            return Ok(Decision::Wait);
        }
        let Some(past) = self.lookup(&job.id)? else {
            return Ok(self.start(key, what, job));
        };
        Ok(self.decide_by(past, key, what, job))
    }

    fn decide_by(&mut self, past: Past, key: u64, what: u32, job: &Job) -> Decision {
        let same = match past.entry.what {
            0 => past.record.url == job.shown_url(),
            known => known == what,
        };
        let settled = past.entry.is_settled();
        let stored = self.is_stored(&past.record);
        let record = Box::new(past.record);
        match record.outcome {
            // What an earlier run could not fetch may be written differently now.
            _ if !same && !settled && !stored => self.start(key, what, job),
            _ if !same => Decision::DuplicateId { line: record.line },
            _ if settled => Decision::Twin(Box::new(twin_record(&record, twin(job)))),
            Outcome::Ok if stored => self.answered(key, past.entry, what, (job, record)),
            // Its file is missing or has another size.
            Outcome::Ok => self.start(key, what, job),
            Outcome::Failed | Outcome::Refused => match self.failed_before {
                FailedBefore::TryAgain => self.start(key, what, job),
                FailedBefore::LeaveAlone => self.answered(key, past.entry, what, (job, record)),
            },
        }
    }

    /// The entry `job`, which was [`Decision::Done`], is fetched all the same: it counts as
    /// under way until [`Journal::settle`].
    pub fn ask_again(&mut self, job: &Job) {
        let what = fingerprint(&self.index, job);
        self.start(self.index.key(&*job.id), what, job);
    }

    fn start(&mut self, key: u64, what: u32, job: &Job) -> Decision {
        let first = UnderWay {
            what,
            line: job.line,
            twins: Vec::new(),
        };
        self.under_way.insert(key, first);
        Decision::Fetch
    }

    fn answered(&mut self, key: u64, entry: Entry, what: u32, by: (&Job, Box<Record>)) -> Decision {
        let (job, record) = by;
        let Some(matched) = entry.matched(what) else {
            return Decision::Twin(Box::new(twin_record(&record, twin(job))));
        };
        self.index.set(key, matched);
        Decision::Done(record)
    }

    /// Appends the record that ends a job, and one for each entry that waited for it.
    /// Returns those.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn settle(&mut self, record: &Record) -> Result<Vec<Record>, StoreError> {
        let first = self.under_way.remove(&self.index.key(&*record.id));
        let (what, twins) = match first {
            Some(first) => (first.what, first.twins),
            None => (self.what_of(&record.id), Vec::new()),
        };
        self.put(record, what)?;
        let twins: Vec<Record> = twins
            .into_iter()
            .map(|twin| twin_record(record, twin))
            .collect();
        for twin in &twins {
            self.put(twin, what)?;
        }
        Ok(twins)
    }

    /// An earlier run recorded this refusal: it counts, but needs no second record.
    pub fn is_refused_already(&self, refusal: &Refusal) -> bool {
        self.refused
            .contains(&refusal_key(&self.index, &refusal.id, refusal.line))
    }

    pub(super) fn what_of(&self, id: &str) -> u32 {
        self.index
            .get(self.index.key(id))
            .map_or(0, |entry| entry.what)
    }
}

/// 32 bits over everything that makes a request another one; never 0.
fn fingerprint(index: &Index, job: &Job) -> u32 {
    let mut headers: Vec<(&str, &[u8])> = Vec::new();
    if let Some(listed) = &job.headers {
        headers.extend(
            listed
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_bytes())),
        );
        // By name alone: the values of one name are sent in the order of the list.
        headers.sort_by_key(|(name, _)| *name);
    }
    let login = job.authorization.as_ref().map(Secret::expose);
    let request = (job.method.as_str(), job.shown_url(), job.body.as_deref());
    let hash = index.key((request, headers, login));
    (hash >> 32) as u32 | 1
}

fn twin(job: &Job) -> Twin {
    Twin {
        line: job.line,
        extra: job.extra.clone(),
    }
}

/// The record of one more entry of a job: the same result, at no cost of its own.
fn twin_record(record: &Record, twin: Twin) -> Record {
    Record {
        line: twin.line,
        extra: twin.extra.map(|extra| *extra),
        tried: Vec::new(),
        attempts: 0,
        wire_bytes: None,
        waits: None,
        phases: None,
        ..record.clone()
    }
}
