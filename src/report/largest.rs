//! The largest of any number of things, in bounded memory.
//!
//! When the table is full the smaller half goes (lossy counting, Manku and Motwani 2002), so
//! what is large is always in it and misses at most the little counted before it grew.

use std::collections::HashMap;
use std::hash::Hash;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Largest<K, V> {
    items: HashMap<K, V, foldhash::fast::RandomState>,
    most: usize,
    weight: fn(&V) -> u64,
}

impl<K: Hash + Eq, V: Default> Largest<K, V> {
    /// Keeps up to `most` things. More: exact for longer lists, more memory.
    pub(super) fn new(most: usize, weight: fn(&V) -> u64) -> Largest<K, V> {
        Largest {
            items: HashMap::default(),
            most,
            weight,
        }
    }

    /// What is counted of `key`, new if it is not there.
    pub(super) fn of(&mut self, key: K) -> &mut V {
        if self.items.len() >= self.most && !self.items.contains_key(&key) {
            self.drop_smaller_half();
        }
        self.items.entry(key).or_default()
    }

    fn drop_smaller_half(&mut self) {
        let weight = self.weight;
        let mut weights: Vec<u64> = self.items.values().map(weight).collect();
        let half = weights.len() / 2;
        let (_, &mut median, above) = weights.select_nth_unstable(half);
        let larger = above.iter().filter(|weight| **weight > median).count();
        let mut ties = half.saturating_sub(larger);
        self.items.retain(|_, counted| {
            let tie = weight(counted) == median && ties > 0;
            ties -= usize::from(tie);
            tie || weight(counted) > median
        });
    }

    /// All of them, to change.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.items.iter_mut()
    }

    /// All of them, in no order.
    pub(super) fn into_items(self) -> impl Iterator<Item = (K, V)> {
        self.items.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_is_found_among_any_number_of_small_things() {
        const MOST: usize = 1000;
        let mut largest = Largest::new(MOST, |n: &u64| *n);
        for n in 0..3 * MOST as u64 {
            *largest.of(n) += 1;
            if n > MOST as u64 && n % 10 == 0 {
                *largest.of(u64::MAX) += 1;
            }
        }
        let mut items: Vec<(u64, u64)> = largest.into_items().collect();
        assert!(items.len() <= MOST);
        items.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        assert_eq!(items[0].0, u64::MAX);
        assert!(items[0].1 >= 2 * MOST as u64 / 10 - 2, "{:?}", items[0]);
    }
}
