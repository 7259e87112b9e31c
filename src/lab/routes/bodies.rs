//! Routes that answer properly, in one form or another.

use bytes::Bytes;

use super::{Ask, Route};
use crate::lab::content::{self, Coding, compress};
use crate::lab::reply::{Body, End, Framing, Pace, Reply};
use crate::lab::tls::lock;

const KIB_64: usize = 64 << 10;
/// Largest body that is compressed on the fly, and largest bomb.
const MOST: u64 = 4 << 30;
const MOST_CODED: usize = 64 << 20;
const MOST_HEAD: usize = 64 << 20;

pub(super) fn reply(route: &Route<'_>, ask: &Ask<'_>) -> Option<Reply> {
    Some(match route.name {
        "bytes" | "ok" => Reply::content(route.number()?),
        "" => super::index(),
        "delay" => {
            let mut reply = Reply::content(route.query.number("size", 64));
            reply.wait = std::time::Duration::from_millis(route.number()?);
            reply
        }
        "status" => match route.number()? {
            status @ 100..=999 => Reply::status(status),
            _ => return None,
        },
        "no-content" => Reply::status(204),
        "not-modified" => Reply::status(304),
        "drip" => {
            let mut reply = Reply::content(route.query.number("bytes", 20));
            reply.pace = Pace::Over(route.query.millis("ms", 2000));
            reply
        }
        "drip-head" => {
            let mut reply = Reply::content(route.query.number("bytes", 20));
            reply.slow_head = route.query.millis("ms", 2000);
            reply
        }
        "chunked" => {
            let mut reply = Reply::content(route.number()?);
            reply.framing = Framing::Chunked;
            reply.pace = Pace::Over(route.query.millis("ms", 0));
            reply
        }
        "http10" => {
            let mut reply = Reply::content(route.number()?);
            reply.framing = Framing::Close;
            reply
        }
        "last" => {
            let mut reply = Reply::content(route.number_or(20)?);
            reply.end = End::Close;
            reply
        }
        "head" => {
            let mut reply = Reply::content(20);
            reply.head_size = route.number::<usize>()?.min(MOST_HEAD);
            reply
        }
        "gzip" => coded(Coding::Gzip, route.number()?, ask)?,
        "br" => coded(Coding::Brotli, route.number()?, ask)?,
        "zstd" => coded(Coding::Zstd, route.number()?, ask)?,
        "archive" => {
            coded(Coding::Gzip, route.number()?, ask)?.field("Content-Type", "application/gzip")
        }
        "gzip-bomb" => bomb(route.number()?, ask)?,
        "gzip-lie" => Reply::text(200, "this is plain text and no archive\n")
            .field("Content-Encoding", "gzip"),
        _ => return None,
    })
}

fn coded(coding: Coding, size: usize, ask: &Ask<'_>) -> Option<Reply> {
    if size > MOST_CODED {
        return None;
    }
    let plain = content::content(&ask.host.name, ask.target, size);
    let body = Body::Bytes(compress(coding, &plain, 1).into());
    Some(Reply::new(200, body).field("Content-Encoding", coding.name()))
}

/// Zeros up to `size` in whole 64 KiB, made once.
fn bomb(size: u64, ask: &Ask<'_>) -> Option<Reply> {
    if size > MOST {
        return None;
    }
    let mut bombs = lock(&ask.origin.bombs);
    let bytes = bombs.entry(size).or_insert_with(|| {
        let times = size.div_ceil(KIB_64 as u64);
        Bytes::from(compress(Coding::Gzip, &[0; KIB_64], times))
    });
    let body = Body::Bytes(bytes.clone());
    Some(Reply::new(200, body).field("Content-Encoding", "gzip"))
}
