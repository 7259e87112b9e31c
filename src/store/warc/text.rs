//! WARC 1.1 records (ISO 28500:2017): their headers, and the blocks we write.
//!
//! They are written straight to the end of what holds them, without the standard formatter:
//! there are three in every exchange.

use std::borrow::Cow;

use crate::model::PhaseTimes;
use crate::model::job::hex_pairs;

use super::DIR;
use super::digits::{self, Date};
use super::ids::RecordId;

const LINE_END: &[u8] = b"\r\n";
/// Ends every header and every record.
pub(super) const END: &[u8] = b"\r\n\r\n";
/// Digits of a length that is filled in last; enough for 10^18 bytes.
const LENGTH_DIGITS: usize = 18;

const HTTP_REQUEST: &str = "application/http;msgtype=request";
const HTTP_RESPONSE: &str = "application/http;msgtype=response";
const FIELDS: &str = "application/warc-fields";
const REVISIT: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// What the records of one exchange share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// Of the response or the revisit in its place.
    pub(super) id: RecordId,
    /// When the request was sent.
    pub(super) date: Date,
    /// The URL asked, without userinfo and fragment.
    pub(super) uri: String,
}

/// Which digest a response carries.
///
/// The standard takes the digest of a payload with the chunks undone. Several readers, among
/// them `warcio check`, take it with them, so a chunked answer has the digest of its whole
/// block instead, about which nobody disagrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Digest {
    Payload([u8; 32]),
    Block([u8; 32]),
}

/// The record that a payload was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Original {
    /// Its id, in brackets.
    pub(super) id: String,
    pub(super) uri: String,
    pub(super) date: String,
    /// Its segment's file name.
    pub(super) segment: String,
    pub(super) offset: u64,
}

impl Original {
    /// Its segment, relative to the output directory.
    pub(super) fn file(&self) -> String {
        format!("{DIR}/{}", self.segment)
    }
}

/// A `warcinfo`.
pub(super) fn warcinfo(out: &mut Vec<u8>, id: &RecordId, date: &Date) {
    let block = concat!(
        "software: exitfetch/",
        env!("CARGO_PKG_VERSION"),
        "\r\nformat: WARC File Format 1.1\r\nconformsTo: ",
        "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
    );
    begin(out, "warcinfo", id, date);
    end(out, FIELDS, block.as_bytes());
}

/// The `request` that was answered by `of`.
pub(super) fn request(out: &mut Vec<u8>, id: &RecordId, of: &Common, block: &[u8]) {
    begin(out, "request", id, &of.date);
    concurrent(out, of);
    end(out, HTTP_REQUEST, block);
}

/// The `metadata` about `of`.
pub(super) fn metadata(out: &mut Vec<u8>, id: &RecordId, of: &Common, block: &[u8]) {
    begin(out, "metadata", id, &of.date);
    concurrent(out, of);
    end(out, FIELDS, block);
}

/// A `response`.
pub(super) fn response(out: &mut Vec<u8>, of: &Common, digest: Digest, block: &[u8]) {
    begin_response(out, of, digest);
    end(out, HTTP_RESPONSE, block);
}

/// The header of a `response` whose length is filled in later: of one size whatever length and
/// digest it tells.
pub(super) fn late_response(of: &Common, digest: Digest, length: u64) -> Vec<u8> {
    let mut digits = [0; LENGTH_DIGITS];
    digits::fill(&mut digits, length);
    let mut out = Vec::with_capacity(512);
    begin_response(&mut out, of, digest);
    content(&mut out, HTTP_RESPONSE);
    push(&mut out, [&digits, END]);
    out
}

/// A `revisit`, whose block is the answer's head.
pub(super) fn revisit(
    out: &mut Vec<u8>,
    of: &Common,
    payload: &[u8; 32],
    original: &Original,
    head: &[u8],
) {
    begin(out, "revisit", &of.id, &of.date);
    uri(out, of);
    digest_field(out, Digest::Payload(*payload));
    let fields = [
        ("Profile", REVISIT),
        ("Refers-To", &original.id),
        ("Refers-To-Target-URI", &original.uri),
        ("Refers-To-Date", &original.date),
        ("Refers-To-Filename", &original.segment),
        ("Refers-To-File-Offset", &original.offset.to_string()),
    ];
    for (name, value) in fields {
        push(
            out,
            [b"WARC-", name.as_bytes(), b": ", value.as_bytes(), LINE_END],
        );
    }
    end(out, HTTP_RESPONSE, head);
}

/// The block of a `metadata`: what the archive would not tell otherwise.
pub(super) fn facts(exit: &str, listed: Option<&str>, phases: &PhaseTimes) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let named = [("exit: ", Some(exit)), ("via: ", listed)];
    for (name, text) in named {
        if let Some(text) = text {
            push(
                &mut out,
                [name.as_bytes(), one_line(text).as_bytes(), LINE_END],
            );
        }
    }
    let spans = [
        ("dial_ms: ", phases.dial),
        ("handshake_ms: ", phases.handshake),
        ("tls_ms: ", phases.tls),
        ("first_byte_ms: ", phases.first_byte),
        ("body_ms: ", phases.body),
    ];
    for (name, span) in spans {
        if let Some(span) = span {
            out.extend_from_slice(name.as_bytes());
            digits::append(&mut out, span.as_millis() as u64);
            let mut rest = *b".000\r\n";
            digits::fill(&mut rest[1..4], span.subsec_micros().into());
            out.extend_from_slice(&rest);
        }
    }
    out
}

fn one_line(text: &str) -> Cow<'_, str> {
    match text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        true => text.into(),
        false => text.replace(char::is_control, " ").into(),
    }
}

fn begin(out: &mut Vec<u8>, kind: &str, id: &RecordId, date: &Date) {
    push(
        out,
        [
            b"WARC/1.1\r\nWARC-Type: ",
            kind.as_bytes(),
            b"\r\nWARC-Record-ID: ",
            id.as_bytes(),
            b"\r\nWARC-Date: ",
            date.as_bytes(),
            LINE_END,
        ],
    );
}

fn begin_response(out: &mut Vec<u8>, of: &Common, digest: Digest) {
    begin(out, "response", &of.id, &of.date);
    uri(out, of);
    digest_field(out, digest);
}

fn uri(out: &mut Vec<u8>, of: &Common) {
    push(out, [b"WARC-Target-URI: ", of.uri.as_bytes(), LINE_END]);
}

fn concurrent(out: &mut Vec<u8>, of: &Common) {
    uri(out, of);
    push(out, [b"WARC-Concurrent-To: ", of.id.as_bytes(), LINE_END]);
}

fn digest_field(out: &mut Vec<u8>, digest: Digest) {
    let (name, value) = match digest {
        Digest::Payload(value) => ("WARC-Payload-Digest: sha256:", value),
        Digest::Block(value) => ("WARC-Block-Digest: sha256:", value),
    };
    let pairs = hex_pairs(&value);
    push(out, [name.as_bytes(), pairs.as_flattened(), LINE_END]);
}

/// All of a record but its length and its block.
fn content(out: &mut Vec<u8>, kind: &str) {
    push(
        out,
        [b"Content-Type: ", kind.as_bytes(), b"\r\nContent-Length: "],
    );
}

fn end(out: &mut Vec<u8>, kind: &str, block: &[u8]) {
    content(out, kind);
    digits::append(out, block.len() as u64);
    push(out, [END, block, END]);
}

fn push<const N: usize>(out: &mut Vec<u8>, parts: [&[u8]; N]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ids::Ids;
    use super::*;

    fn common() -> Common {
        Common {
            id: Ids::new().draw(),
            date: Date::of(Duration::from_millis(1_769_890_240_126)),
            uri: "http://o.test/a".to_owned(),
        }
    }

    /// What records tell of `common`.
    fn told(of: &Common) -> String {
        let id = std::str::from_utf8(of.id.as_bytes()).unwrap();
        format!(
            "WARC-Record-ID: {id}\r\nWARC-Date: 2026-01-31T20:10:40.126Z\r\n\
             WARC-Target-URI: http://o.test/a\r\n"
        )
    }

    /// The record that `write` writes.
    fn record(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_response_header_has_one_length_whatever_is_filled_in() {
        let of = common();
        let early = late_response(&of, Digest::Block([0; 32]), 0);
        let late = late_response(&of, Digest::Block([255; 32]), 10_u64.pow(18) - 1);
        assert_eq!(early.len(), late.len());
        assert!(late.ends_with(b"\r\nContent-Length: 999999999999999999\r\n\r\n"));
        let whole = record(|out| response(out, &of, Digest::Block([0; 32]), b"block"));
        let early = String::from_utf8(early).unwrap();
        let header = early.replace("Length: 000000000000000000", "Length: 5");
        assert_eq!(whole, header + "block\r\n\r\n");
    }

    #[test]
    fn facts_are_fields_and_hold_no_line_of_somebody_else() {
        let phases = PhaseTimes {
            dial: Some(Duration::from_micros(1002)),
            body: Some(Duration::from_nanos(61_000_007_999)),
            ..PhaseTimes::default()
        };
        let block = facts("a\r\n\u{85}é", Some("http://o.test/"), &phases);
        assert_eq!(
            String::from_utf8(block).unwrap(),
            "exit: a   é\r\nvia: http://o.test/\r\ndial_ms: 1.002\r\nbody_ms: 61000.007\r\n"
        );
    }

    #[test]
    fn records_are_written_as_the_standard_has_them() {
        let of = common();
        let id = std::str::from_utf8(of.id.as_bytes()).unwrap();
        let told = told(&of);
        let digest = "0a".repeat(32);
        assert_eq!(
            record(|out| request(out, &of.id, &of, b"GET / HTTP/1.1\r\n\r\n")),
            format!(
                "WARC/1.1\r\nWARC-Type: request\r\n{told}WARC-Concurrent-To: {id}\r\n\
                 Content-Type: application/http;msgtype=request\r\nContent-Length: 18\r\n\r\n\
                 GET / HTTP/1.1\r\n\r\n\r\n\r\n"
            )
        );
        assert_eq!(
            record(|out| metadata(out, &of.id, &of, b"exit: a\r\n")),
            format!(
                "WARC/1.1\r\nWARC-Type: metadata\r\n{told}WARC-Concurrent-To: {id}\r\n\
                 Content-Type: application/warc-fields\r\nContent-Length: 9\r\n\r\n\
                 exit: a\r\n\r\n\r\n"
            )
        );
        assert_eq!(
            record(|out| response(out, &of, Digest::Payload([10; 32]), b"HTTP/1.1 200 OK")),
            format!(
                "WARC/1.1\r\nWARC-Type: response\r\n{told}WARC-Payload-Digest: sha256:{digest}\r\n\
                 Content-Type: application/http;msgtype=response\r\nContent-Length: 15\r\n\r\n\
                 HTTP/1.1 200 OK\r\n\r\n"
            )
        );
        let original = Original {
            id: "<urn:uuid:0>".to_owned(),
            uri: "http://o.test/b".to_owned(),
            date: "2025-01-01T00:00:00.000Z".to_owned(),
            segment: "00001.warc".to_owned(),
            offset: 1234,
        };
        assert_eq!(
            record(|out| revisit(out, &of, &[10; 32], &original, b"HTTP/1.1 200 OK")),
            format!(
                "WARC/1.1\r\nWARC-Type: revisit\r\n{told}WARC-Payload-Digest: sha256:{digest}\r\n\
                 WARC-Profile: {REVISIT}\r\nWARC-Refers-To: <urn:uuid:0>\r\n\
                 WARC-Refers-To-Target-URI: http://o.test/b\r\n\
                 WARC-Refers-To-Date: 2025-01-01T00:00:00.000Z\r\n\
                 WARC-Refers-To-Filename: 00001.warc\r\nWARC-Refers-To-File-Offset: 1234\r\n\
                 Content-Type: application/http;msgtype=response\r\nContent-Length: 15\r\n\r\n\
                 HTTP/1.1 200 OK\r\n\r\n"
            )
        );
    }
}
