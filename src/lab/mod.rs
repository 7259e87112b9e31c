//! The lab: loopback origins and exits that behave and misbehave on request.
//!
//! Owns everything a run needs on the other side: proxies of every kind and an origin that
//! answers for every host name, all on 127.0.0.1. It counts what it sees, so a run can be
//! checked from there: sockets and requests per exit, requests per host and their times.
//!
//! An exit does not dial: the origin answers in this process, on the socket the exit was
//! asked on, through CONNECT, SOCKS5 and TLS alike. That makes it cheap (one hop, one read and
//! one write per small request), and lets an exit count requests inside tunnels. For real
//! proxies the same origin also has listeners of its own, http and https.
//!
//! What is counted is un-counted just before the last byte goes out or the socket closes, so
//! a client that keeps its cap is never seen above it. Dropping the [`Lab`] ends all of it.
//!
//! The routes are documented in [`routes`], the behaviours at [`Behaviour`], the control
//! address in [`control`].

mod behaviour;
mod config;
mod content;
pub mod control;
mod exit;
mod files;
mod gauge;
mod layers;
mod origin;
mod pause;
mod reply;
mod request;
pub mod routes;
mod serve;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

use crate::model::Clock;

pub use behaviour::{Behaviour, Over, Page};
pub use config::{Access, Account, ExitConfig, LabConfig, Load};
pub use content::content;
pub use control::LabStats;
pub use exit::{ExitStats, LoginStats};
pub use files::sample_urls;
pub use gauge::Level;
pub use origin::{HostStats, OriginStats, Seen};

use exit::{Exit, World, open, take_port};
use origin::Origin;
use serve::Session;
use tls::Authority;
use wire::Wire;

/// A running lab. Dropping it closes its ports and connections.
pub struct Lab {
    parts: Arc<Parts>,
    exits: Vec<ExitHandle>,
    /// Listeners; they own their connections.
    _tasks: JoinSet<()>,
}

/// What a lab consists of.
struct Parts {
    origin: Arc<Origin>,
    authority: Arc<Authority>,
    exits: Vec<Arc<Exit>>,
    control: SocketAddr,
    http: SocketAddr,
    https: SocketAddr,
}

impl Lab {
    /// Starts a lab on the current tokio runtime; everything listens when this returns.
    ///
    /// # Errors
    /// A port is taken, or there are not enough descriptors.
    pub async fn start(config: LabConfig) -> anyhow::Result<Lab> {
        let ports = Ports::take(&config)?;
        let world = World {
            origin: Arc::new(Origin::new(clock(), config.log, config.stamps)),
            authority: Arc::new(Authority::new("exitfetch lab")?),
            stranger: Arc::new(Authority::new("nobody trusts this")?),
        };
        let mut tasks = JoinSet::new();
        let mut exits = Vec::new();
        for (n, (exit, socket)) in config.exits.into_iter().zip(ports.exits).enumerate() {
            let name = exit.name.clone();
            let name = name.unwrap_or_else(|| format!("lab-{}", n + 1));
            let address = socket.local_addr()?;
            let exit = Arc::new(Exit::new(name, exit, address, &world));
            exits.push(Arc::clone(&exit));
            tasks.spawn(async move {
                if let Err(error) = exit::listen(Arc::clone(&exit), socket).await {
                    tracing::warn!(
                        "lab exit {}: its port cannot be had again: {error}",
                        exit.name
                    );
                }
            });
        }
        let [control, http, https] = ports.own;
        let (control, http, https) = (open(control)?, open(http)?, open(https)?);
        let parts = Arc::new(Parts {
            origin: Arc::clone(&world.origin),
            authority: Arc::clone(&world.authority),
            exits,
            control: control.local_addr()?,
            http: http.local_addr()?,
            https: https.local_addr()?,
        });
        tasks.spawn(control::listen(control, Arc::clone(&parts)));
        tasks.spawn(listen(http, Arc::clone(&world.origin), None));
        tasks.spawn(listen(https, world.origin, Some(world.authority)));
        for exit in &parts.exits {
            exit.heard().await;
        }
        let exits = parts.exits.iter().cloned().map(ExitHandle).collect();
        Ok(Lab {
            parts,
            exits,
            _tasks: tasks,
        })
    }

    /// The exits, in the order of the configuration.
    pub fn exits(&self) -> &[ExitHandle] {
        &self.exits
    }

    /// The exit list: one [`ExitHandle::line`] each, with a comment above.
    pub fn exits_txt(&self) -> String {
        self.parts.exits_txt()
    }

    /// The origin's own listener for http, which answers for any `Host`.
    pub fn origin_http(&self) -> SocketAddr {
        self.parts.http
    }

    /// The origin's own listener for https, with a certificate for any name.
    pub fn origin_https(&self) -> SocketAddr {
        self.parts.https
    }

    /// Where [`control`] is served.
    pub fn control(&self) -> SocketAddr {
        self.parts.control
    }

    /// What the exits and the origin counted so far.
    pub fn stats(&self) -> LabStats {
        self.parts.stats()
    }

    /// What the origin counted so far.
    pub fn origin_stats(&self) -> OriginStats {
        self.parts.origin.stats()
    }

    /// The last requests one by one, oldest first, if [`LabConfig::log`] wants them.
    pub fn log(&self) -> Vec<Seen> {
        self.parts.origin.seen()
    }

    /// Starts all counts, peaks, visits and the log anew.
    pub fn reset(&self) {
        self.parts.reset();
    }

    /// The certificate of the lab's authority.
    pub fn ca_pem(&self) -> &str {
        self.parts.authority.pem()
    }

    /// Writes `exits.txt`, `urls.txt` and `lab-ca.pem` into `dir`.
    ///
    /// # Errors
    /// The directory cannot be made or written; the message names the file.
    pub fn write(&self, dir: &Path) -> anyhow::Result<()> {
        self.parts.write(dir)
    }
}

impl Parts {
    fn stats(&self) -> LabStats {
        LabStats {
            exits: self.exits.iter().map(|exit| exit.stats()).collect(),
            origin: self.origin.stats(),
        }
    }

    fn reset(&self) {
        for exit in &self.exits {
            exit.reset();
        }
        self.origin.reset();
    }
}

/// One exit of a running lab.
#[derive(Clone)]
pub struct ExitHandle(Arc<Exit>);

impl ExitHandle {
    /// As in its line.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// The line that names it in an exit list, login and attributes included.
    pub fn line(&self) -> String {
        self.0.line()
    }

    /// What it counted so far.
    pub fn stats(&self) -> ExitStats {
        self.0.stats()
    }

    /// Behaves otherwise from now on. When this returns its port does, too; connections
    /// that are open already follow at their next request.
    pub async fn set_behaviour(&self, behaviour: Behaviour) {
        self.0.behave(behaviour).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "the lab has a clock of its own")]
fn clock() -> Clock {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Clock::new(Instant::now(), unix.unwrap_or_default())
}

/// The ports of a lab, taken before anything starts.
struct Ports {
    /// Control, origin http, origin https.
    own: [TcpSocket; 3],
    exits: Vec<TcpSocket>,
}

impl Ports {
    fn take(config: &LabConfig) -> anyhow::Result<Ports> {
        let mut next = config.base_port;
        let mut port = || -> anyhow::Result<TcpSocket> {
            let Some(port) = next else {
                return take_port(0);
            };
            next =
                Some(port.checked_add(1).context(
                    "the base port leaves too few ports up to 65535: choose a lower one",
                )?);
            take_port(port)
        };
        Ok(Ports {
            own: [port()?, port()?, port()?],
            exits: config
                .exits
                .iter()
                .map(|_| port())
                .collect::<anyhow::Result<_>>()?,
        })
    }
}

/// Serves the origin at a port of its own until dropped.
async fn listen(listener: TcpListener, origin: Arc<Origin>, tls: Option<Arc<Authority>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                let wire = Wire::new(stream, origin.sockets.enter_owned());
                origin.connections.fetch_add(1, Relaxed);
                connections.spawn(serve_direct(wire, Arc::clone(&origin), tls.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_direct(mut wire: Wire, origin: Arc<Origin>, tls: Option<Arc<Authority>>) {
    let mut session = Session::new(&origin, None);
    if let Some(authority) = tls {
        let Ok(config) = authority.server("127.0.0.1") else {
            return;
        };
        match wire.into_tls(config).await {
            Ok(secured) => wire = secured,
            Err(_) => return,
        }
        session.secure = true;
    }
    session.serve(wire).await;
}
