//! Each behaviour of an exit, seen by a client.

use std::io::ErrorKind;

use super::super::{Behaviour, Page};
use super::*;

async fn dial(exit: &ExitHandle) -> std::io::Result<TcpStream> {
    TcpStream::connect(exit.address()).await
}

#[tokio::test]
async fn a_closed_port_refuses_and_opens_again_at_the_same_place() {
    let (_lab, exit) = behaving(ExitConfig::http(), "refuse").await;
    assert_eq!(
        dial(&exit).await.unwrap_err().kind(),
        ErrorKind::ConnectionRefused
    );
    for _ in 0..3 {
        exit.set_behaviour(Behaviour::Good).await;
        let mut peer = Peer::dial(exit.address()).await;
        assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
        exit.set_behaviour(Behaviour::Refuse).await;
        assert_eq!(
            dial(&exit).await.unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        peer.send(get("http://a.test/ok/1")).await;
        assert!(
            peer.closes().await.is_err(),
            "open connections end with the next request"
        );
    }
}

#[tokio::test]
async fn a_full_queue_answers_no_dial() {
    let (_lab, exit) = behaving(ExitConfig::http(), "drop-syn").await;
    assert!(timeout(SILENCE, dial(&exit)).await.is_err());
    exit.set_behaviour(Behaviour::Good).await;
    let mut peer = Peer::dial(exit.address()).await;
    assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
}

#[tokio::test]
async fn reset_close_hang_and_mail_show_at_the_accept() {
    for scheme in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        let (lab, exit) = behaving(scheme, "reset").await;
        let mut peer = Peer::dial(exit.address()).await;
        assert_eq!(
            peer.closes().await.unwrap_err().kind(),
            ErrorKind::ConnectionReset
        );

        exit.set_behaviour(Behaviour::Close).await;
        Peer::dial(exit.address()).await.closes().await.unwrap();

        exit.set_behaviour(Behaviour::Hang).await;
        let mut peer = Peer::dial(exit.address()).await;
        peer.send(get("http://a.test/ok/1")).await;
        assert!(peer.is_silent().await);

        exit.set_behaviour(Behaviour::Mail).await;
        let mut peer = Peer::dial(exit.address()).await;
        assert_eq!(peer.take(16).await, b"220 mail ready\r\n");
        assert!(peer.is_silent().await);
        assert_eq!(exit.stats().turned_away, 4);
        assert!(no_requests(&lab.origin_stats()));
    }
}

#[tokio::test]
async fn a_handshake_can_hang_or_be_cut_while_plain_requests_work() {
    let (_lab, exit) = behaving(ExitConfig::http(), "hang-handshake").await;
    let mut peer = Peer::dial(exit.address()).await;
    assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
    peer.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    assert!(peer.is_silent().await);
    exit.set_behaviour(Behaviour::CloseHandshake).await;
    let mut peer = Peer::dial(exit.address()).await;
    peer.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    peer.closes().await.unwrap();

    let (_lab, exit) = behaving(ExitConfig::socks5(), "hang-handshake").await;
    let mut peer = Peer::dial(exit.address()).await;
    peer.send([5, 1, 0]).await;
    assert!(peer.is_silent().await);
    exit.set_behaviour(Behaviour::CloseHandshake).await;
    let mut peer = Peer::dial(exit.address()).await;
    peer.send([5, 1, 0]).await;
    peer.closes().await.unwrap();
}

#[tokio::test]
async fn pages_go_where_the_behaviour_says() {
    let lab = lab([ExitConfig::http()]).await;
    let exit = &lab.exits()[0];
    for (word, plain, tunnel) in [
        ("good", 200, 200),
        ("502", 502, 502),
        ("407", 407, 407),
        ("page:401", 401, 200),
        ("connect:503", 200, 503),
    ] {
        exit.set_behaviour(word.parse().unwrap()).await;
        let mut peer = Peer::dial(exit.address()).await;
        let answer = peer.forward("http://a.test/ok/1").await;
        assert_eq!(answer.status(), plain, "{word}");
        assert_eq!(answer.field("Proxy-Authenticate").is_some(), plain == 407);
        assert_eq!(connect(exit, "a.test:443").await.0, tunnel, "{word}");
    }
    let page = Page::with(503, "Proxy-Status: lab; error=connection_limit_reached");
    exit.set_behaviour(Behaviour::Connect(page)).await;
    let mut peer = Peer::dial(exit.address()).await;
    peer.send("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    let answer = peer.answer().await;
    assert_eq!(
        answer.field("Proxy-Status"),
        Some("lab; error=connection_limit_reached")
    );
}

#[tokio::test]
async fn pages_become_reply_codes_at_a_socks_exit() {
    let lab = lab([ExitConfig::socks5()]).await;
    let exit = &lab.exits()[0];
    for (word, code) in [
        ("good", 0),
        ("500", 1),
        ("connect:403", 2),
        ("502", 4),
        ("503", 5),
        ("socks:6", 6),
    ] {
        exit.set_behaviour(word.parse().unwrap()).await;
        assert_eq!(socks(exit, "a.test", 80).await.0, code, "{word}");
    }
    exit.set_behaviour("407".parse().unwrap()).await;
    let mut peer = Peer::dial(exit.address()).await;
    peer.send([5, 2, 0, 2, 1, 1, b'u', 1, b'p']).await;
    assert_eq!(peer.rest().await, [5, 2, 1, 1]);
}

#[tokio::test]
async fn a_limit_on_sockets_meets_only_those_above_it() {
    let (lab, exit) = behaving(ExitConfig::http(), "limit:2:429").await;
    let mut served = Vec::new();
    for _ in 0..2 {
        let mut peer = Peer::dial(exit.address()).await;
        assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
        served.push(peer);
    }
    let mut third = Peer::dial(exit.address()).await;
    assert_eq!(third.forward("http://a.test/ok/1").await.status(), 429);
    exit.set_behaviour("limit:2:reset".parse().unwrap()).await;
    drop(third);
    until(&lab, |stats| stats.exits[0].sockets.now == 2).await;
    let mut third = Peer::dial(exit.address()).await;
    assert!(third.closes().await.is_err());
    served.pop();
    until(&lab, |stats| stats.exits[0].sockets.now == 1).await;
    let mut peer = Peer::dial(exit.address()).await;
    assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
    assert_eq!(exit.stats().sockets.peak, 3);
}

#[tokio::test]
async fn the_first_are_turned_away_and_a_flapping_exit_comes_and_goes() {
    let (_lab, exit) = behaving(ExitConfig::http(), "first:2:502").await;
    for status in [502, 502, 200, 200] {
        let mut peer = Peer::dial(exit.address()).await;
        assert_eq!(peer.forward("http://a.test/ok/1").await.status(), status);
    }
    exit.set_behaviour("flap:1:2:502".parse().unwrap()).await;
    for status in [200, 502, 502, 200, 502] {
        let mut peer = Peer::dial(exit.address()).await;
        assert_eq!(peer.forward("http://a.test/ok/1").await.status(), status);
    }
}

#[tokio::test]
async fn an_intercepting_exit_shows_certificates_that_nobody_trusts() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let (lab, exit) = behaving(exit, "intercept").await;
        let tunnel = if exit.line().starts_with("http") {
            connect(&exit, "a.test:443").await.1
        } else {
            socks(&exit, "a.test", 443).await.1
        };
        let error = tunnel.tls("a.test", &lab).await.err().unwrap();
        assert!(error.to_string().contains("certificate"), "{error}");
        assert!(no_requests(&lab.origin_stats()));
    }
}

#[tokio::test]
async fn a_cutting_exit_passes_on_half_of_each_body() {
    let (_lab, exit) = behaving(ExitConfig::http(), "cut").await;
    let mut peer = Peer::dial(exit.address()).await;
    let answer = peer.forward("http://a.test/ok/1000").await;
    assert_eq!((answer.status(), answer.body.len()), (200, 500));
    let (_, mut tunnel) = connect(&exit, "a.test:80").await;
    tunnel.send(get_at("a.test", "/ok/1000")).await;
    assert_eq!(tunnel.answer().await.body.len(), 500);
}

#[tokio::test]
async fn garbage_is_neither_http_nor_socks() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let (_lab, exit) = behaving(exit, "garbage").await;
        let mut peer = Peer::dial(exit.address()).await;
        let socks = exit.line().starts_with("socks5");
        peer.send(if socks {
            String::from("\u{5}\u{1}\u{0}")
        } else {
            get("http://a.test/")
        })
        .await;
        assert!(peer.rest().await.starts_with(b"\x01neither"));
    }
}

#[tokio::test]
async fn a_grudge_against_one_host_leaves_the_others_alone() {
    let (_lab, exit) = behaving(ExitConfig::http(), "at:a.test:403").await;
    assert_eq!(connect(&exit, "a.test:443").await.0, 403);
    assert_eq!(connect(&exit, "b.test:443").await.0, 200);
    let mut peer = Peer::dial(exit.address()).await;
    assert_eq!(peer.forward("http://b.test/ok/1").await.status(), 200);
    assert_eq!(peer.forward("http://a.test:81/ok/1").await.status(), 403);
    let (_lab, exit) = behaving(ExitConfig::socks5(), "at:a.test:403").await;
    assert_eq!(socks(&exit, "a.test", 80).await.0, 2);
    assert_eq!(socks(&exit, "b.test", 80).await.0, 0);
}
