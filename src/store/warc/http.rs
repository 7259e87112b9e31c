//! HTTP/1.1 as bytes: where an answer's head ends, which bytes are its body, which are a
//! request's secrets.
//!
//! hyper has understood the message by then; this only finds its parts again in what was
//! received, or in a record that is read back.

use std::ops::Range;

use crate::model::Framing;

/// Request headers that are between us and the exit, or that no archive shows.
const PROXY: &[u8] = b"proxy-";
const AUTHORIZATION: &[u8] = b"authorization:";

/// Where the final head of `received` is: interim answers (1xx) and empty lines before it
/// left out, its empty line included. `None` while it is not complete.
pub(super) fn final_head(received: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    loop {
        while let Some(b'\r' | b'\n') = received.get(start) {
            start += 1;
        }
        let end = start + head_len(&received[start..])?;
        if !is_interim(&received[start..end]) {
            return Some(start..end);
        }
        start = end;
    }
}

/// Length of a head up to and with its empty line.
pub(super) fn head_len(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// 1xx but for 101, which nothing follows.
fn is_interim(head: &[u8]) -> bool {
    let space = memchr::memchr(b' ', head);
    let code = space.and_then(|at| head.get(at + 1..at + 4));
    matches!(code, Some([b'1', rest @ ..]) if rest != b"01")
}

/// How the body after `head` ends, for a record that was written from a whole answer.
pub(super) fn framing(head: &[u8]) -> Framing {
    let chunked = lines(head).any(|line| {
        value(line, b"transfer-encoding")
            .is_some_and(|codings| codings.to_ascii_lowercase().ends_with(b"chunked"))
    });
    if chunked {
        Framing::Chunked
    } else {
        Framing::Close
    }
}

fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .take_while(|line| !line.is_empty())
}

/// The value of a header line, if it has this (lower-case) name.
pub(super) fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (is, value) = line.split_at(memchr::memchr(b':', line)?);
    is.eq_ignore_ascii_case(name)
        .then(|| value[1..].trim_ascii())
}

/// The request as an archive holds it: in origin-form, as the site was asked, whatever the
/// exit was sent; without what was for the exit, and with the value of `Authorization`
/// masked. All else is as it was sent.
pub(super) fn shown_request(sent: &[u8]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(sent.len());
    // What is kept and was not copied begins here.
    let mut kept = append_origin_form(&mut shown, sent);
    let mut start = next_line(sent, kept);
    while !matches!(sent[start..], [] | [b'\n', ..] | [b'\r', b'\n', ..]) {
        let line = &sent[start..];
        let end = next_line(sent, start);
        let mask = starts_with_ignoring_case(line, AUTHORIZATION);
        if mask || starts_with_ignoring_case(line, PROXY) {
            shown.extend_from_slice(&sent[kept..start]);
            kept = end;
        }
        if mask {
            shown.extend_from_slice(&line[..AUTHORIZATION.len()]);
            shown.extend_from_slice(b" ***\r\n");
        }
        start = end;
    }
    shown.extend_from_slice(&sent[kept..]);
    shown
}

/// Where the line after the one at `at` begins.
fn next_line(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1)
}

fn starts_with_ignoring_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len())
        .is_some_and(|first| first.eq_ignore_ascii_case(start))
}

/// Begins `GET http://host/path HTTP/1.1` as `GET /path HTTP/1.1`; returns how much of `sent`
/// that stands for.
fn append_origin_form(out: &mut Vec<u8>, sent: &[u8]) -> usize {
    let target = memchr::memchr(b' ', sent).map_or(0, |at| at + 1);
    let authority = sent[target..].strip_prefix(b"http://");
    let path = authority.and_then(|rest| memchr::memchr3(b'/', b'?', b' ', rest));
    let (Some(authority), Some(path)) = (authority, path) else {
        return 0;
    };
    out.extend_from_slice(&sent[..target]);
    if authority[path] != b'/' {
        out.push(b'/');
    }
    sent.len() - authority.len() + path
}

/// Walks along a body as it came and tells its bytes from their framing.
#[derive(Clone, Debug)]
pub(super) struct Extent(State);

#[derive(Clone, Debug)]
enum State {
    /// So many bytes are left.
    Data(u64),
    /// Whatever comes.
    All,
    /// In the line that opens a chunk; its length so far, and whether the number is over.
    Size(u64, Number),
    /// So many bytes of the chunk are left.
    Chunk(u64),
    /// In the line end behind a chunk.
    ChunkEnd,
    /// Behind the last chunk; whether the present line is empty so far.
    Trailer(Line),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Open,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Line {
    Empty,
    Begun,
}

impl Extent {
    /// At the first byte behind the head.
    pub(super) fn new(framing: Framing) -> Extent {
        Extent(match framing {
            Framing::Length(length) => State::Data(length),
            Framing::Close => State::All,
            Framing::Chunked => State::Size(0, Number::Open),
        })
    }

    /// The next step into `bytes`: how many it takes, and whether they are data. `None` when
    /// the body is over; what follows is not of this answer. Never takes 0 of some bytes.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Option<(usize, Kind)> {
        let most = |left: u64| usize::try_from(left).map_or(bytes.len(), |n| n.min(bytes.len()));
        match &mut self.0 {
            State::Data(0) => None,
            State::Data(left) => {
                let n = most(*left);
                *left -= n as u64;
                Some((n, Kind::Data))
            }
            State::All => Some((bytes.len(), Kind::Data)),
            State::Chunk(left) => {
                let n = most(*left);
                *left -= n as u64;
                if *left == 0 {
                    self.0 = State::ChunkEnd;
                }
                Some((n, Kind::Data))
            }
            State::Size(..) | State::ChunkEnd | State::Trailer(_) => Some(self.frame(bytes)),
        }
    }

    /// A byte of framing.
    fn frame(&mut self, bytes: &[u8]) -> (usize, Kind) {
        let Some(&byte) = bytes.first() else {
            return (0, Kind::Framing);
        };
        self.0 = match (&self.0, byte) {
            (State::Size(0, _), b'\n') => State::Trailer(Line::Empty),
            (State::Size(length, _), b'\n') => State::Chunk(*length),
            (State::Size(length, Number::Open), digit) => match char::from(digit).to_digit(16) {
                Some(digit) => State::Size(
                    length.saturating_mul(16).saturating_add(digit.into()),
                    Number::Open,
                ),
                None => State::Size(*length, Number::Over),
            },
            (State::ChunkEnd, b'\n') => State::Size(0, Number::Open),
            (State::Trailer(Line::Empty), b'\n') => State::Data(0),
            (State::Trailer(_), b'\n') => State::Trailer(Line::Empty),
            (State::Trailer(Line::Empty), b'\r') => State::Trailer(Line::Empty),
            (State::Trailer(_), _) => State::Trailer(Line::Begun),
            (same, _) => same.clone(),
        };
        (1, Kind::Framing)
    }
}

/// What the bytes of a body as it came are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The payload.
    Data,
    /// Chunk lengths, line ends, trailers.
    Framing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_head_is_found_behind_interim_ones() {
        let received =
            b"\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";
        let head = final_head(received).unwrap();
        assert_eq!(&received[head.clone()], b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
        assert_eq!(&received[head.end..], b"body");
        assert_eq!(final_head(&received[..head.end - 1]), None);
        assert_eq!(final_head(b"HTTP/1.1 101 S\n\nx"), Some(0..16));
    }

    fn walk(framing: Framing, bytes: &[u8], piece: usize) -> (Vec<u8>, usize) {
        let mut extent = Extent::new(framing);
        let (mut data, mut taken) = (Vec::new(), 0);
        for part in bytes.chunks(piece) {
            let mut at = 0;
            while at < part.len()
                && let Some((n, kind)) = extent.step(&part[at..])
            {
                if kind == Kind::Data {
                    data.extend_from_slice(&part[at..at + n]);
                }
                at += n;
            }
            taken += at;
        }
        (data, taken)
    }

    #[test]
    fn the_body_ends_where_its_framing_says_however_it_is_cut() {
        let chunked =
            b"5;x=1a\r\nhello\r\n00A\r\n, world!\r\n\r\n0\r\nX-Sum: 1\r\n\r\nHTTP/1.1 garbage";
        let end = chunked.len() - "HTTP/1.1 garbage".len();
        for piece in [1, 2, 7, 1000] {
            let (data, taken) = walk(Framing::Chunked, chunked, piece);
            assert_eq!((data.as_slice(), taken), (&b"hello, world!\r\n"[..], end));
            let (data, taken) = walk(Framing::Length(3), b"abcdef", piece);
            assert_eq!((data.as_slice(), taken), (&b"abc"[..], 3));
            assert_eq!(walk(Framing::Close, b"abcdef", piece).1, 6);
        }
    }

    #[test]
    fn a_shown_request_is_what_the_site_was_asked_and_tells_no_login() {
        let sent = b"POST http://o.test/a?b HTTP/1.1\r\nhost: o.test\r\nProxy-Authorization: Basic eDp5\r\nAuthorization: Bearer s3cret\r\naccept: */*\r\n\r\nproxy-authorization: in the body\r\n";
        let shown = shown_request(sent);
        assert_eq!(
            shown,
            b"POST /a?b HTTP/1.1\r\nhost: o.test\r\nAuthorization: ***\r\naccept: */*\r\n\r\nproxy-authorization: in the body\r\n"
        );
        assert_eq!(
            shown_request(b"GET http://o.test?x HTTP/1.1\r\n\r\n"),
            b"GET /?x HTTP/1.1\r\n\r\n"
        );
        assert_eq!(
            shown_request(b"GET /http://x/ HTTP/1.1\r\n\r\n"),
            b"GET /http://x/ HTTP/1.1\r\n\r\n"
        );
        assert_eq!(
            shown_request(b"GET / HTTP/1.1\nauthorization: cut sho"),
            b"GET / HTTP/1.1\nauthorization: ***\r\n"
        );
        assert_eq!(shown_request(b""), b"");
    }

    #[test]
    fn only_a_last_coding_of_chunked_has_chunks() {
        let head = |line: &str| format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n").into_bytes();
        assert_eq!(
            framing(&head("transfer-encoding: Chunked")),
            Framing::Chunked
        );
        assert_eq!(framing(&head("Content-Length: 5")), Framing::Close);
    }
}
