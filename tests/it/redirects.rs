//! Redirects: every hop pays its own site's budget, and what is private stays where it belongs.

use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{ErrorKind, Outcome};
use serde_json::Value;

use crate::world::World;

const EXITS: [fn() -> ExitConfig; 3] = [ExitConfig::http, ExitConfig::https, ExitConfig::socks5];

/// D07.
#[test]
fn a_redirect_pays_the_budget_of_the_site_it_leads_to() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(2, &exit));
        let sources =
            (0..8).map(|n| format!("http://s{n}.test/redirect-to?url=http://b.test/ok/10/{n}"));
        world.urls(sources.chain(["http://b.test/ok/10/own".to_owned()]));
        let args = ["--rate", "2", "--burst", "1", "--per-exit", "8"];
        let run = world.run(&args).expect(0);
        let stats = world.lab.origin_stats();
        let target = stats.host("b.test");
        assert_eq!(target.requests, 9);
        assert!(
            target.least_gap().unwrap() >= 0.3,
            "{:?}",
            target.least_gap()
        );
        let asked = (0..8).map(|n| stats.host(&format!("s{n}.test")).at_ns[0]);
        let (first, last) = (asked.clone().min().unwrap(), asked.max().unwrap());
        assert!(Duration::from_nanos(last - first) < Duration::from_secs(2));
        for n in 0..8 {
            let record = run.line(n + 1);
            assert_eq!(
                record.final_url.as_deref(),
                Some(&*format!("http://b.test/ok/10/{n}"))
            );
            assert_eq!((record.attempts, record.status), (2, Some(200)));
        }
        assert_eq!(run.line(9).final_url, None);
    }
}

/// D07, from http to https and back, relative, with other ports, through each kind of exit.
#[test]
fn redirects_are_followed_across_schemes_and_ports_through_every_exit() {
    for exit in EXITS {
        let world = World::new(LabConfig::alike(2, &exit()));
        world.urls([
            "http://a.test/redirect-to?url=https://b.test/ok/11/x",
            "https://a.test/redirect-to?url=http://b.test:8080/ok/12/x",
            "https://c.test/redirect-to?url=https://c.test:8443/ok/13/x",
            "http://d.test/redirect/4",
            "https://e.test/redirect-to?url=//f.test/ok/14/x",
            "http://g.test/sub/redirect-to?url=/nowhere",
            "http://h.test/redirect-to?url=?status=418",
            "http://i.test/redirect-to?url=/ok/15%23frag",
            "http://j.test/redirect-to?status=301&url=/ok/16",
            "http://j.test/redirect-to?status=303&url=/ok/17",
            "http://j.test/redirect-to?status=307&url=/ok/18",
            "http://j.test/redirect-to?status=308&url=/ok/19",
        ]);
        let args = ["--rate", "unlimited", "--cacert", "lab-ca.pem"];
        let run = world.run(&args).expect(3);
        let ends = |line: u64, url: &str| {
            let record = run.line(line);
            assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
            assert_eq!(record.final_url.as_deref(), Some(url));
        };
        ends(1, "https://b.test/ok/11/x");
        ends(2, "http://b.test:8080/ok/12/x");
        ends(3, "https://c.test:8443/ok/13/x");
        ends(4, "http://d.test/redirect/0");
        ends(5, "https://f.test/ok/14/x");
        ends(8, "http://i.test/ok/15");
        for line in 9..=12 {
            assert_eq!(run.line(line).bytes, Some(line + 7));
        }
        assert_eq!(run.line(6).status, Some(404));
        assert_eq!(run.line(7).status, Some(418));
    }
}

/// Circles and bad targets fail once, with the 3xx kept.
#[test]
fn circles_and_unusable_locations_fail_with_their_status_and_are_not_tried_again() {
    for exit in EXITS {
        let world = World::new(LabConfig::alike(2, &exit()));
        let bad = [
            ("/redirect-loop", ErrorKind::RedirectLoop, 1),
            ("/redirect-loop/a", ErrorKind::RedirectLoop, 2),
            ("/redirect-on/0", ErrorKind::RedirectLoop, 4),
            ("/redirect-to", ErrorKind::BadRedirect, 1),
            ("/redirect-to?url=", ErrorKind::BadRedirect, 1),
            ("/redirect-to?url=ftp://x.test/", ErrorKind::BadRedirect, 1),
            (
                "/redirect-to?url=javascript:alert(1)",
                ErrorKind::BadRedirect,
                1,
            ),
            ("/redirect-to?url=http://", ErrorKind::BadRedirect, 1),
            (
                "/redirect-to?url=http://x.test:99999/",
                ErrorKind::BadRedirect,
                1,
            ),
        ];
        world.urls(
            bad.iter()
                .enumerate()
                .map(|(n, (path, ..))| format!("http://o{n}.test{path}")),
        );
        let args = [
            "--rate",
            "unlimited",
            "--max-redirects",
            "3",
            "--cacert",
            "lab-ca.pem",
        ];
        let run = world.run(&args).expect(3);
        let stats = world.lab.origin_stats();
        for (n, (path, kind, requests)) in bad.iter().enumerate() {
            let record = run.line(n as u64 + 1);
            assert_eq!(record.outcome, Outcome::Failed);
            assert_eq!(
                record.error.as_ref().unwrap().kind,
                *kind,
                "{path}: {record:?}"
            );
            assert_eq!(record.status, Some(302), "{path}");
            assert_eq!(
                stats.host(&format!("o{n}.test")).requests,
                *requests,
                "{path}"
            );
        }
        assert_eq!(stats.host("x.test").requests, 0);
    }
}

#[test]
fn with_no_redirects_allowed_the_3xx_is_the_answer() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls(["http://a.test/redirect-to?url=http://b.test/"]);
    let args = ["--max-redirects", "0"];
    let run = world.run(&args).expect(3);
    assert_eq!((run.line(1).status, run.line(1).attempts), (Some(302), 1));
    assert!(run.line(1).file.is_none());
    let accepting = ["--max-redirects", "0", "--accept", "200-399"];
    let run = world.run(&accepting).expect(0);
    assert_eq!(run.line(1).status, Some(302));
    assert_eq!(world.lab.origin_stats().host("b.test").requests, 0);
}

/// The header lines that `/echo` saw, lower-case names.
fn echoed(world: &World, run: &crate::world::Run, line: u64) -> Vec<(String, String)> {
    let record = run.line(line);
    assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
    let said: Value = serde_json::from_slice(&world.body(record)).unwrap();
    let fields = said["headers"].as_array().unwrap().iter();
    fields
        .map(|pair| {
            let text = |n: usize| pair[n].as_str().unwrap().to_owned();
            (text(0).to_lowercase(), text(1))
        })
        .collect()
}

#[test]
fn credentials_and_cookies_are_dropped_when_a_redirect_leaves_the_site() {
    for exit in EXITS {
        let world = World::new(LabConfig::alike(2, &exit()));
        world.urls([
            "http://a.test/redirect-to?url=http://a.test/echo",
            "http://a.test/redirect-to?url=http://b.test/echo",
            "http://a.test/redirect-to?url=https://a.test/echo",
            "https://a.test/redirect-to?url=http://a.test/echo",
            "http://a.test/redirect-to?url=http://a.test:8080/echo",
            "http://user:pa%3Ass@c.test/echo",
            "http://user:pa%3Ass@c.test/redirect-to?url=/echo",
            "http://user:pa%3Ass@c.test/redirect-to?url=http://d.test/echo",
            "http://a.test/redirect-to?url=http://b.test/redirect-to?url=http://a.test/echo",
            "http://a.test/redirect-to?url=http://other:login@b.test/echo",
        ]);
        let run = world
            .run(&[
                "--rate",
                "unlimited",
                "--cacert",
                "lab-ca.pem",
                "-H",
                "Authorization: Bearer tok-1",
                "-H",
                "Cookie: sid=42",
                "-H",
                "X-Kept: yes",
            ])
            .expect(0);
        let value = |line: u64, name: &str| {
            let fields = echoed(&world, &run, line);
            let mut values = fields.iter().filter(|(known, _)| known == name);
            let value = values.next().map(|(_, value)| value.clone());
            assert_eq!(values.next(), None, "{name} twice");
            value
        };
        let private = |line| (value(line, "authorization"), value(line, "cookie"));
        let both = (Some("Bearer tok-1".to_owned()), Some("sid=42".to_owned()));
        assert_eq!(private(1), both);
        for line in [2, 4, 5, 9] {
            assert_eq!(private(line), (None, None), "line {line}");
        }
        let basic = Some("Basic dXNlcjpwYTpzcw==".to_owned());
        assert_eq!(value(6, "authorization"), basic);
        assert_eq!(value(7, "authorization"), basic);
        assert_eq!(private(8), (None, None));
        assert_eq!(value(10, "cookie"), None);
        assert_ne!(value(10, "authorization"), both.0);
        for line in 1..=10 {
            assert_eq!(value(line, "x-kept").as_deref(), Some("yes"));
            assert!(
                !run.line(line)
                    .final_url
                    .as_deref()
                    .unwrap_or_default()
                    .contains("login")
            );
        }
        assert_eq!(world.lab.origin_stats().proxy_fields, 0);
    }
}
