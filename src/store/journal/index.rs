//! What is known of each id, in 24 bytes: where its last record is and how it ended.
//!
//! The journal file itself is the table's second half: an entry says where to look, and the
//! record found there is checked against the id, so a hash collision costs one read and
//! nothing else. Keys are salted per run; a list cannot be made to collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use foldhash::quality::RandomState;

use crate::model::Outcome;

/// Top bits of an entry's `place`; the rest is an offset of up to 16 EiB / 8.
const SETTLED: u64 = 1 << 63;
const OK: u64 = 1 << 62;
const OFFSET: u64 = OK - 1;

/// What the index says of one id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    place: u64,
    /// Records of earlier runs with the last one's outcome, in a row at the end, that no
    /// entry of this run's list has matched yet.
    pub unmatched: u32,
    /// Fingerprint of method, URL and body; 0 where an earlier run wrote the record.
    pub what: u32,
}

impl Entry {
    /// A record that this run appends at `offset`.
    pub fn settled(offset: u64, outcome: Outcome, what: u32) -> Entry {
        Entry {
            place: SETTLED | ok_bit(outcome) | (offset & OFFSET),
            unmatched: 0,
            what,
        }
    }

    /// Offset of the last record.
    pub fn offset(self) -> u64 {
        self.place & OFFSET
    }

    /// The last record is of this run.
    pub fn is_settled(self) -> bool {
        self.place & SETTLED != 0
    }

    /// The same with one more record matched by an entry of this run, which is `what`;
    /// `None` when all are matched.
    pub fn matched(self, what: u32) -> Option<Entry> {
        let unmatched = self.unmatched.checked_sub(1)?;
        Some(Entry {
            unmatched,
            what,
            ..self
        })
    }

    fn outcome_bit(self) -> u64 {
        self.place & OK
    }
}

fn ok_bit(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Ok => OK,
        Outcome::Failed | Outcome::Refused => 0,
    }
}

/// The entries by hash of the id.
#[derive(Debug, Default)]
pub(super) struct Index {
    salt: RandomState,
    entries: HashMap<u64, Entry, BuildHasherDefault<AlreadyHashed>>,
}

impl Index {
    /// The salted hash of `value`.
    pub fn key(&self, value: impl Hash) -> u64 {
        self.salt.hash_one(value)
    }

    /// The entry under `key`.
    pub fn get(&self, key: u64) -> Option<Entry> {
        self.entries.get(&key).copied()
    }

    /// Puts `entry` under `key`.
    pub fn set(&mut self, key: u64, entry: Entry) {
        self.entries.insert(key, entry);
    }

    /// Takes in a record of an earlier run.
    pub fn load(&mut self, key: u64, offset: u64, outcome: Outcome) {
        let same_before = match self.entries.get(&key) {
            Some(before) if before.outcome_bit() == ok_bit(outcome) => before.unmatched,
            _ => 0,
        };
        let entry = Entry {
            place: ok_bit(outcome) | (offset & OFFSET),
            unmatched: same_before.saturating_add(1),
            what: 0,
        };
        self.entries.insert(key, entry);
    }
}

/// Keys are hashes already.
#[derive(Debug, Default)]
pub(super) struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_costs_24_bytes() {
        assert_eq!(size_of::<(u64, Entry)>(), 24);
    }

    #[test]
    fn only_the_last_row_of_like_outcomes_is_counted() {
        let mut index = Index::default();
        for (offset, outcome) in [Outcome::Failed, Outcome::Ok, Outcome::Ok]
            .into_iter()
            .enumerate()
        {
            index.load(7, offset as u64, outcome);
        }
        let entry = index.get(7).unwrap();
        assert_eq!(
            (entry.offset(), entry.unmatched, entry.is_settled()),
            (2, 2, false)
        );
        index.load(7, 3, Outcome::Failed);
        assert_eq!(index.get(7).unwrap().unmatched, 1);
    }
}
