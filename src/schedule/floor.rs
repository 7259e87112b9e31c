//! The least time that a list takes, and what sets it.
//!
//! Owns one formula, told alike before a run and in it: an origin takes as long as its jobs at its
//! rate, the exits as long as all jobs at the latency over their slots; the longer one binds. Only
//! the rates give a least time for sure: how long requests take is a guess or a mean.

use std::fmt;
use std::time::Duration;

use crate::model::Origin;

use super::settings::Rules;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Floor {
    /// By the exits: jobs times latency over slots, in seconds.
    by_exits: f64,
    /// By the rates: the origin that takes longest, and its seconds.
    slowest: Option<(Origin, f64)>,
    latency: Duration,
}

impl Floor {
    /// Of these origins and numbers of jobs, where `slots` requests go at a time and each takes
    /// `latency`.
    pub fn new<'a>(
        jobs: impl Iterator<Item = (&'a Origin, u64)>,
        rules: &Rules,
        slots: f64,
        latency: Duration,
    ) -> Floor {
        let mut all = 0;
        let mut slowest: Option<(&Origin, f64)> = None;
        for (origin, jobs) in jobs {
            all += jobs;
            let allowance = rules.allowance(origin);
            let Some(rate) = allowance.rate else { continue };
            // A rested site gives the burst at once; every further request waits its turn.
            let waiting = jobs.saturating_sub(u64::from(allowance.burst.max(1)));
            let seconds = waiting as f64 / rate;
            // Of two that take as long the name decides, not the order they come in.
            if slowest.is_none_or(|(name, most)| (seconds, name) > (most, origin)) {
                slowest = Some((origin, seconds));
            }
        }
        Floor {
            by_exits: latency.as_secs_f64() * all as f64 / slots.max(1.0),
            slowest: slowest.map(|(origin, seconds)| (origin.clone(), seconds)),
            latency,
        }
    }

    /// The longer of the two, in seconds.
    pub fn seconds(&self) -> f64 {
        let by_rates = self.slowest.as_ref().map_or(0.0, |(_, seconds)| *seconds);
        by_rates.max(self.by_exits)
    }
}

impl fmt::Display for Floor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_exits = span(self.by_exits);
        match &self.slowest {
            Some((origin, by_rate)) if *by_rate > self.by_exits => write!(
                f,
                "at least {}: the rate allowed at {origin} binds, not the exits (they alone: {by_exits})",
                span(*by_rate)
            ),
            slowest => write!(
                f,
                "about {by_exits} where a request takes {}: the exits bind; the rates alone allow {}",
                humantime::format_duration(round(self.latency)),
                span(slowest.as_ref().map_or(0.0, |(_, by_rate)| *by_rate)),
            ),
        }
    }
}

/// Whole seconds, up.
fn span(seconds: f64) -> humantime::FormattedDuration {
    let whole = Duration::try_from_secs_f64(seconds.ceil()).unwrap_or(Duration::MAX);
    humantime::format_duration(whole)
}

/// To the millisecond: a mean has more digits than it knows.
fn round(latency: Duration) -> Duration {
    Duration::from_millis(
        u64::try_from(latency.as_millis())
            .unwrap_or(u64::MAX)
            .max(1),
    )
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::super::settings::OriginRules;
    use super::super::tests::world::rules;
    use super::*;

    fn origin(name: &str) -> Origin {
        Origin::of(&Url::parse(&format!("http://{name}.test/")).unwrap())
    }

    #[test]
    fn the_longer_one_binds_and_is_named() {
        let mut rules = Rules {
            rate: Some(2.0),
            ..rules()
        };
        let own = OriginRules {
            rate: Some(Some(0.1)),
            ..OriginRules::default()
        };
        rules.origins.insert("c.test".to_owned(), own);
        let origins = ["a", "b", "c"].map(origin);
        let floor = |jobs: [u64; 3], slots| {
            let jobs = origins.iter().zip(jobs);
            Floor::new(jobs, &rules, slots, Duration::from_secs(1))
        };
        let text = floor([101, 21, 3], 10.0).to_string();
        assert!(
            text.starts_with("at least 50s: the rate allowed at a.test binds"),
            "{text}"
        );
        let text = floor([101, 21, 8], 10.0).to_string();
        assert!(
            text.starts_with("at least 1m 10s: the rate allowed at c.test binds"),
            "{text}"
        );
        let text = floor([1, 1, 1], 2.0).to_string();
        assert_eq!(
            text,
            "about 2s where a request takes 1s: the exits bind; the rates alone allow 0s"
        );
        assert_eq!(floor([101, 21, 3], 1.0).seconds(), 125.0);
    }
}
