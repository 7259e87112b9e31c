//! `results.jsonl`: one line per record, append-only; the truth of a run and of the next.
//!
//! Owns the file, its index by id, and (in `resume`) what an entry of the list needs in
//! view of both. Records are buffered by [`Journal::append`] and written by
//! [`Journal::flush`], once per turn of the engine's loop, as one write of whole lines. A
//! write that fails is taken back, so every line of the file is a record.

mod doubt;
mod index;
mod lines;
mod load;
mod lookup;
mod resume;
mod slot;
mod table;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::{StoreError, lock, warc};
use crate::model::{Outcome, Record};
use doubt::Doubt;
pub use doubt::Rest;
pub(super) use doubt::clear as clear_doubt;
use index::{Entry, Index};

pub use load::Loaded;
pub use lookup::Past;
pub use resume::{Decision, FailedBefore, Twin};

/// Buffered bytes that are written without waiting for [`Journal::flush`].
const BUFFER: usize = 256 << 10;
/// Disk space kept behind the file's end: where bodies have filled the disk, the records of
/// those that were stored still fit.
const RESERVE: u64 = 128 << 10;

/// The journal of one output directory.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    path: PathBuf,
    /// Holds the directory's lock while it is open.
    file: File,
    /// Length of the file.
    written: u64,
    /// Disk space is kept up to this length.
    reserved: u64,
    /// Whole lines that follow it.
    buffer: Vec<u8>,
    /// What is known of ids, and refusals of earlier runs by id and line.
    index: Index,
    under_way: HashMap<u64, resume::UnderWay, foldhash::fast::RandomState>,
    failed_before: FailedBefore,
    doubt: Doubt,
    /// Jobs of earlier runs that this one's list has not held so far.
    unmet: u64,
    loaded: Loaded,
}

impl Journal {
    /// Reads what earlier runs left in `file`, which is `results.jsonl` of `dir`, locked.
    ///
    /// # Errors
    /// The file cannot be read or cut, or is no journal.
    pub(super) fn open(
        dir: &Path,
        file: File,
        failed_before: FailedBefore,
    ) -> anyhow::Result<Journal> {
        let path = dir.join("results.jsonl");
        let mut index = Index::default();
        let mut unmet = 0;
        let (loaded, end) = load::read(&file, &index.keys().clone(), |found| {
            unmet += u64::from(index.load(found.key, found.offset, found.outcome));
        })
        .with_context(|| format!("cannot resume from {}", path.display()))?;
        if loaded.torn_bytes > 0 {
            file.set_len(end)
                .with_context(|| format!("cannot cut the torn end off {}", path.display()))?;
        }
        let mut journal = Journal {
            dir: dir.to_owned(),
            path,
            file,
            written: end,
            reserved: 0,
            buffer: Vec::new(),
            index,
            under_way: HashMap::default(),
            failed_before,
            doubt: Doubt::of(dir),
            unmet,
            loaded,
        };
        journal.reserve();
        Ok(journal)
    }

    /// Keeps disk space for the next records, as far as the file system can.
    fn reserve(&mut self) {
        if self.reserved >= self.written + RESERVE / 2 {
            return;
        }
        let flags = FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, self.written, RESERVE) {
            Ok(()) => self.reserved = self.written + RESERVE,
            Err(Errno::NOSPC) => {}
            // It cannot do that: no use in asking again.
            Err(_) => self.reserved = u64::MAX,
        }
    }

    /// Writes what is left and gives the kept disk space back.
    ///
    /// # Errors
    /// As [`Journal::flush`]; or somebody has taken the file away.
    pub(super) fn close(mut self) -> Result<(), StoreError> {
        self.flush()?;
        // Should this fail, some disk space stays taken, no more.
        let _ = self.file.set_len(self.written);
        match lock::is_still_at(&self.file, &self.path) {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::Error::other("it was moved or removed during the run")),
            Err(error) => Err(error),
        }
        .map_err(StoreError::io("keep", &self.path))
    }

    /// From here on all that is stored may be replaced (`--refresh`).
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn begin_refresh(&mut self) -> Result<(), StoreError> {
        let begun = self.doubt.begin_refresh();
        begun.map_err(StoreError::io("write", &self.dir))
    }

    /// From here on some of it may be.
    fn begin_replacing(&mut self) -> Result<(), StoreError> {
        let begun = self.doubt.begin();
        begun.map_err(StoreError::io("write", &self.dir))
    }

    /// The run ends in order; `rest` is what its list still holds.
    ///
    /// # Errors
    /// As [`Journal::flush`].
    pub fn end_replacing(&mut self, rest: Rest) -> Result<(), StoreError> {
        self.flush()?;
        // What is of another list is still in doubt.
        self.doubt
            .end(if self.unmet > 0 { Rest::Some } else { rest });
        Ok(())
    }

    /// What opening found; torn or malformed lines deserve a warning.
    pub fn loaded(&self) -> Loaded {
        self.loaded
    }

    /// Adds a record. An ok record's body has its final name by now.
    ///
    /// # Errors
    /// The buffer was full and could not be written (see [`Journal::flush`]), or the journal
    /// cannot be read.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.put(record, None)
    }

    /// Adds a record that answers the request `what`, or the one known for its id.
    fn put(&mut self, record: &Record, what: Option<u32>) -> Result<(), StoreError> {
        let known = self.find(record)?;
        let start = self.buffer.len();
        if let Err(error) = serde_json::to_writer(&mut self.buffer, record) {
            self.buffer.truncate(start);
            return Err(StoreError::io("write a record to", &self.path)(
                error.into(),
            ));
        }
        self.buffer.push(b'\n');
        if record.outcome != Outcome::Refused {
            let entry = Entry::Settled {
                offset: self.written + start as u64,
                what: what.or(known.and_then(|(_, what)| what)).unwrap_or(0),
            };
            let key = self.index.keys().of(&*record.id);
            match known {
                Some((at, _)) => self.index.replace(at, key, entry),
                None => self.index.insert(key, entry),
            }
        }
        match self.buffer.len() {
            0..BUFFER => Ok(()),
            _ => self.flush(),
        }
    }

    /// Writes all buffered records.
    ///
    /// # Errors
    /// The disk refused. Nothing of the batch is in the file then, and it stays buffered.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.file.write_all(&self.buffer) {
            // Should this fail too, the half line is cut off by the next run.
            let _ = self.file.set_len(self.written);
            self.reserved = 0;
            return Err(StoreError::io("write", &self.path)(error));
        }
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.reserve();
        Ok(())
    }

    /// Whether `record` is ok and its file is there with the size it had.
    pub fn is_stored(&self, record: &Record) -> bool {
        let (Outcome::Ok, Some(file), Some(bytes)) = (record.outcome, &record.file, record.bytes)
        else {
            return false;
        };
        if let Some(stored) = warc::is_stored(&self.dir, record) {
            return stored;
        }
        let inside = Path::new(file)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        inside
            && std::fs::metadata(self.dir.join(file)).is_ok_and(|meta| {
                let path = self.dir.join(file);
                meta.is_file() && meta.len() == bytes && self.doubt.trusts(&path, &meta, record)
            })
    }
}

#[cfg(test)]
mod claim_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
