//! An attempt: one try of a job through one exit, as facts without judgement.
//!
//! `fetch` fills it in, `schedule` decides from it whose fault it was, records show its
//! phase times. Nothing here says what to do next.

use std::time::Duration;

use http::HeaderMap;

/// The steps of an attempt in the order they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Looking up the exit's own host name.
    Resolve,
    /// TCP connect to the exit.
    Dial,
    /// TLS with an HTTPS exit.
    ExitTls,
    /// CONNECT or SOCKS5.
    Handshake,
    /// TLS with the origin, inside the tunnel.
    OriginTls,
    /// Sending the request and waiting for the whole response head.
    Head,
    /// Reading the body.
    Body,
}

impl Phase {
    /// As shown in details and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Resolve => "resolve",
            Phase::Dial => "dial",
            Phase::ExitTls => "exit tls",
            Phase::Handshake => "handshake",
            Phase::OriginTls => "origin tls",
            Phase::Head => "head",
            Phase::Body => "body",
        }
    }
}

/// How the request reached the origin's side of the exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Route {
    /// Absolute-form through an HTTP proxy: the proxy may answer in the origin's place.
    Forward,
    /// CONNECT or SOCKS5: what is read in the tunnel is the origin's.
    #[default]
    Tunnel,
}

/// How the end of a body is known (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// It has this many bytes.
    Length(u64),
    /// It comes in chunks, the last of which says so.
    Chunked,
    /// The connection closes.
    Close,
}

/// Status and headers of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    /// 100 to 999.
    pub status: u16,
    /// As received.
    pub headers: HeaderMap,
}

/// How long each phase took. `None`: the phase did not happen (a reused socket dials nothing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Name look-up and TCP connect to the exit.
    pub dial: Option<Duration>,
    /// TLS with the exit, CONNECT or SOCKS5.
    pub handshake: Option<Duration>,
    /// TLS with the origin.
    pub tls: Option<Duration>,
    /// From the first request byte sent to the head complete.
    pub first_byte: Option<Duration>,
    /// From the head complete to the last body byte.
    pub body: Option<Duration>,
}

/// How many attempts are in each phase, as [`PhaseTimes`] names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseCounts {
    /// On the way to the exit, or about to be.
    pub dial: u32,
    /// In TLS with the exit, CONNECT or SOCKS5.
    pub handshake: u32,
    /// In TLS with the origin.
    pub tls: u32,
    /// Asked, and waiting for the head.
    pub first_byte: u32,
    /// Reading the body.
    pub body: u32,
}

impl PhaseCounts {
    /// All of them.
    pub fn sum(&self) -> u32 {
        self.named().iter().map(|(_, count)| count).sum()
    }

    /// Each with its name, in the order of an attempt's life.
    pub fn named(&self) -> [(&'static str, u32); 5] {
        [
            ("dial", self.dial),
            ("handshake", self.handshake),
            ("tls", self.tls),
            ("first byte", self.first_byte),
            ("body", self.body),
        ]
    }
}

/// What went wrong, and where. `detail` is one line for people, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The phase that was under way.
    pub phase: Phase,
    /// What happened in it.
    pub kind: FaultKind,
    /// One line: what was seen, with numbers.
    pub detail: String,
}

/// What happened, as far as it can be told apart from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The phase's own limit passed (connect timeout for dial, TLS and handshake; first-byte
    /// timeout for the head; stall timeout for the body).
    Timeout,
    /// `--timeout`, the limit of the whole attempt, passed in this phase.
    Deadline,
    /// The exit's host name has no address.
    NoAddress,
    /// Connection refused.
    Refused,
    /// Connection reset or broken pipe.
    Reset,
    /// No route, network unreachable and other failures to connect.
    Unreachable,
    /// The peer closed where more had to come.
    Eof,
    /// The peer spoke, but not the protocol (no HTTP, no SOCKS5, no TLS).
    Protocol,
    /// A response head above the limit (64 KiB + slack; see `fetch`).
    HeadTooLarge,
    /// The exit did not take the credentials: 407, or SOCKS5 authentication refused.
    Credentials,
    /// The exit answered CONNECT with this non-2xx status; the head is in [`Attempt::refusal`].
    ConnectStatus(u16),
    /// The exit answered SOCKS5 with this non-zero reply code.
    SocksReply(u8),
    /// The peer's certificate is not valid for the name.
    Certificate,
    /// The peer sent a TLS alert.
    TlsAlert,
    /// Fewer body bytes than announced, or chunks without their end.
    Truncated,
    /// The body passed `--max-body`.
    TooLarge,
    /// The content coding does not decode.
    Decode,
    /// The host name cannot be carried by this exit's protocol (SOCKS5: over 255 bytes).
    HostTooLong,
    /// The request cannot be written (a header that is not valid on the wire).
    BadRequest,
    /// Out of descriptors, ports or memory on this machine (EMFILE, ENFILE, EADDRNOTAVAIL …).
    LocalLimit,
    /// Writing the body to disk failed.
    Disk,
    /// We cancelled it, or its task died.
    Cancelled,
}

/// The facts of one try.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// How long each phase took.
    pub phases: PhaseTimes,
    /// How the request travelled.
    pub route: Route,
    /// It went over a socket kept open from an earlier attempt.
    pub reused: bool,
    /// The socket was left open and will serve another request.
    pub kept: bool,
    /// The answer's head, once it was complete (also when the body then failed).
    pub head: Option<Head>,
    /// The head of a non-2xx answer to CONNECT.
    pub refusal: Option<Head>,
    /// What went wrong; `None`: head and body are whole.
    pub fault: Option<Fault>,
    /// Body bytes on the wire, before content decoding, framing left out.
    pub wire_bytes: u64,
    /// The body's end was announced and reached (Content-Length or last chunk);
    /// `false`: the close alone ended it.
    pub length_verified: bool,
    /// The request asked by what is stored already (`If-None-Match`, `If-Modified-Since`).
    pub conditional: bool,
    /// Seconds since the Unix epoch when the head was complete, by this machine's clock.
    pub received_unix: u64,
}

impl Attempt {
    /// The request certainly did not reach the origin.
    pub fn not_delivered(&self) -> bool {
        self.fault
            .as_ref()
            .is_some_and(|fault| fault.phase <= Phase::Handshake)
    }

    /// The answer says that what is stored still holds, as it was asked.
    pub fn is_not_modified(&self) -> bool {
        self.conditional && self.fault.is_none() && self.status() == Some(304)
    }

    /// The answer's status, if a head came.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().map(|head| head.status)
    }
}
