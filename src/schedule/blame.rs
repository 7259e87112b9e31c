//! Whose fault: one attempt's facts turned into a judgement.
//!
//! Owns the judgement, what has to be known for it, and the table: `faults` has the rows of what
//! went wrong in which phase, `answers` those of whole answers. Leaves to `split` how much of an
//! unclear fault the exit carries, to `health`, `breaker` and the budget what a charge does,
//! and to `retry` whether a wanted retry is granted. Every kind of fault is named in a match
//! without a wildcard over kinds, so a new kind cannot slip through unjudged.
//!
//! The judgement has one opinion per party (exit, origin, job) instead of a score: what is
//! bad for one says nothing about the other, and "cannot tell" is a value of its own.

mod answers;
mod faults;

use crate::model::{Attempt, Blame, Codes, ErrorKind, FaultKind, Phase, Route};

use super::health::Reason;

/// An exit that refuses to reach this many origins is at fault itself.
const REFUSING_ORIGINS: u32 = 4;
/// This many other exits with clean answers make a 429 or 403 the pair's affair.
const CLEAN_ELSEWHERE: u32 = 3;

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
    /// Other exits get 429s from this origin as well, so one is about all of us.
    pub throttles_all: bool,
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
    /// It can never be used, and why.
    Evict(Reason),
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
        if attempt.is_not_modified() {
            return None;
        }
        let status = attempt.status();
        let refused = |code: u16| !accept.contains(code) || answers::doubtful(attempt.route, code);
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
        (Some(fault), _) => faults::judge(fault, attempt, seen),
        // Nobody but the site knows its validators: this one it wrote itself.
        (None, Some(_)) if attempt.is_not_modified() => GOOD,
        (None, Some(head)) => answers::judge(head, attempt.route, accept, seen),
        // Neither fault nor head: the fetch ended without facts, which is our own failure.
        (None, None) => LOCAL,
    }
}

fn credentials(seen: &Seen) -> Judgement {
    if seen.credentials_worked {
        return EXIT;
    }
    Judgement {
        exit: ExitSign::Evict(Reason::CredentialsRefused),
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
