//! `summary.json`: what the last run that ended said of itself, as far as the page shows it.

use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

use super::open;
use crate::report::OriginRow;

/// The parts of a summary that are not per exit.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::report) struct LastRun {
    pub totals: Totals,
    pub stopped: Option<String>,
    pub never_above_cap: bool,
    pub origins: Vec<OriginRow>,
    pub time: Vec<Share>,
    pub hint: Option<Hint>,
    pub groups: Vec<Group>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::report) struct Totals {
    pub entries: u64,
    pub ok: u64,
    pub failed: u64,
    pub refused: u64,
    pub not_reached: u64,
    pub already_ok: u64,
    pub attempts: u64,
    pub bytes: u64,
    pub ttfb_p50_ms: Option<f64>,
    pub ttfb_p95_ms: Option<f64>,
    pub wall_s: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::report) struct Share {
    pub stage: String,
    pub share: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::report) struct Hint {
    pub knob: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::report) struct Group {
    pub name: String,
    pub cap: u32,
    pub peak: u32,
}

/// `None` if there is none, or none that can be used.
///
/// # Errors
/// The file is there and cannot be read.
pub(super) fn read(path: &Path) -> anyhow::Result<Option<LastRun>> {
    let Some(file) = open(path)? else {
        return Ok(None);
    };
    // It is written whole or not at all; one that is no JSON was made by somebody else.
    Ok(serde_json::from_reader(BufReader::new(file)).ok())
}
