//! The text of WARC 1.1 records (ISO 28500:2017): their headers, and the blocks we write.

use std::fmt::Write;

use crate::model::PhaseTimes;
use crate::model::job::hex;

use super::DIR;
use super::ids::RecordId;

/// Ends every record.
pub(super) const END: &[u8] = b"\r\n\r\n";
/// Digits of a length that is filled in last; enough for 10^18 bytes.
const LENGTH_DIGITS: usize = 18;

const HTTP_REQUEST: &str = "application/http;msgtype=request";
const HTTP_RESPONSE: &str = "application/http;msgtype=response";
const RESPONSE_LENGTH: &str = "Content-Type: application/http;msgtype=response\r\nContent-Length: ";
const FIELDS: &str = "application/warc-fields";
const REVISIT: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// What the records of one exchange share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// Of the response or the revisit in its place.
    pub(super) id: RecordId,
    /// When the request was sent, as records write it.
    pub(super) date: String,
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

/// The header of a `warcinfo`, and its block.
pub(super) fn warcinfo(id: RecordId, date: &str) -> String {
    let block = concat!(
        "software: exitfetch/",
        env!("CARGO_PKG_VERSION"),
        "\r\nformat: WARC File Format 1.1\r\nconformsTo: ",
        "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
    );
    let mut text = String::with_capacity(512);
    begin(&mut text, "warcinfo", id, date);
    end(&mut text, FIELDS, block.len());
    text + block
}

/// The header of the `request` that was answered by `of`.
pub(super) fn request(id: RecordId, of: &Common, length: usize) -> String {
    let mut text = String::with_capacity(512);
    begin(&mut text, "request", id, &of.date);
    concurrent(&mut text, of);
    end(&mut text, HTTP_REQUEST, length);
    text
}

/// The header of the `metadata` about `of`.
pub(super) fn metadata(id: RecordId, of: &Common, length: usize) -> String {
    let mut text = String::with_capacity(512);
    begin(&mut text, "metadata", id, &of.date);
    concurrent(&mut text, of);
    end(&mut text, FIELDS, length);
    text
}

/// The length of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    Known(u64),
    /// It is filled in later: as many digits for any number.
    Late(u64),
}

/// The header of a `response`. With a late length it takes the same room whatever length and
/// digest are filled in.
pub(super) fn response(of: &Common, digest: Digest, length: Length) -> String {
    let mut text = String::with_capacity(512);
    begin(&mut text, "response", of.id, &of.date);
    uri(&mut text, of);
    digest_field(&mut text, digest);
    let _ = match length {
        Length::Known(length) => write!(text, "{RESPONSE_LENGTH}{length}\r\n\r\n"),
        Length::Late(length) => {
            write!(text, "{RESPONSE_LENGTH}{length:0LENGTH_DIGITS$}\r\n\r\n")
        }
    };
    text
}

/// The header of a `revisit`, whose block is the answer's head.
pub(super) fn revisit(
    of: &Common,
    payload: [u8; 32],
    original: &Original,
    length: usize,
) -> String {
    let mut text = String::with_capacity(1024);
    begin(&mut text, "revisit", of.id, &of.date);
    uri(&mut text, of);
    digest_field(&mut text, Digest::Payload(payload));
    let Original {
        id,
        uri,
        date,
        segment,
        offset,
    } = original;
    let _ = write!(
        text,
        "WARC-Profile: {REVISIT}\r\nWARC-Refers-To: {id}\r\nWARC-Refers-To-Target-URI: {uri}\r\n\
         WARC-Refers-To-Date: {date}\r\nWARC-Refers-To-Filename: {segment}\r\n\
         WARC-Refers-To-File-Offset: {offset}\r\n"
    );
    end(&mut text, HTTP_RESPONSE, length);
    text
}

/// The block of a `metadata`: what the archive would not tell otherwise.
pub(super) fn facts(exit: &str, listed: Option<&str>, phases: &PhaseTimes) -> String {
    let mut text = format!("exit: {}\r\n", one_line(exit));
    if let Some(listed) = listed {
        let _ = write!(text, "via: {}\r\n", one_line(listed));
    }
    let parts = [
        ("dial_ms", phases.dial),
        ("handshake_ms", phases.handshake),
        ("tls_ms", phases.tls),
        ("first_byte_ms", phases.first_byte),
        ("body_ms", phases.body),
    ];
    for (name, span) in parts {
        if let Some(span) = span {
            let micros = span.as_micros();
            let _ = write!(text, "{name}: {}.{:03}\r\n", micros / 1000, micros % 1000);
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn begin(text: &mut String, kind: &str, id: RecordId, date: &str) {
    push(text, ["WARC/1.1\r\nWARC-Type: ", kind]);
    let _ = write!(text, "\r\nWARC-Record-ID: <{id}>");
    push(text, ["\r\nWARC-Date: ", date, "\r\n"]);
}

fn uri(text: &mut String, of: &Common) {
    push(text, ["WARC-Target-URI: ", &of.uri, "\r\n"]);
}

fn concurrent(text: &mut String, of: &Common) {
    uri(text, of);
    let _ = write!(text, "WARC-Concurrent-To: <{}>\r\n", of.id);
}

fn digest_field(text: &mut String, digest: Digest) {
    let (name, value) = match digest {
        Digest::Payload(value) => ("Payload", value),
        Digest::Block(value) => ("Block", value),
    };
    push(
        text,
        ["WARC-", name, "-Digest: sha256:", &hex(&value), "\r\n"],
    );
}

fn end(text: &mut String, kind: &str, length: usize) {
    push(text, ["Content-Type: ", kind]);
    let _ = write!(text, "\r\nContent-Length: {length}\r\n\r\n");
}

fn push<const N: usize>(text: &mut String, parts: [&str; N]) {
    parts.iter().for_each(|part| text.push_str(part));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ids::Ids;
    use super::*;

    fn common() -> Common {
        Common {
            id: Ids::new().draw(),
            date: "2026-01-31T20:10:40.126Z".to_owned(),
            uri: "http://o.test/a".to_owned(),
        }
    }

    #[test]
    fn a_response_header_has_one_length_whatever_is_filled_in() {
        let of = common();
        let early = response(&of, Digest::Block([0; 32]), Length::Late(0));
        let late = response(
            &of,
            Digest::Block([255; 32]),
            Length::Late(10_u64.pow(18) - 1),
        );
        assert_eq!(early.len(), late.len());
        assert!(late.ends_with("\r\nContent-Length: 999999999999999999\r\n\r\n"));
    }

    #[test]
    fn facts_are_fields_and_hold_no_line_of_somebody_else() {
        let phases = PhaseTimes {
            dial: Some(Duration::from_micros(1002)),
            body: Some(Duration::from_micros(7)),
            ..PhaseTimes::default()
        };
        assert_eq!(
            facts("a\r\nb", Some("http://o.test/"), &phases),
            "exit: a  b\r\nvia: http://o.test/\r\ndial_ms: 1.002\r\nbody_ms: 0.007\r\n"
        );
    }

    #[test]
    fn a_record_is_written_as_the_standard_has_it() {
        let of = common();
        let text = request(of.id, &of, 12);
        let id = of.id;
        assert_eq!(
            text,
            format!(
                "WARC/1.1\r\nWARC-Type: request\r\nWARC-Record-ID: <{id}>\r\n\
                 WARC-Date: 2026-01-31T20:10:40.126Z\r\nWARC-Target-URI: http://o.test/a\r\n\
                 WARC-Concurrent-To: <{id}>\r\n\
                 Content-Type: application/http;msgtype=request\r\nContent-Length: 12\r\n\r\n"
            )
        );
    }
}
