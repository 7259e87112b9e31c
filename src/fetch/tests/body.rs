//! Reading the body: its end, its limits, its coding.

use std::sync::Arc;

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::fetch::testing::{
    BRIEF, Peer, Rig, attempt, exit, fault_of, get, options, read_head, reset, until_closed,
};
use crate::fetch::{Coding, Options};
use crate::model::{Attempt, FaultKind, Phase, Scheme};

/// A GET through an HTTP exit that answers with `answer` and closes.
async fn answered(answer: impl Into<Vec<u8>>, options: Options) -> (Attempt, Vec<u8>) {
    let peer = Peer::answering(answer).await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options);
    rig.get("http://o.test/").await
}

/// Answers with a head and then `piece` again and again, `pause`ing.
async fn endless(piece: &'static [u8], pause: std::time::Duration) -> Peer {
    Peer::new(move |mut stream: TcpStream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
        while stream.write_all(piece).await.is_ok() {
            tokio::time::sleep(pause).await;
        }
    })
    .await
}

#[tokio::test]
async fn announced_ends_are_verified_and_the_close_alone_is_not() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n4\r\nbody\r\n0\r\nX: y\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nbody", false),
        ("HTTP/1.0 200 OK\r\n\r\nbody", false),
    ];
    for (answer, verified) in cases {
        let (attempt, body) = answered(answer, options()).await;
        assert_eq!(attempt.fault, None, "{answer}");
        assert_eq!((body.as_slice(), attempt.wire_bytes), (&b"body"[..], 4));
        assert_eq!(attempt.length_verified, verified, "{answer}");
        assert!(attempt.phases.body.is_some());
    }
}

#[tokio::test]
async fn answers_without_a_body_end_at_the_head() {
    for answer in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let peer = Peer::serving(answer).await;
        let attempt = attempt(Scheme::Http, &peer, options(), "http://o.test/").await;
        assert!(attempt.fault.is_none() && attempt.length_verified && attempt.kept);
    }
    let peer = Peer::serving("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
    let mut request = get("http://o.test/");
    request.method = http::Method::HEAD;
    let (attempt, body) = rig.fetch(request).await;
    assert!(attempt.fault.is_none() && attempt.kept && body.is_empty());
}

#[tokio::test]
async fn a_body_shorter_than_announced_says_both_numbers() {
    let (attempt, body) = answered(
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbody",
        options(),
    )
    .await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::Truncated));
    assert_eq!(attempt.fault.unwrap().detail, "got 4 of 10 bytes");
    assert_eq!(
        (body.as_slice(), attempt.length_verified),
        (&b"body"[..], false)
    );
    assert_eq!(attempt.head.unwrap().status, 200);
}

#[tokio::test]
async fn chunks_without_their_end_are_truncated_and_bad_ones_are_no_http() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for cut in ["4\r\nbody\r\n", "4\r\nbo", "4\r\nbody\r\n0\r\n"] {
        let (attempt, _) = answered(format!("{head}{cut}"), options()).await;
        assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::Truncated));
    }
    let (attempt, _) = answered(format!("{head}xyz\r\n"), options()).await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::Protocol));
}

#[tokio::test]
async fn a_reset_inside_a_body_is_a_reset() {
    let peer = Peer::new(|mut stream, _| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbody").await;
        tokio::time::sleep(BRIEF).await;
        reset(stream);
    })
    .await;
    let attempt = attempt(Scheme::Http, &peer, options(), "http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::Reset));
}

#[tokio::test]
async fn a_gap_is_a_stall_and_a_trickle_ends_with_the_attempt() {
    let half = Peer::new(|mut stream, _| async move {
        read_head(&mut stream).await;
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody";
        let _ = stream.write_all(head).await;
        until_closed(&mut stream).await;
    })
    .await;
    let mut limited = options();
    limited.limits.stall = BRIEF;
    let stalled = attempt(Scheme::Http, &half, limited, "http://o.test/").await;
    assert_eq!(fault_of(&stalled), (Phase::Body, FaultKind::Timeout));
    assert_eq!(stalled.wire_bytes, 4);

    for pause in [BRIEF / 20, std::time::Duration::ZERO] {
        let drip = endless(b"a", pause).await;
        let mut limited = options();
        limited.limits.total = BRIEF * 2;
        let cut = attempt(Scheme::Http, &drip, limited, "http://o.test/").await;
        assert_eq!(fault_of(&cut), (Phase::Body, FaultKind::Deadline));
    }
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_when_announced_and_when_it_grows() {
    let limited = || {
        let mut options = options();
        options.limits.max_body = Some(5);
        options
    };
    let announced = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n";
    let (attempt, body) = answered(announced, limited()).await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::TooLarge));
    assert!(body.is_empty() && attempt.wire_bytes == 0);

    let peer = endless(&[b'a'; 1000], std::time::Duration::ZERO).await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), limited());
    let (attempt, _) = rig.get("http://o.test/").await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::TooLarge));
    assert_eq!(rig.conns.open(0), 0);

    let (attempt, body) = answered("HTTP/1.1 200 OK\r\n\r\n12345", limited()).await;
    assert_eq!((attempt.fault, body.len()), (None, 5));
}

#[tokio::test]
async fn a_body_nobody_wants_keeps_its_connection_if_it_is_short() {
    let short = "HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nbody";
    let long = "HTTP/1.1 404 No\r\nContent-Length: 999999\r\n\r\nbody";
    let broken = "HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n";
    for (answer, kept) in [(short, true), (long, false), (broken, false)] {
        let peer = Peer::serving(answer).await;
        let mut rig = Rig::new(exit(Scheme::Http, peer.address), options());
        let request = get("http://o.test/");
        let seat = rig.seat(&request.target);
        let mut exchange = rig.fetcher.start(0, seat, &request).await;
        assert_eq!(exchange.head().unwrap().status, 404);
        exchange.discard().await;
        let (attempt, conn) = exchange.finish().await;
        assert_eq!((attempt.fault.clone(), attempt.kept), (None, kept));
        assert_eq!(conn.is_some(), kept);
    }
}

/// `body` as an answer with this coding, length announced.
fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

async fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(plain).await.unwrap();
    encoder.shutdown().await.unwrap();
    encoder.into_inner()
}

fn compressed() -> Options {
    Options {
        coding: Coding::Compressed,
        ..options()
    }
}

#[tokio::test]
async fn each_coding_that_is_asked_for_is_decoded_and_both_sizes_are_known() {
    let plain = "all work and no play ".repeat(9000);
    let mut brotli = BrotliEncoder::new(Vec::new());
    brotli.write_all(plain.as_bytes()).await.unwrap();
    brotli.shutdown().await.unwrap();
    let mut zstd = ZstdEncoder::new(Vec::new());
    zstd.write_all(plain.as_bytes()).await.unwrap();
    zstd.shutdown().await.unwrap();
    let members = [gzip(b"all ").await, gzip(&plain.as_bytes()[4..]).await].concat();
    let cases = [
        ("gzip", gzip(plain.as_bytes()).await),
        ("X-GZIP", members),
        ("br", brotli.into_inner()),
        ("identity, zstd", zstd.into_inner()),
    ];
    for (coding, wire) in cases {
        let (attempt, body) = answered(coded(coding, &wire), compressed()).await;
        assert_eq!(attempt.fault, None, "{coding}");
        assert!(body == plain.as_bytes(), "{coding}");
        assert_eq!(attempt.wire_bytes, wire.len() as u64);
        assert!(attempt.length_verified);
    }
}

#[tokio::test]
async fn without_compressed_what_came_is_what_one_gets() {
    let wire = gzip(b"plain").await;
    let (attempt, body) = answered(coded("gzip", &wire), options()).await;
    assert_eq!((attempt.fault, body), (None, wire));
}

#[tokio::test]
async fn what_does_not_decode_has_its_own_kind() {
    let decode = (Phase::Body, FaultKind::Decode);
    let whole = gzip(b"plain text of some length").await;
    let cut = &whole[..whole.len() - 3];
    for (coding, wire) in [
        ("gzip", &b"plain text"[..]),
        ("br", b"\xff\xff\xff\xff\xff"),
        ("zstd", b"plain text"),
        ("gzip", cut),
        ("deflate", b"x"),
        ("gzip, br", b"x"),
    ] {
        let (attempt, _) = answered(coded(coding, wire), compressed()).await;
        assert_eq!(fault_of(&attempt), decode, "{coding}");
    }
    let (attempt, body) = answered(coded("gzip", b""), compressed()).await;
    assert_eq!((attempt.fault, body.len()), (None, 0), "empty is empty");
}

#[tokio::test]
async fn a_truncated_message_is_that_before_it_is_a_decoding_fault() {
    let mut wire = coded("gzip", &gzip(&[7; 5000]).await);
    wire.truncate(wire.len() - 5);
    let (attempt, _) = answered(wire, compressed()).await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::Truncated));
}

#[tokio::test]
async fn a_bomb_is_stopped_by_its_decoded_size_one_small_piece_at_a_time() {
    let bomb = Arc::new(coded("gzip", &gzip(&vec![0; 50_000_000]).await));
    assert!(bomb.len() < 100_000);
    let mut options = compressed();
    options.limits.max_body = Some(1_000_000);
    let peer = Peer::answering(bomb.to_vec()).await;
    let mut rig = Rig::new(exit(Scheme::Http, peer.address), options);
    let request = get("http://o.test/");
    let seat = rig.seat(&request.target);
    let mut exchange = rig.fetcher.start(0, seat, &request).await;
    let mut got = 0;
    while let Some(piece) = exchange.chunk().await {
        assert!(piece.len() <= 64 * 1024);
        got += piece.len();
    }
    assert!(got <= 1_000_000);
    let (attempt, _) = exchange.finish().await;
    assert_eq!(fault_of(&attempt), (Phase::Body, FaultKind::TooLarge));
}
