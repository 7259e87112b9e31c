//! Which payloads this directory holds already, and where: what `revisit` records point to.
//!
//! Bounded: at most [`SLOTS`] payloads of 24 bytes each (12 MiB), a new one takes the place
//! of an older one. A payload that was forgotten is written once more, nothing else. Keyed by
//! the first 16 bytes of its SHA-256; nobody finds two payloads that agree in them by chance.

/// Most payloads that are remembered; a power of two. More finds more of what comes again
/// late, for memory.
const SLOTS: usize = 1 << 19;
/// Slots at first; doubled while more than half of them are taken.
const FIRST: usize = 1 << 10;

/// Where a record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of its segment, from 1.
    pub(super) segment: u32,
    /// Offset of the record.
    pub(super) offset: u64,
}

/// Payloads by digest.
#[derive(Debug)]
pub(super) struct Seen {
    slots: Vec<Slot>,
    taken: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: [u64; 2],
    /// Segment above, offset (40 bits) below; 0: empty.
    place: u64,
}

const OFFSET_BITS: u32 = 40;

impl Slot {
    fn at(self) -> Place {
        Place {
            segment: (self.place >> OFFSET_BITS) as u32,
            offset: self.place & ((1 << OFFSET_BITS) - 1),
        }
    }
}

impl Seen {
    pub(super) fn new() -> Seen {
        Seen {
            slots: vec![Slot::default(); FIRST],
            taken: 0,
        }
    }

    /// No more fit without forgetting.
    pub(super) fn is_full(&self) -> bool {
        self.taken >= SLOTS / 2
    }

    /// Where the payload with this digest is.
    pub(super) fn get(&self, digest: &[u8; 32]) -> Option<Place> {
        let key = key(digest);
        let slot = self.slots[self.at(key)];
        (slot.place != 0 && slot.key == key).then(|| slot.at())
    }

    /// Remembers it; a place beyond what 24 and 40 bits hold is passed over.
    pub(super) fn insert(&mut self, digest: &[u8; 32], place: Place) {
        let segment = u64::from(place.segment);
        if segment >= 1 << (64 - OFFSET_BITS) || place.offset >= 1 << OFFSET_BITS {
            return;
        }
        if self.taken * 2 >= self.slots.len() && self.slots.len() < SLOTS {
            self.grow();
        }
        self.put(Slot {
            key: key(digest),
            place: segment << OFFSET_BITS | place.offset,
        });
    }

    /// The same for a place that was there before those that are known: it takes nobody's slot.
    pub(super) fn insert_older(&mut self, digest: &[u8; 32], place: Place) {
        if self.slots[self.at(key(digest))].place == 0 {
            self.insert(digest, place);
        }
    }

    /// Forgets what is at `place` of its segment or behind it.
    pub(super) fn forget_from(&mut self, place: Place) {
        let is_gone = |slot: &Slot| {
            slot.place != 0
                && slot.at().segment == place.segment
                && slot.at().offset >= place.offset
        };
        for slot in self.slots.iter_mut().filter(|slot| is_gone(slot)) {
            *slot = Slot::default();
            self.taken -= 1;
        }
    }

    fn put(&mut self, slot: Slot) {
        let at = self.at(slot.key);
        self.taken += usize::from(self.slots[at].place == 0);
        self.slots[at] = slot;
    }

    fn grow(&mut self) {
        let twice = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, twice);
        self.taken = 0;
        for slot in old.into_iter().filter(|slot| slot.place != 0) {
            self.put(slot);
        }
    }

    fn at(&self, key: [u64; 2]) -> usize {
        key[0] as usize & (self.slots.len() - 1)
    }
}

fn key(digest: &[u8; 32]) -> [u64; 2] {
    let half = |n: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[n * 8..][..8]);
        u64::from_le_bytes(bytes)
    };
    [half(0), half(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_stays_bounded_and_the_latest_payloads_are_found() {
        assert_eq!(size_of::<Slot>(), 24);
        let mut seen = Seen::new();
        let count = 3 * SLOTS as u64 / 2;
        let digest = |n: u64| {
            let mixed = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&(mixed ^ (mixed >> 32)).to_le_bytes());
            digest
        };
        let place = |n: u64| Place {
            segment: 1 + (n % 7) as u32,
            offset: n,
        };
        for n in 0..count {
            seen.insert(&digest(n), place(n));
        }
        assert_eq!(seen.slots.len(), SLOTS);
        let found = (count - 10_000..count).filter(|&n| seen.get(&digest(n)) == Some(place(n)));
        assert!(found.count() > 9_500);
        assert_eq!(seen.get(&digest(count)), None);
    }
}
