//! Gauges: how many there are now, and how many there were at most.
//!
//! Plain atomics, so that counting costs a request next to nothing. What a gauge stands for
//! is its owner's matter. The invariant: every `enter` is undone exactly once, by the drop
//! of the guard it gave, on whatever path that happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Counts things that come and go.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    now: AtomicU32,
    peak: AtomicU32,
}

impl Gauge {
    /// Counts one more until the guard is dropped.
    pub(super) fn enter(&self) -> Inside<'_> {
        self.add();
        Inside(self)
    }

    /// As [`Gauge::enter`], for a guard that outlives the borrow.
    pub(super) fn enter_owned(self: &Arc<Gauge>) -> InsideOwned {
        self.add();
        InsideOwned(Arc::clone(self))
    }

    fn add(&self) {
        let now = self.now.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(now, Relaxed);
    }

    fn sub(&self) {
        self.now.fetch_sub(1, Relaxed);
    }

    /// How many there are at this instant.
    pub(super) fn now(&self) -> u32 {
        self.now.load(Relaxed)
    }

    /// The present state, for people and tests.
    pub(super) fn read(&self) -> Level {
        Level {
            now: self.now(),
            peak: self.peak.load(Relaxed),
        }
    }

    /// Forgets the peak; what is there now counts as the new one.
    pub(super) fn forget_peak(&self) {
        self.peak.store(self.now(), Relaxed);
    }
}

/// One thing that is there, as long as this lives.
#[derive(Debug)]
pub(super) struct Inside<'a>(&'a Gauge);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.sub();
    }
}

/// One thing that is there, as long as this lives.
#[derive(Debug)]
pub(super) struct InsideOwned(Arc<Gauge>);

impl Drop for InsideOwned {
    fn drop(&mut self) {
        self.0.sub();
    }
}

/// What a gauge showed when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// At that instant.
    pub now: u32,
    /// At most, since the start or the last reset.
    pub peak: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_stays_when_the_things_have_gone() {
        let gauge = Arc::new(Gauge::default());
        let first = gauge.enter();
        drop(gauge.enter_owned());
        assert_eq!(gauge.read(), Level { now: 1, peak: 2 });
        drop(first);
        assert_eq!(gauge.read(), Level { now: 0, peak: 2 });
        gauge.forget_peak();
        assert_eq!(gauge.read(), Level { now: 0, peak: 0 });
    }
}
