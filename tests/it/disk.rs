//! A disk that is full, read-only or no directory at all: the run's own fault, said at once.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::job::hex;
use exitfetch::model::{Outcome, Record};
use exitfetch::store::open_body;
use sha2::{Digest, Sha256};

use crate::shells::{tree, until, whole_records};
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
    let script = "ulimit -f 150; exec $RUN --rate unlimited";
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
    let script = "ulimit -f 20; exec $RUN --rate unlimited --per-exit 4";
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

/// The layouts that a body may be stored in.
const LAYOUTS: [&str; 3] = ["--summary=table", "--warc", "--warc-gz"];

/// Fails unless each ok record's body is there, and each line has one at most.
#[track_caller]
fn assert_recorded_is_good(world: &World, records: &[Record]) {
    let mut lines = std::collections::HashSet::new();
    for record in records.iter().filter(|r| r.outcome == Outcome::Ok) {
        assert!(lines.insert(record.line), "twice: {record:?}");
        let mut body = Vec::new();
        let mut stored = open_body(&world.out(), record).unwrap();
        stored.read_to_end(&mut body).unwrap();
        let digest = hex(&Sha256::digest(&body));
        assert_eq!(Some(&digest), record.sha256.as_ref(), "{record:?}");
    }
}

/// Fails unless the run said once that the disk is full, and recorded what it stored and no more.
#[track_caller]
fn assert_stopped_by_a_full_disk(world: &World, run: &crate::world::Run, lines: usize) {
    let errors = run.stderr.lines().filter(|line| line.starts_with("error:"));
    assert_eq!(errors.count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("disk full"), "{}", run.stderr);
    let ok = run.count(Outcome::Ok);
    assert!((1..lines).contains(&ok), "{ok}");
    assert_eq!(run.records.len(), ok, "nothing is blamed on a job");
    assert_recorded_is_good(world, &run.records);
}

/// The same command again, with nothing in its way: everything is there then, and nothing
/// temporary.
#[track_caller]
fn assert_completed_by(world: &World, layout: &str, lines: usize) {
    let run = world.run(&["--rate", "unlimited", layout]).expect(0);
    assert_eq!(run.count(Outcome::Ok), lines);
    assert_recorded_is_good(world, &run.records);
    assert!(!world.out().join(".tmp").exists());
    let open = |path: &Path| path.extension().is_some_and(|end| end == "open");
    assert!(!tree(&world.out(), "").keys().any(|path| open(path)));
}

/// E04: archives meet a full disk like files do; with room again the run goes on.
#[test]
fn whatever_the_layout_a_full_disk_loses_nothing_and_a_resume_completes_it() {
    if !can_mount() {
        return;
    }
    for layout in LAYOUTS {
        let world = world();
        let run = run_mounted(&world, "rw", &format!("--min-free 0 {layout}")).expect(1);
        assert_stopped_by_a_full_disk(&world, &run, 20);
        assert_completed_by(&world, layout, 20);
    }
}

/// E04: where many short bodies wait at once another thread makes their files; a disk that is full
/// for it is met in the same way.
#[test]
fn many_short_bodies_that_meet_a_full_disk_are_not_lost_either() {
    if !can_mount() {
        return;
    }
    let world = World::new(LabConfig::with((0..20).map(|_| ExitConfig::http())));
    world.urls((0..600).map(|n| format!("http://o.test/bytes/1000/{n}?wait=20")));
    let run = run_mounted(&world, "rw", "--per-exit 10 --min-free 0").expect(1);
    assert_stopped_by_a_full_disk(&world, &run, 600);
    let ok = run.count(Outcome::Ok);
    assert_eq!(world.stored().len(), ok, "what is stored is recorded");
    assert_completed_by(&world, "--summary=table", 600);
}

/// Takes the right to write from every directory below `out`, or gives it back.
fn allow_writing(out: &Path, mode: u32) {
    let mut left = vec![out.to_owned()];
    while let Some(dir) = left.pop() {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        left.extend(entries.map(|e| e.path()).filter(|path| path.is_dir()));
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// E04: a directory that turns unwritable while the run is under way.
#[test]
fn a_directory_that_turns_unwritable_stops_the_run_and_a_resume_completes_it() {
    // Permissions are no obstacle for root while it has these capabilities.
    let script = "if [ \"$(id -u)\" = 0 ]; then
           drop=-dac_override,-dac_read_search
           exec setpriv --bounding-set=$drop --inh-caps=$drop $RUN --rate unlimited $LAYOUT
         else
           exec $RUN --rate unlimited $LAYOUT
         fi";
    for layout in LAYOUTS {
        let world = world();
        world.urls((0..40).map(|n| match n % 2 {
            0 => format!("http://o.test/bytes/100000/{n}?wait=100"),
            _ => format!("http://o.test/bytes/1000/{n}?wait=100"),
        }));
        let mut command = world.shell(script);
        let child = command.env("LAYOUT", layout).spawn().unwrap();
        until("some are recorded", || {
            whole_records(&world.out()).len() >= 4
        });
        allow_writing(&world.out(), 0o555);
        let run = world.wait(child);
        allow_writing(&world.out(), 0o755);
        let run = run.expect(1);
        let errors = run.stderr.lines().filter(|line| line.starts_with("error:"));
        assert_eq!(errors.count(), 1, "{layout}: {}", run.stderr);
        assert!(run.stderr.contains("exitfetch-out"), "{}", run.stderr);
        assert!(run.took < Duration::from_secs(60), "{:?}", run.took);
        let ok = run.count(Outcome::Ok);
        assert_eq!(run.records.len(), ok, "nothing is blamed on a job");
        assert_recorded_is_good(&world, &run.records);
        assert_completed_by(&world, layout, 40);
    }
}

#[test]
fn a_journal_that_is_taken_away_meanwhile_is_no_success() {
    let world = world();
    let child = world.start(&["--rate", "10"]);
    until("some are recorded", || {
        !whole_records(&world.out()).is_empty()
    });
    std::fs::remove_file(world.out().join("results.jsonl")).unwrap();
    let run = world.wait(child).expect(1);
    assert!(
        run.stderr.contains("removed during the run"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_file_size_limit_ends_no_command_without_a_word() {
    let world = world();
    let limited = world.shell("ulimit -f 1; exec $EXITFETCH man run > page");
    let run = world.finish(limited).expect(1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("File too large"), "{}", run.stderr);
}
