//! Answers: what is to be sent, as data. The writing of it is `write`'s.

mod write;

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::content;
pub(super) use write::{Finish, Sending};

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    /// 0: no head at all, the body is all there is.
    pub(super) status: u16,
    /// More header lines, each with its CR LF.
    pub(super) fields: String,
    pub(super) body: Body,
    pub(super) framing: Framing,
    /// Stop after so many bytes of the body.
    pub(super) cut: Option<u64>,
    pub(super) end: End,
    /// Before the first byte.
    pub(super) wait: Duration,
    /// From the head's first byte to its last.
    pub(super) slow_head: Duration,
    pub(super) pace: Pace,
    /// The head is filled up to so many bytes.
    pub(super) head_size: usize,
}

/// What a body is made of.
#[derive(Debug)]
pub(super) enum Body {
    /// None, and no length either (204, 304).
    None,
    /// So many bytes that follow from host and target.
    Content(u64),
    /// These.
    Bytes(Bytes),
}

impl Body {
    fn size(&self) -> u64 {
        match self {
            Body::None => 0,
            Body::Content(size) => *size,
            Body::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// `size` bytes from `from` on where they are there already: at most [`content::RUN`], and
    /// not from the first line.
    fn lent(&self, seed: u64, from: u64, size: usize) -> &[u8] {
        match self {
            Body::None => &[],
            Body::Content(_) => &content::lent(seed, from)[..size],
            Body::Bytes(bytes) => &bytes[from as usize..][..size],
        }
    }

    fn append(&self, out: &mut Vec<u8>, seed: u64, from: u64, size: usize) {
        match self {
            Body::None => {}
            Body::Content(_) => content::append(out, seed, from, size),
            Body::Bytes(bytes) => {
                let from = from as usize;
                out.extend_from_slice(&bytes[from..from + size]);
            }
        }
    }
}

/// How a body's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length,
    Chunked,
    /// By the close (HTTP/1.0).
    Close,
}

/// How fast a body goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Fast,
    /// Spread evenly over so long, from the first piece to the last.
    Over(Duration),
    /// In pieces of `size` bytes, `gap` apart.
    Pieces {
        size: u64,
        gap: Duration,
    },
}

/// What comes after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The connection goes on.
    Keep,
    Close,
    Reset,
    /// Nothing more, until the peer goes.
    Silence,
    /// The connection seems to go on, but closes at the next request.
    Stale,
    /// More bytes, which belong to nothing.
    Extra,
}

/// What is to be done with the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    Keep,
    Close,
    Reset,
    Stale,
}

impl Reply {
    /// A good answer with `body`.
    pub(super) fn new(status: u16, body: Body) -> Reply {
        Reply {
            status,
            fields: String::new(),
            body,
            framing: Framing::Length,
            cut: None,
            end: End::Keep,
            wait: Duration::ZERO,
            slow_head: Duration::ZERO,
            pace: Pace::Fast,
            head_size: 0,
        }
    }

    /// 200 with `size` bytes.
    pub(super) fn content(size: u64) -> Reply {
        Reply::new(200, Body::Content(size))
    }

    /// A short text.
    pub(super) fn text(status: u16, text: impl Into<Bytes>) -> Reply {
        Reply::new(status, Body::Bytes(text.into()))
    }

    /// The status in words.
    pub(super) fn status(status: u16) -> Reply {
        match status {
            100..=199 | 204 | 304 => Reply::new(status, Body::None),
            _ => Reply::text(status, format!("{status} {}\n", reason(status))),
        }
    }

    /// These bytes and nothing else.
    pub(super) fn raw(bytes: impl Into<Bytes>, end: End) -> Reply {
        let mut reply = Reply::text(0, bytes);
        reply.end = end;
        reply
    }

    /// With one more header line.
    pub(super) fn field(mut self, name: &str, value: &str) -> Reply {
        for part in [name, ": ", value, "\r\n"] {
            self.fields.push_str(part);
        }
        self
    }

    /// With a body that stops after `sent` bytes, and then this.
    pub(super) fn cut(mut self, sent: u64, end: End) -> Reply {
        self.cut = Some(sent);
        self.end = end;
        self
    }

    /// Whether the answer, as it is meant, comes to its proper end.
    fn is_whole(&self) -> bool {
        self.cut.is_none() && !matches!(self.end, End::Reset | End::Silence)
    }
}

fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Unnamed")
}
