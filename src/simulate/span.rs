//! A length of time as scenario files write it: seconds, or text such as `250ms`.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// See the module's text. Zero is allowed: nothing takes no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        deserializer.deserialize_any(Read)
    }
}

struct Read;

impl Visitor<'_> for Read {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a length of time, such as 2.5 (seconds) or \"250ms\"")
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Span, E> {
        Ok(Span(Duration::from_secs(seconds)))
    }

    fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<Span, E> {
        let span = Duration::try_from_secs_f64(seconds).map(Span);
        span.map_err(|_| E::invalid_value(de::Unexpected::Float(seconds), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        let span = humantime::parse_duration(text).map(Span);
        span.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seconds_and_text_has_units() {
        let span = |text: &str| serde_json::from_str::<Span>(text).map(|s| s.0.as_millis());
        assert_eq!(span("2").unwrap(), 2000);
        assert_eq!(span("0.25").unwrap(), 250);
        assert_eq!(span("\"1m 30s\"").unwrap(), 90_000);
        for wrong in ["-1", "\"soon\"", "true", "1e300"] {
            let message = span(wrong).unwrap_err().to_string();
            assert!(message.contains("such as 2.5"), "{message}");
        }
    }
}
