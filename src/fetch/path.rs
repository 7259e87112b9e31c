//! The way of one request: an idle connection or a new one, layer by layer, to the head.
//!
//! One seat, one socket: what has to go is closed before the next one is dialled, and
//! a socket that fails on the way is closed before the attempt is over.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::pki_types::ServerName;
use url::{Host, Url};

use crate::model::{Attempt, Exit, Fault, FaultKind, Phase, PhaseTimes, Route, Scheme, Time};

use super::alarm::Alarm;
use super::conn::{Conn, NoHead, Serves};
use super::fault::fault;
use super::gauges::Mark;
use super::handshake::{Ask, Connect, NoTunnel, Socks5};
use super::request::Outgoing;
use super::socket::Sockets;
use super::tape::Tape;
use super::wire::Wire;
use super::{Inner, Tunnel, Via};

/// A request ready to be sent. Boxed, because it moves through the steps of an attempt.
pub(super) type Built = Box<http::Request<Full<Bytes>>>;

/// From here through one exit to one target.
pub(super) struct Path<'a> {
    pub(super) inner: &'a Inner,
    pub(super) exit: &'a Exit,
    pub(super) via: &'a Via,
    pub(super) target: &'a Url,
    pub(super) sockets: Arc<Sockets>,
}

/// An attempt under way: the facts so far, its limits, and what it goes over.
pub(super) struct Running {
    pub(super) attempt: Box<Attempt>,
    pub(super) alarm: Alarm,
    pub(super) mark: Mark,
    /// An open connection: at first the one to be reused, then the one that was asked.
    pub(super) conn: Option<Conn>,
    /// When the head was complete.
    pub(super) head_at: Time,
}

impl Path<'_> {
    /// Whether the exit is asked itself or for a tunnel.
    pub(super) fn route(&self) -> Route {
        let forward = self.exit.scheme != Scheme::Socks5
            && self.inner.tunnel == Tunnel::Https
            && self.target.scheme() == "http";
        if forward {
            Route::Forward
        } else {
            Route::Tunnel
        }
    }

    /// The request, if it can be sent at all.
    pub(super) fn build(&self, outgoing: &Outgoing<'_>) -> Result<Built, Fault> {
        if outgoing.request.method == Method::CONNECT {
            let detail = "CONNECT is for exits, not for targets";
            return Err(fault(Phase::Head, FaultKind::BadRequest, detail));
        }
        outgoing.build()
    }

    /// Sends `built` and waits for the head. A reused connection that turns out to be dead
    /// is replaced once; nobody is to blame for that, so it leaves no trace in the facts.
    pub(super) async fn answer(
        &self,
        outgoing: &Outgoing<'_>,
        mut built: Built,
        running: &mut Running,
    ) -> Result<Response<Incoming>, Fault> {
        if running.conn.is_some() {
            running.attempt.reused = true;
            match self.ask(built, running).await {
                Ok(response) => return Ok(response),
                Err(no_head) if !no_head.allows_another(&outgoing.request.method) => {
                    return Err(no_head.fault);
                }
                Err(_) => {}
            }
            running.attempt.reused = false;
            running.attempt.phases = PhaseTimes::default();
            built = outgoing.build()?;
        }
        // Boxed: the steps of a dial would make every attempt's future as large as theirs.
        running.conn = Some(Box::pin(self.open(running)).await?);
        let asked = self.ask(built, running).await;
        asked.map_err(|no_head| no_head.fault)
    }

    /// Asks over the connection that is there. Without an answer, that is closed.
    async fn ask(&self, built: Built, running: &mut Running) -> Result<Response<Incoming>, NoHead> {
        let Running {
            attempt,
            alarm,
            mark,
            conn,
            head_at,
        } = running;
        let Some(over) = conn.as_mut() else {
            unreachable!("a connection is there before it is asked");
        };
        mark.enter(Phase::Head);
        let begun = alarm.allow(self.inner.limits.first_byte);
        let reply = pin!(over.send(*built));
        let asked = over.head(reply, alarm).await;
        let now = alarm.now();
        attempt.phases.first_byte = Some(now - begun);
        match asked {
            Ok(response) => {
                alarm.head_came();
                *head_at = now;
                Ok(response)
            }
            Err(no_head) => {
                if let Some(conn) = conn.take() {
                    Box::pin(conn.close()).await;
                }
                Err(no_head)
            }
        }
    }

    /// Dials and makes every layer, all within the connect timeout.
    async fn open(&self, running: &mut Running) -> Result<Conn, Fault> {
        let layers = self.layers()?;
        running.mark.enter(Phase::Dial);
        let Running { attempt, alarm, .. } = running;
        let begun = alarm.allow(self.inner.limits.connect);
        let dialled = self.via.address.dial(&self.sockets, alarm).await;
        attempt.phases.dial = Some(alarm.now() - begun);
        let socket = dialled?;
        let conn = match self.wrap(Wire::bare(socket.clone()), layers, running).await {
            Ok(mut wire) => {
                let serves = Serves::of(self.route(), self.target);
                let tape = self.inner.tapes.then(Tape::default);
                if let Some(tape) = &tape {
                    wire.record(tape.clone());
                }
                let conn = Conn::new(wire, socket.clone(), serves).await;
                conn.map(|conn| conn.with_tape(tape))
            }
            Err(fault) => Err(fault),
        };
        if conn.is_err() {
            socket.close().await;
        }
        conn
    }

    /// What lies between the socket and HTTP; faults that are known before any dial.
    fn layers(&self) -> Result<Layers<'_>, Fault> {
        let exit_tls = match self.exit.scheme {
            Scheme::Https => Some(name_of_exit(self.exit)?),
            Scheme::Http | Scheme::Socks5 => None,
        };
        let tunnel = match (self.route(), self.exit.scheme) {
            (Route::Forward, _) => None,
            (Route::Tunnel, Scheme::Http | Scheme::Https) => Some(Ask::Connect(Connect {
                authority: format!("{}:{}", host_str(self.target), port(self.target)),
                user_agent: self.inner.user_agent.as_ref(),
                authorization: self.via.proxy_authorization.as_ref(),
            })),
            (Route::Tunnel, Scheme::Socks5) => {
                let socks = Socks5 {
                    host: self.target.host().unwrap_or(Host::Domain("")),
                    port: port(self.target),
                    login: self.exit.login.as_ref(),
                };
                socks.check()?;
                Some(Ask::Socks5(socks))
            }
        };
        let origin_tls = match self.target.scheme() {
            "https" => Some(name_of_origin(self.target)?),
            _ => None,
        };
        Ok(Layers {
            exit_tls,
            tunnel,
            origin_tls,
        })
    }

    async fn wrap(
        &self,
        mut wire: Wire,
        layers: Layers<'_>,
        running: &mut Running,
    ) -> Result<Wire, Fault> {
        let to_exit = layers.exit_tls.is_some() || layers.tunnel.is_some();
        let begun = running.alarm.now();
        if to_exit {
            running.mark.enter(Phase::Handshake);
            let shaken = self.shake(wire, &layers, running).await;
            running.attempt.phases.handshake = Some(running.alarm.now() - begun);
            wire = shaken?;
        }
        if let Some(name) = layers.origin_tls {
            running.mark.enter(Phase::OriginTls);
            let begun = running.alarm.now();
            let with = (Phase::OriginTls, name);
            let secured = self.secure(wire, with, running).await;
            running.attempt.phases.tls = Some(running.alarm.now() - begun);
            wire = secured?;
        }
        Ok(wire)
    }

    /// TLS with the exit, then the tunnel.
    async fn shake(
        &self,
        mut wire: Wire,
        layers: &Layers<'_>,
        running: &mut Running,
    ) -> Result<Wire, Fault> {
        if let Some(name) = &layers.exit_tls {
            let with = (Phase::ExitTls, name.clone());
            wire = self.secure(wire, with, running).await?;
        }
        if let Some(ask) = &layers.tunnel {
            match running.alarm.bound(ask.open(&mut wire)).await {
                Ok(Ok(())) => {}
                Ok(Err(NoTunnel { fault, refusal })) => {
                    running.attempt.refusal = refusal;
                    return Err(fault);
                }
                Err(passed) => return Err(passed.fault(Phase::Handshake, "no tunnel")),
            }
        }
        Ok(wire)
    }

    async fn secure(
        &self,
        wire: Wire,
        with: (Phase, ServerName<'static>),
        running: &mut Running,
    ) -> Result<Wire, Fault> {
        let base = &self.inner.tls;
        let sessions = &self.via.sessions;
        sessions.connect(base, with, wire, &mut running.alarm).await
    }
}

/// From the socket outwards.
struct Layers<'a> {
    exit_tls: Option<ServerName<'static>>,
    tunnel: Option<Ask<'a>>,
    origin_tls: Option<ServerName<'static>>,
}

fn host_str(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

fn port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or_default()
}

fn name_of_exit(exit: &Exit) -> Result<ServerName<'static>, Fault> {
    ServerName::try_from(exit.host.to_string()).map_err(|_| {
        let detail = "the exit's host name cannot be in a certificate";
        fault(Phase::ExitTls, FaultKind::Certificate, detail)
    })
}

fn name_of_origin(url: &Url) -> Result<ServerName<'static>, Fault> {
    let name = match url.host() {
        Some(Host::Ipv4(ip)) => return Ok(ServerName::from(std::net::IpAddr::V4(ip))),
        Some(Host::Ipv6(ip)) => return Ok(ServerName::from(std::net::IpAddr::V6(ip))),
        Some(Host::Domain(name)) => name,
        None => "",
    };
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let detail = "the host name cannot be in a certificate";
        fault(Phase::OriginTls, FaultKind::BadRequest, detail)
    })
}
