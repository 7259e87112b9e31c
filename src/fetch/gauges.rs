//! What the attempts under way are at, and how much they have received: for whoever watches.
//!
//! Counters that are changed where a phase begins and read a few times a second. Relaxed:
//! nothing is decided by them. Invariant: an attempt counts in exactly one phase from its
//! start until it is dropped, wherever that happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::model::{Phase, PhaseCounts};

const PHASES: usize = Phase::Body as usize + 1;

/// The counters of a fetcher.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    at: [AtomicU32; PHASES],
    received: AtomicU64,
}

impl Gauges {
    /// How many attempts are in each phase.
    pub(super) fn under_way(&self) -> PhaseCounts {
        let at = |phase: Phase| self.at[phase as usize].load(Ordering::Relaxed);
        PhaseCounts {
            dial: at(Phase::Resolve) + at(Phase::Dial),
            handshake: at(Phase::ExitTls) + at(Phase::Handshake),
            tls: at(Phase::OriginTls),
            first_byte: at(Phase::Head),
            body: at(Phase::Body),
        }
    }

    /// Body bytes received in all, as on the wire.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// One attempt among the counted.
#[derive(Debug)]
pub(super) struct Mark {
    gauges: Arc<Gauges>,
    phase: Phase,
}

impl Mark {
    /// An attempt begins.
    pub(super) fn new(gauges: &Arc<Gauges>) -> Mark {
        let phase = Phase::Dial;
        gauges.at[phase as usize].fetch_add(1, Ordering::Relaxed);
        Mark {
            gauges: Arc::clone(gauges),
            phase,
        }
    }

    /// It goes on to `phase`.
    pub(super) fn enter(&mut self, phase: Phase) {
        if phase != self.phase {
            self.gauges.at[self.phase as usize].fetch_sub(1, Ordering::Relaxed);
            self.gauges.at[phase as usize].fetch_add(1, Ordering::Relaxed);
            self.phase = phase;
        }
    }

    /// Bytes of its body came.
    pub(super) fn received(&self, bytes: u64) {
        self.gauges.received.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.gauges.at[self.phase as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_counts_once_until_it_is_dropped() {
        let gauges = Arc::new(Gauges::default());
        let (mut first, second) = (Mark::new(&gauges), Mark::new(&gauges));
        for (phase, name) in [
            (Phase::ExitTls, "handshake"),
            (Phase::Handshake, "handshake"),
            (Phase::OriginTls, "tls"),
            (Phase::Head, "first byte"),
            (Phase::Body, "body"),
            (Phase::Dial, "dial"),
        ] {
            first.enter(phase);
            let counts = gauges.under_way();
            assert_eq!(counts.sum(), 2, "{phase:?}");
            let there = counts.named().into_iter().find(|(n, _)| *n == name);
            assert_eq!(there.unwrap().1, 1 + u32::from(name == "dial"));
        }
        first.received(7);
        drop((first, second));
        assert_eq!(gauges.under_way(), PhaseCounts::default());
        assert_eq!(gauges.received(), 7);
    }
}
