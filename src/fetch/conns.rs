//! The open connections of every exit between requests, and the count that keeps the cap.
//!
//! Invariant: leased + idle sockets of an exit never pass its ceiling. Providers count
//! sockets, not requests, so an idle one occupies the exit like a busy one. A lease that
//! needs a new socket while the ceiling is reached is handed the oldest idle one to close
//! first.
//!
//! One owner (the engine) and no locks. A connection is put to rest in two steps: its last
//! word is sent first, and it counts until the exit has had time to see it go.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::model::Time;

use super::conn::Conn;
use super::socket::{CLOSE_WAIT, Sockets};

/// How long an idle connection waits for another request. Longer saves handshakes, shorter
/// meets fewer connections that the exit has given up meanwhile.
const IDLE: Duration = Duration::from_secs(15);

/// What holds for the sockets of one exit.
#[derive(Clone, Copy, Debug)]
pub struct ConnRule {
    /// Most sockets at the same time, leased and idle; at least 1.
    pub ceiling: u32,
    /// `false`: every request has a connection of its own (gateways that rotate per
    /// connection).
    pub keep_alive: bool,
}

/// A place at an exit: what an attempt may use, and what it has to close first.
pub struct Seat {
    pub(super) reuse: Option<Conn>,
    pub(super) close_first: Option<Conn>,
    pub(super) sockets: Arc<Sockets>,
    pub(super) keep_alive: bool,
}

/// The connections of all exits.
pub struct Conns {
    exits: Vec<ExitConns>,
    /// Most idle connections of all exits together: each holds a descriptor.
    most_idle: usize,
    /// Every idle connection holds a clone, so the count of clones is theirs.
    token: Arc<()>,
    /// When to look at which exit's idle connections again; at most one entry per exit.
    watch: BinaryHeap<Reverse<(Time, usize)>>,
}

struct ExitConns {
    rule: ConnRule,
    leased: u32,
    /// Oldest first.
    idle: VecDeque<Idle>,
    watched: bool,
    sockets: Arc<Sockets>,
}

struct Idle {
    conn: Conn,
    until: Time,
    state: IdleState,
    _token: Arc<()>,
}

#[derive(PartialEq)]
enum IdleState {
    Usable,
    /// Its last word is sent; it goes at `until`.
    Closing,
}

impl Conns {
    /// No connection yet to any exit; one rule per exit, in the order of their indices.
    /// `most_idle` bounds the idle ones of all exits together; one above it is not kept.
    pub fn new(rules: &[ConnRule], most_idle: usize) -> Conns {
        let exits = rules.iter().map(|&rule| ExitConns {
            rule,
            leased: 0,
            idle: VecDeque::new(),
            watched: false,
            sockets: Arc::default(),
        });
        Conns {
            exits: exits.collect(),
            most_idle,
            token: Arc::default(),
            watch: BinaryHeap::new(),
        }
    }

    /// A place at `exit` for a request to `url`. Must be returned with
    /// [`Conns::give_back`], whatever became of it.
    ///
    /// # Panics
    /// If there is no such exit; so do the other methods that name one.
    pub fn take(&mut self, exit: usize, url: &Url, now: Time) -> Seat {
        let exit = &mut self.exits[exit];
        exit.leased += 1;
        let reuse = exit.take_fitting(url, now);
        let full = exit.leased as usize + exit.idle.len() > exit.rule.ceiling as usize;
        let close_first = if full { exit.idle.pop_front() } else { None };
        debug_assert!(
            exit.leased as usize + exit.idle.len() <= exit.rule.ceiling as usize,
            "more leases than the ceiling"
        );
        Seat {
            reuse,
            close_first: close_first.map(|idle| idle.conn),
            sockets: Arc::clone(&exit.sockets),
            keep_alive: exit.rule.keep_alive,
        }
    }

    /// Ends a place at `exit`; `conn` is what can serve another request.
    pub fn give_back(&mut self, exit: usize, conn: Option<Conn>, now: Time) {
        let at = &mut self.exits[exit];
        debug_assert!(at.leased > 0, "given back more often than taken");
        at.leased = at.leased.saturating_sub(1);
        let idle = Arc::strong_count(&self.token) - 1;
        if let Some(conn) = conn
            && at.rule.keep_alive
            && idle < self.most_idle
        {
            at.idle.push_back(Idle {
                conn,
                until: now + IDLE,
                state: IdleState::Usable,
                _token: Arc::clone(&self.token),
            });
            self.watch(exit);
        }
    }

    /// When [`Conns::expire`] has something to do, if ever.
    pub fn next_expiry(&self) -> Option<Time> {
        self.watch.peek().map(|Reverse((due, _))| *due)
    }

    /// Closes the connections that were idle for too long.
    pub fn expire(&mut self, now: Time) {
        while let Some(&Reverse((due, exit))) = self.watch.peek()
            && due <= now
        {
            self.watch.pop();
            let at = &mut self.exits[exit];
            at.watched = false;
            at.idle.retain_mut(|idle| idle.keep(now));
            self.watch(exit);
        }
    }

    /// Closes every idle connection at once.
    pub fn close_all(&mut self) {
        for exit in &mut self.exits {
            exit.idle.clear();
        }
    }

    /// Closes every idle connection so that the exits have seen it, for an owner who has no
    /// lease out and goes on with other connections. Takes at most 250 ms.
    pub async fn close(self) {
        let idle = self.exits.into_iter().flat_map(|exit| exit.idle);
        futures_util::future::join_all(idle.map(|idle| idle.conn.close())).await;
    }

    /// Sockets open at `exit` now, those being opened and closed included.
    pub fn open(&self, exit: usize) -> u32 {
        self.exits[exit].sockets.open()
    }

    /// Most sockets that were ever open at `exit` at the same time.
    pub fn peak(&self, exit: usize) -> u32 {
        self.exits[exit].sockets.peak()
    }

    fn watch(&mut self, exit: usize) {
        let at = &mut self.exits[exit];
        let due = at.idle.iter().map(|idle| idle.until).min();
        if let Some(due) = due
            && !at.watched
        {
            at.watched = true;
            self.watch.push(Reverse((due, exit)));
        }
    }
}

impl ExitConns {
    /// The youngest idle connection that serves `url`. Those found closed by the exit go.
    fn take_fitting(&mut self, url: &Url, now: Time) -> Option<Conn> {
        for n in (0..self.idle.len()).rev() {
            let idle = &self.idle[n];
            let usable = idle.state == IdleState::Usable && now < idle.until;
            if usable && idle.conn.takes(url) {
                let mut conn = self.idle.remove(n)?.conn;
                if conn.is_open() {
                    return Some(conn);
                }
            }
        }
        None
    }
}

impl Idle {
    /// Takes the next step towards the close if it is time; `false`: it can go.
    fn keep(&mut self, now: Time) -> bool {
        if now < self.until {
            return true;
        }
        if self.state == IdleState::Closing {
            return false;
        }
        self.conn.shut();
        self.state = IdleState::Closing;
        self.until = now + CLOSE_WAIT;
        true
    }
}
