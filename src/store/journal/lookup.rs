//! What the journal holds of an id: the index says where to look, the record there whether
//! it is the id's.

use std::os::unix::fs::FileExt;

use super::index::{At, Entry};
use super::{Journal, load};
use crate::model::{Outcome, Record};
use crate::store::StoreError;

/// What the journal holds of one id.
#[derive(Clone, Debug, PartialEq)]
pub struct Past {
    /// The id's last record that is not a refusal.
    pub record: Record,
    /// How many records of earlier runs end the same way and were not matched by an entry of
    /// this run's list yet.
    pub records: u32,
    pub(super) at: At,
    pub(super) entry: Entry,
}

/// What the journal knows of an id.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Known {
    /// It has a record.
    Past(Box<Past>),
    /// An entry that is kept on disk has claimed it, this line's.
    Claimed { line: u64, what: u32 },
}

impl Journal {
    /// Where the entry of the record's id is, and the request that is known for it. A new
    /// id, the common case, is not in the index and costs no read.
    pub(super) fn find(&self, record: &Record) -> Result<Option<(At, Option<u32>)>, StoreError> {
        if record.outcome == Outcome::Refused {
            return Ok(None);
        }
        for (at, entry) in self.index.of(self.index.keys().of(&*record.id)) {
            match entry {
                Entry::Refused => {}
                // A claim knows a part of it only.
                Entry::Loaded { .. } | Entry::Claimed { .. } => return Ok(Some((at, None))),
                Entry::Matched { offset, what, .. } | Entry::Settled { offset, what } => {
                    if load::is_of(&self.line_at(offset)?, &record.id) {
                        return Ok(Some((at, Some(what))));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The last record of `id`, read back from the file. `None` too where the file no longer
    /// holds a record of this id at the place it was.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lookup(&self, id: &str) -> Result<Option<Past>, StoreError> {
        Ok(match self.known(id)? {
            Some(Known::Past(past)) => Some(*past),
            Some(Known::Claimed { .. }) | None => None,
        })
    }

    pub(super) fn known(&self, id: &str) -> Result<Option<Known>, StoreError> {
        for (at, entry) in self.index.of(self.index.keys().of(id)) {
            let (offset, records) = match entry {
                Entry::Refused => continue,
                Entry::Claimed { line, what } => return Ok(Some(Known::Claimed { line, what })),
                Entry::Loaded {
                    offset, unmatched, ..
                }
                | Entry::Matched {
                    offset, unmatched, ..
                } => (offset, unmatched),
                Entry::Settled { offset, .. } => (offset, 0),
            };
            let line = self.line_at(offset)?;
            match serde_json::from_slice::<Record>(&line) {
                Ok(record) if record.id == id => {
                    return Ok(Some(Known::Past(Box::new(Past {
                        record,
                        records,
                        at,
                        entry,
                    }))));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(None)
    }

    fn line_at(&self, offset: u64) -> Result<Vec<u8>, StoreError> {
        if let Some(at) = offset.checked_sub(self.written) {
            let at = usize::try_from(at).unwrap_or(usize::MAX);
            let rest = self.buffer.get(at..).unwrap_or_default();
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            return Ok(rest[..end].to_vec());
        }
        let mut line = Vec::new();
        let mut block = [0; 2048];
        loop {
            let read = self
                .file
                .read_at(&mut block, offset + line.len() as u64)
                .map_err(StoreError::io("read", &self.path))?;
            let part = &block[..read];
            match memchr::memchr(b'\n', part) {
                Some(end) => line.extend_from_slice(&part[..end]),
                None if read > 0 => {
                    line.extend_from_slice(part);
                    continue;
                }
                None => {}
            }
            return Ok(line);
        }
    }
}
