//! Each kind of exit: what it carries, and who may use it.

use super::super::content;
use super::*;

#[tokio::test]
async fn an_http_exit_forwards_any_host_on_one_connection() {
    let lab = lab([ExitConfig::http()]).await;
    let exit = &lab.exits()[0];
    let mut peer = Peer::dial(exit.address()).await;
    for host in ["a.test", "b.test:8080", "127.0.0.1:1", "[::1]:81"] {
        let answer = peer.forward(&format!("http://{host}/bytes/100?x")).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.body, content(host, "/bytes/100?x", 100));
    }
    peer.forward("http://A.test:80/ok/1").await;
    let stats = exit.stats();
    assert_eq!((stats.connections, stats.requests), (1, 5));
    assert_eq!(lab.origin_stats().host("a.test").requests, 2);
}

#[tokio::test]
async fn connect_carries_plain_http_and_tls_to_any_host() {
    let lab = lab([ExitConfig::http()]).await;
    let exit = &lab.exits()[0];
    let (status, mut plain) = connect(exit, "a.test:80").await;
    assert_eq!(status, 200);
    plain.send(get_at("a.test", "/ok/10")).await;
    assert_eq!(plain.answer().await.body, content("a.test", "/ok/10", 10));

    for name in ["b.test", "127.0.0.9", "::1"] {
        let target = if name.contains("::") {
            format!("[{name}]:443")
        } else {
            format!("{name}:443")
        };
        let (_, tunnel) = connect(exit, &target).await;
        let mut tls = tunnel.tls(name, &lab).await.unwrap();
        for _ in 0..3 {
            tls.send(get_at(&target, "/ok/9")).await;
            assert_eq!(tls.answer().await.status(), 200);
        }
    }
    let stats = exit.stats();
    assert_eq!((stats.handshakes, stats.requests), (4, 10));
    let seen = lab.log();
    assert!(
        seen.iter()
            .all(|seen| seen.tunnel && seen.exit.as_deref() == Some("lab-1"))
    );
    assert_eq!(seen.iter().filter(|seen| seen.secure).count(), 9);
    assert_eq!(lab.origin_stats().host("b.test").requests, 3);
}

#[tokio::test]
async fn an_https_exit_does_the_same_inside_tls() {
    let lab = lab([ExitConfig::https()]).await;
    let exit = &lab.exits()[0];
    for name in ["127.0.0.1", "localhost"] {
        let peer = Peer::dial(exit.address()).await;
        let mut peer = peer.tls(name, &lab).await.unwrap();
        assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
        peer.send("CONNECT b.test:443 HTTP/1.1\r\n\r\n").await;
        assert!(peer.head().await.contains(" 200 "));
        let mut inner = peer.tls("b.test", &lab).await.unwrap();
        inner.send(get_at("b.test", "/bytes/200000")).await;
        let body = inner.answer().await.body;
        assert_eq!(body, content("b.test", "/bytes/200000", 200_000));
    }
    assert_eq!(exit.stats().requests, 4);
}

#[tokio::test]
async fn a_socks_exit_takes_names_and_both_kinds_of_address() {
    let lab = lab([ExitConfig::socks5()]).await;
    let exit = &lab.exits()[0];
    let (code, mut peer) = socks(exit, "a.test", 80).await;
    assert_eq!(code, 0);
    peer.send(get_at("a.test", "/ok/1")).await;
    assert_eq!(peer.answer().await.status(), 200);

    let v4: &[u8] = &[5, 1, 0, 1, 10, 0, 0, 1, 1, 187];
    let v6: &[u8] = &[
        5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 187,
    ];
    for (request, name) in [(v4, "10.0.0.1"), (v6, "::1")] {
        let mut peer = Peer::dial(exit.address()).await;
        peer.send([&[5, 2, 0, 1], request].concat()).await;
        assert_eq!(peer.take(12).await[..4], [5, 0, 5, 0]);
        let mut tls = peer.tls(name, &lab).await.unwrap();
        tls.send(get("/ok/1")).await;
        assert_eq!(tls.answer().await.status(), 200);
    }
    let stats = exit.stats();
    assert_eq!((stats.names, stats.addresses, stats.handshakes), (1, 2, 3));
}

#[tokio::test]
async fn a_socks_exit_refuses_what_is_not_a_connect() {
    let lab = lab([ExitConfig::socks5()]).await;
    let exit = &lab.exits()[0];
    for (request, code) in [
        ([5, 2, 0, 1, 10, 0, 0, 1, 0, 80], 7),
        ([5, 1, 0, 9, 10, 0, 0, 1, 0, 80], 8),
    ] {
        let mut peer = Peer::dial(exit.address()).await;
        peer.send([5, 1, 0]).await;
        peer.take(2).await;
        peer.send(request).await;
        assert_eq!(peer.rest().await[1], code);
    }
    let mut peer = Peer::dial(exit.address()).await;
    peer.send(get("http://a.test/")).await;
    assert_eq!(peer.rest().await, b"");
}

#[tokio::test]
async fn http_logins_are_wanted_exactly() {
    let lab = lab([ExitConfig::http().login("us@er", "p:@ss/#%")]).await;
    let exit = &lab.exits()[0];
    for (field, status) in [
        (basic("us@er:p:@ss/#%"), 200),
        (basic("us@er:wrong"), 407),
        (basic("us@er"), 407),
        (String::new(), 407),
    ] {
        let mut peer = Peer::dial(exit.address()).await;
        peer.send(format!(
            "GET http://a.test/echo HTTP/1.1\r\nHost: a.test\r\n{field}\r\n"
        ))
        .await;
        let answer = peer.answer().await;
        assert_eq!(answer.status(), status, "{field}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("roxy-A"));
        let mut peer = Peer::dial(exit.address()).await;
        peer.send(format!("CONNECT a.test:443 HTTP/1.1\r\n{field}\r\n"))
            .await;
        assert!(peer.head().await.contains(&format!(" {status} ")));
    }
    let stats = exit.stats();
    assert_eq!((stats.turned_away, stats.requests), (6, 1));
    assert_eq!(stats.logins["us@er"].handshakes, 1);
    assert_eq!(
        exit.line(),
        format!(
            "http://us%40er:p%3A%40ss%2F%23%25@{} name=lab-1",
            exit.address()
        )
    );
}

#[tokio::test]
async fn socks_logins_are_wanted_exactly() {
    let lab = lab([ExitConfig::socks5().login("u", "p:@")]).await;
    let exit = &lab.exits()[0];
    for (password, status) in [(&b"p:@"[..], 0), (b"p", 1)] {
        let mut peer = Peer::dial(exit.address()).await;
        peer.send([5, 2, 0, 2]).await;
        assert_eq!(peer.take(2).await, [5, 2]);
        let mut login = vec![1, 1, b'u', u8::try_from(password.len()).unwrap()];
        login.extend(password);
        peer.send(login).await;
        assert_eq!(peer.take(2).await, [1, status]);
        if status == 0 {
            peer.send(socks_request("a.test", 80)).await;
            assert_eq!(peer.take(10).await[1], 0);
        }
    }
    let mut peer = Peer::dial(exit.address()).await;
    peer.send([5, 1, 0]).await;
    assert_eq!(peer.rest().await, [5, 0xff]);
    assert_eq!(exit.stats().turned_away, 2);
    assert_eq!(exit.stats().logins["u"].handshakes, 1);
}

#[tokio::test]
async fn a_gateway_tells_sessions_apart_and_notices_two_on_one_connection() {
    let lab = lab([ExitConfig::http().gateway("s-", "pw", 3)]).await;
    let exit = &lab.exits()[0];
    let ask = |user: &str| {
        let field = basic(&format!("{user}:pw"));
        format!("GET http://a.test/ok/1 HTTP/1.1\r\nHost: a.test\r\n{field}\r\n")
    };
    let mut first = Peer::dial(exit.address()).await;
    let mut second = Peer::dial(exit.address()).await;
    for _ in 0..3 {
        for (peer, user) in [(&mut first, "s-a"), (&mut second, "s-b")] {
            peer.send(ask(user)).await;
            assert_eq!(peer.answer().await.status(), 200);
        }
    }
    assert_eq!(exit.stats().two_logins, 0);
    assert_eq!(exit.stats().logins["s-a"].sockets.peak, 1);
    assert_eq!(exit.stats().logins["s-a"].requests, 3);
    first.send(ask("s-b")).await;
    first.answer().await;
    first.send(ask("s-a")).await;
    first.answer().await;
    assert_eq!(exit.stats().two_logins, 1);
    assert!(
        exit.line()
            .starts_with("http://s%2D{session}:pw@127.0.0.1:")
    );
    assert!(exit.line().ends_with(" name=lab-1 sessions=3"));
}

#[tokio::test]
async fn the_origin_is_reachable_without_an_exit_too() {
    let lab = lab([]).await;
    let mut plain = Peer::dial(lab.origin_http()).await;
    plain.send(get_at("127.0.0.1:1", "/ok/5")).await;
    assert_eq!(
        plain.answer().await.body,
        content("127.0.0.1:1", "/ok/5", 5)
    );
    for name in ["localhost", "127.0.0.1", "a.test"] {
        let peer = Peer::dial(lab.origin_https()).await;
        let mut tls = peer.tls(name, &lab).await.unwrap();
        tls.send(get_at(name, "/ok/5")).await;
        assert_eq!(tls.answer().await.status(), 200);
    }
    let stats = lab.origin_stats();
    assert_eq!((stats.connections, stats.requests), (4, 4));
    assert_eq!(lab.log()[0].exit, None);
}

#[tokio::test]
async fn a_proxy_field_that_reaches_the_origin_is_counted() {
    let lab = lab([ExitConfig::http()]).await;
    let exit = &lab.exits()[0];
    let leak = format!("GET /echo HTTP/1.1\r\nHost: a.test\r\n{}\r\n", basic("u:p"));
    let (_, mut tunnel) = connect(exit, "a.test:80").await;
    tunnel.send(&leak).await;
    let body = tunnel.answer().await.body;
    assert!(String::from_utf8_lossy(&body).contains("Proxy-Authorization"));
    assert_eq!(lab.origin_stats().proxy_fields, 1);
}

#[tokio::test]
async fn requests_with_bodies_are_read_to_their_end() {
    let lab = lab([ExitConfig::http()]).await;
    let mut peer = Peer::dial(lab.exits()[0].address()).await;
    let start = "POST http://a.test/echo HTTP/1.1\r\nHost: a.test\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n";
    for (rest, body) in [
        ("Content-Length: 5\r\n\r\nabcde", "abcde"),
        (chunked, "abcde"),
        ("Content-Length: 0\r\n\r\n", ""),
    ] {
        peer.send(format!("{start}{rest}")).await;
        let answer = peer.answer().await;
        let said: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(said["method"], "POST");
        assert_eq!(said["target"], "/echo");
        assert_eq!(said["body"], body);
        assert_eq!(said["headers"][0][0], "Host");
    }
    let large = 3 << 20;
    peer.send(format!(
        "{start}Expect: 100-continue\r\nContent-Length: {large}\r\n\r\n"
    ))
    .await;
    assert_eq!(peer.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    peer.send(vec![b'x'; large]).await;
    assert_eq!(peer.answer().await.status(), 200);
    assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
}

#[tokio::test]
async fn what_is_no_request_gets_400() {
    let lab = lab([ExitConfig::http()]).await;
    for text in [
        "\u{1}\u{2}\u{3}\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "CONNECT a.test HTTP/1.1\r\n\r\n",
    ] {
        let mut peer = Peer::dial(lab.exits()[0].address()).await;
        peer.send(text).await;
        assert_eq!(peer.answer().await.status(), 400, "{text:?}");
    }
    assert!(no_requests(&lab.origin_stats()));
}

#[tokio::test]
async fn tls_goes_as_the_host_name_says() {
    let lab = lab([ExitConfig::http()]).await;
    let exit = &lab.exits()[0];
    for (host, part) in [
        ("untrusted.test", "UnknownIssuer"),
        ("wrong-name.test", "not valid for name"),
        ("tls-alert.test", "HandshakeFailure"),
        ("tls-close.test", "eof"),
        ("tls-garbage.test", "corrupt message"),
    ] {
        let (status, tunnel) = connect(exit, &format!("{host}:443")).await;
        assert_eq!(status, 200);
        let error = tunnel.tls(host, &lab).await.err().unwrap().to_string();
        assert!(error.contains(part), "{host}: {error}");
    }
    let (_, tunnel) = connect(exit, "tls-silent.test:443").await;
    let handshake = tunnel.tls("tls-silent.test", &lab);
    assert!(timeout(SILENCE, handshake).await.is_err());
    assert!(no_requests(&lab.origin_stats()));
}
