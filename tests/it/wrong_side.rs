//! Blame on the right side: exits' own pages, origins that fail everybody, false certificates.

use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{Blame, Outcome};

use crate::world::World;

const ARGS: [&str; 6] = [
    "--rate",
    "unlimited",
    "--per-exit",
    "3",
    "--cacert",
    "lab-ca.pem",
];

fn urls(world: &World, scheme: &str, count: usize) {
    world.urls((0..count).map(|n| format!("{scheme}://o-{}.test/ok/{}?wait=30", n % 3, 100 + n)));
}

/// F05 (1): whatever page an exit makes up, none is stored, every job is ok through the other.
fn own_page(exit: &ExitConfig, behaviour: &str, scheme: &str) {
    let bad = exit.clone().behaving(behaviour.parse().unwrap());
    let world = World::new(LabConfig::with([bad, exit.clone()]));
    urls(&world, scheme, 20);
    let run = world.run(&ARGS).expect(0);
    assert_eq!(run.count(Outcome::Ok), 20, "{behaviour}");
    for record in &run.records {
        assert_eq!(record.exit.as_deref(), Some("lab-2"), "{behaviour}");
    }
    for body in world.stored().values() {
        assert!((100..120).contains(&body.len()), "{behaviour}");
        assert!(
            !body
                .windows(4)
                .any(|part| part == b"lab-" || part == b"exit")
        );
    }
    world.assert_whole();
    let row = &world.exits_csv()[0];
    assert_eq!(row["ok"], "0", "{behaviour}");
    assert_ne!(row["attempts"], "0", "{behaviour}");
    assert_eq!(world.exits_csv()[1]["state"], "healthy", "{behaviour}");
}

/// F05 (1).
#[test]
fn no_page_of_an_exit_is_stored() {
    for status in [401, 403, 500, 502, 503, 504, 407] {
        own_page(&ExitConfig::http(), &format!("page:{status}"), "http");
    }
    own_page(&ExitConfig::https(), "page:502", "http");
    for status in [200 + 103, 400, 401, 403, 404, 429, 500, 502, 503, 504, 407] {
        own_page(&ExitConfig::http(), &format!("connect:{status}"), "https");
    }
    own_page(&ExitConfig::https(), "connect:502", "https");
}

/// F05 (1): not even when the user takes such statuses for good.
#[test]
fn a_page_of_an_exit_is_not_stored_as_an_accepted_status() {
    for status in [401, 403, 502] {
        let bad = ExitConfig::http().behaving(format!("page:{status}").parse().unwrap());
        let world = World::new(LabConfig::with([bad, ExitConfig::http()]));
        urls(&world, "http", 20);
        let accept = ["--accept", "200-299,401,403,502"];
        let run = world.run(&[&ARGS[..], &accept].concat()).expect(0);
        for record in &run.records {
            assert_eq!(record.status, Some(200), "{record:?}");
        }
    }
}

/// F05 (2): an origin that fails everybody beside a healthy one puts no exit out of use.
fn failing_origin(exit: &ExitConfig, target: &str, scheme: &str) {
    let world = World::new(LabConfig::alike(3, exit));
    let bad = (0..20).map(|n| format!("{scheme}://bad.test{target}/{n}"));
    let good = (0..20).map(|n| format!("{scheme}://good.test/ok/{n}?wait=20"));
    world.urls(bad.zip(good).flat_map(|(bad, good)| [bad, good]));
    let short = ["--first-byte-timeout", "1s", "--origin-patience", "6s"];
    let run = world.run(&[&ARGS[..], &short].concat()).expect(3);
    println!("{target} ({scheme}): {:.1} s", run.took.as_secs_f64());
    assert!(run.took < Duration::from_secs(150), "{:?}", run.took);
    assert_eq!(run.count(Outcome::Ok), 20);
    for record in run.records.iter().filter(|r| r.outcome == Outcome::Failed) {
        let error = record.error.as_ref().unwrap();
        assert!(record.url.contains("bad.test"));
        assert!(
            !matches!(error.blame, Blame::Exit | Blame::Local),
            "{error:?}"
        );
    }
    for row in world.exits_csv() {
        assert!(
            !["ejected", "evicted"].contains(&&*row["state"]),
            "{target} ({scheme}): {row:?}"
        );
    }
}

/// F05 (2).
#[test]
fn an_origin_of_500_puts_no_exit_out_of_use() {
    failing_origin(&ExitConfig::http(), "/status/500", "http");
}

/// F05 (2).
#[test]
fn an_origin_of_503_in_tunnels_puts_no_exit_out_of_use() {
    failing_origin(&ExitConfig::http(), "/status/503", "https");
}

/// F05 (2).
#[test]
fn an_origin_of_503_behind_socks_puts_no_exit_out_of_use() {
    failing_origin(&ExitConfig::socks5(), "/status/503", "http");
}

/// F05 (2): unclear faults all the way.
#[test]
fn an_origin_that_resets_everybody_puts_no_exit_out_of_use() {
    failing_origin(&ExitConfig::http(), "/reset", "http");
}

/// F05 (2).
#[test]
fn an_origin_that_never_answers_puts_no_exit_out_of_use() {
    failing_origin(&ExitConfig::socks5(), "/silent", "https");
}

/// F05 (3): TLS interception is seen; nothing is sent through it, nothing of it stored.
#[test]
fn an_exit_with_certificates_of_its_own_is_evicted() {
    for exit in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        let bad = exit.clone().behaving("intercept".parse().unwrap());
        let world = World::new(LabConfig::with([bad, exit.clone(), exit.clone()]));
        urls(&world, "https", 30);
        let run = world.run(&ARGS).expect(0);
        assert_eq!(run.count(Outcome::Ok), 30);
        let row = &world.exits_csv()[0];
        assert_eq!((&*row["state"], &*row["ok"]), ("evicted", "0"), "{row:?}");
        assert!(row["reason"].contains("certificate"), "{row:?}");
        assert_ne!(row["faults"], "0");
        assert_eq!(
            world.exit(0).stats().requests,
            0,
            "nothing was sent through it"
        );
        assert!(
            run.records
                .iter()
                .all(|r| r.exit.as_deref() != Some("lab-1"))
        );
        assert_eq!(world.stored().len(), 30);
    }
}

/// F05 (3): alone it is a failed job that says why.
#[test]
fn an_interceptor_alone_fails_the_jobs_and_stores_nothing() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::with([
            exit.behaving("intercept".parse().unwrap())
        ]));
        urls(&world, "https", 5);
        let run = world.run(&[&ARGS[..], &["--no-exit-timeout", "5s"]].concat());
        assert!([Some(3), Some(4)].contains(&run.status), "{:?}", run.status);
        assert_eq!(run.count(Outcome::Failed), 5);
        let error = run.line(1).error.as_ref().unwrap();
        assert!(
            error.kind.as_str() == "certificate" || error.detail.contains("certificate"),
            "{error:?}"
        );
        assert!(world.stored().is_empty());
        assert_eq!(world.exit(0).stats().requests, 0);
    }
}

/// An origin whose certificate nobody trusts: its own fault, and no exit's.
#[test]
fn a_bad_certificate_everywhere_is_the_origins() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(3, &exit));
        let bad = ["untrusted", "wrong-name"];
        let bad = bad.iter().map(|label| format!("https://{label}.test/ok/1"));
        let good = (0..20).map(|n| format!("https://good.test/ok/{n}"));
        world.urls(bad.chain(good));
        let run = world.run(&ARGS).expect(3);
        assert_eq!(run.count(Outcome::Ok), 20);
        for line in [1, 2] {
            let error = run.line(line).error.as_ref().unwrap();
            assert_eq!(error.kind.as_str(), "certificate");
            assert_eq!(error.blame, Blame::Origin, "{error:?}");
        }
        for row in world.exits_csv() {
            assert_eq!(row["state"], "healthy", "{row:?}");
        }
    }
}
