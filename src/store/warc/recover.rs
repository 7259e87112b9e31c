//! After a crash: the segment that was being written is cut back to the end of the farthest
//! record that the journal tells of, and gets its final name.
//!
//! A segment is written before the journal, so what lies beyond was not recorded and is
//! fetched again; the last of it may be half a record. Done whenever a directory is opened,
//! whether or not that run writes segments: its records count from then on.
//!
//! The farthest is not always the last that was recorded: an entry that is listed again later
//! points back to the exchange of the first. So the whole journal is searched.

use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::{DIR, OPEN};
use crate::store::backwards;

/// What a journal's line says of an archived body.
#[derive(Deserialize)]
struct Archived {
    file: String,
    offset: u64,
    length: u64,
}

/// Ends what a crash has left open in `dir`, whose journal is `journal`.
///
/// # Errors
/// The files cannot be read, cut or renamed.
pub(in crate::store) fn recover(dir: &Path, journal: &File) -> anyhow::Result<()> {
    let segments = dir.join(DIR);
    let entries = match std::fs::read_dir(&segments) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read {}", segments.display()))?,
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot read {}", segments.display()))?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(OPEN)) else {
            continue;
        };
        let path = entry.path();
        end_segment(
            &path,
            &segments.join(name),
            &format!("{DIR}/{name}"),
            journal,
        )
        .with_context(|| format!("cannot recover {}", path.display()))?;
    }
    Ok(())
}

fn end_segment(open: &Path, whole: &Path, file: &str, journal: &File) -> io::Result<()> {
    let text = format!("\"file\":{}", serde_json::to_string(file)?);
    let mut end = 0;
    backwards::find(journal, text.as_bytes(), |line| {
        let archived = serde_json::from_slice::<Archived>(line).ok()?;
        if archived.file == file {
            end = end.max(archived.offset.saturating_add(archived.length));
        }
        None::<()>
    })?;
    if end == 0 {
        // Nothing in it was recorded.
        return std::fs::remove_file(open);
    }
    let segment = File::options().write(true).open(open)?;
    if segment.metadata()?.len() > end {
        segment.set_len(end)?;
    }
    std::fs::rename(open, whole)
}
