//! How many attempts are in which phase at this moment.
//!
//! Each attempt has one [`Spot`] on a board of counters. It moves with the attempt and goes
//! with it, so that an attempt that is cancelled is not counted for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::model::Phase;

/// Phases there are.
const PHASES: usize = Phase::Body as usize + 1;

/// The board. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Board(Arc<[AtomicU32; PHASES]>);

impl Board {
    /// An attempt begins.
    pub(super) fn enter(&self, phase: Phase) -> Spot {
        self.0[phase as usize].fetch_add(1, Ordering::Relaxed);
        Spot {
            board: self.clone(),
            phase,
        }
    }

    /// Attempts in `phase` now.
    pub(super) fn count(&self, phase: Phase) -> u32 {
        self.0[phase as usize].load(Ordering::Relaxed)
    }
}

/// Where one attempt is.
#[derive(Debug)]
pub(super) struct Spot {
    board: Board,
    phase: Phase,
}

impl Spot {
    /// The attempt goes on to `phase`.
    pub(super) fn move_to(&mut self, phase: Phase) {
        self.board.0[phase as usize].fetch_add(1, Ordering::Relaxed);
        self.board.0[self.phase as usize].fetch_sub(1, Ordering::Relaxed);
        self.phase = phase;
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        self.board.0[self.phase as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_in_one_phase_and_in_none_when_it_is_gone() {
        let board = Board::default();
        let mut spot = board.enter(Phase::Dial);
        let other = board.enter(Phase::Dial);
        spot.move_to(Phase::Head);
        assert_eq!((board.count(Phase::Dial), board.count(Phase::Head)), (1, 1));
        drop((spot, other));
        assert_eq!((board.count(Phase::Dial), board.count(Phase::Head)), (0, 0));
    }
}
