//! Writing an answer.
//!
//! A small answer is one write, head and body together. What is in flight is un-counted just
//! *before* the last write: a client that has read the last byte may start its next request
//! at once on another socket, and must never be seen with two where it had one. The error
//! this leaves is a last piece of at most 64 KiB that is written but perhaps not yet read.

use std::io::Write;
use std::time::Duration;

use super::super::content;
use super::super::wire::{Gone, Wire};
use super::{After, Body, End, Framing, Pace, Reply, reason};

/// Bodies go out in pieces of this size.
const PIECE: u64 = content::RUN as u64;
/// Slow bodies go out in pieces at least so far apart, where they are long enough.
const TICK: Duration = Duration::from_millis(10);

/// What else the writing depends on.
#[derive(Clone, Copy, Debug)]
pub(in crate::lab) struct Sending {
    /// What bodies of the lab follow from.
    pub(in crate::lab) seed: u64,
    /// The request was HEAD.
    pub(in crate::lab) head_only: bool,
    /// The peer means to go on with the connection.
    pub(in crate::lab) persistent: bool,
}

impl Reply {
    /// Writes the answer. `in_flight` is dropped when the answer is as good as written, or
    /// after [`Finish::finished`] told it so.
    pub(in crate::lab) async fn send(
        &self,
        wire: &mut Wire,
        sending: Sending,
        in_flight: impl Finish,
    ) -> Result<After, Gone> {
        let closes = !sending.persistent
            || self.framing == Framing::Close
            || matches!(self.end, End::Close | End::Reset);
        if self.status > 0 {
            self.head(&mut wire.out, closes);
            if !self.slow_head.is_zero() {
                self.trickle(wire).await?;
            }
        }
        let mut in_flight = Some(in_flight);
        self.write_body(wire, sending, closes, &mut in_flight)
            .await?;
        Ok(match self.end {
            End::Silence => return Err(wire.until_gone().await),
            End::Reset => After::Reset,
            End::Stale => After::Stale,
            _ if closes => After::Close,
            _ => After::Keep,
        })
    }

    async fn write_body(
        &self,
        wire: &mut Wire,
        sending: Sending,
        closes: bool,
        in_flight: &mut Option<impl Finish>,
    ) -> Result<(), Gone> {
        let size = if sending.head_only {
            0
        } else {
            self.body.size()
        };
        let until = self.cut.unwrap_or(size).min(size);
        let (piece, gap) = self.pieces(until);
        let mut at = 0;
        loop {
            let n = piece.min(until - at);
            let is_last = at + n == until;
            if self.framing != Framing::Chunked && at > 0 && n == PIECE && !is_last {
                let piece = self.body.lent(sending.seed, at, n as usize);
                wire.write(piece).await?;
            } else {
                self.piece(&mut wire.out, sending, at, n);
            }
            at += n;
            if is_last {
                self.last(&mut wire.out, sending);
                if self.is_whole() {
                    if let Some(in_flight) = in_flight.take() {
                        in_flight.finished();
                    }
                    if closes {
                        wire.uncount();
                    }
                }
                return wire.send().await;
            }
            wire.send().await?;
            wire.pause(gap).await?;
        }
    }

    /// Piece size and the time between two pieces.
    fn pieces(&self, size: u64) -> (u64, Duration) {
        match self.pace {
            Pace::Over(time) if !time.is_zero() && size > 0 => {
                let ticks = (time.as_millis() / TICK.as_millis()).max(1);
                let pieces = u64::try_from(ticks).unwrap_or(u64::MAX).min(size);
                let piece = size.div_ceil(pieces);
                let gaps = u32::try_from(size.div_ceil(piece) - 1).unwrap_or(u32::MAX);
                (piece.min(PIECE), time / gaps.max(1))
            }
            Pace::Fast | Pace::Over(_) => (PIECE, Duration::ZERO),
            Pace::Pieces { size, gap } => (size, gap),
        }
    }

    fn piece(&self, out: &mut Vec<u8>, sending: Sending, at: u64, n: u64) {
        if n == 0 {
            return;
        }
        let chunked = self.framing == Framing::Chunked;
        if chunked {
            // Writing to memory does not fail.
            let _ = write!(out, "{n:x}\r\n");
        }
        // A piece is at most the body or 64 KiB.
        self.body.append(out, sending.seed, at, n as usize);
        if chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    fn last(&self, out: &mut Vec<u8>, sending: Sending) {
        if self.framing == Framing::Chunked && self.cut.is_none() && !sending.head_only {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        if self.end == End::Extra {
            out.extend_from_slice(b"and this belongs to no answer\r\n");
        }
    }

    fn head(&self, out: &mut Vec<u8>, closes: bool) {
        let start = out.len();
        out.extend_from_slice(match self.framing {
            Framing::Close => b"HTTP/1.0 ",
            Framing::Length | Framing::Chunked => b"HTTP/1.1 ",
        });
        push_decimal(out, u64::from(self.status));
        out.push(b' ');
        out.extend_from_slice(reason(self.status).as_bytes());
        out.extend_from_slice(b"\r\n");
        match (&self.body, self.framing) {
            (Body::None, _) | (_, Framing::Close) => {}
            (body, Framing::Length) => {
                out.extend_from_slice(b"Content-Length: ");
                push_decimal(out, body.size());
                out.extend_from_slice(b"\r\n");
            }
            (_, Framing::Chunked) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        if !matches!(self.body, Body::None) && !self.fields.contains("Content-Type:") {
            out.extend_from_slice(b"Content-Type: text/plain\r\n");
        }
        out.extend_from_slice(self.fields.as_bytes());
        if closes && self.framing != Framing::Close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        fill_up(out, start + self.head_size);
        out.extend_from_slice(b"\r\n");
    }

    /// Sends the head byte by byte.
    async fn trickle(&self, wire: &mut Wire) -> Result<(), Gone> {
        let head = std::mem::take(&mut wire.out);
        let gap = self.slow_head / u32::try_from(head.len()).unwrap_or(u32::MAX);
        for byte in head {
            wire.out.push(byte);
            wire.send().await?;
            wire.pause(gap).await?;
        }
        Ok(())
    }
}

/// What must hear that an answer is as good as written.
pub(in crate::lab) trait Finish {
    /// It is.
    fn finished(self);
}

impl Finish for () {
    fn finished(self) {}
}

/// Appends a number: `write!` would be a third of the making of a small answer.
fn push_decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends header lines until the head, its empty line included, ends at `size`.
fn fill_up(out: &mut Vec<u8>, size: usize) {
    const FRAME: usize = "X-Fill: \r\n".len();
    const LINE: usize = 4000;
    while out.len() + FRAME + 2 < size {
        let left = size - out.len() - 2;
        // A rest that is too short for a line of its own goes into this one.
        let line = if left < LINE + 2 * FRAME { left } else { LINE };
        out.extend_from_slice(b"X-Fill: ");
        out.resize(out.len() + line - FRAME, b'f');
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(reply: &Reply) -> String {
        let mut out = Vec::new();
        reply.head(&mut out, false);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_head_says_how_long_the_body_is() {
        assert_eq!(
            head(&Reply::content(5)),
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\n"
        );
        assert_eq!(head(&Reply::status(204)), "HTTP/1.1 204 No Content\r\n\r\n");
    }

    #[test]
    fn a_number_is_written_in_full() {
        for number in [0, 9, 10, 67_108_864, u64::MAX] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_head_can_have_any_size() {
        for size in [200, 4100, 4200, 20_000, 61_440, 5_000_000] {
            let mut reply = Reply::content(5);
            reply.head_size = size;
            assert_eq!(head(&reply).len(), size);
        }
    }

    #[test]
    fn a_slow_body_goes_byte_by_byte_if_it_is_short_and_in_ticks_if_it_is_long() {
        let mut reply = Reply::content(20);
        reply.pace = Pace::Over(Duration::from_secs(2));
        let (piece, gap) = reply.pieces(20);
        assert_eq!((piece, gap.as_millis()), (1, 105));
        let (piece, gap) = reply.pieces(2_000_000);
        assert_eq!((piece, gap.as_millis()), (10_000, 10));
    }
}
