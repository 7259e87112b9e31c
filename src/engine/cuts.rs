//! Attempts that are no longer waited for, as the scheduler asks.
//!
//! Owns: finding them among the flights, and telling the scheduler of those whose answer has
//! begun to come. The attempt itself ends in `flight`, as by a time limit of its own.

use super::{Engine, Flight};
use crate::fetch::{Cut, Reached};
use crate::model::Time;
use crate::schedule::{Scheduler, Ticket};

/// Where an attempt stands, as far as the engine was told.
pub(super) enum Head {
    /// Its head is waited for, unless this cuts it; or it has come, and nobody asked.
    Awaited(Cut),
    /// It has come.
    Came,
    /// It is not waited for any longer; the attempt is about to land.
    Refused,
}

impl Engine {
    /// One attempt is not waited for any longer.
    pub(super) fn cut(&mut self, ticket: Ticket, now: Time) {
        let id = self.tickets.get(&ticket);
        if let Some(flight) = id.and_then(|id| self.flights.get_mut(id)) {
            cut(flight, &mut self.scheduler, now);
        }
    }

    /// None is, unless its answer has begun to come.
    pub(super) fn last_call(&mut self, now: Time) {
        for flight in self.flights.values_mut() {
            cut(flight, &mut self.scheduler, now);
        }
    }
}

fn cut(flight: &mut Flight, scheduler: &mut Scheduler, now: Time) {
    flight.head = match std::mem::replace(&mut flight.head, Head::Refused) {
        Head::Awaited(cut) => match cut.say() {
            Reached::Nothing => Head::Refused,
            Reached::Head => Head::Came,
        },
        told => told,
    };
    if matches!(flight.head, Head::Came) {
        scheduler.heard(&flight.lease, now);
    }
}
