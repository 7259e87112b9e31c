//! What only the scheduler and the sockets know when a run ends.

use std::time::Duration;

use super::GroupRow;

/// How an exit stood at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitEnd {
    /// Ceiling: leases it may ever hold.
    pub cap: u32,
    /// What health left of it.
    pub cap_now: u32,
    /// Most leases at one time.
    pub peak: u32,
    /// Most open sockets at one time, idle ones too.
    pub peak_sockets: u32,
    /// Attempts that ended.
    pub attempts: u64,
    /// Attempts whose answer was accepted or followed.
    pub ok: u64,
    /// Attempts whose fault is mostly the exit's.
    pub faults: u64,
    /// Answers with status 429.
    pub status_429: u64,
    /// `healthy`, `limited`, `ejected`, `probation` or `evicted`.
    pub state: &'static str,
    /// Why it is not healthy.
    pub reason: Option<String>,
    /// The last thing that went wrong there, one line, no secret.
    pub last_error: Option<String>,
}

/// How the run stood at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunEnd {
    /// In the order of the exits the tally was made for.
    pub exits: Vec<ExitEnd>,
    /// Groups with a cap.
    pub groups: Vec<GroupRow>,
    /// Entries of the URL list.
    pub entries: u64,
    /// How long the run took.
    pub wall: Duration,
    /// Time that jobs waited for the disk, summed over jobs.
    pub disk: Duration,
    /// The part of it in which the loop waited and started nothing.
    pub disk_alone: Duration,
    /// Requests that the fleet may carry at a time.
    pub slots: u64,
    /// What part of the waiting for exits was for full groups, 0 to 1.
    pub group_share: f64,
    /// Why it ended before its list did, one line.
    pub stopped: Option<String>,
}
