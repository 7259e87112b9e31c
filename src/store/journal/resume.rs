//! What an entry of the list needs, in view of earlier runs and of this one.
//!
//! Each entry of the list has one record in the end, and each id at most one writer at a
//! time. An entry listed again while the first is under way waits here, as its line number
//! and columns; when the first ends, [`Journal::settle`] writes a record for it too. So
//! memory follows the jobs in memory, not the list. A job that is kept on disk until its
//! turn comes claims its id by [`Journal::claim`], which costs no more than the index does;
//! when it is read back, [`Journal::decide`] settles whether it is the first of its like.
//!
//! Over runs: `records` of an id count how many entries of the list are already answered.
//! The k-th entry with an ok id is skipped while k is not above that count; one more gets a
//! record of its own without a fetch. A refused line has no job and is kept apart: it never
//! hides what is known of its id.

use serde_json::{Map, Value};

use super::Journal;
use super::index::{At, Entry, Keys, WHAT};
use super::lookup::{Known, Past};
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
    /// Fetch it; it counts as under way until [`Journal::settle`]. To a claim: keep it on
    /// disk and decide when it is read back.
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

/// Where a job is until it is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    InMemory,
    OnDisk,
}

pub(super) fn refusal_key(keys: &Keys, id: &str, line: u64) -> u64 {
    keys.of((id, line, "refused"))
}

impl Journal {
    /// Decides what the entry `job` needs. Call once per entry, in the order of the list; of
    /// one that was claimed, again when it is read back, in any order.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn decide(&mut self, job: &Job) -> Result<Decision, StoreError> {
        self.answer(job, Kept::InMemory)
    }

    /// Decides what the entry `job`, which will be kept on disk, needs. Call once per entry,
    /// in the order of the list. One more of a claimed job is to be kept on disk as well.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn claim(&mut self, job: &Job) -> Result<Decision, StoreError> {
        self.answer(job, Kept::OnDisk)
    }

    fn answer(&mut self, job: &Job, kept: Kept) -> Result<Decision, StoreError> {
        let keys = self.index.keys();
        let entry = Asked {
            job,
            kept,
            key: keys.of(&*job.id),
            what: fingerprint(keys, job),
        };
        if let Some(first) = self.under_way.get_mut(&entry.key) {
            if first.what != entry.what {
                return Ok(Decision::DuplicateId { line: first.line });
            }
            first.twins.push(twin(job));
            return Ok(Decision::Wait);
        }
        Ok(match self.known(&job.id)? {
            None => self.start(&entry, None),
            Some(Known::Past(past)) => self.answer_by(*past, &entry)?,
            Some(Known::Claimed { line, what }) if !Entry::claims(what, entry.what) => {
                Decision::DuplicateId { line }
            }
            Some(Known::Claimed { .. }) => match kept {
                Kept::InMemory => self.start(&entry, None),
                // The first line stays the one that has the id.
                Kept::OnDisk => Decision::Fetch,
            },
        })
    }

    fn answer_by(&mut self, past: Past, entry: &Asked) -> Result<Decision, StoreError> {
        let (known_what, settled) = match past.entry {
            Entry::Matched { what, .. } => (what, false),
            Entry::Settled { what, .. } => (what, true),
            Entry::Loaded { .. } | Entry::Claimed { .. } | Entry::Refused => (0, false),
        };
        let same = match known_what {
            0 => past.record.url == entry.job.shown_url(),
            known => known == entry.what,
        };
        let stored = self.is_stored(&past.record);
        let at = Some(past.at);
        let has_file = past.record.outcome == Outcome::Ok && past.record.offset.is_none();
        if has_file && !stored && !settled {
            // It is fetched again: until that is recorded, the file may be of another answer.
            self.begin_replacing()?;
        }
        let is_met = matches!(past.entry, Entry::Loaded { .. });
        let decision = match past.record.outcome {
            // What an earlier run could not fetch may be written differently now.
            _ if !same && !settled && !stored => self.start(entry, at),
            _ if !same => Decision::DuplicateId {
                line: past.record.line,
            },
            _ if settled => entry.twin_of(&past.record),
            Outcome::Ok if stored => self.answered(past, entry),
            // Its file is missing or has another size.
            Outcome::Ok => self.start(entry, at),
            Outcome::Failed | Outcome::Refused => match self.failed_before {
                FailedBefore::TryAgain => self.start(entry, at),
                FailedBefore::LeaveAlone => self.answered(past, entry),
            },
        };
        if is_met && !matches!(decision, Decision::DuplicateId { .. }) {
            self.unmet = self.unmet.saturating_sub(1);
        }
        Ok(decision)
    }

    /// The entry `job`, which was [`Decision::Done`], is fetched all the same: it counts as
    /// under way until [`Journal::settle`].
    pub fn ask_again(&mut self, job: &Job) {
        let keys = self.index.keys();
        let entry = Asked {
            job,
            kept: Kept::InMemory,
            key: keys.of(&*job.id),
            what: fingerprint(keys, job),
        };
        self.start(&entry, None);
    }

    /// The entry's job begins; `at` is what the index has of its id.
    fn start(&mut self, entry: &Asked, at: Option<At>) -> Decision {
        let line = entry.job.line;
        match (entry.kept, at) {
            (Kept::InMemory, _) => {
                let first = UnderWay {
                    what: entry.what,
                    line,
                    twins: Vec::new(),
                };
                self.under_way.insert(entry.key, first);
            }
            (Kept::OnDisk, None) => {
                let claim = Entry::claim(line, entry.what);
                self.index.insert(entry.key, claim);
            }
            (Kept::OnDisk, Some(at)) => {
                let claim = Entry::claim(line, entry.what);
                self.index.replace(at, entry.key, claim);
            }
        }
        Decision::Fetch
    }

    /// A record of an earlier run is the entry's, if one is left.
    fn answered(&mut self, past: Past, entry: &Asked) -> Decision {
        let (Entry::Loaded { offset, .. } | Entry::Matched { offset, .. }, Some(unmatched)) =
            (past.entry, past.records.checked_sub(1))
        else {
            return entry.twin_of(&past.record);
        };
        let matched = Entry::Matched {
            offset,
            unmatched,
            what: entry.what,
        };
        self.index.replace(past.at, entry.key, matched);
        Decision::Done(Box::new(past.record))
    }

    /// Appends the record that ends a job, and one for each entry that waited for it.
    /// Returns those.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn settle(&mut self, record: &Record) -> Result<Vec<Record>, StoreError> {
        let first = self.under_way.remove(&self.index.keys().of(&*record.id));
        let (what, twins) = match first {
            Some(first) => (Some(first.what), first.twins),
            None => (None, Vec::new()),
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
        let key = refusal_key(self.index.keys(), &refusal.id, refusal.line);
        self.index.is_refused(key)
    }
}

/// An entry of the list that asks what it needs.
struct Asked<'a> {
    job: &'a Job,
    kept: Kept,
    key: u64,
    what: u32,
}

impl Asked<'_> {
    fn twin_of(&self, record: &Record) -> Decision {
        Decision::Twin(Box::new(twin_record(record, twin(self.job))))
    }
}

/// 24 bits over everything that makes a request another one; never 0.
fn fingerprint(keys: &Keys, job: &Job) -> u32 {
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
    let hash = keys.of((request, headers, login));
    ((hash >> 32) as u32 & WHAT).max(1)
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
