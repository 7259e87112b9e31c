//! Curves of a probe, from `probe.json` if a run has left one.
//!
//! Any object with `levels` is a curve, wherever it stands: each level has `concurrency`,
//! `median_ms` and `goodput`, and what stands beside `levels` (`tier`, `region`, `exit`,
//! `per_exit`) names it. What the probe found out besides is not shown.

use std::io::BufReader;
use std::path::Path;

use serde_json::{Map, Value};

use super::open;

/// Curves shown.
const MOST: usize = 12;
/// Levels read of each.
const LEVELS: usize = 32;

/// How an exit did at each concurrency.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Curve {
    pub name: String,
    /// What the probe says it carries.
    pub per_exit: Option<u64>,
    pub levels: Vec<Level>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::report) struct Level {
    pub concurrency: u64,
    pub median_ms: f64,
    /// Good answers per second.
    pub goodput: f64,
}

/// # Errors
/// The file is there and cannot be read.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Curve>> {
    let mut curves = Vec::new();
    if let Some(file) = open(path)?
        && let Ok(value) = serde_json::from_reader(BufReader::new(file))
    {
        find(&value, &mut curves);
    }
    Ok(curves)
}

fn find(value: &Value, curves: &mut Vec<Curve>) {
    match value {
        Value::Object(object) => {
            if curves.len() < MOST
                && let Some(Value::Array(levels)) = object.get("levels")
            {
                curves.extend(curve(object, levels));
            }
            object.values().for_each(|value| find(value, curves));
        }
        Value::Array(values) => values.iter().for_each(|value| find(value, curves)),
        _ => {}
    }
}

fn curve(object: &Map<String, Value>, levels: &[Value]) -> Option<Curve> {
    let level = |value: &Value| {
        Some(Level {
            concurrency: value.get("concurrency")?.as_u64().filter(|n| *n > 0)?,
            median_ms: value.get("median_ms")?.as_f64()?,
            goodput: value.get("goodput")?.as_f64()?,
        })
    };
    let levels: Vec<Level> = levels.iter().filter_map(level).take(LEVELS).collect();
    let names = ["tier", "region", "group", "exit"];
    let names = names.iter().filter_map(|name| object.get(*name)?.as_str());
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    (levels.len() >= 2).then(|| Curve {
        name: names.join(" · "),
        per_exit: object.get("per_exit").and_then(Value::as_u64),
        levels,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_found_wherever_it_stands_and_what_is_none_is_passed_over() {
        let text = r#"{"date": "x", "results": [
            {"tier": "static", "region": "de", "per_exit": 4, "levels": [
                {"concurrency": 1, "median_ms": 100.0, "goodput": 10.0},
                {"concurrency": 2, "median_ms": 101, "goodput": 19.5},
                {"concurrency": 4}]},
            {"tier": "bad", "levels": []}, {"levels": 3}]}"#;
        let mut curves = Vec::new();
        find(&serde_json::from_str(text).unwrap(), &mut curves);
        assert_eq!(curves.len(), 1);
        assert_eq!(curves[0].name, "static · de");
        assert_eq!((curves[0].per_exit, curves[0].levels.len()), (Some(4), 2));
    }
}
