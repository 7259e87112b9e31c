//! Slots of 13 bytes, sorted by hash: one part of the index.
//!
//! Open addressing with linear probing in which the slots of a run stay in the order of their
//! hashes (the ordered hash table of Amble and Knuth, 1974). A slot's home is its hash scaled
//! to the number of homes, so a table may have any length: it grows by a twentieth, by one
//! pass from front to back that needs no other hash than the one in the slot. Sorted runs
//! also end a search that fails as early as one that finds; so a table may be 19/20 full, where
//! a search meets some ten slots. What a slot holds besides its hash is `index`'s matter.
//!
//! The slots are in blocks of one size. A table that grows gets another block and moves its
//! slots within those it has: no block is ever freed or copied to a larger one, so there is
//! nothing that the allocator could keep of it.

use std::collections::VecDeque;
use std::mem;

/// Hash (4 bytes, little-endian), then what the index keeps. Byte 4 is 0 in an empty slot.
pub(super) type Slot = [u8; 13];

/// A slot that is free.
const EMPTY: Slot = [0; 13];
/// Homes are at most this share full, less one part; growth is by one part, too. Larger:
/// less memory, longer runs, more moves.
const PARTS: usize = 20;
/// Slots of a block: as many as 4 KiB hold. Half a block of each table is free in the mean.
const BLOCK: usize = 4096 / size_of::<Slot>();

/// A table of slots.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// One row of slots, longer than `homes` where the last run needs it. Boxed one by one: what
    /// grows by a block copies none.
    #[expect(
        clippy::vec_box,
        reason = "a vector of blocks would be copied when it grows"
    )]
    blocks: Vec<Box<[Slot; BLOCK]>>,
    /// The first so many slots are homes.
    homes: usize,
    used: usize,
}

impl Table {
    /// The slots of `hash`, and where they are until the next [`Table::insert`].
    pub fn of(&self, hash: u32) -> impl Iterator<Item = (usize, &Slot)> {
        let home = self.home(hash);
        let blocks = self.blocks.get(home / BLOCK..).unwrap_or_default();
        let from_home = blocks.iter().flat_map(|block| block.iter());
        from_home
            .skip(home % BLOCK)
            .enumerate()
            .take_while(|(_, slot)| !is_empty(slot))
            .skip_while(move |(_, slot)| hash_of(slot) < hash)
            .take_while(move |(_, slot)| hash_of(slot) == hash)
            .map(move |(after, slot)| (home + after, slot))
    }

    /// Puts `slot`, which has the same hash, in the place of the one at `at`.
    pub fn replace(&mut self, at: usize, slot: Slot) {
        let old = &mut self.blocks[at / BLOCK][at % BLOCK];
        debug_assert_eq!(hash_of(old), hash_of(&slot));
        *old = slot;
    }

    /// Adds `slot`, whatever there is of its hash already.
    pub fn insert(&mut self, slot: Slot) {
        if self.used >= self.homes - self.homes / PARTS {
            self.grow();
        }
        self.used += 1;
        let home = self.home(hash_of(&slot));
        let mut from = home % BLOCK;
        // What a block has no room for belongs at the start of the next.
        let mut moving = slot;
        for block in &mut self.blocks[home / BLOCK..] {
            let hash = hash_of(&moving);
            let before = |here: &&Slot| !is_empty(here) && hash_of(here) <= hash;
            let at = from + block[from..].iter().take_while(before).count();
            let taken = block[at..].iter().take_while(|here| !is_empty(here));
            let end = at + taken.count();
            if end < BLOCK {
                block.copy_within(at..end, at + 1);
                block[at] = moving;
                return;
            }
            if at < BLOCK {
                let last = block[BLOCK - 1];
                block.copy_within(at..BLOCK - 1, at + 1);
                block[at] = mem::replace(&mut moving, last);
            }
            from = 0;
        }
        self.add_block()[0] = moving;
    }

    fn home(&self, hash: u32) -> usize {
        home(hash, self.homes)
    }

    fn add_block(&mut self) -> &mut [Slot; BLOCK] {
        self.blocks.push(Box::new([EMPTY; BLOCK]));
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    /// Adds homes. A slot's new place, its home or behind the slot before it, is no nearer to
    /// the front than it was, and further from it by no more than the homes added. So one
    /// pass from the front will do, in which no more slots than these wait for their places.
    fn grow(&mut self) {
        let more = self.homes / PARTS + 8;
        self.homes += more;
        let mut waiting = VecDeque::with_capacity(more + 1);
        for block in 0.. {
            if block == self.blocks.len() {
                if waiting.is_empty() && block * BLOCK >= self.homes {
                    break;
                }
                self.add_block();
            }
            self.spread(block, &mut waiting);
        }
    }

    /// Takes the slots out of a block to wait behind those that do, and gives each place to
    /// the first that waits, once its home is reached.
    fn spread(&mut self, block: usize, waiting: &mut VecDeque<Slot>) {
        let homes = self.homes;
        for (place, here) in (block * BLOCK..).zip(self.blocks[block].iter_mut()) {
            if !is_empty(here) {
                waiting.push_back(mem::replace(here, EMPTY));
            }
            if let Some(slot) = waiting.front()
                && home(hash_of(slot), homes) <= place
            {
                *here = *slot;
                waiting.pop_front();
            }
        }
    }

    /// Memory that its slots take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let block = size_of::<Box<Slot>>() + (BLOCK * size_of::<Slot>()).next_multiple_of(16);
        size_of::<Table>() + self.blocks.len() * block
    }
}

/// Where among so many homes a slot of `hash` belongs.
fn home(hash: u32, homes: usize) -> usize {
    ((u64::from(hash) * homes as u64) >> 32) as usize
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
            .blocks
            .iter()
            .flat_map(|block| block.iter())
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
        // past the last home, and past the ends of blocks.
        #[test]
        fn every_slot_is_found_by_its_hash_and_no_other(
            steps in prop::collection::vec((0u32..12, any::<u8>(), any::<bool>()), 0..900),
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
