//! Which origins hold their jobs back longest, for people who watch a run.
//!
//! A look at every origin would cost more than the run's own decisions, so each look takes in
//! a bounded stretch of them, in turn, and measures the best of the looks before anew. Decides
//! nothing. Invariant: what is told of an origin is true now; only another one may be missing,
//! until its turn comes.

use std::cmp::Reverse;
use std::time::Duration;

use crate::model::{Origin, Time};

use super::frontier::{Frontier, SiteIx};
use super::site::Site;

/// Origins of one look.
const STRETCH: usize = 1024;
/// How many are told.
const TOLD: usize = 3;

/// An origin whose jobs wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// Which one.
    pub origin: Origin,
    /// Jobs that wait.
    pub jobs: usize,
    /// Until the last of them may start, if nothing changes.
    pub wait: Duration,
    /// What holds them back: `rate`, `paused`, `failing` or `in flight`.
    pub why: &'static str,
}

/// Where the looks are.
#[derive(Debug, Default)]
pub(super) struct Looks {
    next: usize,
    best: Vec<SiteIx>,
}

impl Looks {
    /// The origins that hold their jobs back longest, the longest first. O(1) in origins.
    pub(super) fn look(&mut self, frontier: &Frontier, now: Time) -> Vec<HeldBack> {
        let stretch = frontier.stretch(self.next, STRETCH);
        let mut sites = std::mem::take(&mut self.best);
        let before = sites.len();
        sites.extend(stretch);
        self.next = match sites.len() - before {
            STRETCH => self.next + STRETCH,
            _ => 0,
        };
        sites.sort_unstable();
        sites.dedup();
        let held = |site: SiteIx| Some((site, held_back(frontier.site(site), now)?));
        let mut all: Vec<(SiteIx, HeldBack)> = sites.into_iter().filter_map(held).collect();
        all.sort_by_key(|(_, held)| Reverse(held.wait));
        all.truncate(TOLD);
        self.best = all.iter().map(|(site, _)| *site).collect();
        all.into_iter().map(|(_, held)| held).collect()
    }
}

fn held_back(site: &Site, now: Time) -> Option<HeldBack> {
    let jobs = site.jobs() as usize;
    let opens = site.breaker.paused_until();
    let wait = site.budget.drained_in(jobs, now).max(opens - now);
    if jobs == 0 || site.closed.is_some() || wait.is_zero() {
        return None;
    }
    let why = if site.budget.paused_until() > now {
        "paused"
    } else if opens > now {
        "failing"
    } else if site.in_flight >= site.budget.bound() {
        "in flight"
    } else {
        "rate"
    };
    Some(HeldBack {
        origin: site.origin.clone(),
        jobs,
        wait,
        why,
    })
}
