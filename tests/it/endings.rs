//! How entries end: their four fates add up, whatever ends first; few descriptors.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::{Run, World};

const FAST: [&str; 2] = ["--rate", "unlimited"];

fn world() -> World {
    World::new(LabConfig::with([ExitConfig::http(), ExitConfig::socks5()]))
}

/// Entries, ok, failed, refused, not reached by `summary.json`.
fn totals(world: &World) -> [u64; 5] {
    let text = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    ["entries", "ok", "failed", "refused", "not_reached"]
        .map(|name| summary["totals"][name].as_u64().unwrap())
}

fn run(world: &World, list: &str, args: &[&str], status: i32) -> Run {
    let _ = std::fs::remove_dir_all(world.out());
    world.write("urls.txt", list);
    let run = world.run(&[&FAST[..], args].concat()).expect(status);
    let [entries, ok, failed, refused, not_reached] = totals(world);
    assert_eq!(entries, ok + failed + refused + not_reached);
    assert_eq!(run.records.len() as u64, ok + failed + refused);
    run
}

/// E08: the same status whichever ends first.
#[test]
fn one_that_failed_decides_the_status_whenever_it_ended() {
    let world = world();
    let (good, bad) = ("http://o.test/ok/9", "http://o.test/status/404");
    let (late_good, late_bad) = (
        "http://o.test/delay/500",
        "http://o.test/status/404?wait=500",
    );
    run(&world, &format!("{bad}\n{late_good}\n"), &[], 3);
    assert_eq!(totals(&world), [2, 1, 1, 0, 0]);
    run(&world, &format!("{late_bad}\n{good}\n"), &[], 3);
    run(&world, &format!("{good}\n{late_bad}\n"), &[], 3);
    run(&world, &format!("{late_good}\n{bad}"), &[], 3);
    run(&world, good, &[], 0);
}

/// E08: a status that is accepted is ok and stored, one that is not is failed and not stored.
#[test]
fn accepted_statuses_are_stored_and_others_are_not() {
    let world = world();
    let list = "http://o.test/status/404\nhttps://o.test/status/410\nhttp://o.test/ok/3\n";
    let ca = ["--cacert", "lab-ca.pem"];
    let run = run(
        &world,
        list,
        &[&ca[..], &["--accept", "200-299,404"]].concat(),
        3,
    );
    assert_eq!(run.line(1).outcome, Outcome::Ok);
    assert_eq!(run.line(1).status, Some(404));
    assert!(!world.body(run.line(1)).is_empty());
    assert_eq!(run.line(2).outcome, Outcome::Failed);
    assert_eq!(run.line(2).status, Some(410));
    assert_eq!(run.line(2).file, None);
    assert_eq!(world.stored().len(), 2);
}

/// A soft limit of 64 open files is enough for any list, and so is a hard one: less goes on at once.
#[test]
fn few_descriptors_slow_the_run_down_and_fail_nothing() {
    let world = World::new(LabConfig::alike(6, &ExitConfig::http()));
    let scheme = |n| if n % 3 == 0 { "https" } else { "http" };
    world.urls((0..300).map(|n| format!("{}://o-{}.test/ok/{n}?wait=20", scheme(n), n % 40)));
    let run = "exec $RUN --rate unlimited --per-exit 10 --cacert lab-ca.pem";
    for limit in ["ulimit -n 64", "ulimit -S -n 64", "ulimit -n 40"] {
        let ended = world
            .finish(world.shell(&format!("{limit}; {run}")))
            .expect(0);
        assert_eq!(ended.count(Outcome::Ok), 300);
        for row in world.exits_csv() {
            assert_eq!(
                (&*row["faults"], &*row["state"]),
                ("0", "healthy"),
                "{limit}"
            );
        }
        world.assert_whole();
        std::fs::remove_dir_all(world.out()).unwrap();
    }
    let ended = world
        .finish(world.shell(&format!("ulimit -n 30; {run}")))
        .expect(1);
    assert!(ended.stderr.contains("ulimit -n"), "{}", ended.stderr);
}
