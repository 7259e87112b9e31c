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

use crate::model::{Attempt, Fault, FaultKind, Head, Phase, Time};

use super::Coding;
use super::alarm::{Alarm, Passed};
use super::conn::Conn;
use super::decode::{Decoder, Piece};
use super::fault::{fault, of_body, one_line};
use super::framing::{Framing, is_coded_unasked};
use super::gauges::Mark;
use super::path::Running;

/// Most that is read of a body nobody wants, in bytes, to keep its connection.
const DRAIN_BYTES: u64 = 64 * 1024;

/// Longest that this may take.
const DRAIN_TIME: Duration = Duration::from_secs(1);

/// One attempt from its head on. It never fails: what went wrong is in the [`Attempt`].
pub struct Exchange {
    attempt: Attempt,
    alarm: Alarm,
    mark: Mark,
    /// What the answer comes over; without a body to read, what can be handed back.
    conn: Option<Conn>,
    /// `None` once it was read to its end, or if there is none.
    body: Option<Incoming>,
    framing: Framing,
    decoding: Decoding,
    /// Bytes handed out.
    decoded: u64,
    head_at: Time,
    terms: Terms,
}

/// An answer whose head is complete.
pub(super) struct Answer {
    pub(super) conn: Conn,
    pub(super) response: Response<Incoming>,
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
    /// An attempt that ended without a head. `untouched` is a connection it was given and
    /// had no use for.
    pub(super) fn ended(running: Running, fault: Fault, untouched: Option<Conn>) -> Exchange {
        let Running {
            mut attempt,
            alarm,
            mark,
        } = running;
        attempt.fault = Some(fault);
        Exchange {
            attempt,
            head_at: alarm.now(),
            alarm,
            mark,
            conn: untouched,
            body: None,
            framing: Framing::Length(0),
            decoding: Decoding::Plain,
            decoded: 0,
            terms: Terms {
                stall: Duration::ZERO,
                max_body: None,
                coding: Coding::Identity,
                keep_alive: true,
            },
        }
    }

    /// An attempt whose head came; `running` holds the facts until then.
    pub(super) fn answered(running: Running, answer: Answer, terms: Terms) -> Exchange {
        let Running {
            mut attempt,
            alarm,
            mut mark,
        } = running;
        mark.enter(Phase::Body);
        let (parts, body) = answer.response.into_parts();
        let framing = Framing::of(&body, &parts.headers);
        let body = (!body.is_end_stream()).then_some(body);
        let decoding = match terms.coding {
            Coding::Compressed if body.is_some() => match Decoder::of(&parts.headers) {
                Ok(None) => Decoding::Plain,
                Ok(Some(decoder)) => Decoding::By(decoder),
                Err(why) => Decoding::Refused(why),
            },
            _ => Decoding::Plain,
        };
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            let why = "the answer is 101, a protocol nobody asked for";
            attempt.fault = Some(fault(Phase::Head, FaultKind::Protocol, why));
        } else if is_coded_unasked(&parts.headers) {
            let why = "the answer is in a transfer coding nobody asked for";
            attempt.fault = Some(fault(Phase::Head, FaultKind::Protocol, why));
        }
        attempt.received_unix = alarm.unix();
        attempt.length_verified = body.is_none();
        attempt.head = Some(Head {
            status: parts.status.as_u16(),
            headers: parts.headers,
        });
        Exchange {
            attempt,
            head_at: alarm.now(),
            alarm,
            mark,
            conn: Some(answer.conn),
            body,
            framing,
            decoding,
            decoded: 0,
            terms,
        }
    }

    /// The answer's head, if one came.
    pub fn head(&self) -> Option<&Head> {
        self.attempt.head.as_ref()
    }

    /// The facts so far.
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// The next piece of the body, decoded where that was asked for. `None` at its end and
    /// after a fault: [`Attempt::fault`] tells which.
    pub async fn chunk(&mut self) -> Option<Bytes> {
        if self.attempt.fault.is_some() {
            return None;
        }
        match self.next().await {
            Ok(piece) => {
                self.decoded += piece.as_ref().map_or(0, |piece| piece.len() as u64);
                piece
            }
            Err(fault) => {
                self.attempt.fault = Some(fault);
                self.note_body_time();
                None
            }
        }
    }

    /// The body is over, or given up: until now it took.
    fn note_body_time(&mut self) {
        let took = self.alarm.now() - self.head_at;
        self.attempt.phases.body.get_or_insert(took);
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
        self.check_size(self.attempt.wire_bytes)?;
        Ok(piece)
    }

    async fn decoded_piece(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let Decoding::By(decoder) = &mut self.decoding else {
                return Ok(None);
            };
            let piece = decoder.next();
            match piece.map_err(|err| self.undecodable(&one_line(&err)))? {
                Piece::Output(bytes) => {
                    self.check_size(self.decoded + bytes.len() as u64)?;
                    self.check_deadline()?;
                    return Ok(Some(bytes));
                }
                Piece::Hungry => {
                    let input = self.wire_piece().await?;
                    let empty = input.is_none() && self.attempt.wire_bytes == 0;
                    match (&mut self.decoding, input) {
                        // An empty body is empty in every coding.
                        _ if empty => return Ok(None),
                        (Decoding::By(decoder), Some(input)) => decoder.feed(input),
                        (Decoding::By(decoder), None) => decoder.end(),
                        (Decoding::Plain | Decoding::Refused(_), _) => return Ok(None),
                    }
                }
                // The coded data is whole, but the message has to be as well.
                Piece::Done if self.wire_piece().await?.is_none() => return Ok(None),
                Piece::Done => {}
            }
        }
    }

    fn undecodable(&self, why: &str) -> Fault {
        let at = self.attempt.wire_bytes;
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
        match self.alarm.passed() {
            Some(passed) => Err(self.too_slow(passed)),
            None => Ok(()),
        }
    }

    fn too_slow(&self, passed: Passed) -> Fault {
        let got = self.attempt.wire_bytes;
        passed.fault(Phase::Body, &format!("no further byte after {got}"))
    }

    /// The next piece as it is on the wire; `None` at the end.
    async fn wire_piece(&mut self) -> Result<Option<Bytes>, Fault> {
        let (Some(conn), Some(body)) = (&mut self.conn, &mut self.body) else {
            return Ok(None);
        };
        self.alarm.allow(self.terms.stall);
        let alarm = &mut self.alarm;
        let piece = match alarm.passed() {
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
                self.attempt.wire_bytes += bytes.len() as u64;
                self.mark.received(bytes.len() as u64);
                Ok(Some(bytes))
            }
            Ok(Some(Err(err))) => {
                let of = match self.framing {
                    Framing::Length(length) => Some(length),
                    Framing::Chunked | Framing::Close => None,
                };
                Err(of_body(&err, self.attempt.wire_bytes, of))
            }
            Ok(None) => {
                self.body = None;
                self.note_body_time();
                self.attempt.length_verified = self.framing != Framing::Close;
                Ok(None)
            }
        }
    }

    /// Reads a body nobody wants, if it is short, so that its socket can serve again.
    /// What goes wrong in it is no fault: the head was all that counted.
    pub async fn discard(&mut self) {
        if matches!(self.framing, Framing::Length(length) if length > DRAIN_BYTES) {
            return;
        }
        self.terms.stall = self.terms.stall.min(DRAIN_TIME);
        let end = self.alarm.now() + DRAIN_TIME;
        while self.attempt.wire_bytes <= DRAIN_BYTES && self.alarm.now() < end {
            match self.wire_piece().await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Ends the attempt: all facts, and the connection if it can serve another request.
    /// One that cannot is closed, and the exit has seen that (or had 250 ms to).
    pub async fn finish(mut self) -> (Attempt, Option<Conn>) {
        let whole = self.body.is_none() && self.attempt.fault.is_none();
        if self.body.is_some() {
            self.note_body_time();
        }
        let Some(mut conn) = self.conn.take() else {
            return (self.attempt, None);
        };
        let unused = self.attempt.head.is_none();
        if unused || (whole && self.terms.keep_alive && conn.settle().await) {
            self.attempt.kept = !unused;
            return (self.attempt, Some(conn));
        }
        Box::pin(conn.close()).await;
        (self.attempt, None)
    }
}
