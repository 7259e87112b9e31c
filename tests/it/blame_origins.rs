//! Rows of the blame table that are the same through every exit: what
//! the record says, how often it was tried, and that no exit is put out of use for it.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Blame;

use crate::verdicts::LIMITS;
use crate::world::World;

/// What is seen when the origin does it through every exit: target, kind, blame, attempts with
/// `--retries 1`.
type OriginRow = (&'static str, &'static str, &'static [Blame], u32);

fn everywhere(rows: &[OriginRow], args: &[&str]) {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(3, &exit));
        world.urls(rows.iter().map(|row| row.0));
        let run = world
            .run(&[&LIMITS[..], &["--retries", "1"], args].concat())
            .expect(3);
        for ((url, kind, blames, attempts), line) in rows.iter().zip(1..) {
            let record = run.line(line);
            let error = record.error.as_ref().unwrap();
            let what = format!("{url} through {:?}: {record:?}", exit.scheme);
            assert_eq!(error.kind.as_str(), *kind, "{what}");
            assert!(blames.contains(&error.blame), "{what}");
            assert_eq!(record.attempts, *attempts, "{what}");
        }
        for row in world.exits_csv() {
            assert!(!["ejected", "evicted"].contains(&&*row["state"]), "{row:?}");
        }
        assert!(world.stored().is_empty());
        world.assert_whole();
    }
}

const ORIGIN: &[Blame] = &[Blame::Origin];
/// The table says unclear; a second exit with the same may make it the origin's.
const NOT_THE_EXITS: &[Blame] = &[Blame::Unclear, Blame::Origin];

/// Rows 6 and 7: TLS with the origin.
#[test]
fn tls_faults_of_an_origin_are_not_the_exits() {
    everywhere(
        &[
            ("https://untrusted.a.test/ok/1", "certificate", ORIGIN, 2),
            ("https://wrong-name.b.test/ok/1", "certificate", ORIGIN, 2),
            ("https://tls-alert.c.test/ok/1", "tls", ORIGIN, 2),
            ("https://tls-close.d.test/ok/1", "tls", NOT_THE_EXITS, 2),
            ("https://tls-garbage.e.test/ok/1", "tls", NOT_THE_EXITS, 2),
            (
                "https://tls-silent.f.test/ok/1",
                "connect_timeout",
                NOT_THE_EXITS,
                2,
            ),
        ],
        &[],
    );
}

/// Rows 8 to 10: the head.
#[test]
fn faults_before_the_head_of_an_origin_are_not_the_exits() {
    everywhere(
        &[
            (
                "http://a.test/silent",
                "first_byte_timeout",
                NOT_THE_EXITS,
                2,
            ),
            (
                "https://b.test/silent",
                "first_byte_timeout",
                NOT_THE_EXITS,
                2,
            ),
            ("http://c.test/close", "no_answer", NOT_THE_EXITS, 2),
            ("https://d.test/close", "no_answer", NOT_THE_EXITS, 2),
            ("http://e.test/reset", "no_answer", NOT_THE_EXITS, 2),
            ("http://f.test/no-http", "not_http", NOT_THE_EXITS, 2),
            (
                "https://g.test/head/5000000",
                "head_too_large",
                NOT_THE_EXITS,
                2,
            ),
            ("https://h.test/status/500", "status", ORIGIN, 2),
            ("http://i.test/status/502", "status", ORIGIN, 2),
            ("https://j.test/status/503", "status", ORIGIN, 2),
            ("http://k.test/status/504", "status", ORIGIN, 2),
            ("https://l.test/status/408", "status", ORIGIN, 2),
            ("http://m.test/status/425", "status", ORIGIN, 2),
            ("https://n.test/status/404", "status", ORIGIN, 1),
            ("https://o.test/status/407", "status", ORIGIN, 1),
            ("https://p.test/status/403", "status", ORIGIN, 1),
        ],
        &[],
    );
}

/// Row 10: 429 through a tunnel is the origin's wish, not a fault of an exit.
#[test]
fn too_many_requests_is_the_origins() {
    everywhere(
        &[("https://a.test/status/429", "origin_paused", ORIGIN, 5)],
        &[],
    );
}

/// Rows 12, 13: the body.
#[test]
fn faults_inside_a_body_are_told_apart() {
    everywhere(
        &[
            ("http://a.test/truncated/100", "truncated", NOT_THE_EXITS, 2),
            (
                "https://b.test/truncated/100",
                "truncated",
                NOT_THE_EXITS,
                2,
            ),
            (
                "http://c.test/chunked-cut/100",
                "truncated",
                NOT_THE_EXITS,
                2,
            ),
            ("https://d.test/half/100", "stall_timeout", NOT_THE_EXITS, 2),
            (
                "http://e.test/reset-body/100000",
                "body_broken",
                NOT_THE_EXITS,
                2,
            ),
            ("https://f.test/bytes/200000", "too_large", &[Blame::Job], 1),
            ("http://g.test/endless", "too_large", &[Blame::Job], 1),
            ("https://h.test/gzip-lie", "decode", &[Blame::Job], 1),
        ],
        &["--max-body", "100000", "--compressed"],
    );
}
