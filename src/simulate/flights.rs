//! Attempts under way, each with the instant at which it lands.
//!
//! Invariant: of the landings set for a flight only the last one counts, so one that is cut lands
//! once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::checks::Leg;
use crate::model::{Attempt, Time};
use crate::schedule::{Lease, Ticket, Work};

/// One attempt.
pub(super) struct Flight {
    pub(super) lease: Lease,
    pub(super) work: Box<Work>,
    /// What it will have been; `None`: it is cut short by us.
    pub(super) attempt: Option<Attempt>,
    pub(super) leg: Leg,
    /// Its request reaches the origin.
    pub(super) delivered: bool,
    /// When its head is there, if it ever is.
    pub(super) head: Option<Time>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Flights {
    /// Each with the number of its landing.
    slots: Vec<Option<(u64, Flight)>>,
    spare: Vec<usize>,
    landings: BinaryHeap<Reverse<(Time, u64, usize)>>,
    landings_set: u64,
}

impl Flights {
    /// One more, which lands at `lands`.
    pub(super) fn start(&mut self, flight: Flight, lands: Time) {
        let flight = Some((0, flight));
        let slot = self.spare.pop().unwrap_or(self.slots.len());
        match self.slots.get_mut(slot) {
            Some(free) => *free = flight,
            None => self.slots.push(flight),
        }
        self.land_at(slot, lands);
    }

    /// The flight in this slot lands then, and not when it was to.
    pub(super) fn land_at(&mut self, slot: usize, lands: Time) {
        let Some((number, _)) = &mut self.slots[slot] else {
            return;
        };
        self.landings_set += 1;
        *number = self.landings_set;
        self.landings.push(Reverse((lands, *number, slot)));
    }

    /// One that is to land by now.
    pub(super) fn land(&mut self, now: Time) -> Option<Flight> {
        while let Some(Reverse((at, number, slot))) = self.landings.peek().copied()
            && at <= now
        {
            self.landings.pop();
            let landed = self.slots[slot].take_if(|(its, _)| *its == number);
            if let Some((_, flight)) = landed {
                self.spare.push(slot);
                return Some(flight);
            }
        }
        None
    }

    /// When the next one lands, or was to land before it was cut.
    pub(super) fn next_landing(&self) -> Option<Time> {
        self.landings.peek().map(|Reverse((at, ..))| *at)
    }

    /// How many landings were set so far.
    pub(super) fn landings_set(&self) -> u64 {
        self.landings_set
    }

    /// The flight with this ticket, and its slot.
    pub(super) fn with_ticket(&self, ticket: Ticket) -> Option<(usize, &Flight)> {
        let flights = self.slots.iter().enumerate();
        let mut flights = flights.filter_map(|(slot, flight)| Some((slot, &flight.as_ref()?.1)));
        flights.find(|(_, flight)| flight.lease.ticket() == Some(ticket))
    }

    /// All slots, free ones too.
    pub(super) fn slots(&self) -> Range<usize> {
        0..self.slots.len()
    }

    /// The flight in this slot.
    pub(super) fn at(&mut self, slot: usize) -> Option<&mut Flight> {
        self.slots[slot].as_mut().map(|(_, flight)| flight)
    }
}
