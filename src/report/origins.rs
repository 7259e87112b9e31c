//! Requests per origin, for the largest ones, in bounded memory.
//!
//! A list can have millions of origins and the summary shows twenty. When the table is full
//! the smaller half goes (lossy counting, Manku and Motwani 2002), so an origin with many
//! requests is always in it and misses at most the few counted before it grew.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use crate::model::{Attempt, Origin};

/// Origins counted at a time. Larger: exact for longer lists, more memory.
const COUNTED: usize = 8192;
/// Origins shown.
const SHOWN: usize = 20;

/// One origin of the summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OriginRow {
    /// Host and port.
    pub origin: String,
    /// Attempts that reached it or may have.
    pub requests: u64,
    /// Answers of 429 among them.
    pub status_429: u64,
    /// How often it paused us.
    pub pauses: u64,
    /// For how long in all, in seconds.
    pub paused_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    requests: u64,
    status_429: u64,
    pauses: u64,
    paused: Duration,
}

impl Counted {
    fn weight(&self) -> u64 {
        self.requests + self.pauses
    }
}

/// The counts by origin.
#[derive(Debug, Default)]
pub(super) struct Origins(HashMap<Origin, Counted, foldhash::fast::RandomState>);

impl Origins {
    pub fn attempt(&mut self, origin: &Origin, attempt: &Attempt) {
        if attempt.not_delivered() {
            return;
        }
        let counted = self.of(origin);
        counted.requests += 1;
        counted.status_429 += u64::from(attempt.status() == Some(429));
    }

    pub fn pause(&mut self, origin: &Origin, how_long: Duration) {
        let counted = self.of(origin);
        counted.pauses += 1;
        counted.paused = counted.paused.saturating_add(how_long);
    }

    fn of(&mut self, origin: &Origin) -> &mut Counted {
        if self.0.len() >= COUNTED && !self.0.contains_key(origin) {
            self.drop_smaller_half();
        }
        self.0.entry(origin.clone()).or_default()
    }

    fn drop_smaller_half(&mut self) {
        let mut weights: Vec<u64> = self.0.values().map(Counted::weight).collect();
        let half = weights.len() / 2;
        let (_, &mut median, above) = weights.select_nth_unstable(half);
        let larger = above.iter().filter(|weight| **weight > median).count();
        let mut ties = half.saturating_sub(larger);
        self.0.retain(|_, counted| {
            let tie = counted.weight() == median && ties > 0;
            ties -= usize::from(tie);
            tie || counted.weight() > median
        });
    }

    /// The largest, by requests.
    pub fn rows(self) -> Vec<OriginRow> {
        let mut rows: Vec<OriginRow> = self.0.into_iter().map(row).collect();
        rows.sort_by(|a, b| (b.requests, &a.origin).cmp(&(a.requests, &b.origin)));
        rows.truncate(SHOWN);
        rows
    }
}

fn row((origin, counted): (Origin, Counted)) -> OriginRow {
    OriginRow {
        origin: origin.to_string(),
        requests: counted.requests,
        status_429: counted.status_429,
        pauses: counted.pauses,
        paused_s: (counted.paused.as_secs_f64() * 10.0).round() / 10.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(name: impl std::fmt::Display) -> Origin {
        Origin::of(&url::Url::parse(&format!("http://{name}.test/")).unwrap())
    }

    #[test]
    fn a_large_origin_is_found_among_any_number_of_small_ones() {
        let mut origins = Origins::default();
        for n in 0..3 * COUNTED {
            origins.attempt(&origin(n), &Attempt::default());
            if n > COUNTED && n % 10 == 0 {
                origins.attempt(&origin("large"), &Attempt::default());
            }
        }
        assert!(origins.0.len() <= COUNTED);
        let rows = origins.rows();
        assert_eq!((rows.len(), rows[0].origin.as_str()), (SHOWN, "large.test"));
        let given = (2 * COUNTED - 1) as u64 / 10;
        assert!(rows[0].requests >= given - 1, "{}", rows[0].requests);
    }

    #[test]
    fn attempts_that_never_left_for_the_origin_are_not_its_requests() {
        use crate::model::{Fault, FaultKind, Phase};
        let mut origins = Origins::default();
        let refused = Attempt {
            fault: Some(Fault {
                phase: Phase::Dial,
                kind: FaultKind::Refused,
                detail: String::new(),
            }),
            ..Attempt::default()
        };
        origins.attempt(&origin("a"), &refused);
        assert_eq!(origins.rows(), []);
    }
}
