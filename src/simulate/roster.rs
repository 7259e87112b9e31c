//! The simulated exits, as the scheduler and the summary are given them.

use super::exits::{Exit, Exits};
use super::scenario::Scenario;
use crate::model::{self, Scheme};
use crate::schedule::Seat;

/// Where the hash of a login begins.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// The exits as the scheduler is given them.
pub(super) fn seats(exits: &Exits<'_>) -> Vec<Seat> {
    let login = |exit: usize| {
        let name = exits.spec(exit).login.as_ref()?;
        Some(
            name.bytes()
                .fold(SALT, |hash, byte| hash.rotate_left(5) ^ u64::from(byte)),
        )
    };
    let seats = exits.all.iter().enumerate().map(|(at, exit)| Seat {
        id: exit.id.clone(),
        ceiling: exit.cap,
        group: exit.group,
        credentials: login(at),
    });
    seats.collect()
}

/// The exits as the summary names them.
pub(super) fn rows(exits: &Exits<'_>, scenario: &Scenario) -> Vec<model::Exit> {
    let row = |(line, exit): (u64, &Exit)| model::Exit {
        group: exit
            .group
            .map(|group| scenario.groups[group as usize].name.as_str().into()),
        cap: Some(exit.cap),
        line,
        ..model::Exit::new(exit.id.clone(), Scheme::Http, "simulated", 1)
    };
    (1..).zip(&exits.all).map(row).collect()
}
