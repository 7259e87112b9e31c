//! What requests travel over: a socket, bare or under one or two layers of TLS.
//!
//! An HTTPS exit is one layer, an `https://` target inside its tunnel a second one. Bytes
//! that were read together with a CONNECT answer belong to what comes after it and are
//! handed out first.
//!
//! Not vectored: a request is one small buffer, and a plain send is cheaper than a writev of one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::socket::Socket;
use super::tape::Tape;

/// A byte stream to the exit or, through a tunnel, to the origin.
pub(super) struct Wire {
    ahead: Bytes,
    layer: Layer,
    /// Where an archive reads along.
    tape: Option<Tape>,
}

enum Layer {
    Bare(Socket),
    Tls(Box<TlsStream<Wire>>),
}

impl Wire {
    /// The socket itself.
    pub(super) fn bare(socket: Socket) -> Wire {
        Wire::over(Layer::Bare(socket))
    }

    /// TLS over what was there.
    pub(super) fn tls(stream: TlsStream<Wire>) -> Wire {
        Wire::over(Layer::Tls(Box::new(stream)))
    }

    fn over(layer: Layer) -> Wire {
        Wire {
            ahead: Bytes::new(),
            layer,
            tape: None,
        }
    }

    /// Notes on `tape` what passes from now on.
    pub(super) fn record(&mut self, tape: Tape) {
        self.tape = Some(tape);
    }

    /// Puts back bytes that were read too far.
    pub(super) fn put_back(&mut self, ahead: Bytes) {
        debug_assert!(self.ahead.is_empty(), "bytes were put back twice");
        self.ahead = ahead;
    }

    fn read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let n = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..n]);
            self.ahead.advance(n);
            return Poll::Ready(Ok(()));
        }
        match &mut self.layer {
            Layer::Bare(socket) => Pin::new(socket).poll_read(cx, buf),
            Layer::Tls(stream) => match Pin::new(stream.as_mut()).poll_read(cx, buf) {
                // Closed without close_notify, as many servers do: an end like any other.
                // Where a length was announced hyper sees that it is early.
                Poll::Ready(Err(err)) if err.kind() == io::ErrorKind::UnexpectedEof => {
                    Poll::Ready(Ok(()))
                }
                other => other,
            },
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.layer {
            Layer::Bare(socket) => Pin::new(socket).poll_write(cx, bytes),
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = self.read(cx, buf);
        if let Some(tape) = &self.tape {
            tape.note_received(&buf.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = self.write(cx, bytes);
        if let (Some(tape), Poll::Ready(Ok(n))) = (&self.tape, &polled) {
            tape.note_sent(&bytes[..*n]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.layer {
            Layer::Bare(socket) => Pin::new(socket).poll_flush(cx),
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.layer {
            Layer::Bare(socket) => Pin::new(socket).poll_shutdown(cx),
            Layer::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}
