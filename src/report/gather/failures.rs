//! What failed or was refused, by kind and blame.
//!
//! The last record of an id counts: a job that failed and was tried again in a later run is one
//! job, with those of its entries that were answered along with it; a refusal is of its line and
//! hides no other record. So the ids of failures are remembered (16 bytes each), those of
//! successes are not.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::light::Light;
use crate::model::{Blame, ErrorKind, Outcome};

/// Examples kept of each kind of failure.
const EXAMPLES: usize = 3;
/// Characters kept of a text in an example.
const EXAMPLE_TEXT: usize = 300;

pub(super) type Hasher = foldhash::fast::RandomState;

/// See the module's text.
#[derive(Debug, Default)]
pub(in crate::report) struct Failures {
    kinds: Vec<Failed>,
    not_ok: HashMap<u64, NotOk, Hasher>,
    hasher: Hasher,
}

/// Failures of one kind and blame.
#[derive(Clone, Debug)]
pub(in crate::report) struct Failed {
    pub kind: ErrorKind,
    pub blame: Blame,
    /// `Failed` or `Refused`.
    pub outcome: Outcome,
    pub count: u64,
    pub examples: Vec<Example>,
}

#[derive(Clone, Debug)]
pub(in crate::report) struct Example {
    id: u64,
    pub line: u64,
    pub url: String,
    pub detail: String,
}

/// What is counted of a job, or of a line, whose last record is not ok.
#[derive(Clone, Copy, Debug)]
struct NotOk {
    /// Index into the kinds.
    kind: u32,
    /// Entries that ended so.
    entries: u32,
}

/// What no longer counts.
pub(super) struct Replaced {
    pub(super) outcome: Outcome,
    pub(super) entries: u64,
}

impl Failures {
    /// A later record of the same job, or refusal of the same line, takes an earlier one's place.
    pub(super) fn replaced_by(&mut self, record: &Light<'_>) -> Option<Replaced> {
        if self.not_ok.is_empty() || record.is_twin() {
            return None;
        }
        let id = self.id(record);
        let before = self.not_ok.remove(&id)?;
        let failed = &mut self.kinds[before.kind as usize];
        let entries = u64::from(before.entries);
        failed.count -= entries;
        failed.examples.retain(|example| example.id != id);
        Some(Replaced {
            outcome: failed.outcome,
            entries,
        })
    }

    /// Counts a record, if it is not ok.
    pub(super) fn add(&mut self, record: &Light<'_>) {
        let Some(error) = &record.error else {
            return;
        };
        if record.outcome == Outcome::Ok {
            return;
        }
        let what = (error.kind, error.blame, record.outcome);
        let (id, kind) = (self.id(record), self.kind(what));
        let of_id = self.not_ok.entry(id).or_insert(NotOk {
            kind: kind as u32,
            entries: 0,
        });
        of_id.entries += 1;
        let failed = &mut self.kinds[kind];
        failed.count += 1;
        if failed.examples.len() < EXAMPLES {
            failed.examples.push(Example {
                id,
                line: record.line,
                url: record.url.chars().take(EXAMPLE_TEXT).collect(),
                detail: error.detail.chars().take(EXAMPLE_TEXT).collect(),
            });
        }
    }

    /// The most frequent first, those without any left out. Nothing is added after it.
    pub(super) fn rank(&mut self) {
        self.kinds.retain(|failed| failed.count > 0);
        self.kinds
            .sort_by_key(|failed| std::cmp::Reverse(failed.count));
    }

    /// By kind, blame and outcome.
    pub(in crate::report) fn kinds(&self) -> &[Failed] {
        &self.kinds
    }

    fn id(&self, record: &Light<'_>) -> u64 {
        let refused_line = (record.outcome == Outcome::Refused).then_some(record.line);
        self.hasher.hash_one((&*record.id, refused_line))
    }

    fn kind(&mut self, what: (ErrorKind, Blame, Outcome)) -> usize {
        let same = |failed: &Failed| (failed.kind, failed.blame, failed.outcome) == what;
        if let Some(known) = self.kinds.iter().position(same) {
            return known;
        }
        let (kind, blame, outcome) = what;
        self.kinds.push(Failed {
            kind,
            blame,
            outcome,
            count: 0,
            examples: Vec::new(),
        });
        self.kinds.len() - 1
    }
}
