//! Peers that say anything at all, at any pace: every attempt ends, with the phase it was in.
//!
//! A corpus of whole conversations is cut in three ways (at every byte, after every byte, by
//! random changes), and what comes is held to what must be so for any bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use futures_util::future::join_all;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fetch::testing::{BRIEF, Peer, Rig, exit, fault_of, options, until_closed};
use crate::fetch::{Coding, Decoder, Options, Piece, Tunnel};
use crate::model::{Attempt, FaultKind, Phase, Scheme};

/// What a test waits for an attempt that all limits have passed long before.
const HANG: Duration = Duration::from_secs(60);

/// Most that may be read of what has no end: far more than any limit, far less than memory.
const READ_AHEAD: usize = 16 << 20;

/// One side of a conversation that goes well: what an exit of this scheme says.
struct Speech {
    scheme: Scheme,
    url: &'static str,
    says: Vec<u8>,
    /// Where a part ends and another phase begins.
    parts: Vec<(usize, Phase)>,
}

impl Speech {
    fn new(scheme: Scheme, url: &'static str, parts: &[(&[u8], Phase)]) -> Speech {
        let mut speech = Speech {
            scheme,
            url,
            says: Vec::new(),
            parts: Vec::new(),
        };
        for (bytes, phase) in parts {
            speech.says.extend_from_slice(bytes);
            speech.parts.push((speech.says.len(), *phase));
        }
        speech
    }

    /// Where the tunnel is open and the request in it is due; 0 where there is none.
    fn turn(&self) -> usize {
        match self.parts[0] {
            (end, Phase::Handshake) => end,
            _ => 0,
        }
    }

    /// The phase in which it is missed that byte `at` does not come.
    fn phase_at(&self, at: usize) -> Phase {
        let part = self.parts.iter().find(|(end, _)| at < *end);
        part.map(|(_, phase)| *phase).unwrap()
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 9\r\n\r\n";
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const CHUNKS: &[u8] = b"4;a=b\r\nsome\r\n5\r\n body\r\n0\r\nX: y\r\n\r\n";
const BODY: &[u8] = b"some body";

/// Each ends with a body of [`BODY`].
async fn corpus() -> Vec<Speech> {
    let (gzip, br, zstd) = coded(BODY).await;
    let coded = |name: &str, wire: &[u8]| {
        let length = wire.len();
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nContent-Length: {length}\r\n\r\n")
            .into_bytes()
    };
    let http = |head: &[u8], body: &[u8]| {
        let parts = [(head, Phase::Head), (body, Phase::Body)];
        Speech::new(Scheme::Http, "http://o.test/", &parts)
    };
    let hint = [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", HEAD].concat();
    let opened =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 Connection established\r\nVia: x\r\n\r\n";
    let socks = |bound: &[u8]| {
        let handshake = [&[5, 0, 5, 0, 0], bound].concat();
        let parts = [
            (&*handshake, Phase::Handshake),
            (HEAD, Phase::Head),
            (BODY, Phase::Body),
        ];
        Speech::new(Scheme::Socks5, "http://o.test/", &parts)
    };
    vec![
        http(HEAD, BODY),
        http(&hint, BODY),
        http(CHUNKED, CHUNKS),
        http(&coded("gzip", &gzip), &gzip),
        http(&coded("br", &br), &br),
        http(&coded("zstd", &zstd), &zstd),
        Speech::new(
            Scheme::Http,
            "http://tunnel.test/",
            &[
                (opened, Phase::Handshake),
                (HEAD, Phase::Head),
                (BODY, Phase::Body),
            ],
        ),
        socks(&[1, 127, 0, 0, 1, 0, 80]),
        socks(&[3, 2, b'a', b'b', 0, 80]),
        socks(&[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80]),
    ]
}

/// gzip, br and zstd of `plain`.
async fn coded(plain: &[u8]) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let mut gzip = GzipEncoder::new(Vec::new());
    let mut brotli = BrotliEncoder::new(Vec::new());
    let mut zstd = ZstdEncoder::new(Vec::new());
    gzip.write_all(plain).await.unwrap();
    gzip.shutdown().await.unwrap();
    brotli.write_all(plain).await.unwrap();
    brotli.shutdown().await.unwrap();
    zstd.write_all(plain).await.unwrap();
    zstd.shutdown().await.unwrap();
    (gzip.into_inner(), brotli.into_inner(), zstd.into_inner())
}

/// What a peer does after its last byte.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Close,
    /// Until the limit of this phase is over, or of any.
    KeepSilent {
        in_phase: Option<Phase>,
    },
}

/// What a peer says and when.
struct Script {
    bytes: Vec<u8>,
    /// Most bytes at once; pieces that are not the last are read alone.
    step: usize,
    /// After so many bytes, if more than none, it waits for the request in the tunnel …
    turn: usize,
    /// … but no longer than this.
    patience: Duration,
    then: Then,
}

impl Script {
    /// Waits for the request where it belongs, then goes on in pieces of `step`.
    fn of(speech: &Speech, end: usize, step: usize, then: Then) -> Script {
        Script {
            bytes: speech.says[..end].to_vec(),
            step,
            turn: speech.turn(),
            patience: HANG,
            then,
        }
    }

    async fn play(&self, mut stream: TcpStream) {
        let mut asked = vec![0; 2048];
        let _ = stream.read(&mut asked).await;
        let (before, after) = self.bytes.split_at(self.turn.min(self.bytes.len()));
        self.say(&mut stream, before).await;
        if self.turn > 0 {
            let asked = async {
                let mut asked = Vec::new();
                while !asked.windows(4).any(|word| word == b"GET ") {
                    match stream.read_buf(&mut asked).await {
                        Ok(1..) => {}
                        _ => return,
                    }
                }
            };
            if !after.is_empty() {
                let _ = tokio::time::timeout(self.patience, asked).await;
            }
        }
        self.say(&mut stream, after).await;
        if self.then == Then::Close {
            let _ = stream.shutdown().await;
        }
        until_closed(&mut stream).await;
    }

    async fn say(&self, stream: &mut TcpStream, bytes: &[u8]) {
        for piece in bytes.chunks(self.step) {
            if stream.write_all(piece).await.is_err() {
                return;
            }
            if piece.len() < bytes.len() {
                // Long enough that each piece is read alone.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

/// All codings, a tunnel for the one host that has its name. Where the peer keeps silent, the
/// limits are soon over; that of the handshake later, as the dial on a busy machine counts, too.
fn hard(scheme: Scheme, url: &str, then: Then) -> Options {
    let mut options = options();
    options.coding = Coding::Compressed;
    if scheme == Scheme::Http && url.contains("tunnel") {
        options.tunnel_http = Tunnel::Always;
    }
    match then {
        Then::Close => {}
        Then::KeepSilent { in_phase } => {
            let short = |phase| in_phase.is_none_or(|only| only == phase);
            if short(Phase::Handshake) {
                options.limits.connect = BRIEF * 30;
            }
            if short(Phase::Head) {
                options.limits.first_byte = BRIEF;
            }
            if short(Phase::Body) {
                options.limits.stall = BRIEF;
            }
        }
    }
    options
}

/// One attempt at a peer that follows `script`; its facts and the body. Nothing stays open that
/// is not kept.
async fn hear(scheme: Scheme, url: &str, script: Script) -> (Attempt, Vec<u8>) {
    let options = hard(scheme, url, script.then);
    let script = Arc::new(script);
    let peer = Peer::new(move |stream: TcpStream, _| {
        let script = Arc::clone(&script);
        async move {
            let _ = stream.set_nodelay(true);
            script.play(stream).await;
        }
    })
    .await;
    let mut rig = Rig::new(exit(scheme, peer.address), options);
    let heard = tokio::time::timeout(HANG, rig.get(url)).await;
    let (attempt, body) = heard.expect("the attempt hangs");
    assert_eq!(rig.conns.open(0), u32::from(attempt.kept));
    (attempt, body)
}

#[tokio::test]
async fn an_answer_that_comes_byte_by_byte_is_the_same_answer() {
    let corpus = corpus().await;
    let all = corpus.iter().map(|speech| async {
        let script = Script::of(speech, speech.says.len(), 1, Then::Close);
        let (attempt, body) = hear(speech.scheme, speech.url, script).await;
        assert_eq!(attempt.fault, None);
        assert_eq!(attempt.status(), Some(200));
        assert!(body == BODY && attempt.length_verified);
    });
    join_all(all).await;
}

#[tokio::test]
async fn an_answer_that_ends_at_any_byte_is_a_fault_of_the_phase_it_ends_in() {
    for speech in corpus().await {
        let speech = &speech;
        let cuts = (0..speech.says.len()).map(|cut| async move {
            let script = Script::of(speech, cut, usize::MAX, Then::Close);
            let (attempt, _) = hear(speech.scheme, speech.url, script).await;
            let said = String::from_utf8_lossy(&speech.says[..cut]);
            let (phase, kind) = fault_of(&attempt);
            assert_eq!(phase, speech.phase_at(cut), "{said:?}");
            let wanted = match phase {
                Phase::Body => FaultKind::Truncated,
                _ => FaultKind::Eof,
            };
            assert_eq!(kind, wanted, "{said:?}");
            assert!(!attempt.kept && !attempt.length_verified, "{said:?}");
        });
        join_all(cuts).await;
    }
}

#[tokio::test]
async fn an_answer_that_falls_silent_at_any_byte_is_a_timeout_of_that_phase() {
    let corpus = corpus().await;
    let cuts = corpus.iter().flat_map(|speech| {
        let places = (0..speech.says.len()).step_by(5);
        places.map(move |cut| async move {
            let phase = speech.phase_at(cut);
            let then = Then::KeepSilent {
                in_phase: Some(phase),
            };
            let script = Script::of(speech, cut, usize::MAX, then);
            let (attempt, _) = hear(speech.scheme, speech.url, script).await;
            let said = String::from_utf8_lossy(&speech.says[..cut]);
            assert_eq!(fault_of(&attempt), (phase, FaultKind::Timeout), "{said:?}");
        })
    });
    join_all(cuts).await;
}

/// Says `start`, then `more` for as long as it is heard. Returns the fault, and how many bytes
/// were taken.
async fn without_end(
    (scheme, url): (Scheme, &str),
    start: &'static [u8],
    more: &'static [u8],
    options: Options,
) -> ((Phase, FaultKind), usize) {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    let peer = Peer::new(move |mut stream: TcpStream, _| {
        let count = Arc::clone(&count);
        async move {
            let mut asked = [0; 2048];
            let _ = stream.read(&mut asked).await;
            let _ = stream.write_all(start).await;
            let more = more.repeat(8192 / more.len() + 1);
            while let Ok(n @ 1..) = stream.write(&more).await {
                count.fetch_add(n, Ordering::SeqCst);
            }
        }
    })
    .await;
    let mut rig = Rig::new(exit(scheme, peer.address), options);
    let heard = tokio::time::timeout(HANG, rig.get(url)).await;
    let fault = fault_of(&heard.expect("the attempt hangs").0);
    (fault, taken.load(Ordering::SeqCst))
}

/// The size of a chunk may have any number of zeros before it; they are no byte of a body.
#[tokio::test]
async fn a_chunk_size_without_end_is_a_stall() {
    let plain = (Scheme::Http, "http://o.test/");
    let mut options = hard(plain.0, plain.1, Then::Close);
    options.limits.stall = BRIEF;
    let (fault, _) = without_end(plain, CHUNKED, b"0", options).await;
    assert_eq!(fault, (Phase::Body, FaultKind::Timeout));
}

/// Who is asked for what, how it begins, how it goes on, and the fault that it is.
type Endless = (
    (Scheme, &'static str),
    &'static [u8],
    &'static [u8],
    Phase,
    FaultKind,
);

#[tokio::test]
async fn what_has_no_end_is_given_up_after_little_of_it() {
    const PLAIN: (Scheme, &str) = (Scheme::Http, "http://o.test/");
    const TUNNEL: (Scheme, &str) = (Scheme::Http, "http://tunnel.test/");
    const SOCKS: (Scheme, &str) = (Scheme::Socks5, "http://o.test/");
    let too_large = FaultKind::HeadTooLarge;
    let cases: [Endless; 12] = [
        (TUNNEL, b"HTTP/1.1 200 ", b"x", Phase::Handshake, too_large),
        (
            TUNNEL,
            b"HTTP/1.1 200 OK\r\n",
            b"A: b\r\n",
            Phase::Handshake,
            too_large,
        ),
        (TUNNEL, b"", b"\r\n", Phase::Handshake, too_large),
        (TUNNEL, b"", b"\0", Phase::Handshake, FaultKind::Protocol),
        (SOCKS, b"", b"\x05", Phase::Handshake, FaultKind::Protocol),
        (
            SOCKS,
            b"\x05\0\x05\0\0\x03",
            b"\xff",
            Phase::Head,
            FaultKind::Protocol,
        ),
        (PLAIN, b"HTTP/1.1 200 ", b"x", Phase::Head, too_large),
        (
            PLAIN,
            b"HTTP/1.1 200 OK\r\n",
            b"A: b\r\n",
            Phase::Head,
            too_large,
        ),
        (PLAIN, b"", b"\r\n", Phase::Head, too_large),
        (
            PLAIN,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
            b"x",
            Phase::Body,
            FaultKind::Protocol,
        ),
        (
            PLAIN,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"A: b\r\n",
            Phase::Body,
            FaultKind::Protocol,
        ),
        (
            PLAIN,
            CHUNKED,
            b"1\r\na\r\n",
            Phase::Body,
            FaultKind::TooLarge,
        ),
    ];
    for ((scheme, url), start, more, phase, kind) in cases {
        let mut options = hard(scheme, url, Then::Close);
        options.limits.max_body = Some(64 << 10);
        let (fault, taken) = without_end((scheme, url), start, more, options).await;
        let said = String::from_utf8_lossy(start);
        let more = String::from_utf8_lossy(more);
        assert_eq!(fault, (phase, kind), "{said:?} and {more:?}");
        assert!(taken < READ_AHEAD, "{taken} bytes of {said:?} and {more:?}");
    }
}

/// A change of a conversation: at which byte, and what comes there instead.
type Change = (prop::sample::Index, Vec<u8>, u8);

/// Bytes that mean something to one of the parsers more often than not.
fn telling() -> impl Strategy<Value = u8> {
    prop_oneof![
        prop::sample::select(b"\r\n\r\n : ;,0159afHTP/\x00\x01\x03\x04\x05\xff".to_vec()),
        any::<u8>(),
    ]
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let some = prop::collection::vec(telling(), 0..6);
    prop::collection::vec((any::<prop::sample::Index>(), some, 0u8..4), 1..4)
}

fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, new, gone) in changes {
        let at = at.index(bytes.len() + 1);
        let end = bytes.len().min(at + usize::from(*gone));
        bytes.splice(at..end, new.iter().copied());
    }
    bytes
}

/// What holds for an attempt at a peer that accepts, whatever it says.
fn check(attempt: &Attempt, body: &[u8]) -> Result<(), TestCaseError> {
    match &attempt.fault {
        None => prop_assert!(attempt.head.is_some()),
        Some(fault) => {
            prop_assert!(fault.phase >= Phase::Handshake, "{fault:?}");
            prop_assert!(fault.detail.len() < 1000 && !fault.detail.contains('\n'));
            prop_assert!(!attempt.kept || fault.phase == Phase::Body, "{fault:?}");
            prop_assert!(fault.phase != Phase::Body || attempt.head.is_some());
        }
    }
    prop_assert!(attempt.wire_bytes > 0 || body.is_empty());
    Ok(())
}

/// Every conversation of the corpus with these changes, side by side.
fn hear_all(changes: &[Change], then: Then) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let corpus = corpus().await;
        let heard = corpus.iter().map(|speech| {
            let script = Script {
                bytes: changed(&speech.says, changes),
                patience: BRIEF / 4,
                ..Script::of(speech, 0, usize::MAX, then)
            };
            hear(speech.scheme, speech.url, script)
        });
        for (attempt, body) in join_all(heard).await {
            check(&attempt, &body)?;
        }
        Ok(())
    })
}

/// Decodes to the end, or to the first error; the input comes in pieces of `step`.
fn decode(coding: &'static str, wire: &[u8], step: usize) {
    let mut headers = HeaderMap::new();
    headers.append(CONTENT_ENCODING, http::HeaderValue::from_static(coding));
    let mut decoder = Decoder::of(&headers).unwrap().unwrap();
    let mut pieces = wire.chunks(step);
    let mut ended = false;
    // A hundred thousand pieces of 32 KiB are more than a thousand times the input.
    for _ in 0..100_000 {
        match decoder.piece() {
            Ok(Piece::Output(bytes)) => assert!(!bytes.is_empty() && bytes.len() <= 64 << 10),
            Ok(Piece::Hungry) => match pieces.next() {
                Some(piece) => decoder.feed(piece.to_vec().into()),
                None => {
                    assert!(!ended, "{coding} wants more after the end");
                    ended = true;
                    decoder.end();
                }
            },
            Ok(Piece::Done) | Err(_) => return,
        }
    }
    panic!("{coding} does not end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_an_exit_says_before_it_closes_the_attempt_ends_with_facts(changes in changes()) {
        hear_all(&changes, Then::Close)?;
    }

    #[test]
    fn noise_instead_of_any_protocol_ends_with_facts(
        noise in prop::collection::vec(telling(), 0..300),
        start in prop::sample::select(vec![&b""[..], b"\x05\x00", b"\x05\x00\x05\x00\x00", b"HTTP/1.1 200 ", CHUNKED]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for (scheme, url) in [
                (Scheme::Http, "http://o.test/"),
                (Scheme::Http, "http://tunnel.test/"),
                (Scheme::Http, "https://o.test/"),
                (Scheme::Https, "http://o.test/"),
                (Scheme::Socks5, "http://o.test/"),
                (Scheme::Socks5, "https://o.test/"),
            ] {
                let script = Script {
                    bytes: [start, &noise].concat(),
                    step: usize::MAX,
                    turn: 0,
                    patience: Duration::ZERO,
                    then: Then::Close,
                };
                let (attempt, body) = hear(scheme, url, script).await;
                let phase = attempt.fault.as_ref().map(|fault| fault.phase);
                if scheme == Scheme::Https {
                    prop_assert_eq!(phase, Some(Phase::ExitTls));
                } else {
                    check(&attempt, &body)?;
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn whatever_is_said_to_be_coded_decodes_or_fails_in_bounded_steps(
        changes in changes(),
        noise in prop::collection::vec(any::<u8>(), 0..300),
        step in 1usize..400,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let plain = b"all work and no play makes a dull page ".repeat(20);
        let (gzip, br, zstd) = runtime.block_on(coded(&plain));
        for (coding, wire) in [("gzip", gzip), ("br", br), ("zstd", zstd)] {
            decode(coding, &changed(&wire, &changes), step);
            decode(coding, &noise, step);
            decode(coding, &[&wire[..wire.len().min(20)], &noise].concat(), step);
        }
    }
}

proptest! {
    // Each case waits for limits to pass.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn whatever_an_exit_says_before_it_falls_silent_the_attempt_ends_with_facts(
        changes in changes(),
    ) {
        hear_all(&changes, Then::KeepSilent { in_phase: None })?;
    }
}
