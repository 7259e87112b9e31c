//! What can go wrong with an attempt in a simulation, when, and how often.
//!
//! Owns the words that scenario files use (`dial refused`, `handshake 502`, `answer 503`) and
//! their meaning as facts of an attempt. Leaves to `fate` which of several happens, and to the
//! scheduler's blame table whose fault it is.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use rand::{Rng, RngExt};
use serde::Deserialize;
use serde::de::Error;

use super::span::Span;
use crate::model::{FaultKind, Phase, Time};

/// One kind of trouble of an exit or an origin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// What happens.
    pub what: What,
    /// To which part of the attempts, 0 to 1.
    #[serde(default = "all", deserialize_with = "share")]
    pub share: f64,
    /// Not before this instant.
    #[serde(default)]
    pub from: Span,
    /// Not from this instant on.
    #[serde(default)]
    pub until: Option<Span>,
    /// Again in each such span of time, counted from `from` …
    #[serde(default)]
    pub every: Option<Span>,
    /// … during its first part of this length. The whole of it if absent.
    #[serde(default)]
    pub lasting: Option<Span>,
    /// How long an attempt takes to meet it; else what is usual for it.
    #[serde(default)]
    pub after: Option<Span>,
    /// Headers of the answer, or of the refusal of a tunnel.
    #[serde(default, deserialize_with = "headers")]
    pub headers: HeaderMap,
}

/// What happens to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It fails in a phase.
    Fault(Phase, FaultKind),
    /// A whole answer with this status.
    Answer(u16),
    /// Our side cuts it short.
    Cancelled,
}

impl Trouble {
    /// Whether it is about at `now`.
    pub(super) fn is_on(&self, now: Time) -> bool {
        let now = Duration::from_nanos(now.as_nanos());
        if now < self.from.0 || self.until.is_some_and(|until| now >= until.0) {
            return false;
        }
        let (Some(every), Some(lasting)) = (self.every, self.lasting) else {
            return true;
        };
        let since = (now - self.from.0).as_nanos();
        since % every.0.as_nanos().max(1) < lasting.0.as_nanos()
    }

    /// Whether it strikes an attempt that starts at `now`.
    pub(super) fn strikes(&self, now: Time, rng: &mut impl Rng) -> bool {
        self.is_on(now) && (self.share >= 1.0 || rng.random::<f64>() < self.share)
    }
}

impl What {
    /// The phase in which it shows; an answer shows after all that comes before the body.
    pub(super) fn phase(self) -> Phase {
        match self {
            What::Fault(phase, _) => phase,
            What::Answer(_) => Phase::Head,
            What::Cancelled => Phase::Resolve,
        }
    }

    /// Whether the request has reached the origin by then.
    pub(super) fn is_delivered(self) -> bool {
        match self {
            What::Fault(phase, _) => phase > Phase::OriginTls,
            What::Answer(_) => true,
            What::Cancelled => false,
        }
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<What, String> {
        let wrong = || {
            format!(
                "`{text}` is nothing that can happen: write a phase (resolve, dial, exit-tls, \
                 handshake, tls, head, body) and what happens in it (timeout, refused, reset, eof, \
                 unreachable, garbage, 407, a CONNECT status, socks and its code, certificate, alert, \
                 truncated, too-large, decode), or `answer` and a status, or `cancelled`"
            )
        };
        let mut words = text.split(' ');
        let (phase, what) = match (words.next(), words.next()) {
            (Some("cancelled"), None) => return Ok(What::Cancelled),
            (Some("answer"), Some(code)) => {
                let code = code.parse().ok().filter(|code| (100..=999).contains(code));
                return code.map(What::Answer).ok_or_else(wrong);
            }
            (Some(phase), Some(what)) => (phase_of(phase).ok_or_else(wrong)?, what),
            _ => return Err(wrong()),
        };
        let code = words.next();
        let kind = kind_of(phase, what, code).ok_or_else(wrong)?;
        Ok(What::Fault(phase, kind))
    }
}

impl<'de> Deserialize<'de> for What {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<What, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

fn phase_of(word: &str) -> Option<Phase> {
    Some(match word {
        "resolve" => Phase::Resolve,
        "dial" => Phase::Dial,
        "exit-tls" => Phase::ExitTls,
        "handshake" => Phase::Handshake,
        "tls" => Phase::OriginTls,
        "head" => Phase::Head,
        "body" => Phase::Body,
        _ => return None,
    })
}

fn kind_of(phase: Phase, word: &str, code: Option<&str>) -> Option<FaultKind> {
    Some(match (phase, word, code) {
        (Phase::Handshake, "socks", Some(code)) => {
            FaultKind::SocksReply(code.parse().ok().filter(|&code: &u8| code > 0)?)
        }
        (_, _, Some(_)) => return None,
        (_, "timeout", _) => FaultKind::Timeout,
        (_, "deadline", _) => FaultKind::Deadline,
        (Phase::Resolve, "unreachable", _) => FaultKind::NoAddress,
        (_, "unreachable", _) => FaultKind::Unreachable,
        (_, "refused", _) => FaultKind::Refused,
        (_, "reset", _) => FaultKind::Reset,
        (_, "eof", _) => FaultKind::Eof,
        (_, "garbage", _) => FaultKind::Protocol,
        (Phase::Head, "too-large", _) => FaultKind::HeadTooLarge,
        (Phase::Body, "too-large", _) => FaultKind::TooLarge,
        (Phase::Body, "truncated", _) => FaultKind::Truncated,
        (Phase::Body, "decode", _) => FaultKind::Decode,
        (Phase::ExitTls | Phase::OriginTls, "certificate", _) => FaultKind::Certificate,
        (Phase::ExitTls | Phase::OriginTls, "alert", _) => FaultKind::TlsAlert,
        (Phase::Handshake, "407", _) => FaultKind::Credentials,
        (Phase::Handshake, status, _) => {
            let status = status.parse().ok();
            FaultKind::ConnectStatus(status.filter(|code| (300..=999).contains(code))?)
        }
        _ => return None,
    })
}

fn all() -> f64 {
    1.0
}

fn share<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(D::Error::custom("a share lies between 0 and 1"))
}

fn headers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<HeaderMap, D::Error> {
    let pairs = BTreeMap::<String, String>::deserialize(deserializer)?;
    let header = |(name, value): (&String, &String)| {
        let name = HeaderName::try_from(name).map_err(D::Error::custom)?;
        let value = HeaderValue::try_from(value).map_err(D::Error::custom)?;
        Ok((name, value))
    };
    pairs.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_a_phase_and_what_happens_in_it() {
        let fault = |text: &str| match text.parse() {
            Ok(What::Fault(phase, kind)) => (phase, kind),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(fault("dial refused"), (Phase::Dial, FaultKind::Refused));
        let connect = (Phase::Handshake, FaultKind::ConnectStatus(502));
        assert_eq!(fault("handshake 502"), connect);
        let socks = (Phase::Handshake, FaultKind::SocksReply(5));
        assert_eq!(fault("handshake socks 5"), socks);
        assert_eq!(
            fault("handshake 407"),
            (Phase::Handshake, FaultKind::Credentials)
        );
        assert_eq!("answer 503".parse(), Ok(What::Answer(503)));
        assert_eq!("cancelled".parse(), Ok(What::Cancelled));
        for wrong in [
            "",
            "dial",
            "dial 502",
            "handshake 200",
            "answer 1",
            "socks 5",
            "head sideways",
            "handshake socks 0",
        ] {
            assert!(wrong.parse::<What>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn troubles_come_and_go_by_the_hour() {
        let text = r#"{"what":"dial refused","from":10,"until":100,"every":30,"lasting":5}"#;
        let trouble: Trouble = serde_json::from_str(text).unwrap();
        for (at, on) in [
            (9, false),
            (10, true),
            (14, true),
            (15, false),
            (40, true),
            (45, false),
            (100, false),
        ] {
            assert_eq!(trouble.is_on(Time::from_secs(at)), on, "{at} s");
        }
    }
}
