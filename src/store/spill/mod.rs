//! Jobs that wait on disk: a log of segments, in it a chain of records for each origin.
//!
//! Owns the segments. A record is `[length][offset of the record before it][job]`; the caller
//! keeps the offset of a chain's newest record and nothing else, so an origin's jobs come back
//! newest first, which does not matter. Which job waits here, and when it is wanted again, is
//! decided by the scheduler.
//!
//! Invariants: a record is read once; a segment is gone once its last record is. Segments have
//! no name: they may hold logins that a list gives, and nobody can open what has no name; a run
//! that dies leaves nothing. (Where the file system has no unnamed files, the name is taken away
//! as soon as the file is open.) The log takes no more of the disk than it leaves free for bodies
//! and records: it saves reading ahead, they are the result. A job that is not taken is the
//! caller's still.

mod record;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::StoreError;
use crate::model::Job;

/// Bytes of one segment. Larger: fewer open files; smaller: disk space is given back earlier.
const SEGMENT: u64 = 128 << 20;
/// Bytes of all segments. A list that waits for one origin is not read further than this.
const MOST: u64 = 4 << 30;
/// Bytes that are written at once.
const BLOCK: usize = 64 << 10;
/// Bytes that are read at once: a record of a plain list.
const LOOK: usize = 512;
/// Length and offset in front of a job.
const HEAD: usize = 4 + 8;
/// As offset: there is no record before.
const NONE: u64 = u64::MAX;

/// See the module's text. It makes no file before a job is put.
#[derive(Debug)]
pub struct Spill {
    dir: PathBuf,
    limits: Limits,
    /// By number, those that hold records which were not read.
    segments: BTreeMap<u32, Segment>,
    /// Number of the segment that grows.
    open: u32,
    /// Its end, not written yet.
    tail: Vec<u8>,
    /// The last job was not taken.
    full: bool,
}

#[derive(Debug)]
struct Segment {
    file: Option<File>,
    written: u64,
    unread: u64,
}

/// What the log may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    segment: u64,
    most: u64,
    block: usize,
    min_free: u64,
}

/// Jobs that came back.
#[derive(Debug)]
pub struct Batch {
    /// The newest first.
    pub jobs: Vec<Job>,
    /// Where the chain goes on; `None`: it is at its end.
    pub rest: Option<u64>,
}

impl Spill {
    /// A log in `dir`, which leaves `min_free` bytes of its disk free.
    pub(super) fn new(dir: PathBuf, min_free: u64) -> Spill {
        Spill {
            dir,
            limits: Limits {
                segment: SEGMENT,
                most: MOST,
                block: BLOCK,
                min_free,
            },
            segments: BTreeMap::new(),
            open: 0,
            tail: Vec::new(),
            full: false,
        }
    }

    /// Adds `job` to the chain whose newest record is at `after`, or begins one. Answers where
    /// it is: the newest record now.
    ///
    /// # Errors
    /// The disk has no room for it, by its own word or by the share that is left to others; the
    /// job was not taken then, and what was taken before stays readable.
    pub fn put(&mut self, after: Option<u64>, job: &Job) -> Result<u64, StoreError> {
        let start = self.tail.len();
        let written = self.segments.get(&self.open).map_or(0, |open| open.written);
        let at = u64::from(self.open) << 32 | (written + start as u64);
        self.tail.extend_from_slice(&[0; 4]);
        self.tail
            .extend_from_slice(&after.unwrap_or(NONE).to_le_bytes());
        record::encode(job, &mut self.tail);
        // A segment's offset has 32 bits, and an entry of a list is far shorter than that.
        let length = (self.tail.len() - start - HEAD) as u32;
        self.tail[start..start + 4].copy_from_slice(&length.to_le_bytes());
        self.segment().unread += 1;
        if self.tail.len() >= self.limits.block
            && let Err(error) = self.write()
        {
            self.tail.truncate(start);
            self.drop_read(self.open);
            self.full = true;
            return Err(StoreError::io("put waiting URLs into", &self.dir)(error));
        }
        self.full = false;
        Ok(at)
    }

    /// The last job was not taken: the disk has no room.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Takes up to `most` jobs, at least one, out of the chain whose newest record is at `head`.
    ///
    /// # Errors
    /// A segment cannot be read. Its jobs are lost to this run.
    pub fn take(&mut self, head: u64, most: usize) -> Result<Batch, StoreError> {
        let mut batch = Batch {
            jobs: Vec::new(),
            rest: Some(head),
        };
        while let Some(at) = batch.rest
            && batch.jobs.len() < most.max(1)
        {
            let (before, job) = self
                .read(at)
                .map_err(StoreError::io("read waiting URLs from", &self.dir))?;
            batch.jobs.push(job);
            batch.rest = before;
            self.drop_read((at >> 32) as u32);
        }
        Ok(batch)
    }

    fn segment(&mut self) -> &mut Segment {
        self.segments.entry(self.open).or_insert(Segment {
            file: None,
            written: 0,
            unread: 0,
        })
    }

    /// Writes the tail; a segment that is long enough is closed by that.
    fn write(&mut self) -> io::Result<()> {
        self.expect_room()?;
        let dir = self.dir.clone();
        let tail = std::mem::take(&mut self.tail);
        let segment = self.segment();
        let written = segment.append(&tail, &dir);
        let length = segment.written;
        self.tail = tail;
        written?;
        self.tail.clear();
        if length >= self.limits.segment {
            self.open = self.open.wrapping_add(1);
        }
        Ok(())
    }

    /// Fails unless the log may grow by its tail.
    fn expect_room(&self) -> io::Result<()> {
        let held: u64 = self.segments.values().map(|segment| segment.written).sum();
        let grown = held + self.tail.len() as u64;
        // Where the space cannot be looked up, the write itself will tell.
        let free = rustix::fs::statvfs(&self.dir)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let left = free.saturating_sub(self.tail.len() as u64);
        if grown > self.limits.most || left < self.limits.min_free.saturating_add(grown) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// The record at `at`: the one before it, and its job.
    fn read(&self, at: u64) -> io::Result<(Option<u64>, Job)> {
        let (number, offset) = ((at >> 32) as u32, at & u64::from(u32::MAX));
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let segment = self.segments.get(&number).ok_or_else(broken)?;
        let mut from_file = Vec::new();
        let bytes = match offset.checked_sub(segment.written) {
            Some(at) => usize::try_from(at).ok().and_then(|at| self.tail.get(at..)),
            None => {
                segment.read(offset, &mut from_file)?;
                Some(from_file.as_slice())
            }
        };
        let bytes = bytes.unwrap_or_default();
        let (length, rest) = bytes.split_first_chunk().ok_or_else(broken)?;
        let (before, rest) = rest.split_first_chunk().ok_or_else(broken)?;
        let job = rest.get(..u32::from_le_bytes(*length) as usize);
        let job = job.and_then(record::decode).ok_or_else(broken)?;
        let before = u64::from_le_bytes(*before);
        Ok(((before != NONE).then_some(before), job))
    }

    /// One record of this segment is of no use any more.
    fn drop_read(&mut self, number: u32) {
        let Some(segment) = self.segments.get_mut(&number) else {
            return;
        };
        segment.unread -= 1;
        if segment.unread > 0 {
            return;
        }
        self.segments.remove(&number);
        if number == self.open {
            self.tail.clear();
            self.open = self.open.wrapping_add(1);
        }
    }
}

impl Segment {
    fn append(&mut self, bytes: &[u8], dir: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(unnamed(dir)?),
        };
        // At its place, not at the end: a write that failed half-way is written over.
        file.write_all_at(bytes, self.written)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Reads the whole record at `offset`, perhaps more, into `bytes`.
    fn read(&self, offset: u64, bytes: &mut Vec<u8>) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::InvalidData)?;
        let left = usize::try_from(self.written - offset).unwrap_or(usize::MAX);
        bytes.resize(LOOK.min(left), 0);
        file.read_exact_at(bytes, offset)?;
        let length = bytes
            .first_chunk()
            .map_or(0, |length| u32::from_le_bytes(*length));
        let whole = (HEAD + length as usize).min(left);
        let have = bytes.len();
        if whole > have {
            bytes.resize(whole, 0);
            file.read_exact_at(&mut bytes[have..], offset + have as u64)?;
        }
        Ok(())
    }
}

/// A file for reading and writing that nobody else can open.
fn unnamed(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    if let Ok(file) = rustix::fs::open(dir, flags | OFlags::TMPFILE, mode) {
        return Ok(file.into());
    }
    // Of the form that the next run removes, should this one die before it does.
    let name = dir.join(format!("{}.part", u64::MAX));
    let flags = flags | OFlags::CREATE | OFlags::EXCL;
    let file = rustix::fs::open(&name, flags, mode)?;
    std::fs::remove_file(&name)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests;
