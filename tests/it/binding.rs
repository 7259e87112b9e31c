//! The last sentence of a run names what really held it back.

use std::process::Command;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use serde_json::Value;

use crate::shells::can_trace;
use crate::world::{Run, World};

/// The sentence and the stage of a run that has ended; the table must end in that sentence.
#[track_caller]
fn binding(world: &World, run: &Run) -> (String, String) {
    let text = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let hint = |name: &str| summary["hint"][name].as_str().unwrap().to_owned();
    let (_, end) = run
        .stdout
        .rsplit_once("where jobs spent their time\n")
        .unwrap();
    let sentence: Vec<&str> = end
        .lines()
        .skip(1)
        .flat_map(str::split_whitespace)
        .collect();
    assert_eq!(sentence.join(" "), hint("knob"), "{}", run.stdout);
    (hint("stage"), hint("knob"))
}

#[test]
fn a_throttled_site_is_named_with_its_budget_and_the_idle_exits() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.urls((0..25).map(|n| format!("http://img.test/ok/{n}")));
    let run = world.run(&["--rate", "10"]).expect(0);
    let (stage, knob) = binding(&world, &run);
    assert_eq!(stage, "budget");
    assert!(
        knob.starts_with("the budget of img.test at 10/s held "),
        "{knob}"
    );
    assert!(
        knob.contains("; exits were idle ") && knob.contains("--rate"),
        "{knob}"
    );
}

#[test]
fn few_exits_are_named_with_how_busy_they_were() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls((0..24).map(|n| format!("http://o{n}.test/delay/150/{n}")));
    let run = world
        .run(&["--rate", "unlimited", "--per-exit", "2"])
        .expect(0);
    let (stage, knob) = binding(&world, &run);
    assert_eq!(stage, "exit_slot");
    assert!(
        knob.starts_with("exit slots held ") && knob.contains("exits were busy "),
        "{knob}"
    );
    assert!(knob.contains("more exits would help"), "{knob}");
}

#[test]
fn slow_bodies_are_named_where_nothing_waits_for_anything_else() {
    let world = World::new(LabConfig::alike(4, &ExitConfig::http()));
    world.urls((0..12).map(|n| format!("http://o{n}.test/drip?bytes=20&ms=1500")));
    let run = world
        .run(&["--rate", "unlimited", "--per-exit", "3"])
        .expect(0);
    let (stage, knob) = binding(&world, &run);
    assert_eq!(stage, "body");
    assert!(knob.starts_with("reading bodies held "), "{knob}");
}

#[test]
fn a_group_that_is_full_is_named_and_not_its_exits() {
    let exit = ExitConfig::http().attributes("group=plan");
    let world = World::new(LabConfig::alike(6, &exit));
    world.write("exitfetch.toml", "[groups.plan]\ncap = 2\n");
    world.urls((0..20).map(|n| format!("http://o{n}.test/delay/150/{n}")));
    let run = world.run(&["--rate", "unlimited"]).expect(0);
    let (stage, knob) = binding(&world, &run);
    assert_eq!(stage, "group");
    assert!(knob.starts_with("full groups held "), "{knob}");
}

/// Every final name takes 20 ms to be given, as on a disk that is slow or far away.
#[test]
fn a_slow_disk_is_named_although_every_job_seems_to_wait_for_something_else() {
    if !can_trace() {
        return;
    }
    let world = World::new(LabConfig::alike(
        4,
        &ExitConfig::http().base(Duration::from_millis(5)),
    ));
    world.urls((0..60).map(|n| format!("http://o{}.test/ok/{n}", n % 10)));
    let mut strace = Command::new("strace");
    let slow = "inject=linkat,renameat:delay_exit=20000";
    strace.args([
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "trace=linkat,renameat",
        "-e",
        slow,
    ]);
    let exitfetch = world.command(&["--rate", "unlimited"]);
    strace
        .arg(exitfetch.get_program())
        .args(exitfetch.get_args());
    strace.current_dir(world.dir()).env_remove("NO_COLOR");
    strace.stdin(std::process::Stdio::null());
    strace
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let run = world.finish(strace).expect(0);
    let (stage, knob) = binding(&world, &run);
    assert_eq!(stage, "disk", "{knob}");
    assert!(knob.starts_with("the disk was busy "), "{knob}");
}
