//! The simulated origins: what they bear, and what they answer beyond it.
//!
//! Owns each origin's own limit, a bucket of tokens that fills with time. It is theirs and not
//! ours: a run that keeps its budget may still be too fast for it.

use std::collections::HashMap;

use http::HeaderValue;
use http::header::RETRY_AFTER;
use serde_json::Value;
use url::Url;

use super::scenario::{Limit, OriginSpec, Per, Scenario, SchemeSpec};
use crate::model::{Head, Origin, Time};

/// One origin.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    /// Index of its class among the scenario's origins.
    pub(super) class: usize,
}

/// All of them, with their classes.
#[derive(Debug)]
pub(super) struct Origins<'a> {
    pub(super) all: Vec<Host>,
    classes: &'a [OriginSpec],
    /// By origin, and by exit where the limit is one per address.
    buckets: HashMap<(u32, u32), Bucket>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Time,
}

impl Host {
    /// As budgets know it.
    pub(super) fn origin(&self) -> Origin {
        let url = Url::parse(&format!("http://{}/", self.name));
        // Names are a-z, 0-9 and -, so this is a URL.
        url.map_or_else(|_| unreachable!("{}", self.name), |url| Origin::of(&url))
    }
}

impl<'a> Origins<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Origins<'a> {
        let mut all = Vec::new();
        for (class, spec) in scenario.origins.iter().enumerate() {
            for number in 0..spec.count {
                let name = match spec.count {
                    1 => format!("{}.test", spec.name),
                    _ => format!("{}-{}.test", spec.name, number + 1),
                };
                all.push(Host { name, class });
            }
        }
        Origins {
            all,
            classes: &scenario.origins,
            buckets: HashMap::new(),
        }
    }

    /// What the origin's class is like.
    pub(super) fn spec(&self, host: usize) -> &'a OriginSpec {
        &self.classes[self.all[host].class]
    }

    /// The URL of a job there.
    pub(super) fn url(&self, host: usize, line: u64) -> String {
        let scheme = match self.spec(host).scheme {
            SchemeSpec::Http => "http",
            SchemeSpec::Https => "https",
        };
        format!("{scheme}://{}/{line}", self.all[host].name)
    }

    /// A request arrives: what the origin's limit answers, if it is one too many.
    pub(super) fn arrive(&mut self, host: usize, exit: usize, now: Time) -> Option<Head> {
        let limit = self.spec(host).limit.as_ref()?;
        let exit = match limit.per {
            Per::Origin => u32::MAX,
            Per::Exit => exit as u32,
        };
        let full = Bucket {
            tokens: f64::from(limit.burst),
            at: now,
        };
        let bucket = self.buckets.entry((host as u32, exit)).or_insert(full);
        bucket.fill(limit, now);
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            return None;
        }
        let mut head = Head {
            status: limit.status,
            headers: http::HeaderMap::new(),
        };
        if let Some(seconds) = limit.retry_after {
            head.headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        Some(head)
    }
}

/// What we allow ourselves at one origin, as the settings file has it.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Where.
    pub origin: Origin,
    /// A number or text.
    pub rate: Option<Value>,
    /// At once.
    pub burst: Option<u32>,
    /// In flight.
    pub per_origin: Option<u32>,
}

impl Scenario {
    /// Origins with a budget of their own.
    pub fn budgets(&self) -> Vec<Budget> {
        let origins = Origins::new(self);
        let budgets = origins.all.into_iter().map(|host| {
            let spec = &self.origins[host.class];
            Budget {
                origin: host.origin(),
                rate: spec.rate.clone(),
                burst: spec.burst,
                per_origin: spec.per_origin,
            }
        });
        let own = |b: &Budget| b.rate.is_some() || b.burst.is_some() || b.per_origin.is_some();
        budgets.filter(own).collect()
    }
}

impl Bucket {
    fn fill(&mut self, limit: &Limit, now: Time) {
        let more = (now - self.at).as_secs_f64() * limit.rate;
        self.tokens = (self.tokens + more).min(f64::from(limit.burst));
        self.at = now;
    }
}
