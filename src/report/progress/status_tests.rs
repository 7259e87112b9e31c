use super::*;
use crate::model::PhaseCounts;
use crate::report::Counts;

const RATES: Rates = Rates {
    entries: 38.1,
    bytes: 1_300_000.0,
};

fn snapshot() -> Snapshot {
    let held = |origin: &str, jobs, seconds, why| HeldBack {
        origin: origin.to_owned(),
        jobs,
        wait: Duration::from_secs(seconds),
        why,
    };
    Snapshot {
        elapsed: Duration::from_secs(3723),
        counts: Counts {
            ok: 1200,
            already_ok: 20,
            failed: 30,
            refused: 4,
            ..Counts::default()
        },
        read: 5000,
        entries: Some(5000),
        under_way: PhaseCounts {
            dial: 1,
            handshake: 1,
            tls: 2,
            first_byte: 10,
            body: 4,
        },
        received: 13_000_000,
        waiting_budget: 400,
        waiting_exit: 12,
        exits: vec![("healthy", 5), ("limited", 0), ("evicted", 1)],
        held_back: vec![
            held("a.test:443", 400, 40, "rate"),
            held("b.test", 2, 4000, "paused"),
        ],
        floor: Some(Duration::from_secs(70)),
    }
}

#[test]
fn a_terminal_gets_five_lines() {
    insta::assert_snapshot!(lines(&snapshot(), RATES).join("\n"), @r"
    01:02:03 [####----------------] 1234 of 5000 (25 %), ETA 1m39s, floor 1m10s
    38.1/s, 1.2 MiB/s, 12.4 MiB in all; 1200 ok, 30 failed, 4 refused
    in flight 18 [dhttffffffffffbbbb--] dial 1, handshake 1, tls 2, first byte 10, body 4
    waiting 400 for budget, 12 for an exit; exits: 5 healthy, 1 evicted
    held back: a.test:443 400 for 40s (rate), b.test 2 for 1h06m (paused)
    ");
}

#[test]
fn elsewhere_it_is_one_line_without_a_control_character() {
    let line = line(&snapshot(), RATES);
    insta::assert_snapshot!(line, @"1234 of 5000 done: 1200 ok, 30 failed, 4 refused; 38.1/s, 1.2 MiB/s, 12.4 MiB in all, ETA 1m39s, floor 1m10s; in flight 18: dial 1, handshake 1, tls 2, first byte 10, body 4; waiting 400 for budget, 12 for an exit; exits: 5 healthy, 1 evicted; held back: a.test:443 400 for 40s (rate), b.test 2 for 1h06m (paused)");
    assert!(!line.contains(char::is_control));
}

#[test]
fn before_the_list_is_read_nobody_knows_what_is_left() {
    let now = Snapshot {
        entries: None,
        floor: None,
        held_back: Vec::new(),
        ..snapshot()
    };
    let lines = lines(&now, RATES);
    assert_eq!(lines[0], "01:02:03 1234 done, 5000 read so far");
    assert_eq!(lines.len(), 4);
    assert!(line(&now, RATES).starts_with("1234 done, 5000 read so far: 1200 ok"));
}

#[test]
fn the_time_left_is_never_below_the_floor_and_unknown_where_nothing_ends() {
    let fast = Rates {
        entries: 1e6,
        bytes: 0.0,
    };
    let first = |rates| lines(&snapshot(), rates).remove(0);
    assert!(first(fast).ends_with("ETA 1m10s, floor 1m10s"));
    assert!(first(Rates::default()).ends_with("ETA unknown, floor 1m10s"));
    let done = Snapshot {
        entries: Some(1234),
        ..snapshot()
    };
    assert!(lines(&done, fast)[0].ends_with("[####################] 1234 of 1234 (100 %)"));
}

#[test]
fn a_run_that_has_not_begun_and_a_crowd_fit_their_bars() {
    let none = lines(&Snapshot::default(), Rates::default());
    assert_eq!(none[2].split(']').next().unwrap().len(), 33, "{none:?}");
    let empty = Snapshot {
        entries: Some(0),
        ..Snapshot::default()
    };
    assert!(lines(&empty, RATES)[0].contains("[--------------------] 0 of 0 (0 %)"));
    let crowd = Snapshot {
        under_way: PhaseCounts {
            dial: 1,
            handshake: 0,
            tls: 3,
            first_byte: 5000,
            body: 2,
        },
        ..Snapshot::default()
    };
    assert_eq!(phase_bar(&crowd), "dtfffffffffffffffffb");
    assert_eq!(phase_bar(&crowd).len(), BAR as usize);
}

#[test]
fn a_narrow_terminal_cuts_by_columns_not_by_bytes() {
    assert_eq!(fit("abc", 3), "abc");
    assert_eq!(fit("abcd", 3), "abc");
    assert_eq!(fit("日本語", 5), "日本");
    assert_eq!(fit("é́x", 1), "é́");
    assert_eq!(fit("abc", 0), "");
}

#[test]
fn spans_have_two_units() {
    let of = |seconds| span(Duration::from_secs(seconds));
    assert_eq!(
        [of(0), of(59), of(60), of(3599), of(3600), of(90_000)],
        ["0s", "59s", "1m00s", "59m59s", "1h00m", "1d01h"]
    );
    assert_eq!(span(Duration::from_millis(1)), "1s");
}

#[test]
fn the_lines_that_readme_shows_are_what_a_terminal_shows() {
    let mut now = snapshot();
    now.elapsed = Duration::from_secs(161);
    now.counts.ok = 2081;
    now.counts.failed = 21;
    now.counts.refused = 2;
    now.under_way.body = 3;
    now.received = 522_400_000;
    (now.waiting_budget, now.waiting_exit) = (1411, 12);
    now.floor = Some(Duration::from_secs(192));
    for (held, origin, jobs, wait) in [(0, "img.example", 960, 192), (1, "shop.example", 40, 41)] {
        now.held_back[held].origin = origin.to_owned();
        now.held_back[held].jobs = jobs;
        now.held_back[held].wait = Duration::from_secs(wait);
    }
    let rates = Rates {
        entries: 12.7,
        bytes: 3.1 * 1024.0 * 1024.0,
    };
    let lines = lines(&now, rates).join("\n");
    let readme = include_str!("../../../README.md");
    assert!(readme.contains(&lines), "README does not show\n{lines}");
}
