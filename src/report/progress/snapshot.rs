//! How a run stands at one instant, in plain values: what the lines and the metrics show.

use std::time::Duration;

use crate::model::PhaseCounts;
use crate::report::Counts;

/// How the run stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Since the start of the run.
    pub elapsed: Duration,
    /// Entries that have ended.
    pub counts: Counts,
    /// Entries of the list that were read so far.
    pub read: u64,
    /// Entries of the list, once it is read to its end.
    pub entries: Option<u64>,
    /// Attempts under way, by what they are at.
    pub under_way: PhaseCounts,
    /// Body bytes received so far, unfinished bodies included.
    pub received: u64,
    /// Jobs waiting for their origin's budget.
    pub waiting_budget: u64,
    /// Jobs waiting for an exit.
    pub waiting_exit: u64,
    /// How many exits are in each state, in the order of an exit's decline.
    pub exits: Vec<(&'static str, u32)>,
    /// Origins whose jobs wait longest, the longest first; a few.
    pub held_back: Vec<HeldBack>,
    /// The least time that budgets and exits need for what is left, once all of the list is read.
    pub floor: Option<Duration>,
}

/// An origin whose jobs wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// Which one.
    pub origin: String,
    /// Jobs that wait.
    pub jobs: u64,
    /// Until the last of them may start.
    pub wait: Duration,
    /// What holds them back, one word.
    pub why: &'static str,
}

impl Snapshot {
    /// Entries that have ended, those that an earlier run had fetched among them.
    pub fn ended(&self) -> u64 {
        self.counts.ok + self.counts.failed + self.counts.refused
    }
}
