//! A scenario: exits, origins and jobs as figures, written in a JSON file.
//!
//! Owns the file's form. Leaves to `mistakes` what cannot be, and the flags under `run` to the
//! command line, which reads them like any other flags of `run`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::expect::Bounds;
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
