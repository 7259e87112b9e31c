//! Routes that break off, keep silent or do not speak the protocol.

use super::Route;
use crate::lab::reply::{Body, End, Framing, Pace, Reply};

const NO_HTTP: &str = "hello, this is text without any status line\r\n\r\nand more of it\r\n";
const TWO_LENGTHS: &str =
    "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Length: 12\r\n\r\n0123456789ab";
const BAD_CHUNK: &str =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nfive\r\nworld\r\n0\r\n\r\n";
const EARLY: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n\
                     HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nlate.\n";
const SWITCHING: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n";

pub(super) fn reply(route: &Route<'_>) -> Option<Reply> {
    Some(match route.name {
        "truncated" => {
            let size: u64 = route.number()?;
            let sent = route.query.number("sent", size.saturating_sub(1));
            Reply::content(size).cut(sent, End::Close)
        }
        "reset-body" => half(route)?,
        "half" => {
            let mut reply = half(route)?;
            reply.end = End::Silence;
            reply
        }
        "endless" => endless(route),
        "chunked-cut" => {
            let size = route.number_or(1000)?;
            let mut reply = Reply::content(size).cut(size, End::Close);
            reply.framing = Framing::Chunked;
            reply
        }
        "chunked-bad" => Reply::raw(BAD_CHUNK, End::Close),
        "two-lengths" => Reply::raw(TWO_LENGTHS, End::Close),
        "silent" => Reply::raw("", End::Silence),
        "close" => Reply::raw("", End::Close),
        "reset" => Reply::raw("", End::Reset),
        "no-http" => Reply::raw(NO_HTTP, End::Close),
        "early" => Reply::raw(EARLY, End::Keep),
        "switching" => Reply::raw(SWITCHING, End::Silence),
        "garbage-after" => {
            let mut reply = Reply::content(20);
            reply.end = End::Extra;
            reply
        }
        "stale" => {
            let mut reply = Reply::content(route.number_or(20)?);
            reply.end = End::Stale;
            reply
        }
        _ => return None,
    })
}

fn half(route: &Route<'_>) -> Option<Reply> {
    let size = route.number_or(1000)?;
    Some(Reply::content(size).cut(size / 2, End::Reset))
}

fn endless(route: &Route<'_>) -> Reply {
    // 2^62 bytes: as good as without end, and safe to count.
    let mut reply = Reply::new(200, Body::Content(1 << 62));
    reply.framing = Framing::Chunked;
    let gap = route.query.millis("ms", 0);
    if !gap.is_zero() {
        reply.pace = Pace::Pieces { size: 1024, gap };
    }
    reply
}
