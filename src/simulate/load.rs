//! The list of jobs: which origin each line asks, in the scenario's order.
//!
//! Owns four bytes a line; the jobs themselves are made when the scheduler wants them.

use http::Method;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use url::Url;

use super::origins::Origins;
use super::scenario::{Order, Scenario};
use crate::model::Job;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Load {
    /// Index of the origin of each line.
    hosts: Vec<u32>,
    method: Method,
    next: usize,
}

impl Load {
    pub(super) fn new(scenario: &Scenario, origins: &Origins<'_>, rng: &mut impl Rng) -> Load {
        let counts = counts(scenario, origins, rng);
        let mut hosts = Vec::with_capacity(counts.iter().sum::<u64>() as usize);
        for (host, &count) in (0..).zip(&counts) {
            hosts.extend(std::iter::repeat_n(host, count as usize));
        }
        if scenario.jobs.order == Order::Shuffled {
            hosts.shuffle(rng);
        }
        Load {
            hosts,
            method: scenario.jobs.method.parse().unwrap_or(Method::GET),
            next: 0,
        }
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// The origin of a line.
    pub(super) fn host(&self, line: u64) -> usize {
        self.hosts[line as usize - 1] as usize
    }

    /// Jobs of each origin.
    pub(super) fn by_host(&self, hosts: usize) -> Vec<u64> {
        let mut counts = vec![0; hosts];
        for &host in &self.hosts {
            counts[host as usize] += 1;
        }
        counts
    }

    /// Whether the list has been read to its end.
    pub(super) fn is_read(&self) -> bool {
        self.next == self.hosts.len()
    }

    /// The next line; `None` at the end.
    pub(super) fn read(&mut self) -> Option<u64> {
        self.hosts.get(self.next)?;
        self.next += 1;
        Some(self.next as u64)
    }

    /// The job of a line.
    pub(super) fn job(&self, line: u64, origins: &Origins<'_>) -> Option<Job> {
        let host = self.host(line);
        Some(Job {
            id: line.to_string().into(),
            id_given: false,
            line,
            method: self.method.clone(),
            // Names are a-z, 0-9 and -, so this is a URL.
            url: Url::parse(&origins.url(host, line)).ok()?,
            listed: None,
            authorization: None,
            headers: None,
            body: None,
            extra: None,
        })
    }
}

/// Jobs of each origin: as stated, or by weight. What is left after rounding down goes to
/// origins at random.
fn counts(scenario: &Scenario, origins: &Origins<'_>, rng: &mut impl Rng) -> Vec<u64> {
    let own = |host: usize| origins.spec(host).jobs;
    let hosts = 0..origins.all.len();
    let stated: u64 = hosts.clone().filter_map(own).sum();
    let mut counts: Vec<u64> = hosts.clone().map(|host| own(host).unwrap_or(0)).collect();
    let rest = scenario.jobs.count.unwrap_or(stated).saturating_sub(stated);
    let sharing: Vec<usize> = hosts.filter(|&host| own(host).is_none()).collect();
    let weight = |(rank, &host): (usize, &usize)| {
        origins.spec(host).weight / (rank as f64 + 1.0).powf(scenario.jobs.zipf)
    };
    let weights: Vec<f64> = sharing.iter().enumerate().map(weight).collect();
    let sum: f64 = weights.iter().sum();
    if sum <= 0.0 {
        return counts;
    }
    let mut left = rest;
    for (&host, weight) in sharing.iter().zip(&weights) {
        let share = (rest as f64 * weight / sum) as u64;
        counts[host] = share.min(left);
        left -= counts[host];
    }
    for _ in 0..left {
        counts[sharing[rng.random_range(0..sharing.len())]] += 1;
    }
    counts
}
