//! An exit: a proxy that leads to the lab's origin over the very socket it was asked on.
//!
//! Nothing is dialled: whatever host a client names, the origin answers in this process. So
//! an exit sees each request, also inside tunnels and inside TLS, and counts all it serves.
//! `listen` owns the port, `http` and `socks` the protocols, `tunnel` what follows both, `turns`
//! the behaviours that take turns, `stats` the numbers as others read them; this file the state.

mod http;
mod listen;
mod socks;
mod stats;
mod tunnel;
mod turns;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::model::Scheme;

use super::behaviour::{Act, Behaviour, Moment, Page};
use super::config::{Access, ExitConfig};
use super::gauge::{Gauge, Inside};
use super::origin::Origin;
use super::reply::Reply;
use super::tls::{Authority, lock};
pub(super) use listen::{listen, open, take_port};
pub(super) use stats::User;
pub use stats::{ExitStats, LoginStats};
use turns::Mood;

/// Logins with numbers of their own; those beyond share one.
const MOST_USERS: usize = 100_000;

/// The state of one exit.
pub(super) struct Exit {
    pub(super) name: Box<str>,
    pub(super) config: ExitConfig,
    pub(super) address: SocketAddr,
    pub(super) origin: Arc<Origin>,
    pub(super) authority: Arc<Authority>,
    /// Whose certificates an intercepting exit shows.
    pub(super) stranger: Arc<Authority>,
    mood: watch::Sender<Arc<Mood>>,
    /// Serial number of the mood that the listener goes by.
    heard: watch::Sender<u64>,
    in_flight: Gauge,
    sockets: Arc<Gauge>,
    connections: AtomicU64,
    requests: AtomicU64,
    handshakes: AtomicU64,
    turned_away: AtomicU64,
    pub(super) unfinished: AtomicU64,
    two_logins: AtomicU64,
    names: AtomicU64,
    addresses: AtomicU64,
    users: Mutex<HashMap<Box<str>, Arc<User>>>,
}

/// What all exits of a lab lead to.
pub(super) struct World {
    pub(super) origin: Arc<Origin>,
    pub(super) authority: Arc<Authority>,
    pub(super) stranger: Arc<Authority>,
}

impl Exit {
    /// An exit called `name` that is reached at `address`.
    pub(super) fn new(
        name: String,
        config: ExitConfig,
        address: SocketAddr,
        world: &World,
    ) -> Exit {
        let mood = Mood::new(config.behaviour.clone(), world.origin.clock.now(), 1);
        Exit {
            name: name.into(),
            config,
            address,
            origin: Arc::clone(&world.origin),
            authority: Arc::clone(&world.authority),
            stranger: Arc::clone(&world.stranger),
            mood: watch::Sender::new(Arc::new(mood)),
            heard: watch::Sender::new(0),
            in_flight: Gauge::default(),
            sockets: Arc::default(),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            handshakes: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
            two_logins: AtomicU64::new(0),
            names: AtomicU64::new(0),
            addresses: AtomicU64::new(0),
            users: Mutex::default(),
        }
    }

    /// What the exit does now. What is not served is counted.
    pub(super) fn act(&self, moment: Moment) -> Act {
        let now = || self.origin.clock.now();
        let act = self.mood.borrow().act(moment, now);
        self.counted(act)
    }

    /// What the exit does about this target (`host:port` or a host), beyond [`Exit::act`].
    fn act_towards(&self, target: &str, moment: Moment) -> Act {
        let act = self.mood.borrow().act_towards(target, moment);
        self.counted(act)
    }

    fn counted(&self, act: Act) -> Act {
        if !matches!(act, Act::Serve | Act::Cut | Act::Intercept) {
            self.turned_away.fetch_add(1, Relaxed);
        }
        act
    }

    /// Behaves otherwise from now on; returns when the port does, too.
    pub(super) async fn behave(&self, behaviour: Behaviour) {
        let mut serial = 0;
        self.mood.send_modify(|mood| {
            serial = mood.serial + 1;
            *mood = Arc::new(Mood::new(behaviour, self.origin.clock.now(), serial));
        });
        self.hears(serial).await;
    }

    /// Returns when the port is as the behaviour wants it.
    pub(super) async fn heard(&self) {
        let serial = self.mood.borrow().serial;
        self.hears(serial).await;
    }

    async fn hears(&self, serial: u64) {
        let mut heard = self.heard.subscribe();
        // An error means that the lab is gone.
        let _ = heard.wait_for(|heard| *heard >= serial).await;
    }

    /// Counts a request as in flight.
    pub(super) fn enter<'a>(&'a self, user: Option<&'a User>) -> [Option<Inside<'a>>; 3] {
        self.requests.fetch_add(1, Relaxed);
        let at_user = user.map(|user| {
            user.requests.fetch_add(1, Relaxed);
            user.in_flight.enter()
        });
        let account = self.config.account.as_ref();
        let at_account = account.map(|account| account.in_flight.enter());
        [Some(self.in_flight.enter()), at_user, at_account]
    }

    /// How long a request takes whose origin takes `origin`.
    pub(super) fn service(&self, origin: Duration) -> Duration {
        let draw = self.requests.load(Relaxed);
        let in_flight = self.in_flight.now();
        let load = &self.config.load;
        let own = load.service(origin, in_flight, draw);
        match &self.config.account {
            Some(account) => own.max(account.service(load, origin, draw)),
            None => own,
        }
    }

    /// Whether this login may use the exit.
    fn admits(&self, login: Option<(&str, &str)>) -> bool {
        match (&self.config.access, login) {
            (Access::Open, _) => true,
            (Access::Login { username, password }, Some((user, word))) => {
                user == username && word == password.expose()
            }
            (
                Access::Gateway {
                    prefix, password, ..
                },
                Some((user, word)),
            ) => user.starts_with(prefix.as_str()) && word == password.expose(),
            (Access::Login { .. } | Access::Gateway { .. }, None) => false,
        }
    }

    /// The numbers of `name`.
    fn user(&self, name: &str) -> Arc<User> {
        let mut users = lock(&self.users);
        if let Some(user) = users.get(name) {
            return Arc::clone(user);
        }
        let name = if users.len() < MOST_USERS {
            name
        } else {
            "(others)"
        };
        let user = users.entry(name.into()).or_insert_with(|| {
            Arc::new(User {
                name: name.into(),
                ..User::default()
            })
        });
        Arc::clone(user)
    }

    /// The line that names this exit in a list.
    pub(super) fn line(&self) -> String {
        let scheme = self.config.scheme.as_str();
        let (login, sessions) = match &self.config.access {
            Access::Open => (String::new(), String::new()),
            Access::Login { username, password } => (
                format!("{}:{}@", escaped(username), escaped(password.expose())),
                String::new(),
            ),
            Access::Gateway {
                prefix,
                password,
                sessions,
            } => (
                format!(
                    "{}{{session}}:{}@",
                    escaped(prefix),
                    escaped(password.expose())
                ),
                format!(" sessions={sessions}"),
            ),
        };
        let (address, name) = (self.address, &self.name);
        let line = format!(
            "{scheme}://{login}{address} name={name}{sessions} {}",
            self.config.attributes
        );
        line.trim_end().to_owned()
    }

    /// All numbers as they stand.
    pub(super) fn stats(&self) -> ExitStats {
        let users = lock(&self.users);
        ExitStats {
            name: self.name.to_string(),
            address: self.address,
            scheme: self.config.scheme.as_str().to_owned(),
            behaviour: self.mood.borrow().to_string(),
            connections: self.connections.load(Relaxed),
            sockets: self.sockets.read(),
            requests: self.requests.load(Relaxed),
            in_flight: self.in_flight.read(),
            handshakes: self.handshakes.load(Relaxed),
            turned_away: self.turned_away.load(Relaxed),
            unfinished: self.unfinished.load(Relaxed),
            two_logins: self.two_logins.load(Relaxed),
            names: self.names.load(Relaxed),
            addresses: self.addresses.load(Relaxed),
            logins: users
                .values()
                .map(|user| (user.name.to_string(), user.stats()))
                .collect(),
        }
    }

    /// Starts all numbers anew.
    pub(super) fn reset(&self) {
        for counter in [
            &self.connections,
            &self.requests,
            &self.handshakes,
            &self.turned_away,
            &self.unfinished,
            &self.two_logins,
            &self.names,
            &self.addresses,
        ] {
            counter.store(0, Relaxed);
        }
        self.in_flight.forget_peak();
        self.sockets.forget_peak();
        lock(&self.users).clear();
    }

    fn is_socks(&self) -> bool {
        self.config.scheme == Scheme::Socks5
    }
}

impl Page {
    /// The page as an answer.
    pub(super) fn reply(&self) -> Reply {
        let status = self.status;
        let mut reply = Reply::text(
            status,
            format!("<html><body>{status}: this is the exit's own page</body></html>\n"),
        )
        .field("Content-Type", "text/html");
        if status == 407 {
            reply = reply.field("Proxy-Authenticate", "Basic realm=\"lab\"");
        }
        if let Some(line) = &self.field {
            reply.fields.push_str(line);
            reply.fields.push_str("\r\n");
        }
        reply
    }
}

fn escaped(text: &str) -> impl std::fmt::Display + '_ {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC)
}
