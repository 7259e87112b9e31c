//! Bodies on their way to disk: temporary file, digest, final name.
//!
//! A [`TempBody`] lives inside a fetch task, so bytes never pass the engine. Up to 64 KiB
//! stay in memory and become one write at the end; a longer body streams in writes of at
//! least 128 KiB. Invariant: a file below `bodies/` is whole, because it gets there only by
//! [`Finished::commit`]; a body that is dropped before leaves nothing.
//!
//! The file calls block: handing them to another thread costs more than they do (measured).
//! Nothing is synced to the device: a crash of the program loses nothing, a power cut may
//! lose what the system had not written yet, and resume then finds the size wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::StoreError;
use super::space::Space;
use super::temp::{TempFile, TempFiles};
use crate::model::job::hex;
use crate::model::{Clock, Time};

/// A body up to this many bytes is one write at its end.
const SMALL: usize = 64 << 10;
/// A longer one is written whenever this much is buffered.
const LARGE: usize = 128 << 10;

/// Hands out temporary bodies of one output directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bodies(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: TempFiles,
    space: Space,
    clock: Clock,
    disk_nanos: AtomicU64,
}

impl Bodies {
    /// Bodies that pass through `files`.
    pub(super) fn new(files: TempFiles, space: Space, clock: Clock) -> Bodies {
        Bodies(Arc::new(Shared {
            files,
            space,
            clock,
            disk_nanos: AtomicU64::new(0),
        }))
    }

    /// An empty body. Costs nothing until bytes have to reach the disk.
    pub fn create(&self) -> TempBody {
        TempBody {
            bodies: self.clone(),
            buffer: Vec::new(),
            file: None,
            digest: Sha256::new(),
            bytes: 0,
        }
    }

    /// Time spent in file calls so far, summed over all tasks.
    pub fn disk_time(&self) -> Duration {
        Duration::from_nanos(self.0.disk_nanos.load(Ordering::Relaxed))
    }

    /// Stores one byte and takes it away again: `bodies/` can be written and is on the file
    /// system of `.tmp/`, so that a rename will do.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        let mut body = self.create();
        body.write(b"?")?;
        let file = "bodies/.writable";
        body.finish()?.commit(file)?;
        let path = self.0.files.out().join(file);
        std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))
    }

    /// Takes `.tmp/` away when nothing is in it.
    pub(super) fn close(&self) {
        // Not empty means that a task still holds a body; the next run clears it.
        let _ = std::fs::remove_dir(self.0.files.dir());
    }

    /// Where temporary files come from.
    pub(super) fn files(&self) -> &TempFiles {
        &self.0.files
    }

    /// Counts `bytes` that are about to be stored.
    pub(super) fn spend(&self, bytes: u64) -> Result<(), StoreError> {
        self.0.space.spend(bytes)
    }

    /// Does `act` and counts its time as the disk's.
    pub(super) fn timed<T>(&self, act: impl FnOnce() -> T) -> T {
        let start: Time = self.0.clock.now();
        let done = act();
        let spent = self.0.clock.now() - start;
        let nanos = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.0.disk_nanos.fetch_add(nanos, Ordering::Relaxed);
        done
    }
}

/// A body that is still arriving. Dropped, it leaves no file.
#[derive(Debug)]
pub struct TempBody {
    bodies: Bodies,
    buffer: Vec<u8>,
    file: Option<TempFile>,
    digest: Sha256,
    bytes: u64,
}

impl TempBody {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// The disk refused them, or less than `--min-free` is left; the body is then of no use.
    pub fn write(&mut self, chunk: &[u8]) -> Result<(), StoreError> {
        self.digest.update(chunk);
        self.bytes += chunk.len() as u64;
        let room = if self.file.is_some() { LARGE } else { SMALL };
        if self.buffer.len() + chunk.len() <= room {
            self.buffer.extend_from_slice(chunk);
            return Ok(());
        }
        if self.buffer.is_empty() {
            return self.spill(chunk);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.extend_from_slice(chunk);
        self.spill(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    /// Bytes taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts everything into the temporary file.
    ///
    /// # Errors
    /// As [`TempBody::write`].
    pub fn finish(self) -> Result<Finished, StoreError> {
        let temp = self.bodies.append(self.file, &self.buffer)?;
        Ok(Finished {
            bytes: self.bytes,
            sha256: hex(&self.digest.finalize()),
            temp,
            bodies: self.bodies,
        })
    }

    fn spill(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let open = self.file.take();
        self.file = Some(self.bodies.append(open, bytes)?);
        Ok(())
    }
}

impl Bodies {
    /// Adds `bytes` to the temporary file, made now if there is none yet.
    fn append(&self, open: Option<TempFile>, bytes: &[u8]) -> Result<TempFile, StoreError> {
        let files = &self.0.files;
        self.timed(|| {
            let mut temp = match open {
                Some(open) => open,
                None => files.create()?,
            };
            if let Err(error) = temp.write(bytes) {
                return Err(StoreError::io("write", temp.shown(files))(error));
            }
            self.0.space.spend(bytes.len() as u64)?;
            Ok(temp)
        })
    }
}

/// A whole body in a temporary file. Dropped, it leaves no file.
#[derive(Debug)]
pub struct Finished {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
    temp: TempFile,
    bodies: Bodies,
}

impl Finished {
    /// Gives it its final name, relative to the output directory, in one step; what had
    /// that name before is replaced. Directories are made when they turn out to be missing.
    ///
    /// # Errors
    /// The disk refused; the body is then gone.
    pub fn commit(self, file: &str) -> Result<(), StoreError> {
        let Finished { temp, bodies, .. } = self;
        bodies.timed(|| bodies.0.files.commit(temp, file))
    }
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod tests;
