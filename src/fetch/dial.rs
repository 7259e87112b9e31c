//! The exit's own address: looked up when it is a name, then connected to.
//!
//! Nothing but the host of an exit is ever looked up here; targets go to the exit as they
//! are. Exits of one gateway share the look-up.
//!
//! Addresses are tried one after the other, never two at once (as RFC 8305 would): two
//! sockets for one lease would break the exit's cap. Each gets its share of what is left
//! of the connect timeout, so an address that swallows packets cannot take it all.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::model::{Exit, Fault, FaultKind, Phase, Time};

use super::alarm::Alarm;
use super::fault::{fault, of_io, one_line};
use super::socket::{Socket, Sockets};

/// How long a look-up is believed. The system's resolver does not say what the records'
/// own lifetime is; shorter means more look-ups, longer means later failover.
const LOOKUP_LIFETIME: Duration = Duration::from_secs(60);

/// Where an exit listens.
pub(super) struct Address {
    host: Box<str>,
    port: u16,
    literal: Option<IpAddr>,
    /// Held while looking up, so that many attempts at once make one look-up.
    known: Mutex<Option<(Time, Arc<[SocketAddr]>)>>,
}

/// The addresses of many exits, those of one gateway shared.
#[derive(Default)]
pub(super) struct Addresses(HashMap<(Box<str>, u16), Arc<Address>>);

impl Addresses {
    /// The address of `exit`.
    pub(super) fn of(&mut self, exit: &Exit) -> Arc<Address> {
        let place = (exit.host.clone(), exit.port);
        let address = self.0.entry(place).or_insert_with_key(|(host, port)| {
            Arc::new(Address {
                host: host.clone(),
                port: *port,
                literal: host.parse().ok(),
                known: Mutex::new(None),
            })
        });
        Arc::clone(address)
    }
}

impl Address {
    /// Opens a socket to the exit within the alarm's running limit.
    pub(super) async fn dial(
        &self,
        sockets: &Arc<Sockets>,
        alarm: &mut Alarm,
    ) -> Result<Socket, Fault> {
        if let Some(ip) = self.literal {
            return connect(&[SocketAddr::new(ip, self.port)], sockets, alarm).await;
        }
        let found = self.lookup(alarm).await?;
        connect(&found, sockets, alarm).await
    }

    async fn lookup(&self, alarm: &mut Alarm) -> Result<Arc<[SocketAddr]>, Fault> {
        let now = alarm.now();
        let asked = alarm.bound(async {
            let mut known = self.known.lock().await;
            if let Some((until, found)) = &*known
                && now < *until
            {
                return Ok(Arc::clone(found));
            }
            let found = tokio::net::lookup_host((&*self.host, self.port)).await?;
            let found: Arc<[SocketAddr]> = found.collect();
            if !found.is_empty() {
                *known = Some((now + LOOKUP_LIFETIME, Arc::clone(&found)));
            }
            Ok::<_, io::Error>(found)
        });
        let no_address = |detail| fault(Phase::Resolve, FaultKind::NoAddress, detail);
        match asked.await {
            Err(passed) => Err(passed.fault(Phase::Resolve, "no address of the exit")),
            Ok(Err(err)) => {
                let why = one_line(&err);
                Err(no_address(format!("the exit's name has no address: {why}")))
            }
            Ok(Ok(found)) if found.is_empty() => {
                Err(no_address("the exit's name has no address".into()))
            }
            Ok(Ok(found)) => Ok(found),
        }
    }
}

/// Connects to the first of `addresses` that answers; the fault is that of the last one.
async fn connect(
    addresses: &[SocketAddr],
    sockets: &Arc<Sockets>,
    alarm: &mut Alarm,
) -> Result<Socket, Fault> {
    let mut failed = fault(Phase::Dial, FaultKind::NoAddress, "the exit has no address");
    for (n, &address) in addresses.iter().enumerate() {
        let waiting = u32::try_from(addresses.len() - n).unwrap_or(u32::MAX);
        let slice = alarm.left() / waiting;
        let dialled = alarm.bound_slice(slice, Socket::connect(address, sockets));
        failed = match dialled.await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(err)) => of_connect(address, &err),
            Err(passed) => passed.fault(Phase::Dial, "no connection to the exit"),
        };
        if alarm.passed().is_some() {
            break;
        }
    }
    Err(failed)
}

/// A machine without IPv6 reports an IPv6 address as it reports that it has run out of
/// ports. The former is much more common, and is no reason to hold every exit harmless.
fn of_connect(address: SocketAddr, err: &io::Error) -> Fault {
    let mut fault = of_io(Phase::Dial, err);
    if address.is_ipv6() && err.kind() == io::ErrorKind::AddrNotAvailable {
        fault.kind = FaultKind::Unreachable;
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_ipv6_is_not_out_of_ports() {
        let kind = |address: &str| {
            let err = io::Error::from(rustix::io::Errno::ADDRNOTAVAIL);
            of_connect(address.parse().unwrap(), &err).kind
        };
        assert_eq!(kind("[::1]:80"), FaultKind::Unreachable);
        assert_eq!(kind("127.0.0.1:80"), FaultKind::LocalLimit);
    }
}
