//! Whose fault: one attempt's facts turned into a judgement (ALGORITHMS section 4).
//!
//! Owns the table of phases and what happened in them. Leaves to `split` how much of an
//! unclear fault the exit carries, to `health`, `breaker` and the budget what a charge does,
//! and to `retry` whether a wanted retry is granted. Every kind of fault is named in a match
//! without a wildcard over kinds, so a new kind cannot slip through unjudged.
//!
//! The judgement has one opinion per party (exit, origin, job) instead of a score: what is
//! bad for one says nothing about the other, and "cannot tell" is a value of its own.

use http::header::RETRY_AFTER;

use crate::model::{Attempt, Blame, Codes, ErrorKind, Fault, FaultKind, Head, Phase, Route};

use super::proxy_error::ProxyError;

/// An exit that refuses to reach this many origins is at fault itself.
const REFUSING_ORIGINS: u32 = 4;
/// This many other exits with clean answers make a 429 or 403 the pair's affair.
const CLEAN_ELSEWHERE: u32 = 3;

/// Why an exit that shows certificates of its own is evicted.
pub const INTERCEPTS: &str = "TLS interception: its own certificate in the origin's place";

/// What is known beyond the attempt itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Attempts in flight through the exit, this one included.
    pub in_flight: u32,
    /// The exit's credentials have been taken at least once, by any exit that shares them.
    pub credentials_worked: bool,
    /// Origins the exit has refused to reach so far, this one included.
    pub refusing_origins: u32,
    /// How many other exits had clean answers from this origin in the last minute.
    pub clean_elsewhere: u32,
    /// An earlier attempt of this job ended with the same [`Symptom`].
    pub echo: Echo,
    /// What is known about TLS, for an invalid certificate.
    pub tls: TlsSeen,
    /// Whether a second opinion can be had.
    pub others: Others,
}

/// Whether the job met the same symptom before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// Not yet.
    #[default]
    None,
    /// Through the same exit.
    SameExit,
    /// Through another exit.
    OtherExit,
}

/// Whether other exits than this one can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// At least one is not evicted.
    #[default]
    Some,
    /// This is the only exit left.
    None,
}

/// What is known about the certificate in question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsSeen {
    /// Nothing that helps.
    #[default]
    Unknown,
    /// Another exit had a valid certificate from this origin, and this exit never had one
    /// from any: it intercepts.
    OnlyElsewhere,
    /// Another exit had a valid certificate from this origin, and this exit had some from
    /// others: it does not intercept, but is to blame for this one.
    Elsewhere,
}

/// What the attempt says about its exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitSign {
    /// An answer of the origin came through.
    Good,
    /// Nothing.
    Neutral,
    /// Its fault.
    Fault,
    /// A fault that may be the origin's as well; `split` weighs it.
    Unclear,
    /// A refusal because too much is in flight through it.
    Congested,
    /// It can never be used; the reason for people.
    Evict(&'static str),
}

/// What the attempt says about its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginSign {
    /// It works: an accepted answer, or a refusal that is about this URL alone.
    Clean,
    /// It asks for less (429): alive, but neither good nor at fault.
    Throttled,
    /// Its fault.
    Fault,
    /// A fault that may be the exit's as well.
    Unclear,
    /// Nothing; it was not reached, or the matter is not its own.
    Neutral,
}

/// Which retry would help. `retry` grants it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// None: it is over, well or badly.
    No,
    /// At once through another exit, not counted against `--retries`.
    Free,
    /// Through another exit after a back-off, counted.
    Counted,
    /// As if it had not happened: ours, so no try is used up.
    Uncharged,
}

/// The verdict on one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whose fault; `None`: a whole answer with an accepted status.
    pub blame: Option<Blame>,
    /// For the exit's health.
    pub exit: ExitSign,
    /// For the origin's breaker and budget.
    pub origin: OriginSign,
    /// For the job.
    pub retry: Retry,
}

/// How an attempt failed, for comparing two attempts of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symptom {
    kind: ErrorKind,
    status: Option<u16>,
}

impl Symptom {
    /// An invalid certificate.
    pub fn is_certificate(self) -> bool {
        self.kind == ErrorKind::Certificate
    }

    /// `None` for an attempt without fault whose status is accepted and beyond doubt.
    pub fn of(attempt: &Attempt, accept: &Codes) -> Option<Symptom> {
        let status = attempt.status();
        let refused = |code: u16| !accept.contains(code) || doubtful(attempt.route, code);
        match &attempt.fault {
            Some(fault) => Some(Symptom {
                kind: ErrorKind::of(fault),
                status: attempt.refusal.as_ref().map(|head| head.status),
            }),
            None => status.filter(|&code| refused(code)).map(|code| Symptom {
                kind: ErrorKind::Status,
                status: Some(code),
            }),
        }
    }
}

/// Whether the exit itself stayed mute: nothing of use came from it, neither a tunnel nor
/// an answer. Through an exit that has never worked this says nothing about the origin.
pub fn is_mute(attempt: &Attempt) -> bool {
    attempt.fault.as_ref().is_some_and(|fault| {
        let own_words = match attempt.route {
            Route::Forward => fault.phase == Phase::Handshake || fault.phase == Phase::Head,
            Route::Tunnel => fault.phase == Phase::Handshake,
        };
        let spoke = matches!(
            fault.kind,
            FaultKind::ConnectStatus(_) | FaultKind::SocksReply(_) | FaultKind::HeadTooLarge
        );
        own_words && !spoke
    })
}

/// Judges one attempt. A redirect that will be followed is judged like any answer: its
/// status is the origin's, so only `blame` and `retry` are to be ignored for it.
pub fn judge(attempt: &Attempt, accept: &Codes, seen: &Seen) -> Judgement {
    match (&attempt.fault, &attempt.head) {
        (Some(fault), _) => judge_fault(fault, attempt, seen),
        (None, Some(head)) => judge_answer(head, attempt.route, accept, seen),
        // Neither fault nor head: the fetch ended without facts, which is our own failure.
        (None, None) => LOCAL,
    }
}

fn judge_fault(fault: &Fault, attempt: &Attempt, seen: &Seen) -> Judgement {
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
            exit: ExitSign::Evict(INTERCEPTS),
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

fn judge_answer(head: &Head, route: Route, accept: &Codes, seen: &Seen) -> Judgement {
    let status = head.status;
    if route == Route::Forward {
        if status == 407 {
            return credentials(seen);
        }
        if status >= 400
            && let Some(error) = ProxyError::read(&head.headers)
        {
            return proxys_own_answer(error, seen);
        }
        let believed = seen.echo == Echo::OtherExit || head.headers.contains_key(RETRY_AFTER);
        if doubtful(route, status) && !believed {
            return second_opinion(status, accept, seen);
        }
    }
    origins_answer(status, accept, seen)
}

/// Whether a proxy might have given this answer in the origin's place.
fn doubtful(route: Route, status: u16) -> bool {
    route == Route::Forward && matches!(status, 401 | 403 | 500..=599)
}

/// A bare answer that may be the proxy's own is believed when a second exit gives it too,
/// or when there is no second exit to ask.
fn second_opinion(status: u16, accept: &Codes, seen: &Seen) -> Judgement {
    let alone = seen.others == Others::None;
    match status {
        500..=599 if !accept.contains(status) => UNCLEAR,
        _ if alone => origins_answer(status, accept, seen),
        // Not counted: with `--retries 0` the answer still has to be checked.
        _ => Judgement {
            retry: Retry::Free,
            ..UNCLEAR
        },
    }
}

/// An error that carries a proxy's mark: the origin did not write it.
fn proxys_own_answer(error: ProxyError, seen: &Seen) -> Judgement {
    match error {
        ProxyError::Denied => pair_refusal(seen),
        ProxyError::LimitReached => congestion(seen),
        ProxyError::Unreachable => UNCLEAR,
        ProxyError::Broken => EXIT,
    }
}

fn origins_answer(status: u16, accept: &Codes, seen: &Seen) -> Judgement {
    if accept.contains(status) {
        return GOOD;
    }
    let lonely = seen.clean_elsewhere >= CLEAN_ELSEWHERE;
    match status {
        429 | 403 if lonely => verdict(
            Blame::Pair,
            ExitSign::Good,
            OriginSign::Neutral,
            Retry::Free,
        ),
        429 => verdict(
            Blame::Origin,
            ExitSign::Good,
            OriginSign::Throttled,
            Retry::Counted,
        ),
        408 | 425 | 500..=599 => verdict(
            Blame::Origin,
            ExitSign::Good,
            OriginSign::Fault,
            Retry::Counted,
        ),
        _ => verdict(Blame::Origin, ExitSign::Good, OriginSign::Clean, Retry::No),
    }
}

fn credentials(seen: &Seen) -> Judgement {
    if seen.credentials_worked {
        return EXIT;
    }
    Judgement {
        exit: ExitSign::Evict("credentials refused"),
        ..EXIT
    }
}

/// With nothing else in flight there is no load to shed: a plain fault.
fn congestion(seen: &Seen) -> Judgement {
    if seen.in_flight > 1 { CONGESTED } else { EXIT }
}

fn pair_refusal(seen: &Seen) -> Judgement {
    if seen.refusing_origins >= REFUSING_ORIGINS {
        return EXIT;
    }
    verdict(
        Blame::Pair,
        ExitSign::Neutral,
        OriginSign::Neutral,
        Retry::Free,
    )
}

const fn verdict(blame: Blame, exit: ExitSign, origin: OriginSign, retry: Retry) -> Judgement {
    Judgement {
        blame: Some(blame),
        exit,
        origin,
        retry,
    }
}

const GOOD: Judgement = Judgement {
    blame: None,
    exit: ExitSign::Good,
    origin: OriginSign::Clean,
    retry: Retry::No,
};
const EXIT: Judgement = verdict(
    Blame::Exit,
    ExitSign::Fault,
    OriginSign::Neutral,
    Retry::Free,
);
const CONGESTED: Judgement = verdict(
    Blame::Exit,
    ExitSign::Congested,
    OriginSign::Neutral,
    Retry::Free,
);
const UNCLEAR: Judgement = verdict(
    Blame::Unclear,
    ExitSign::Unclear,
    OriginSign::Unclear,
    Retry::Counted,
);
const LOCAL: Judgement = verdict(
    Blame::Local,
    ExitSign::Neutral,
    OriginSign::Neutral,
    Retry::Uncharged,
);
/// The job asks for more than it may take, or for what cannot be decoded.
const TOO_MUCH: Judgement = verdict(Blame::Job, ExitSign::Good, OriginSign::Clean, Retry::No);

#[cfg(test)]
mod tests;
