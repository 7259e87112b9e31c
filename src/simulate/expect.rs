//! What a scenario says its figures must be, and whether they are.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::figures::Figures;

/// What one figure must be: exactly a number, or between two.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "a number, or {\"at_least\": …, \"at_most\": …}")]
pub enum Bounds {
    /// This.
    Exactly(f64),
    /// Not less, not more.
    Between(Between),
}

/// An absent bound binds nothing.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// Not less.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Not more.
    #[serde(default)]
    pub at_most: Option<f64>,
}

/// One expectation and what came.
#[derive(Clone, Debug)]
pub struct Line {
    /// The figure's name.
    pub name: String,
    /// What it must be.
    pub wanted: Bounds,
    /// What it is.
    pub got: f64,
}

/// Holds the figures against what is expected.
pub fn judge(expect: &BTreeMap<String, Bounds>, figures: &Figures) -> Vec<Line> {
    let line = |(name, wanted): (&String, &Bounds)| Line {
        name: name.clone(),
        wanted: *wanted,
        got: figures.get(name),
    };
    expect.iter().map(line).collect()
}

impl Line {
    /// Whether the figure is what it must be.
    pub fn is_met(&self) -> bool {
        match self.wanted {
            Bounds::Exactly(wanted) => self.got == wanted,
            Bounds::Between(Between { at_least, at_most }) => {
                at_least.is_none_or(|least| self.got >= least)
                    && at_most.is_none_or(|most| self.got <= most)
            }
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_met() { "PASS" } else { "FAIL" };
        let got = (self.got * 1e4).round() / 1e4;
        write!(
            f,
            "{verdict}  {} = {got}, wanted {}",
            self.name, self.wanted
        )
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bounds::Exactly(wanted) => write!(f, "{wanted}"),
            Bounds::Between(between) => match (between.at_least, between.at_most) {
                (Some(least), Some(most)) => write!(f, "{least} to {most}"),
                (Some(least), None) => write!(f, "at least {least}"),
                (None, Some(most)) => write!(f, "at most {most}"),
                (None, None) => f.write_str("anything"),
            },
        }
    }
}
