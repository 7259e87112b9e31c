//! Origins all of whose jobs wait on disk, and about which nothing is worth remembering.
//!
//! Owns: one chain per origin, 24 bytes under a hash of its name, and the order in which they are
//! woken. Leaves to `frontier` when: an origin that has jobs in memory, or a budget that is not
//! at rest, has a site there, and its chain with it. Two origins of one hash share a chain; each
//! job is filed under its own origin when it comes back, so nothing else is shared.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::Origin;

/// Jobs of one origin that wait on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// Where the newest one is.
    pub(super) newest: u64,
    pub(super) jobs: u32,
}

impl Chain {
    /// One more job was put in front of those of `chain`.
    pub(super) fn and(chain: Option<Chain>, newest: u64) -> Chain {
        let before = chain.map_or(0, |chain| chain.jobs);
        Chain {
            newest,
            jobs: before.saturating_add(1),
        }
    }

    /// What is left after `read` jobs were taken; `rest` is the newest one then.
    pub(super) fn without(self, read: usize, rest: Option<u64>) -> Option<Chain> {
        let read = u32::try_from(read).unwrap_or(u32::MAX);
        rest.map(|newest| Chain {
            newest,
            jobs: self.jobs.saturating_sub(read).max(1),
        })
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Asleep {
    chains: HashMap<u64, Chain>,
    /// Keys, the one that waits longest first. One that has woken since is passed over.
    order: VecDeque<u64>,
}

impl Asleep {
    /// Under which an origin is known here.
    pub(super) fn key(origin: &Origin) -> u64 {
        let mut hasher = DefaultHasher::new();
        origin.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn get(&self, key: u64) -> Option<Chain> {
        self.chains.get(&key).copied()
    }

    /// How many origins.
    pub(super) fn len(&self) -> usize {
        self.chains.len()
    }

    /// Puts an origin to sleep, or gives it another chain.
    pub(super) fn set(&mut self, key: u64, chain: Chain) {
        if self.chains.insert(key, chain).is_none() {
            self.order.push_back(key);
        }
    }

    /// The rest of a chain that [`Asleep::pop`] gave: it is still the first.
    pub(super) fn put_back(&mut self, key: u64, chain: Chain) {
        if self.chains.insert(key, chain).is_none() {
            self.order.push_front(key);
        }
    }

    /// The origin wakes and takes its chain along.
    pub(super) fn remove(&mut self, key: u64) -> Option<Chain> {
        self.chains.remove(&key)
    }

    /// The chain that has waited longest.
    pub(super) fn pop(&mut self) -> Option<(u64, Chain)> {
        loop {
            let key = self.order.pop_front()?;
            if let Some(chain) = self.chains.remove(&key) {
                return Some((key, chain));
            }
        }
    }

    /// All jobs of all origins here. For tests.
    pub(super) fn jobs(&self) -> usize {
        self.chains.values().map(|chain| chain.jobs as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_wait_longest_wake_first_and_a_woken_one_is_passed_over() {
        let mut asleep = Asleep::default();
        for key in 0..5 {
            let chain = Chain::and(asleep.get(key), key);
            asleep.set(key, chain);
        }
        asleep.set(0, Chain::and(asleep.get(0), 9));
        assert_eq!(asleep.jobs(), 6);
        asleep.remove(1);
        assert_eq!(asleep.pop(), Some((0, Chain { newest: 9, jobs: 2 })));
        asleep.put_back(0, Chain { newest: 8, jobs: 1 });
        let order: Vec<u64> = std::iter::from_fn(|| asleep.pop().map(|(key, _)| key)).collect();
        assert_eq!(order, [0, 2, 3, 4]);
        assert_eq!(asleep.len(), 0);
    }

    #[test]
    fn an_origin_costs_24_bytes() {
        assert_eq!(size_of::<(u64, Chain)>(), 24);
    }
}
