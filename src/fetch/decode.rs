//! Content codings (`--compressed`): gzip, br and zstd, decoded piece by piece.
//!
//! The codecs of async-compression read from a buffer that is fed by hand ([`Feed`]), so
//! decoding neither owns the connection nor waits for it. One call makes at most one
//! output piece: a small input that would grow to gigabytes stays small in memory, and
//! the size limit is looked at after every piece.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;

/// What is asked for when `--compressed` is given.
pub(super) const ACCEPTED: &str = "gzip, br, zstd";

/// Largest piece of decoded output in bytes.
const PIECE: usize = 32 * 1024;

/// Largest window of a zstd frame as a power of two: 8 MiB (RFC 9659 §3).
const ZSTD_WINDOW_LOG: u32 = 23;

/// A running decoder.
pub(super) struct Decoder {
    codec: Box<dyn Codec>,
    output: BytesMut,
}

/// What a decoder has to say.
pub(super) enum Piece {
    /// Decoded bytes, never empty.
    Output(Bytes),
    /// It needs more input, or to be told that there is none.
    Hungry,
    /// The coded data is complete.
    Done,
}

impl Decoder {
    /// The decoder for an answer with these headers; `None` if nothing is to decode.
    ///
    /// # Errors
    /// A coding that was not asked for, as one line.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Decoder>, String> {
        let mut codings = headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .flat_map(|line| line.as_bytes().split(|&b| b == b','))
            .map(|name| name.trim_ascii().to_ascii_lowercase())
            .filter(|name| !name.is_empty() && name != b"identity");
        let Some(coding) = codings.next() else {
            return Ok(None);
        };
        if codings.next().is_some() {
            return Err("more than one content coding".into());
        }
        let codec: Box<dyn Codec> = match coding.as_slice() {
            b"gzip" | b"x-gzip" => {
                let mut gzip = GzipDecoder::new(Feed::default());
                gzip.multiple_members(true);
                Box::new(gzip)
            }
            b"br" => Box::new(BrotliDecoder::new(Feed::default())),
            b"zstd" => {
                let window = [DParameter::window_log_max(ZSTD_WINDOW_LOG)];
                let mut zstd = ZstdDecoder::with_params(Feed::default(), &window);
                zstd.multiple_members(true);
                Box::new(zstd)
            }
            _ => return Err("a content coding that was not asked for".into()),
        };
        let output = BytesMut::new();
        Ok(Some(Decoder { codec, output }))
    }

    /// Gives it the next input. Only when it is hungry.
    pub(super) fn feed(&mut self, input: Bytes) {
        self.codec.feed().input = input;
    }

    /// Tells it that no more input comes.
    pub(super) fn end(&mut self) {
        self.codec.feed().ended = true;
    }

    /// The next piece of output.
    ///
    /// # Errors
    /// The input does not decode, or ended too early.
    pub(super) fn next(&mut self) -> io::Result<Piece> {
        if self.output.capacity() == 0 {
            self.output.reserve(PIECE);
        }
        let mut cx = Context::from_waker(Waker::noop());
        match poll_read_buf(Pin::new(&mut *self.codec), &mut cx, &mut self.output) {
            Poll::Pending => Ok(Piece::Hungry),
            Poll::Ready(Ok(0)) => Ok(Piece::Done),
            Poll::Ready(Ok(_)) => Ok(Piece::Output(self.output.split().freeze())),
            Poll::Ready(Err(err)) => Err(err),
        }
    }
}

/// A reader of coded data whose source can be reached.
trait Codec: AsyncRead + Send + Unpin {
    fn feed(&mut self) -> &mut Feed;
}

impl Codec for GzipDecoder<Feed> {
    fn feed(&mut self) -> &mut Feed {
        self.get_mut()
    }
}

impl Codec for BrotliDecoder<Feed> {
    fn feed(&mut self) -> &mut Feed {
        self.get_mut()
    }
}

impl Codec for ZstdDecoder<Feed> {
    fn feed(&mut self) -> &mut Feed {
        self.get_mut()
    }
}

/// A source that is filled from outside. Pending means empty: nobody is woken.
#[derive(Default)]
struct Feed {
    input: Bytes,
    ended: bool,
}

impl AsyncBufRead for Feed {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let feed = self.get_mut();
        if feed.input.is_empty() && !feed.ended {
            return Poll::Pending;
        }
        Poll::Ready(Ok(&feed.input))
    }

    fn consume(mut self: Pin<&mut Self>, n: usize) {
        self.input.advance(n);
    }
}

impl AsyncRead for Feed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_mut()
            .poll_fill_buf(cx)
            .map_ok(|bytes| {
                let n = bytes.len().min(buf.remaining());
                buf.put_slice(&bytes[..n]);
                n
            })
            .map_ok(|n| self.consume(n))
    }
}
