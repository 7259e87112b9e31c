//! The simulated exits and the gateways that they share.
//!
//! Owns what they carry at the moment and how that slows them down or makes them refuse.
//! Leaves to `fate` what becomes of an attempt.

use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, RngExt};

use super::scenario::{Caps, ExitSpec, Latency, RouteSpec, Scenario};
use super::trouble::{Trouble, What};

/// One exit.
#[derive(Debug)]
pub(super) struct Exit {
    pub(super) id: Arc<str>,
    /// Index of its class among the scenario's exits.
    pub(super) class: usize,
    /// The cap that we keep.
    pub(super) cap: u32,
    pub(super) group: Option<u32>,
    in_flight: u32,
}

/// A shared capacity.
#[derive(Debug)]
struct Gateway {
    capacity: u32,
    refuses_above: u32,
    in_flight: u32,
}

/// All of them, with their classes.
#[derive(Debug)]
pub(super) struct Exits<'a> {
    pub(super) all: Vec<Exit>,
    classes: &'a [ExitSpec],
    gateways: Vec<Gateway>,
}

impl<'a> Exits<'a> {
    /// `per_exit`: the cap of exits that have none of their own.
    pub(super) fn new(scenario: &'a Scenario, per_exit: u32) -> Exits<'a> {
        let mut all = Vec::new();
        for (class, spec) in scenario.exits.iter().enumerate() {
            let group = spec.group.as_ref().and_then(|name| scenario.group(name));
            for number in 0..spec.count {
                let id = match spec.count {
                    1 => spec.name.clone(),
                    _ => format!("{}-{}", spec.name, number + 1),
                };
                all.push(Exit {
                    id: id.into(),
                    class,
                    cap: cap(spec, number).unwrap_or(per_exit).max(1),
                    group,
                    in_flight: 0,
                });
            }
        }
        let gateway = |group: &super::scenario::GroupSpec| Gateway {
            capacity: group.capacity.unwrap_or(u32::MAX),
            refuses_above: group.refuses_above.unwrap_or(u32::MAX),
            in_flight: 0,
        };
        Exits {
            all,
            classes: &scenario.exits,
            gateways: scenario.groups.iter().map(gateway).collect(),
        }
    }

    /// What the exit's class is like.
    pub(super) fn spec(&self, exit: usize) -> &'a ExitSpec {
        &self.classes[self.all[exit].class]
    }

    /// An attempt begins.
    pub(super) fn enter(&mut self, exit: usize) {
        self.all[exit].in_flight += 1;
        if let Some(group) = self.all[exit].group {
            self.gateways[group as usize].in_flight += 1;
        }
    }

    /// An attempt has ended.
    pub(super) fn leave(&mut self, exit: usize) {
        self.all[exit].in_flight -= 1;
        if let Some(group) = self.all[exit].group {
            self.gateways[group as usize].in_flight -= 1;
        }
    }

    /// How it refuses the attempt that has just begun, if it does.
    pub(super) fn refusal(&self, exit: usize) -> Option<What> {
        let spec = self.spec(exit);
        let own = self.all[exit].in_flight > spec.refuses_above.unwrap_or(u32::MAX);
        let shared = self
            .gateway(exit)
            .is_some_and(|gateway| gateway.in_flight > gateway.refuses_above);
        (own || shared).then_some(spec.refusal)
    }

    /// How much slower than alone it is now, at least 1.
    pub(super) fn slowdown(&self, exit: usize) -> f64 {
        let own = over(
            self.all[exit].in_flight,
            self.spec(exit).capacity.unwrap_or(u32::MAX),
        );
        let shared = self
            .gateway(exit)
            .map_or(1.0, |gateway| over(gateway.in_flight, gateway.capacity));
        own.max(shared)
    }

    /// Its faults.
    pub(super) fn faults(&self, exit: usize) -> &'a [Trouble] {
        &self.spec(exit).faults
    }

    /// Whether `http` targets travel in absolute-form.
    pub(super) fn forwards(&self, exit: usize) -> bool {
        self.spec(exit).route == RouteSpec::Forward
    }

    fn gateway(&self, exit: usize) -> Option<&Gateway> {
        let group = self.all[exit].group?;
        self.gateways.get(group as usize)
    }
}

/// The contract's cap of the exit with this number in its class.
fn cap(spec: &ExitSpec, number: u32) -> Option<u32> {
    match spec.cap.as_ref()? {
        Caps::One(cap) => Some(*cap),
        Caps::InTurn(caps) => caps.get(number as usize % caps.len().max(1)).copied(),
    }
}

fn over(in_flight: u32, capacity: u32) -> f64 {
    (f64::from(in_flight) / f64::from(capacity.max(1))).max(1.0)
}

impl Latency {
    /// One of many.
    pub(super) fn draw(&self, rng: &mut impl Rng) -> Duration {
        if self.sigma == 0.0 {
            return self.median.0;
        }
        self.median.0.mul_f64((self.sigma * normal(rng)).exp())
    }

    /// Their mean, in seconds.
    pub(super) fn mean(&self) -> f64 {
        self.median.0.as_secs_f64() * (self.sigma * self.sigma / 2.0).exp()
    }
}

/// A standard normal draw (Box and Muller 1958).
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
