//! What is known of each id, in 13 bytes of a table that is nearly full: where its last
//! record is and how it ended, or which line claims it.
//!
//! The journal file itself is the table's second half: an entry says where to look, and the
//! record found there is checked against the id, so ids of one hash cost a read and nothing
//! else. An entry without such a record spends the bits it has left on more of the hash:
//! 64 of it for what an earlier run left, 61 for a claim. Hashes are salted per run; a list
//! cannot be made to collide.
//!
//! The ids are spread over 256 tables, each of which grows by itself and by a twentieth. So
//! ten million ids take some 14 bytes of table each at any time: no table doubles, and what is
//! moved at once is one of them. The first ids take a block of 4 KiB in each, 1 MiB. How an entry becomes 13 bytes is `slot`'s matter; the few
//! that need more are kept whole beside the tables (`wide`).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::quality::RandomState;

use super::slot::{Fields, hash_of};
use super::table::{Slot, Table};
use crate::model::Outcome;

/// Tables, chosen by the top 8 bits of the hash.
const TABLES: usize = 256;
/// Fingerprints of requests have no more bits than this.
pub(super) const WHAT: u32 = 0xff_ffff;
/// A claim keeps this part of one.
const CLAIMED_WHAT: u32 = 0xffff;

/// What the index says of one id. `what` is a fingerprint of the request, 0 where that is
/// not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The last record is an earlier run's, and no entry of this run's list has met it yet.
    Loaded {
        /// Of the last record.
        offset: u64,
        /// How it ended: ok, or else failed.
        ok: bool,
        /// Records of earlier runs with the last one's outcome, in a row at the end.
        unmatched: u32,
    },
    /// The last record is an earlier run's, and entries of this run's list have met it.
    Matched {
        /// Of the last record.
        offset: u64,
        /// Those of its like that are left for further entries.
        unmatched: u32,
        /// The request of these entries.
        what: u32,
    },
    /// The last record is of this run.
    Settled {
        /// Of the last record.
        offset: u64,
        /// The request that it answers.
        what: u32,
    },
    /// An entry of this run's list that is kept on disk; no record counts before it has one.
    Claimed {
        /// The entry's line.
        line: u64,
        /// The low bits of its request's fingerprint; see [`Entry::claims`].
        what: u32,
    },
    /// Not an id: a refusal of an earlier run.
    Refused,
}

impl Entry {
    /// A claim of `line` on an id for the request `what`.
    pub fn claim(line: u64, what: u32) -> Entry {
        Entry::Claimed {
            line,
            what: what & CLAIMED_WHAT,
        }
    }

    /// Whether a claim that kept `claimed` is, as far as it tells, for the request `what`.
    pub fn claims(claimed: u32, what: u32) -> bool {
        claimed == what & CLAIMED_WHAT
    }
}

/// Makes keys of ids: hashes with this run's salt.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys(RandomState);

impl Keys {
    /// The salted hash of `value`.
    pub fn of(&self, value: impl Hash) -> u64 {
        self.0.hash_one(value)
    }
}

/// Where an entry is, until the next one is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(usize);

/// The entries by hash of the id.
#[derive(Debug)]
pub(super) struct Index {
    keys: Keys,
    tables: Vec<Table>,
    /// Entries with a number that no slot can hold, by key.
    wide: HashMap<u64, Entry>,
}

impl Default for Index {
    fn default() -> Index {
        Index {
            keys: Keys::default(),
            tables: (0..TABLES).map(|_| Table::default()).collect(),
            wide: HashMap::new(),
        }
    }
}

impl Index {
    /// What makes this index's keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The entries that may be of the id with this key, hardly ever more than one. A loaded
    /// or a claimed one is of this id, a matched or settled one has a record that tells.
    pub fn of(&self, key: u64) -> impl Iterator<Item = (At, Entry)> {
        let slots = self.tables[table_of(key)].of(hash_of(key));
        slots.filter_map(move |(at, slot)| Some((At(at), self.read(key, slot)?)))
    }

    /// Puts `entry` in the place of the one at `at`, which has the same key.
    pub fn replace(&mut self, at: At, key: u64, entry: Entry) {
        let slot = self.slot(key, entry);
        self.tables[table_of(key)].replace(at.0, slot);
    }

    /// Adds `entry`.
    pub fn insert(&mut self, key: u64, entry: Entry) {
        let slot = self.slot(key, entry);
        self.tables[table_of(key)].insert(slot);
    }

    /// Takes in a record of an earlier run. Records of an id come in the order of the file.
    /// Answers whether it is the first of a job.
    pub fn load(&mut self, key: u64, offset: u64, outcome: Outcome) -> bool {
        let ok = match outcome {
            Outcome::Ok => true,
            Outcome::Failed => false,
            Outcome::Refused => {
                self.load_refusal(key);
                return false;
            }
        };
        let loaded = self.of(key).find_map(|(at, entry)| match entry {
            Entry::Loaded { ok, unmatched, .. } => Some((at, ok, unmatched)),
            _ => None,
        });
        let same_before = match loaded {
            Some((_, ok_before, unmatched)) if ok_before == ok => unmatched,
            _ => 0,
        };
        let entry = Entry::Loaded {
            offset,
            ok,
            unmatched: same_before.saturating_add(1),
        };
        match loaded {
            Some((at, ..)) => self.replace(at, key, entry),
            None => self.insert(key, entry),
        }
        loaded.is_none()
    }

    fn load_refusal(&mut self, key: u64) {
        if !self.is_refused(key) {
            self.insert(key, Entry::Refused);
        }
    }

    /// An earlier run recorded the refusal with this key.
    pub fn is_refused(&self, key: u64) -> bool {
        self.of(key).any(|(_, entry)| entry == Entry::Refused)
    }

    fn slot(&mut self, key: u64, entry: Entry) -> Slot {
        if let Some(fields) = Fields::of(key, entry) {
            self.wide.remove(&key);
            return fields.pack(key);
        }
        self.wide.insert(key, entry);
        Fields::wide(key).pack(key)
    }

    fn read(&self, key: u64, slot: &Slot) -> Option<Entry> {
        let fields = Fields::unpack(slot);
        match fields.is_wide(key) {
            true => self.wide.get(&key).copied(),
            false => fields.entry(key),
        }
    }

    /// Memory that the entries take.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.tables.iter().map(Table::bytes).sum()
    }
}

fn table_of(key: u64) -> usize {
    (key >> 56) as usize
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
