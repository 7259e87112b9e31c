//! Requests per origin, for the largest ones, in bounded memory.
//!
//! A list can have millions of origins and the summary shows twenty.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::largest::Largest;
use super::tally::Tried;
use crate::model::{Origin, Time};

/// Origins counted at a time. Larger: exact for longer lists, more memory.
const COUNTED: usize = 8192;
/// Fewer requests than this have no rate.
const TELLING: u64 = 5;
/// Origins shown.
const SHOWN: usize = 20;

/// One origin of the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginRow {
    /// Host and port.
    pub origin: String,
    /// Attempts that reached it or may have.
    pub requests: u64,
    /// Answers of 429 among them.
    pub status_429: u64,
    /// How often it paused us.
    pub pauses: u64,
    /// For how long in all at most, in seconds: a run may end before a pause does.
    pub paused_s: f64,
    /// Requests per second that its budget allows; `None`: any number.
    pub rate: Option<f64>,
    /// Requests per second that it got, from its first answer to its last; `None` where they
    /// are too few to tell.
    pub reached: Option<f64>,
    /// How long jobs waited for its budget, summed over jobs, in seconds.
    pub waited_s: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    requests: u64,
    status_429: u64,
    pauses: u64,
    paused: Duration,
    waited: Duration,
    first: Option<Time>,
    last: Time,
    rate: Option<f64>,
}

/// The counts by origin.
#[derive(Debug)]
pub(super) struct Origins(Largest<Origin, Counted>);

impl Default for Origins {
    fn default() -> Origins {
        Origins(Largest::new(COUNTED, |counted: &Counted| {
            counted.requests + counted.pauses
        }))
    }
}

impl Origins {
    pub fn attempt(&mut self, tried: &Tried) {
        if tried.attempt.not_delivered() {
            return;
        }
        let counted = self.0.of(tried.origin.clone());
        counted.requests += 1;
        counted.status_429 += u64::from(tried.attempt.status() == Some(429));
        counted.first.get_or_insert(tried.at);
        counted.last = tried.at;
    }

    pub fn pause(&mut self, origin: &Origin, how_long: Duration) {
        let counted = self.0.of(origin.clone());
        counted.pauses += 1;
        counted.paused = counted.paused.saturating_add(how_long);
    }

    pub fn waited(&mut self, origin: &Origin, how_long: Duration) {
        let counted = self.0.of(origin.clone());
        counted.waited = counted.waited.saturating_add(how_long);
    }

    pub fn allowed(&mut self, rate_of: impl Fn(&Origin) -> Option<f64>) {
        for (origin, counted) in self.0.iter_mut() {
            counted.rate = rate_of(origin);
        }
    }

    /// The largest, by requests.
    pub fn rows(self) -> Vec<OriginRow> {
        let mut rows: Vec<OriginRow> = self.0.into_items().map(row).collect();
        rows.sort_by(|a, b| (b.requests, &a.origin).cmp(&(a.requests, &b.origin)));
        rows.truncate(SHOWN);
        rows
    }
}

fn row((origin, counted): (Origin, Counted)) -> OriginRow {
    let span = counted
        .first
        .map_or(0.0, |first| (counted.last - first).as_secs_f64());
    let gaps = counted.requests.saturating_sub(1) as f64;
    OriginRow {
        origin: origin.to_string(),
        requests: counted.requests,
        status_429: counted.status_429,
        pauses: counted.pauses,
        paused_s: tenths(counted.paused.as_secs_f64()),
        rate: counted.rate,
        reached: (counted.requests >= TELLING && span > 0.0)
            .then(|| (gaps / span * 100.0).round() / 100.0),
        waited_s: tenths(counted.waited.as_secs_f64()),
    }
}

fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Attempt;

    fn origin() -> Origin {
        Origin::of(&url::Url::parse("http://a.test/").unwrap())
    }

    fn tried(origins: &mut Origins, attempt: &Attempt, at: Time) {
        origins.attempt(&Tried {
            exit: 0,
            origin: &origin(),
            attempt,
            at,
        });
    }

    #[test]
    fn the_rate_reached_is_that_between_the_first_and_the_last_answer() {
        let mut origins = Origins::default();
        for at in 10..=15 {
            tried(
                &mut origins,
                &Attempt::default(),
                Time::from_millis(at * 500),
            );
        }
        origins.waited(&origin(), Duration::from_millis(1_240));
        origins.allowed(|_| Some(4.0));
        let rows = origins.rows();
        assert_eq!((rows[0].rate, rows[0].reached), (Some(4.0), Some(2.0)));
        assert_eq!(rows[0].waited_s, 1.2);
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
        tried(&mut origins, &refused, Time::ZERO);
        assert_eq!(origins.rows(), []);
    }
}
