//! How the run stands now, for progress, metrics and whoever asks with SIGUSR1.
//!
//! Owns: bringing together what only scheduler, fetcher and counts know. Five times a second,
//! so every part of it is O(1) in jobs, origins and exits.

use std::time::Duration;

use super::Engine;
use crate::model::Time;
use crate::report::{HeldBack, Snapshot};

impl Engine {
    /// Shows how the run stands, to whom it concerns.
    pub(super) fn show(&mut self, now: Time) {
        let snapshot = self.snapshot(now);
        if let Some(metrics) = &self.metrics {
            metrics.update(&snapshot);
        }
        self.progress.update(&snapshot);
    }

    /// Somebody asked for the status line.
    pub(super) fn answer_status(&mut self) {
        let snapshot = self.snapshot(self.clock.now());
        self.progress.show(&snapshot);
    }

    fn snapshot(&mut self, now: Time) -> Snapshot {
        let held_back: Vec<HeldBack> = self
            .scheduler
            .held_back(now)
            .into_iter()
            .map(|held| HeldBack {
                origin: held.origin.to_string(),
                jobs: held.jobs as u64,
                wait: held.wait,
                why: held.why,
            })
            .collect();
        let states = self.scheduler.exits_by_state();
        let mut snapshot = Snapshot {
            elapsed: now - self.started,
            counts: self.tally.counts(),
            read: self.entries,
            entries: self.list_read.then_some(self.entries),
            under_way: self.ground.fetcher.under_way(),
            received: self.ground.fetcher.received(),
            waiting_budget: self.scheduler.waiting_for_budget() as u64,
            waiting_exit: self.scheduler.waiting_for_exit() as u64,
            exits: states.map(|(state, count)| (state.as_str(), count)).into(),
            held_back,
            floor: None,
        };
        snapshot.floor = self.floor(&snapshot);
        snapshot
    }

    /// The least time that is left: the origin that holds back longest, or what is left shared
    /// out among all slots.
    fn floor(&self, now: &Snapshot) -> Option<Duration> {
        let left = now.entries?.saturating_sub(now.ended());
        let by_budget = now.held_back.first().map_or(Duration::ZERO, |o| o.wait);
        let attempt = self.tally.mean_attempt().unwrap_or_default();
        let by_exits = attempt.as_secs_f64() * left as f64 / f64::from(self.slots.max(1));
        let by_exits = Duration::try_from_secs_f64(by_exits).unwrap_or(Duration::MAX);
        Some(by_budget.max(by_exits))
    }
}
