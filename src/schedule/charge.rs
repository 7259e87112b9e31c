//! One attempt's end, charged to its exit, its origin, their pair and the job's earlier exit.
//!
//! Owns the order of the rules: judge the facts (`blame`), weigh what is unclear (`split`), then
//! tell exit (`fleet`), origin ([`OriginBook`]) and pair, and move an earlier charge if this attempt
//! shows whose fault it was. Leaves to the scheduler the lease, the origin's budget, redirects
//! and the retry itself.
//!
//! Invariant: each end is told to the exit exactly once, so a probe's place is always freed.

use std::time::Duration;

use rand::Rng;

use crate::model::{Attempt, Blame, Codes, Phase, Route, Time};

use super::blame::{
    Echo, ExitSign, Judgement, OriginSign, Others, Seen, Symptom, TlsSeen, is_mute, judge,
};
use super::breaker::{Breaker, OriginFault, Reaction};
use super::fleet::{Fleet, Unclear};
use super::health::{Change, Proven, Span, Throttled};
use super::pair::{Over, Pairs};
use super::retry::RetryBudget;
use super::split::{Counter, Share};

/// What the rules keep about one origin.
#[derive(Clone, Debug, Default)]
pub struct OriginBook {
    /// How often attempts at it failed lately.
    pub record: Counter,
    /// Its pauses after failures, and its end.
    pub breaker: Breaker,
    /// Its dealings with single exits.
    pub pairs: Pairs,
    /// How many retries it is worth.
    pub retries: RetryBudget,
}

/// An unclear fault of a job that may turn out to be somebody else's.
#[derive(Clone, Copy, Debug)]
pub struct OpenCharge {
    exit: u32,
    symptom: Symptom,
    /// `None`: it has been moved to the origin.
    share: Option<Share>,
}

/// An attempt that ended.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// Its facts.
    pub attempt: &'a Attempt,
    /// Statuses that count as ok.
    pub accept: &'a Codes,
    /// Whether the target is an `https` one.
    pub over: Over,
    /// The exit it went through.
    pub exit: u32,
    /// The origin it was meant for: any number that tells origins apart.
    pub origin: u32,
    /// Attempts in flight through the exit, this one included.
    pub in_flight: u32,
    /// When it ran.
    pub span: Span,
    /// `--origin-patience`.
    pub patience: Duration,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Charged {
    /// Whose fault, and which retry would help.
    pub judgement: Judgement,
    /// What changed for the exit.
    pub exit: Change,
    /// What changed for the exit of an earlier attempt of the job: its cap and usability are to
    /// be read anew like those of the attempt's own exit.
    pub earlier: Option<(u32, Change)>,
    /// What the origin's breaker asks for.
    pub origin: Reaction,
    /// The exit is not to be used for this origin before then.
    pub held_until: Option<Time>,
}

/// Charges `end`. `open` belongs to the job and starts as `None`.
pub fn charge(
    fleet: &mut Fleet,
    book: &mut OriginBook,
    open: &mut Option<OpenCharge>,
    end: End<'_>,
    rng: &mut impl Rng,
) -> Charged {
    let symptom = Symptom::of(end.attempt, end.accept);
    let seen = seen(fleet, book, open.as_ref(), symptom, end);
    let mut judgement = judge(end.attempt, end.accept, &seen);
    if opened(end.attempt) || judgement.exit == ExitSign::Good {
        fleet.credentials_worked(end.exit);
    }
    let speaks = !(is_mute(end.attempt) && fleet.health(end.exit).proven() == Proven::Nothing);
    let alike = seen.echo == Echo::OtherExit && speaks;
    let mut share = Share::WHOLE;
    if judgement.exit == ExitSign::Unclear {
        share = weigh(fleet, book, seen, end);
        if alike {
            // Two exits met the same: now it is rather the origin's.
            share = share.without_evidence();
            judgement.blame = Some(Blame::Origin);
        }
    }
    let earlier = settle_earlier(fleet, open, &judgement, alike, end, rng);
    let exit = tell_exit(fleet, &judgement, share, end, rng);
    remember(open, &judgement, symptom, share, end.exit);
    let origin = tell_origin(fleet, book, &judgement, speaks.then_some(share), end);
    let held_until =
        (judgement.blame == Some(Blame::Pair)).then(|| book.pairs.hold(end.exit, end.span.now));
    Charged {
        judgement,
        exit,
        earlier,
        origin,
        held_until,
    }
}

fn seen(
    fleet: &Fleet,
    book: &OriginBook,
    open: Option<&OpenCharge>,
    symptom: Option<Symptom>,
    end: End<'_>,
) -> Seen {
    let now = end.span.now;
    let health = fleet.health(end.exit);
    let echo = match (open, symptom) {
        (Some(open), Some(symptom)) if open.symptom == symptom && open.exit == end.exit => {
            Echo::SameExit
        }
        (Some(open), Some(symptom)) if open.symptom == symptom => Echo::OtherExit,
        (Some(_) | None, Some(_) | None) => Echo::None,
    };
    let tls = match book.pairs.valid_tls_elsewhere(end.exit, now) {
        false => TlsSeen::Unknown,
        true if health.proven() < Proven::Tls => TlsSeen::OnlyElsewhere,
        true => TlsSeen::Elsewhere,
    };
    Seen {
        in_flight: end.in_flight,
        credentials_worked: fleet.have_credentials_worked(end.exit),
        refusing_origins: health.refusing_origins_with(end.origin),
        clean_elsewhere: book.pairs.clean_elsewhere(end.exit, now),
        echo,
        tls,
        others: if fleet.left() > 1 {
            Others::Some
        } else {
            Others::None
        },
    }
}

/// The handshake succeeded, so the login did.
fn opened(attempt: &Attempt) -> bool {
    attempt.route == Route::Tunnel
        && attempt
            .fault
            .as_ref()
            .is_none_or(|fault| fault.phase > Phase::Handshake)
}

fn weigh(fleet: &mut Fleet, book: &OriginBook, seen: Seen, end: End<'_>) -> Share {
    fleet.weigh(Unclear {
        exit: end.exit,
        origin: end.origin,
        record: &book.record,
        answered_elsewhere: seen.clean_elsewhere > 0,
        mute: is_mute(end.attempt),
    })
}

/// Whether this attempt shows whose fault the job's earlier one was.
fn settle_earlier(
    fleet: &mut Fleet,
    open: &mut Option<OpenCharge>,
    judgement: &Judgement,
    alike: bool,
    end: End<'_>,
    rng: &mut impl Rng,
) -> Option<(u32, Change)> {
    let earlier = open.as_mut()?;
    if alike {
        let share = earlier.share.take()?;
        fleet.pardon(earlier.exit, share);
        return Some((earlier.exit, Change::None));
    }
    let valid = judgement.exit == ExitSign::Good && end.over == Over::Tls;
    if !valid || !earlier.symptom.is_certificate() || earlier.exit == end.exit {
        return None;
    }
    let exit = earlier.exit;
    *open = None;
    Some((exit, fleet.wrong_certificate(exit, end.span, rng)))
}

fn tell_exit(
    fleet: &mut Fleet,
    judgement: &Judgement,
    share: Share,
    end: End<'_>,
    rng: &mut impl Rng,
) -> Change {
    let End { exit, span, .. } = end;
    match judgement.exit {
        ExitSign::Good => {
            let proves = match end.over {
                Over::Tls if end.attempt.head.is_some() => Proven::Tls,
                Over::Tls | Over::Plain => Proven::Answers,
            };
            let throttled = match end.attempt.status() {
                Some(429) => Throttled::Yes,
                Some(_) | None => Throttled::No,
            };
            match fleet.good(exit, proves, span) {
                Change::None => fleet.answered(exit, throttled, span),
                change => change,
            }
        }
        ExitSign::Neutral => {
            if judgement.blame == Some(Blame::Pair) {
                fleet.refuses(exit, end.origin);
            }
            fleet.neutral(span);
            Change::None
        }
        ExitSign::Fault | ExitSign::Unclear => fleet.fault(exit, share, span, rng),
        ExitSign::Congested => fleet.congested(exit, end.in_flight, span),
        ExitSign::Evict(why) => fleet.evict(exit, why, span),
    }
}

/// Keeps the job's first unclear fault of a kind until another one replaces it.
fn remember(
    open: &mut Option<OpenCharge>,
    judgement: &Judgement,
    symptom: Option<Symptom>,
    share: Share,
    exit: u32,
) {
    if judgement.exit != ExitSign::Unclear {
        return;
    }
    if let Some(symptom) = symptom
        && open.is_none_or(|open| open.symptom != symptom)
    {
        *open = Some(OpenCharge {
            exit,
            symptom,
            share: Some(share),
        });
    }
}

/// `share` is `None` where the exit has never worked and its silence says nothing.
fn tell_origin(
    fleet: &Fleet,
    book: &mut OriginBook,
    judgement: &Judgement,
    share: Option<Share>,
    end: End<'_>,
) -> Reaction {
    let now = end.span.now;
    let fault = OriginFault {
        exit: end.exit,
        dispatched: end.span.dispatched,
        usable_exits: fleet.left(),
    };
    match (judgement.origin, share) {
        (OriginSign::Neutral, _) | (OriginSign::Unclear, None) => Reaction::None,
        (OriginSign::Clean, _) => {
            book.record.good();
            book.breaker.good();
            // An origin that turns everybody away must not look as if it liked the others.
            if !matches!(end.attempt.status(), Some(401 | 403)) || judgement.blame.is_none() {
                book.pairs.good(end.exit, end.over, now);
            }
            Reaction::None
        }
        (OriginSign::Throttled, _) => {
            book.record.good();
            Reaction::None
        }
        (OriginSign::Unclear, Some(share)) if share.is_mostly_exit() => {
            book.record.fault();
            Reaction::None
        }
        (OriginSign::Fault, _) | (OriginSign::Unclear, Some(_)) => {
            book.record.fault();
            book.breaker.fault(fault, end.patience, now)
        }
    }
}

#[cfg(test)]
mod tests;
