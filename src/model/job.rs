//! A job: one usable entry of the URL list; and a refusal, an entry that is not.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use url::Url;

use super::Secret;

/// One entry of the URL list, ready to be fetched.
#[derive(Clone, Debug)]
pub struct Job {
    /// The given id, else [`Job::default_id`].
    pub id: Box<str>,
    /// The list named the id itself.
    pub id_given: bool,
    /// Line (entry) of the list, from 1.
    pub line: u64,
    /// Request method; CONNECT is refused when read.
    pub method: Method,
    /// Absolute http or https URL without userinfo and fragment.
    pub url: Url,
    /// The URL as listed with any userinfo shown as `***`, where that differs from `url`.
    pub listed: Option<Box<str>>,
    /// Value of `Authorization` made from the URL's userinfo; for the job's own origin only.
    pub authorization: Option<Secret>,
    /// Request headers of this entry; they win over `-H`.
    pub headers: Option<Box<HeaderMap>>,
    /// Request body.
    pub body: Option<Bytes>,
    /// Columns or members that mean nothing to us and come back in the record.
    pub extra: Option<Box<Map<String, Value>>>,
}

impl Job {
    /// The URL as records and logs show it.
    pub fn shown_url(&self) -> &str {
        self.listed.as_deref().unwrap_or(self.url.as_str())
    }

    /// 16 hex digits of SHA-256 over method, URL as listed (its password left out) and
    /// body, each ended by a zero byte so that parts cannot run into each other.
    pub fn default_id(method: &str, url: &str, body: &[u8]) -> Box<str> {
        let mut digest = Sha256::new();
        for part in [method.as_bytes(), url.as_bytes(), body] {
            digest.update(part);
            digest.update([0]);
        }
        hex(&digest.finalize()[..8]).into()
    }

    /// Whether asking twice does no more than asking once (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method.is_idempotent()
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let pairs: Vec<[u8; 2]> = bytes.iter().map(|&byte| hex_pair(byte)).collect();
    String::from_utf8(pairs.into_flattened()).unwrap_or_default()
}

/// The same without a place on the heap, two digits for each byte.
// Where it is inlined, the compiler makes the digits one by one.
#[inline(never)]
pub fn hex_pairs<const N: usize>(bytes: &[u8; N]) -> [[u8; 2]; N] {
    bytes.map(hex_pair)
}

/// By arithmetic instead of a table, so that the compiler can make many at once.
fn hex_pair(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|n| n + if n < 10 { b'0' } else { b'a' - 10 })
}

/// An entry that cannot be used. It becomes a `refused` record; the run goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Line (entry) of the list, from 1.
    pub line: u64,
    /// The given id where one could be read, else the default id over the raw entry.
    pub id: Box<str>,
    /// What was written, userinfo masked, cut to 200 characters; empty where unreadable.
    pub url: Box<str>,
    /// `bad_url`, `duplicate_id`, …
    pub kind: super::ErrorKind,
    /// What is wrong and what would be right, one line, no secret.
    pub reason: String,
    /// As [`Job::extra`], as far as it could be read.
    pub extra: Option<Box<Map<String, Value>>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_as_the_standard_formatter_writes_it() {
        let all: [u8; 256] = std::array::from_fn(|n| n as u8);
        let text: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex(&all), text);
        assert_eq!(hex_pairs(&all).as_flattened(), text.as_bytes());
        assert_eq!(hex(&[]), "");
    }

    #[test]
    fn default_ids_are_stable_and_parts_do_not_run_together() {
        assert_eq!(
            &*Job::default_id("GET", "http://o.test/", b""),
            &*Job::default_id("GET", "http://o.test/", b"")
        );
        assert_eq!(Job::default_id("GET", "http://o.test/", b"").len(), 16);
        assert_ne!(
            Job::default_id("GET", "ab", b"c"),
            Job::default_id("GET", "a", b"bc")
        );
    }
}
