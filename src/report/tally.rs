//! Counting while the run goes: a pure fold over attempts and records.
//!
//! Invariant: memory follows the exits, the kinds of failure and a bounded number of
//! origins, never the list. What an attempt means for its exit is the scheduler's to count
//! and comes with [`RunEnd`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::end::RunEnd;
use super::origins::Origins;
use super::spent::Spent;
use super::summary::{Example, FailureRow, Summary};
use crate::model::{Attempt, Blame, ErrorKind, Exit, Origin, Outcome, Record, Time};

/// Examples kept of each kind of failure: those of the smallest lines.
const EXAMPLES: usize = 3;
/// Characters kept of a text in an example.
const EXAMPLE_TEXT: usize = 200;
/// Time to first byte is counted in steps of 0.1 ms …
const STEPS_PER_MS: f64 = 10.0;
/// … up to an hour.
const STEPS_MAX: u64 = 36_000_000;
/// Up to this many exits percentiles have two digits (about 7 kB an exit in use), above it
/// one (about 1 kB).
const EXACT_EXITS: usize = 2000;

/// An attempt to be counted.
#[derive(Clone, Copy, Debug)]
pub struct Tried<'a> {
    /// Index of the exit in the list the tally was made for.
    pub exit: usize,
    /// Whom it asked.
    pub origin: &'a Origin,
    /// The facts.
    pub attempt: &'a Attempt,
    /// When it ended.
    pub at: Time,
}

/// How many entries have ended, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fetched and stored, in this run or before.
    pub ok: u64,
    /// Those of `ok` that an earlier run had recorded.
    pub already_ok: u64,
    /// Tried and given up.
    pub failed: u64,
    /// Could not be used.
    pub refused: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Body bytes received, as on the wire.
    pub bytes: u64,
}

/// The counts of a run so far.
#[derive(Debug)]
pub struct Tally {
    pub(super) exits: Vec<ExitTally>,
    pub(super) ttfb: Ttfb,
    pub(super) origins: Origins,
    pub(super) counts: Counts,
    pub(super) failures: HashMap<(ErrorKind, Blame), FailureRow>,
    pub(super) spent: Spent,
    digits: u8,
}

#[derive(Debug)]
pub(super) struct ExitTally {
    pub id: Arc<str>,
    pub tier: Option<Arc<str>>,
    pub group: Option<Arc<str>>,
    pub bytes: u64,
    pub ttfb: Ttfb,
}

/// Times to first byte; nothing is allocated before the first.
#[derive(Debug, Default)]
pub(super) struct Ttfb(Option<Box<Histogram<u32>>>);

impl Ttfb {
    fn add(&mut self, time: Duration, digits: u8) {
        if self.0.is_none() {
            // One or two digits are always taken.
            self.0 = Histogram::new(digits).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.0 {
            let steps = (time.as_secs_f64() * 1e3 * STEPS_PER_MS).round() as u64;
            // It grows by itself and the value is bounded, so this cannot fail.
            let _ = histogram.record(steps.min(STEPS_MAX));
        }
    }

    /// The time in milliseconds that a share `quantile` of all stays below.
    pub fn ms(&self, quantile: f64) -> Option<f64> {
        let histogram = self.0.as_ref()?;
        Some(histogram.value_at_quantile(quantile) as f64 / STEPS_PER_MS)
    }
}

impl Tally {
    /// Nothing counted yet.
    pub fn new(exits: &[Exit]) -> Tally {
        let exits: Vec<ExitTally> = exits
            .iter()
            .map(|exit| ExitTally {
                id: exit.id.clone(),
                tier: exit.tier.clone(),
                group: exit.group.clone(),
                bytes: 0,
                ttfb: Ttfb::default(),
            })
            .collect();
        Tally {
            digits: if exits.len() <= EXACT_EXITS { 2 } else { 1 },
            exits,
            ttfb: Ttfb::default(),
            origins: Origins::default(),
            counts: Counts::default(),
            failures: HashMap::new(),
            spent: Spent::default(),
        }
    }

    /// Counts an attempt. One through an exit that is not in the list counts for the totals only.
    pub fn attempt(&mut self, tried: &Tried) {
        let attempt = tried.attempt;
        self.counts.attempts += 1;
        self.counts.bytes += attempt.wire_bytes;
        self.spent.phases(&attempt.phases);
        self.origins.attempt(tried);
        let ttfb = attempt.head.as_ref().and(attempt.phases.first_byte);
        if let Some(time) = ttfb {
            self.ttfb.add(time, self.digits.max(2));
        }
        let Some(exit) = self.exits.get_mut(tried.exit) else {
            return;
        };
        exit.bytes += attempt.wire_bytes;
        if let Some(time) = ttfb {
            exit.ttfb.add(time, self.digits);
        }
    }

    /// Counts the end of an entry in this run; also a refusal that an earlier run recorded.
    pub fn record(&mut self, record: &Record) {
        if let Some(waits) = &record.waits {
            self.spent.waits(waits);
        }
        match record.outcome {
            Outcome::Ok => self.counts.ok += 1,
            Outcome::Failed => self.counts.failed += 1,
            Outcome::Refused => self.counts.refused += 1,
        }
        self.failure(record);
    }

    /// Counts an entry that the record of an earlier run answers.
    pub fn already(&mut self, record: &Record) {
        match record.outcome {
            Outcome::Ok => {
                self.counts.ok += 1;
                self.counts.already_ok += 1;
            }
            Outcome::Failed => self.counts.failed += 1,
            Outcome::Refused => self.counts.refused += 1,
        }
        self.failure(record);
    }

    fn failure(&mut self, record: &Record) {
        let Some(error) = &record.error else {
            return;
        };
        let row = self
            .failures
            .entry((error.kind, error.blame))
            .or_insert_with(|| FailureRow {
                kind: error.kind,
                blame: error.blame,
                count: 0,
                examples: Vec::new(),
            });
        row.count += 1;
        let lines = row.examples.iter().map(|example| example.line);
        let at = lines.filter(|line| *line <= record.line).count();
        if at < EXAMPLES {
            let example = Example {
                line: record.line,
                url: record.url.chars().take(EXAMPLE_TEXT).collect(),
                detail: error.detail.chars().take(EXAMPLE_TEXT).collect(),
            };
            row.examples.insert(at, example);
            row.examples.truncate(EXAMPLES);
        }
    }

    /// Counts a pause that an origin asked for or was given.
    pub fn pause(&mut self, origin: &Origin, how_long: Duration) {
        self.origins.pause(origin, how_long);
    }

    /// Counts how long a job that has ended waited for an origin's budget.
    pub fn waited(&mut self, origin: &Origin, how_long: Duration) {
        if !how_long.is_zero() {
            self.origins.waited(origin, how_long);
        }
    }

    /// Notes what each origin's budget was: requests per second, `None` where unlimited.
    pub fn allowed(&mut self, rate_of: impl Fn(&Origin) -> Option<f64>) {
        self.origins.allowed(rate_of);
    }

    /// How long an attempt takes on average, once there was one.
    pub fn mean_attempt(&self) -> Option<Duration> {
        let attempts = self.counts.attempts;
        let mean = self.spent.in_flight_ms() / 1e3 / attempts as f64;
        Duration::try_from_secs_f64(mean)
            .ok()
            .filter(|_| attempts > 0)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The finished summary.
    pub fn finish(self, end: RunEnd) -> Summary {
        Summary::new(self, end)
    }
}

#[cfg(test)]
#[path = "tally_tests.rs"]
pub(super) mod tests;
