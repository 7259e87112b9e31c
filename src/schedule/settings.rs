//! What the user lets the scheduler do: budgets, retries, patience, and the exits' seats.
//!
//! Owns plain values and the lookup of an origin's own rules. Leaves to `cli` where they come
//! from, including all defaults, and to the parts that read them what they mean.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Codes, Origin};

use super::budget::Allowance;

/// The rules of a run.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Requests per second to one origin, above 0; `None`: unlimited.
    pub rate: Option<f64>,
    /// How many of them may go at once after an idle spell; at least 1.
    pub burst: u32,
    /// Attempts in flight at one origin; `None`: derived from the rate.
    pub per_origin: Option<u32>,
    /// Attempts in flight in all.
    pub max_in_flight: u32,
    /// Tries after the first that failed for the origin's or an unclear reason.
    pub retries: u32,
    /// Redirects followed per job; 0 records the 3xx itself.
    pub max_redirects: u32,
    /// The longest `Retry-After` that is waited out.
    pub max_pause: Duration,
    /// An origin that only fails for this long is given up.
    pub origin_patience: Duration,
    /// A run without usable exit for this long ends.
    pub no_exit_timeout: Duration,
    /// Statuses that count as ok.
    pub accept: Codes,
    /// Other budgets for single origins, by [`Origin::as_str`].
    pub origins: HashMap<String, OriginRules>,
    /// Seed of the run's only random generator: the same seed and events, the same decisions.
    pub seed: u64,
}

/// What is different for one origin; `None`: as for all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OriginRules {
    /// See [`Rules::rate`]; `Some(None)` is unlimited.
    pub rate: Option<Option<f64>>,
    /// See [`Rules::burst`].
    pub burst: Option<u32>,
    /// See [`Rules::per_origin`].
    pub per_origin: Option<u32>,
}

impl Rules {
    /// What is allowed an origin without rules of its own.
    pub(super) fn default_allowance(&self) -> Allowance {
        Allowance {
            rate: self.rate,
            burst: self.burst,
            per_origin: self.per_origin,
        }
    }

    pub(super) fn allowance(&self, origin: &Origin) -> Allowance {
        let own = self.origins.get(origin.as_str()).copied();
        let own = own.unwrap_or_default();
        Allowance {
            rate: own.rate.unwrap_or(self.rate),
            burst: own.burst.unwrap_or(self.burst),
            per_origin: own.per_origin.or(self.per_origin),
        }
    }
}

/// One exit as the scheduler sees it.
#[derive(Clone, Debug)]
pub struct Seat {
    /// Its name in every output.
    pub id: Arc<str>,
    /// What it may carry at best; at least 1.
    pub ceiling: u32,
    /// Index of its group among the groups' caps.
    pub group: Option<u32>,
    /// A hash of its login: exits with the same one share what is learned about it. `None`:
    /// it has no login, and shares nothing.
    pub credentials: Option<u64>,
}

/// Requests that these exits carry at a time: their ceilings, of a group no more than its cap.
pub fn slots(seats: &[Seat], groups: &[u32]) -> u64 {
    let mut grouped = vec![0_u64; groups.len()];
    let mut free = 0_u64;
    for seat in seats {
        match seat.group.and_then(|group| grouped.get_mut(group as usize)) {
            Some(slots) => *slots += u64::from(seat.ceiling),
            None => free += u64::from(seat.ceiling),
        }
    }
    let grouped = grouped.into_iter().zip(groups);
    free + grouped
        .map(|(slots, cap)| slots.min(u64::from(*cap)))
        .sum::<u64>()
}
