//! A disk that is full, read-only or no directory at all: the run's own fault, said at once.

use std::process::Command;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::shells::{tree, whole_records};
use crate::world::World;

/// 20 bodies of 100,000 bytes, 2 exits.
fn world() -> World {
    let world = World::new(LabConfig::with([ExitConfig::http(), ExitConfig::socks5()]));
    world.urls((0..20).map(|n| format!("http://o.test/bytes/100000/{n}?wait=50")));
    world
}

/// A small file system can be had here, in a mount namespace of its own.
fn can_mount() -> bool {
    let mount = "mount -t tmpfs none /mnt";
    let can = Command::new("unshare")
        .args(["-rm", "sh", "-c", mount])
        .output()
        .is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("left out: no file system can be mounted here");
    }
    can
}

/// The run in a file system that is mounted with `options`; what it left is then in
/// `exitfetch-out`.
fn run_mounted(world: &World, options: &str, args: &str) -> crate::world::Run {
    let script = format!(
        "mkdir fs && mount -t tmpfs -o size=600k none fs && mkdir fs/out &&
         mount -o remount,{options} fs &&
         {{ $RUN --rate unlimited --out fs/out {args}; status=$?; cp -a fs/out exitfetch-out; exit $status; }}"
    );
    let mut command = world.shell("exec unshare -rm bash -c \"$SCRIPT\"");
    command.env("SCRIPT", script);
    world.finish(command)
}

/// E04: a body that does not fit stops the run; nobody else is blamed, what is there is whole.
#[test]
fn a_full_disk_stops_the_run_and_leaves_whole_files_only() {
    if !can_mount() {
        return;
    }
    let world = world();
    let run = run_mounted(&world, "rw", "--min-free 0").expect(1);
    assert!(
        run.stderr.contains("space") || run.stderr.contains("disk"),
        "{}",
        run.stderr
    );
    let requests = world.lab.origin_stats().requests;
    assert!((1..=14).contains(&requests), "{requests} requests");
    world.assert_whole();
    assert!(
        run.count(Outcome::Ok) >= 3,
        "{}\n{:?}",
        run.stderr,
        world.stored().keys()
    );
    assert_eq!(run.count(Outcome::Failed), 0, "nothing is blamed on a job");
    assert_eq!(world.stored().len(), run.count(Outcome::Ok));
    assert!(run.stdout.contains("not reached"), "{}", run.stdout);
}

/// E04: with the default `--min-free` a nearly full disk is seen before the first request.
#[test]
fn too_little_free_space_is_seen_before_the_first_request() {
    if !can_mount() {
        return;
    }
    let world = world();
    let run = run_mounted(&world, "rw", "").expect(1);
    assert!(run.stderr.contains("--min-free"), "{}", run.stderr);
    assert_eq!(world.lab.origin_stats().requests, 0);
}

/// E04.
#[test]
fn a_read_only_directory_is_seen_before_the_first_request() {
    if !can_mount() {
        return;
    }
    let world = world();
    let run = run_mounted(&world, "ro", "--min-free 0").expect(1);
    assert!(run.stderr.contains("fs/out"), "{}", run.stderr);
    assert_eq!(world.lab.origin_stats().requests, 0);
}

/// E04: `--out` names a file, or lies below one, or cannot be made.
#[test]
fn an_output_that_can_be_no_directory_is_seen_before_the_first_request() {
    let world = world();
    world.write("file", "kept");
    std::fs::create_dir_all(world.dir().join("taken/results.jsonl")).unwrap();
    std::fs::create_dir_all(world.dir().join("odd")).unwrap();
    std::fs::write(world.dir().join("odd/bodies"), "kept").unwrap();
    for out in ["file", "file/below", "/proc/none/out", "taken", "odd"] {
        let run = world.run(&["--out", out]).expect(1);
        let named = out.trim_end_matches("/below");
        assert!(run.stderr.contains(named), "{out}: {}", run.stderr);
        assert_eq!(world.lab.origin_stats().requests, 0, "{out}");
    }
    assert_eq!(std::fs::read(world.dir().join("file")).unwrap(), b"kept");
}

/// E04: a write that fails in mid-body, with room left for the journal (a limit on file size
/// in the place of a quota). The other side is not at fault and not asked again and again.
#[test]
fn a_body_that_cannot_be_written_is_a_local_fault() {
    let world = world();
    world.urls((0..20).map(|n| format!("http://o.test/bytes/200000/{n}?wait=50")));
    let script = "trap '' XFSZ; ulimit -f 150; exec $RUN --rate unlimited";
    let run = world.finish(world.shell(script)).expect(1);
    assert!(world.lab.origin_stats().requests <= 14);
    assert_eq!(run.count(Outcome::Failed), 0);
    assert!(world.stored().is_empty());
    for row in world.exits_csv() {
        assert_eq!((&*row["faults"], &*row["state"]), ("0", "healthy"));
    }
    world.assert_whole();
    // The same directory with room again.
    assert_eq!(
        world.run(&["--rate", "unlimited"]).expect(0).records.len(),
        20
    );
}

/// E04: the journal itself is what does not fit. Every line of it is a record all the same.
#[test]
fn a_journal_that_cannot_be_written_stops_the_run_with_whole_lines() {
    let world = world();
    world.urls((0..300).map(|n| format!("http://o.test/bytes/10/{n}?wait=5")));
    let script = "trap '' XFSZ; ulimit -f 20; exec $RUN --rate unlimited --per-exit 4";
    let run = world.finish(world.shell(script)).expect(1);
    assert!(run.stderr.contains("results.jsonl"), "{}", run.stderr);
    let records = whole_records(&world.out());
    assert_eq!(records.len(), run.records.len(), "no torn line");
    assert!(
        records.len() > 10 && records.len() < 300,
        "{}",
        records.len()
    );
    for record in &records {
        assert_eq!(world.body(record).len(), 10);
    }
    assert!(tree(&world.out(), ".tmp").is_empty());
    let run = world.run(&["--rate", "unlimited"]).expect(0);
    assert_eq!(run.records.len(), 300);
}
