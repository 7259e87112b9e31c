//! What an attempt means to its level: an answer, or whose fault it is that there is none.
//!
//! By the rules of a run (`schedule::blame`), with three differences: there is no second exit to
//! ask, a bare 5xx of a plain proxy is not believed all the same, since load is what is measured,
//! and an exit that closes new connections while others are in flight turns them away.

use http::header::RETRY_AFTER;

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
        (ExitSign::Good, OriginSign::Fault) if may_be_the_exits(attempt) => Outcome::Unclear,
        (ExitSign::Good | ExitSign::Neutral, OriginSign::Fault) => Outcome::TargetFault,
        (ExitSign::Good, _) => Outcome::Answer,
        (ExitSign::Unclear | ExitSign::Neutral, _) => Outcome::Unclear,
    }
}

/// Whether a proxy might have given this answer of a failing origin in its place.
fn may_be_the_exits(attempt: &Attempt) -> bool {
    let head = attempt.head.as_ref();
    attempt.route == Route::Forward
        && head.is_some_and(|head| head.status >= 500 && !head.headers.contains_key(RETRY_AFTER))
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

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;
    use crate::model::Head;

    #[test]
    fn a_plain_proxy_s_bare_5xx_says_nothing_and_a_site_s_is_an_answer() {
        let answer = |route, status, headers| {
            let attempt = Attempt {
                route,
                head: Some(Head { status, headers }),
                ..Attempt::default()
            };
            judged(&attempt, 3)
        };
        let busy = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("5"))]);
        for status in [500, 502, 503] {
            let bare = answer(Route::Forward, status, HeaderMap::new());
            assert_eq!(bare, Outcome::Unclear, "{status}");
            let through = answer(Route::Tunnel, status, HeaderMap::new());
            assert_eq!(through, Outcome::TargetFault, "{status}");
            let asks = answer(Route::Forward, status, busy.clone());
            assert_eq!(asks, Outcome::TargetFault, "{status}");
        }
    }
}
