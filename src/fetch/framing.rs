//! How the end of a body is known.
//!
//! Only an announced end proves that a body is whole; a body that ends with the connection
//! may as well have been cut.

use http::{HeaderMap, header};
use hyper::body::{Body, Incoming};

use crate::model::Framing;

impl Framing {
    /// hyper has decided already and shows only a length; the rest follows from the head.
    pub(super) fn of(body: &Incoming, headers: &HeaderMap) -> Framing {
        match body.size_hint().exact() {
            Some(length) => Framing::Length(length),
            None if is_chunked(headers) => Framing::Chunked,
            None => Framing::Close,
        }
    }
}

/// Whether `chunked` is the last transfer coding.
fn is_chunked(headers: &HeaderMap) -> bool {
    let last = headers
        .get_all(header::TRANSFER_ENCODING)
        .iter()
        .next_back();
    let last = last.and_then(|line| line.as_bytes().rsplit(|&b| b == b',').next());
    last.is_some_and(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Whether the body is in a transfer coding that nobody asked for (no request here has a
/// `TE` field, RFC 9112 §7.4): its bytes would be stored still coded.
pub(super) fn is_coded_unasked(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::TRANSFER_ENCODING).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|&b| b == b','))
        .map(|coding| coding.trim_ascii().to_ascii_lowercase())
        .any(|coding| !matches!(&coding[..], b"chunked" | b"identity" | b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunked_counts_only_as_the_last_coding() {
        let chunked = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(header::TRANSFER_ENCODING, line.parse().unwrap());
            }
            is_chunked(&headers)
        };
        assert!(chunked(&["chunked"]) && chunked(&["gzip ,\tChunked"]));
        assert!(chunked(&["gzip", "chunked"]));
        assert!(!chunked(&[]) && !chunked(&["chunked, gzip"]) && !chunked(&["xchunked"]));
    }
}
