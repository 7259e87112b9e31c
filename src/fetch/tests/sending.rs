//! What goes out: target form, headers, body.

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::fetch::testing::{Peer, Rig, exit, fault_of, get, options, read_head, with_login};
use crate::fetch::{Coding, Fetcher, Options, Request};
use crate::model::{Exit, FaultKind, Phase, Scheme, Secret};

/// An exit that reports each head it gets and answers 204.
async fn listening() -> (Peer, UnboundedReceiver<String>) {
    let (tell, told) = unbounded_channel();
    let peer = Peer::new(move |mut stream, _| {
        let tell = tell.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                let _ = tell.send(head);
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
            }
        }
    })
    .await;
    (peer, told)
}

/// The head that `request` makes.
async fn sent(change: impl Fn(Exit) -> Exit, options: Options, request: Request) -> String {
    let (peer, mut told) = listening().await;
    let exit = change(exit(Scheme::Http, peer.address));
    let (attempt, _) = Rig::new(exit, options).fetch(request).await;
    assert_eq!(attempt.fault, None);
    told.recv().await.unwrap()
}

async fn plainly(request: Request) -> String {
    sent(|exit| exit, options(), request).await
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for &(name, value) in lines {
        headers.append(name, value.parse().unwrap());
    }
    headers
}

#[tokio::test]
async fn a_plain_get_is_absolute_form_with_the_default_headers_in_order() {
    assert_eq!(
        plainly(get("http://o.test/a?b#c")).await,
        "GET http://o.test/a?b HTTP/1.1\r\nhost: o.test\r\nuser-agent: exitfetch-test\r\n\
         accept: */*\r\naccept-encoding: identity\r\n\r\n"
    );
    let compressed = Options {
        coding: Coding::Compressed,
        user_agent: String::new(),
        ..options()
    };
    assert_eq!(
        sent(|exit| exit, compressed, get("http://o.test:8080")).await,
        "GET http://o.test:8080/ HTTP/1.1\r\nhost: o.test:8080\r\naccept: */*\r\n\
         accept-encoding: gzip, br, zstd\r\n\r\n"
    );
}

#[tokio::test]
async fn targets_go_out_as_they_are_written() {
    for path in [
        "/%7Ea%2fb%2F?c=%20&d=+",
        "/a{}|[]^`\\\"<>~!$&'()*+,;=:@-._",
        "/?a{}|[]^`\\<>?/",
        "//double//slashes/",
        "/%zz%",
        "/\u{e9}?\u{e9}",
        "/?",
    ] {
        let request = get(&format!("http://o.test{path}"));
        let meant = request.target.to_string();
        let head = plainly(request).await;
        assert_eq!(head.split(' ').nth(1), Some(&*meant), "{path}");
    }
}

#[tokio::test]
async fn userinfo_in_a_url_never_goes_out() {
    let head = plainly(get("http://user:pass@o.test/")).await;
    assert!(head.starts_with("GET http://o.test/ HTTP/1.1\r\nhost: o.test\r\n"));
}

#[tokio::test]
async fn the_login_of_a_forward_exit_goes_with_each_request() {
    let head = sent(
        |exit| with_login(exit, "us@er", "p:@ss"),
        options(),
        get("http://o.test/"),
    )
    .await;
    assert!(head.contains("\r\nproxy-authorization: Basic dXNAZXI6cDpAc3M=\r\n"));
}

#[tokio::test]
async fn the_jobs_headers_win_over_the_origins_and_these_over_the_general_ones() {
    let mut options = options();
    options.headers = headers(&[("x-a", "1"), ("x-b", "1"), ("x-c", "1"), ("x-c", "2")]);
    let own = headers(&[("x-a", "2"), ("x-b", "2"), ("accept", "text/html")]);
    options.per_origin_headers.insert("o.test:81".into(), own);
    let mut request = get("http://o.test:81/");
    request.headers = Some(headers(&[("x-a", "3"), ("user-agent", "mine")]));
    let head = sent(|exit| exit, options, request).await;
    for line in [
        "x-a: 3",
        "x-b: 2",
        "x-c: 1",
        "x-c: 2",
        "user-agent: mine",
        "accept: text/html",
    ] {
        assert!(
            head.contains(&format!("\r\n{line}\r\n")),
            "{line} in {head}"
        );
    }
    assert!(!head.contains("x-a: 1") && !head.contains("exitfetch-test"));
}

#[tokio::test]
async fn what_authorises_stays_at_the_jobs_origin() {
    let request = |left_origin| Request {
        authorization: Some(Secret::new("Basic url")),
        headers: Some(headers(&[("cookie", "job"), ("x-a", "job")])),
        left_origin,
        ..get("http://o.test/")
    };
    let with_general = || Options {
        headers: headers(&[("authorization", "general"), ("x-b", "general")]),
        ..options()
    };
    let home = sent(|exit| exit, with_general(), request(false)).await;
    assert!(home.contains("\r\nauthorization: Basic url\r\n"));
    assert!(home.contains("\r\ncookie: job\r\n"));
    let away = sent(|exit| exit, with_general(), request(true)).await;
    assert!(!away.contains("authorization") && !away.contains("cookie"));
    assert!(away.contains("\r\nx-a: job\r\n") && away.contains("\r\nx-b: general\r\n"));

    let mut own = with_general();
    let configured = headers(&[("authorization", "origin")]);
    own.per_origin_headers.insert("o.test".into(), configured);
    let away = sent(|exit| exit, own, request(true)).await;
    assert!(away.contains("\r\nauthorization: origin\r\n"));
}

#[tokio::test]
async fn bodies_go_out_with_their_length_and_missing_ones_as_none() {
    let mut post = get("http://o.test/");
    post.method = Method::POST;
    assert!(plainly(post).await.contains("\r\ncontent-length: 0\r\n"));
    assert!(
        !plainly(get("http://o.test/"))
            .await
            .contains("content-length")
    );

    let peer = Peer::new(|mut stream, _| async move {
        let head = read_head(&mut stream).await;
        assert!(head.contains("\r\ncontent-length: 5\r\n"));
        let mut body = [0; 5];
        stream.read_exact(&mut body).await.unwrap();
        let echo = [b"HTTP/1.1 200 OK\r\n\r\n", &body[..]].concat();
        let _ = stream.write_all(&echo).await;
    })
    .await;
    let mut put = get("http://o.test/");
    put.method = Method::PUT;
    put.body = Some(Bytes::from_static(b"hello"));
    let (_, body) = Rig::new(exit(Scheme::Http, peer.address), options())
        .fetch(put)
        .await;
    assert_eq!(body, b"hello");
}

#[tokio::test]
async fn headers_that_belong_to_the_connection_can_be_given_nowhere() {
    for name in [
        "host",
        "connection",
        "content-length",
        "proxy-authorization",
        "te",
    ] {
        let general = Options {
            headers: headers(&[(name, "x")]),
            ..options()
        };
        let exits = [exit(Scheme::Http, "127.0.0.1:1".parse().unwrap())];
        let clock = crate::fetch::testing::clock();
        let refused = Fetcher::new(general, exits.clone().into(), clock).err();
        assert!(refused.unwrap().to_string().contains(name));

        let mut rig = Rig::new(exits[0].clone(), options());
        let mut request = get("http://o.test/");
        request.headers = Some(headers(&[(name, "x")]));
        let (attempt, _) = rig.fetch(request).await;
        assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::BadRequest));
    }
}

#[tokio::test]
async fn a_url_beyond_what_http_can_carry_fails_alone() {
    let mut rig = Rig::new(
        exit(Scheme::Http, "127.0.0.1:1".parse().unwrap()),
        options(),
    );
    let (attempt, _) = rig
        .get(&format!("http://o.test/{}", "a".repeat(70_000)))
        .await;
    assert_eq!(fault_of(&attempt), (Phase::Head, FaultKind::BadRequest));
    assert_eq!(rig.conns.peak(0), 0);
}
