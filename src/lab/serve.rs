//! One connection's requests to the origin, one after the other.
//!
//! Used by tunnels, by plain requests through an exit and by the origin's own listeners. The
//! fast path (a keep-alive GET of a few KiB at the host of the request before) allocates
//! nothing but what a route itself needs: one read, one parse, one write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::behaviour::{Act, Moment};
use super::content::seed;
use super::exit::{Exit, User};
use super::gauge::Inside;
use super::origin::{Host, Origin, Seen};
use super::reply::{After, Finish, Reply, Sending};
use super::request::{Head, Verb};
use super::routes::{self, Ask};
use super::wire::{Gone, Wire};

/// What is known about a connection besides its bytes.
pub(super) struct Session {
    pub(super) origin: Arc<Origin>,
    /// The exit it came through.
    pub(super) exit: Option<Arc<Exit>>,
    /// Who uses it there.
    pub(super) user: Option<Arc<User>>,
    /// Unique in the lab.
    pub(super) connection: u64,
    /// Where a tunnel leads, as `host:port`.
    pub(super) tunnel: Option<Box<str>>,
    /// Inside TLS with the origin.
    pub(super) secure: bool,
    /// The host of the request before.
    pub(super) host: Option<Arc<Host>>,
}

static CONNECTIONS: AtomicU64 = AtomicU64::new(1);

impl Session {
    /// A connection just accepted.
    pub(super) fn new(origin: &Arc<Origin>, exit: Option<&Arc<Exit>>) -> Session {
        Session {
            origin: Arc::clone(origin),
            exit: exit.cloned(),
            user: None,
            connection: CONNECTIONS.fetch_add(1, Relaxed),
            tunnel: None,
            secure: false,
            host: None,
        }
    }

    /// Answers requests in origin-form until the connection ends.
    pub(super) async fn serve(mut self, mut wire: Wire) {
        loop {
            let Ok(head) = wire.head().await else { return };
            let Ok(head) = head else {
                return turn_away(wire, Reply::status(400)).await;
            };
            let act = match &self.exit {
                Some(exit) => exit.act(Moment::InTunnel),
                None => Act::Serve,
            };
            let after = match act {
                Act::Serve | Act::Intercept | Act::Cut => self.answer(&mut wire, &head, &act).await,
                act => return misbehave(wire, act).await,
            };
            if !matches!(after, Ok(After::Keep)) {
                return end(wire, after).await;
            }
        }
    }

    /// Answers the request of `head`; with half of the body where `act` is to cut it.
    pub(super) async fn answer(
        &mut self,
        wire: &mut Wire,
        head: &Head,
        act: &Act,
    ) -> Result<After, Gone> {
        let exit = self.exit.clone();
        let user = self.user.clone();
        let at_exit = exit.as_deref().map(|exit| exit.enter(user.as_deref()));
        let body = wire.body(head).await?;
        let host = self.whereto(wire, head);
        let origin = Arc::clone(&self.origin);
        let in_flight = InFlight {
            _at_exit: at_exit,
            _at_host: host.in_flight.enter(),
            _at_origin: origin.in_flight.enter(),
            unfinished: [
                exit.as_deref().map(|exit| &exit.unfinished),
                Some(&origin.unfinished),
            ],
        };
        origin.arrived(&host);
        let target = wire.text(&head.path);
        let sending = Sending {
            seed: seed(&host.name, target),
            head_only: head.verb == Verb::Head,
            persistent: head.persistent,
        };
        let ask = self.ask(wire, head, &host, target, &body);
        self.note(&ask, head);
        let mut reply = routes::reply(&ask);
        if *act == Act::Cut {
            reply = routes::halved(reply);
        }
        if reply.status > 0 {
            host.answered(reply.status);
        }
        let wait = match &exit {
            Some(exit) => exit.service(reply.wait),
            None => reply.wait,
        };
        wire.pause(wait).await?;
        let after = reply.send(wire, sending, in_flight).await?;
        wire.use_up(head.whole.end);
        Ok(after)
    }

    /// The host a request is for.
    fn whereto(&mut self, wire: &Wire, head: &Head) -> Arc<Host> {
        let host = match head.authority.as_ref().or(head.host.as_ref()) {
            Some(host) => wire.text(host),
            None => self.tunnel.as_deref().unwrap_or_default(),
        };
        let default = if self.secure { ":443" } else { ":80" };
        let host = host.strip_suffix(default).unwrap_or(host);
        if let Some(known) = &self.host
            && *known.name == *host
        {
            return Arc::clone(known);
        }
        let host = self.origin.host(&host.to_ascii_lowercase());
        self.host = Some(Arc::clone(&host));
        host
    }

    fn ask<'a>(
        &'a self,
        wire: &'a Wire,
        head: &Head,
        host: &'a Host,
        target: &'a str,
        body: &'a [u8],
    ) -> Ask<'a> {
        let user = self.user.as_deref().map(|user| &*user.name);
        Ask {
            origin: &self.origin,
            host,
            target,
            method: wire.text(&head.method),
            head: &wire.inbuf[head.whole.clone()],
            body,
            secure: self.secure,
            forwarded: self.is_forward(),
            via: self.exit.as_deref().map(|exit| (&*exit.name, user)),
        }
    }

    fn is_forward(&self) -> bool {
        self.exit.is_some() && self.tunnel.is_none()
    }

    /// What else the books want to know of a request.
    fn note(&self, ask: &Ask<'_>, head: &Head) {
        if head.proxy_fields && !self.is_forward() {
            self.origin.proxy_fields.fetch_add(1, Relaxed);
        }
        if !self.origin.logs() {
            return;
        }
        self.origin.log(Seen {
            at_ns: self.origin.clock.now().as_nanos(),
            exit: ask.via.map(|(exit, _)| exit.to_owned()),
            login: ask.via.and_then(|(_, login)| login.map(str::to_owned)),
            connection: self.connection,
            tunnel: self.tunnel.is_some(),
            secure: self.secure,
            host: ask.host.name.to_string(),
            method: ask.method.to_owned(),
            target: ask.target.to_owned(),
        });
    }
}

/// Ends the connection as its last answer asks for.
pub(super) async fn end(mut wire: Wire, after: Result<After, Gone>) {
    match after {
        Ok(After::Keep | After::Close) => wire.close().await,
        Ok(After::Reset) => wire.reset(),
        Ok(After::Stale) => {
            if wire.fill().await.is_ok() {
                wire.reset();
            }
        }
        Err(Gone) => {}
    }
}

/// Sends `reply` as the last of this connection.
pub(super) async fn turn_away(mut wire: Wire, reply: Reply) {
    let sending = Sending {
        seed: 0,
        head_only: false,
        persistent: false,
    };
    let after = reply.send(&mut wire, sending, ()).await;
    end(wire, after).await;
}

/// Does to a connection what the exit does instead of serving.
pub(super) async fn misbehave(mut wire: Wire, act: Act) {
    match act {
        Act::Reset => wire.reset(),
        Act::Close => wire.close().await,
        Act::Hang => {
            wire.until_gone().await;
        }
        Act::Mail => {
            wire.out.extend_from_slice(b"220 mail ready\r\n");
            if wire.send().await.is_ok() {
                wire.until_gone().await;
            }
        }
        Act::Garbage => {
            turn_away(
                wire,
                Reply::raw(
                    "\u{1}neither this nor that\r\n\r\n",
                    super::reply::End::Close,
                ),
            )
            .await;
        }
        Act::Page(page) => turn_away(wire, page.reply()).await,
        // Answers to what is under way; here nothing is, or nothing that could take them.
        Act::SocksReply(_) | Act::Serve | Act::Intercept | Act::Cut => wire.close().await,
    }
}

/// A request that is being answered. Dropped: it counts as unfinished.
struct InFlight<'a> {
    _at_exit: Option<[Option<Inside<'a>>; 3]>,
    _at_host: Inside<'a>,
    _at_origin: Inside<'a>,
    unfinished: [Option<&'a AtomicU64>; 2],
}

impl Finish for InFlight<'_> {
    fn finished(mut self) {
        self.unfinished = [None, None];
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        for counter in self.unfinished.into_iter().flatten() {
            counter.fetch_add(1, Relaxed);
        }
    }
}
