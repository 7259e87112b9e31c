//! The exact bytes that went over a connection since its last request, both ways.
//!
//! hyper parses heads and takes chunks apart, so an archive that keeps what was received
//! reads along below it: the [`Wire`](super::wire::Wire) under hyper notes what passes, the
//! attempt's task takes it. Both run on the task that polls the connection, so the lock is
//! never waited for; it is there because hyper owns the wire. Without an archive there is no
//! tape, and nothing is noted.
//!
//! Layers below the wire (the exit's TLS, CONNECT, SOCKS5) never get here: a tape begins
//! with the first request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tracks that grew beyond this are not kept from one request to the next, in bytes.
const KEPT: usize = 64 * 1024;

/// A handle to the bytes of one connection.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Tracks>>);

#[derive(Default)]
struct Tracks {
    sent: Vec<u8>,
    received: Vec<u8>,
}

impl Tape {
    /// A new request begins.
    pub(super) fn rewind(&self) {
        let mut tracks = self.tracks();
        let Tracks { sent, received } = &mut *tracks;
        for track in [sent, received] {
            track.clear();
            track.shrink_to(KEPT);
        }
    }

    /// These bytes were written.
    pub(super) fn note_sent(&self, bytes: &[u8]) {
        self.tracks().sent.extend_from_slice(bytes);
    }

    /// These bytes were read.
    pub(super) fn note_received(&self, bytes: &[u8]) {
        self.tracks().received.extend_from_slice(bytes);
    }

    /// Takes what was sent: the request as it was written.
    pub fn sent(&self) -> Vec<u8> {
        std::mem::take(&mut self.tracks().sent)
    }

    /// Moves what was received since the last call behind what `out` holds. It begins with
    /// the head, interim ones included, and may go on beyond the answer's end.
    pub fn received(&self, out: &mut Vec<u8>) {
        let mut tracks = self.tracks();
        if out.is_empty() {
            std::mem::swap(out, &mut tracks.received);
        } else {
            out.append(&mut tracks.received);
        }
    }

    fn tracks(&self) -> MutexGuard<'_, Tracks> {
        // What a panic left behind is bytes all the same.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_holds_what_came_since_the_request_began() {
        let tape = Tape::default();
        tape.note_received(b"left over");
        tape.rewind();
        tape.note_sent(b"GET / ");
        tape.note_sent(b"HTTP/1.1\r\n");
        tape.note_received(b"HTTP/1.1 200");
        let mut received = Vec::new();
        tape.received(&mut received);
        tape.note_received(b" OK\r\n");
        tape.received(&mut received);
        assert_eq!(received, b"HTTP/1.1 200 OK\r\n");
        assert_eq!(tape.sent(), b"GET / HTTP/1.1\r\n");
        assert!(tape.sent().is_empty());
    }
}
