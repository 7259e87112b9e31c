//! Alarms: at most one instant per small index, the earliest one in O(1).
//!
//! Owns: a 4-ary heap of (instant, index) and each index's position in it, so an alarm
//! can be moved or cancelled in O(log n). Leaves to others: what an alarm means.
//!
//! Invariant: `place[i]` is where index `i` stands in the heap, or `NOWHERE`.
//!
//! Why not a plain heap with stale entries left in it: a budget moves its instant on almost
//! every answer, and the earliest instant must be exact, else the engine wakes for nothing.

use crate::model::Time;

const NOWHERE: u32 = u32::MAX;
const BRANCHES: usize = 4;

/// See the module's text.
#[derive(Debug, Default)]
pub struct Alarms {
    heap: Vec<(Time, u32)>,
    place: Vec<u32>,
}

impl Alarms {
    /// Sets or moves the alarm of `index`.
    pub fn set(&mut self, index: u32, at: Time) {
        let slot = index as usize;
        if self.place.len() <= slot {
            self.place.resize(slot + 1, NOWHERE);
        }
        match self.place[slot] {
            NOWHERE => {
                self.heap.push((at, index));
                self.rise(self.heap.len() - 1);
            }
            place => self.replace(place as usize, (at, index)),
        }
    }

    /// Forgets the alarm of `index`, if it has one.
    pub fn cancel(&mut self, index: u32) {
        let Some(place) = self.place.get_mut(index as usize) else {
            return;
        };
        if *place == NOWHERE {
            return;
        }
        let hole = *place as usize;
        *place = NOWHERE;
        if let Some(last) = self.heap.pop()
            && hole < self.heap.len()
        {
            self.replace(hole, last);
        }
    }

    /// The earliest alarm.
    pub fn first(&self) -> Option<Time> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// Takes out one alarm that is due at `now`, the earliest first (the lower index among equals).
    pub fn due(&mut self, now: Time) -> Option<u32> {
        let &(at, index) = self.heap.first()?;
        if at > now {
            return None;
        }
        self.cancel(index);
        Some(index)
    }

    /// Puts `entry` where another one stood and restores the order.
    fn replace(&mut self, place: usize, entry: (Time, u32)) {
        let earlier = entry < self.heap[place];
        self.heap[place] = entry;
        if earlier {
            self.rise(place);
        } else {
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / BRANCHES;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = place * BRANCHES + 1;
            let end = (first + BRANCHES).min(self.heap.len());
            let Some(child) = (first..end).min_by_key(|&child| self.heap[child]) else {
                break;
            };
            if entry <= self.heap[child] {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Time, u32)) {
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_alarm_rings_once_and_not_early() {
        let mut alarms = Alarms::default();
        alarms.set(7, Time::from_secs(2));
        assert_eq!(alarms.due(Time::from_secs(1)), None);
        assert_eq!(alarms.due(Time::from_secs(2)), Some(7));
        assert_eq!(alarms.due(Time::from_secs(9)), None);
        assert_eq!(alarms.first(), None);
    }

    proptest! {
        #[test]
        fn any_sequence_gives_what_a_sorted_map_gives(
            steps in prop::collection::vec((0u32..20, prop::option::of(0u64..50)), 1..200)
        ) {
            let mut alarms = Alarms::default();
            let mut model = BTreeMap::new();
            for (index, at) in steps {
                match at {
                    Some(at) => {
                        alarms.set(index, Time::from_secs(at));
                        model.insert(index, at);
                    }
                    None => {
                        alarms.cancel(index);
                        model.remove(&index);
                    }
                }
                let earliest = model.values().min().map(|&at| Time::from_secs(at));
                prop_assert_eq!(alarms.first(), earliest);
                prop_assert_eq!(alarms.heap.len(), model.len());
            }
            let mut rest: Vec<_> = model.into_iter().map(|(index, at)| (at, index)).collect();
            rest.sort_unstable();
            for (_, index) in rest {
                prop_assert_eq!(alarms.due(Time::NEVER), Some(index));
            }
        }
    }
}
