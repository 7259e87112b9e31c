//! What the lab's origin knows: a book per host of what was asked, when and how it went.
//!
//! The origin is one and answers for every host name; a host is what a client would call an
//! origin (name and port, default port dropped). Times are nanoseconds since the lab began.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::Clock;

use super::gauge::{Gauge, Level};
use super::tls::lock;

/// Hosts with a book of their own; those beyond share one called `(others)`.
const MOST_HOSTS: usize = 500_000;
/// Visits remembered one by one for routes that change with them.
const MOST_VISITS: usize = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// The state behind every host of the lab.
pub(super) struct Origin {
    pub(super) clock: Clock,
    pub(super) requests: AtomicU64,
    pub(super) in_flight: Gauge,
    /// Sockets of the origin's own listeners.
    pub(super) sockets: Arc<Gauge>,
    pub(super) connections: AtomicU64,
    pub(super) unfinished: AtomicU64,
    pub(super) proxy_fields: AtomicU64,
    hosts: Mutex<HashMap<Box<str>, Arc<Host>>>,
    visits: Mutex<HashMap<String, u32>>,
    /// Compressed zeros by their decoded size.
    pub(super) bombs: Mutex<HashMap<u64, Bytes>>,
    log: Mutex<VecDeque<Seen>>,
    log_size: usize,
    stamps: usize,
}

impl Origin {
    /// A fresh origin that keeps `log_size` requests and `stamps` times per host.
    pub(super) fn new(clock: Clock, log_size: usize, stamps: usize) -> Origin {
        Origin {
            clock,
            requests: AtomicU64::new(0),
            in_flight: Gauge::default(),
            sockets: Arc::default(),
            connections: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
            proxy_fields: AtomicU64::new(0),
            hosts: Mutex::default(),
            visits: Mutex::default(),
            bombs: Mutex::default(),
            log: Mutex::default(),
            log_size,
            stamps,
        }
    }

    /// The book of `name`, opened when it is first asked for.
    pub(super) fn host(&self, name: &str) -> Arc<Host> {
        let mut hosts = lock(&self.hosts);
        if let Some(host) = hosts.get(name) {
            return Arc::clone(host);
        }
        let name = if hosts.len() < MOST_HOSTS {
            name
        } else {
            "(others)"
        };
        let host = hosts.entry(name.into()).or_insert_with(|| {
            Arc::new(Host {
                name: name.into(),
                in_flight: Gauge::default(),
                book: Mutex::default(),
            })
        });
        Arc::clone(host)
    }

    /// How often `key` was visited before this visit.
    pub(super) fn visit(&self, key: String) -> u32 {
        let mut visits = lock(&self.visits);
        if visits.len() >= MOST_VISITS {
            visits.clear();
        }
        let count = visits.entry(key).or_default();
        *count += 1;
        *count - 1
    }

    /// Writes a request at `host` into the books.
    pub(super) fn arrived(&self, host: &Host) {
        self.requests.fetch_add(1, Relaxed);
        let mut book = lock(&host.book);
        book.requests += 1;
        if book.at.len() < self.stamps {
            // Read inside the lock, so that the times are in order.
            book.at.push(self.clock.now().as_nanos());
        }
    }

    /// Whether `host` takes one more request under a limit of `limit` in any second; what is
    /// turned away does not count against the limit.
    pub(super) fn admits(&self, host: &Host, limit: usize) -> bool {
        let now = self.clock.now().as_nanos();
        let mut book = lock(&host.book);
        while book.admitted.front().is_some_and(|at| at + SECOND <= now) {
            book.admitted.pop_front();
        }
        let admits = book.admitted.len() < limit;
        if admits {
            book.admitted.push_back(now);
        }
        admits
    }

    /// Whether requests are remembered one by one.
    pub(super) fn logs(&self) -> bool {
        self.log_size > 0
    }

    /// Remembers one request, forgetting the oldest if there are too many.
    pub(super) fn log(&self, seen: Seen) {
        let mut log = lock(&self.log);
        if log.len() >= self.log_size {
            log.pop_front();
        }
        log.push_back(seen);
    }

    /// The requests remembered, oldest first.
    pub(super) fn seen(&self) -> Vec<Seen> {
        lock(&self.log).iter().cloned().collect()
    }

    /// All books as they stand.
    pub(super) fn stats(&self) -> OriginStats {
        let hosts: Vec<Arc<Host>> = lock(&self.hosts).values().cloned().collect();
        OriginStats {
            requests: self.requests.load(Relaxed),
            in_flight: self.in_flight.read(),
            connections: self.connections.load(Relaxed),
            sockets: self.sockets.read(),
            unfinished: self.unfinished.load(Relaxed),
            proxy_fields: self.proxy_fields.load(Relaxed),
            hosts: hosts
                .iter()
                .map(|host| (host.name.to_string(), host.stats()))
                .collect(),
        }
    }

    /// Starts all books anew.
    pub(super) fn reset(&self) {
        for counter in [
            &self.requests,
            &self.connections,
            &self.unfinished,
            &self.proxy_fields,
        ] {
            counter.store(0, Relaxed);
        }
        self.in_flight.forget_peak();
        self.sockets.forget_peak();
        for host in lock(&self.hosts).values() {
            *lock(&host.book) = Book::default();
            host.in_flight.forget_peak();
        }
        lock(&self.visits).clear();
        lock(&self.log).clear();
    }
}

/// One host of the origin.
pub(super) struct Host {
    pub(super) name: Box<str>,
    pub(super) in_flight: Gauge,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    requests: u64,
    statuses: Vec<(u16, u64)>,
    at: Vec<u64>,
    admitted: VecDeque<u64>,
}

impl Host {
    /// Counts an answer with `status`.
    pub(super) fn answered(&self, status: u16) {
        let mut book = lock(&self.book);
        match book.statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => book.statuses.push((status, 1)),
        }
    }

    fn stats(&self) -> HostStats {
        let book = lock(&self.book);
        HostStats {
            requests: book.requests,
            in_flight: self.in_flight.read(),
            statuses: book.statuses.iter().copied().collect(),
            at_ns: book.at.clone(),
        }
    }
}

/// One request as the origin saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// When its head was complete, in nanoseconds since the lab began.
    pub at_ns: u64,
    /// Name of the exit it came through; `None`: straight to a listener of the origin.
    pub exit: Option<String>,
    /// Username it came with at the exit.
    pub login: Option<String>,
    /// Number of the socket it came over, unique in the lab.
    pub connection: u64,
    /// It came through CONNECT or SOCKS5.
    pub tunnel: bool,
    /// It came inside TLS.
    pub secure: bool,
    /// As the books name it.
    pub host: String,
    /// As sent.
    pub method: String,
    /// Path and query as sent.
    pub target: String,
}

/// What the origin counted. Levels' peaks and counts are since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OriginStats {
    /// Requests whose head was read, of all hosts.
    pub requests: u64,
    /// From head read until last byte written.
    pub in_flight: Level,
    /// Sockets accepted by the origin's own listeners.
    pub connections: u64,
    /// Of those, how many were open at once.
    pub sockets: Level,
    /// Requests whose answer was not written to its end, whoever's doing it was.
    pub unfinished: u64,
    /// Requests that brought a `Proxy-` field to the origin. Must stay 0.
    pub proxy_fields: u64,
    /// By host.
    pub hosts: BTreeMap<String, HostStats>,
}

impl OriginStats {
    /// The book of `host`, empty if nobody asked there.
    pub fn host(&self, host: &str) -> HostStats {
        self.hosts.get(host).cloned().unwrap_or_default()
    }
}

/// What the origin counted for one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostStats {
    /// Requests whose head was read.
    pub requests: u64,
    /// From head read until last byte written.
    pub in_flight: Level,
    /// How many answers had which status; answers without one are in no count.
    pub statuses: BTreeMap<u16, u64>,
    /// When requests came, the first [`super::LabConfig::stamps`] of them.
    pub at_ns: Vec<u64>,
}

impl HostStats {
    /// The shortest time between two requests that followed each other, in seconds.
    pub fn least_gap(&self) -> Option<f64> {
        let gaps = self.at_ns.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.min().map(|gap| gap as f64 / SECOND as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[expect(
        clippy::disallowed_methods,
        reason = "a test of the lab, which reads clocks"
    )]
    fn origin() -> Origin {
        Origin::new(Clock::new(Instant::now(), Duration::ZERO), 2, 3)
    }

    #[test]
    fn a_host_has_one_book_and_its_times_are_bounded() {
        let origin = origin();
        for _ in 0..5 {
            let host = origin.host("a.test");
            origin.arrived(&host);
            host.answered(200);
        }
        origin.host("a.test").answered(404);
        let stats = origin.stats();
        let host = stats.host("a.test");
        assert_eq!((stats.requests, host.requests, host.at_ns.len()), (5, 5, 3));
        assert_eq!(host.statuses, BTreeMap::from([(200, 5), (404, 1)]));
        origin.reset();
        assert_eq!(origin.stats().host("a.test"), HostStats::default());
    }

    #[test]
    fn a_rate_limit_admits_its_number_and_counts_only_what_it_admits() {
        let origin = origin();
        let host = origin.host("a.test");
        let admitted = (0..10).filter(|_| origin.admits(&host, 3)).count();
        assert_eq!(admitted, 3);
        assert!(origin.admits(&origin.host("b.test"), 3));
    }

    #[test]
    fn visits_are_counted_by_key() {
        let origin = origin();
        assert_eq!(origin.visit("a".into()), 0);
        assert_eq!(origin.visit("a".into()), 1);
        assert_eq!(origin.visit("b".into()), 0);
    }
}
