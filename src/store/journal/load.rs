//! Reading an earlier run's `results.jsonl`: what is there, and where it ends for sure.
//!
//! A crash can leave half a line at the end. It is cut off with whatever follows the last
//! valid record, so nothing is ever written behind half a line. A malformed line before
//! that is left alone and counted. A file that holds lines but no record is not ours and is
//! not touched.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::Outcome;

/// A longer line is no record; memory stays bounded whatever the file is.
const LINE_MAX: usize = 32 << 20;

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

/// The part of a record that the index needs. `url` and `at` only have to be there.
#[derive(Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    pub line: u64,
    pub outcome: Outcome,
    #[serde(rename = "url")]
    _url: IgnoredAny,
    #[serde(rename = "at")]
    _at: IgnoredAny,
}

/// Hands each record and its offset to `each`. Returns what was found and the length up to
/// the end of the last record.
///
/// # Errors
/// The file cannot be read, or (`InvalidData`) is not a journal.
pub(super) fn read(file: &File, mut each: impl FnMut(u64, Entry)) -> io::Result<(Loaded, u64)> {
    let mut lines = BufReader::with_capacity(1 << 20, file);
    lines.seek(SeekFrom::Start(0))?;
    let (mut found, mut good_end, mut offset) = (Loaded::default(), 0, 0);
    let mut malformed_since_good = 0;
    let mut line = Vec::new();
    loop {
        let read = next_line(&mut lines, &mut line)?;
        if read == 0 {
            break;
        }
        let ended = line.pop_if(|last| *last == b'\n').is_some();
        match serde_json::from_slice::<Entry>(&line) {
            Ok(entry) if ended => {
                each(offset, entry);
                found.records += 1;
                found.malformed += malformed_since_good;
                malformed_since_good = 0;
                good_end = offset + read;
            }
            _ if ended => malformed_since_good += 1,
            _ => {}
        }
        offset += read;
    }
    if found.records == 0 && malformed_since_good > 0 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it holds no records of exitfetch: choose another --out, or move it away",
        ));
    }
    found.torn_bytes = offset - good_end;
    Ok((found, good_end))
}

/// Reads one line with its newline into `line`, of a longer one the first [`LINE_MAX`] bytes
/// and the newline. Returns how many bytes the line has in the file; 0 at the end.
fn next_line(from: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    line.clear();
    let mut total = 0;
    loop {
        let buffer = from.fill_buf()?;
        let (taken, done) = match memchr::memchr(b'\n', buffer) {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        let room = LINE_MAX.saturating_sub(line.len());
        line.extend_from_slice(&buffer[..taken.min(room)]);
        if done && taken > room {
            line.push(b'\n');
        }
        from.consume(taken);
        total += taken as u64;
        if done {
            return Ok(total);
        }
    }
}
