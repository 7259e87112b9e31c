//! One line of `results.jsonl`, as far as it is counted: borrowed from the line, because there may
//! be millions of them.

use std::borrow::Cow;

use serde::Deserialize;

use crate::model::record::{Phases, Waits};
use crate::model::{Blame, ErrorKind, Outcome};

/// Text of a line, borrowed where it holds no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// One line.
#[derive(Deserialize)]
pub(super) struct Light<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(default)]
    pub(super) line: u64,
    #[serde(borrow)]
    pub(super) url: Cow<'a, str>,
    pub(super) outcome: Outcome,
    #[serde(default)]
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) wire_bytes: Option<u64>,
    #[serde(borrow, default)]
    pub(super) exit: Option<Text<'a>>,
    #[serde(default)]
    pub(super) attempts: u32,
    #[serde(borrow, default)]
    pub(super) error: Option<LightError<'a>>,
    #[serde(default)]
    pub(super) waits: Option<Waits>,
    #[serde(default)]
    pub(super) phases: Option<Phases>,
    #[serde(borrow, default)]
    pub(super) at: Cow<'a, str>,
}

/// Its error.
#[derive(Deserialize)]
pub(super) struct LightError<'a> {
    pub(super) kind: ErrorKind,
    pub(super) blame: Blame,
    #[serde(borrow, default)]
    pub(super) detail: Cow<'a, str>,
}

impl Light<'_> {
    /// One more entry of a job, answered with the record of the first: it cost nothing.
    pub(super) fn is_twin(&self) -> bool {
        self.outcome != Outcome::Refused && self.attempts == 0 && self.waits.is_none()
    }

    /// Host and port of its URL, a default port left out.
    pub(super) fn origin(&self) -> Option<Box<str>> {
        origin_of(&self.url)
    }

    /// When it was written, in milliseconds since the Unix epoch.
    pub(super) fn unix_millis(&self) -> Option<i64> {
        unix_millis(&self.at)
    }
}

/// Host and port of a listed URL, a default port left out.
fn origin_of(url: &str) -> Option<Box<str>> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (_, host) = rest[..end].rsplit_once('@').unwrap_or(("", &rest[..end]));
    let default = match scheme.eq_ignore_ascii_case("https") {
        true => ":443",
        false => ":80",
    };
    let host = host.strip_suffix(default).unwrap_or(host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase().into())
}

/// `2026-01-31T20:10:40.126Z` in milliseconds since the Unix epoch. By hand, as there are
/// millions of them.
fn unix_millis(at: &str) -> Option<i64> {
    let at = at.as_bytes();
    if at.len() < 20 {
        return None;
    }
    let number = |from: usize, to: usize| {
        at.get(from..to)?.iter().try_fold(0_i64, |n, byte| {
            byte.is_ascii_digit()
                .then(|| n * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let millis = if at[19] == b'.' { number(20, 23)? } else { 0 };
    // Days since 1970-03-01 of the Gregorian calendar, the year beginning in March.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_host_and_port_however_the_url_is_written() {
        for (url, origin) in [
            ("http://A.test/x", "a.test"),
            ("https://***@a.test:443?q=http://b.test/", "a.test"),
            ("http://a.test:443", "a.test:443"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(origin_of(url).as_deref(), Some(origin), "{url}");
        }
        assert_eq!(origin_of("nonsense"), None);
    }

    #[test]
    fn instants_are_read_as_any_other_reader_reads_them() {
        for at in [
            "1970-01-01T00:00:00.000Z",
            "2000-02-29T23:59:59.999Z",
            "2026-12-31T00:00:01Z",
        ] {
            let known: jiff::Timestamp = at.parse().unwrap();
            assert_eq!(unix_millis(at), Some(known.as_millisecond()), "{at}");
        }
        assert_eq!(unix_millis("yesterday, at some time"), None);
    }
}
