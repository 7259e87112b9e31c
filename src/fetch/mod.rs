//! The data plane: one attempt of a request through one exit, as facts.
//!
//! [`Fetcher::start`] reuses or dials a socket, asks for a tunnel where one is needed, sends
//! the request and waits for the head; the [`Exchange`] it returns hands out the body.
//! Nothing here decides whose fault a failure is or what comes next: every failure is a
//! fact of the [`Attempt`], never an error.
//!
//! Leaves to others: which exit and when (`schedule`), where bytes go (`store`), and the
//! seats of an exit ([`Conns`] is made here and owned by the engine).
//!
//! Invariants: no name but an exit's own is looked up; nothing is sent except through the
//! exit; a seat has at most one socket, and a socket that is given up is closed before the
//! next one is dialled and before the attempt is over.
//!
//! Why hyper by hand and not a pooling client: the exit's sockets, the head of a refused
//! CONNECT and the time of each phase are what this program is about.

mod alarm;
mod conn;
mod conns;
mod cut;
mod decode;
mod dial;
mod exchange;
mod fault;
mod framing;
mod gauges;
mod handshake;
mod path;
mod request;
mod socket;
mod tape;
mod tls;
mod validators;
mod wire;
mod workers;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};

use crate::model::{Attempt, Clock, Exit, PhaseCounts, Time};

use alarm::{Alarm, Standstill};
use dial::{Address, Addresses};
use exchange::Terms;
use gauges::{Gauges, Mark};
use path::{Path, Running};
use request::{Outgoing, Templates};
use tls::{Sessions, Tls};

pub use conn::Conn;
pub use conns::{ConnRule, Conns, Seat};
pub use cut::{Cut, Patience, Reached, cut};
pub use decode::{Decoder, Piece};
pub use exchange::Exchange;
pub use request::Request;
pub use tape::Tape;
pub use tls::TlsRoots;
pub use validators::Validators;

/// How long the parts of an attempt may take, and how much it may bring.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Look-up, dial, TLS and handshake together. Shorter gives up slow exits sooner.
    pub connect: Duration,
    /// From the request sent to the whole head.
    pub first_byte: Duration,
    /// Longest gap inside a body.
    pub stall: Duration,
    /// The whole attempt.
    pub total: Duration,
    /// Most bytes of a body, decoded; `None`: any.
    pub max_body: Option<u64>,
}

/// Which targets an HTTP exit is asked to open a tunnel for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// `https://` only; `http://` goes in absolute-form.
    Https,
    /// All of them (`--tunnel`).
    Always,
}

/// Which content codings are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// None: what comes is stored as it is.
    Identity,
    /// gzip, br and zstd, decoded on the way (`--compressed`).
    Compressed,
}

/// What holds for all attempts.
pub struct Options {
    /// Times and sizes.
    pub limits: Limits,
    /// Tunnel policy for HTTP exits.
    pub tunnel_http: Tunnel,
    /// Content codings.
    pub coding: Coding,
    /// Certificates that are trusted, at exits and origins alike.
    pub tls: TlsRoots,
    /// From `-H`.
    pub headers: HeaderMap,
    /// Empty: none is sent.
    pub user_agent: String,
    /// By origin, as [`crate::model::Origin`] writes it; they win over `headers`.
    pub per_origin_headers: HashMap<String, HeaderMap>,
    /// Connections keep the exact bytes of each exchange ([`Exchange::tape`]).
    pub tapes: bool,
}

/// Makes attempts. Cheap to clone.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    limits: Limits,
    tunnel: Tunnel,
    coding: Coding,
    tapes: bool,
    templates: Templates,
    user_agent: Option<HeaderValue>,
    tls: Tls,
    exits: Arc<[Exit]>,
    vias: Box<[Via]>,
    clock: Clock,
    gauges: Arc<Gauges>,
    standstill: Standstill,
}

/// What is kept for one exit.
struct Via {
    address: Arc<Address>,
    proxy_authorization: Option<HeaderValue>,
    sessions: Sessions,
}

impl Fetcher {
    /// For these exits; attempts name them by their index.
    ///
    /// # Errors
    /// A header of `options` that cannot be sent.
    pub fn new(options: Options, exits: Arc<[Exit]>, clock: Clock) -> anyhow::Result<Fetcher> {
        let mut addresses = Addresses::default();
        let vias = exits.iter().map(|exit| {
            Ok(Via {
                address: addresses.of(exit),
                proxy_authorization: proxy_authorization(exit)?,
                sessions: Sessions::default(),
            })
        });
        let vias = vias.collect::<anyhow::Result<_>>()?;
        let user_agent = match options.user_agent.as_str() {
            "" => None,
            value => Some(
                HeaderValue::try_from(value)
                    .context("the user agent holds characters that no header can")?,
            ),
        };
        Ok(Fetcher(Arc::new(Inner {
            templates: Templates::new(&options, user_agent.as_ref())?,
            user_agent,
            tls: Tls::new(options.tls)?,
            limits: options.limits,
            tunnel: options.tunnel_http,
            coding: options.coding,
            tapes: options.tapes,
            exits,
            vias,
            clock,
            gauges: Arc::default(),
            standstill: Standstill::default(),
        })))
    }

    /// What the attempts under way are at.
    pub fn under_way(&self) -> PhaseCounts {
        self.0.gauges.under_way()
    }

    /// Body bytes received so far, as on the wire, unfinished bodies included.
    pub fn received(&self) -> u64 {
        self.0.gauges.received()
    }

    /// The thread that attempts run on was held up for so long: no limit runs meanwhile.
    pub fn stood_still(&self, span: Duration) {
        self.0.standstill.add(span);
    }

    /// One attempt through the exit with index `exit`, up to the head of the answer.
    ///
    /// # Panics
    /// If there is no such exit.
    pub async fn start(&self, exit: usize, seat: Seat, request: &Request) -> Box<Exchange> {
        self.start_unless_cut(exit, seat, request, Patience::default())
            .await
    }

    /// As [`Fetcher::start`], as long as the other end of `patience` does not cut it.
    ///
    /// # Panics
    /// If there is no such exit.
    pub async fn start_unless_cut(
        &self,
        exit: usize,
        seat: Seat,
        request: &Request,
        patience: Patience,
    ) -> Box<Exchange> {
        let inner = &*self.0;
        let path = Path {
            inner,
            exit: &inner.exits[exit],
            via: &inner.vias[exit],
            target: &request.target,
            sockets: seat.sockets,
        };
        let outgoing = Outgoing {
            request,
            templates: &inner.templates,
            route: path.route(),
            proxy_authorization: path.via.proxy_authorization.as_ref(),
            keep_alive: seat.keep_alive,
        };
        let mut conn = seat.reuse;
        let timer = conn.as_mut().and_then(|conn| conn.timer.take());
        let running = Running {
            attempt: Box::new(Attempt {
                route: outgoing.route,
                ..Attempt::default()
            }),
            alarm: Alarm::new(inner.clock, inner.limits.total)
                .on(timer)
                .beside(&inner.standstill)
                .with(patience),
            mark: Mark::new(&inner.gauges),
            conn,
            head_at: Time::ZERO,
        };
        let terms = Terms {
            stall: inner.limits.stall,
            max_body: inner.limits.max_body,
            coding: inner.coding,
            keep_alive: seat.keep_alive,
        };
        // Boxed from here on: it is what moves through the rest of an attempt.
        let mut exchange = Box::new(Exchange::new(running, terms));
        let running = &mut exchange.running;
        let built = match path.build(&outgoing) {
            Ok(built) => built,
            Err(fault) => {
                running.conn = running.conn.take().or(seat.close_first);
                exchange.failed(fault);
                return exchange;
            }
        };
        let validators = request.validators.as_ref();
        running.attempt.conditional = validators.is_some_and(|own| own.are_in(built.headers()));
        if let Some(conn) = seat.close_first {
            Box::pin(conn.close()).await;
        }
        match path.answer(&outgoing, built, running).await {
            Ok(response) => exchange.answered(response),
            Err(fault) => exchange.failed(fault),
        }
        exchange
    }
}

fn proxy_authorization(exit: &Exit) -> anyhow::Result<Option<HeaderValue>> {
    let Some(login) = &exit.login else {
        return Ok(None);
    };
    let pair = format!("{}:{}", login.username.expose(), login.password.expose());
    let value = format!("Basic {}", STANDARD.encode(pair));
    Ok(Some(request::private(&value)?))
}
