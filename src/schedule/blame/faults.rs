//! The rows of the blame table for attempts in which something went wrong, phase by phase.

use crate::model::{Attempt, Blame, Fault, FaultKind, Head, Phase};

use super::super::health::Reason;
use super::super::proxy_error::ProxyError;
use super::{
    CONGESTED, EXIT, Echo, ExitSign, Judgement, LOCAL, OriginSign, Others, Retry, Seen, TOO_MUCH,
    TlsSeen, UNCLEAR, congestion, credentials, pair_refusal, verdict,
};

/// Judges an attempt that ended in `fault`.
pub(super) fn judge(fault: &Fault, attempt: &Attempt, seen: &Seen) -> Judgement {
    use FaultKind as F;
    match fault.kind {
        F::Cancelled | F::LocalLimit => return LOCAL,
        F::Disk => {
            return verdict(
                Blame::Local,
                ExitSign::Neutral,
                OriginSign::Neutral,
                Retry::No,
            );
        }
        F::BadRequest | F::HostTooLong => {
            return verdict(
                Blame::Job,
                ExitSign::Neutral,
                OriginSign::Neutral,
                Retry::No,
            );
        }
        F::Credentials => return credentials(seen),
        F::Timeout | F::Deadline | F::NoAddress | F::Refused | F::Reset | F::Unreachable => {}
        F::Eof | F::Protocol | F::HeadTooLarge | F::ConnectStatus(_) | F::SocksReply(_) => {}
        F::Certificate | F::TlsAlert | F::Truncated | F::TooLarge | F::Decode => {}
    }
    match fault.phase {
        Phase::Resolve | Phase::ExitTls => EXIT,
        Phase::Dial if fault.kind == F::Reset && seen.in_flight > 1 => CONGESTED,
        Phase::Dial => EXIT,
        Phase::Handshake => handshake(fault.kind, attempt.refusal.as_ref(), seen),
        Phase::OriginTls => origin_tls(fault.kind, seen),
        Phase::Head => head_fault(fault.kind, seen),
        Phase::Body => body(fault.kind),
    }
}

fn handshake(kind: FaultKind, refusal: Option<&Head>, seen: &Seen) -> Judgement {
    use FaultKind as F;
    match kind {
        F::ConnectStatus(status) => connect_refused(status, refusal, seen),
        // RFC 1928 §6. General failure, network or host unreachable, refused, TTL expired.
        F::SocksReply(1 | 3 | 4 | 5 | 6) => UNCLEAR,
        // Not allowed by the ruleset; address type not supported: other targets may pass.
        F::SocksReply(2 | 8) => pair_refusal(seen),
        // Command not supported: it tunnels for nobody.
        F::SocksReply(7) => EXIT,
        F::SocksReply(_) => UNCLEAR,
        // The exit may be waiting for an origin that does not answer.
        F::Timeout | F::Deadline | F::Eof | F::Reset => UNCLEAR,
        // It spoke, and not its protocol; or the connection never worked.
        F::Protocol | F::HeadTooLarge | F::NoAddress | F::Refused | F::Unreachable => EXIT,
        F::Certificate | F::TlsAlert => EXIT,
        F::Credentials => credentials(seen),
        F::Truncated | F::TooLarge | F::Decode => EXIT,
        F::HostTooLong | F::BadRequest | F::LocalLimit | F::Disk | F::Cancelled => LOCAL,
    }
}

/// A non-2xx answer to CONNECT is never the origin's (RFC 9110 §9.3.6).
fn connect_refused(status: u16, refusal: Option<&Head>, seen: &Seen) -> Judgement {
    let says = refusal.and_then(|head| ProxyError::read(&head.headers));
    match (status, says) {
        (407, _) => credentials(seen),
        (429, _) | (503, Some(ProxyError::LimitReached)) => congestion(seen),
        (403, _) | (_, Some(ProxyError::Denied)) => pair_refusal(seen),
        // 500 is what tinyproxy answers for a target that it cannot reach.
        (500 | 502 | 503 | 504, None | Some(ProxyError::Unreachable)) => UNCLEAR,
        (_, Some(ProxyError::Unreachable)) => UNCLEAR,
        (_, Some(ProxyError::LimitReached)) => congestion(seen),
        (_, Some(ProxyError::Broken) | None) => EXIT,
    }
}

fn origin_tls(kind: FaultKind, seen: &Seen) -> Judgement {
    use FaultKind as F;
    match kind {
        F::Certificate => certificate(seen),
        F::TlsAlert => verdict(
            Blame::Origin,
            ExitSign::Good,
            OriginSign::Fault,
            Retry::Counted,
        ),
        F::Timeout | F::Deadline | F::Eof | F::Reset | F::Protocol => UNCLEAR,
        F::NoAddress | F::Refused | F::Unreachable | F::HeadTooLarge => UNCLEAR,
        F::ConnectStatus(_) | F::SocksReply(_) | F::Credentials => UNCLEAR,
        F::Truncated | F::TooLarge | F::Decode => UNCLEAR,
        F::HostTooLong | F::BadRequest | F::LocalLimit | F::Disk | F::Cancelled => LOCAL,
    }
}

/// An invalid certificate is never accepted; whose it is shows through another exit.
fn certificate(seen: &Seen) -> Judgement {
    match (seen.tls, seen.echo) {
        (TlsSeen::OnlyElsewhere, _) => Judgement {
            exit: ExitSign::Evict(Reason::Intercepts),
            ..EXIT
        },
        (TlsSeen::Elsewhere, _) => EXIT,
        (TlsSeen::Unknown, Echo::OtherExit) => verdict(
            Blame::Origin,
            ExitSign::Neutral,
            OriginSign::Fault,
            Retry::No,
        ),
        // With nobody else to ask, asking again shows the same certificate.
        (TlsSeen::Unknown, Echo::None | Echo::SameExit) if seen.others == Others::None => {
            Judgement {
                retry: Retry::No,
                ..UNCLEAR
            }
        }
        (TlsSeen::Unknown, Echo::None | Echo::SameExit) => UNCLEAR,
    }
}

fn head_fault(kind: FaultKind, seen: &Seen) -> Judgement {
    use FaultKind as F;
    match kind {
        // Asking a second time is worth it, a third time is not: a head is large by design.
        F::HeadTooLarge if seen.echo != Echo::None => {
            verdict(Blame::Origin, ExitSign::Good, OriginSign::Clean, Retry::No)
        }
        F::HeadTooLarge => UNCLEAR,
        F::Timeout | F::Deadline | F::Eof | F::Reset | F::Protocol => UNCLEAR,
        F::NoAddress | F::Refused | F::Unreachable | F::Certificate | F::TlsAlert => UNCLEAR,
        F::ConnectStatus(_) | F::SocksReply(_) | F::Credentials => UNCLEAR,
        F::TooLarge => TOO_MUCH,
        F::Truncated | F::Decode => UNCLEAR,
        F::HostTooLong | F::BadRequest | F::LocalLimit | F::Disk | F::Cancelled => LOCAL,
    }
}

fn body(kind: FaultKind) -> Judgement {
    use FaultKind as F;
    match kind {
        F::TooLarge | F::Decode => TOO_MUCH,
        F::Timeout | F::Deadline | F::Eof | F::Reset | F::Protocol | F::Truncated => UNCLEAR,
        F::NoAddress | F::Refused | F::Unreachable | F::Certificate | F::TlsAlert => UNCLEAR,
        F::ConnectStatus(_) | F::SocksReply(_) | F::Credentials | F::HeadTooLarge => UNCLEAR,
        F::HostTooLong | F::BadRequest | F::LocalLimit | F::Disk | F::Cancelled => LOCAL,
    }
}
