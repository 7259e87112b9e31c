//! Bodies on their way to disk: temporary file, digest, rename.
//!
//! A [`TempBody`] lives inside a fetch task, so bytes never pass the engine. Up to 64 KiB
//! stay in memory and become one write at the end; a longer body streams in writes of at
//! least 128 KiB. Invariant: a file below `bodies/` is whole, because it gets there only by
//! the rename in [`Finished::commit`]; a body that is dropped before leaves nothing.
//!
//! The file calls block: handing them to another thread costs more than they do (measured),
//! and the thread that waits for a slow disk is one of the runtime's, not the engine's loop.
//! Nothing is synced to the device: a crash of the program loses nothing, a power cut may
//! lose what the system had not written yet, and resume then finds the size wrong.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::StoreError;
use super::space::Space;
use crate::model::job::hex;
use crate::model::{Clock, Time};

/// A body up to this many bytes is one write at its end.
const SMALL: usize = 64 << 10;
/// A longer one is written whenever this much is buffered.
const LARGE: usize = 128 << 10;
/// What temporary names end in; only files named `NUMBER.part` are ours to remove.
const SUFFIX: &str = ".part";

/// Hands out temporary bodies of one output directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bodies(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    out: PathBuf,
    temp: PathBuf,
    next: AtomicU64,
    space: Space,
    clock: Clock,
    disk_nanos: AtomicU64,
}

impl Bodies {
    /// For the output directory `out`, with temporary files in its `.tmp/`. Removes the
    /// temporary files of an earlier run; the caller holds the directory's lock.
    pub(super) fn open(out: &Path, space: Space, clock: Clock) -> Result<Bodies, StoreError> {
        let temp = out.join(".tmp");
        std::fs::create_dir_all(&temp).map_err(StoreError::io("create", &temp))?;
        remove_stale(&temp).map_err(StoreError::io("clear", &temp))?;
        Ok(Bodies(Arc::new(Shared {
            out: out.to_owned(),
            temp,
            next: AtomicU64::new(0),
            space,
            clock,
            disk_nanos: AtomicU64::new(0),
        })))
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
        let path = self.0.out.join(file);
        std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))
    }

    /// Takes `.tmp/` away when nothing is in it.
    pub(super) fn close(&self) {
        // Not empty means that a task still holds a body; the next run clears it.
        let _ = std::fs::remove_dir(&self.0.temp);
    }

    fn timed<T>(&self, act: impl FnOnce() -> T) -> T {
        let start: Time = self.0.clock.now();
        let done = act();
        let spent = self.0.clock.now() - start;
        let nanos = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.0.disk_nanos.fetch_add(nanos, Ordering::Relaxed);
        done
    }
}

fn remove_stale(temp: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(temp)? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if number.is_some_and(|n| n.parse::<u64>().is_ok()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A body that is still arriving. Dropped, it leaves no file.
#[derive(Debug)]
pub struct TempBody {
    bodies: Bodies,
    buffer: Vec<u8>,
    file: Option<(File, TempPath)>,
    digest: Sha256,
    bytes: u64,
}

/// A temporary file that goes when this does.
#[derive(Debug)]
struct TempPath(PathBuf);

impl TempPath {
    /// It has another name now: nothing is left to remove.
    fn keep(&mut self) {
        self.0 = PathBuf::new();
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // A file that cannot be removed now goes when the next run opens the directory.
            let _ = std::fs::remove_file(&self.0);
        }
    }
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
        let (_, temp) = self.bodies.append(self.file, &self.buffer)?;
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
    fn append(
        &self,
        open: Option<(File, TempPath)>,
        bytes: &[u8],
    ) -> Result<(File, TempPath), StoreError> {
        self.timed(|| {
            let (mut file, temp) = match open {
                Some(open) => open,
                None => self.temp_file()?,
            };
            file.write_all(bytes)
                .map_err(StoreError::io("write", &temp.0))?;
            self.0.space.spend(bytes.len() as u64)?;
            Ok((file, temp))
        })
    }

    fn temp_file(&self) -> Result<(File, TempPath), StoreError> {
        let number = self.0.next.fetch_add(1, Ordering::Relaxed);
        let path = self.0.temp.join(format!("{number}{SUFFIX}"));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(StoreError::io("create", &path))?;
        Ok((file, TempPath(path)))
    }
}

/// A whole body in a temporary file. Dropped, it leaves no file.
#[derive(Debug)]
pub struct Finished {
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
    temp: TempPath,
    bodies: Bodies,
}

impl Finished {
    /// Gives it its final name, relative to the output directory, in one step; what had
    /// that name before is replaced. Directories are made when they turn out to be missing.
    ///
    /// # Errors
    /// The disk refused; the body is then gone.
    pub fn commit(mut self, file: &str) -> Result<(), StoreError> {
        let to = self.bodies.0.out.join(file);
        let from = &self.temp.0;
        self.bodies.timed(|| match std::fs::rename(from, &to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let parent = to.parent().unwrap_or(&to);
                std::fs::create_dir_all(parent).map_err(StoreError::io("create", parent))?;
                std::fs::rename(from, &to).map_err(StoreError::io("rename a body to", &to))
            }
            done => done.map_err(StoreError::io("rename a body to", &to)),
        })?;
        self.temp.keep();
        Ok(())
    }
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod tests;
