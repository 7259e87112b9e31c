//! Reading an earlier run's `results.jsonl`: what is there, and where it ends for sure.
//!
//! A crash can leave half a line at the end. It is cut off with whatever follows the last
//! valid record, so nothing is ever written behind half a line. A malformed line before
//! that is left alone and counted. A file that holds lines but no record is not ours and is
//! not touched.
//!
//! Parsing is what takes the time, so stretches of the file are parsed side by side, each by
//! the thread whose turn it is, and taken in the order of the file. No more than two
//! stretches' findings for each thread are in memory.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::mpsc::sync_channel;
use std::thread;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::index::Keys;
use super::lines::Lines;
use super::resume::refusal_key;
use crate::model::Outcome;

/// Bytes of a stretch. Larger: more memory; smaller: more reads that go past the end.
const STRETCH: u64 = 1 << 20;
/// More threads find more than one can take in.
const MAX_THREADS: usize = 4;

/// What reading the journal found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Valid records.
    pub records: u64,
    /// Lines between them that are none.
    pub malformed: u64,
    /// Bytes cut off at the end.
    pub torn_bytes: u64,
}

/// A record in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Of its id; of a refusal, of id and line.
    pub key: u64,
    /// Where its line begins.
    pub offset: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// The part of a record that the index needs. `url` and `at` only have to be there.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    line: u64,
    outcome: Outcome,
    #[serde(rename = "url")]
    _url: IgnoredAny,
    #[serde(rename = "at")]
    _at: IgnoredAny,
}

/// What one stretch holds.
#[derive(Debug, Default)]
struct Part {
    records: Vec<Found>,
    /// End of the last record.
    good_end: u64,
    /// Malformed lines before the last record, and after it.
    malformed: (u64, u64),
}

/// Whether `line` is a record of `id`.
pub(super) fn is_of(line: &[u8], id: &str) -> bool {
    serde_json::from_slice::<Head>(line).is_ok_and(|head| head.id == id)
}

/// Hands each record to `each`, in the order of the file. Returns what was found and the
/// length up to the end of the last record.
///
/// # Errors
/// The file cannot be read, or (`InvalidData`) is not a journal.
pub(super) fn read(file: &File, keys: &Keys, each: impl FnMut(Found)) -> io::Result<(Loaded, u64)> {
    read_by(STRETCH, file, keys, each)
}

fn read_by(
    stretch: u64,
    file: &File,
    keys: &Keys,
    mut each: impl FnMut(Found),
) -> io::Result<(Loaded, u64)> {
    let length = file.metadata()?.len();
    let (mut found, mut good_end, mut malformed_since_good) = (Loaded::default(), 0, 0);
    parts(stretch, length, &|range| parse(file, range, keys), |part| {
        found.records += part.records.len() as u64;
        if !part.records.is_empty() {
            found.malformed += malformed_since_good + part.malformed.0;
            malformed_since_good = 0;
            good_end = part.good_end;
        }
        malformed_since_good += part.malformed.1;
        part.records.into_iter().for_each(&mut each);
    })?;
    if found.records == 0 && malformed_since_good > 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it holds no records of exitfetch: choose another --out, or move it away",
        ));
    }
    found.torn_bytes = length - good_end;
    Ok((found, good_end))
}

/// Parses the stretches of a file of `length` side by side and hands them to `take` in order.
fn parts(
    stretch: u64,
    length: u64,
    parse: &(impl Fn(Range<u64>) -> io::Result<Part> + Sync),
    mut take: impl FnMut(Part),
) -> io::Result<()> {
    let ranges = || {
        let starts = (0..length).step_by(stretch as usize);
        starts.map(|start| start..length.min(start + stretch))
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MAX_THREADS).min(ranges().count());
    thread::scope(|scope| {
        let spawn = |first| {
            let (give, taken) = sync_channel(1);
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                let own = ranges().skip(first).step_by(threads);
                // The receiver has gone where another stretch could not be read.
                own.map(parse).try_for_each(|part| give.send(part))
            });
            started.map(|_| taken)
        };
        let parsed: Vec<_> = (0..threads).map(spawn).collect::<io::Result<_>>()?;
        for (turn, _) in ranges().enumerate() {
            // A thread that has gone has panicked, and the scope passes that on.
            let Ok(part) = parsed[turn % threads].recv() else {
                break;
            };
            take(part?);
        }
        Ok(())
    })
}

/// The records whose lines begin in `range`.
fn parse(file: &File, range: Range<u64>, keys: &Keys) -> io::Result<Part> {
    let mut lines = Lines::that_begin_in(file, range)?;
    let mut part = Part::default();
    while let Some(line) = lines.next()? {
        match serde_json::from_slice::<Head>(line.text) {
            Ok(head) if line.ended => {
                let key = match head.outcome {
                    Outcome::Refused => refusal_key(keys, &head.id, head.line),
                    Outcome::Ok | Outcome::Failed => keys.of(&*head.id),
                };
                part.records.push(Found {
                    key,
                    offset: line.at.start,
                    outcome: head.outcome,
                });
                part.good_end = line.at.end;
                part.malformed.0 += std::mem::take(&mut part.malformed.1);
            }
            _ if line.ended => part.malformed.1 += 1,
            _ => {}
        }
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::store::tests::ok_record;

    /// What is found with stretches of this many bytes.
    fn found(file: &File, keys: &Keys, stretch: u64) -> (Vec<Found>, Loaded, u64) {
        let mut all = Vec::new();
        let (loaded, end) = read_by(stretch, file, keys, |found| all.push(found)).unwrap();
        (all, loaded, end)
    }

    #[test]
    fn stretches_of_any_length_find_the_same_as_the_whole() {
        let mut file = tempfile::tempfile().unwrap();
        let mut ends = Vec::new();
        let mut text = String::new();
        for n in 0..40 {
            if n % 7 == 3 {
                text += "rubbish\n\n";
            }
            let id = "n".repeat(n % 5 * 60 + 1);
            text += &serde_json::to_string(&ok_record(&id, n as u64)).unwrap();
            text += "\n";
            ends.push(text.len() as u64);
        }
        let torn = "rubbish\n{\"id\": \"half";
        file.write_all((text.clone() + torn).as_bytes()).unwrap();
        let keys = Keys::default();
        let whole = found(&file, &keys, u64::MAX);
        let offsets: Vec<u64> = whole.0.iter().map(|found| found.offset).collect();
        assert_eq!(offsets.len(), 40);
        assert!(offsets.is_sorted());
        assert_eq!(
            (whole.1.malformed, whole.1.torn_bytes),
            (12, torn.len() as u64)
        );
        assert_eq!(whole.2, text.len() as u64);
        // Among them: one that ends where a line ends, before and after that.
        let near = [ends[0] - 1, ends[0], ends[0] + 1];
        for stretch in [1, 2, 7, 100, 1000, 4096].into_iter().chain(near) {
            assert_eq!(
                found(&file, &keys, stretch),
                whole,
                "stretches of {stretch}"
            );
        }
    }
}
