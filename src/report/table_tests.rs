use std::time::Duration;

use super::*;
use crate::model::{ErrorKind, Outcome, Time};
use crate::report::tally::tests::{answer, exit, healthy, origin, record};
use crate::report::{ExitEnd, GroupRow, RunEnd, Tally, Tried};

fn tallied(exits: &[crate::model::Exit]) -> Tally {
    let mut tally = Tally::new(exits);
    for (n, attempts) in [(0, 12), (1, 3)] {
        for k in 0..attempts {
            let status = match (n, k) {
                (0, _) => 200,
                (_, 0) => 429,
                _ => 502,
            };
            tally.attempt(&Tried {
                exit: n,
                origin: &origin(),
                attempt: &answer(status, 102 + k, 1024 * 100),
                at: Time::ZERO,
            });
        }
    }
    tally
}

fn small() -> Summary {
    let mut first = exit("gw-1");
    first.tier = Some("residential".into());
    let mut tally = tallied(&[first, exit("203.0.113.7:8080"), exit("東京")]);
    for line in 1..=12 {
        tally.record(&record(line, Outcome::Ok, None));
    }
    tally.record(&record(13, Outcome::Failed, Some(ErrorKind::Status)));
    tally.pause(&origin(), Duration::from_secs(90));
    tally.finish(RunEnd {
        exits: vec![
            ExitEnd {
                attempts: 12,
                ok: 12,
                ..healthy(3, 3)
            },
            ExitEnd {
                attempts: 3,
                faults: 2,
                status_429: 1,
                state: "ejected",
                reason: Some("502 in\na row".into()),
                ..healthy(3, 2)
            },
            healthy(3, 0),
        ],
        groups: vec![GroupRow {
            name: "plan".into(),
            cap: 4,
            peak: 4,
        }],
        entries: 15,
        wall: Duration::from_millis(3_210),
        disk: Duration::from_millis(40),
        disk_alone: Duration::from_millis(40),
        slots: 9,
        group_share: 0.0,
        stopped: Some("--max-time reached".into()),
    })
}

#[test]
fn the_table_is_aligned_and_says_it_all() {
    insta::assert_snapshot!(small().table(), @r#"
    exit              tier         cap  peak  attempts  ok  faults  ttfb p50  ttfb p95      bytes  state
    gw-1              residential    3     3        12  12       0    107 ms    114 ms    1.2 MiB  healthy
    203.0.113.7:8080  -              3     2         3   0       2    103 ms    105 ms  300.0 KiB  ejected: 502 in a row
    東京              -              3     0         0   0       0         -         -        0 B  healthy
    all                                             15  12       2    106 ms    114 ms    1.5 MiB

    peak in flight never above the cap: yes
    group plan: cap 4, peak 4

    15 entries: 12 ok, 1 failed, 0 refused, 2 not reached; 15 attempts in 3.2 s
    stopped early: --max-time reached

    failed and refused
      1 × status (origin), first in line 13: detail 13
    o.test held us back: 15 requests, 1 answered 429, paused 1 × for up to 1m 30s in all

    where jobs spent their time
      budget 41 %, exit slot 4 %, group 0 %, dial 2 %, handshake 0 %, tls 0 %, first byte 51 %, body 0 %, disk 1 %
      waiting for first bytes held 51 % of the time; exits were idle 94 %: sites or exits answer slowly;
      no setting would help much
    "#);
}

#[test]
fn a_run_without_attempts_gives_no_advice() {
    let summary = Tally::new(&[exit("a")]).finish(RunEnd {
        exits: vec![healthy(3, 0)],
        disk: Duration::from_millis(1),
        ..RunEnd::default()
    });
    assert_eq!(summary.hint, None);
    assert!(!summary.table().contains("most went to"));
}

#[test]
fn the_csv_has_its_columns_in_order_also_without_exits() {
    let header = "id,tier,group,cap,peak,peak_sockets,attempts,ok,faults,status_429,bytes,\
                  ttfb_p50_ms,ttfb_p95_ms,state,reason,cap_now";
    let csv = small().csv().unwrap();
    insta::assert_snapshot!(csv, @r#"
    id,tier,group,cap,peak,peak_sockets,attempts,ok,faults,status_429,bytes,ttfb_p50_ms,ttfb_p95_ms,state,reason,cap_now
    gw-1,residential,,3,3,3,12,12,0,0,1228800,107.1,113.5,healthy,,3
    203.0.113.7:8080,,,3,2,2,3,0,2,1,307200,103.1,104.7,ejected,502 in a row,3
    東京,,,3,0,0,0,0,0,0,0,,,healthy,,3
    "#);
    let empty = Tally::new(&[]).finish(RunEnd::default()).csv().unwrap();
    assert_eq!(empty.trim_end(), header);
}

#[test]
fn a_passed_cap_is_named_in_the_proof_line() {
    let summary = tallied(&[exit("a"), exit("b")]).finish(RunEnd {
        exits: vec![healthy(3, 3), healthy(3, 5)],
        ..RunEnd::default()
    });
    let line = "\npeak in flight never above the cap: NO: b (peak 5, cap 3)\n";
    assert!(summary.table().contains(line));
}

#[test]
fn a_large_fleet_shows_its_telling_rows_and_sums_the_rest() {
    let exits: Vec<_> = (0..200).map(|n| exit(&format!("e{n}"))).collect();
    let mut tally = Tally::new(&exits);
    for n in 0..200 {
        for _ in 0..n {
            tally.attempt(&Tried {
                exit: n,
                origin: &origin(),
                attempt: &answer(200, 10, 1),
                at: Time::ZERO,
            });
        }
    }
    let mut ends: Vec<_> = (0..200)
        .map(|n| ExitEnd {
            attempts: n,
            ok: n,
            ..healthy(3, 3)
        })
        .collect();
    (ends[5].ok, ends[5].faults) = (0, 5);
    ends[7].peak = 4;
    let summary = tally.finish(RunEnd {
        exits: ends,
        ..RunEnd::default()
    });
    let table = summary.table();
    let first: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap_or_default())
        .take(ROWS + 2)
        .collect();
    assert_eq!(first[..4], ["e7", "e5", "e199", "e198"]);
    assert_eq!(first[ROWS..], ["140", "all"]);
    let attempts = |start: &str| -> u64 {
        let row = table.lines().find(|line| line.starts_with(start)).unwrap();
        let cells: Vec<&str> = row.trim_start_matches(start).split_whitespace().collect();
        cells[0].parse().unwrap()
    };
    assert_eq!(attempts("all"), (0..200).sum::<u64>());
    assert_eq!(
        attempts("140 more"),
        (0..200).sum::<u64>() - 12 - (142..200).sum::<u64>()
    );
    assert_eq!(summary.csv().unwrap().lines().count(), 201);
}

#[test]
fn spans_and_sizes_read_well() {
    assert_eq!(millis(0.26), "0.3 ms");
    assert_eq!(millis(1_234.0), "1234 ms");
    assert_eq!(millis(12_345.0), "12.3 s");
    assert_eq!(seconds(3.21), "3.2 s");
    assert_eq!(seconds(90.4), "1m 30s");
    assert_eq!(clean("a\u{1b}[31m\r\n"), "a?[31m??");
}
