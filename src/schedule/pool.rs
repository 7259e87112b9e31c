//! The exit pool: who has a free slot, and which of them takes the next job.
//!
//! Owns: how much every exit and group carries, their peaks, and the shelves that make a pick
//! O(1) whatever the fleet's size. Leaves to others: what an exit's cap is at the moment
//! (`health`; 0 means it takes nothing), and which job starts.
//!
//! Invariants: in flight grows only below the cap of the exit and of its group. An exit stands
//! on its group's shelf exactly while `in_flight < cap`; a group stands on the outer shelf
//! exactly while it is below its own cap and has an exit on its shelf.
//!
//! Late binding: nobody waits at an exit, a free slot takes the next ready job. Of the
//! least loaded row two are drawn at random and the better one wins: the emptiest exit alone
//! would be stormed when it returns from a rest, a single random draw leaves some idle.

use rand::{Rng, RngExt};

use super::ExitIx;
use super::shelf::{Place, ROWS, Shelf};

/// A pick looks at this many candidates before it says that none is wanted. With fewer exits
/// left out than this, the answer is exact.
const LOOKS: usize = 48;

/// What one exit carries.
#[derive(Debug)]
struct Slot {
    in_flight: u32,
    cap: u32,
    group: u32,
    place: Option<Place>,
    slowness: f32,
    peak: u32,
}

/// Exits that share one capacity. The last group of a pool holds the exits without one.
#[derive(Debug, Default)]
struct Group {
    in_flight: u32,
    cap: u32,
    place: Option<Place>,
    peak: u32,
    shelf: Shelf,
}

/// See the module's text.
#[derive(Debug)]
pub struct Pool {
    slots: Vec<Slot>,
    groups: Vec<Group>,
    outer: Shelf,
    in_flight: u32,
}

impl Pool {
    /// A pool whose groups have these caps and whose exits belong to these groups (by index;
    /// an index without a cap counts as none). Every exit starts with cap 0.
    pub fn new(caps: &[u32], groups_of_exits: impl Iterator<Item = Option<u32>>) -> Pool {
        let none = caps.len() as u32;
        let group = |cap| Group {
            cap,
            ..Group::default()
        };
        Pool {
            slots: groups_of_exits
                .map(|group| Slot {
                    in_flight: 0,
                    cap: 0,
                    group: group.map_or(none, |group| group.min(none)),
                    place: None,
                    slowness: 1.0,
                    peak: 0,
                })
                .collect(),
            groups: caps.iter().copied().chain([u32::MAX]).map(group).collect(),
            outer: Shelf::default(),
            in_flight: 0,
        }
    }

    /// How many exits there are, usable or not.
    pub fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Leases given out and not yet returned.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Leases of one exit.
    pub fn in_flight_of(&self, exit: ExitIx) -> u32 {
        self.slots[exit.index()].in_flight
    }

    /// The most leases an exit ever had at once.
    pub fn peak(&self, exit: ExitIx) -> u32 {
        self.slots[exit.index()].peak
    }

    /// The cap of an exit as it is now.
    pub fn cap(&self, exit: ExitIx) -> u32 {
        self.slots[exit.index()].cap
    }

    /// The most leases a group ever had at once.
    pub fn group_peak(&self, group: u32) -> u32 {
        self.groups[group as usize].peak
    }

    /// Whether any exit has a free slot.
    pub fn has_free(&self) -> bool {
        self.outer.lowest().is_some()
    }

    /// Whether exits have free slots, all of them in groups that are full. O(groups).
    pub fn groups_hold(&self) -> bool {
        let shut = |group: &Group| group.in_flight >= group.cap && group.shelf.lowest().is_some();
        !self.has_free() && self.groups.iter().any(shut)
    }

    /// Free slots of one exit, its group's bound left aside.
    pub fn free(&self, exit: ExitIx) -> u32 {
        let slot = &self.slots[exit.index()];
        slot.cap.saturating_sub(slot.in_flight)
    }

    /// Changes what an exit may carry from now on. Leases above a lowered cap run out by themselves.
    pub fn set_cap(&mut self, exit: ExitIx, cap: u32) {
        if self.slots[exit.index()].cap != cap {
            self.slots[exit.index()].cap = cap;
            self.refile(exit);
        }
    }

    /// How slow an exit is against the pool's usual: above 1 it is chosen less often.
    pub fn set_slowness(&mut self, exit: ExitIx, slowness: f32) {
        self.slots[exit.index()].slowness = slowness;
    }

    /// The exit for the next job among those that `wanted` agrees to, or `None` if no free
    /// one is wanted. An exit of `warm` (an idle socket to the job's origin is open there)
    /// wins if it is among the least loaded.
    pub fn pick(
        &self,
        rng: &mut impl Rng,
        wanted: impl Fn(ExitIx) -> bool,
        warm: impl Iterator<Item = ExitIx>,
    ) -> Option<ExitIx> {
        let row = self.outer.lowest()?;
        for exit in warm {
            if self.row_of(exit) == Some(row) && wanted(exit) {
                return Some(exit);
            }
        }
        let [one, two] = [self.draw(rng, row), self.draw(rng, row)];
        match (wanted(one), wanted(two)) {
            (true, true) => Some(self.better(rng, one, two)),
            (true, false) => Some(one),
            (false, true) => Some(two),
            (false, false) => self.search(rng, wanted),
        }
    }

    /// Takes one slot of an exit that `pick` named.
    pub fn lease(&mut self, exit: ExitIx) {
        let slot = &mut self.slots[exit.index()];
        debug_assert!(slot.in_flight < slot.cap, "leased beyond its cap");
        slot.in_flight += 1;
        slot.peak = slot.peak.max(slot.in_flight);
        let group = &mut self.groups[slot.group as usize];
        debug_assert!(group.in_flight < group.cap, "leased beyond its group's cap");
        group.in_flight += 1;
        group.peak = group.peak.max(group.in_flight);
        self.in_flight += 1;
        self.refile(exit);
    }

    /// Returns one slot.
    pub fn release(&mut self, exit: ExitIx) {
        let slot = &mut self.slots[exit.index()];
        slot.in_flight -= 1;
        self.groups[slot.group as usize].in_flight -= 1;
        self.in_flight -= 1;
        self.refile(exit);
    }

    /// The row that decides: the exit's own load or its group's, whichever is higher.
    fn row_of(&self, exit: ExitIx) -> Option<u8> {
        let slot = &self.slots[exit.index()];
        let group = &self.groups[slot.group as usize];
        group.place?;
        Some(slot.place?.row.max(group.row()))
    }

    /// One at random of the lowest row of a random group of `row`, which is not empty.
    fn draw(&self, rng: &mut impl Rng, row: u8) -> ExitIx {
        let group = &self.groups[any_of(rng, self.outer.row(row)) as usize];
        let inner = group.shelf.lowest().unwrap_or_default();
        ExitIx::new(any_of(rng, group.shelf.row(inner)))
    }

    fn better(&self, rng: &mut impl Rng, one: ExitIx, two: ExitIx) -> ExitIx {
        // One pick in ten looks away from latency, so an exit that was slow once is measured again.
        let blind = rng.next_u32() < u32::MAX / 10;
        let score = |exit: ExitIx| {
            let slot = &self.slots[exit.index()];
            let group = &self.groups[slot.group as usize];
            let slowness = if blind { 1.0 } else { slot.slowness };
            let own = (slot.in_flight + 1) as f32 / slot.cap as f32 * slowness;
            own.max((group.in_flight + 1) as f32 / group.cap as f32)
        };
        if score(two) < score(one) { two } else { one }
    }

    /// Looks through the candidates in order of load where two draws met only unwanted ones.
    fn search(&self, rng: &mut impl Rng, wanted: impl Fn(ExitIx) -> bool) -> Option<ExitIx> {
        self.candidates(rng.next_u32())
            .take(LOOKS)
            .find(|&exit| wanted(exit))
    }

    /// All free exits, the less loaded ones first, each row entered at `start` modulo its length.
    fn candidates(&self, start: u32) -> impl Iterator<Item = ExitIx> {
        let start = start as usize;
        let groups = self
            .outer
            .filled_rows()
            .flat_map(move |row| turned(self.outer.row(row), start));
        groups.flat_map(move |group| {
            let shelf = &self.groups[group as usize].shelf;
            let exits = shelf
                .filled_rows()
                .flat_map(move |row| turned(shelf.row(row), start));
            exits.map(ExitIx::new)
        })
    }

    /// Puts an exit where its load belongs, then its group.
    fn refile(&mut self, exit: ExitIx) {
        let slot = &self.slots[exit.index()];
        let (old, new) = (slot.place, row(slot.in_flight, slot.cap));
        let group = slot.group;
        if old.map(|place| place.row) != new {
            let shelf = &mut self.groups[group as usize].shelf;
            if let Some(place) = old
                && let Some(moved) = shelf.take(place)
            {
                self.slots[moved as usize].place = Some(place);
            }
            self.slots[exit.index()].place = new.map(|row| shelf.put(row, exit.number()));
        }
        self.refile_group(group);
    }

    fn refile_group(&mut self, index: u32) {
        let group = &self.groups[index as usize];
        let lowest = group.shelf.lowest();
        let new = (group.in_flight < group.cap)
            .then(|| lowest.map(|row| row.max(group.row())))
            .flatten();
        let old = group.place;
        if old.map(|place| place.row) != new {
            if let Some(place) = old
                && let Some(moved) = self.outer.take(place)
            {
                self.groups[moved as usize].place = Some(place);
            }
            self.groups[index as usize].place = new.map(|row| self.outer.put(row, index));
        }
    }

    /// Panics if a count or a place is not what it must be. For tests; O(fleet).
    pub fn check(&self) {
        let mut carried = vec![0; self.groups.len()];
        for (index, slot) in self.slots.iter().enumerate() {
            carried[slot.group as usize] += slot.in_flight;
            let expected = row(slot.in_flight, slot.cap);
            assert_eq!(
                slot.place.map(|place| place.row),
                expected,
                "row of {index}"
            );
            if let Some(place) = slot.place {
                let row = self.groups[slot.group as usize].shelf.row(place.row);
                assert_eq!(row[place.at as usize] as usize, index, "place of {index}");
            }
        }
        for (index, group) in self.groups.iter().enumerate() {
            assert_eq!(group.in_flight, carried[index], "group {index}");
            assert!(group.in_flight <= group.cap, "group {index}");
            if let Some(place) = group.place {
                assert_eq!(self.outer.row(place.row)[place.at as usize] as usize, index);
            }
        }
        assert_eq!(self.in_flight, carried.iter().sum::<u32>());
    }
}

impl Group {
    /// The row of the group's own load; 0 for the group that has no cap.
    fn row(&self) -> u8 {
        row(self.in_flight, self.cap).unwrap_or(ROWS - 1)
    }
}

/// `⌊16·in_flight/cap⌋`, or `None` if there is no free slot.
fn row(in_flight: u32, cap: u32) -> Option<u8> {
    (in_flight < cap).then(|| (u64::from(ROWS) * u64::from(in_flight) / u64::from(cap)) as u8)
}

fn any_of(rng: &mut impl Rng, members: &[u32]) -> u32 {
    members[rng.random_range(0..members.len())]
}

/// The members, starting somewhere in the middle and going round once.
fn turned(members: &[u32], start: usize) -> impl Iterator<Item = u32> {
    let (before, after) = members.split_at(start % members.len().max(1));
    after.iter().chain(before).copied()
}

#[cfg(test)]
mod tests;
