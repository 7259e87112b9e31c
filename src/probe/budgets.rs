//! What the sites of the targets allow: each has one budget, whatever target it is asked for.
//!
//! Invariant: no request of a probe goes out without [`Budgets::dispatch`].

use std::collections::BTreeMap;

use super::climb::Target;
use crate::model::{Origin, Time};
use crate::schedule::budget::Budget;

/// See the module's text.
pub(super) struct Budgets {
    sites: Vec<Site>,
    /// By target: its site.
    site_of: Vec<usize>,
}

struct Site {
    budget: Budget,
    in_flight: u32,
    /// Share of the requests that go there.
    share: f64,
    rate: Option<f64>,
}

/// When a target may be asked.
pub(super) enum Room {
    Now,
    At(Time),
    /// Its site's bound in flight is reached.
    AfterAnEnd,
}

impl Budgets {
    /// Of several targets of one site, the first one's allowance holds.
    pub(super) fn new(targets: &[Target]) -> Budgets {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        let mut sites: Vec<Site> = Vec::new();
        let share = 1.0 / targets.len().max(1) as f64;
        let mut site_of = Vec::new();
        for target in targets {
            let origin = Origin::of(&target.url);
            let at = *names.entry(origin.as_str().to_owned()).or_insert_with(|| {
                sites.push(Site {
                    budget: Budget::new(target.allowance),
                    in_flight: 0,
                    share: 0.0,
                    rate: target.allowance.rate,
                });
                sites.len() - 1
            });
            sites[at].share += share;
            site_of.push(at);
        }
        Budgets { sites, site_of }
    }

    /// Requests a second that they allow; `None`: unlimited. Targets are asked in turn, so the
    /// tightest budget for its share sets the pace.
    pub(super) fn pace(&self) -> Option<f64> {
        let paces = self
            .sites
            .iter()
            .filter_map(|site| Some(site.rate? / site.share));
        paces.min_by(f64::total_cmp)
    }

    /// When this target may be asked.
    pub(super) fn room(&self, target: usize, now: Time) -> Room {
        let site = &self.sites[self.site_of[target]];
        if site.in_flight >= site.budget.bound() {
            return Room::AfterAnEnd;
        }
        match site.budget.ready_at() {
            at if at > now => Room::At(at),
            _ => Room::Now,
        }
    }

    /// It is asked now.
    pub(super) fn dispatch(&mut self, target: usize, now: Time) {
        let site = &mut self.sites[self.site_of[target]];
        site.budget.dispatch(now);
        site.in_flight += 1;
    }

    /// A request for it has ended.
    pub(super) fn landed(&mut self, target: usize) {
        self.sites[self.site_of[target]].in_flight -= 1;
    }

    /// No request is under way any more.
    pub(super) fn all_landed(&mut self) {
        for site in &mut self.sites {
            site.in_flight = 0;
        }
    }
}
