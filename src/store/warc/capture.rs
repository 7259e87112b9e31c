//! An exchange that is to be archived, while its answer arrives.
//!
//! Lives inside a fetch task. It is handed the bytes as they came off the wire, finds the
//! final head in them, drops what is not of this answer (interim heads before it, bytes
//! beyond its end), and takes the digests. Up to 128 KiB stay in memory until the end; a
//! longer answer is hashed, compressed and written by pieces of that size on other threads
//! ([`Spool`]), while the next piece arrives.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::task::JoinHandle;

use super::Archive;
use super::http::{self, Extent, Kind};
use super::spool::{Spool, Spooled};
use super::text::{Common, Digest};
use crate::model::Framing;
use crate::model::job::hex;
use crate::store::StoreError;

/// Longest answer that waits in memory for its end, and what a longer one collects between
/// two writes. More saves changes of thread and costs memory per request in flight.
const IN_MEMORY: usize = 128 << 10;

/// What is known of an exchange when its head has come.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The URL asked, without userinfo and fragment.
    pub target: String,
    /// How its body ends.
    pub framing: Framing,
    /// The pieces that [`Capture::body`] is handed are other bytes than those that came.
    pub decoded: bool,
    /// How long ago the request was sent.
    pub since_sent: Duration,
}

/// An exchange whose answer is still arriving. Dropped, it leaves no file.
#[derive(Debug)]
pub struct Capture {
    archive: Archive,
    common: Common,
    /// What came and was not looked at.
    received: Vec<u8>,
    /// `None` while a thread has it, and after it failed. Boxed like the other digest: a task
    /// moves them several times.
    walk: Option<Box<Walk>>,
    walking: Option<JoinHandle<Result<Box<Walk>, StoreError>>>,
    decoded: Option<Box<(Sha256, u64)>>,
}

/// What is known of the answer so far.
#[derive(Debug)]
struct Walk {
    /// Length of the final head; 0 while it was not found.
    head: usize,
    extent: Extent,
    payload: Sha256,
    payload_bytes: u64,
    block: Option<Sha256>,
    /// What came so far, if it is long, and a copy of the head.
    spool: Option<(Spool, Vec<u8>)>,
}

/// An exchange that is whole, on its way into a segment.
#[derive(Debug)]
pub struct Captured {
    /// Bytes of the body, as a file of it would have them.
    pub bytes: u64,
    /// Their SHA-256, lower-case hex.
    pub sha256: String,
    pub(super) common: Common,
    pub(super) digest: Digest,
    /// Of the payload, if it is not empty.
    pub(super) payload: Option<[u8; 32]>,
    /// As it is archived.
    pub(super) request: Vec<u8>,
    pub(super) response: Response,
}

/// Where the answer is.
#[derive(Debug)]
pub(super) enum Response {
    Memory {
        bytes: Vec<u8>,
        /// Length of the head.
        head: usize,
    },
    File {
        spooled: Spooled,
        head: Vec<u8>,
    },
}

impl Captured {
    /// Bytes of memory that it takes, at least 1; 0: it has a file open.
    pub fn in_memory(&self) -> usize {
        match &self.response {
            Response::Memory { bytes, .. } => bytes.capacity() + self.request.capacity() + 1,
            Response::File { .. } => 0,
        }
    }
}

impl Capture {
    pub(super) fn new(archive: &Archive, opening: Opening) -> Capture {
        let chunked = opening.framing == Framing::Chunked;
        Capture {
            common: Common {
                id: archive.id(),
                date: archive.date(opening.since_sent),
                uri: opening.target,
            },
            archive: archive.clone(),
            received: Vec::new(),
            walk: Some(Box::new(Walk {
                head: 0,
                extent: Extent::new(opening.framing),
                payload: Sha256::new(),
                payload_bytes: 0,
                block: chunked.then(Sha256::new),
                spool: None,
            })),
            walking: None,
            decoded: opening.decoded.then(|| Box::new((Sha256::new(), 0))),
        }
    }

    /// Where bytes are to be added as they come off the wire.
    pub fn incoming(&mut self) -> &mut Vec<u8> {
        &mut self.received
    }

    /// A piece of the body as it is handed out; what it was made from is in
    /// [`Capture::incoming`] by now.
    ///
    /// # Errors
    /// The disk refused, or less than `--min-free` is left; the capture is then of no use.
    pub async fn body(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        if let Some((digest, bytes)) = self.decoded.as_deref_mut() {
            digest.update(piece);
            *bytes += piece.len() as u64;
        }
        match self.received.len() <= IN_MEMORY {
            true => Ok(()),
            false => self.hand_over().await,
        }
    }

    /// The answer is whole, and `sent` is what was asked.
    ///
    /// # Errors
    /// As [`Capture::body`].
    pub async fn finish(mut self, sent: &[u8]) -> Result<Captured, StoreError> {
        let mut walk = self.idle().await?;
        if walk.spool.is_some() {
            self.walk = Some(walk);
            self.hand_over().await?;
            walk = self.idle().await?;
        }
        let mut received = self.received;
        walk.go(&mut received);
        let payload: [u8; 32] = walk.payload.finalize().into();
        let digest = match walk.block {
            None => Digest::Payload(payload),
            Some(block) => Digest::Block(block.finalize().into()),
        };
        let (bytes, sha256) = match self.decoded {
            None => (walk.payload_bytes, hex(&payload)),
            Some(decoded) => (decoded.1, hex(&decoded.0.finalize())),
        };
        let response = match walk.spool {
            None => Response::Memory {
                bytes: received,
                head: walk.head,
            },
            Some((spool, head)) => Response::File {
                spooled: spool.end(&self.archive, &self.common, digest)?,
                head,
            },
        };
        Ok(Captured {
            bytes,
            sha256,
            common: self.common,
            digest,
            payload: (walk.payload_bytes > 0).then_some(payload),
            request: http::shown_request(sent),
            response,
        })
    }

    /// Lets another thread walk along what has come and write it, once it has done what it was
    /// given before.
    async fn hand_over(&mut self) -> Result<(), StoreError> {
        let walk = self.idle().await?;
        let (archive, common) = (self.archive.clone(), self.common.clone());
        let received = std::mem::take(&mut self.received);
        let writers = self.archive.bodies().writers();
        self.walking = Some(writers.run(move || walk.spill(&archive, &common, received)));
        Ok(())
    }

    /// The walk, as soon as no thread has it.
    async fn idle(&mut self) -> Result<Box<Walk>, StoreError> {
        let lost = || self.archive.bodies().lost();
        if let Some(walking) = self.walking.take() {
            return walking.await.map_err(|_| lost())?;
        }
        self.walk.take().ok_or_else(lost)
    }
}

impl Walk {
    /// Goes along the next bytes; what is not of this answer is taken out.
    fn go(&mut self, received: &mut Vec<u8>) {
        let mut at = 0;
        if self.head == 0
            && let Some(head) = http::final_head(received)
        {
            received.drain(..head.start);
            self.head = head.len();
            at = head.len();
        }
        while at < received.len() {
            let Some((n, kind)) = self.extent.step(&received[at..]) else {
                // What follows is not of this answer.
                received.truncate(at);
                break;
            };
            if kind == Kind::Data {
                self.payload.update(&received[at..at + n]);
                self.payload_bytes += n as u64;
            }
            at += n;
        }
        if let Some(block) = &mut self.block {
            block.update(received);
        }
    }

    /// The same, and writes them.
    fn spill(
        mut self: Box<Walk>,
        archive: &Archive,
        common: &Common,
        mut received: Vec<u8>,
    ) -> Result<Box<Walk>, StoreError> {
        self.go(&mut received);
        let (spool, _) = match &mut self.spool {
            Some(spool) => spool,
            none => {
                let digest = match self.block {
                    None => Digest::Payload([0; 32]),
                    Some(_) => Digest::Block([0; 32]),
                };
                let spool = Spool::begin(archive, common, digest)?;
                none.insert((spool, received[..self.head].to_vec()))
            }
        };
        spool.write(archive, &received)?;
        Ok(self)
    }
}
