//! Each route of the origin, through a plain exit.

use std::io::ErrorKind;

use super::super::content;
use super::*;

async fn one() -> (Lab, Peer) {
    let lab = lab([ExitConfig::http()]).await;
    let peer = Peer::dial(lab.exits()[0].address()).await;
    (lab, peer)
}

#[tokio::test]
async fn good_routes_answer_whole_and_leave_the_connection_open() {
    let (lab, mut peer) = one().await;
    for (path, status, size) in [
        ("/ok/0", 200, 0),
        ("/bytes/70000/more/segments", 200, 70_000),
        ("/delay/5", 200, 64),
        ("/delay/0?size=9", 200, 9),
        ("/status/404", 404, 14),
        ("/status/204", 204, 0),
        ("/no-content", 204, 0),
        ("/not-modified", 304, 0),
        ("/drip?bytes=20&ms=40", 200, 20),
        ("/drip-head?ms=40", 200, 20),
        ("/chunked/100000", 200, 100_000),
        ("/chunked/30?ms=30", 200, 30),
        ("/head/20000", 200, 20),
        ("/nothing/like/this", 404, 42),
        ("/bytes/x", 404, 42),
        ("/busy/5?ms=1", 200, 64),
        ("/ok/3?wait=5", 200, 3),
    ] {
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        assert_eq!(
            (answer.status(), answer.body.len()),
            (status, size),
            "{path}"
        );
    }
    assert_eq!(lab.exits()[0].stats().connections, 1);
    assert_eq!(lab.origin_stats().unfinished, 0);
    assert_eq!(lab.origin_stats().host("a.test").statuses[&204], 2);
}

#[tokio::test]
async fn bodies_follow_from_host_and_target_however_they_are_framed() {
    let (_lab, mut peer) = one().await;
    for path in [
        "/bytes/5000",
        "/chunked/5000",
        "/drip?bytes=5000&ms=20",
        "/last/5000",
    ] {
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        assert_eq!(answer.body, content("a.test", path, 5000), "{path}");
    }
}

#[tokio::test]
async fn head_requests_get_heads_alone() {
    let (_lab, mut peer) = one().await;
    for path in ["/ok/100", "/chunked/100", "/status/404"] {
        peer.send(format!(
            "HEAD http://a.test{path} HTTP/1.1\r\nHost: a.test\r\n\r\n"
        ))
        .await;
        peer.head().await;
    }
    assert_eq!(peer.forward("http://a.test/ok/1").await.status(), 200);
}

#[tokio::test]
async fn a_head_has_exactly_the_size_asked_for() {
    let (_lab, mut peer) = one().await;
    for size in [300, 20_000, 61_440, 300_000] {
        let answer = peer.forward(&format!("http://a.test/head/{size}")).await;
        assert_eq!(answer.head.len(), size);
    }
}

#[tokio::test]
async fn http10_bodies_are_ended_by_the_close() {
    let (_lab, mut peer) = one().await;
    let answer = peer.forward("http://a.test/http10/1000").await;
    assert!(answer.head.starts_with("HTTP/1.0 200"));
    assert_eq!(
        (answer.field("Content-Length"), answer.body.len()),
        (None, 1000)
    );
}

#[tokio::test]
async fn cut_bodies_are_cut_where_they_say() {
    for (path, announced, sent) in [
        ("/truncated/100000", Some("100000"), 99_999),
        ("/truncated/10?sent=0", Some("10"), 0),
    ] {
        let (lab, mut peer) = one().await;
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        assert_eq!(answer.field("Content-Length"), announced);
        assert_eq!(answer.body.len(), sent, "{path}");
        until(&lab, |stats| stats.origin.unfinished == 1).await;
    }
    let (_lab, mut peer) = one().await;
    peer.send(get("http://a.test/chunked-cut/10")).await;
    let rest = peer.rest().await;
    assert!(rest.ends_with(b"\r\n") && !rest.ends_with(b"0\r\n\r\n"));
}

#[tokio::test]
async fn silence_holds_the_request_until_the_client_goes() {
    for (path, bytes) in [("/silent", 0), ("/half/1000", 500)] {
        let (lab, mut peer) = one().await;
        peer.send(get(&format!("http://a.test{path}"))).await;
        if bytes > 0 {
            assert!(peer.head().await.contains("Content-Length: 1000"));
            peer.take(bytes).await;
        }
        assert!(peer.is_silent().await);
        let stats = lab.stats();
        assert_eq!(
            (stats.exits[0].in_flight.now, stats.origin.in_flight.now),
            (1, 1)
        );
        drop(peer);
        until(&lab, |stats| stats.exits[0].sockets.now == 0).await;
        until(&lab, |stats| stats.exits[0].unfinished == 1).await;
        assert_eq!(lab.exits()[0].stats().in_flight.now, 0);
    }
}

#[tokio::test]
async fn closes_and_resets_instead_of_answers() {
    let (lab, mut peer) = one().await;
    peer.send(get("http://a.test/close")).await;
    peer.closes().await.unwrap();
    let mut peer = Peer::dial(lab.exits()[0].address()).await;
    peer.send(get("http://a.test/reset")).await;
    assert_eq!(
        peer.closes().await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    let mut peer = Peer::dial(lab.exits()[0].address()).await;
    peer.send(get("http://a.test/reset-body/1000")).await;
    assert!(peer.head().await.contains("Content-Length: 1000"));
    assert!(peer.rest().await.len() <= 500);
}

#[tokio::test]
async fn what_is_not_http_goes_out_as_it_is() {
    for (path, part) in [
        ("/no-http", "hello, this is text"),
        ("/two-lengths", "Content-Length: 10\r\nContent-Length: 12"),
        ("/chunked-bad", "\r\nfive\r\n"),
    ] {
        let (_lab, mut peer) = one().await;
        peer.send(get(&format!("http://a.test{path}"))).await;
        let rest = peer.rest().await;
        assert!(String::from_utf8_lossy(&rest).contains(part), "{path}");
    }
    let (_lab, mut peer) = one().await;
    peer.send(get("http://a.test/switching")).await;
    assert!(peer.head().await.starts_with("HTTP/1.1 101"));
}

#[tokio::test]
async fn early_hints_and_late_garbage_surround_whole_answers() {
    let (_lab, mut peer) = one().await;
    assert_eq!(peer.forward("http://a.test/early").await.status(), 103);
    let late = peer.answer().await;
    assert_eq!((late.status(), late.body), (200, b"late.\n".to_vec()));
    assert_eq!(
        peer.forward("http://a.test/garbage-after").await.body.len(),
        20
    );
    assert_eq!(peer.take(31).await, b"and this belongs to no answer\r\n");
}

#[tokio::test]
async fn a_stale_connection_dies_at_the_next_request() {
    let (_lab, mut peer) = one().await;
    let answer = peer.forward("http://a.test/stale/10").await;
    assert_eq!((answer.body.len(), answer.field("Connection")), (10, None));
    assert!(peer.is_silent().await);
    peer.send(get("http://a.test/ok/1")).await;
    assert!(peer.closes().await.is_err());
}

#[tokio::test]
async fn an_endless_body_goes_on_until_the_client_leaves() {
    let (lab, mut peer) = one().await;
    peer.send(get("http://a.test/endless")).await;
    peer.take(1 << 20).await;
    assert_eq!(lab.exits()[0].stats().in_flight.now, 1);
    drop(peer);
    until(&lab, |stats| stats.exits[0].sockets.now == 0).await;
}

#[tokio::test]
async fn coded_bodies_say_so_and_a_bomb_is_small() {
    let (_lab, mut peer) = one().await;
    for (path, coding) in [
        ("/gzip/5000", "gzip"),
        ("/br/5000", "br"),
        ("/zstd/5000", "zstd"),
    ] {
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        assert_eq!(answer.field("Content-Encoding"), Some(coding));
    }
    let answer = peer.forward("http://a.test/gzip-bomb/5000000").await;
    assert!(answer.body.starts_with(&[0x1f, 0x8b]) && answer.body.len() < 20_000);
    let answer = peer.forward("http://a.test/archive/100").await;
    assert_eq!(answer.field("Content-Type"), Some("application/gzip"));
    let answer = peer.forward("http://a.test/gzip-lie").await;
    assert!(answer.field("Content-Encoding") == Some("gzip") && answer.body.starts_with(b"this"));
}

#[tokio::test]
async fn redirects_lead_where_they_say() {
    let (_lab, mut peer) = one().await;
    for (path, status, location) in [
        ("/redirect/3", 302, Some("/redirect/2")),
        (
            "/redirect/1?status=308",
            308,
            Some("/redirect/0?status=308"),
        ),
        ("/redirect/0", 200, None),
        (
            "/redirect-to?url=http%3A%2F%2Fb.test%2Fx%3Fy&status=301",
            301,
            Some("http://b.test/x?y"),
        ),
        ("/redirect-to?url=", 302, Some("")),
        ("/redirect-to", 302, None),
        ("/redirect-loop", 302, Some("/redirect-loop")),
        ("/redirect-loop/a", 302, Some("/redirect-loop/b")),
        ("/redirect-on/7", 302, Some("/redirect-on/8")),
    ] {
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        assert_eq!(
            (answer.status(), answer.field("Location")),
            (status, location),
            "{path}"
        );
    }
}

#[tokio::test]
async fn retry_after_comes_once_per_url_or_host_and_dates_lie_ahead() {
    let (_lab, mut peer) = one().await;
    for (path, status, value) in [
        ("/retry-after/1m0s", 429, Some("1m0s")),
        ("/retry-after/1m0s", 200, None),
        ("/retry-after/-5?status=503", 503, Some("-5")),
        ("/retry-after/?times=2", 429, Some("")),
        ("/retry-after/?times=2", 429, Some("")),
        ("/retry-after/?times=2", 200, None),
        ("/retry-after/1?per=host&x", 429, Some("1")),
        ("/retry-after/1?per=host&y", 200, None),
        (
            "/retry-after/Sun,%2006%20Nov%201994%2008:49:37%20GMT",
            429,
            Some("Sun, 06 Nov 1994 08:49:37 GMT"),
        ),
    ] {
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        assert_eq!(
            (answer.status(), answer.field("Retry-After")),
            (status, value),
            "{path}"
        );
    }
    for path in ["/retry-after/in:4", "/retry-after/in:4?skew=-86400"] {
        let answer = peer.forward(&format!("http://a.test{path}")).await;
        let date = |name| httpdate::parse_http_date(answer.field(name).unwrap()).unwrap();
        let ahead = date("Retry-After").duration_since(date("Date")).unwrap();
        assert_eq!(ahead.as_secs(), 4);
    }
}

#[tokio::test]
async fn limits_and_moods_belong_to_a_host_or_a_url() {
    let (lab, mut peer) = one().await;
    for (url, status) in [
        ("a.test/rate-limited/2", 200),
        ("a.test/rate-limited/2/other", 200),
        ("a.test/rate-limited/2", 429),
        ("b.test/rate-limited/2", 200),
        ("a.test/flaky/1", 503),
        ("a.test/flaky/1", 200),
        ("b.test/flaky/1?how=500", 500),
        ("a.test/busy/0", 503),
        ("a.test/banned/lab-1?status=429", 429),
        ("a.test/banned/lab-2", 200),
    ] {
        let answer = peer.forward(&format!("http://{url}")).await;
        assert_eq!(answer.status(), status, "{url}");
    }
    let answer = peer
        .forward("http://a.test/rate-limited/0?retry-after=7")
        .await;
    assert_eq!(answer.field("Retry-After"), Some("7"));
    assert_eq!(lab.origin_stats().host("a.test").statuses[&429], 3);
    for (how, kind) in [("reset", Some(ErrorKind::ConnectionReset)), ("close", None)] {
        let mut peer = Peer::dial(lab.exits()[0].address()).await;
        peer.send(get(&format!("http://c.test/flaky/1?how={how}")))
            .await;
        assert_eq!(peer.closes().await.err().map(|error| error.kind()), kind);
    }
}

#[tokio::test]
async fn any_route_can_have_another_type_and_more_fields() {
    let (_lab, mut peer) = one().await;
    let url = "http://a.test/status/502?type=text/html&field=Proxy-Status:%20x&field=A:%20b";
    let answer = peer.forward(url).await;
    assert_eq!(answer.field("Content-Type"), Some("text/html"));
    assert_eq!(answer.field("Proxy-Status"), Some("x"));
    assert_eq!(answer.field("A"), Some("b"));
    let answer = peer
        .forward("http://a.test/ok/1?field=A:%0D%0AB:%20c")
        .await;
    assert_eq!((answer.field("A"), answer.field("B")), (None, None));
}

#[tokio::test]
async fn the_index_names_the_routes() {
    let (_lab, mut peer) = one().await;
    let body = peer.forward("http://a.test").await.body;
    let text = String::from_utf8(body).unwrap();
    for route in ["/bytes/N", "/retry-after/V", "/gzip-bomb/N", "/stale/N"] {
        assert!(text.contains(route), "{route}");
    }
}
