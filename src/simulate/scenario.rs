//! A scenario: exits, origins and jobs as figures, written in a JSON file.
//!
//! Owns the file's form and the mistakes that can be told from the file alone. Leaves the flags
//! under `run` to the command line, which reads them like any other flags of `run`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::expect::Bounds;
use super::figures;
use super::span::Span;
use super::trouble::{Trouble, What};

/// What a scenario file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, one sentence.
    #[serde(default)]
    pub about: String,
    /// Flags of `run`, as the settings file has them.
    #[serde(default)]
    pub run: Map<String, Value>,
    /// Capacities that exits share.
    #[serde(default)]
    pub groups: Vec<GroupSpec>,
    /// The fleet.
    pub exits: Vec<ExitSpec>,
    /// Whom the jobs ask.
    pub origins: Vec<OriginSpec>,
    /// The list.
    pub jobs: Jobs,
    /// Plays the same list another way too, for contrast.
    #[serde(default)]
    pub contrast: Option<Contrast>,
    /// Parts of the run that have figures of their own: name, from, until.
    #[serde(default)]
    pub windows: BTreeMap<String, (Span, Span)>,
    /// What the figures must be, by name.
    #[serde(default)]
    pub expect: BTreeMap<String, Bounds>,
}

/// The other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contrast {
    /// As many workers as the fleet has slots; each takes a job, chooses an exit at random, and
    /// waits at that exit until it has a free slot.
    ChooseThenWait,
}

/// A capacity that exits share: an account, a gateway.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// The cap that we keep.
    pub cap: u32,
    /// Requests that it serves at full speed; with more all slow down in proportion.
    #[serde(default)]
    pub capacity: Option<u32>,
    /// It refuses when more than this many are in flight.
    #[serde(default)]
    pub refuses_above: Option<u32>,
}

/// Exits that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitSpec {
    /// Their name; of several, the name and a number.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// The contract's cap; one for all, or several given out in turn.
    #[serde(default)]
    pub cap: Option<Caps>,
    /// The group that they belong to.
    #[serde(default)]
    pub group: Option<String>,
    /// They have one login; each its own if absent.
    #[serde(default)]
    pub login: Option<String>,
    /// Requests that one serves at full speed; with more it slows down in proportion.
    #[serde(default)]
    pub capacity: Option<u32>,
    /// One refuses when more than this many are in flight …
    #[serde(default)]
    pub refuses_above: Option<u32>,
    /// … in this way.
    #[serde(default = "too_many")]
    pub refusal: What,
    /// What it takes to connect.
    #[serde(default)]
    pub dial: Span,
    /// What an exit adds to the time to first byte.
    #[serde(default)]
    pub latency: Latency,
    /// How `http` targets are asked for.
    #[serde(default)]
    pub route: RouteSpec,
    /// What goes wrong there.
    #[serde(default)]
    pub faults: Vec<Trouble>,
}

/// One cap, or several in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a cap, or a list of caps")]
pub enum Caps {
    /// The same for all.
    One(u32),
    /// The first for the first exit, and so on, again from the start.
    InTurn(Vec<u32>),
}

/// How a request travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteSpec {
    /// CONNECT or SOCKS5: what comes back is the origin's.
    #[default]
    Tunnel,
    /// Absolute-form: the exit may answer in the origin's place.
    Forward,
}

/// A time that varies: log-normal.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Half are faster.
    pub median: Span,
    /// Spread of the logarithm; 0: always the median. Web latencies are near 0.5.
    #[serde(default)]
    pub sigma: f64,
}

/// Origins that are alike.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginSpec {
    /// Their name; of several, the name and a number.
    pub name: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// `http` or `https`.
    #[serde(default)]
    pub scheme: SchemeSpec,
    /// Jobs of each, exactly.
    #[serde(default)]
    pub jobs: Option<u64>,
    /// Else the share of each in the rest of the jobs, against the others' weights.
    #[serde(default = "weight")]
    pub weight: f64,
    /// What we allow ourselves there, as in the settings file.
    #[serde(default)]
    pub rate: Option<Value>,
    /// See `rate`.
    #[serde(default)]
    pub burst: Option<u32>,
    /// See `rate`.
    #[serde(default)]
    pub per_origin: Option<u32>,
    /// Time to first byte that is the origin's.
    #[serde(default)]
    pub latency: Latency,
    /// Time from the first byte to the last.
    #[serde(default)]
    pub body: Span,
    /// Body bytes.
    #[serde(default = "bytes")]
    pub bytes: u64,
    /// What it bears.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// What goes wrong there.
    #[serde(default)]
    pub faults: Vec<Trouble>,
}

/// How URLs begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemeSpec {
    /// Plain.
    #[default]
    Http,
    /// Through a tunnel, always.
    Https,
}

/// A limit that an origin keeps: a bucket of tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Requests per second.
    pub rate: f64,
    /// Requests at once.
    #[serde(default = "one")]
    pub burst: u32,
    /// Whom it counts together.
    #[serde(default)]
    pub per: Per,
    /// What it answers beyond.
    #[serde(default = "too_many_requests")]
    pub status: u16,
    /// `Retry-After` of that answer.
    #[serde(default)]
    pub retry_after: Option<u64>,
}

/// Whom a limit counts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// All requests.
    #[default]
    Origin,
    /// Those through one exit: one address.
    Exit,
}

/// The list of jobs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jobs {
    /// How many; the sum of the origins' own `jobs` if absent.
    #[serde(default)]
    pub count: Option<u64>,
    /// In which order they come.
    #[serde(default)]
    pub order: Order,
    /// Exponent of Zipf's law: the n-th origin has a share of 1/n^zipf, times its weight.
    #[serde(default)]
    pub zipf: f64,
    /// Request method.
    #[serde(default = "get")]
    pub method: String,
}

/// In which order jobs come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// At random.
    #[default]
    Shuffled,
    /// One origin after the other, as they are listed.
    Sorted,
}

/// What is wrong with a scenario, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line of the file, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Scenario {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(text: &str) -> Result<Scenario, Mistake> {
        let scenario: Scenario = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            Mistake {
                line: error.line().max(1),
                message: message.trim_end_matches(&place).to_owned(),
            }
        })?;
        match scenario.mistake() {
            None => Ok(scenario),
            Some((word, message)) => Err(Mistake {
                line: line_of(text, &word),
                message,
            }),
        }
    }

    /// The word to look for and what is wrong with it.
    fn mistake(&self) -> Option<(String, String)> {
        let mut names = BTreeSet::new();
        let exits = self.exits.iter().map(|exit| (&exit.name, exit.count));
        let origins = self
            .origins
            .iter()
            .map(|origin| (&origin.name, origin.count));
        for (name, count) in exits.chain(origins) {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let host = url::Url::parse(&format!("http://{name}.test/"));
            if name.is_empty() || !name.chars().all(plain) || host.is_err() {
                let message = format!("`{name}` is no name: write a-z, 0-9 and -");
                return Some((name.clone(), message));
            }
            if !names.insert(name) {
                return Some((name.clone(), format!("`{name}` is the name of two")));
            }
            if count == 0 || count > 1_000_000 {
                let message = format!("`{name}`: a count is 1 to 1000000");
                return Some((name.clone(), message));
            }
        }
        for exit in &self.exits {
            let group = exit.group.as_ref();
            if let Some(group) = group.filter(|group| self.group(group).is_none()) {
                let message = format!("`{group}` is no group: list it under `groups`");
                return Some((group.clone(), message));
            }
        }
        for name in self.expect.keys() {
            if !figures::is_known(self, name) {
                let message = format!("`{name}` is no figure: {}", figures::KNOWN);
                return Some((name.clone(), message));
            }
        }
        let (word, message) = self.bad_number()?;
        Some((word.to_owned(), message.to_owned()))
    }

    fn bad_number(&self) -> Option<(&str, &'static str)> {
        if self.exits.is_empty() {
            return Some(("exits", "there is no exit"));
        }
        if http::Method::from_bytes(self.jobs.method.as_bytes()).is_err() {
            return Some(("method", "a method is a word, such as GET"));
        }
        let counted = self.origins.iter().all(|origin| origin.jobs.is_some());
        if self.origins.is_empty() || (self.jobs.count.is_none() && !counted) {
            return Some((
                "jobs",
                "say how many jobs: `jobs.count`, or `jobs` of each origin",
            ));
        }
        for origin in &self.origins {
            if !origin.weight.is_finite() || origin.weight < 0.0 {
                return Some(("weight", "a weight is 0 or more"));
            }
            let limit = origin.limit.as_ref();
            if limit.is_some_and(|limit| !limit.rate.is_finite() || limit.rate <= 0.0) {
                return Some(("limit", "the rate of a limit lies above 0"));
            }
        }
        let latencies = self.origins.iter().map(|origin| origin.latency);
        let mut latencies = latencies.chain(self.exits.iter().map(|exit| exit.latency));
        if latencies.any(|latency| !(0.0..=4.0).contains(&latency.sigma)) {
            return Some(("sigma", "sigma is 0 to 4"));
        }
        let troubled = self.exits.iter().any(|exit| !exit.faults.is_empty())
            || self
                .origins
                .iter()
                .any(|origin| !origin.faults.is_empty() || origin.limit.is_some());
        if self.contrast.is_some() && troubled {
            return Some((
                "contrast",
                "a contrast shows waiting alone: leave out faults and limits",
            ));
        }
        None
    }

    /// Index of a group.
    pub(super) fn group(&self, name: &str) -> Option<u32> {
        let at = self.groups.iter().position(|group| group.name == name)?;
        u32::try_from(at).ok()
    }
}

impl Scenario {
    /// The line of a word of the file, for a mistake that was found after reading it.
    pub fn line_of(text: &str, word: &str) -> usize {
        line_of(text, word)
    }
}

fn line_of(text: &str, word: &str) -> usize {
    let quoted = format!("\"{word}\"");
    let before = text.rfind(&quoted).map_or("", |at| &text[..at]);
    before.matches('\n').count() + 1
}

fn one() -> u32 {
    1
}

fn weight() -> f64 {
    1.0
}

fn bytes() -> u64 {
    10_000
}

fn get() -> String {
    "GET".to_owned()
}

fn too_many_requests() -> u16 {
    429
}

fn too_many() -> What {
    What::Fault(
        crate::model::Phase::Handshake,
        crate::model::FaultKind::ConnectStatus(429),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
  "exits": [{"name": "a", "count": 2}],
  "origins": [{"name": "site"}],
  "jobs": {"count": 10},
  "expect": {"ok": 10, "exits.a.ejections": 0}
}"#;

    #[test]
    fn a_scenario_says_what_its_figures_must_be() {
        let scenario = Scenario::parse(GOOD).unwrap();
        assert_eq!(scenario.exits[0].count, 2);
        assert_eq!(scenario.expect.len(), 2);
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (good, bad, line, says) in [
            ("\"count\": 2", "\"cuont\": 2", 2, "unknown field `cuont`"),
            ("\"name\": \"site\"", "\"name\": \"a\"", 3, "name of two"),
            ("exits.a.ejections", "exits.b.ejections", 5, "is no figure"),
            ("\"ok\"", "\"okay\"", 5, "is no figure"),
            ("{\"count\": 10}", "{}", 4, "how many jobs"),
        ] {
            let mistake = Scenario::parse(&GOOD.replace(good, bad)).unwrap_err();
            assert!(mistake.message.contains(says), "{mistake:?}");
            assert_eq!(mistake.line, line, "{mistake:?}");
        }
    }
}
