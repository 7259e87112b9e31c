//! The check of budgets: in any window of length w an origin gets at most `burst + rate·w`
//! requests, those left out that certainly never reached it.
//!
//! Knows nothing of the scheduler's budget: it keeps the instants of all requests that were
//! delivered and looks at them when the run is over.

use crate::model::{Origin, Time};
use crate::schedule::Rules;

/// What may be asked of an origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// Per second; `None`: any number.
    pub(super) rate: Option<f64>,
    pub(super) burst: u32,
    /// In flight at once.
    pub(super) bound: u32,
}

impl Allowed {
    /// From the rules as the user gave them, by a reckoning of its own.
    pub(super) fn of(rules: &Rules, origin: &Origin) -> Allowed {
        let own = rules
            .origins
            .get(origin.as_str())
            .copied()
            .unwrap_or_default();
        let rate = own.rate.unwrap_or(rules.rate);
        let bound = own.per_origin.or(rules.per_origin);
        Allowed {
            rate,
            burst: own.burst.unwrap_or(rules.burst).max(1),
            bound: bound.unwrap_or_else(|| {
                rate.map_or(u32::MAX, |rate| ((4.0 * rate).ceil() as u32).max(2))
            }),
        }
    }
}

/// How full the fullest window is that ends at the last request: the larger of "this one
/// alone" and "the one before, less what time gave back, and this one".
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    level: f64,
    last: Time,
}

impl Window {
    /// How full it would be with a request at `now`.
    pub(super) fn with_one_at(&self, now: Time, rate: f64) -> f64 {
        1.0 + (self.level - rate * (now - self.last).as_secs_f64()).max(0.0)
    }

    /// A request at `now`.
    pub(super) fn take(&mut self, now: Time, rate: f64) {
        self.level = self.with_one_at(now, rate);
        self.last = now;
    }
}

/// Checks all requests, given as origin and instant in any order. The answer names the first
/// origin that was asked too fast and when.
pub(super) fn too_fast(
    requests: &mut [(u32, Time)],
    allowed: impl Fn(u32) -> Allowed,
) -> Option<(u32, Time)> {
    requests.sort_unstable();
    let of_one = requests.chunk_by(|one, two| one.0 == two.0);
    of_one.into_iter().find_map(|requests| {
        let host = requests.first()?.0;
        let Allowed { rate, burst, .. } = allowed(host);
        let (rate, most) = (rate?, f64::from(burst) + 1e-6);
        let mut window = Window::default();
        requests.iter().find_map(|&(_, at)| {
            window.take(at, rate);
            (window.level > most).then_some((host, at))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(millis: &[u64], rate: f64, burst: u32) -> Option<Time> {
        let allowed = |_| Allowed {
            rate: Some(rate),
            burst,
            bound: 1,
        };
        let mut requests: Vec<_> = millis
            .iter()
            .map(|&at| (0, Time::from_millis(at)))
            .collect();
        too_fast(&mut requests, allowed).map(|(_, at)| at)
    }

    #[test]
    fn even_spacing_and_a_burst_after_rest_are_allowed() {
        assert_eq!(check(&[0, 500, 1000, 1500], 2.0, 1), None);
        assert_eq!(check(&[0, 0, 0, 500, 1000], 2.0, 3), None);
        assert_eq!(check(&[0, 0, 5000, 5000], 2.0, 2), None);
    }

    #[test]
    fn one_too_many_in_some_window_is_found() {
        assert_eq!(check(&[0, 500, 999], 2.0, 1), Some(Time::from_millis(999)));
        assert_eq!(check(&[0, 0, 0, 499], 2.0, 3), Some(Time::from_millis(499)));
        let window = [0, 400, 800, 1200];
        assert_eq!(check(&window, 2.0, 1), Some(Time::from_millis(400)));
    }
}
