//! Which exits a job may take: not those that failed it or are not welcome at its origin, as long as
//! there are others.
//!
//! Owns: who is left out, and for how long. Leaves to `pair` who is not welcome, to `pool` which
//! of the rest is best, to `dispatch` what becomes of a job that none fits.

use std::time::Duration;

use rand::Rng;

use crate::model::Time;

use super::exits::Exits;
use super::pair::Pairs;
use super::steps::ExitIx;
use super::warm::Warm;
use super::work::Work;

/// How long a job waits for an exit that it has not tried while one that it has tried is free.
/// Longer: more jobs are saved from a bad exit; shorter: fewer wait behind long bodies.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Up to this many exits in use it is counted exactly whether a job has tried them all.
const COUNTED: u32 = 64;

/// Which exits one origin's jobs may take now.
pub(super) struct Choice<'a> {
    pub(super) exits: &'a Exits,
    pub(super) pairs: &'a Pairs,
    pub(super) warm: &'a Warm,
    /// How long the origin has stood aside.
    pub(super) waited: Option<Duration>,
    pub(super) now: Time,
}

/// Which exits are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeaveOut {
    /// Those that failed this job, and those that are not welcome at its origin.
    TriedAndHeld,
    /// Those that are not welcome: the job has tried all others.
    Held,
    /// None: it takes an exit again rather than wait for ever.
    None,
}

impl Choice<'_> {
    /// The best of the free exits that this job may take.
    pub(super) fn pick(&self, work: &Work, rng: &mut impl Rng) -> Option<ExitIx> {
        let leave_out = self.leave_out(work);
        let held = |exit: ExitIx| self.pairs.is_held(exit.number(), self.now);
        let wanted = |exit: ExitIx| match leave_out {
            LeaveOut::TriedAndHeld => !work.left_out().contains(&exit) && !held(exit),
            LeaveOut::Held => !held(exit),
            LeaveOut::None => true,
        };
        let spread = self.pairs.is_counting(self.now);
        let warm = self.warm.exits(self.now).filter(|_| !spread);
        self.exits.pool.pick(rng, wanted, warm)
    }

    fn leave_out(&self, work: &Work) -> LeaveOut {
        if self.waited.is_some_and(|waited| waited >= PATIENCE) {
            return LeaveOut::None;
        }
        let up = self.exits.up();
        let tried = work.left_out();
        let most = tried.len() + self.pairs.holds();
        if up > COUNTED || up as usize > most {
            return LeaveOut::TriedAndHeld;
        }
        let in_use = |exit: &u32| self.exits.is_up(ExitIx::new(*exit));
        let held = self.pairs.held(self.now).filter(in_use).count();
        let tried_only = (0..tried.len())
            .filter(|&at| !tried[..at].contains(&tried[at]))
            .map(|at| tried[at].number())
            .filter(|&exit| in_use(&exit) && !self.pairs.is_held(exit, self.now))
            .count();
        if held >= up as usize {
            LeaveOut::None
        } else if held + tried_only >= up as usize {
            LeaveOut::Held
        } else {
            LeaveOut::TriedAndHeld
        }
    }
}
