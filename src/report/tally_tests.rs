use super::*;
use crate::model::record::{RecordError, Waits};
use crate::model::{Fault, FaultKind, Head, Phase, PhaseTimes};
use crate::report::{ExitEnd, Stage};

pub(in crate::report) fn exit(id: &str) -> Exit {
    Exit::new(id, crate::model::Scheme::Http, "127.0.0.1", 1)
}

pub(in crate::report) fn answer(status: u16, first_byte_ms: u64, bytes: u64) -> Attempt {
    Attempt {
        phases: PhaseTimes {
            dial: Some(Duration::from_millis(5)),
            first_byte: Some(Duration::from_millis(first_byte_ms)),
            ..PhaseTimes::default()
        },
        head: Some(Head {
            status,
            headers: http::HeaderMap::new(),
        }),
        wire_bytes: bytes,
        ..Attempt::default()
    }
}

fn dead() -> Attempt {
    Attempt {
        fault: Some(Fault {
            phase: Phase::Dial,
            kind: FaultKind::Refused,
            detail: "refused".into(),
        }),
        ..Attempt::default()
    }
}

pub(in crate::report) fn record(line: u64, outcome: Outcome, kind: Option<ErrorKind>) -> Record {
    let error = kind.map(|kind| RecordError {
        kind,
        blame: Blame::Origin,
        detail: format!("detail {line}"),
    });
    Record {
        id: format!("{line}"),
        line,
        url: format!("http://o.test/{line}"),
        attempts: 1,
        error,
        waits: Some(Waits {
            budget_ms: 100.0,
            exit_ms: 10.0,
        }),
        ..Record::empty(outcome, String::new())
    }
}

pub(in crate::report) fn origin() -> Origin {
    Origin::of(&url::Url::parse("http://o.test/").unwrap())
}

pub(in crate::report) fn healthy(cap: u32, peak: u32) -> ExitEnd {
    ExitEnd {
        cap,
        cap_now: cap,
        peak,
        peak_sockets: peak,
        state: "healthy",
        ..ExitEnd::default()
    }
}

#[test]
fn attempts_count_for_their_exit_and_records_for_the_entries() {
    let mut tally = Tally::new(&[exit("good"), exit("bad")]);
    let origin = origin();
    let mut count = |exit, attempt: &Attempt| {
        tally.attempt(&Tried {
            exit,
            origin: &origin,
            attempt,
            at: Time::ZERO,
        });
    };
    for n in 1..=100 {
        count(0, &answer(200, n, 1000));
    }
    count(0, &answer(429, 3, 10));
    count(1, &dead());
    count(7, &answer(200, 3, 10));
    for line in [4, 2, 3, 1] {
        tally.record(&record(line, Outcome::Failed, Some(ErrorKind::Status)));
    }
    tally.record(&record(5, Outcome::Ok, None));
    tally.already(&record(6, Outcome::Ok, None));
    tally.record(&record(7, Outcome::Refused, Some(ErrorKind::BadUrl)));
    let summary = tally.finish(RunEnd {
        exits: vec![healthy(3, 3), healthy(3, 1)],
        entries: 10,
        ..RunEnd::default()
    });

    let totals = &summary.totals;
    let four = (totals.ok, totals.failed, totals.refused, totals.not_reached);
    assert_eq!(four, (2, 4, 1, 3));
    assert_eq!(
        (totals.entries, totals.already_ok, totals.attempts),
        (10, 1, 103)
    );
    let row = |n: usize| &summary.exits[n].row;
    assert_eq!(row(0).bytes, 100_010);
    let (p50, p95) = (row(0).ttfb_p50_ms.unwrap(), row(0).ttfb_p95_ms.unwrap());
    assert!(
        (48.0..=51.0).contains(&p50) && (93.0..=97.0).contains(&p95),
        "{p50} {p95}"
    );
    assert_eq!(row(1).ttfb_p50_ms, None);
    assert_eq!(summary.failures[0].count, 4);
    let examples = summary.failures[0].examples.iter();
    assert_eq!(examples.map(|e| e.line).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(summary.failures[1].kind, ErrorKind::BadUrl);
    assert_eq!(
        (summary.origins[0].requests, summary.origins[0].status_429),
        (102, 1)
    );
    assert_eq!(summary.hint.unwrap().stage, Stage::FirstByte);
    assert!(summary.never_above_cap);
}

#[test]
fn a_reason_falls_back_to_the_last_error_only_where_the_exit_is_unwell() {
    let end = |state, reason: Option<&str>| ExitEnd {
        state,
        reason: reason.map(str::to_owned),
        last_error: Some("connection refused".into()),
        ..healthy(1, 1)
    };
    let tally = Tally::new(&[exit("a"), exit("b"), exit("c")]);
    let summary = tally.finish(RunEnd {
        exits: vec![
            end("healthy", None),
            end("ejected", None),
            end("evicted", Some("credentials refused (407)")),
        ],
        ..RunEnd::default()
    });
    let reasons: Vec<_> = summary
        .exits
        .iter()
        .map(|e| e.row.reason.as_deref())
        .collect();
    assert_eq!(
        reasons,
        [
            None,
            Some("connection refused"),
            Some("credentials refused (407)")
        ]
    );
    assert!(
        summary
            .json()
            .unwrap()
            .contains("\"last_error\": \"connection refused\"")
    );
}

#[test]
fn sockets_above_the_cap_break_the_proof_too() {
    let over = ExitEnd {
        peak_sockets: 4,
        ..healthy(3, 3)
    };
    let summary = Tally::new(&[exit("a")]).finish(RunEnd {
        exits: vec![over],
        ..RunEnd::default()
    });
    assert!(!summary.never_above_cap);
    assert_eq!(
        summary.above_cap().collect::<Vec<_>>(),
        ["a (4 sockets, cap 3)"]
    );
}

#[test]
fn a_fleet_of_a_hundred_thousand_exits_costs_little_before_it_is_used() {
    let exits: Vec<Exit> = (0..100_000).map(|n| exit(&format!("{n}"))).collect();
    let tally = Tally::new(&exits);
    assert!(tally.exits.iter().all(|exit| exit.ttfb.0.is_none()));
    assert!(size_of::<ExitTally>() <= 104);
}
