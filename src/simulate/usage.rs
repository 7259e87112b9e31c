//! How busy the fleet was, second by second.

use std::time::Duration;

use super::span::Span;
use crate::model::Time;

/// Seconds that are told apart; all after them count as one.
const SECONDS: u64 = 500_000;

/// Sums over each second of virtual time.
#[derive(Debug, Default)]
pub(super) struct Usage {
    at: Time,
    in_flight: u32,
    seconds: Vec<Second>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    /// Slots in use times seconds.
    busy: f64,
    started: u32,
    ok: u32,
}

/// What a part of the run was like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Slots in use, on average.
    pub(super) in_flight: f64,
    /// Attempts started, per second.
    pub(super) started: f64,
    /// Jobs that ended ok, per second.
    pub(super) ok: f64,
}

impl Usage {
    /// An attempt started.
    pub(super) fn started(&mut self, now: Time) {
        self.pass(now);
        self.in_flight += 1;
        self.second(now).started += 1;
    }

    /// An attempt has ended.
    pub(super) fn landed(&mut self, now: Time) {
        self.pass(now);
        self.in_flight -= 1;
    }

    /// A job ended ok.
    pub(super) fn ok(&mut self, now: Time) {
        self.second(now).ok += 1;
    }

    /// The part between two instants, in whole seconds, as far as the run went.
    pub(super) fn part(&self, from: Span, until: Span) -> Part {
        let index = |span: Span| usize::try_from(span.0.as_secs()).unwrap_or(usize::MAX);
        let until = index(until).min(self.seconds.len());
        let part = self.seconds.get(index(from)..until).unwrap_or_default();
        let length = (part.len() as f64).max(1.0);
        Part {
            in_flight: part.iter().map(|second| second.busy).sum::<f64>() / length,
            started: part
                .iter()
                .map(|second| f64::from(second.started))
                .sum::<f64>()
                / length,
            ok: part.iter().map(|second| f64::from(second.ok)).sum::<f64>() / length,
        }
    }

    fn pass(&mut self, now: Time) {
        let slots = f64::from(self.in_flight);
        while self.at < now {
            let whole =
                Time::from_secs(self.at.as_nanos() / 1_000_000_000) + Duration::from_secs(1);
            let end = if self.is_last(self.at) {
                now
            } else {
                whole.min(now)
            };
            let span = (end - self.at).as_secs_f64();
            self.second(self.at).busy += slots * span;
            self.at = end;
        }
    }

    fn is_last(&self, at: Time) -> bool {
        at.as_nanos() / 1_000_000_000 >= SECONDS
    }

    fn second(&mut self, at: Time) -> &mut Second {
        let index = (at.as_nanos() / 1_000_000_000).min(SECONDS) as usize;
        if self.seconds.len() <= index {
            self.seconds.resize(index + 1, Second::default());
        }
        &mut self.seconds[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_in_use_are_averaged_over_whole_seconds() {
        let mut usage = Usage::default();
        usage.started(Time::from_millis(500));
        usage.started(Time::from_millis(1000));
        usage.landed(Time::from_millis(2500));
        usage.landed(Time::from_millis(3000));
        usage.pass(Time::from_secs(4));
        let span = |secs| Span(Duration::from_secs(secs));
        let busy = |from, until| usage.part(span(from), span(until)).in_flight;
        assert_eq!(busy(0, 1), 0.5);
        assert_eq!(busy(1, 2), 2.0);
        assert_eq!(busy(2, 3), 1.5);
        assert_eq!(busy(1, 3), 1.75);
        assert_eq!(busy(9, 12), 0.0, "after the end");
    }
}
