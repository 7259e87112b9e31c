//! How many exits stand how: in use, taken out, unfit, known to work, not yet tried.
//!
//! Owns the counts and what one exit adds to each. Leaves to `fleet` when an exit's standing
//! changes, and what the counts are good for.
//!
//! Invariant: each count is the sum of what the exits add to it now.

use super::health::{Health, Proven, Reason, State};

/// See the module's text.
#[derive(Debug)]
pub(super) struct Census {
    /// Exits that statistics took out of use, for now or for good.
    pub(super) out: u32,
    /// Exits that are final failures for reasons of their own (credentials, interception).
    pub(super) unfit: u32,
    /// Exits in no rest: healthy, limited or on probation.
    pub(super) up: u32,
    /// Of those in no rest: the ones that gave a good answer in this run.
    pub(super) known: u32,
    /// Of those in no rest: the ones of which nothing is known yet, neither good nor bad.
    pub(super) fresh: u32,
    /// In the order of [`State::ALL`].
    by_state: [u32; State::ALL.len()],
}

impl Census {
    /// So many exits, all healthy.
    pub(super) fn new(exits: u32) -> Census {
        Census {
            out: 0,
            unfit: 0,
            up: exits,
            known: 0,
            fresh: exits,
            by_state: State::ALL.map(|state| if state == State::Healthy { exits } else { 0 }),
        }
    }

    /// How many exits are in each state.
    pub(super) fn by_state(&self) -> [(State, u32); State::ALL.len()] {
        State::ALL.map(|state| (state, self.by_state[state as usize]))
    }

    /// One exit stands otherwise now.
    pub(super) fn moved(&mut self, before: Standing, after: Standing) {
        self.up = self.up + after.up - before.up;
        self.known = self.known + after.known - before.known;
        self.fresh = self.fresh + after.fresh - before.fresh;
        self.out = self.out + after.out - before.out;
        self.unfit = self.unfit + after.unfit - before.unfit;
        self.by_state[before.state as usize] -= 1;
        self.by_state[after.state as usize] += 1;
    }
}

/// What one exit adds to each count, 0 or 1.
#[derive(Clone, Copy)]
pub(super) struct Standing {
    state: State,
    up: u32,
    known: u32,
    fresh: u32,
    out: u32,
    unfit: u32,
}

impl Standing {
    /// One exit's, by its health alone.
    pub(super) fn of(health: &Health) -> Standing {
        let (up, out, unfit) = match (health.state(), health.reason()) {
            (State::Healthy | State::Limited, _) => (1, 0, 0),
            // Not yet shown to work: it still counts as taken out.
            (State::Probation, _) => (1, 1, 0),
            (State::Ejected, _) => (0, 1, 0),
            (State::Evicted, Reason::NeverRecovered) => (0, 1, 0),
            (State::Evicted, _) => (0, 0, 1),
        };
        let (known, fresh) = match health.proven() {
            Proven::Nothing => (0, up),
            Proven::Answers | Proven::Tls => (up, 0),
        };
        Standing {
            state: health.state(),
            up,
            known,
            fresh,
            out,
            unfit,
        }
    }

    /// The same of an exit that carried a fault that was mostly its own: something is known of it.
    pub(super) fn once_failed(self) -> Standing {
        Standing { fresh: 0, ..self }
    }
}
