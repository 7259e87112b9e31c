//! SOCKS5 (RFC 1928) with or without a login (RFC 1929).

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use url::Host;

use crate::fetch::wire::Wire;
use crate::model::{Fault, FaultKind, Login};

use super::{NoTunnel, broken};

/// What a SOCKS5 exit is asked for.
pub(in crate::fetch) struct Socks5<'a> {
    pub(in crate::fetch) host: Host<&'a str>,
    pub(in crate::fetch) port: u16,
    pub(in crate::fetch) login: Option<&'a Login>,
}

impl Socks5<'_> {
    /// Whether the protocol can carry the host at all (names are counted by one byte).
    pub(in crate::fetch) fn check(&self) -> Result<(), Fault> {
        match self.host {
            Host::Domain(name) if name.len() > 255 => {
                let detail = format!("a host name of {} bytes: SOCKS5 carries 255", name.len());
                Err(broken(FaultKind::HostTooLong, detail))
            }
            _ => Ok(()),
        }
    }

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
