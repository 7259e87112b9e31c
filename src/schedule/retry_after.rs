//! How long an answer asks us to wait.
//!
//! Owns the reading of `Retry-After` (RFC 9110 §10.2.3), `RateLimit` (the IETF draft's
//! `"name";r=R;t=T`) and `X-RateLimit-Remaining`/`-Reset`. Leaves to `budget` what a wait does.
//!
//! Nothing malformed ever fails a job: it counts as absent. Numbers saturate, so an absurd
//! value is a long wait and not an overflow.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};

/// `X-RateLimit-Reset` above this is an instant (seconds since 1970), below it a span.
const EPOCH_FROM: u64 = 1_000_000_000;

/// The wait that `Retry-After` asks for. Whole seconds, or a date, which is read against the
/// answer's own `Date` where that is valid (so a skewed server clock does not matter), else
/// against `received_unix`. A date that has passed is no wait. Anything else is absent.
pub fn retry_after(headers: &HeaderMap, received_unix: u64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Some(seconds) = whole_seconds(text) {
        return Some(Duration::from_secs(seconds));
    }
    let until = unix(text)?;
    let sent = headers.get(DATE).and_then(|date| unix(date.to_str().ok()?));
    Some(Duration::from_secs(
        until.saturating_sub(sent.unwrap_or(received_unix)),
    ))
}

/// The wait that a spent rate limit asks for: none unless the remainder is zero.
pub fn limit_reset(headers: &HeaderMap, received_unix: u64) -> Option<Duration> {
    rate_limit(headers).or_else(|| x_rate_limit(headers, received_unix))
}

fn rate_limit(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("ratelimit")?.to_str().ok()?;
    // Several limits may be listed; the longest wait of a spent one counts.
    text.split(',')
        .filter_map(|item| {
            let value = |name: &str| {
                item.split(';')
                    .skip(1)
                    .filter_map(|parameter| parameter.trim().split_once('='))
                    .find(|(key, _)| *key == name)
                    .and_then(|(_, value)| whole_seconds(value))
            };
            (value("r")? == 0).then(|| value("t")).flatten()
        })
        .max()
        .map(Duration::from_secs)
}

fn x_rate_limit(headers: &HeaderMap, received_unix: u64) -> Option<Duration> {
    const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
    const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
    let number = |name| whole_seconds(headers.get(name)?.to_str().ok()?.trim());
    if number(REMAINING)? != 0 {
        return None;
    }
    let reset = number(RESET)?;
    let wait = if reset >= EPOCH_FROM {
        reset.saturating_sub(received_unix)
    } else {
        reset
    };
    Some(Duration::from_secs(wait))
}

/// All digits, at least one; more than fits saturates.
fn whole_seconds(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().unwrap_or(u64::MAX))
}

/// Seconds since the epoch of an HTTP date in any of its three forms.
fn unix(text: &str) -> Option<u64> {
    let date: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    Some(date.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Tue, 15 Nov 1994 08:12:31 GMT.
    const NOW: u64 = 784_887_151;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_str(value).unwrap(),
                )
            })
            .collect()
    }

    fn seconds(value: &str) -> Option<u64> {
        retry_after(&headers(&[("retry-after", value)]), NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn digits_are_seconds_and_saturate() {
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds("0"), Some(0));
        assert_eq!(seconds("  2 "), Some(2));
        assert_eq!(seconds("99999999999999999999"), Some(u64::MAX));
        assert_eq!(
            seconds("9223372036854775807"),
            Some(9_223_372_036_854_775_807)
        );
    }

    #[test]
    fn anything_that_is_neither_digits_nor_a_date_is_absent() {
        for value in [
            "-1",
            "0.5",
            "1m0s",
            "1,2",
            "",
            "soon",
            "+3",
            "１２",
            "Tue, 99 Foo",
        ] {
            assert_eq!(seconds(value), None, "{value}");
        }
    }

    #[test]
    fn all_three_date_forms_are_read_against_our_clock_where_no_date_is_sent() {
        for date in [
            "Tue, 15 Nov 1994 08:12:41 GMT",
            "Tuesday, 15-Nov-94 08:12:41 GMT",
            "Tue Nov 15 08:12:41 1994",
        ] {
            assert_eq!(seconds(date), Some(10), "{date}");
        }
        assert_eq!(seconds("Tue, 15 Nov 1994 08:12:21 GMT"), Some(0), "past");
        assert!(seconds("Fri, 31 Dec 9999 23:59:59 GMT").is_some_and(|s| s > 1 << 37));
    }

    #[test]
    fn the_answers_own_date_takes_the_skew_out() {
        let skewed = headers(&[
            ("retry-after", "Tue, 15 Nov 1994 10:00:30 GMT"),
            ("date", "Tue, 15 Nov 1994 10:00:00 GMT"),
        ]);
        assert_eq!(retry_after(&skewed, NOW), Some(Duration::from_secs(30)));
        let broken = headers(&[
            ("retry-after", "Tue, 15 Nov 1994 08:12:41 GMT"),
            ("date", "yesterday"),
        ]);
        assert_eq!(retry_after(&broken, NOW), Some(Duration::from_secs(10)));
    }

    #[test]
    fn a_spent_limit_waits_for_its_reset_and_a_malformed_one_is_ignored() {
        let wait = |pairs: &[(&'static str, &str)]| {
            limit_reset(&headers(pairs), NOW).map(|wait| wait.as_secs())
        };
        assert_eq!(wait(&[("ratelimit", "\"default\";r=0;t=30")]), Some(30));
        assert_eq!(
            wait(&[("ratelimit", "\"a\";r=0;t=5, \"b\";r=0;t=9")]),
            Some(9)
        );
        assert_eq!(wait(&[("ratelimit", "\"default\";r=7;t=30")]), None);
        assert_eq!(wait(&[("ratelimit", "\"default\";r=0")]), None);
        assert_eq!(wait(&[("ratelimit", "r=0;t=x")]), None);
        let x = |remaining, reset: &str| {
            wait(&[
                ("x-ratelimit-remaining", remaining),
                ("x-ratelimit-reset", reset),
            ])
        };
        assert_eq!(x("0", "12"), Some(12));
        assert_eq!(x("3", "12"), None);
        assert_eq!(x("0", "-1"), None);
    }

    #[test]
    fn a_reset_that_is_an_instant_is_read_as_one() {
        let spent = headers(&[
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1700000060"),
        ]);
        assert_eq!(
            limit_reset(&spent, 1_700_000_000),
            Some(Duration::from_secs(60))
        );
    }
}
