//! Reading a directory that was written earlier: the record of an id, and its body from
//! either layout.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use anyhow::{Context, bail};

use super::{backwards, warc};
use crate::model::{Outcome, Record};

/// The record of `id` that counts: its last one, a refused line only if there is no other.
/// A journal of gigabytes takes a second or two; the id is searched from the end.
///
/// # Errors
/// `dir` has no journal, or it cannot be read.
pub fn find_record(dir: &Path, id: &str) -> anyhow::Result<Option<Record>> {
    let path = dir.join("results.jsonl");
    let journal = File::open(&path)
        .with_context(|| format!("{} is no output directory of a run", dir.display()))?;
    let text = format!("{{\"id\":{}", serde_json::to_string(id)?);
    let mut refused = None;
    let found = backwards::find(&journal, text.as_bytes(), |line| {
        let record = serde_json::from_slice::<Record>(line).ok()?;
        match record.outcome {
            _ if record.id != id => None,
            Outcome::Refused => {
                refused.get_or_insert(record);
                None
            }
            Outcome::Ok | Outcome::Failed => Some(record),
        }
    });
    let found = found.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(found.or(refused))
}

/// The body that an ok `record` of `dir` points to. From an archive it comes in the content
/// coding that it was received in.
///
/// # Errors
/// Its file is missing or does not hold it.
pub fn open_body(dir: &Path, record: &Record) -> anyhow::Result<Box<dyn Read>> {
    let Some(file) = &record.file else {
        bail!("{} has no file", record.id);
    };
    let inside = Path::new(file)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !inside {
        bail!("{file} is no file of {}", dir.display());
    }
    let path = dir.join(file);
    let context = || format!("cannot read {}", path.display());
    if record.offset.is_some() {
        return Ok(Box::new(warc::payload(dir, record).with_context(context)?));
    }
    Ok(Box::new(File::open(&path).with_context(context)?))
}
