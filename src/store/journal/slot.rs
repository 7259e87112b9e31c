//! An entry of the index as a slot of 13 bytes, and back.
//!
//! A slot's 104 bits, from the lowest:
//!
//! | bits | loaded | matched, settled | claimed | refused, wide |
//! | --- | --- | --- | --- | --- |
//! | 32 | hash | hash | hash | hash |
//! | 3 | state | state | state | state |
//! | 5 | unmatched | unmatched | more hash | - |
//! | 40 | offset | offset | line (32), more hash (8) | - |
//! | 24 | more hash | what | what (16), more hash (8) | more hash |
//!
//! A key is 8 bits that choose the table, 32 of `hash`, 24 of `more hash`. What an entry has
//! room for is compared when the slot is read.

use super::index::Entry;
use super::table::Slot;

/// Bits of the fields, and of what a claim keeps in them.
const COUNT_BITS: u32 = 5;
const PLACE_BITS: u32 = 40;
const MARK_BITS: u32 = 24;
const LINE_BITS: u32 = 32;
const CLAIMED_WHAT_BITS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LoadedFailed = 1,
    LoadedOk,
    Matched,
    Settled,
    Claimed,
    Refused,
    Wide,
}

const STATES: [State; 7] = [
    State::LoadedFailed,
    State::LoadedOk,
    State::Matched,
    State::Settled,
    State::Claimed,
    State::Refused,
    State::Wide,
];

/// What a slot holds behind the hash.
#[derive(Debug)]
pub(super) struct Fields {
    state: State,
    count: u32,
    place: u64,
    mark: u32,
}

impl Fields {
    /// Those of `entry`; `None` where a number has too many bits.
    pub fn of(key: u64, entry: Entry) -> Option<Fields> {
        let rest = rest_of(key);
        let (state, count, place, mark) = match entry {
            Entry::Loaded {
                offset,
                ok,
                unmatched,
            } => {
                let state = match ok {
                    true => State::LoadedOk,
                    false => State::LoadedFailed,
                };
                (state, unmatched, offset, rest)
            }
            Entry::Matched {
                offset,
                unmatched,
                what,
            } => (State::Matched, unmatched, offset, what),
            Entry::Settled { offset, what } => (State::Settled, 0, offset, what),
            Entry::Claimed { line, what } => {
                if line >> LINE_BITS != 0 {
                    return None;
                }
                let more = claim_bits(rest);
                (State::Claimed, more.0, line | more.1, what | more.2)
            }
            Entry::Refused => (State::Refused, 0, 0, rest),
        };
        let fits = count >> COUNT_BITS == 0 && place >> PLACE_BITS == 0;
        fits.then_some(Fields {
            state,
            count,
            place,
            mark,
        })
    }

    /// Those of an entry that is kept elsewhere.
    pub fn wide(key: u64) -> Fields {
        Fields {
            state: State::Wide,
            count: 0,
            place: 0,
            mark: rest_of(key),
        }
    }

    /// The entry of this key is kept elsewhere.
    pub fn is_wide(&self, key: u64) -> bool {
        self.state == State::Wide && self.mark == rest_of(key)
    }

    /// The entry that they are; `None` where their part of the hash shows another id.
    pub fn entry(&self, key: u64) -> Option<Entry> {
        let rest = rest_of(key);
        let &Fields {
            state,
            count,
            place,
            mark,
        } = self;
        match state {
            State::LoadedFailed | State::LoadedOk => (mark == rest).then_some(Entry::Loaded {
                offset: place,
                ok: state == State::LoadedOk,
                unmatched: count,
            }),
            State::Matched => Some(Entry::Matched {
                offset: place,
                unmatched: count,
                what: mark,
            }),
            State::Settled => Some(Entry::Settled {
                offset: place,
                what: mark,
            }),
            State::Claimed => {
                let line = place & ((1 << LINE_BITS) - 1);
                let what = mark & ((1 << CLAIMED_WHAT_BITS) - 1);
                let same = (count, place - line, mark - what) == claim_bits(rest);
                same.then_some(Entry::Claimed { line, what })
            }
            State::Refused => (mark == rest).then_some(Entry::Refused),
            State::Wide => None,
        }
    }

    /// The slot of these and the key's hash.
    pub fn pack(&self, key: u64) -> Slot {
        let tag = self.state as u32 | self.count << 3;
        let word = u128::from(hash_of(key))
            | u128::from(tag) << 32
            | u128::from(self.place) << 40
            | u128::from(self.mark) << 80;
        let mut slot = Slot::default();
        slot.copy_from_slice(&word.to_le_bytes()[..size_of::<Slot>()]);
        slot
    }

    /// What `pack` made a slot of.
    pub fn unpack(slot: &Slot) -> Fields {
        let mut bytes = [0; 16];
        bytes[..size_of::<Slot>()].copy_from_slice(slot);
        let word = u128::from_le_bytes(bytes);
        let tag = (word >> 32) as u8;
        Fields {
            // An empty slot is never read, so there is one before this.
            state: STATES[usize::from(tag & 7) - 1],
            count: u32::from(tag >> 3),
            place: (word >> 40) as u64 & ((1 << PLACE_BITS) - 1),
            mark: (word >> 80) as u32,
        }
    }
}

/// 21 bits of `rest`, where a claim has room: in the count, above the line, above the
/// fingerprint.
fn claim_bits(rest: u32) -> (u32, u64, u32) {
    (
        rest & 0x1f,
        u64::from(rest >> 16) << LINE_BITS,
        (rest >> 8 & 0xff) << CLAIMED_WHAT_BITS,
    )
}

/// The part of `key` that finds a place in a table.
pub(super) fn hash_of(key: u64) -> u32 {
    (key >> MARK_BITS) as u32
}

/// The bits of `key` that choose neither table nor place.
fn rest_of(key: u64) -> u32 {
    key as u32 & ((1 << MARK_BITS) - 1)
}
