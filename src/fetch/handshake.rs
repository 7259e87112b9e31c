//! How an exit is asked for a tunnel.
//!
//! The target goes out as it was listed: names as names, addresses as addresses. The login
//! of the exit is sent here and nowhere inside the tunnel.

mod connect;
mod socks5;

use std::io;

use crate::model::{Fault, FaultKind, Head, Phase};

use super::fault::{fault, of_io};
use super::wire::Wire;

pub(super) use connect::Connect;
pub(super) use socks5::Socks5;

/// The request for a tunnel, in the exit's protocol.
pub(super) enum Ask<'a> {
    Connect(Connect<'a>),
    Socks5(Socks5<'a>),
}

impl Ask<'_> {
    /// Asks for the tunnel; on success `wire` is the tunnel.
    pub(super) async fn open(&self, wire: &mut Wire) -> Result<(), NoTunnel> {
        match self {
            Ask::Connect(connect) => connect.open(wire).await,
            Ask::Socks5(socks) => socks.open(wire).await,
        }
    }
}

/// Why there is no tunnel.
pub(super) struct NoTunnel {
    pub(super) fault: Fault,
    /// The answer to CONNECT, where it is that which refused.
    pub(super) refusal: Option<Head>,
}

impl From<Fault> for NoTunnel {
    fn from(fault: Fault) -> NoTunnel {
        let refusal = None;
        NoTunnel { fault, refusal }
    }
}

impl From<io::Error> for NoTunnel {
    fn from(err: io::Error) -> NoTunnel {
        match err.kind() {
            io::ErrorKind::UnexpectedEof => {
                broken(FaultKind::Eof, "the exit closed the connection").into()
            }
            _ => of_io(Phase::Handshake, &err).into(),
        }
    }
}

fn broken(kind: FaultKind, detail: impl Into<String>) -> Fault {
    fault(Phase::Handshake, kind, detail)
}
