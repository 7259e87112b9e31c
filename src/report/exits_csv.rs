//! `exits.csv`: a row per exit, as a run writes it at its end and a report reads it again.

use std::fs::File;

use serde::{Deserialize, Serialize};

/// An exit's row; the field order is the column order. A column that a file does not have is
/// empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExitRow {
    /// The exit's id.
    pub id: String,
    /// Its tier.
    pub tier: Option<String>,
    /// Its group.
    pub group: Option<String>,
    /// The ceiling.
    pub cap: u32,
    /// Most leases at one time.
    pub peak: u32,
    /// Most open sockets at one time.
    pub peak_sockets: u32,
    /// Attempts made through it.
    pub attempts: u64,
    /// Those that ended a job as ok.
    pub ok: u64,
    /// Those held against it.
    pub faults: u64,
    /// Answers of 429 that came through it.
    pub status_429: u64,
    /// Body bytes received, as on the wire.
    pub bytes: u64,
    /// Median time to first byte.
    pub ttfb_p50_ms: Option<f64>,
    /// The time to first byte that 95 % of the answers kept.
    pub ttfb_p95_ms: Option<f64>,
    /// `healthy`, `limited`, `ejected`, `probation` or `evicted`.
    pub state: String,
    /// Why it is not healthy; the last error where no reason was given, also where none of
    /// its attempts was good.
    pub reason: Option<String>,
    /// What health left of the cap at the end.
    pub cap_now: u32,
}

/// The columns of `exits.csv`: there also when no exit is.
const COLUMNS: [&str; 16] = [
    "id",
    "tier",
    "group",
    "cap",
    "peak",
    "peak_sockets",
    "attempts",
    "ok",
    "faults",
    "status_429",
    "bytes",
    "ttfb_p50_ms",
    "ttfb_p95_ms",
    "state",
    "reason",
    "cap_now",
];

/// The file with these rows.
pub(super) fn text<'a>(rows: impl Iterator<Item = &'a ExitRow>) -> anyhow::Result<String> {
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    csv.write_record(COLUMNS)?;
    for row in rows {
        csv.serialize(row)?;
    }
    Ok(String::from_utf8(csv.into_inner()?)?)
}

/// The rows of a file, and how many lines were none.
///
/// # Errors
/// It cannot be read.
pub(super) fn read(file: File) -> anyhow::Result<(Vec<ExitRow>, u64)> {
    let (mut rows, mut bad) = (Vec::new(), 0);
    for row in csv::Reader::from_reader(file).into_deserialize() {
        match row {
            Ok(row) => rows.push(row),
            Err(error) if error.is_io_error() => return Err(error.into()),
            Err(_) => bad += 1,
        }
    }
    Ok((rows, bad))
}
