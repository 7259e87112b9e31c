//! Slots of 13 bytes, sorted by hash: one part of the index.
//!
//! Open addressing with linear probing in which the slots of a run stay in the order of their
//! hashes (the ordered hash table of Amble and Knuth, 1974). A slot's home is its hash scaled
//! to the number of homes, so a table may have any length: it grows by a twentieth, by one
//! pass from front to back that needs no other hash than the one in the slot. Sorted runs
//! also end a search that fails as early as one that finds; so a table may be 19/20 full, where
//! a search meets some ten slots. What a slot holds besides its hash is `index`'s matter.

/// Hash (4 bytes, little-endian), then what the index keeps. Byte 4 is 0 in an empty slot.
pub(super) type Slot = [u8; 13];

/// A slot that is free.
const EMPTY: Slot = [0; 13];
/// Homes are at most this share full, less one part; growth is by one part, too. Larger:
/// less memory, longer runs, more copies.
const PARTS: usize = 20;
/// Slots behind the last home, for the end of the last run.
const TAIL: usize = 32;

/// A table of slots.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    /// The first so many slots are homes.
    homes: usize,
    used: usize,
}

impl Table {
    fn with_homes(homes: usize) -> Table {
        Table {
            slots: vec![EMPTY; homes + TAIL],
            homes,
            used: 0,
        }
    }

    /// The slots of `hash`, and where they are until the next [`Table::insert`].
    pub fn of(&self, hash: u32) -> impl Iterator<Item = (usize, &Slot)> {
        let home = self.home(hash);
        let from_home = self.slots.get(home..).unwrap_or_default();
        from_home
            .iter()
            .enumerate()
            .take_while(|(_, slot)| !is_empty(slot))
            .skip_while(move |(_, slot)| hash_of(slot) < hash)
            .take_while(move |(_, slot)| hash_of(slot) == hash)
            .map(move |(after, slot)| (home + after, slot))
    }

    /// Puts `slot`, which has the same hash, in the place of the one at `at`.
    pub fn replace(&mut self, at: usize, slot: Slot) {
        debug_assert_eq!(hash_of(&self.slots[at]), hash_of(&slot));
        self.slots[at] = slot;
    }

    /// Adds `slot`, whatever there is of its hash already.
    pub fn insert(&mut self, slot: Slot) {
        if self.used >= self.homes - self.homes / PARTS {
            self.grow();
        }
        let hash = hash_of(&slot);
        let mut at = self.home(hash);
        while !is_empty(&self.slots[at]) && hash_of(&self.slots[at]) <= hash {
            at += 1;
            self.reach(at);
        }
        let mut free = at;
        while !is_empty(&self.slots[free]) {
            free += 1;
            self.reach(free);
        }
        self.slots.copy_within(at..free, at + 1);
        self.slots[at] = slot;
        self.used += 1;
    }

    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.homes as u64) >> 32) as usize
    }

    /// Makes sure that there is a slot at `at`, next to the last or before.
    fn reach(&mut self, at: usize) {
        if at == self.slots.len() {
            self.slots.reserve_exact(TAIL);
            self.slots.resize(at + TAIL, EMPTY);
        }
    }

    fn grow(&mut self) {
        let mut grown = Table::with_homes(self.homes + self.homes / PARTS + 8);
        let mut next = 0;
        for slot in self.slots.iter().filter(|slot| !is_empty(slot)) {
            let at = grown.home(hash_of(slot)).max(next);
            grown.reach(at);
            grown.slots[at] = *slot;
            next = at + 1;
        }
        grown.used = self.used;
        *self = grown;
    }

    /// Memory that its slots take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        size_of::<Table>() + self.slots.capacity() * size_of::<Slot>()
    }
}

fn hash_of(slot: &Slot) -> u32 {
    u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]])
}

fn is_empty(slot: &Slot) -> bool {
    slot[4] == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slot(hash: u32, value: u8) -> Slot {
        let mut slot = [1; 13];
        slot[..4].copy_from_slice(&hash.to_le_bytes());
        slot[12] = value;
        slot
    }

    fn values(table: &Table, hash: u32) -> Vec<u8> {
        let mut values: Vec<u8> = table.of(hash).map(|(_, slot)| slot[12]).collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn slots_stay_sorted_and_the_same_while_the_table_grows() {
        let mut table = Table::default();
        let hash = |n: u32| n.wrapping_mul(0x9e37_79b9);
        for n in 0..5000 {
            table.insert(slot(hash(n), n as u8));
        }
        let hashes: Vec<u32> = table
            .slots
            .iter()
            .filter(|slot| !is_empty(slot))
            .map(hash_of)
            .collect();
        assert_eq!(hashes.len(), 5000);
        assert!(hashes.is_sorted());
        assert!((0..5000).all(|n| values(&table, hash(n)) == [n as u8]));
        assert!(values(&table, 1).is_empty());
    }

    proptest! {
        // Few hashes, the least and the greatest among them, so that runs are long and reach
        // past the last home.
        #[test]
        fn every_slot_is_found_by_its_hash_and_no_other(
            steps in prop::collection::vec((0u32..12, any::<u8>(), any::<bool>()), 0..300),
        ) {
            let mut table = Table::default();
            let mut model = std::collections::HashMap::<u32, Vec<u8>>::new();
            for (hash, value, replaces) in steps {
                let hash = (hash % 4 * (u32::MAX / 3)).wrapping_add(hash / 4).wrapping_sub(1);
                let known = model.entry(hash).or_default();
                let first = table.of(hash).next().map(|(at, slot)| (at, slot[12]));
                match first {
                    Some((at, old)) if replaces => {
                        table.replace(at, slot(hash, value));
                        let at = known.iter().position(|value| *value == old).unwrap();
                        known[at] = value;
                    }
                    _ => {
                        table.insert(slot(hash, value));
                        known.push(value);
                    }
                }
            }
            for (hash, mut known) in model {
                known.sort_unstable();
                prop_assert_eq!(values(&table, hash), known);
            }
        }
    }
}
