//! `--refresh`: what is stored is asked for again by its validators. 304 keeps the file, 200
//! replaces it, a failure leaves it; nobody is blamed for a 304.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{ErrorKind, Outcome, Record};

use crate::world::World;
use sha2::Digest;

const FAST: [&str; 2] = ["--rate", "unlimited"];

fn world(urls: &[&str]) -> World {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()).logging(1000));
    world.urls(urls);
    world
}

fn refresh(world: &World) -> Vec<Record> {
    let before = world.records().len();
    let run = world.run(&[&FAST[..], &["--refresh"]].concat());
    assert!(
        run.stdout
            .contains("peak in flight never above the cap: yes"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    run.records[before..].to_vec()
}

#[test]
fn an_unchanged_body_is_kept_and_a_changed_one_replaced() {
    let world = world(&["http://o.test/versions/2", "https://o.test/versions/2/tls"]);
    world.write("exitfetch.toml", "[run]\ncacert = \"lab-ca.pem\"\n");
    let first = world.run(&FAST).expect(0).records;
    for record in &first {
        assert_eq!(record.etag.as_deref(), Some("\"v1\""), "{record:?}");
    }
    assert!(
        first
            .iter()
            .all(|r| r.last_modified.is_some() && r.not_modified.is_none())
    );

    let second = refresh(&world);
    assert_eq!(second.len(), 2);
    for again in &second {
        let before = first.iter().find(|r| r.id == again.id).unwrap();
        assert_eq!((again.outcome, again.status), (Outcome::Ok, Some(304)));
        assert_eq!(again.not_modified, Some(true));
        assert_eq!(
            (&again.file, again.bytes, &again.sha256, &again.content_type),
            (
                &before.file,
                before.bytes,
                &before.sha256,
                &before.content_type
            )
        );
        assert_eq!((&again.etag, again.wire_bytes), (&before.etag, Some(0)));
        assert!(again.exit.is_some() && again.phases.is_some());
        assert!(world.body(again).starts_with(b"version 1 "));
    }

    let third = refresh(&world);
    for again in &third {
        assert_eq!((again.outcome, again.status), (Outcome::Ok, Some(200)));
        assert_eq!(
            (again.not_modified, again.etag.as_deref()),
            (None, Some("\"v2\""))
        );
        assert!(world.body(again).starts_with(b"version 2 "));
    }
    world.assert_nothing_temporary();
}

#[test]
fn either_validator_alone_will_do_and_without_any_all_is_fetched() {
    let world = world(&[
        "http://o.test/versions/9?only=etag",
        "http://o.test/versions/9?only=date",
        "http://o.test/versions/9?only=none",
    ]);
    world.run(&FAST).expect(0);
    let again = refresh(&world);
    let status = |part: &str| again.iter().find(|r| r.url.ends_with(part)).unwrap().status;
    assert_eq!(status("etag"), Some(304));
    assert_eq!(status("date"), Some(304));
    assert_eq!(status("none"), Some(200));
}

#[test]
fn a_file_that_is_gone_is_fetched_whole() {
    let world = world(&["http://o.test/versions/9"]);
    let first = world.run(&FAST).expect(0);
    std::fs::remove_file(world.out().join(first.line(1).file.as_ref().unwrap())).unwrap();
    let again = refresh(&world);
    assert_eq!((again.len(), again[0].status), (1, Some(200)));
    assert!(world.body(&again[0]).starts_with(b"version 1 "));
}

/// The answer says that what is stored holds, and meanwhile somebody has taken it away.
#[test]
fn a_file_that_goes_while_it_is_asked_for_is_fetched_whole() {
    let world = world(&["http://o.test/versions/9?wait=1500"]);
    let first = world.run(&FAST).expect(0);
    let child = world.start(&[&FAST[..], &["--refresh"]].concat());
    world.until_asked(2);
    std::fs::remove_file(world.out().join(first.line(1).file.as_ref().unwrap())).unwrap();
    let again = world.wait(child).expect(0);
    let last = again.records.last().unwrap();
    assert_eq!((again.records.len(), last.status), (2, Some(200)));
    assert!(world.body(last).starts_with(b"version 1 "));
    assert_eq!(world.lab.origin_stats().requests, 3);
}

#[test]
fn a_failed_refresh_is_recorded_and_leaves_the_old_file_until_the_next_run() {
    let world = world(&["http://o.test/versions/9?gone=1"]);
    let first = world.run(&FAST).expect(0);
    let old = first.line(1).file.clone().unwrap();
    let again = refresh(&world);
    assert_eq!(
        (again[0].outcome, again[0].status),
        (Outcome::Failed, Some(404))
    );
    assert_eq!(again[0].file, None);
    assert!(world.out().join(&old).is_file());
    world.lab.reset();
    let back = world.run(&FAST).expect(0);
    let last = back.records.last().unwrap();
    assert_eq!((last.status, last.file.as_ref()), (Some(200), Some(&old)));
}

#[test]
fn validators_go_only_to_the_url_they_came_from() {
    // The first hop has the same ones and would answer 304 as well.
    let world = world(&["http://o.test/versions/9?to=http%3A%2F%2Fp.test%2Fversions%2F9"]);
    world.run(&FAST).expect(0);
    let again = refresh(&world);
    assert_eq!(
        (again[0].outcome, again[0].status),
        (Outcome::Ok, Some(304))
    );
    assert_eq!(
        again[0].final_url.as_deref(),
        Some("http://p.test/versions/9")
    );
    assert_eq!(again[0].attempts, 2);
    assert!(world.body(&again[0]).starts_with(b"version 1 "));
}

#[test]
fn an_own_condition_wins_and_a_304_to_it_is_nobody_s_answer() {
    let world = world(&["http://o.test/versions/9", "http://o.test/not-modified"]);
    world.run(&FAST).expect(3);
    let run = world.run(&[&FAST[..], &["--refresh", "-H", "If-None-Match: \"v1\""]].concat());
    let run = run.expect(3);
    let last = |part: &str| run.records.iter().rfind(|r| r.url.ends_with(part)).unwrap();
    for part in ["/versions/9", "/not-modified"] {
        assert_eq!(last(part).outcome, Outcome::Failed, "{part}");
        assert_eq!(last(part).error.as_ref().unwrap().kind, ErrorKind::Status);
        assert_eq!(last(part).status, Some(304));
    }
}

#[test]
fn what_is_no_plain_get_is_not_asked_again_and_twins_share_an_answer() {
    let world = world(&[]);
    world.write(
        "urls.jsonl",
        "{\"url\":\"http://o.test/versions/9\"}\n{\"url\":\"http://o.test/versions/9\"}\n\
         {\"url\":\"http://o.test/echo\",\"method\":\"POST\",\"body\":\"x\"}\n",
    );
    let run = |more: &[&str]| {
        let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "urls.jsonl"]);
        command.args(FAST).args(more);
        world.finish(command).expect(0)
    };
    run(&[]);
    assert_eq!(world.lab.origin_stats().requests, 2);
    let again = run(&["--refresh"]);
    assert_eq!(world.lab.origin_stats().requests, 3);
    let not_modified: Vec<u64> = again
        .records
        .iter()
        .filter(|record| record.not_modified == Some(true))
        .map(|record| record.line)
        .collect();
    assert_eq!(not_modified, [1, 2]);
    assert!(again.stdout.contains("3 entries: 3 ok"), "{}", again.stdout);
    assert_eq!(run(&[]).records.len(), 5, "nothing is left to do");
}

/// With 304 among the accepted statuses an empty body must not take the place of the stored one.
#[test]
fn a_304_is_no_empty_body_even_where_it_is_accepted() {
    let world = world(&["http://o.test/versions/9"]);
    world.run(&FAST).expect(0);
    let run = world.run(&["--refresh", "--accept", "200-399"]).expect(0);
    let last = run.records.last().unwrap();
    assert_eq!(last.not_modified, Some(true));
    assert!(world.body(last).starts_with(b"version 1 "));
}

/// A refresh of a fleet's whole list: 304s count as good answers of exits and sites.
#[test]
fn no_exit_and_no_site_is_charged_for_304s() {
    let urls: Vec<String> = (0..200)
        .map(|n| format!("http://o.test/versions/9/{n}"))
        .collect();
    let world = world(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    world.run(&FAST).expect(0);
    let again = refresh(&world);
    assert_eq!(again.len(), 200);
    assert!(
        again
            .iter()
            .all(|r| r.not_modified == Some(true) && r.attempts == 1)
    );
    let rows = world.exits_csv();
    assert!(
        rows.iter()
            .all(|r| r["faults"] == "0" && r["state"] == "healthy")
    );
    let ok: u64 = rows.iter().map(|r| r["ok"].parse::<u64>().unwrap()).sum();
    assert_eq!(ok, 200);
}

/// What held a refresh back is told as of any run.
#[test]
fn waits_for_304s_count_as_their_site_s() {
    let world = world(&[
        "http://o.test/versions/9/1",
        "http://o.test/versions/9/2",
        "http://o.test/versions/9/3",
    ]);
    world.run(&FAST).expect(0);
    world.run(&["--rate", "4", "--refresh"]).expect(0);
    let summary = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let waited = summary["origins"][0]["waited_s"].as_f64().unwrap();
    assert!(waited > 0.5, "a quarter and a half of a second: {summary}");
}

/// Between the rename of a new body and its record a file is newer than what is recorded of it.
#[test]
fn a_body_that_a_killed_refresh_replaced_without_a_record_is_fetched_again() {
    let world = world(&["http://o.test/versions/9", "http://o.test/versions/9/other"]);
    let first = world.run(&FAST).expect(0);
    let mark = world.out().join(".refresh");
    assert!(!mark.exists());
    world.urls(["http://o.test/silent"]);
    let mut child = world.start(&["--refresh"]);
    world.until_asked(3);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(mark.exists());
    let file = world.out().join(first.line(1).file.as_ref().unwrap());
    let other = vec![b'x'; std::fs::read(&file).unwrap().len()];
    std::fs::write(&file, other).unwrap();

    world.urls(["http://o.test/versions/9", "http://o.test/versions/9/other"]);
    world.lab.reset();
    let again = world.run(&FAST).expect(0);
    assert_eq!(
        world.lab.origin_stats().requests,
        1,
        "the other one is as it was"
    );
    assert!(
        world
            .body(again.records.last().unwrap())
            .starts_with(b"version 1 ")
    );
    assert!(mark.exists(), "it is for a refresh to settle that");
    refresh(&world);
    assert!(!mark.exists());
}

#[test]
fn a_refresh_that_is_cut_short_loses_nothing_and_can_be_repeated() {
    let urls: Vec<String> = (0..30)
        .map(|n| format!("http://o.test/versions/1/{n}"))
        .collect();
    let world = world(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    world.run(&FAST).expect(0);
    let mut child = world.start(&["--refresh", "--rate", "40"]);
    world.until_asked(36);
    child.kill().unwrap();
    child.wait().unwrap();
    let asked = world.lab.origin_stats().requests;
    assert!(asked < 60, "it was cut short: {asked}");
    let again = refresh(&world);
    assert_eq!(again.len(), 30);
    assert!(again.iter().all(|record| record.outcome == Outcome::Ok));
    let stored = world.stored().len();
    assert_eq!(stored, 30);
    for record in &again {
        let sum = sha2::Sha256::digest(world.body(record));
        assert_eq!(
            exitfetch::model::job::hex(&sum),
            *record.sha256.as_ref().unwrap()
        );
    }
    world.assert_nothing_temporary();
}

impl World {
    #[track_caller]
    fn assert_nothing_temporary(&self) {
        assert!(!self.out().join(".tmp").exists());
    }
}
