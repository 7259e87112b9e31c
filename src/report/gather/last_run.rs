//! `summary.json`: what the last run that ended said of itself, as far as the page shows it.

use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

use super::open;
use crate::report::{GroupRow, OriginRow, Totals};

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
    pub groups: Vec<GroupRow>,
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
