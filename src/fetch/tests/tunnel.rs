//! The handshake with the exit: CONNECT and SOCKS5.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fetch::Tunnel;
use crate::fetch::testing::{
    BRIEF, Peer, Rig, attempt, exit, fault_of, options, read_head, reset, serve, until_closed,
    with_login,
};
use crate::model::{Attempt, FaultKind, Phase, Route, Scheme};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An https target through an HTTP exit that answers CONNECT with `answer`.
async fn connect(answer: impl Into<Vec<u8>>) -> Attempt {
    let peer = Peer::answering(answer).await;
    attempt(Scheme::Http, &peer, options(), "https://o.test/").await
}

#[tokio::test]
async fn a_refused_connect_keeps_the_whole_head() {
    let attempt = connect("HTTP/1.1 503 No\r\nProxy-Status: x; error=y\r\n\r\n").await;
    let status = FaultKind::ConnectStatus(503);
    assert_eq!(fault_of(&attempt), (Phase::Handshake, status));
    let refusal = attempt.refusal.unwrap();
    assert_eq!(refusal.status, 503);
    assert_eq!(refusal.headers["proxy-status"], "x; error=y");
    assert!(attempt.head.is_none() && attempt.phases.handshake.is_some());
}

#[tokio::test]
async fn a_407_is_about_credentials_and_echoes_nothing() {
    let attempt = connect("HTTP/1.1 407 hunter2\r\nProxy-Authenticate: Basic\r\n\r\n").await;
    assert_eq!(
        fault_of(&attempt),
        (Phase::Handshake, FaultKind::Credentials)
    );
    assert!(!attempt.fault.unwrap().detail.contains("hunter2"));
    assert_eq!(attempt.refusal.unwrap().status, 407);
}

#[tokio::test]
async fn what_is_no_http_is_a_protocol_fault_of_the_handshake() {
    for answer in ["220 mail ready\r\n", "SSH-2.0-x\r\n", "HTTP/1.1 ?\r\n\r\n"] {
        let attempt = connect(answer).await;
        assert_eq!(fault_of(&attempt), (Phase::Handshake, FaultKind::Protocol));
    }
}

#[tokio::test]
async fn an_answer_to_connect_that_never_ends_is_cut() {
    let attempt = connect(format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(70_000))).await;
    let kind = FaultKind::HeadTooLarge;
    assert_eq!(fault_of(&attempt), (Phase::Handshake, kind));
    let lines = "X: y\r\n".repeat(2000);
    let attempt = connect(format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).await;
    assert_eq!(fault_of(&attempt), (Phase::Handshake, kind));
}

#[tokio::test]
async fn an_end_or_a_reset_in_the_handshake_is_named() {
    for scheme in [Scheme::Http, Scheme::Socks5] {
        let peer = Peer::new(|mut stream, _| async move {
            let _ = stream.read_u8().await;
            let _ = stream.shutdown().await;
            until_closed(&mut stream).await;
        })
        .await;
        let closed = attempt(scheme, &peer, options(), "https://o.test/").await;
        assert_eq!(fault_of(&closed), (Phase::Handshake, FaultKind::Eof));

        let peer = Peer::new(|mut stream, _| async move {
            let _ = stream.read_u8().await;
            reset(stream);
        })
        .await;
        let broken = attempt(scheme, &peer, options(), "https://o.test/").await;
        assert_eq!(fault_of(&broken), (Phase::Handshake, FaultKind::Reset));
    }
}

#[tokio::test]
async fn silence_in_the_handshake_is_bounded_and_so_is_a_trickle() {
    let trickle = |mut stream: TcpStream, _| async move {
        while stream.write_all(b"H").await.is_ok() {
            tokio::time::sleep(BRIEF / 10).await;
        }
    };
    for peer in [Peer::silent().await, Peer::new(trickle).await] {
        let mut options = options();
        options.limits.connect = BRIEF;
        let attempt = attempt(Scheme::Http, &peer, options, "https://o.test/").await;
        let (phase, _) = fault_of(&attempt);
        assert_eq!(phase, Phase::Handshake);
    }
    let peer = Peer::silent().await;
    let mut options = options();
    options.limits.connect = BRIEF;
    let attempt = attempt(Scheme::Socks5, &peer, options, "http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Handshake, FaultKind::Timeout));
}

#[tokio::test]
async fn any_2xx_opens_the_tunnel_and_its_length_is_none() {
    let peer = Peer::new(|mut stream, _| async move {
        let asked = read_head(&mut stream).await;
        assert!(asked.starts_with("CONNECT o.test:80 HTTP/1.1\r\nHost: o.test:80\r\n"));
        let opened = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 299 Fine\r\nContent-Length: 9\r\n\r\n";
        let _ = stream.write_all(opened.as_bytes()).await;
        serve(stream, OK).await;
    })
    .await;
    let mut options = options();
    options.tunnel_http = Tunnel::Always;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options);
    let (attempt, body) = rig.get("http://o.test/").await;
    assert_eq!((attempt.fault, body.as_slice()), (None, &b"ok"[..]));
    assert_eq!(attempt.route, Route::Tunnel);
}

#[tokio::test]
async fn bytes_after_the_head_that_opens_the_tunnel_are_the_tunnels() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\n\r\n220 mail ready\r\n").await;
    let mut options = options();
    options.tunnel_http = Tunnel::Always;
    let attempt = attempt(Scheme::Http, &peer, options, "http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Protocol));
}

#[tokio::test]
async fn through_a_tunnel_requests_are_in_origin_form_without_the_exits_login() {
    let peer = Peer::new(|mut stream, _| async move {
        let asked = read_head(&mut stream).await;
        assert!(
            asked.contains("\r\nProxy-Authorization: Basic YWxpY2U6cDpA\r\n"),
            "{asked}"
        );
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let asked = read_head(&mut stream).await;
        assert!(
            asked.starts_with("GET /x?y HTTP/1.1\r\nhost: [::1]:81\r\n"),
            "{asked}"
        );
        assert!(!asked.to_ascii_lowercase().contains("proxy-"), "{asked}");
        let _ = stream.write_all(OK.as_bytes()).await;
        until_closed(&mut stream).await;
    })
    .await;
    let mut options = options();
    options.tunnel_http = Tunnel::Always;
    let exit = with_login(exit(Scheme::Http, peer.address), "alice", "p:@");
    let (attempt, body) = Rig::new(exit, options).get("http://[::1]:81/x?y#z").await;
    assert_eq!(attempt.fault, None);
    assert_eq!(body, b"ok");
}

/// A SOCKS5 exit that takes `login`, expects `request` and serves `OK` in the tunnel.
async fn socks(login: Option<&'static [u8]>, request: &'static [u8]) -> Peer {
    Peer::new(move |mut stream, _| async move {
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.unwrap();
        let method = if login.is_some() { 2 } else { 0 };
        assert_eq!(greeting, [5, 1, method]);
        stream.write_all(&[5, method]).await.unwrap();
        if let Some(login) = login {
            let mut sent = vec![0; login.len()];
            stream.read_exact(&mut sent).await.unwrap();
            assert_eq!(sent, login);
            stream.write_all(&[1, 0]).await.unwrap();
        }
        let mut asked = vec![0; request.len()];
        stream.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked, request);
        // The bound address as a name: its bytes are not the tunnel's.
        stream
            .write_all(&[5, 0, 0, 3, 2, b'a', b'b', 0, 1])
            .await
            .unwrap();
        serve(stream, OK).await;
    })
    .await
}

#[tokio::test]
async fn socks5_gets_names_as_names_and_addresses_as_addresses() {
    let v6 = [
        5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80,
    ];
    let requests: [(&str, Vec<u8>); 4] = [
        (
            "http://o.test/",
            [&[5, 1, 0, 3, 6][..], b"o.test", &[0, 80]].concat(),
        ),
        (
            "http://B\u{fc}cher.test:8080/",
            [&[5, 1, 0, 3, 18][..], b"xn--bcher-kva.test", &[31, 144]].concat(),
        ),
        ("http://127.0.0.1/", vec![5, 1, 0, 1, 127, 0, 0, 1, 0, 80]),
        ("http://[::1]/", v6.to_vec()),
    ];
    for (url, request) in requests {
        let peer = socks(None, request.leak()).await;
        let (attempt, body) = Rig::new(exit(Scheme::Socks5, peer.address), options())
            .get(url)
            .await;
        assert_eq!(attempt.fault, None, "{url}");
        assert_eq!(body, b"ok");
    }
}

#[tokio::test]
async fn a_socks5_login_goes_out_byte_for_byte() {
    let request = &[5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
    let peer = socks(Some(b"\x01\x05alice\x03p:@"), request).await;
    let exit = with_login(exit(Scheme::Socks5, peer.address), "alice", "p:@");
    let (attempt, _) = Rig::new(exit, options()).get("http://127.0.0.1/").await;
    assert_eq!(attempt.fault, None);
}

/// A SOCKS5 exit that says `answers` in turn, whatever it is asked.
async fn socks_saying(answers: &'static [&'static [u8]]) -> Attempt {
    let peer = Peer::new(move |mut stream, _| async move {
        for answer in answers {
            let mut asked = [0; 64];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(answer).await;
        }
        let _ = stream.shutdown().await;
        until_closed(&mut stream).await;
    })
    .await;
    let exit = with_login(exit(Scheme::Socks5, peer.address), "a", "b");
    Rig::new(exit, options()).get("http://o.test/").await.0
}

#[tokio::test]
async fn each_way_a_socks5_exit_refuses_has_its_kind() {
    let cases: [(&'static [&'static [u8]], FaultKind); 8] = [
        (&[&[5, 0xff]], FaultKind::Credentials),
        (&[&[5, 2], &[1, 1]], FaultKind::Credentials),
        (&[&[5, 2], &[5, 0], &[5, 2]], FaultKind::SocksReply(2)),
        (
            &[&[5, 2], &[1, 0], &[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]],
            FaultKind::SocksReply(5),
        ),
        (&[b"HTTP/1.1 400 Bad Request\r\n\r\n"], FaultKind::Protocol),
        (&[&[5, 0]], FaultKind::Protocol),
        (&[&[5, 2], &[1, 0], &[5, 0, 0, 9, 0]], FaultKind::Protocol),
        (&[&[5, 2], &[1, 0], &[5, 0, 0, 1, 9]], FaultKind::Eof),
    ];
    for (answers, kind) in cases {
        let attempt = socks_saying(answers).await;
        assert_eq!(fault_of(&attempt), (Phase::Handshake, kind), "{answers:?}");
    }
}

#[tokio::test]
async fn a_name_too_long_for_socks5_is_known_before_any_dial() {
    let peer = Peer::silent().await;
    let host = vec!["x".repeat(60); 5].join(".");
    let mut rig = Rig::new(exit(Scheme::Socks5, peer.address), options());
    let (attempt, _) = rig.get(&format!("http://{host}/")).await;
    let kind = FaultKind::HostTooLong;
    assert_eq!(fault_of(&attempt), (Phase::Handshake, kind));
    assert_eq!(rig.conns.peak(0), 0);
}
