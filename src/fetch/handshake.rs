//! How an exit is asked for a tunnel: CONNECT (RFC 9110 §9.3.6) and SOCKS5 (RFC 1928, 1929).
//!
//! The target goes out as it was listed: names as names, addresses as addresses. The login
//! of the exit is sent here and nowhere inside the tunnel.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Host;

use crate::model::{Fault, FaultKind, Head, Login, Phase};

use super::fault::{fault, of_io};
use super::wire::Wire;

/// Largest head of a CONNECT answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Most header lines of a CONNECT answer.
const MAX_ANSWER_LINES: usize = 256;

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

/// What goes into a CONNECT request.
pub(super) struct Connect<'a> {
    /// `host:port`, IPv6 in brackets.
    pub(super) authority: String,
    pub(super) user_agent: Option<&'a HeaderValue>,
    pub(super) authorization: Option<&'a HeaderValue>,
}

impl Connect<'_> {
    /// Asks for the tunnel; on success `wire` is the tunnel.
    pub(super) async fn open(&self, wire: &mut Wire) -> Result<(), NoTunnel> {
        wire.write_all(&self.request()).await?;
        wire.flush().await?;
        let mut read = BytesMut::new();
        let (head, length) = loop {
            read.reserve(1024);
            if wire.read_buf(&mut read).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            match first_answer(&mut read)? {
                Some(answer) => break answer,
                None if read.len() >= MAX_ANSWER => {
                    let detail = "the answer to CONNECT has too large a head";
                    return Err(broken(FaultKind::HeadTooLarge, detail).into());
                }
                None => {}
            }
        };
        let status = head.status;
        let fault = match status {
            200..=299 => {
                wire.put_back(read.split_off(length).freeze());
                return Ok(());
            }
            407 => broken(FaultKind::Credentials, "CONNECT was answered with 407"),
            _ => {
                let detail = format!("CONNECT was answered with {status}");
                broken(FaultKind::ConnectStatus(status), detail)
            }
        };
        let refusal = Some(head);
        Err(NoTunnel { fault, refusal })
    }

    fn request(&self) -> Bytes {
        let authority = &self.authority;
        let mut out = BytesMut::with_capacity(512);
        out.put_slice(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").as_bytes());
        let lines = [
            ("User-Agent", self.user_agent),
            ("Proxy-Authorization", self.authorization),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                out.put_slice(name.as_bytes());
                out.put_slice(b": ");
                out.put_slice(value.as_bytes());
                out.put_slice(b"\r\n");
            }
        }
        out.put_slice(b"\r\n");
        out.freeze()
    }
}

/// The first final answer in `read` and the length of its head, once it is complete.
/// Informational answers before it are taken out of `read`.
fn first_answer(read: &mut BytesMut) -> Result<Option<(Head, usize)>, Fault> {
    loop {
        match parse_answer(read)? {
            Some((head, length)) if (100..200).contains(&head.status) => {
                let _ = read.split_to(length);
            }
            other => return Ok(other),
        }
    }
}

fn parse_answer(read: &[u8]) -> Result<Option<(Head, usize)>, Fault> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_ANSWER_LINES];
    let mut answer = httparse::Response::new(&mut lines);
    let parsed = httparse::ParserConfig::default()
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .parse_response(&mut answer, read);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            let detail = "the answer to CONNECT has too many header lines";
            return Err(broken(FaultKind::HeadTooLarge, detail));
        }
        Err(err) => {
            let detail = format!("the answer to CONNECT is not HTTP: {err}");
            return Err(broken(FaultKind::Protocol, detail));
        }
    };
    let status = answer.code.unwrap_or_default();
    let mut headers = HeaderMap::with_capacity(answer.headers.len());
    for line in answer.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(line.value)) {
            headers.append(name, value);
        }
    }
    Ok(Some((Head { status, headers }, length)))
}

/// What a SOCKS5 exit is asked for.
pub(super) struct Socks5<'a> {
    pub(super) host: Host<&'a str>,
    pub(super) port: u16,
    pub(super) login: Option<&'a Login>,
}

impl Socks5<'_> {
    /// Whether the protocol can carry the host at all (names are counted by one byte).
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.host {
            Host::Domain(name) if name.len() > 255 => {
                let detail = format!("a host name of {} bytes: SOCKS5 carries 255", name.len());
                Err(broken(FaultKind::HostTooLong, detail))
            }
            _ => Ok(()),
        }
    }

    /// Asks for the tunnel; on success `wire` is the tunnel.
    pub(super) async fn open(&self, wire: &mut Wire) -> Result<(), NoTunnel> {
        self.check()?;
        self.authenticate(wire).await?;
        send(wire, &self.request()).await?;
        self.read_reply(wire).await
    }

    /// A login that was given is the only method offered, so that it is always used.
    async fn authenticate(&self, wire: &mut Wire) -> Result<(), NoTunnel> {
        let method = if self.login.is_some() { 2 } else { 0 };
        send(wire, &[5, 1, method]).await?;
        let [version, chosen] = read_bytes(wire).await?;
        match (version, chosen) {
            (5, 0xff) if self.login.is_some() => Err(broken(
                FaultKind::Credentials,
                "the exit takes no login of this kind",
            )
            .into()),
            (5, 0xff) => Err(broken(FaultKind::Credentials, "the exit wants a login").into()),
            (5, chosen) if chosen == method => match self.login {
                Some(login) => log_in(wire, login).await,
                None => Ok(()),
            },
            _ => Err(not_socks().into()),
        }
    }

    fn request(&self) -> Vec<u8> {
        let mut out = vec![5, 1, 0];
        match self.host {
            Host::Ipv4(ip) => {
                out.push(1);
                out.extend(ip.octets());
            }
            Host::Domain(name) => {
                // `check` has seen that it fits.
                out.extend([3, u8::try_from(name.len()).unwrap_or(u8::MAX)]);
                out.extend(name.as_bytes());
            }
            Host::Ipv6(ip) => {
                out.push(4);
                out.extend(ip.octets());
            }
        }
        out.extend(self.port.to_be_bytes());
        out
    }

    async fn read_reply(&self, wire: &mut Wire) -> Result<(), NoTunnel> {
        let [version, reply] = read_bytes(wire).await?;
        if version != 5 {
            return Err(not_socks().into());
        }
        if reply != 0 {
            let detail = format!("SOCKS5 was answered with {reply} ({})", reply_name(reply));
            return Err(broken(FaultKind::SocksReply(reply), detail).into());
        }
        // The bound address is of no use to us, but it stands before the tunnel's bytes.
        let [_, kind, first] = read_bytes(wire).await?;
        let rest = match kind {
            1 => 3 + 2,
            3 => usize::from(first) + 2,
            4 => 15 + 2,
            _ => return Err(not_socks().into()),
        };
        let mut bound = [0; 255 + 2];
        wire.read_exact(&mut bound[..rest]).await?;
        Ok(())
    }
}

/// Username and password, RFC 1929. The answer's version byte is not looked at: many
/// servers send 5 instead of 1.
async fn log_in(wire: &mut Wire, login: &Login) -> Result<(), NoTunnel> {
    let mut out = vec![1];
    for part in [&login.username, &login.password] {
        let part = part.expose().as_bytes();
        let Ok(length) = u8::try_from(part.len()) else {
            let detail = "the login is longer than SOCKS5 carries (255 bytes)";
            return Err(broken(FaultKind::Credentials, detail).into());
        };
        out.push(length);
        out.extend(part);
    }
    send(wire, &out).await?;
    match read_bytes(wire).await? {
        [_, 0] => Ok(()),
        _ => Err(broken(FaultKind::Credentials, "the exit did not take the login").into()),
    }
}

async fn send(wire: &mut Wire, bytes: &[u8]) -> io::Result<()> {
    wire.write_all(bytes).await?;
    wire.flush().await
}

async fn read_bytes<const N: usize>(wire: &mut Wire) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    wire.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn not_socks() -> Fault {
    broken(FaultKind::Protocol, "the exit does not speak SOCKS5")
}

/// As RFC 1928 §6 names it.
fn reply_name(reply: u8) -> &'static str {
    match reply {
        1 => "general failure",
        2 => "not allowed by the ruleset",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "unassigned",
    }
}
