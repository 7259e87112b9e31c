//! What a ladder can say of an exit: what it carries, or why that could not be found.

use super::knee::Reason;
use super::level::Measured;

/// What a probe found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The exit carries `carries` at a time; at `knee` it no longer does.
    Knee {
        /// The last good level.
        carries: u32,
        /// The lowest level found bad.
        knee: u32,
        /// What was bad.
        reason: Reason,
    },
    /// No knee up to the highest level asked for, or up to the contract's cap.
    NoKnee {
        /// The highest level.
        carries: u32,
    },
    /// Nothing was found, and why.
    None(Obstacle),
}

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// The exit failed most requests, and it was its fault.
    Exit,
    /// The target failed most requests.
    Target,
    /// Most requests failed, and it cannot be told whose fault it is.
    Unclear,
    /// One request at a time fails too often already.
    Faulty,
    /// The target answered 429.
    Throttled,
    /// A level would take too long.
    TooSlow,
    /// Nothing came at all, neither an answer nor an error.
    Silent,
    /// The baseline moved while the levels were measured.
    Unstable,
    /// The budget of the targets does not allow this level.
    Budget {
        /// The level that cannot be reached.
        level: u32,
        /// Requests a second that it takes.
        needs: f64,
    },
    /// Too few requests are left.
    Spent,
}

impl Obstacle {
    /// Whose fault most of the failures are.
    pub(super) fn of(found: &Measured) -> Obstacle {
        let (exit, unclear) = (found.exit_faults + found.refused, found.unclear);
        if exit >= unclear.max(found.target_faults) {
            Obstacle::Exit
        } else if found.target_faults >= unclear {
            Obstacle::Target
        } else {
            Obstacle::Unclear
        }
    }
}
