//! The answer of one attempt: its head, its body piece by piece, its end.
//!
//! The facts are complete when [`Exchange::finish`] returns, and the socket is then either
//! handed back for another request or gone, seen by the exit. No wait here is without
//! a bound: a piece comes within the stall limit, and the limit of the attempt is looked
//! at before every piece, however fast they come.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body, Incoming};

use crate::model::{Attempt, Fault, FaultKind, Framing, Head, Phase};

use super::Coding;
use super::alarm::Passed;
use super::conn::Conn;
use super::decode::{Decoder, Piece};
use super::fault::{fault, of_body, one_line};
use super::framing::is_coded_unasked;
use super::path::Running;
use super::tape::Tape;

/// Most that is read of a body nobody wants, in bytes, to keep its connection.
const DRAIN_BYTES: u64 = 64 * 1024;

/// Longest that this may take.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// One attempt: before its head only what it is made of, then the answer. It never fails: what went wrong is in the [`Attempt`].
pub struct Exchange {
    /// Its connection is what the answer comes over; without a body to read, what can be
    /// handed back.
    pub(super) running: Running,
    /// `None` once it was read to its end, or if there is none.
    body: Option<Incoming>,
    framing: Framing,
    decoding: Decoding,
    /// Bytes handed out.
    decoded: u64,
    terms: Terms,
}

/// On which terms its body is read.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) stall: Duration,
    pub(super) max_body: Option<u64>,
    pub(super) coding: Coding,
    /// Whether the connection may serve another request.
    pub(super) keep_alive: bool,
}

/// Where decoding stands.
enum Decoding {
    /// Nothing to decode.
    Plain,
    By(Decoder),
    /// Cannot be decoded: why. Only who reads the body has to know.
    Refused(String),
}

impl Exchange {
    /// An attempt that has not asked yet.
    pub(super) fn new(running: Running, terms: Terms) -> Exchange {
        Exchange {
            running,
            body: None,
            framing: Framing::Length(0),
            decoding: Decoding::Plain,
            decoded: 0,
            terms,
        }
    }

    /// It ended without a head.
    pub(super) fn failed(&mut self, fault: Fault) {
        self.running.attempt.fault = Some(fault);
    }

    /// The head came.
    pub(super) fn answered(&mut self, response: Response<Incoming>) {
        let (parts, body) = response.into_parts();
        self.running.mark.enter(Phase::Body);
        self.framing = Framing::of(&body, &parts.headers);
        self.body = (!body.is_end_stream()).then_some(body);
        if self.terms.coding == Coding::Compressed && self.body.is_some() {
            self.decoding = match Decoder::of(&parts.headers) {
                Ok(None) => Decoding::Plain,
                Ok(Some(decoder)) => Decoding::By(decoder),
                Err(why) => Decoding::Refused(why),
            };
        }
        let Running {
            attempt,
            alarm,
            head_at,
            ..
        } = &mut self.running;
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            let why = "the answer is 101, a protocol nobody asked for";
            attempt.fault = Some(fault(Phase::Head, FaultKind::Protocol, why));
        } else if is_coded_unasked(&parts.headers) {
            let why = "the answer is in a transfer coding nobody asked for";
            attempt.fault = Some(fault(Phase::Head, FaultKind::Protocol, why));
        }
        attempt.received_unix = alarm.unix(*head_at);
        attempt.length_verified = self.body.is_none();
        attempt.head = Some(Head {
            status: parts.status.as_u16(),
            headers: parts.headers,
        });
    }

    /// The answer's head, if one came.
    pub fn head(&self) -> Option<&Head> {
        self.running.attempt.head.as_ref()
    }

    /// What goes over the connection, where [`Options::tapes`](super::Options::tapes) asks
    /// for it.
    pub fn tape(&self) -> Option<&Tape> {
        self.running.conn.as_ref()?.tape()
    }

    /// How the end of the body is known.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The body is handed out decoded: other bytes than those that come.
    pub fn is_decoding(&self) -> bool {
        matches!(self.decoding, Decoding::By(_))
    }

    /// The facts so far.
    pub fn attempt(&self) -> &Attempt {
        &self.running.attempt
    }

    /// The next piece of the body, decoded where that was asked for; it can be empty where
    /// a tape runs along and more came than could be decoded yet. `None` at its end and
    /// after a fault: [`Attempt::fault`] tells which.
    pub async fn chunk(&mut self) -> Option<Bytes> {
        if self.running.attempt.fault.is_some() {
            return None;
        }
        match self.next().await {
            Ok(piece) => {
                self.decoded += piece.as_ref().map_or(0, |piece| piece.len() as u64);
                piece
            }
            Err(fault) => {
                self.running.attempt.fault = Some(fault);
                self.note_body_time();
                None
            }
        }
    }

    /// The reader of the body made it wait so long: that is taken off no limit.
    pub fn excuse(&mut self, wait: Duration) {
        self.running.alarm.excuse(wait);
    }

    /// The body is over, or given up: until now it took.
    fn note_body_time(&mut self) {
        let took = self.running.alarm.now() - self.running.head_at;
        self.running.attempt.phases.body.get_or_insert(took);
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        match &self.decoding {
            Decoding::Plain => {}
            Decoding::By(_) => return self.decoded_piece().await,
            Decoding::Refused(why) => return Err(self.undecodable(why)),
        }
        if let Framing::Length(length) = self.framing {
            self.check_size(length)?;
        }
        let piece = self.wire_piece().await?;
        self.check_size(self.running.attempt.wire_bytes)?;
        Ok(piece)
    }

    async fn decoded_piece(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let Decoding::By(decoder) = &mut self.decoding else {
                return Ok(None);
            };
            let piece = decoder.piece();
            match piece.map_err(|err| self.undecodable(&one_line(&err)))? {
                Piece::Output(bytes) => {
                    self.check_size(self.decoded + bytes.len() as u64)?;
                    self.check_deadline()?;
                    return Ok(Some(bytes));
                }
                Piece::Hungry => {
                    let input = self.wire_piece().await?;
                    let empty = input.is_none() && self.running.attempt.wire_bytes == 0;
                    match (&mut self.decoding, input) {
                        // An empty body is empty in every coding.
                        _ if empty => return Ok(None),
                        (Decoding::By(decoder), Some(input)) => {
                            decoder.feed(input);
                            if self.tape().is_some() {
                                return Ok(Some(Bytes::new()));
                            }
                        }
                        (Decoding::By(decoder), None) => decoder.end(),
                        (Decoding::Plain | Decoding::Refused(_), _) => return Ok(None),
                    }
                }
                // The coded data is whole, but the message has to be as well.
                Piece::Done if self.wire_piece().await?.is_none() => return Ok(None),
                Piece::Done if self.tape().is_some() => return Ok(Some(Bytes::new())),
                Piece::Done => {}
            }
        }
    }

    fn undecodable(&self, why: &str) -> Fault {
        let at = self.running.attempt.wire_bytes;
        let detail = format!("the content coding does not decode within {at} bytes: {why}");
        fault(Phase::Body, FaultKind::Decode, detail)
    }

    fn check_size(&self, size: u64) -> Result<(), Fault> {
        match self.terms.max_body {
            Some(max) if size > max => {
                let detail = format!("the body has {size} bytes or more, allowed are {max}");
                Err(fault(Phase::Body, FaultKind::TooLarge, detail))
            }
            _ => Ok(()),
        }
    }

    fn check_deadline(&self) -> Result<(), Fault> {
        match self.running.alarm.passed() {
            Some(passed) => Err(self.too_slow(passed)),
            None => Ok(()),
        }
    }

    fn too_slow(&self, passed: Passed) -> Fault {
        let got = self.running.attempt.wire_bytes;
        passed.fault(Phase::Body, &format!("no further byte after {got}"))
    }

    /// The next piece as it is on the wire; `None` at the end.
    async fn wire_piece(&mut self) -> Result<Option<Bytes>, Fault> {
        let Running { conn, alarm, .. } = &mut self.running;
        let (Some(conn), Some(body)) = (conn, &mut self.body) else {
            return Ok(None);
        };
        let now = alarm.allow(self.terms.stall);
        let piece = match alarm.passed_at(now) {
            Some(passed) => Err(passed),
            None => {
                poll_fn(|cx| match conn.poll_chunk(body, cx) {
                    Poll::Ready(piece) => Poll::Ready(Ok(piece)),
                    Poll::Pending => alarm.poll(cx).map(Err),
                })
                .await
            }
        };
        match piece {
            Err(passed) => Err(self.too_slow(passed)),
            Ok(Some(Ok(bytes))) => {
                // Where a length was announced, its last piece is known as such.
                let last = body.is_end_stream();
                self.running.attempt.wire_bytes += bytes.len() as u64;
                self.running.mark.received(bytes.len() as u64);
                if last {
                    self.body_ended();
                }
                Ok(Some(bytes))
            }
            Ok(Some(Err(err))) => {
                let of = match self.framing {
                    Framing::Length(length) => Some(length),
                    Framing::Chunked | Framing::Close => None,
                };
                Err(of_body(&err, self.running.attempt.wire_bytes, of))
            }
            Ok(None) => {
                self.body_ended();
                Ok(None)
            }
        }
    }

    fn body_ended(&mut self) {
        self.body = None;
        self.note_body_time();
        self.running.attempt.length_verified = self.framing != Framing::Close;
    }

    /// Reads a body nobody wants, if it is short, so that its socket can serve again.
    /// What goes wrong in it is no fault: the head was all that counted.
    pub async fn discard(&mut self) {
        if matches!(self.framing, Framing::Length(length) if length > DRAIN_BYTES) {
            return;
        }
        self.terms.stall = self.terms.stall.min(DRAIN_TIME);
        let end = self.running.alarm.now() + DRAIN_TIME;
        while self.running.attempt.wire_bytes <= DRAIN_BYTES && self.running.alarm.now() < end {
            match self.wire_piece().await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Ends the attempt: all facts, and the connection if it can serve another request.
    /// One that cannot is closed, and the exit has seen that (or had 250 ms to).
    pub async fn finish(mut self: Box<Exchange>) -> (Box<Attempt>, Option<Conn>) {
        let whole = self.body.is_none() && self.running.attempt.fault.is_none();
        if self.body.is_some() {
            self.note_body_time();
        }
        let Running {
            mut attempt,
            alarm,
            conn,
            ..
        } = self.running;
        let Some(mut conn) = conn else {
            return (attempt, None);
        };
        let unused = attempt.head.is_none();
        if unused || (whole && self.terms.keep_alive && conn.settle().await) {
            attempt.kept = !unused;
            conn.timer = alarm.into_timer();
            return (attempt, Some(conn));
        }
        Box::pin(conn.close()).await;
        (attempt, None)
    }
}
