//! Values as people type them: rates, spans, sizes. Each has one reader, one sentence for
//! a mistake, and one way it is shown.

use std::ffi::OsStr;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::{Bound, RangeBounds};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use http::{HeaderName, HeaderValue};

use crate::input::{self, ListFormat};
use crate::report::ProgressMode;

/// Requests per second: `0.2`, `5`, `30/m`, `100/h`, `unlimited`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub Option<f64>);

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        if text == "unlimited" {
            return Ok(Rate(None));
        }
        let wrong = || {
            format!(
                "`{text}` is no rate: write requests per second above 0, such as 0.2, 5, 30/m, or `unlimited`"
            )
        };
        let (number, seconds) = match text.split_once('/') {
            None | Some((_, "s")) => (text.trim_end_matches("/s"), 1.0),
            Some((number, "m")) => (number, 60.0),
            Some((number, "h")) => (number, 3600.0),
            Some(_) => return Err(wrong()),
        };
        match number.parse::<f64>().map(|n| n / seconds) {
            Ok(rate) if rate.is_finite() && rate >= 1e-6 => Ok(Rate(Some(rate))),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => write!(f, "{rate}"),
            None => f.write_str("unlimited"),
        }
    }
}

/// A length of time: `10s`, `1m30s`, `250ms`; a bare number is seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let seconds = text
            .parse::<f64>()
            .ok()
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        match seconds.or_else(|| humantime::parse_duration(text).ok()) {
            Some(span) if !span.is_zero() => Ok(Span(span)),
            _ => Err(format!(
                "`{text}` is no length of time: write it above 0, such as 10s, 1m30s or 250ms"
            )),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// A number of bytes: `200000`, `1MB`, `256MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        text.parse::<bytesize::ByteSize>()
            .map(|size| Size(size.as_u64()))
            .map_err(|_| format!("`{text}` is no size: write bytes, such as 200000, 1MB or 256MiB"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", bytesize::ByteSize(self.0).display().iec())
    }
}

/// Levels of a probe: `1,2,4,8,16`, ascending from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels(pub Vec<u32>);

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Levels, String> {
        let wrong = || {
            format!(
                "`{text}` are no levels: write numbers that ascend from 1 to at most 1024, such as 1,2,4,8,16"
            )
        };
        let levels: Result<Vec<u32>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        let levels = levels.map_err(|_| wrong())?;
        let ascend = levels.windows(2).all(|pair| pair[0] < pair[1]);
        match (levels.first(), levels.last()) {
            (Some(1), Some(2..=1024)) if ascend => Ok(Levels(levels)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&levels.join(","))
    }
}

/// A request header as `-H` takes it: `Name: value`.
#[derive(Clone, Debug)]
pub struct Header(pub HeaderName, pub HeaderValue);

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Header, String> {
        // The value may be a secret: no message shows it.
        let (name, value) = text
            .split_once(':')
            .ok_or("a header is written 'Name: value'")?;
        let complete = |reason: input::Reason| format!("this entry {reason}");
        let name = input::headers::name(name.trim()).map_err(complete)?;
        let value = input::headers::value(&name, value).map_err(complete)?;
        Ok(Header(name, value))
    }
}

/// Where `--metrics` listens: loopback unless another address is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsAddress(pub SocketAddr);

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        let port = text.strip_prefix("localhost").unwrap_or(text);
        let port = port.strip_prefix(':').unwrap_or(port);
        if let Ok(port) = port.parse::<u16>() {
            return Ok(MetricsAddress((Ipv4Addr::LOCALHOST, port).into()));
        }
        let address = text.parse().map(MetricsAddress);
        address.map_err(|_| {
            "write a port, such as 9090, or an address, such as 10.0.0.1:9090".to_owned()
        })
    }
}

/// Reads a value that may be a secret: clap's own message for a wrong one would show it.
#[derive(Clone)]
pub(super) struct Unshown<T>(pub fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Unshown<T> {
    type Value = T;

    fn parse_ref(
        &self,
        _: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let flag = arg.and_then(clap::Arg::get_long).unwrap_or_default();
        let text = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        text.and_then(self.0).map_err(|reason| {
            clap::Error::raw(ErrorKind::ValueValidation, format!("--{flag}: {reason}\n"))
        })
    }
}

/// Reads a whole number of this range.
pub(super) fn whole<T: FromStr + PartialOrd + fmt::Display>(
    range: impl RangeBounds<T> + Clone,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => {
            let from = match range.start_bound() {
                Bound::Included(least) => format!(" from {least}"),
                _ => String::new(),
            };
            let to = match range.end_bound() {
                Bound::Included(most) => format!(" to {most}"),
                _ => String::new(),
            };
            Err(format!("write a whole number{from}{to}"))
        }
    }
}

/// Reads the form of a list.
pub(super) fn list_format() -> impl TypedValueParser<Value = ListFormat> {
    PossibleValuesParser::new(["text", "csv", "jsonl"]).map(|word| match word.as_str() {
        "csv" => ListFormat::Csv,
        "jsonl" => ListFormat::Jsonl,
        _ => ListFormat::Text,
    })
}

/// Reads `--progress`.
pub(super) fn progress_mode() -> impl TypedValueParser<Value = ProgressMode> {
    PossibleValuesParser::new(["auto", "always", "never"]).map(|word| match word.as_str() {
        "always" => ProgressMode::Always,
        "never" => ProgressMode::Never,
        _ => ProgressMode::Auto,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_per_second_minute_or_hour() {
        let rate = |text: &str| text.parse::<Rate>().map(|r| r.0);
        assert_eq!(rate("5"), Ok(Some(5.0)));
        assert_eq!(rate("0.2"), Ok(Some(0.2)));
        assert_eq!(rate("30/m"), Ok(Some(0.5)));
        assert_eq!(rate("2/s"), Ok(Some(2.0)));
        assert_eq!(rate("unlimited"), Ok(None));
        for text in ["0", "-1", "NaN", "inf", "", "5/x", "fast", "0/m", "1e-9"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_take_units_or_plain_seconds() {
        let span = |text: &str| text.parse::<Span>().map(|s| s.0.as_millis());
        assert_eq!(span("250ms"), Ok(250));
        assert_eq!(span("1m30s"), Ok(90_000));
        assert_eq!(span("2.5"), Ok(2_500));
        for text in ["0", "-1s", "soon", "", "0s", "1e300"] {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_take_decimal_and_binary_units() {
        let size = |text: &str| text.parse::<Size>().map(|s| s.0);
        assert_eq!(size("200000"), Ok(200_000));
        assert_eq!(size("1MB"), Ok(1_000_000));
        assert_eq!(size("256MiB"), Ok(256 << 20));
        assert_eq!(size("0"), Ok(0));
        assert!(size("big").is_err());
    }

    #[test]
    fn whole_numbers_are_told_with_their_range() {
        assert_eq!(whole(1u32..)("3"), Ok(3));
        let said = |text: &str| whole(1u16..=9)(text).unwrap_err();
        for text in ["x", "", "0", "10", "-1", "1.5", "70000"] {
            assert_eq!(said(text), "write a whole number from 1 to 9", "{text}");
        }
        assert_eq!(
            whole(0u32..)("x").unwrap_err(),
            "write a whole number from 0"
        );
    }

    #[test]
    fn levels_ascend_from_one() {
        let levels = |text: &str| text.parse::<Levels>().map(|l| l.0);
        assert_eq!(levels("1,2, 4"), Ok(vec![1, 2, 4]));
        for text in ["", "1", "2,4", "1,4,2", "1,1,2", "0,1", "1,2048", "1,x"] {
            assert!(levels(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_are_on_loopback_unless_another_address_is_written_out() {
        let at = |text: &str| text.parse::<MetricsAddress>().map(|a| a.0.to_string());
        for text in ["9090", ":9090", "localhost:9090", "127.0.0.1:9090"] {
            assert_eq!(at(text).as_deref(), Ok("127.0.0.1:9090"), "{text}");
        }
        assert_eq!(at("0.0.0.0:1").as_deref(), Ok("0.0.0.0:1"));
        assert_eq!(at("[::1]:1").as_deref(), Ok("[::1]:1"));
        for text in ["", "localhost", "10.0.0.1", "a.test:1", "70000", "::1"] {
            assert!(at(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_header_s_value_is_never_shown() {
        assert!("X-Key: abc".parse::<Header>().is_ok());
        let message = "X-Key: s3cret\u{1}".parse::<Header>().unwrap_err();
        assert!(!message.contains("s3cret"));
        for text in ["nothing", "Host: x", "Content-Length: 5", "a b: c"] {
            assert!(text.parse::<Header>().is_err(), "{text}");
        }
    }
}
