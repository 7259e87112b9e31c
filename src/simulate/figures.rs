//! The figures of a simulation, by name: what scenarios say their expectations about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scenario::Scenario;
use crate::model::ErrorKind;

/// What `expect` can name, for a message.
pub(super) const KNOWN: &str = "write a total such as ok, failed, attempts, makespan_s, utilisation; \
     exits.NAME.x such as exits.NAME.ejections; origins.NAME.x such as origins.NAME.requests; \
     failures.KIND; windows.NAME.busy";

/// Of the whole run.
pub(super) const TOTALS: [&str; 17] = [
    "jobs",
    "ok",
    "failed",
    "attempts",
    // Of them, those cut while they waited for the first answer of their exit.
    "cut",
    // Until the last job's end, and the least it can be.
    "makespan_s",
    "ideal_s",
    "over_ideal",
    // Slot-seconds in use, of all there are; and its standard deviation among the exits.
    "utilisation",
    "utilisation_spread",
    "ejections",
    "most_out",
    "panics",
    // 1 if the run ended for want of exits.
    "no_exit",
    // With `contrast`: its time, and how much longer than ours.
    "contrast.makespan_s",
    "contrast.over_ideal",
    "contrast.loss",
];

/// Of a class of exits.
pub(super) const EXITS: [&str; 12] = [
    "attempts",
    "most_attempts",
    "cut",
    "ok",
    "faults",
    "ejections",
    "ejections_per_attempt",
    // How many of them were ever ejected or evicted, and after how many attempts at the latest.
    "ejected",
    "ejected_after",
    "evicted",
    "healthy",
    "peak",
];

/// Of a class of origins.
pub(super) const ORIGINS: [&str; 6] = ["ok", "failed", "requests", "refused", "pauses", "given_up"];

/// Of a part of the run.
pub(super) const WINDOWS: [&str; 3] = ["busy", "starts_per_s", "ok_per_s"];

/// Whether a scenario can have a figure of this name.
pub(super) fn is_known(scenario: &Scenario, name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        ["exits", class, figure] => {
            scenario.exits.iter().any(|exit| exit.name == *class) && EXITS.contains(figure)
        }
        ["origins", class, figure] => {
            scenario.origins.iter().any(|origin| origin.name == *class) && ORIGINS.contains(figure)
        }
        ["windows", window, figure] => {
            scenario.windows.contains_key(*window) && WINDOWS.contains(figure)
        }
        ["failures", kind] => {
            serde_json::from_value::<ErrorKind>(Value::String((*kind).to_owned())).is_ok()
        }
        ["contrast", _] => scenario.contrast.is_some() && TOTALS.contains(&name),
        _ => TOTALS.contains(&name),
    }
}

/// All figures of one simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// A figure; one that nothing was counted for is 0.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }

    pub(super) fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }

    /// The figures of one class, in the order of its names.
    pub(super) fn class<const N: usize>(
        &mut self,
        prefix: &str,
        names: [&str; N],
        values: [f64; N],
    ) {
        for (name, value) in names.into_iter().zip(values) {
            self.set(format!("{prefix}.{name}"), value);
        }
    }
}
