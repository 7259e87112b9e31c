//! Bodies on their way to disk: temporary file, digest, final name.
//!
//! A [`TempBody`] lives inside a fetch task, so a long body never passes the engine. Up to 64 KiB
//! stay in memory and become one write when they are committed; a longer body streams in
//! writes of about 256 KiB. Invariant: a file below `bodies/` is whole, because it gets there only by
//! [`Finished::commit`]; a body that is dropped before leaves nothing.
//!
//! The file calls block. The pieces of a large body are hashed and written by [`Writers`], while
//! the next piece arrives. A small one is written by whoever commits it: handing over one costs
//! more than its calls do (measured), many together do not. Nothing is synced to the device: a
//! crash of the program loses nothing, a power cut may lose what the system had not written yet,
//! and resume then finds the size wrong.

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use super::StoreError;
use super::space::Space;
use super::temp::{TempFile, TempFiles};
use super::writers::Writers;
use crate::model::job::hex;

/// A body up to this many bytes is one write at its end.
const SMALL: usize = 64 << 10;
/// A longer one is written whenever this much has come. Larger: fewer changes of thread, and
/// more memory per body.
const LARGE: usize = 256 << 10;
/// Shorter pieces of a long body are copied together: each keeps the buffer alive that it was
/// read into.
const COPIED: usize = 32 << 10;

/// Hands out temporary bodies of one output directory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Bodies(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    files: TempFiles,
    space: Space,
    writers: Writers,
}

impl Bodies {
    /// Bodies that pass through `files`.
    pub(super) fn new(files: TempFiles, space: Space) -> Bodies {
        Bodies(Arc::new(Shared {
            files,
            space,
            writers: Writers::default(),
        }))
    }

    /// An empty body. Costs nothing until bytes have to reach the disk.
    pub fn create(&self) -> TempBody {
        TempBody {
            bodies: self.clone(),
            bytes: 0,
            buffer: Vec::new(),
            pieces: Vec::new(),
            waiting: 0,
            sink: Some(Sink::default()),
            writing: None,
        }
    }

    /// Stores one byte and takes it away again: `bodies/` can be written and is on the file
    /// system of `.tmp/`, so that a rename will do.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        let sink = Sink::default().append(self, &[b"?"])?;
        let temp = sink.file.ok_or_else(|| self.lost())?;
        let file = "bodies/.writable";
        self.0.files.commit(temp, file)?;
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

    /// Who works on long bodies.
    pub(super) fn writers(&self) -> &Writers {
        &self.0.writers
    }
}

/// A body that is still arriving. Dropped, it leaves no file.
#[derive(Debug)]
pub struct TempBody {
    bodies: Bodies,
    bytes: u64,
    /// Short pieces, joined.
    buffer: Vec<u8>,
    /// What comes before them.
    pieces: Vec<Bytes>,
    /// Length of both.
    waiting: usize,
    /// `None` while a thread writes, and after it failed.
    sink: Option<Sink>,
    writing: Option<JoinHandle<Result<Sink, StoreError>>>,
}

/// Where bytes end.
#[derive(Debug, Default)]
struct Sink {
    file: Option<TempFile>,
    digest: Sha256,
}

impl TempBody {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// The disk refused them, or less than `--min-free` is left; the body is then of no use.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), StoreError> {
        let before = self.bytes;
        self.bytes += chunk.len() as u64;
        self.waiting += chunk.len();
        if self.bytes <= SMALL as u64 || chunk.len() < COPIED {
            self.buffer.extend_from_slice(&chunk);
        } else {
            self.seal();
            self.pieces.push(chunk);
        }
        let room = if before <= SMALL as u64 { SMALL } else { LARGE };
        match self.waiting {
            waiting if waiting > room => self.hand_over().await,
            _ => Ok(()),
        }
    }

    /// Bytes taken so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All has come. A long body is in its temporary file then, a short one still in memory.
    ///
    /// # Errors
    /// As [`TempBody::write`].
    pub async fn finish(mut self) -> Result<Finished, StoreError> {
        if self.bytes > SMALL as u64 && self.waiting > 0 {
            self.hand_over().await?;
        }
        let place = match self.bytes <= SMALL as u64 {
            true => Place::Memory(std::mem::take(&mut self.buffer)),
            false => Place::File(self.idle().await?),
        };
        Ok(Finished {
            bytes: self.bytes,
            place,
            bodies: self.bodies,
        })
    }

    /// Joined pieces become one.
    fn seal(&mut self) {
        if !self.buffer.is_empty() {
            self.pieces.push(std::mem::take(&mut self.buffer).into());
        }
    }

    /// Lets another thread write what is waiting, once it has written what it was given before.
    async fn hand_over(&mut self) -> Result<(), StoreError> {
        self.seal();
        self.waiting = 0;
        let sink = self.idle().await?;
        let (bodies, pieces) = (self.bodies.clone(), std::mem::take(&mut self.pieces));
        let writers = self.bodies.writers();
        self.writing = Some(writers.run(move || {
            let pieces: Vec<&[u8]> = pieces.iter().map(|piece| &piece[..]).collect();
            sink.append(&bodies, &pieces)
        }));
        Ok(())
    }

    /// The sink, as soon as nobody writes to it.
    async fn idle(&mut self) -> Result<Sink, StoreError> {
        if let Some(writing) = self.writing.take() {
            return writing.await.map_err(|_| self.bodies.lost())?;
        }
        self.sink.take().ok_or_else(|| self.bodies.lost())
    }
}

impl Sink {
    /// Adds `pieces`, to a temporary file made now if there is none yet.
    fn append(mut self, bodies: &Bodies, pieces: &[&[u8]]) -> Result<Sink, StoreError> {
        for piece in pieces {
            self.digest.update(piece);
        }
        let files = &bodies.0.files;
        let mut temp = match self.file {
            Some(open) => open,
            None => files.create()?,
        };
        for piece in pieces {
            if let Err(error) = temp.write(piece) {
                return Err(StoreError::io("write", temp.shown(files))(error));
            }
        }
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        bodies.0.space.spend(bytes)?;
        self.file = Some(temp);
        Ok(self)
    }
}

impl Bodies {
    /// A body whose writing ended without a word: its thread died, or it failed before.
    pub fn lost(&self) -> StoreError {
        let error = std::io::Error::other("its writer is gone");
        StoreError::io("write a body in", self.0.files.dir())(error)
    }
}

/// A whole body. Dropped, it leaves no file.
#[derive(Debug)]
pub struct Finished {
    /// Its length.
    pub bytes: u64,
    place: Place,
    bodies: Bodies,
}

/// Where a whole body is.
#[derive(Debug)]
enum Place {
    Memory(Vec<u8>),
    File(Sink),
}

impl Finished {
    /// Bytes of memory that it takes, at least 1; 0: it has a file open.
    pub fn in_memory(&self) -> usize {
        match &self.place {
            Place::Memory(bytes) => bytes.capacity().max(1),
            Place::File(_) => 0,
        }
    }

    /// Gives it its final name, relative to the output directory, in one step; what had
    /// that name before is replaced. Directories are made when they turn out to be missing.
    /// Answers its SHA-256, lower-case hex.
    ///
    /// # Errors
    /// The disk refused; the body is then gone.
    pub fn commit(self, file: &str) -> Result<String, StoreError> {
        let bodies = self.bodies;
        let sink = match self.place {
            Place::Memory(bytes) => Sink::default().append(&bodies, &[&bytes])?,
            Place::File(sink) => sink,
        };
        let temp = sink.file.ok_or_else(|| bodies.lost())?;
        bodies.0.files.commit(temp, file)?;
        Ok(hex(&sink.digest.finalize()))
    }
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod tests;
