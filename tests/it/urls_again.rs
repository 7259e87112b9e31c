//! `exitfetch urls`: a run's output as a list for the next run, and nothing that would be
//! another request.

use exitfetch::lab::{ExitConfig, LabConfig};

use crate::world::World;

fn ran(list: &str) -> World {
    let world = World::new(LabConfig::with([ExitConfig::http()]));
    world.write("urls.jsonl", list);
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "urls.jsonl"]);
    command.args(["--rate", "unlimited", "--retries", "0"]);
    world.finish(command).expect(3);
    world
}

fn urls(world: &World, args: &[&str]) -> (Option<i32>, String, String) {
    let words = [&["urls", "exitfetch-out"], args].concat();
    let run = world.finish(world.exitfetch(words));
    (run.status, run.stdout, run.stderr)
}

const LIST: &str = "{\"url\":\"http://o.test/ok/1\"}\n\
    {\"url\":\"http://o.test/status/404\",\"id\":\"lamp\",\"shop\":\"north\"}\n\
    {\"url\":\"http://o.test/bytes/9?field=X: y\",\"method\":\"BAD METHOD\"}\n\
    {\"url\":\"http://o.test/truncated/9\"}\n";

#[test]
fn urls_are_listed_by_how_they_ended_and_why() {
    let world = ran(LIST);
    let listed = |args: &[&str]| {
        let (status, out, said) = urls(&world, args);
        assert_eq!((status, said.as_str()), (Some(0), ""), "{args:?}");
        out
    };
    assert_eq!(listed(&["--outcome", "ok"]), "http://o.test/ok/1\n");
    let failed = "http://o.test/status/404\nhttp://o.test/truncated/9\n";
    let mut lines: Vec<String> = listed(&["--outcome", "failed"])
        .lines()
        .map(Into::into)
        .collect();
    lines.sort();
    assert_eq!(lines.join("\n") + "\n", failed);
    assert_eq!(
        listed(&["--kind", "truncated"]),
        "http://o.test/truncated/9\n"
    );
    assert_eq!(
        listed(&["--kind", "status", "--kind", "bad_entry"])
            .lines()
            .count(),
        2
    );
    assert_eq!(listed(&["--outcome", "refused"]).lines().count(), 1);
    assert_eq!(listed(&[]).lines().count(), 4);
    let lamp = listed(&["--kind", "status", "--format", "jsonl"]);
    let lamp: serde_json::Value = serde_json::from_str(&lamp).unwrap();
    let expected =
        serde_json::json!({"url": "http://o.test/status/404", "id": "lamp", "shop": "north"});
    assert_eq!(lamp, expected);
}

/// What was fetched meanwhile is no longer on the list of what failed.
#[test]
fn the_last_record_counts_and_the_list_can_be_fetched() {
    let world = ran(
        "{\"url\":\"http://o.test/flaky/1\",\"id\":\"a\"}\n{\"url\":\"http://o.test/status/410\",\"id\":\"b\"}\n",
    );
    let (_, list, _) = urls(&world, &["--outcome", "failed", "--format", "jsonl"]);
    assert_eq!(list.lines().count(), 2);
    world.write("again.jsonl", list);
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "again.jsonl"]);
    command.args(["--rate", "unlimited"]);
    let run = world.finish(command).expect(3);
    assert_eq!(run.records.len(), 4, "the same ids in the same directory");
    let (_, list, _) = urls(&world, &["--outcome", "failed"]);
    assert_eq!(list, "http://o.test/status/410\n");
}

#[test]
fn what_a_record_does_not_hold_is_left_out_and_told() {
    let world = ran("{\"url\":\"http://bob:hunter2@o.test/status/404\"}\n\
         {\"url\":\"http://o.test/status/404/post\",\"body\":\"x=hunter2\"}\n\
         {\"url\":\"http://o.test/status/404/head\",\"method\":\"HEAD\"}\n\
         {\"url\":\"http://o.test/status/404/get\"}\n");
    let (status, out, said) = urls(&world, &["--outcome", "failed"]);
    assert_eq!(status, Some(3));
    assert_eq!(out, "http://o.test/status/404/get\n");
    assert!(said.contains("left out 1 (the URL holds a login"), "{said}");
    assert!(said.contains("take line 1 from"), "{said}");
    assert!(said.contains("left out 2 (no plain GET"), "{said}");
    assert!(!said.contains("hunter2") && said.lines().count() == 2);
    let (_, out, _) = urls(&world, &["--outcome", "failed", "--format", "jsonl"]);
    assert!(
        out.contains("\"method\":\"HEAD\"") && out.lines().count() == 2,
        "{out}"
    );
}

/// A refused text need not be a URL; its login is masked in the record all the same.
#[test]
fn a_refused_entry_with_a_login_is_left_out_like_any_other() {
    let world = ran("{\"url\":\"http://bob:hunter2@o.test:x/\"}\n{\"url\":\"o.test/x\"}\n");
    let (status, out, said) = urls(&world, &["--outcome", "refused"]);
    assert_eq!((status, out.as_str()), (Some(3), "o.test/x\n"));
    assert!(said.contains("left out 1 (the URL holds a login"), "{said}");
}

#[test]
fn a_directory_without_a_run_and_an_unknown_kind_are_told() {
    let world = World::new(LabConfig::with([ExitConfig::http()]));
    let (status, _, said) = urls(&world, &[]);
    assert_eq!((status, said.lines().count()), (Some(2), 1));
    assert!(
        said.contains("exitfetch-out is no output directory of a run"),
        "{said}"
    );
    let (status, _, said) = urls(&world, &["--kind", "timeot"]);
    assert_eq!(status, Some(2));
    assert!(said.contains("`timeot` is no kind of error"), "{said}");
}
