//! How fast a run goes now: entries and bytes per second over the last seconds.
//!
//! Over a window, not since the start: after a pause or a slow begin the time that is left
//! must follow what happens now.

use std::collections::VecDeque;
use std::time::Duration;

use super::Snapshot;

/// Longer is steadier, shorter follows changes sooner.
const WINDOW: Duration = Duration::from_secs(15);
/// Time between two samples.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// Rates of the last seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rates {
    /// Entries that ended, per second; those that an earlier run had fetched do not count.
    pub(super) entries: f64,
    /// Bytes per second.
    pub(super) bytes: f64,
}

/// A few samples of the counts that only grow.
#[derive(Debug, Default)]
pub(super) struct Pace(VecDeque<Sample>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Duration,
    ended: u64,
    bytes: u64,
}

impl Pace {
    /// Takes a snapshot in and answers the rates up to it.
    pub(super) fn rates(&mut self, now: &Snapshot) -> Rates {
        let sample = Sample {
            at: now.elapsed,
            ended: now.ended().saturating_sub(now.counts.already_ok),
            bytes: now.received,
        };
        while self.0.len() > 1 && self.0[1].at + WINDOW <= sample.at {
            self.0.pop_front();
        }
        let due = |last: &Sample| last.at + SAMPLE_EVERY <= sample.at;
        if self.0.back().is_none_or(due) {
            self.0.push_back(sample);
        }
        let from = self.0.front().copied().unwrap_or(sample);
        let seconds = (sample.at - from.at).as_secs_f64();
        if seconds <= 0.0 {
            return Rates::default();
        }
        Rates {
            entries: sample.ended.saturating_sub(from.ended) as f64 / seconds,
            bytes: sample.bytes.saturating_sub(from.bytes) as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Counts;

    fn at(millis: u64, ok: u64) -> Snapshot {
        Snapshot {
            elapsed: Duration::from_millis(millis),
            counts: Counts {
                ok,
                already_ok: 10,
                ..Counts::default()
            },
            received: 100 * ok,
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_first_snapshot_has_no_rate_and_the_next_one_has() {
        let mut pace = Pace::default();
        assert_eq!(pace.rates(&at(0, 10)), Rates::default());
        let rates = pace.rates(&at(500, 15));
        assert_eq!((rates.entries, rates.bytes), (10.0, 1000.0));
    }

    #[test]
    fn what_was_long_ago_no_longer_counts() {
        let mut pace = Pace::default();
        for second in 0..=100 {
            // Fast for a minute, then one a second.
            let ok = 10
                + if second <= 60 {
                    second * 50
                } else {
                    2940 + second
                };
            pace.rates(&at(second * 1000, ok));
        }
        let rates = pace.rates(&at(101_000, 10 + 2940 + 101));
        assert!((rates.entries - 1.0).abs() < 1e-9, "{rates:?}");
        assert!(pace.0.len() <= 18, "{}", pace.0.len());
    }
}
