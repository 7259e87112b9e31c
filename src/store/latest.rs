//! The last record of each id, read from a `results.jsonl` that a run may be writing.
//!
//! Takes no lock and changes nothing, unlike `journal`. Reads the file twice: which record
//! of an id is the last is known at its end only. Memory: some 20 bytes per id. A refusal is
//! of its line, as in `journal`: it hides no other record of the id that was written there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Seek};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::model::{Outcome, Record};

/// Whether the reader of the records wants more of them.
pub type Kept = ControlFlow<()>;

/// What tells two records of one entry from two of different ones.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    line: u64,
    outcome: Outcome,
}

/// Hands the last record of each id to `each`, in the order of the file.
///
/// # Errors
/// There is no journal in `dir`, or it cannot be read, or holds no record; whatever `each`
/// answers.
pub fn latest(
    dir: &Path,
    mut each: impl FnMut(Record) -> anyhow::Result<Kept>,
) -> anyhow::Result<()> {
    let path = dir.join("results.jsonl");
    let file = File::open(&path)
        .with_context(|| format!("{}: name the --out of a run", path.display()))?;
    let unreadable = || format!("cannot read {}", path.display());
    let hasher = RandomState::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    let mut lines = 0_u64;
    lines_of(&file, |number, line| {
        lines = number;
        if let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line) {
            last.insert(key(&hasher, &entry), number);
        }
        Ok(Kept::Continue(()))
    })
    .with_context(unreadable)?;
    if last.is_empty() && lines > 0 {
        bail!("{} holds no records of exitfetch", path.display());
    }
    lines_of(&file, |number, line| {
        let Ok(entry) = serde_json::from_slice::<Entry<'_>>(line) else {
            return Ok(Kept::Continue(()));
        };
        if last.get(&key(&hasher, &entry)) != Some(&number) {
            return Ok(Kept::Continue(()));
        }
        match serde_json::from_slice::<Record>(line) {
            Ok(record) => each(record),
            Err(_) => Ok(Kept::Continue(())),
        }
    })
    .with_context(unreadable)
}

fn key(hasher: &RandomState, entry: &Entry<'_>) -> u64 {
    let line = (entry.outcome == Outcome::Refused).then_some(entry.line);
    hasher.hash_one((&*entry.id, line))
}

/// The whole lines of the file, numbered from 1. A run may add some between two calls.
fn lines_of(
    mut file: &File,
    mut each: impl FnMut(u64, &[u8]) -> anyhow::Result<Kept>,
) -> anyhow::Result<()> {
    file.seek(io::SeekFrom::Start(0))?;
    let mut lines = BufReader::with_capacity(1 << 18, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        // The end, or half a line that is being written.
        if line.pop() != Some(b'\n') {
            break;
        }
        if each(number, &line)?.is_break() {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Vec<(String, u64, Outcome)>> {
        let dir = tempfile::tempdir()?;
        std::fs::write(dir.path().join("results.jsonl"), text)?;
        let mut found = Vec::new();
        latest(dir.path(), |record| {
            found.push((record.id, record.line, record.outcome));
            Ok(Kept::Continue(()))
        })?;
        Ok(found)
    }

    fn line(id: &str, line: u64, outcome: &str) -> String {
        format!(
            "{{\"id\":\"{id}\",\"line\":{line},\"url\":\"http://o.test/\",\"outcome\":\"{outcome}\",\"at\":\"x\"}}\n"
        )
    }

    #[test]
    fn the_last_record_of_an_id_counts_and_half_a_line_does_not() {
        let text = [
            line("a", 1, "failed"),
            line("b", 2, "failed"),
            line("a", 1, "ok"),
        ]
        .concat();
        let found = read(&(text + "{\"id\":\"b\"")).unwrap();
        let expected = [("b", 2, Outcome::Failed), ("a", 1, Outcome::Ok)];
        assert_eq!(
            found,
            expected.map(|(id, line, end)| (id.to_owned(), line, end))
        );
    }

    #[test]
    fn a_refusal_hides_no_other_record_of_its_id() {
        let found = read(&[line("a", 1, "ok"), line("a", 5, "refused")].concat()).unwrap();
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn what_is_no_journal_is_told() {
        assert!(read("hello\n").is_err());
        assert_eq!(read("").unwrap(), []);
        let nowhere = latest(Path::new("/nowhere"), |_| Ok(Kept::Continue(())));
        assert!(format!("{:#}", nowhere.unwrap_err()).contains("--out"));
    }
}
