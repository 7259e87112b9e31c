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
pub struct Decoder {
    codec: Box<dyn Codec>,
    output: BytesMut,
}

/// What a decoder has to say.
pub enum Piece {
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
    pub fn of(headers: &HeaderMap) -> Result<Option<Decoder>, String> {
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
    pub fn feed(&mut self, input: Bytes) {
        self.codec.feed().input = input;
    }

    /// Tells it that no more input comes.
    pub fn end(&mut self) {
        self.codec.feed().ended = true;
    }

    /// The next piece of output.
    ///
    /// # Errors
    /// The input does not decode, or ended too early.
    pub fn piece(&mut self) -> io::Result<Piece> {
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

#[cfg(test)]
mod tests {
    use async_compression::tokio::write;
    use http::HeaderValue;
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn decoder(coding: &'static str) -> Result<Option<Decoder>, String> {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_ENCODING, HeaderValue::from_static(coding));
        Decoder::of(&headers)
    }

    /// Feeds `input` in pieces of `step` bytes and collects what comes out.
    fn decode(coding: &'static str, input: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let mut decoder = decoder(coding).unwrap().unwrap();
        let mut pieces = input.chunks(step);
        let mut output = Vec::new();
        loop {
            match decoder.piece()? {
                Piece::Output(bytes) => {
                    assert!(!bytes.is_empty() && bytes.len() <= PIECE);
                    output.extend_from_slice(&bytes);
                }
                Piece::Hungry => match pieces.next() {
                    Some(piece) => decoder.feed(Bytes::copy_from_slice(piece)),
                    None => decoder.end(),
                },
                Piece::Done => return Ok(output),
            }
        }
    }

    #[tokio::test]
    async fn the_output_does_not_depend_on_how_the_input_was_cut() {
        let plain: Vec<u8> = (0..15_000_u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        let mut gzip = write::GzipEncoder::new(Vec::new());
        let mut brotli = write::BrotliEncoder::new(Vec::new());
        let mut zstd = write::ZstdEncoder::new(Vec::new());
        gzip.write_all(&plain).await.unwrap();
        gzip.shutdown().await.unwrap();
        brotli.write_all(&plain).await.unwrap();
        brotli.shutdown().await.unwrap();
        zstd.write_all(&plain).await.unwrap();
        zstd.shutdown().await.unwrap();
        let coded = [
            ("gzip", gzip.into_inner()),
            ("br", brotli.into_inner()),
            ("zstd", zstd.into_inner()),
        ];
        for (coding, input) in coded {
            for step in [1, 1000, input.len()] {
                assert!(
                    decode(coding, &input, step).unwrap() == plain,
                    "{coding} {step}"
                );
            }
            for cut in [1, input.len() / 2, input.len() - 1] {
                assert!(
                    decode(coding, &input[..cut], 700).is_err(),
                    "{coding} {cut}"
                );
            }
        }
    }

    #[test]
    fn a_zstd_window_beyond_what_the_web_allows_is_refused() {
        // Magic, a descriptor without checksum and size, a window of 2^27 bytes.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (27 - 10) << 3, 1, 0, 0];
        assert!(decode("zstd", &frame, 9).is_err());
    }

    #[test]
    fn identity_is_no_coding_and_strange_ones_are_refused() {
        for plain in ["", "identity", "Identity, "] {
            assert!(matches!(decoder(plain), Ok(None)));
        }
        for strange in ["deflate", "gzip, br", "utf-8"] {
            assert!(decoder(strange).is_err());
        }
    }
}
