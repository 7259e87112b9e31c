//! What the tests of this part share: scripted peers and a fetcher set up for them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Method};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::model::{Attempt, Clock, Exit, FaultKind, Login, Phase, Scheme, Secret};

use super::{Coding, ConnRule, Conns, Fetcher, Limits, Options, Request, Seat, TlsRoots, Tunnel};

/// Long enough for a busy machine; a test never waits for it to pass.
const AMPLE: Duration = Duration::from_secs(60);

/// Short enough to wait for it to pass.
pub(super) const BRIEF: Duration = Duration::from_millis(60);

/// A clock that starts now.
#[expect(
    clippy::disallowed_methods,
    reason = "tests with real sockets need the real time"
)]
pub(super) fn clock() -> Clock {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH);
    Clock::new(Instant::now(), unix.unwrap_or(Duration::ZERO))
}

/// A listener whose connections follow a script; it counts them.
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
}

impl Peer {
    /// Runs `script` for each connection; it gets the connection and its number from 0.
    /// The connection counts as open until the script is done.
    pub(super) async fn new<F, R>(script: F) -> Peer
    where
        F: Fn(TcpStream, usize) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Peer {
            address: listener.local_addr().unwrap(),
            accepted: Arc::default(),
            open: Arc::default(),
            peak: Arc::default(),
        };
        let (accepted, open, peak) = (
            Arc::clone(&peer.accepted),
            Arc::clone(&peer.open),
            Arc::clone(&peer.peak),
        );
        let script = Arc::new(script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let n = accepted.fetch_add(1, Ordering::SeqCst);
                peak.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let (script, open) = (Arc::clone(&script), Arc::clone(&open));
                tokio::spawn(async move {
                    script(stream, n).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        peer
    }

    /// Reads one request head per connection, then says `answer` and closes.
    pub(super) async fn answering(answer: impl Into<Vec<u8>>) -> Peer {
        let answer = Arc::new(answer.into());
        Peer::new(move |mut stream, _| {
            let answer = Arc::clone(&answer);
            async move {
                read_head(&mut stream).await;
                let _ = stream.write_all(&answer).await;
            }
        })
        .await
    }

    /// Takes connections and says nothing until they are closed.
    pub(super) async fn silent() -> Peer {
        Peer::new(|mut stream, _| async move { until_closed(&mut stream).await }).await
    }

    /// Answers every request of a connection with `answer`, for as long as they come.
    pub(super) async fn serving(answer: &'static str) -> Peer {
        Peer::new(move |stream, _| serve(stream, answer)).await
    }

    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Most connections open at the same time, as this side saw them.
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }
}

/// Answers request after request until the peer closes.
pub(super) async fn serve(mut stream: TcpStream, answer: &'static str) {
    while !read_head(&mut stream).await.is_empty() {
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

/// Reads up to the blank line, byte by byte so that nothing after it is lost. Empty if the
/// connection ended.
pub(super) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return String::new(),
        }
    }
    String::from_utf8(head).unwrap()
}

/// Waits until the other side has closed.
pub(super) async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) {
    let mut waste = [0; 1024];
    while matches!(stream.read(&mut waste).await, Ok(1..)) {}
}

/// Makes the close of `stream` a reset.
pub(super) fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

/// An exit at `address`.
pub(super) fn exit(scheme: Scheme, address: SocketAddr) -> Exit {
    let host = address.ip().to_string();
    Exit::new(address.to_string(), scheme, &host, address.port())
}

/// The same with a login.
pub(super) fn with_login(mut exit: Exit, username: &str, password: &str) -> Exit {
    exit.login = Some(Login {
        username: Secret::new(username),
        password: Secret::new(password),
    });
    exit
}

/// Options without surprises: no limit is near, nothing is trusted.
pub(super) fn options() -> Options {
    Options {
        limits: Limits {
            connect: AMPLE,
            first_byte: AMPLE,
            stall: AMPLE,
            total: AMPLE,
            max_body: None,
        },
        tunnel_http: Tunnel::Https,
        coding: Coding::Identity,
        tls: TlsRoots::none(),
        headers: HeaderMap::new(),
        user_agent: "exitfetch-test".into(),
        per_origin_headers: HashMap::new(),
        tapes: false,
    }
}

/// A GET of `url`.
pub(super) fn get(url: &str) -> Request {
    Request {
        method: Method::GET,
        target: Url::parse(url).unwrap(),
        authorization: None,
        headers: None,
        body: None,
        left_origin: false,
        validators: None,
    }
}

/// A fetcher with one exit and the exit's connections.
pub(super) struct Rig {
    pub(super) fetcher: Fetcher,
    pub(super) conns: Conns,
    pub(super) clock: Clock,
}

impl Rig {
    pub(super) fn new(exit: Exit, options: Options) -> Rig {
        Rig::with_rule(
            exit,
            options,
            ConnRule {
                ceiling: 1,
                keep_alive: true,
            },
        )
    }

    pub(super) fn with_rule(exit: Exit, options: Options, rule: ConnRule) -> Rig {
        let clock = clock();
        Rig {
            fetcher: Fetcher::new(options, [exit].into(), clock).unwrap(),
            conns: Conns::new(&[rule], usize::MAX),
            clock,
        }
    }

    pub(super) fn seat(&mut self, url: &Url) -> Seat {
        self.conns.take(0, url, self.clock.now())
    }

    /// One attempt to its end: the facts and the body as far as it came.
    pub(super) async fn fetch(&mut self, request: Request) -> (Attempt, Vec<u8>) {
        let seat = self.seat(&request.target);
        let mut exchange = self.fetcher.start(0, seat, &request).await;
        let mut body = Vec::new();
        while let Some(piece) = exchange.chunk().await {
            body.extend_from_slice(&piece);
        }
        let (attempt, conn) = exchange.finish().await;
        self.conns.give_back(0, conn, self.clock.now());
        (*attempt, body)
    }

    pub(super) async fn get(&mut self, url: &str) -> (Attempt, Vec<u8>) {
        self.fetch(get(url)).await
    }
}

/// One GET through an exit at `peer`.
pub(super) async fn attempt(scheme: Scheme, peer: &Peer, options: Options, url: &str) -> Attempt {
    let mut rig = Rig::new(exit(scheme, peer.address), options);
    rig.get(url).await.0
}

/// Phase and kind of the fault; panics if there is none.
pub(super) fn fault_of(attempt: &Attempt) -> (Phase, FaultKind) {
    let fault = attempt.fault.as_ref().expect("no fault");
    (fault.phase, fault.kind)
}
