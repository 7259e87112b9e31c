//! What an output directory tells, read in one pass and bounded memory: the input of the page.
//!
//! Owns: reading `results.jsonl`, `exits.csv`, `summary.json`, `timeline.jsonl` and
//! `probe.json` as far as each is there and usable. A run that was killed left some of them
//! out or torn: what cannot be read is left out and counted, never a reason to stop.

mod failures;
mod last_run;
mod latency;
mod light;
mod probe;
mod records;

use std::io;
use std::path::Path;

use anyhow::{Context, bail};

use super::exits_csv::{self, ExitRow};
use super::timeline::Tracks;
use crate::model::counted;

pub(super) use failures::Failed;
pub(super) use last_run::LastRun;
pub(super) use latency::Latencies;
pub(super) use probe::Curve;
pub(super) use records::{Records, Site};

/// All that the page shows.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The directory's name, for the title.
    pub(super) name: String,
    pub(super) records: Records,
    pub(super) exits: Vec<ExitRow>,
    /// The end of the last run that ended.
    pub(super) last: Option<LastRun>,
    pub(super) tracks: Tracks,
    pub(super) curves: Vec<Curve>,
    /// What is missing or was passed over, one sentence each.
    pub(super) notes: Vec<String>,
}

impl Gathered {
    /// Reads the output directory `dir`.
    ///
    /// # Errors
    /// It is no directory, holds other things only, or a file of it cannot be read.
    pub fn read(dir: &Path) -> anyhow::Result<Gathered> {
        check(dir)?;
        let mut notes = Vec::new();
        let (exits, bad) = match open(&dir.join("exits.csv"))? {
            Some(file) => exits_csv::read(file)?,
            None => (Vec::new(), 0),
        };
        tell_bad(&mut notes, "exits.csv", bad);
        let last = last_run::read(&dir.join("summary.json"))?;
        let tracks = Tracks::read(&dir.join("timeline.jsonl")).context("timeline.jsonl")?;
        tell_bad(&mut notes, "timeline.jsonl", tracks.malformed);
        let records = Records::read(&dir.join("results.jsonl"), &exits)?;
        tell_bad(&mut notes, "results.jsonl", records.malformed);
        if records.read == 0 {
            notes.push("There is no record yet.".to_owned());
        }
        if last.is_none() {
            let text = "There is no summary.json: no run has ended here. Totals are counted from the records.";
            notes.push(text.to_owned());
        } else if tracks.runs.last().is_some_and(|run| run.end.is_none()) {
            let text = "The last run has not ended, or was killed: exits, sites and the verdict are \
                        those of the run before it.";
            notes.push(text.to_owned());
        }
        let curves = probe::read(&dir.join("probe.json"))?;
        let name = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        Ok(Gathered {
            name: name.into_owned(),
            records,
            exits,
            last,
            tracks,
            curves,
            notes,
        })
    }

    /// The last run's own figures are those of the run that the timeline shows last.
    pub(super) fn is_up_to_date(&self) -> bool {
        let ended = self.tracks.runs.last().is_none_or(|run| run.end.is_some());
        self.last.is_some() && ended
    }
}

/// A wrong path would get a page about nothing; an empty directory is a run that did nothing.
fn check(dir: &Path) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(dir)
        .with_context(|| format!("{} cannot be read as a directory", dir.display()))?;
    let known = ["results.jsonl", "summary.json", "timeline.jsonl"];
    let is_ours = known.iter().any(|name| dir.join(name).is_file());
    if !is_ours && entries.count() > 0 {
        bail!(
            "{} is no output directory: it has no results.jsonl. Name what --out of the run named",
            dir.display()
        );
    }
    Ok(())
}

fn tell_bad(notes: &mut Vec<String>, file: &str, lines: u64) {
    if lines > 0 {
        notes.push(format!(
            "{file}: {} left out.",
            counted(
                lines,
                "line was no record and is",
                "lines were no records and are"
            )
        ));
    }
}

/// The file at `path`; `None` if there is none.
fn open(path: &Path) -> anyhow::Result<Option<std::fs::File>> {
    match std::fs::File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
