//! A TCP socket to an exit: counted while it is open, closed so that the exit has seen it go.
//!
//! Providers count sockets, so the count is kept where the socket is: a guard beside the
//! descriptor, taken before the connect and given up when the last handle goes. TLS and
//! hyper own one handle, the connection another, so a socket can be closed politely
//! whatever layer it was lost in (a TLS handshake that failed keeps its stream).

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// How long a socket we close waits for the exit's own end.
pub(super) const CLOSE_WAIT: Duration = Duration::from_millis(250);

/// What a closing socket still reads; a peer that sends more does not listen.
const CLOSE_READS: usize = 64 * 1024;

/// The sockets of one exit, from the start of their connect to their close.
#[derive(Debug, Default)]
pub struct Sockets {
    open: AtomicU32,
    peak: AtomicU32,
}

impl Sockets {
    /// Open now.
    pub fn open(&self) -> u32 {
        self.open.load(Ordering::Relaxed)
    }

    /// Most ever open at the same time.
    pub fn peak(&self) -> u32 {
        self.peak.load(Ordering::Relaxed)
    }

    fn enter(self: &Arc<Sockets>) -> Open {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.peak.fetch_max(open, Ordering::Relaxed);
        Open(Arc::clone(self))
    }
}

/// One open socket in the count.
struct Open(Arc<Sockets>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A handle to a connected socket; the socket closes with its last handle.
#[derive(Clone)]
pub(super) struct Socket(Arc<Connected>);

struct Connected {
    tcp: TcpStream,
    /// After `tcp`: the descriptor closes before the count goes down.
    _open: Open,
}

impl Socket {
    /// Connects to `address`, counted in `sockets` from now on.
    pub(super) async fn connect(address: SocketAddr, sockets: &Arc<Sockets>) -> io::Result<Socket> {
        let open = sockets.enter();
        let tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        Ok(Socket(Arc::new(Connected { tcp, _open: open })))
    }

    /// Says that nothing more will be sent. An error means that the socket is gone already.
    pub(super) fn shut(&self) {
        let _ = rustix::net::shutdown(&self.0.tcp, rustix::net::Shutdown::Write);
    }

    /// Says goodbye and waits, at most [`CLOSE_WAIT`], until the exit has closed its side.
    /// An exit that counts sockets has then seen this one go before the next one comes.
    pub(super) async fn close(self) {
        self.shut();
        let _ = tokio::time::timeout(CLOSE_WAIT, self.read_to_end()).await;
    }

    async fn read_to_end(&self) {
        let mut waste = [0; 1024];
        let mut read = 0;
        while read < CLOSE_READS && self.0.tcp.readable().await.is_ok() {
            match self.0.tcp.try_read(&mut waste) {
                Ok(0) => return,
                Ok(n) => read += n,
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.tcp.poll_write_ready(cx))?;
            match write(&self.0.tcp) {
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let tcp = &self.0.tcp;
        loop {
            ready!(tcp.poll_read_ready(cx))?;
            let room = buf.remaining();
            let mut done = false;
            // A read that does not fill the room has emptied the socket: reporting
            // WouldBlock then clears the readiness and saves the read that would find out.
            let outcome = tcp.try_io(Interest::READABLE, || {
                let n = tcp.try_read_buf(buf)?;
                done = true;
                if 0 < n && n < room {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(())
            });
            match outcome {
                _ if done => return Poll::Ready(Ok(())),
                Err(err) if err.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(err));
                }
                _ => {}
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |tcp| tcp.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |tcp| tcp.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut();
        Poll::Ready(Ok(()))
    }
}
