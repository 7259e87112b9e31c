//! The run's own time line: nanoseconds since the run began.
//!
//! Rules take a [`Time`] as an argument and never read a clock, so a test or a
//! simulation can hand them any instant. Only the engine (and the lab) makes a [`Clock`].

use std::ops::{Add, Sub};
use std::time::{Duration, Instant};

/// An instant of the run, in nanoseconds since its start. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every instant a run reaches (584 years).
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// The instant `millis` milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1_000_000))
    }

    /// The instant `secs` seconds after the start.
    pub const fn from_secs(secs: u64) -> Time {
        Time(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - duration`, not before the start.
    pub fn back(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(duration)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanos(duration)))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;
    /// The span from `earlier` to `self`; zero if `earlier` is the later one.
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Turns the machine's clocks into [`Time`] and wall time. Cheap to copy; made once per run.
///
/// Wall time is the wall clock at the start plus monotonic time since, so a clock that is
/// set during the run moves nothing.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    start_unix: Duration,
}

impl Clock {
    /// A clock whose [`Time::ZERO`] is `start`, when it was `start_unix` after the Unix epoch.
    pub fn new(start: Instant, start_unix: Duration) -> Clock {
        Clock { start, start_unix }
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        Time(nanos(self.start.elapsed()))
    }

    /// Wall time of `time`, since the Unix epoch.
    pub fn unix(&self, time: Time) -> Duration {
        self.start_unix + Duration::from_nanos(time.0)
    }

    /// The machine instant of `time`, for timers. Far futures are cut to a year.
    pub fn instant(&self, time: Time) -> Instant {
        const YEAR: u64 = 365 * 24 * 3600 * 1_000_000_000;
        self.start + Duration::from_nanos(time.0.min(YEAR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::from_secs(1) - Time::from_secs(2), Duration::ZERO);
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::from_secs(1) + Duration::MAX, Time::NEVER);
        assert_eq!(Time::from_secs(1).back(Duration::from_secs(5)), Time::ZERO);
    }
}
