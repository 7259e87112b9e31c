//! The rows of the blame table for whole answers: whose answer is it, and what does it say?

use http::header::RETRY_AFTER;

use crate::model::{Blame, Codes, Head, Route};

use super::super::proxy_error::ProxyError;
use super::{
    CLEAN_ELSEWHERE, EXIT, Echo, ExitSign, GOOD, Judgement, OriginSign, Others, Retry, Seen,
    UNCLEAR, congestion, credentials, pair_refusal, verdict,
};

/// Judges an answer that came whole.
pub(super) fn judge(head: &Head, route: Route, accept: &Codes, seen: &Seen) -> Judgement {
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
pub(super) fn doubtful(route: Route, status: u16) -> bool {
    route == Route::Forward && matches!(status, 401 | 403 | 500..=599)
}

/// A bare answer that may be the proxy's own is believed when a second exit gives it too,
/// or when there is no second exit to ask. A gateway's words are doubted even then: a proxy that
/// reaches nobody says them.
fn second_opinion(status: u16, accept: &Codes, seen: &Seen) -> Judgement {
    let alone = seen.others == Others::None;
    match status {
        502..=504 if !accept.contains(status) => UNCLEAR,
        _ if alone => origins_answer(status, accept, seen),
        500..=599 if !accept.contains(status) => UNCLEAR,
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
    let common = status == 429 && seen.throttles_all;
    let lonely = seen.clean_elsewhere >= CLEAN_ELSEWHERE && !common;
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
