//! An exchange that is to be archived, while its answer arrives.
//!
//! Lives inside a fetch task. It is handed the bytes as they came off the wire, finds the
//! final head in them, drops what is not of this answer (interim heads before it, bytes
//! beyond its end), and takes the digests. Up to 128 KiB stay in memory; a longer answer
//! goes to a file by pieces ([`Spool`]).

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::Archive;
use super::http::{self, Extent, Kind};
use super::spool::{Spool, Spooled};
use super::text::{Common, Digest};
use crate::model::Framing;
use crate::model::job::hex;
use crate::store::StoreError;

/// Longest answer that waits in memory for its end, and most that a longer one collects
/// between two writes. More saves writes and costs memory per request in flight.
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
    /// What came and is not in the spool.
    received: Vec<u8>,
    /// Of `received`, what is known to be of this answer.
    walked: usize,
    /// Length of the final head; 0 while it was not found.
    head: usize,
    extent: Extent,
    payload: Sha256,
    payload_bytes: u64,
    block: Option<Sha256>,
    decoded: Option<(Sha256, u64)>,
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
            walked: 0,
            head: 0,
            extent: Extent::new(opening.framing),
            payload: Sha256::new(),
            payload_bytes: 0,
            block: chunked.then(Sha256::new),
            decoded: opening.decoded.then(|| (Sha256::new(), 0)),
            spool: None,
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
    pub fn body(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        if let Some((digest, bytes)) = &mut self.decoded {
            digest.update(piece);
            *bytes += piece.len() as u64;
        }
        self.walk();
        if self.received.len() > IN_MEMORY {
            self.spill()?;
        }
        Ok(())
    }

    /// The answer is whole, and `sent` is what was asked.
    ///
    /// # Errors
    /// As [`Capture::body`].
    pub fn finish(mut self, sent: &[u8]) -> Result<Captured, StoreError> {
        self.walk();
        if self.spool.is_some() {
            self.spill()?;
        }
        let payload: [u8; 32] = self.payload.finalize().into();
        let digest = match self.block {
            None => Digest::Payload(payload),
            Some(block) => Digest::Block(block.finalize().into()),
        };
        let (bytes, sha256) = match self.decoded {
            None => (self.payload_bytes, hex(&payload)),
            Some((digest, bytes)) => (bytes, hex(&digest.finalize())),
        };
        let response = match self.spool {
            None => Response::Memory {
                bytes: self.received,
                head: self.head,
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
            payload: (self.payload_bytes > 0).then_some(payload),
            request: http::shown_request(sent),
            response,
        })
    }

    /// Goes along what came since the last time.
    fn walk(&mut self) {
        let from = self.walked;
        if self.head == 0 && self.spool.is_none() {
            let Some(head) = http::final_head(&self.received) else {
                return;
            };
            self.received.drain(..head.start);
            self.head = head.len();
            self.walked = head.len();
        }
        while self.walked < self.received.len() {
            let Some((n, kind)) = self.extent.step(&self.received[self.walked..]) else {
                // What follows is not of this answer.
                self.received.truncate(self.walked);
                break;
            };
            if kind == Kind::Data {
                self.payload
                    .update(&self.received[self.walked..self.walked + n]);
                self.payload_bytes += n as u64;
            }
            self.walked += n;
        }
        if let Some(block) = &mut self.block {
            block.update(&self.received[from..]);
        }
    }

    fn spill(&mut self) -> Result<(), StoreError> {
        let (spool, _) = match &mut self.spool {
            Some(spool) => spool,
            none => {
                let digest = match self.block {
                    None => Digest::Payload([0; 32]),
                    Some(_) => Digest::Block([0; 32]),
                };
                let spool = Spool::begin(&self.archive, &self.common, digest)?;
                none.insert((spool, self.received[..self.head].to_vec()))
            }
        };
        spool.write(&self.archive, &self.received)?;
        self.received.clear();
        self.walked = 0;
        Ok(())
    }
}
