//! What an attempt means to its level: an answer, or whose fault it is that there is none.
//!
//! By the rules of a run (`schedule::blame`), with two differences: there is no second exit to
//! ask, and an exit that closes new connections while others are in flight turns them away.

use super::level::Outcome;
use crate::model::{Attempt, Codes, FaultKind, Phase, Route};
use crate::schedule::blame::{ExitSign, OriginSign, Others, Seen, judge};

/// What an attempt was that ended with this many in flight, itself included.
pub(super) fn judged(attempt: &Attempt, in_flight: u32) -> Outcome {
    let seen = Seen {
        in_flight,
        others: Others::None,
        ..Seen::default()
    };
    let judgement = judge(attempt, &Codes::default(), &seen);
    match (judgement.exit, judgement.origin) {
        (ExitSign::Congested, _) => Outcome::Refused,
        (ExitSign::Fault | ExitSign::Unclear, _) if in_flight > 1 && is_turned_away(attempt) => {
            Outcome::TurnedAway
        }
        (ExitSign::Fault | ExitSign::Evict(_), _) => Outcome::ExitFault,
        // The exit refuses this target.
        (ExitSign::Neutral, OriginSign::Neutral) if attempt.refusal.is_some() => Outcome::ExitFault,
        (_, OriginSign::Throttled) => Outcome::Throttled,
        (ExitSign::Good | ExitSign::Neutral, OriginSign::Fault) => Outcome::TargetFault,
        (ExitSign::Good, _) => Outcome::Answer,
        (ExitSign::Unclear | ExitSign::Neutral, _) => Outcome::Unclear,
    }
}

/// Whether a new connection ended before anything came over it.
fn is_turned_away(attempt: &Attempt) -> bool {
    let last = match attempt.route {
        Route::Tunnel => Phase::Handshake,
        Route::Forward => Phase::Head,
    };
    let closed = |kind| matches!(kind, FaultKind::Refused | FaultKind::Reset | FaultKind::Eof);
    let fault = attempt.fault.as_ref();
    !attempt.reused && fault.is_some_and(|fault| fault.phase <= last && closed(fault.kind))
}
