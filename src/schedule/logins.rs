//! Which logins were ever taken: exits that share one learn it from each other.

use std::collections::HashMap;

use super::settings::Seat;
use super::steps::ExitIx;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Logins {
    /// By exit: the first one with the same login, or itself.
    first: Vec<u32>,
    /// By such a first exit.
    worked: Vec<bool>,
}

impl Logins {
    /// None was taken yet.
    pub(super) fn new(seats: &[Seat]) -> Logins {
        let mut known = HashMap::new();
        let first = (0..)
            .zip(seats)
            .map(|(index, seat)| match seat.credentials {
                Some(login) => *known.entry(login).or_insert(index),
                None => index,
            });
        Logins {
            first: first.collect(),
            worked: vec![false; seats.len()],
        }
    }

    /// Whether the exit's login was taken, here or at another exit with the same one.
    pub(super) fn worked(&self, exit: ExitIx) -> bool {
        self.worked[self.first[exit.index()] as usize]
    }

    /// The exit's login was taken.
    pub(super) fn works(&mut self, exit: ExitIx) {
        self.worked[self.first[exit.index()] as usize] = true;
    }
}
