//! One accepted socket: bytes in, bytes out, and the moment the peer is gone.
//!
//! The socket's guards live in here and go first, so that a peer who has seen the close has
//! never seen it counted. Every wait watches for the peer's close too: a lab that notices a
//! hang-up only at its next write would count sockets that are no more. The price: a peer
//! that shuts down its writing side only (half-close) counts as gone.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::gauge::InsideOwned;
use super::layers::{Ahead, Io, read_some};
use super::pause::sleep;

/// Bytes read ahead while something else is under way.
const AHEAD: usize = 64 << 10;
/// How long a closed socket is drained for, so that no reset overtakes the last bytes.
const DRAIN: Duration = Duration::from_millis(500);

/// The peer is gone, or the connection is of no more use. Nothing to do but drop it.
#[derive(Debug)]
pub(super) struct Gone;

impl From<io::Error> for Gone {
    fn from(_: io::Error) -> Gone {
        Gone
    }
}

/// A socket with its buffers.
pub(super) struct Wire {
    /// What counts the socket. Dropped before `io`, or earlier by hand.
    counted: Vec<InsideOwned>,
    /// Read and not yet used up.
    pub(super) inbuf: Vec<u8>,
    /// Where the next unread request begins in `inbuf`.
    pub(super) used: usize,
    /// To be written next.
    pub(super) out: Vec<u8>,
    io: Io,
}

impl Wire {
    /// A socket just accepted.
    pub(super) fn new(stream: TcpStream, counted: InsideOwned) -> Wire {
        // Without it, an answer in two writes waits for the peer's delayed ACK.
        let _ = stream.set_nodelay(true);
        Wire {
            counted: vec![counted],
            inbuf: Vec::new(),
            used: 0,
            out: Vec::new(),
            io: Io::Tcp(stream),
        }
    }

    /// Something else that counts this socket.
    pub(super) fn count(&mut self, inside: InsideOwned) {
        self.counted.push(inside);
    }

    /// Stops counting the socket: the next write is its last.
    pub(super) fn uncount(&mut self) {
        self.counted.clear();
    }

    /// What is read and not used up.
    pub(super) fn unread(&self) -> &[u8] {
        &self.inbuf[self.used..]
    }

    /// Reads some more.
    pub(super) async fn fill(&mut self) -> Result<(), Gone> {
        let read = read_some(&mut self.io, &mut self.inbuf).await;
        self.alive(read)
    }

    /// Reads until at least `len` bytes are unread.
    pub(super) async fn fill_to(&mut self, len: usize) -> Result<(), Gone> {
        while self.unread().len() < len {
            self.fill().await?;
        }
        Ok(())
    }

    /// Everything up to `end` of `inbuf` is done with.
    pub(super) fn use_up(&mut self, end: usize) {
        if end >= self.inbuf.len() {
            self.inbuf.clear();
            self.used = 0;
        } else {
            self.used = end;
        }
    }

    /// Waits, unless the peer goes first.
    pub(super) async fn pause(&mut self, time: Duration) -> Result<(), Gone> {
        if time.is_zero() {
            return Ok(());
        }
        let sleep = sleep(time);
        tokio::pin!(sleep);
        loop {
            let room = self.inbuf.len() < AHEAD;
            tokio::select! {
                biased;
                () = &mut sleep => return Ok(()),
                read = read_some(&mut self.io, &mut self.inbuf), if room => self.alive(read)?,
            }
        }
    }

    /// Waits until the peer goes; what it sends is thrown away.
    pub(super) async fn until_gone(&mut self) -> Gone {
        loop {
            self.inbuf.clear();
            self.used = 0;
            if let Err(gone) = self.fill().await {
                return gone;
            }
        }
    }

    /// Writes out `out` and empties it.
    pub(super) async fn send(&mut self) -> Result<(), Gone> {
        let mut out = std::mem::take(&mut self.out);
        self.write(&out).await?;
        out.clear();
        self.out = out;
        Ok(())
    }

    /// Writes out `bytes`, whatever is in `out`.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Gone> {
        while !bytes.is_empty() {
            match poll_fn(|cx| self.poll_send(cx, bytes)).await {
                Ok(n) if n > 0 => bytes = &bytes[n..],
                _ => return Err(self.lost()),
            }
        }
        let flushed = poll_fn(|cx| self.poll_flush(cx)).await;
        flushed.map_err(|_| self.lost())
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.io).poll_write(cx, bytes) {
            Poll::Ready(sent) => Poll::Ready(sent),
            Poll::Pending => self.poll_watch(cx).map(Err),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => self.poll_watch(cx).map(Err),
        }
    }

    /// Ready when the peer has gone while a write is waiting for it.
    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let mut scratch = [0; 1024];
        while self.inbuf.len() < AHEAD {
            let mut into = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.io).poll_read(cx, &mut into)) {
                Ok(()) if !into.filled().is_empty() => {
                    self.inbuf.extend_from_slice(into.filled());
                }
                Ok(()) => return Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => return Poll::Ready(error),
            }
        }
        Poll::Pending
    }

    fn alive(&mut self, read: io::Result<usize>) -> Result<(), Gone> {
        match read {
            Ok(n) if n > 0 => Ok(()),
            _ => {
                self.uncount();
                Err(Gone)
            }
        }
    }

    /// The peer went while bytes were on their way to it: throw them away, so that a peer
    /// that waits for the close does not have to read them first.
    fn lost(&mut self) -> Gone {
        self.uncount();
        let _ = self.io.tcp().set_zero_linger();
        Gone
    }

    /// Closes: what was sent still arrives.
    pub(super) async fn close(mut self) {
        self.uncount();
        let drained = async {
            if self.io.shutdown().await.is_ok() {
                self.until_gone().await;
            }
        };
        let _ = timeout(DRAIN, drained).await;
    }

    /// Resets: what was sent may be lost.
    pub(super) fn reset(mut self) {
        self.lost();
    }

    /// The server side of TLS on top of what was not read yet.
    pub(super) async fn into_tls(self, config: Arc<ServerConfig>) -> Result<Wire, Gone> {
        let ahead = Ahead {
            bytes: self.inbuf,
            at: self.used,
            io: self.io,
        };
        let accept = TlsAcceptor::from(config).accept(ahead);
        match accept.into_fallible().await {
            Ok(stream) => Ok(Wire {
                counted: self.counted,
                inbuf: Vec::new(),
                used: 0,
                out: self.out,
                io: Io::Tls(Box::new(stream)),
            }),
            Err((_, stream)) => {
                // In this order: see the head of this file.
                drop(self.counted);
                drop(stream);
                Err(Gone)
            }
        }
    }
}
