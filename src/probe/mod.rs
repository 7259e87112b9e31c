//! The probe: how much one exit carries before it queues, refuses or errs.
//!
//! Owns the ladder of levels and what it means: `scope` (which levels there are), `level` (which
//! samples count), `knee` (the statistics and the criteria), `ladder` (what is measured next),
//! `verdict` (what it can say), all without I/O and without a clock; `climb` sends the requests
//! as the targets' `budgets` allow and has them `judged`; `found` says what came out, in figures and
//! in words; `file` is the file beside the exit list that `run` reads, `page` the HTML of it.
//! Leaves to `cli` which exits are probed, and to `schedule` the budget of the targets and whose
//! fault a failure is.
//!
//! Invariants: every request passes its target's budget; an exit never has more requests and
//! sockets than the level says, and no level is above the contract's `cap=`; the whole probe
//! never sends more requests than it may; every wait has a bound.

mod budgets;
mod climb;
mod file;
mod found;
mod judged;
mod knee;
mod ladder;
mod level;
mod page;
mod scope;
mod verdict;

#[cfg(test)]
mod tests;

pub use climb::{Prober, Setup, Spent, Target, Together};
pub use file::{GroupEntry, ProbeFile, STALE, TierEntry, age};
pub use found::{Found, Row};
pub use knee::Reason;
pub use page::page;
pub use verdict::{Obstacle, Verdict};
