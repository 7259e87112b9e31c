//! What becomes of an attempt: drawn once, when it starts.
//!
//! Owns the meeting of an exit, an origin and an instant: of all that goes wrong, what shows
//! first; how long that takes; the facts as `fetch` would report them.

use std::time::Duration;

use rand::Rng;

use super::exits::Exits;
use super::origins::Origins;
use super::scenario::SchemeSpec;
use super::trouble::{Trouble, What};
use crate::model::{Attempt, Fault, FaultKind, Head, Phase, PhaseTimes, Route, Time};

/// When virtual time begins, in seconds since the Unix epoch: any instant would do.
const EPOCH: u64 = 1_700_000_000;

/// How long an attempt may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Dial, handshake and TLS.
    pub connect: Duration,
    /// The response head.
    pub first_byte: Duration,
    /// A gap inside the body.
    pub stall: Duration,
    /// All of it.
    pub total: Duration,
}

/// An attempt's end.
#[derive(Debug)]
pub(super) struct Fate {
    /// How long it takes.
    pub(super) takes: Duration,
    /// The facts; `None`: our side cuts it short.
    pub(super) attempt: Option<Attempt>,
    /// The request reached its origin.
    pub(super) delivered: bool,
    /// When the head of the answer is there, if one comes.
    pub(super) head: Option<Duration>,
}

/// Where and when an attempt is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) exit: usize,
    pub(super) host: usize,
    pub(super) now: Time,
}

/// Draws what becomes of an attempt that `exits` have just been told of.
pub(super) fn draw(
    start: Start,
    exits: &Exits<'_>,
    origins: &mut Origins<'_>,
    limits: &Limits,
    rng: &mut impl Rng,
) -> Fate {
    let Start { exit, host, now } = start;
    let (at, to) = (exits.spec(exit), origins.spec(host));
    let trip = Trip {
        dial: at.dial.0,
        first_byte: (at.latency.draw(rng) + to.latency.draw(rng)).mul_f64(exits.slowdown(exit)),
        body: to.body.0,
        route: match (exits.forwards(exit), to.scheme) {
            (true, SchemeSpec::Http) => Route::Forward,
            (true, SchemeSpec::Https) | (false, _) => Route::Tunnel,
        },
        limits: *limits,
        now,
    };
    let struck = match exits.refusal(exit) {
        Some(what) => Some((what, None)),
        None => first(exits.faults(exit), &to.faults, now, rng),
    };
    let delivered = struck.is_none_or(|(what, _)| what.is_delivered());
    let limited = delivered.then(|| origins.arrive(host, exit, now)).flatten();
    let (takes, attempt) = match (struck, limited) {
        // The exit answers in the origin's place, or loses the answer.
        (Some((what, trouble)), _) => trip.fails(what, trouble),
        (None, Some(head)) => trip.answers(head, 0),
        (None, None) if trip.first_byte > limits.first_byte => {
            trip.fails(What::Fault(Phase::Head, FaultKind::Timeout), None)
        }
        (None, None) => trip.answers(head(200), to.bytes),
    };
    let head = attempt.as_ref().and_then(|attempt| attempt.head.as_ref());
    Fate {
        head: head.map(|_| (trip.dial + trip.first_byte).min(takes)),
        takes: takes.min(limits.total),
        attempt,
        delivered,
    }
}

/// The same attempt, cut while it waited for its head.
pub(super) fn cut(attempt: Option<&Attempt>) -> Attempt {
    let fault = attempt.and_then(|attempt| attempt.fault.as_ref());
    let phase = fault.map_or(Phase::Head, |fault| fault.phase.min(Phase::Head));
    Attempt {
        route: attempt.map_or(Route::Tunnel, |attempt| attempt.route),
        fault: Some(Fault {
            phase,
            kind: FaultKind::Timeout,
            detail: format!("simulated {}: cut", phase.as_str()),
        }),
        ..Attempt::default()
    }
}

/// What shows first of all that strikes.
fn first<'a>(
    exit: &'a [Trouble],
    origin: &'a [Trouble],
    now: Time,
    rng: &mut impl Rng,
) -> Option<(What, Option<&'a Trouble>)> {
    let strikes = exit
        .iter()
        .chain(origin)
        .filter(|trouble| trouble.strikes(now, rng));
    let first = strikes.min_by_key(|trouble| trouble.what.phase())?;
    Some((first.what, Some(first)))
}

/// What an attempt would be if nothing went wrong.
struct Trip {
    dial: Duration,
    first_byte: Duration,
    body: Duration,
    route: Route,
    limits: Limits,
    now: Time,
}

impl Trip {
    fn answers(&self, head: Head, bytes: u64) -> (Duration, Option<Attempt>) {
        let takes = self.dial + self.first_byte + self.body;
        let attempt = Attempt {
            phases: PhaseTimes {
                body: Some(self.body),
                ..self.phases(Phase::Body)
            },
            kept: true,
            head: Some(head),
            wire_bytes: bytes,
            length_verified: true,
            ..self.blank(takes)
        };
        (takes, Some(attempt))
    }

    fn fails(&self, what: What, trouble: Option<&Trouble>) -> (Duration, Option<Attempt>) {
        let after = trouble.and_then(|trouble| trouble.after);
        let headers = trouble
            .map(|trouble| trouble.headers.clone())
            .unwrap_or_default();
        let (phase, kind) = match what {
            What::Cancelled => return (after.map_or(self.first_byte, |after| after.0), None),
            What::Answer(status) => {
                let (takes, attempt) = self.answers(Head { status, headers }, 0);
                return (after.map_or(takes, |after| after.0), attempt);
            }
            What::Fault(phase, kind) => (phase, kind),
        };
        let takes = after.map_or_else(|| self.until(phase, kind), |after| after.0);
        let refusal = match kind {
            FaultKind::ConnectStatus(status) => Some(Head { status, headers }),
            FaultKind::Credentials => Some(Head {
                status: 407,
                headers,
            }),
            _ => None,
        };
        let attempt = Attempt {
            phases: self.phases(phase),
            refusal,
            head: (phase == Phase::Body).then(|| head(200)),
            fault: Some(Fault {
                phase,
                kind,
                detail: format!("simulated {}: {kind:?}", phase.as_str()),
            }),
            ..self.blank(takes)
        };
        (takes, Some(attempt))
    }

    /// How long it takes to meet this.
    fn until(&self, phase: Phase, kind: FaultKind) -> Duration {
        let waits = matches!(kind, FaultKind::Timeout);
        let before = match phase {
            Phase::Resolve | Phase::Dial | Phase::ExitTls => Duration::ZERO,
            Phase::Handshake | Phase::OriginTls | Phase::Head => self.dial,
            Phase::Body => self.dial + self.first_byte,
        };
        match (phase, kind) {
            (_, FaultKind::Deadline) => self.limits.total,
            (Phase::Head, _) if waits => before + self.limits.first_byte,
            (Phase::Body, _) if waits => before + self.limits.stall,
            (_, _) if waits => self.limits.connect,
            (Phase::Head, _) => before + self.first_byte,
            (Phase::Body, _) => before + self.body,
            _ => self.dial,
        }
    }

    /// Times of the phases that were whole before this one.
    fn phases(&self, phase: Phase) -> PhaseTimes {
        PhaseTimes {
            dial: (phase > Phase::Dial).then_some(self.dial),
            first_byte: (phase > Phase::Head).then_some(self.first_byte),
            ..PhaseTimes::default()
        }
    }

    fn blank(&self, takes: Duration) -> Attempt {
        Attempt {
            route: self.route,
            received_unix: EPOCH + ((self.now + takes).as_secs_f64() as u64),
            ..Attempt::default()
        }
    }
}

fn head(status: u16) -> Head {
    Head {
        status,
        headers: http::HeaderMap::new(),
    }
}
