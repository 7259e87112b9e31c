//! The numbers of an exit and of its logins, as others read them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::super::gauge::{Gauge, Level};

/// The numbers of one login at one exit.
#[derive(Default)]
pub(in crate::lab) struct User {
    pub(in crate::lab) name: Box<str>,
    pub(super) requests: AtomicU64,
    pub(super) in_flight: Gauge,
    pub(super) handshakes: AtomicU64,
    pub(super) sockets: Arc<Gauge>,
}

impl User {
    pub(super) fn stats(&self) -> LoginStats {
        LoginStats {
            requests: self.requests.load(Relaxed),
            in_flight: self.in_flight.read(),
            handshakes: self.handshakes.load(Relaxed),
            sockets: self.sockets.read(),
        }
    }
}

/// What an exit counted. Peaks and counts are since the start or the last reset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExitStats {
    /// As in `exits.txt`.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// `http`, `https` or `socks5`.
    pub scheme: String,
    /// How it behaves, in a word ([`Behaviour`](crate::lab::Behaviour)).
    pub behaviour: String,
    /// Sockets accepted.
    pub connections: u64,
    /// Sockets from accept until the close is seen or made.
    pub sockets: Level,
    /// Requests that reached the origin's side, those in tunnels included.
    pub requests: u64,
    /// Such requests from head read until last byte written.
    pub in_flight: Level,
    /// CONNECT and SOCKS requests that opened a tunnel.
    pub handshakes: u64,
    /// Connections, handshakes and requests that were not served: behaviour or login.
    pub turned_away: u64,
    /// Requests whose answer was not written to its end, whoever's doing it was.
    pub unfinished: u64,
    /// Connections that carried more than one login. Must stay 0.
    pub two_logins: u64,
    /// SOCKS requests that named their target (address type 3).
    pub names: u64,
    /// SOCKS requests that gave an address (types 1 and 4).
    pub addresses: u64,
    /// By username, for all that sent one.
    pub logins: BTreeMap<String, LoginStats>,
}

/// What an exit counted for one login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginStats {
    /// As in [`ExitStats`].
    pub requests: u64,
    /// As in [`ExitStats`].
    pub in_flight: Level,
    /// As in [`ExitStats`].
    pub handshakes: u64,
    /// Sockets since the login was seen on them.
    pub sockets: Level,
}
