//! An exit: the proxy identity a request leaves through.

use std::sync::Arc;

use super::Secret;

/// How an exit is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// An HTTP proxy: absolute-form for `http://` targets, CONNECT for the rest.
    Http,
    /// The same inside TLS.
    Https,
    /// SOCKS5 (RFC 1928); `socks5h` is the same: names are always resolved at the exit.
    Socks5,
}

impl Scheme {
    /// The port that is meant when a list names none.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
            Scheme::Socks5 => 1080,
        }
    }

    /// As written in a list.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Socks5 => "socks5",
        }
    }
}

/// What an exit asks for before it serves. Both parts are secret: providers put session
/// and customer names into the username.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Login {
    /// Decoded, as it goes on the wire.
    pub username: Secret,
    /// Decoded; empty where none was given.
    pub password: Secret,
}

/// One usable line of the exit list (one of `sessions=` where a line makes several).
#[derive(Clone, Debug)]
pub struct Exit {
    /// Stable, non-secret name in every output (`ARCHITECTURE.md`, Words).
    pub id: Arc<str>,
    /// How to speak to it.
    pub scheme: Scheme,
    /// Name or address of the proxy, IPv6 without brackets.
    pub host: Box<str>,
    /// 1 to 65535.
    pub port: u16,
    /// Sent whenever it was given.
    pub login: Option<Login>,
    /// Named class that sets defaults.
    pub tier: Option<Arc<str>>,
    /// Where it leaves to the world; free text, used to tell probes apart.
    pub region: Option<Arc<str>>,
    /// Name of the capacity it shares with others.
    pub group: Option<Arc<str>>,
    /// Contract cap: nothing may exceed it. At least 1.
    pub cap: Option<u32>,
    /// Line of the list, for messages.
    pub line: u64,
}

impl Exit {
    /// An exit of which nothing else is known.
    pub fn new(id: impl Into<Arc<str>>, scheme: Scheme, host: &str, port: u16) -> Exit {
        Exit {
            id: id.into(),
            scheme,
            host: host.into(),
            port,
            login: None,
            tier: None,
            region: None,
            group: None,
            cap: None,
            line: 1,
        }
    }
}
