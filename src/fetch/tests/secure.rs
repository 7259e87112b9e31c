//! TLS with exits and with origins inside their tunnels.

use std::io::Write;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::fetch::testing::{
    BRIEF, Peer, Rig, attempt, exit, fault_of, options, read_head, until_closed,
};
use crate::fetch::{ConnRule, Options, TlsRoots};
use crate::model::{FaultKind, Phase, Scheme};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Server side of TLS for these names, and options that trust it.
fn server(names: &[&str]) -> (TlsAcceptor, Options) {
    let names = names.iter().map(|&name| name.to_owned());
    let made = rcgen::generate_simple_self_signed(names.collect::<Vec<_>>()).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(made.cert.pem().as_bytes()).unwrap();
    let mut options = options();
    options.tls = TlsRoots::load(Some(file.path())).unwrap();
    (TlsAcceptor::from(Arc::new(config)), options)
}

async fn open_tunnel(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    assert!(read_head(stream).await.starts_with("CONNECT "));
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
}

async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answer: &str) {
    while !read_head(stream).await.is_empty() {
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.flush().await;
    }
}

/// An HTTP exit whose tunnels end at a TLS origin that serves `OK`.
async fn origin(acceptor: TlsAcceptor) -> Peer {
    Peer::new(move |mut stream, _| {
        let acceptor = acceptor.clone();
        async move {
            open_tunnel(&mut stream).await;
            if let Ok(mut tls) = acceptor.accept(stream).await {
                answer(&mut tls, OK).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn https_targets_are_fetched_through_a_tunnel_by_name_and_by_address() {
    for host in ["o.test", "127.0.0.1", "[::1]", "o.test."] {
        let (acceptor, options) = server(&["o.test", "127.0.0.1", "::1"]);
        let peer = origin(acceptor).await;
        let mut rig = Rig::new(exit(Scheme::Http, peer.address), options);
        let (attempt, body) = rig.get(&format!("https://{host}/")).await;
        assert_eq!(
            (attempt.fault.clone(), body.as_slice()),
            (None, &b"ok"[..]),
            "{host}"
        );
        assert!(attempt.phases.handshake.is_some() && attempt.phases.tls.is_some());
    }
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_is_never_accepted_unless_told() {
    let certificate = (Phase::OriginTls, FaultKind::Certificate);
    let (acceptor, trusting) = server(&["other.test"]);
    let peer = origin(acceptor).await;
    let wrong_name = attempt(Scheme::Http, &peer, trusting, "https://o.test/").await;
    assert_eq!(fault_of(&wrong_name), certificate);
    let unknown = attempt(Scheme::Http, &peer, options(), "https://o.test/").await;
    assert_eq!(fault_of(&unknown), certificate);
    let mut careless = options();
    careless.tls = TlsRoots::insecure();
    let taken = attempt(Scheme::Http, &peer, careless, "https://o.test/").await;
    assert_eq!(taken.fault, None);
}

/// Through an HTTP exit whose tunnels follow `script` in place of a TLS handshake.
async fn instead_of_tls(say: &'static [u8]) -> (Phase, FaultKind) {
    let peer = Peer::new(move |mut stream, _| async move {
        open_tunnel(&mut stream).await;
        let _ = stream.read_u8().await;
        let _ = stream.write_all(say).await;
        let _ = stream.shutdown().await;
        until_closed(&mut stream).await;
    })
    .await;
    let attempt = attempt(Scheme::Http, &peer, options(), "https://o.test/").await;
    fault_of(&attempt)
}

#[tokio::test]
async fn a_tls_handshake_fails_by_alert_by_end_by_nonsense_or_by_silence() {
    let phase = Phase::OriginTls;
    let alert = &[21, 3, 3, 0, 2, 2, 40];
    assert_eq!(instead_of_tls(alert).await, (phase, FaultKind::TlsAlert));
    assert_eq!(instead_of_tls(b"").await, (phase, FaultKind::Eof));
    let plain = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    assert_eq!(instead_of_tls(plain).await, (phase, FaultKind::Protocol));

    let silent = Peer::new(|mut stream, _| async move {
        open_tunnel(&mut stream).await;
        until_closed(&mut stream).await;
    })
    .await;
    let mut options = options();
    options.limits.connect = BRIEF;
    let attempt = attempt(Scheme::Http, &silent, options, "https://o.test/").await;
    assert_eq!(fault_of(&attempt), (phase, FaultKind::Timeout));
}

/// An HTTPS exit that forwards nothing and answers by itself.
async fn tls_exit(acceptor: TlsAcceptor) -> Peer {
    Peer::new(move |stream: TcpStream, _| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(mut tls) = acceptor.accept(stream).await {
                answer(&mut tls, OK).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn an_https_exit_is_spoken_to_inside_tls() {
    let (acceptor, options) = server(&["127.0.0.1"]);
    let peer = tls_exit(acceptor).await;
    let mut rig = Rig::new(exit(Scheme::Https, peer.address), options);
    for reused in [false, true] {
        let (attempt, body) = rig.get("http://o.test/").await;
        assert_eq!((attempt.fault, body.as_slice()), (None, &b"ok"[..]));
        assert_eq!(attempt.reused, reused);
    }
}

#[tokio::test]
async fn an_https_exit_whose_tls_fails_is_at_fault_before_any_handshake() {
    let (acceptor, _) = server(&["127.0.0.1"]);
    let peer = tls_exit(acceptor).await;
    let unknown = attempt(Scheme::Https, &peer, options(), "http://o.test/").await;
    assert_eq!(fault_of(&unknown), (Phase::ExitTls, FaultKind::Certificate));
    assert!(unknown.not_delivered());

    let plain = Peer::new(|mut stream, _| async move {
        let _ = stream.write_all(b"220 mail ready\r\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    let nonsense = attempt(Scheme::Https, &plain, options(), "http://o.test/").await;
    assert_eq!(fault_of(&nonsense), (Phase::ExitTls, FaultKind::Protocol));
}

#[tokio::test]
async fn tls_inside_the_tunnel_of_an_https_exit_works() {
    let (acceptor, options) = server(&["127.0.0.1", "o.test"]);
    let peer = Peer::new(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let mut outer = acceptor.accept(stream).await.unwrap();
            open_tunnel(&mut outer).await;
            let _ = outer.flush().await;
            let mut inner = acceptor.accept(outer).await.unwrap();
            answer(&mut inner, OK).await;
        }
    })
    .await;
    let mut rig = Rig::new(exit(Scheme::Https, peer.address), options);
    let (attempt, body) = rig.get("https://o.test/").await;
    assert_eq!((attempt.fault, body.as_slice()), (None, &b"ok"[..]));
}

#[tokio::test]
async fn a_close_without_close_notify_ends_only_bodies_that_end_by_the_close() {
    let cases = [
        ("HTTP/1.1 200 OK\r\n\r\nok", None),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
            Some(FaultKind::Truncated),
        ),
    ];
    for (answer, kind) in cases {
        let (acceptor, options) = server(&["127.0.0.1"]);
        let peer = Peer::new(move |stream, _| {
            let acceptor = acceptor.clone();
            async move {
                let mut tls = acceptor.accept(stream).await.unwrap();
                read_head(&mut tls).await;
                let _ = tls.write_all(answer.as_bytes()).await;
                let _ = tls.flush().await;
                let (mut tcp, _) = tls.into_inner();
                let _ = tcp.shutdown().await;
                until_closed(&mut tcp).await;
            }
        })
        .await;
        let attempt = attempt(Scheme::Https, &peer, options, "http://o.test/").await;
        assert_eq!(attempt.fault.map(|fault| fault.kind), kind);
        assert!(!attempt.length_verified);
    }
}

#[tokio::test]
async fn sessions_are_resumed_at_one_exit_and_never_at_another() {
    let (acceptor, options) = server(&["127.0.0.1"]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let peer = Peer::new(move |stream, _| {
        let (acceptor, tell) = (acceptor.clone(), tell.clone());
        async move {
            let mut tls = acceptor.accept(stream).await.unwrap();
            let _ = tell.send(tls.get_ref().1.handshake_kind());
            answer(&mut tls, OK).await;
        }
    })
    .await;
    let rule = ConnRule {
        ceiling: 1,
        keep_alive: false,
    };
    let one = exit(Scheme::Https, peer.address);
    let two = exit(Scheme::Https, peer.address);
    let mut rig = Rig::with_rule(one.clone(), options, rule);
    let (_, options) = server(&["unused.test"]);
    let options = Options {
        tls: TlsRoots::insecure(),
        ..options
    };
    rig.fetcher = crate::fetch::Fetcher::new(options, [one, two].into(), rig.clock).unwrap();
    rig.conns = crate::fetch::Conns::new(&[rule, rule], usize::MAX);
    let mut kinds = Vec::new();
    for at in [0, 0, 1] {
        let request = crate::fetch::testing::get("http://o.test/");
        let seat = rig.conns.take(at, &request.target, rig.clock.now());
        let mut exchange = rig.fetcher.start(at, seat, &request).await;
        while exchange.chunk().await.is_some() {}
        let (attempt, conn) = exchange.finish().await;
        assert_eq!(attempt.fault, None);
        rig.conns.give_back(at, conn, rig.clock.now());
        kinds.push(told.recv().await.unwrap().unwrap());
    }
    use rustls::HandshakeKind::{Full, Resumed};
    assert_eq!(kinds, [Full, Resumed, Full]);
}

#[test]
fn a_cacert_without_certificates_is_refused_by_name() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"no certificate\n").unwrap();
    let err = TlsRoots::load(Some(file.path())).err().unwrap();
    assert!(format!("{err:#}").contains(&file.path().display().to_string()));
    assert!(TlsRoots::load(Some("/nonexistent/ca.pem".as_ref())).is_err());
}
