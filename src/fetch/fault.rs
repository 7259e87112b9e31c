//! From the errors of tokio, rustls and hyper to the facts of an attempt.
//!
//! Every error is named by what was seen, not by whose fault it is. Texts from the peer
//! (reason phrases, header values) stay out of details: an exit may echo a login in them.

use std::error::Error;
use std::io;

use rustix::io::Errno;

use crate::model::{Fault, FaultKind, Phase};

/// Longest detail taken from a library's error, in characters.
const MAX_DETAIL: usize = 300;

/// A fault of `phase`.
pub(super) fn fault(phase: Phase, kind: FaultKind, detail: impl Into<String>) -> Fault {
    Fault {
        phase,
        kind,
        detail: detail.into(),
    }
}

/// What an I/O error in `phase` was.
pub(super) fn of_io(phase: Phase, err: &io::Error) -> Fault {
    if let Some(tls) = err.get_ref().and_then(|inner| inner.downcast_ref()) {
        let with = if phase == Phase::ExitTls {
            "TLS with the exit"
        } else {
            "TLS"
        };
        return fault(phase, of_tls(tls), format!("{with}: {}", one_line(tls)));
    }
    let kind = match err.kind() {
        _ if is_local(err) => FaultKind::LocalLimit,
        io::ErrorKind::ConnectionRefused => FaultKind::Refused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::BrokenPipe => FaultKind::Reset,
        io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero => FaultKind::Eof,
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => FaultKind::Protocol,
        _ if phase <= Phase::Dial => FaultKind::Unreachable,
        // What the kernel gives up on an open connection: retransmissions, no route any more.
        _ => FaultKind::Reset,
    };
    fault(phase, kind, one_line(err))
}

/// This machine has run out of something; the peer has nothing to do with it.
fn is_local(err: &io::Error) -> bool {
    const LOCAL: [Errno; 5] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::ADDRNOTAVAIL,
        Errno::NOBUFS,
        Errno::NOMEM,
    ];
    let errno = err.raw_os_error();
    errno.is_some_and(|code| LOCAL.iter().any(|local| local.raw_os_error() == code))
}

fn of_tls(err: &rustls::Error) -> FaultKind {
    match err {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            FaultKind::Certificate
        }
        rustls::Error::AlertReceived(_) => FaultKind::TlsAlert,
        _ => FaultKind::Protocol,
    }
}

/// What kept a complete head from coming.
pub(super) fn of_head(err: &hyper::Error) -> Fault {
    let at = |kind, detail: &str| fault(Phase::Head, kind, detail);
    if let Some(io) = io_cause(err) {
        return of_io(Phase::Head, io);
    }
    if err.is_parse_too_large() {
        return at(FaultKind::HeadTooLarge, "the response head is too large");
    }
    if err.is_parse() {
        return at(
            FaultKind::Protocol,
            &format!("not an HTTP answer: {}", one_line(err)),
        );
    }
    // Canceled with another error of hyper's inside: the connection ended before the request
    // was sent, by bytes that nobody asked for or by its close.
    let before = err
        .source()
        .and_then(|it| it.downcast_ref::<hyper::Error>());
    if err.is_canceled() && before.is_some_and(|it| !it.is_incomplete_message()) {
        return at(
            FaultKind::Protocol,
            "not an HTTP answer: the peer spoke before it was asked",
        );
    }
    at(FaultKind::Eof, "the connection was closed before an answer")
}

/// What broke a body of which `got` bytes had come; `of` is the announced length, if any.
pub(super) fn of_body(err: &hyper::Error, got: u64, of: Option<u64>) -> Fault {
    let at = |kind, detail| fault(Phase::Body, kind, detail);
    match (io_cause(err), of) {
        (Some(io), _) if io.kind() != io::ErrorKind::UnexpectedEof => {
            let Fault { kind, detail, .. } = of_io(Phase::Body, io);
            at(kind, format!("{detail}, after {got} body bytes"))
        }
        (_, Some(of)) => at(FaultKind::Truncated, format!("got {got} of {of} bytes")),
        (_, None) => at(
            FaultKind::Truncated,
            format!("got {got} bytes in chunks, but not the last chunk"),
        ),
    }
}

fn io_cause(err: &hyper::Error) -> Option<&io::Error> {
    let mut cause = err.source();
    while let Some(err) = cause {
        if let Some(io) = err.downcast_ref() {
            return Some(io);
        }
        cause = err.source();
    }
    None
}

/// An error's text as a detail: one line, bounded.
pub(super) fn one_line(err: &dyn Error) -> String {
    let text = err.to_string();
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_DETAIL)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(phase: Phase, errno: Errno) -> FaultKind {
        let err = io::Error::from_raw_os_error(errno.raw_os_error());
        of_io(phase, &err).kind
    }

    #[test]
    fn what_this_machine_lacks_is_told_from_what_the_peer_did() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::ADDRNOTAVAIL] {
            assert_eq!(kind(Phase::Dial, errno), FaultKind::LocalLimit);
        }
        assert_eq!(kind(Phase::Dial, Errno::CONNREFUSED), FaultKind::Refused);
        assert_eq!(
            kind(Phase::Dial, Errno::HOSTUNREACH),
            FaultKind::Unreachable
        );
        assert_eq!(kind(Phase::Dial, Errno::TIMEDOUT), FaultKind::Unreachable);
        assert_eq!(kind(Phase::Handshake, Errno::CONNRESET), FaultKind::Reset);
        assert_eq!(kind(Phase::Head, Errno::PIPE), FaultKind::Reset);
        assert_eq!(kind(Phase::Body, Errno::TIMEDOUT), FaultKind::Reset);
    }

    #[test]
    fn tls_errors_are_certificate_alert_or_protocol() {
        let kind = |err: rustls::Error| {
            let err = io::Error::new(io::ErrorKind::InvalidData, err);
            of_io(Phase::OriginTls, &err).kind
        };
        let expired = rustls::CertificateError::Expired;
        assert_eq!(kind(expired.into()), FaultKind::Certificate);
        let alert = rustls::AlertDescription::HandshakeFailure;
        assert_eq!(
            kind(rustls::Error::AlertReceived(alert)),
            FaultKind::TlsAlert
        );
        assert_eq!(kind(rustls::Error::DecryptError), FaultKind::Protocol);
    }

    #[test]
    fn details_are_one_bounded_line() {
        let err = io::Error::other("a\nb".repeat(400));
        let line = one_line(&err);
        assert!(!line.contains('\n') && line.chars().count() == MAX_DETAIL);
    }
}
