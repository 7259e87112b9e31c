//! Waiting for the head of the answer.

use proptest::prelude::*;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fetch::testing::{
    BRIEF, Peer, Rig, attempt, exit, fault_of, options, read_head, reset, until_closed,
};
use crate::model::{Attempt, FaultKind, Phase, Route, Scheme};

/// A GET through an HTTP exit that answers with `answer` and closes.
async fn answered(answer: impl Into<Vec<u8>>) -> Attempt {
    let peer = Peer::answering(answer).await;
    attempt(Scheme::Http, &peer, options(), "http://o.test/").await
}

#[tokio::test]
async fn a_good_answer_has_its_head_times_and_route() {
    let attempt = answered("HTTP/1.1 404 No\r\nX-A: b\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!((attempt.fault.clone(), attempt.status()), (None, Some(404)));
    assert_eq!(attempt.head.unwrap().headers["x-a"], "b");
    assert_eq!(attempt.route, Route::Forward);
    assert!(attempt.phases.dial.is_some() && attempt.phases.first_byte.is_some());
    assert!(attempt.phases.handshake.is_none() && attempt.phases.tls.is_none());
    assert!(attempt.received_unix > 1_500_000_000);
}

#[tokio::test]
async fn what_is_no_http_answer_has_no_status() {
    let differing = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
    let answers = [
        "hello\r\n",
        "<html>an HTTP/0.9 page</html>",
        "220 mail ready\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        differing,
    ];
    for answer in answers {
        let attempt = answered(answer).await;
        let protocol = (Phase::Head, FaultKind::Protocol);
        assert_eq!(fault_of(&attempt), protocol, "{answer}");
        assert_eq!(attempt.status(), None);
    }
}

#[tokio::test]
async fn a_peer_that_greets_before_it_is_asked_speaks_no_http() {
    let peer = Peer::new(|mut stream, _| async move {
        let _ = stream.write_all(b"220 mail ready\r\n").await;
        until_closed(&mut stream).await;
    })
    .await;
    for _ in 0..20 {
        let attempt = attempt(Scheme::Http, &peer, options(), "http://o.test/").await;
        assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Protocol));
    }
}

#[tokio::test]
async fn an_end_or_a_reset_before_the_head_is_named() {
    assert_eq!(fault_of(&answered("").await), (Phase::Head, FaultKind::Eof));
    let cut = answered("HTTP/1.1 200 OK\r\nX-").await;
    assert_eq!(fault_of(&cut), (Phase::Head, FaultKind::Eof));
    let peer = Peer::new(|mut stream, _| async move {
        read_head(&mut stream).await;
        reset(stream);
    })
    .await;
    let attempt = attempt(Scheme::Http, &peer, options(), "http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Reset));
}

#[tokio::test]
async fn heads_of_sixty_kilobytes_are_read_in_one_line_or_in_many() {
    let long = format!("X-A: {}\r\n", "a".repeat(60_000));
    let many: String = (0..900)
        .map(|n| format!("X-{n}: {}\r\n", "a".repeat(60)))
        .collect();
    for lines in [long, many] {
        assert!(lines.len() > 59_000);
        let attempt = answered(format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).await;
        assert_eq!((attempt.fault.clone(), attempt.status()), (None, Some(200)));
    }
}

#[tokio::test]
async fn larger_heads_are_refused() {
    let too_large = (Phase::Head, FaultKind::HeadTooLarge);
    let endless = |mut stream: TcpStream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(&[b'a'; 4096]).await.is_ok() {}
    };
    let peer = Peer::new(endless).await;
    let attempt = attempt(Scheme::Http, &peer, options(), "http://o.test/").await;
    assert_eq!(fault_of(&attempt), too_large);
    let lines = "X: y\r\n".repeat(1100);
    let attempt = answered(format!("HTTP/1.1 200 OK\r\n{lines}\r\n")).await;
    assert_eq!(fault_of(&attempt), too_large);
}

#[tokio::test]
async fn the_whole_head_is_bounded_not_only_its_first_byte() {
    let trickle = |mut stream: TcpStream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(b"a").await.is_ok() {
            tokio::time::sleep(BRIEF / 20).await;
        }
    };
    for peer in [Peer::silent().await, Peer::new(trickle).await] {
        let mut options = options();
        options.limits.first_byte = BRIEF;
        let attempt = attempt(Scheme::Http, &peer, options, "http://o.test/").await;
        assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Timeout));
    }
}

#[tokio::test]
async fn a_flood_of_informational_answers_does_not_outlast_the_limit() {
    let peer = Peer::new(|mut stream, _| async move {
        read_head(&mut stream).await;
        let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(100);
        while stream.write_all(many.as_bytes()).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut options = options();
    options.limits.first_byte = BRIEF;
    let attempt = attempt(Scheme::Http, &peer, options, "http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Timeout));
}

#[tokio::test]
async fn informational_answers_are_skipped_but_101_is_none_we_asked_for() {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let attempt = answered(format!("{hint}HTTP/1.1 204 No Content\r\n\r\n")).await;
    assert_eq!((attempt.fault.clone(), attempt.status()), (None, Some(204)));
    let attempt = answered("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    let attempt = attempt.await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::Protocol));
    assert!(!attempt.kept);
}

#[tokio::test]
async fn a_transfer_coding_nobody_asked_for_is_a_fault_not_a_body() {
    for coding in ["gzip, chunked", "xchunked", "deflate"] {
        let answer =
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n1\r\na\r\n0\r\n\r\n");
        let attempt = answered(answer).await;
        let protocol = (Phase::Head, FaultKind::Protocol);
        assert_eq!(fault_of(&attempt), protocol, "{coding}");
        assert!(!attempt.kept);
    }
}

#[tokio::test]
async fn sloppy_heads_of_real_sites_are_read() {
    let attempt = answered("HTTP/1.1 200\r\nX-A : b\r\nX-B: c\r\n  d\r\nnonsense\r\n\r\n").await;
    assert_eq!(attempt.fault, None);
    let headers = attempt.head.unwrap().headers;
    assert_eq!(
        (&headers["x-a"], &headers["x-b"]),
        (&"b".parse().unwrap(), &"c d".parse().unwrap())
    );
}

/// Bytes that mean something in a head or in chunks more often than not.
fn telling_byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        proptest::sample::select(b"\r\n\r\n : \t,;aC-019".to_vec()),
        any::<u8>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_answer_whatever_makes_a_panic(
        start in "(HTTP/1\\.[01] [0-9]{3} )?(\r\n(content-length|transfer-encoding|connection): ?)?",
        rest in proptest::collection::vec(telling_byte(), 0..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let peer = Peer::answering([start.as_bytes(), &rest].concat()).await;
            let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
            let (attempt, _) = rig.get("http://o.test/").await;
            prop_assert!(attempt.fault.is_some() || attempt.head.is_some());
            prop_assert_eq!(rig.conns.open(0), u32::from(attempt.kept));
            Ok(())
        })?;
    }
}
