//! A rehearsal: the real scheduler against exits and origins that exist only as figures.
//!
//! Owns virtual time and everything that answers in it: exits with a capacity, faults and
//! tempers, origins with limits of their own, and a list of jobs. Leaves every decision to
//! [`crate::schedule`], which cannot tell it from a run: no socket, no sleep, no clock. So a
//! fleet can be tried before it is paid for, and a rule of the scheduler can be shown to hold in
//! a world that is written down in a file ([`Scenario`]).
//!
//! Invariant: the same scenario, rules and seed give the same outcome to the last figure. What
//! must hold in every run is checked in every simulation (`checks`), by counts of its own.
//!
//! What it leaves out: sockets that stay open, bytes on the way, names and certificates. An
//! attempt's end is drawn when it starts, so load changes the pace of later attempts only.

mod baseline;
mod checks;
mod disk;
mod exits;
mod expect;
mod fate;
mod figures;
mod flights;
mod ideal;
mod load;
mod mistakes;
mod origins;
mod outcome;
mod pace;
mod roster;
mod scenario;
mod span;
mod tracks;
mod trouble;
mod usage;
mod world;

pub use expect::{Bounds, Line, judge};
pub use fate::Limits;
pub use figures::Figures;
pub use mistakes::Mistake;
pub use origins::Budget;
pub use outcome::Outcome;
pub use scenario::Scenario;
pub use span::Span;
pub use world::{Setting, run};
