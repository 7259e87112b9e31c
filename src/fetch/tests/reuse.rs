//! Keeping connections, giving them up, and the count of sockets.

use std::time::Duration;

use http::Method;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fetch::testing::{
    BRIEF, Peer, Rig, exit, fault_of, get, options, read_head, serve, until_closed,
};
use crate::fetch::{ConnRule, Tunnel};
use crate::model::{FaultKind, Phase, PhaseTimes, Scheme};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An HTTP exit that opens every tunnel and serves in it.
async fn tunnels() -> Peer {
    Peer::new(|mut stream, _| async move {
        if read_head(&mut stream).await.starts_with("CONNECT ") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        }
        serve(stream, OK).await;
    })
    .await
}

fn rule(ceiling: u32) -> ConnRule {
    ConnRule {
        ceiling,
        keep_alive: true,
    }
}

#[tokio::test]
async fn a_forward_connection_serves_any_origin() {
    let peer = Peer::serving(OK).await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    for (n, host) in ["a.test", "b.test", "c.test:8080"].into_iter().enumerate() {
        let (attempt, body) = rig.get(&format!("http://{host}/")).await;
        assert_eq!((attempt.fault.clone(), body.as_slice()), (None, &b"ok"[..]));
        assert_eq!((attempt.reused, attempt.kept), (n > 0, true));
        assert_eq!(attempt.phases.dial.is_some(), n == 0);
    }
    assert_eq!((peer.accepted(), rig.conns.open(0)), (1, 1));
}

#[tokio::test]
async fn a_tunnel_serves_its_origin_only_and_the_cap_holds_on_the_exits_side() {
    let peer = tunnels().await;
    let mut options = options();
    options.tunnel_http = Tunnel::Always;
    let mut rig = Rig::with_rule(exit(Scheme::Http, peer.address), options, rule(2));
    for host in ["a", "b", "a", "c", "a", "b", "d:81", "d:82", "d:81"] {
        let (attempt, _) = rig.get(&format!("http://{host}/")).await;
        assert_eq!(attempt.fault, None);
        assert!(rig.conns.open(0) <= 2);
    }
    assert_eq!((peer.peak(), rig.conns.peak(0)), (2, 2));
    assert_eq!(
        peer.accepted(),
        6,
        "a twice and d:81 once came back to an open one"
    );
}

#[tokio::test]
async fn at_a_ceiling_of_one_the_exit_never_sees_two() {
    let peer = tunnels().await;
    let mut options = options();
    options.tunnel_http = Tunnel::Always;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options);
    for n in 0..50 {
        let (attempt, _) = rig.get(&format!("http://host{n}/")).await;
        assert_eq!(attempt.fault, None);
    }
    assert_eq!((peer.peak(), peer.accepted()), (1, 50));
}

#[tokio::test]
async fn without_keep_alive_every_request_has_a_socket_of_its_own() {
    let peer = Peer::new(|mut stream, _| async move {
        let asked = read_head(&mut stream).await;
        assert!(asked.contains("\r\nconnection: close\r\n"));
        let _ = stream.write_all(OK.as_bytes()).await;
        until_closed(&mut stream).await;
    })
    .await;
    let rule = ConnRule {
        ceiling: 1,
        keep_alive: false,
    };
    let mut rig = Rig::with_rule(exit(Scheme::Http, peer.address), options(), rule);
    for _ in 0..5 {
        let (attempt, _) = rig.get("http://o.test/").await;
        assert_eq!((attempt.fault, attempt.kept), (None, false));
        assert_eq!(rig.conns.open(0), 0);
    }
    assert_eq!((peer.accepted(), peer.peak()), (5, 1));
}

/// Serves one request per connection, then closes without a word.
async fn one_each() -> Peer {
    Peer::new(|mut stream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(OK.as_bytes()).await;
    })
    .await
}

#[tokio::test]
async fn an_idle_connection_that_the_exit_has_closed_is_not_taken() {
    let peer = one_each().await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    rig.get("http://o.test/").await;
    tokio::time::sleep(BRIEF).await;
    let mut post = get("http://o.test/");
    post.method = Method::POST;
    let (attempt, body) = rig.fetch(post).await;
    assert_eq!((attempt.fault, body.as_slice()), (None, &b"ok"[..]));
    assert!(!attempt.reused);
}

/// Serves one request and takes a second one without answering it.
async fn dies_on_the_second() -> Peer {
    Peer::new(|mut stream, n| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(OK.as_bytes()).await;
        if n == 0 {
            read_head(&mut stream).await;
        } else {
            until_closed(&mut stream).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_reused_connection_that_dies_unanswered_is_replaced_at_nobodys_cost() {
    let peer = dies_on_the_second().await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    rig.get("http://o.test/").await;
    let (attempt, body) = rig.get("http://o.test/").await;
    assert_eq!((attempt.fault, body.as_slice()), (None, &b"ok"[..]));
    assert!(!attempt.reused && attempt.phases.dial.is_some());
    assert_eq!((peer.accepted(), peer.peak(), rig.conns.peak(0)), (2, 1, 1));
}

#[tokio::test]
async fn a_request_that_may_have_had_an_effect_is_not_sent_again() {
    let peer = dies_on_the_second().await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    rig.get("http://o.test/").await;
    let mut post = get("http://o.test/");
    post.method = Method::POST;
    let (attempt, _) = rig.fetch(post).await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Eof));
    assert!(attempt.reused && peer.accepted() == 1);
}

#[tokio::test]
async fn a_reused_connection_that_begins_to_answer_is_not_replaced() {
    let peer = Peer::new(|mut stream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(OK.as_bytes()).await;
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 2").await;
    })
    .await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    rig.get("http://o.test/").await;
    let (attempt, _) = rig.get("http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Eof));
    assert!(attempt.reused && peer.accepted() == 1);
}

#[tokio::test]
async fn bytes_after_a_complete_answer_close_the_socket() {
    let peer = Peer::serving("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200").await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    for _ in 0..2 {
        let (attempt, body) = rig.get("http://o.test/").await;
        assert_eq!((attempt.fault, body.as_slice()), (None, &b"ok"[..]));
        assert_eq!((attempt.kept, rig.conns.open(0)), (false, 0));
    }
    assert_eq!(peer.peak(), 1);
}

#[tokio::test]
async fn a_socket_given_up_mid_way_is_gone_for_the_exit_when_the_attempt_is_over() {
    let peer = Peer::new(|mut stream: TcpStream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbody").await;
        until_closed(&mut stream).await;
    })
    .await;
    let mut options = options();
    options.limits.stall = BRIEF / 6;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options);
    for _ in 0..10 {
        let (attempt, _) = rig.get("http://o.test/").await;
        assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::Timeout));
        assert_eq!(rig.conns.open(0), 0);
    }
    assert_eq!((peer.accepted(), peer.peak()), (10, 1));
}

#[tokio::test]
async fn an_attempt_that_is_dropped_closes_its_socket_at_once() {
    let peer = Peer::silent().await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    let request = get("http://o.test/");
    let seat = rig.seat(&request.target);
    let started = rig.fetcher.start(0, seat, &request);
    assert!(tokio::time::timeout(BRIEF, started).await.is_err());
    assert_eq!((rig.conns.open(0), rig.conns.peak(0)), (0, 1));
}

#[tokio::test]
async fn idle_connections_go_after_their_time_in_two_steps() {
    let peer = Peer::serving(OK).await;
    let mut rig = Rig::with_rule(exit(Scheme::Http, peer.address), options(), rule(2));
    rig.get("http://o.test/").await;
    assert_eq!(rig.conns.open(0), 1);
    let due = rig.conns.next_expiry().unwrap();
    rig.conns.expire(due.back(Duration::from_millis(1)));
    assert_eq!(rig.conns.next_expiry(), Some(due), "not yet");
    rig.conns.expire(due);
    assert_eq!(
        rig.conns.open(0),
        1,
        "counted until the exit has seen it go"
    );
    let gone = rig.conns.next_expiry().unwrap();
    assert!(gone > due);
    let url = get("http://o.test/").target;
    let seat = rig.conns.take(0, &url, due);
    assert!(seat.reuse.is_none(), "its last word is said");
    rig.conns.give_back(0, None, due);
    rig.conns.expire(gone);
    assert_eq!((rig.conns.open(0), rig.conns.next_expiry()), (0, None));
}

#[tokio::test]
async fn close_all_leaves_no_socket() {
    let peer = Peer::serving(OK).await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    rig.get("http://o.test/").await;
    rig.conns.close_all();
    assert_eq!(rig.conns.open(0), 0);
    rig.conns.expire(rig.clock.now() + Duration::from_secs(60));
    assert_eq!(rig.conns.next_expiry(), None);
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_hands_its_connection_back() {
    let peer = Peer::serving(OK).await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    rig.get("http://o.test/").await;
    let mut bad = get("http://o.test/");
    bad.method = Method::CONNECT;
    let (attempt, _) = rig.fetch(bad).await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::BadRequest));
    assert_eq!(attempt.phases, PhaseTimes::default());
    let (attempt, _) = rig.get("http://o.test/").await;
    assert!(attempt.reused && peer.accepted() == 1);
}

/// A tunnel that behaves as the path of each request says.
async fn behave(mut stream: TcpStream) {
    let opened = read_head(&mut stream).await;
    if opened.contains("refused") {
        let _ = stream.write_all(b"HTTP/1.1 502 No\r\n\r\n").await;
        return;
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
    loop {
        let asked = read_head(&mut stream).await;
        let answer = match asked.split(' ').nth(1) {
            Some("/kept") => OK,
            Some("/closed") => "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
            Some("/cut") => "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
            Some("/nonsense") => "nonsense\r\n",
            Some("/silent") => "",
            _ => return,
        };
        let _ = stream.write_all(answer.as_bytes()).await;
        match answer {
            OK => {}
            "" => return until_closed(&mut stream).await,
            _ => return,
        }
    }
}

#[tokio::test]
async fn whatever_happens_at_once_the_exit_never_sees_more_sockets_than_the_ceiling() {
    const CEILING: u32 = 3;
    let peer = Peer::new(|stream, _| behave(stream)).await;
    let mut options = options();
    options.tunnel_http = Tunnel::Always;
    options.limits.first_byte = BRIEF;
    let mut rig = Rig::with_rule(exit(Scheme::Http, peer.address), options, rule(CEILING));
    let paths = [
        "kept", "kept", "kept", "closed", "cut", "nonsense", "silent",
    ];
    let hosts = ["a.test", "b.test", "c.test", "d.test", "refused.test"];
    let mut running = tokio::task::JoinSet::new();
    for n in 0..200_usize {
        if running.len() == CEILING as usize {
            let conn = running.join_next().await.unwrap().unwrap();
            rig.conns.give_back(0, conn, rig.clock.now());
        }
        // Multiplied by primes: a mix without order, the same in every run.
        let (host, path) = (hosts[n * 7919 % 5], paths[n * 104_729 % 1009 % 7]);
        let request = get(&format!("http://{host}/{path}"));
        let seat = rig.seat(&request.target);
        let fetcher = rig.fetcher.clone();
        running.spawn(async move {
            let mut exchange = fetcher.start(0, seat, &request).await;
            while exchange.chunk().await.is_some() {}
            exchange.finish().await.1
        });
    }
    while let Some(conn) = running.join_next().await {
        rig.conns.give_back(0, conn.unwrap(), rig.clock.now());
    }
    assert_eq!(
        (rig.conns.peak(0), peer.peak()),
        (CEILING, CEILING as usize)
    );
    rig.conns.close_all();
    assert_eq!(rig.conns.open(0), 0);
}
