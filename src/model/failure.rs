//! How a job that is not ok is named: kind and blame, as records show them.

use serde::{Deserialize, Serialize};

use super::{Fault, FaultKind, Phase};

/// Whose fault it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The exit's.
    Exit,
    /// The origin's.
    Origin,
    /// This exit at this origin.
    Pair,
    /// The entry itself: the request or the answer it asks for.
    Job,
    /// This machine's.
    Local,
    /// Cannot be told.
    Unclear,
}

/// Why a job failed or a line was refused: the `error.kind` of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    // A line that cannot be used.
    /// No URL in the entry, or one that cannot be fetched.
    BadUrl,
    /// Something else of the entry cannot be used (method, header, body, row shape).
    BadEntry,
    /// A given id that another URL of the list already has.
    DuplicateId,
    // Reaching the exit.
    /// The exit's name has no address.
    Resolve,
    /// The exit did not take the connection.
    Connect,
    /// Dial, exit TLS or handshake took longer than `--connect-timeout`.
    ConnectTimeout,
    /// TLS with the exit failed.
    ExitTls,
    /// The exit wants other credentials.
    Credentials,
    /// The exit refused or failed to open the tunnel.
    Handshake,
    // At the origin.
    /// TLS with the origin failed.
    Tls,
    /// The origin's certificate is not valid.
    Certificate,
    /// No complete head within `--first-byte-timeout`.
    FirstByteTimeout,
    /// The connection ended before a head came.
    NoAnswer,
    /// The answer is not HTTP.
    NotHttp,
    /// The response head is too large.
    HeadTooLarge,
    /// The status is not among `--accept`.
    Status,
    /// No body byte for `--stall-timeout`.
    StallTimeout,
    /// The body is shorter than announced.
    Truncated,
    /// The connection broke inside the body.
    BodyBroken,
    /// The body is larger than `--max-body`.
    TooLarge,
    /// The content coding does not decode.
    Decode,
    /// The attempt took longer than `--timeout`.
    Timeout,
    /// More redirects than `--max-redirects`, or a circle.
    RedirectLoop,
    /// A 3xx without a usable `Location`.
    BadRedirect,
    // Given up by the scheduler.
    /// The origin asked to wait longer than `--max-pause`, or too often.
    OriginPaused,
    /// Nothing good came from the origin for `--origin-patience`.
    OriginDead,
    /// Too large a share of the origin's requests were retries.
    RetryBudgetSpent,
    /// No exit was usable for `--no-exit-timeout`.
    NoUsableExit,
    // Here.
    /// The request cannot be sent as listed.
    BadRequest,
    /// This machine ran out of something.
    Local,
    /// Writing to disk failed.
    Disk,
    /// Cancelled.
    Cancelled,
}

/// A job's end without success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub kind: ErrorKind,
    /// Whose fault.
    pub blame: Blame,
    /// One line for people, no secret.
    pub detail: String,
}

impl ErrorKind {
    /// The record's name for a fault of an attempt.
    pub fn of(fault: &Fault) -> ErrorKind {
        use FaultKind as F;
        use Phase as P;
        match (fault.kind, fault.phase) {
            (F::Deadline, _) => ErrorKind::Timeout,
            (F::Cancelled, _) => ErrorKind::Cancelled,
            (F::LocalLimit, _) => ErrorKind::Local,
            (F::Disk, _) => ErrorKind::Disk,
            (F::BadRequest | F::HostTooLong, _) => ErrorKind::BadRequest,
            (F::Credentials, _) => ErrorKind::Credentials,
            (F::Timeout, P::Resolve | P::Dial | P::ExitTls | P::Handshake | P::OriginTls) => {
                ErrorKind::ConnectTimeout
            }
            (_, P::Resolve) => ErrorKind::Resolve,
            (_, P::Dial) => ErrorKind::Connect,
            (_, P::ExitTls) => ErrorKind::ExitTls,
            (_, P::Handshake) => ErrorKind::Handshake,
            (F::Certificate, P::OriginTls) => ErrorKind::Certificate,
            (_, P::OriginTls) => ErrorKind::Tls,
            (F::Timeout, P::Head) => ErrorKind::FirstByteTimeout,
            (F::HeadTooLarge, P::Head) => ErrorKind::HeadTooLarge,
            (F::Protocol, P::Head) => ErrorKind::NotHttp,
            (_, P::Head) => ErrorKind::NoAnswer,
            (F::Timeout, P::Body) => ErrorKind::StallTimeout,
            (F::Truncated | F::Eof, P::Body) => ErrorKind::Truncated,
            (F::TooLarge, P::Body) => ErrorKind::TooLarge,
            (F::Decode, P::Body) => ErrorKind::Decode,
            (_, P::Body) => ErrorKind::BodyBroken,
        }
    }

    /// As records write it.
    pub fn as_str(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_of_an_attempt_has_a_kind_of_its_own() {
        let kind = |phase, kind| {
            ErrorKind::of(&Fault {
                phase,
                kind,
                detail: String::new(),
            })
        };
        assert_eq!(
            kind(Phase::Handshake, FaultKind::Timeout),
            ErrorKind::ConnectTimeout
        );
        assert_eq!(
            kind(Phase::Head, FaultKind::Timeout),
            ErrorKind::FirstByteTimeout
        );
        assert_eq!(
            kind(Phase::Body, FaultKind::Timeout),
            ErrorKind::StallTimeout
        );
        assert_eq!(kind(Phase::Body, FaultKind::Deadline), ErrorKind::Timeout);
        assert_eq!(kind(Phase::Body, FaultKind::TooLarge), ErrorKind::TooLarge);
        assert_eq!(ErrorKind::FirstByteTimeout.as_str(), "first_byte_timeout");
    }
}
