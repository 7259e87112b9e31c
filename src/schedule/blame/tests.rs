use http::{HeaderMap, HeaderName, HeaderValue};

use super::*;
use crate::model::{Fault, Head};

/// Three attempts in flight, login proven, other exits there, nothing else known.
const SEEN: Seen = Seen {
    in_flight: 3,
    credentials_worked: true,
    refusing_origins: 1,
    clean_elsewhere: 0,
    throttles_all: false,
    echo: Echo::None,
    tls: TlsSeen::Unknown,
    others: Others::Some,
};

/// Every kind of fault that a peer can cause.
const PEER_FAULTS: [FaultKind; 10] = [
    FaultKind::Timeout,
    FaultKind::Deadline,
    FaultKind::NoAddress,
    FaultKind::Refused,
    FaultKind::Reset,
    FaultKind::Unreachable,
    FaultKind::Eof,
    FaultKind::Protocol,
    FaultKind::Certificate,
    FaultKind::TlsAlert,
];

const PHASES: [Phase; 7] = [
    Phase::Resolve,
    Phase::Dial,
    Phase::ExitTls,
    Phase::Handshake,
    Phase::OriginTls,
    Phase::Head,
    Phase::Body,
];

fn failed(phase: Phase, kind: FaultKind) -> Attempt {
    Attempt {
        fault: Some(Fault {
            phase,
            kind,
            detail: String::new(),
        }),
        ..Attempt::default()
    }
}

fn head(status: u16, headers: &[(&'static str, &'static str)]) -> Head {
    let headers: HeaderMap = headers
        .iter()
        .map(|&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect();
    Head { status, headers }
}

fn refused(status: u16, headers: &[(&'static str, &'static str)]) -> Attempt {
    Attempt {
        refusal: Some(head(status, headers)),
        ..failed(Phase::Handshake, FaultKind::ConnectStatus(status))
    }
}

fn answered(route: Route, status: u16, headers: &[(&'static str, &'static str)]) -> Attempt {
    Attempt {
        route,
        head: Some(head(status, headers)),
        ..Attempt::default()
    }
}

fn judged(attempt: &Attempt, seen: Seen) -> Judgement {
    judge(attempt, &Codes::default(), &seen)
}

fn blame(attempt: &Attempt) -> Option<Blame> {
    judged(attempt, SEEN).blame
}

#[test]
fn whatever_fails_before_the_exit_speaks_is_the_exits() {
    for phase in [Phase::Resolve, Phase::Dial, Phase::ExitTls] {
        for kind in PEER_FAULTS {
            let judgement = judged(
                &failed(phase, kind),
                Seen {
                    in_flight: 1,
                    ..SEEN
                },
            );
            assert_eq!(judgement, EXIT, "{phase:?} {kind:?}");
        }
    }
}

#[test]
fn refused_credentials_evict_until_they_have_worked_once() {
    let fresh = Seen {
        credentials_worked: false,
        ..SEEN
    };
    for attempt in [
        failed(Phase::Handshake, FaultKind::Credentials),
        failed(Phase::Head, FaultKind::Credentials),
        refused(407, &[]),
        answered(Route::Forward, 407, &[]),
    ] {
        assert_eq!(judged(&attempt, SEEN), EXIT);
        let evicted = judged(&attempt, fresh);
        assert_eq!(evicted.exit, ExitSign::Evict(Reason::CredentialsRefused));
        assert_eq!(
            (evicted.blame, evicted.retry),
            (Some(Blame::Exit), Retry::Free)
        );
    }
}

#[test]
fn an_origin_behind_a_tunnel_may_answer_407_without_harm_to_the_exit() {
    let judgement = judged(&answered(Route::Tunnel, 407, &[]), SEEN);
    assert_eq!(
        (judgement.blame, judgement.exit),
        (Some(Blame::Origin), ExitSign::Good)
    );
}

#[test]
fn refusals_for_want_of_room_are_congestion_only_with_others_in_flight() {
    let limit = [("proxy-status", "gw; error=connection_limit_reached")];
    for attempt in [
        refused(429, &[]),
        refused(503, &limit),
        answered(Route::Forward, 503, &limit),
        failed(Phase::Dial, FaultKind::Reset),
    ] {
        assert_eq!(judged(&attempt, SEEN), CONGESTED);
        assert_eq!(
            judged(
                &attempt,
                Seen {
                    in_flight: 1,
                    ..SEEN
                }
            ),
            EXIT
        );
    }
}

#[test]
fn a_refused_target_is_the_pairs_until_the_exit_refuses_four_origins() {
    for attempt in [
        refused(403, &[]),
        refused(502, &[("proxy-status", "gw; error=http_request_denied")]),
        refused(
            400,
            &[("proxy-status", "gw; error=destination_ip_prohibited")],
        ),
        answered(
            Route::Forward,
            403,
            &[("x-squid-error", "ERR_ACCESS_DENIED 0")],
        ),
        failed(Phase::Handshake, FaultKind::SocksReply(2)),
        failed(Phase::Handshake, FaultKind::SocksReply(8)),
    ] {
        for (refusing_origins, expected) in [(1, Blame::Pair), (3, Blame::Pair), (4, Blame::Exit)] {
            let seen = Seen {
                refusing_origins,
                ..SEEN
            };
            assert_eq!(judged(&attempt, seen).blame, Some(expected));
        }
        let judgement = judged(&attempt, SEEN);
        assert_eq!(
            (judgement.exit, judgement.retry),
            (ExitSign::Neutral, Retry::Free)
        );
    }
}

#[test]
fn a_tunnel_that_does_not_open_without_a_telling_reason_is_unclear() {
    for status in [500, 502, 503, 504] {
        assert_eq!(judged(&refused(status, &[]), SEEN), UNCLEAR, "{status}");
    }
    for reply in [1, 3, 4, 5, 6, 99] {
        let attempt = failed(Phase::Handshake, FaultKind::SocksReply(reply));
        assert_eq!(judged(&attempt, SEEN), UNCLEAR, "{reply}");
    }
    for kind in [
        FaultKind::Timeout,
        FaultKind::Deadline,
        FaultKind::Eof,
        FaultKind::Reset,
    ] {
        let attempt = failed(Phase::Handshake, kind);
        assert_eq!(judged(&attempt, SEEN), UNCLEAR, "{kind:?}");
    }
}

#[test]
fn an_exit_that_does_not_tunnel_or_does_not_speak_its_protocol_is_at_fault() {
    for attempt in [
        refused(400, &[]),
        refused(401, &[]),
        refused(405, &[]),
        refused(501, &[]),
        refused(302, &[("location", "http://portal.test/")]),
        refused(502, &[("proxy-status", "gw; error=proxy_internal_error")]),
        failed(Phase::Handshake, FaultKind::SocksReply(7)),
        failed(Phase::Handshake, FaultKind::Protocol),
        failed(Phase::Handshake, FaultKind::HeadTooLarge),
    ] {
        assert_eq!(judged(&attempt, SEEN), EXIT);
    }
}

#[test]
fn an_invalid_certificate_is_charged_by_comparison_and_never_accepted() {
    let attempt = failed(Phase::OriginTls, FaultKind::Certificate);
    assert_eq!(judged(&attempt, SEEN), UNCLEAR);
    let with = |tls, echo| judged(&attempt, Seen { tls, echo, ..SEEN });

    let intercepts = with(TlsSeen::OnlyElsewhere, Echo::None);
    assert_eq!(intercepts.exit, ExitSign::Evict(Reason::Intercepts));
    assert_eq!(with(TlsSeen::Elsewhere, Echo::None), EXIT);

    let everywhere = with(TlsSeen::Unknown, Echo::OtherExit);
    assert_eq!(everywhere.blame, Some(Blame::Origin));
    assert_eq!(everywhere.retry, Retry::No);
    assert_eq!(with(TlsSeen::Unknown, Echo::SameExit), UNCLEAR);

    let alone = Seen {
        others: Others::None,
        ..SEEN
    };
    assert_eq!(judged(&attempt, alone).retry, Retry::No);
}

#[test]
fn a_tls_alert_is_the_origins_and_other_tls_faults_are_unclear() {
    let alert = judged(&failed(Phase::OriginTls, FaultKind::TlsAlert), SEEN);
    assert_eq!(
        (alert.blame, alert.exit),
        (Some(Blame::Origin), ExitSign::Good)
    );
    assert_eq!(
        (alert.origin, alert.retry),
        (OriginSign::Fault, Retry::Counted)
    );
    for kind in [FaultKind::Eof, FaultKind::Timeout, FaultKind::Reset] {
        assert_eq!(judged(&failed(Phase::OriginTls, kind), SEEN), UNCLEAR);
    }
}

#[test]
fn no_answer_or_one_that_is_not_http_is_unclear() {
    for kind in [
        FaultKind::Timeout,
        FaultKind::Deadline,
        FaultKind::Eof,
        FaultKind::Reset,
        FaultKind::Protocol,
        FaultKind::HeadTooLarge,
    ] {
        assert_eq!(judged(&failed(Phase::Head, kind), SEEN), UNCLEAR);
    }
}

#[test]
fn a_head_that_is_too_large_is_asked_for_twice_at_most() {
    let attempt = failed(Phase::Head, FaultKind::HeadTooLarge);
    for echo in [Echo::SameExit, Echo::OtherExit] {
        let judgement = judged(&attempt, Seen { echo, ..SEEN });
        assert_eq!(judgement.blame, Some(Blame::Origin));
        assert_eq!(judgement.retry, Retry::No);
    }
}

#[test]
fn through_a_tunnel_the_answer_is_the_origins_whatever_its_headers_say() {
    let squid = [("x-squid-error", "ERR_OUT_OF_MEMORY 0")];
    for headers in [&[][..], &squid[..]] {
        for status in [500, 502, 503, 504, 520, 408, 425] {
            let judgement = judged(&answered(Route::Tunnel, status, headers), SEEN);
            assert_eq!(judgement.blame, Some(Blame::Origin), "{status}");
            assert_eq!(judgement.exit, ExitSign::Good, "{status}");
            assert_eq!(judgement.origin, OriginSign::Fault, "{status}");
            assert_eq!(judgement.retry, Retry::Counted, "{status}");
        }
    }
    let throttled = judged(&answered(Route::Tunnel, 429, &[]), SEEN);
    assert_eq!(throttled.origin, OriginSign::Throttled);
    assert_eq!(throttled.retry, Retry::Counted);
}

#[test]
fn statuses_about_the_url_alone_are_final_and_show_a_working_exit_and_origin() {
    for status in [304, 400, 401, 403, 404, 410, 451] {
        let judgement = judged(&answered(Route::Tunnel, status, &[]), SEEN);
        assert_eq!(judgement.blame, Some(Blame::Origin), "{status}");
        assert_eq!(judgement.exit, ExitSign::Good, "{status}");
        assert_eq!(judgement.origin, OriginSign::Clean, "{status}");
        assert_eq!(judgement.retry, Retry::No, "{status}");
    }
}

#[test]
fn a_429_or_403_while_three_others_are_welcome_is_the_pairs() {
    for status in [429, 403] {
        let attempt = answered(Route::Tunnel, status, &[]);
        for (clean_elsewhere, expected) in [(2, Blame::Origin), (3, Blame::Pair)] {
            let seen = Seen {
                clean_elsewhere,
                ..SEEN
            };
            assert_eq!(judged(&attempt, seen).blame, Some(expected), "{status}");
        }
    }
}

#[test]
fn a_429_that_others_get_as_well_is_the_origins() {
    let seen = Seen {
        clean_elsewhere: 4,
        throttles_all: true,
        ..SEEN
    };
    let blame = |status| judged(&answered(Route::Tunnel, status, &[]), seen).blame;
    assert_eq!(blame(429), Some(Blame::Origin));
    assert_eq!(blame(403), Some(Blame::Pair));
}

#[test]
fn a_plain_answer_with_a_proxys_mark_is_the_proxys() {
    let plain = |value| answered(Route::Forward, 502, &[("x-squid-error", value)]);
    assert_eq!(judged(&plain("ERR_OUT_OF_MEMORY 0"), SEEN), EXIT);
    assert_eq!(judged(&plain("ERR_DNS_FAIL 0"), SEEN), UNCLEAR);
    assert_eq!(blame(&plain("ERR_ACCESS_DENIED 0")), Some(Blame::Pair));
    let vendor = answered(Route::Forward, 403, &[("x-brd-error", "no peer")]);
    assert_eq!(judged(&vendor, SEEN), EXIT);
    // Squid marks answers it only passed on as well; those are no errors.
    let passed_on = answered(Route::Forward, 200, &[("proxy-status", "gw")]);
    assert_eq!(judged(&passed_on, SEEN), GOOD);
}

#[test]
fn a_bare_plain_error_is_believed_through_a_second_exit() {
    for status in [401, 403, 500, 502, 503, 504] {
        let attempt = answered(Route::Forward, status, &[]);
        let first = judged(&attempt, SEEN);
        assert_eq!(first.blame, Some(Blame::Unclear), "{status}");
        assert_ne!(first.retry, Retry::No, "{status}");
        let same_exit = Seen {
            echo: Echo::SameExit,
            ..SEEN
        };
        assert_eq!(judged(&attempt, same_exit).blame, Some(Blame::Unclear));
        let second = Seen {
            echo: Echo::OtherExit,
            ..SEEN
        };
        assert_eq!(judged(&attempt, second).blame, Some(Blame::Origin));
        assert_eq!(judged(&attempt, second).exit, ExitSign::Good);
    }
}

#[test]
fn without_a_second_exit_only_a_gateway_s_words_are_doubted() {
    let alone = Seen {
        others: Others::None,
        ..SEEN
    };
    for status in [401, 403] {
        let judgement = judged(&answered(Route::Forward, status, &[]), alone);
        assert_eq!(judgement.retry, Retry::No, "{status}");
        assert_eq!(judgement.exit, ExitSign::Good, "{status}");
    }
    for status in [500, 501, 520] {
        let judgement = judged(&answered(Route::Forward, status, &[]), alone);
        assert_eq!(judgement.blame, Some(Blame::Origin), "{status}");
        assert_eq!(judgement.retry, Retry::Counted, "{status}");
        assert_eq!(judgement.exit, ExitSign::Good, "{status}");
    }
    for status in 502..=504 {
        let attempt = answered(Route::Forward, status, &[]);
        assert_eq!(judged(&attempt, alone), UNCLEAR, "{status}");
    }
}

#[test]
fn an_accepted_status_that_may_be_the_proxys_own_is_checked_even_without_retries() {
    let accept: Codes = "200-299,403,502".parse().unwrap();
    for status in [403, 502] {
        let attempt = answered(Route::Forward, status, &[]);
        let first = judge(&attempt, &accept, &SEEN);
        assert_eq!(first.retry, Retry::Free, "{status}");
        let second = Seen {
            echo: Echo::OtherExit,
            ..SEEN
        };
        assert_eq!(judge(&attempt, &accept, &second), GOOD, "{status}");
        let tunnel = answered(Route::Tunnel, status, &[]);
        assert_eq!(judge(&tunnel, &accept, &SEEN), GOOD, "{status}");
    }
}

#[test]
fn a_plain_503_that_says_when_to_come_back_is_the_origins() {
    let judgement = judged(
        &answered(Route::Forward, 503, &[("retry-after", "5")]),
        SEEN,
    );
    assert_eq!(judgement.blame, Some(Blame::Origin));
    assert_eq!(judgement.origin, OriginSign::Fault);
}

#[test]
fn a_broken_body_is_unclear_and_one_that_asks_too_much_is_the_jobs() {
    for kind in [
        FaultKind::Truncated,
        FaultKind::Eof,
        FaultKind::Reset,
        FaultKind::Timeout,
        FaultKind::Deadline,
        FaultKind::Protocol,
    ] {
        assert_eq!(judged(&failed(Phase::Body, kind), SEEN), UNCLEAR);
    }
    for kind in [FaultKind::TooLarge, FaultKind::Decode] {
        let judgement = judged(&failed(Phase::Body, kind), SEEN);
        assert_eq!(judgement.blame, Some(Blame::Job));
        assert_eq!(judgement.retry, Retry::No);
        assert_eq!(judgement.exit, ExitSign::Good);
    }
}

#[test]
fn what_is_ours_charges_nobody_in_any_phase() {
    for phase in PHASES {
        for kind in [FaultKind::Cancelled, FaultKind::LocalLimit] {
            assert_eq!(judged(&failed(phase, kind), SEEN), LOCAL);
        }
        let disk = judged(&failed(phase, FaultKind::Disk), SEEN);
        assert_eq!(disk.blame, Some(Blame::Local));
        assert_eq!(
            (disk.exit, disk.origin),
            (ExitSign::Neutral, OriginSign::Neutral)
        );
        for kind in [FaultKind::BadRequest, FaultKind::HostTooLong] {
            let judgement = judged(&failed(phase, kind), SEEN);
            assert_eq!(judgement.blame, Some(Blame::Job));
            assert_eq!(judgement.exit, ExitSign::Neutral);
        }
    }
    assert_eq!(judged(&Attempt::default(), SEEN), LOCAL);
}

#[test]
fn nothing_but_the_answer_of_the_origin_is_ever_blamed_on_it_before_the_tunnel_is_open() {
    for phase in [
        Phase::Resolve,
        Phase::Dial,
        Phase::ExitTls,
        Phase::Handshake,
    ] {
        for kind in PEER_FAULTS {
            assert_ne!(blame(&failed(phase, kind)), Some(Blame::Origin));
        }
    }
}

#[test]
fn symptoms_tell_kinds_and_statuses_apart_and_good_answers_have_none() {
    let of = |attempt: &Attempt| Symptom::of(attempt, &Codes::default());
    assert_eq!(of(&refused(502, &[])), of(&refused(502, &[])));
    assert_ne!(of(&refused(502, &[])), of(&refused(503, &[])));
    assert_ne!(
        of(&failed(Phase::Head, FaultKind::Timeout)),
        of(&failed(Phase::Body, FaultKind::Timeout))
    );
    assert_eq!(of(&answered(Route::Tunnel, 200, &[])), None);
    let accept: Codes = "403".parse().unwrap();
    let tunnel = Symptom::of(&answered(Route::Tunnel, 403, &[]), &accept);
    let plain = Symptom::of(&answered(Route::Forward, 403, &[]), &accept);
    assert!(tunnel.is_none() && plain.is_some());
}

#[test]
fn an_exit_is_mute_when_neither_tunnel_nor_answer_came_from_it() {
    let plain = |kind| Attempt {
        route: Route::Forward,
        ..failed(Phase::Head, kind)
    };
    assert!(is_mute(&failed(Phase::Handshake, FaultKind::Timeout)));
    assert!(is_mute(&plain(FaultKind::Deadline)));
    assert!(is_mute(&plain(FaultKind::Protocol)));
    assert!(!is_mute(&failed(Phase::Head, FaultKind::Timeout)));
    assert!(!is_mute(&refused(502, &[])));
    assert!(!is_mute(&answered(Route::Forward, 502, &[])));
}
