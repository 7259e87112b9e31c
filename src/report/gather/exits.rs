//! `exits.csv`: one line per exit as the last run left it.

use std::path::Path;

use serde::Deserialize;

use super::open;

/// An exit's line; columns that a file does not have are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(in crate::report) struct ExitLine {
    pub id: String,
    pub tier: String,
    pub group: String,
    pub cap: u32,
    pub peak: u32,
    pub peak_sockets: u32,
    pub attempts: u64,
    pub ok: u64,
    pub faults: u64,
    pub status_429: u64,
    pub bytes: u64,
    pub ttfb_p50_ms: Option<f64>,
    pub ttfb_p95_ms: Option<f64>,
    pub state: String,
    pub reason: String,
    pub cap_now: u32,
}

/// The lines, and how many were none.
///
/// # Errors
/// The file is there and cannot be read.
pub(super) fn read(path: &Path) -> anyhow::Result<(Vec<ExitLine>, u64)> {
    let Some(file) = open(path)? else {
        return Ok((Vec::new(), 0));
    };
    let mut lines = Vec::new();
    let mut bad = 0;
    for line in csv::Reader::from_reader(file).into_deserialize() {
        match line {
            Ok(line) => lines.push(line),
            Err(error) if error.is_io_error() => return Err(error.into()),
            Err(_) => bad += 1,
        }
    }
    Ok((lines, bad))
}
