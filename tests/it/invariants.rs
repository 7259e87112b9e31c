//! The invariants of `ARCHITECTURE.md` that only the whole program can show.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::{Outcome, Record};

use crate::world::World;

/// A port of this machine that counts who comes.
fn watched() -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let visitors = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&visitors);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, visitors)
}

/// Invariant 1: a slot is taken until the body has ended, not until its head is there.
#[test]
fn a_slot_is_taken_until_the_body_is_read() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let world = World::new(LabConfig::alike(1, &exit));
        world.urls((0..8).map(|n| format!("http://o.test/drip/{n}?bytes=20&ms=400")));
        let run = world
            .run(&["--rate", "unlimited", "--per-exit", "2"])
            .expect(0);
        assert_eq!(run.count(Outcome::Ok), 8);
        let seen = world.exit(0).stats();
        assert_eq!((seen.in_flight.peak, seen.sockets.peak), (2, 2), "{seen:?}");
        assert!(run.took.as_millis() >= 1_500, "{:?}", run.took);
        let row = &world.exits_csv()[0];
        assert_eq!(
            (&*row["cap"], &*row["peak"], &*row["peak_sockets"]),
            ("2", "2", "2")
        );
    }
}

/// Invariant 2, by the group's own count and by the sum of what its exits saw.
#[test]
fn the_exits_of_a_group_never_carry_more_than_its_cap_together() {
    let exit = ExitConfig::http().attributes("group=plan");
    let world = World::new(LabConfig::alike(4, &exit));
    world.write("exitfetch.toml", "[groups.plan]\ncap = 3\n");
    world.urls((0..24).map(|n| format!("http://o-{n}.test/delay/100")));
    let run = world
        .run(&["--rate", "unlimited", "--per-exit", "3"])
        .expect(0);
    assert!(
        run.stdout.contains("group plan: cap 3, peak 3"),
        "{}",
        run.stdout
    );
    assert_eq!(world.lab.origin_stats().in_flight.peak, 3);
}

/// Invariant 6: records are one per entry, and what the summary says adds up to the entries.
#[test]
fn every_entry_ends_in_one_record_and_the_counts_add_up() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    let list =
        "# comment\nhttp://o.test/ok/1\n\nhttp://o.test/ok/1\nno url\nhttp://o.test/status/404\n";
    world.write("urls.txt", list);
    for _ in 0..2 {
        let run = world.run(&["--summary", "json"]).expect(3);
        let summary: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let count = |name: &str| summary["totals"][name].as_u64().unwrap();
        assert_eq!((count("ok"), count("failed"), count("refused")), (2, 1, 1));
        assert_eq!((count("entries"), count("not_reached")), (4, 0));
        for line in [2, 4, 5, 6] {
            run.line(line);
        }
    }
    let stopped = world
        .run(&["--out", "stopped", "--rate", "1/h", "--max-time", "1s"])
        .expect(5);
    assert!(
        stopped
            .stdout
            .contains("4 entries: 2 ok, 0 failed, 1 refused, 1 not reached"),
        "{}",
        stopped.stdout
    );
}

/// Invariant 7: SIGKILL at several moments, then half a record by hand, then a last run.
#[test]
fn whenever_a_run_is_killed_what_is_there_is_whole_and_recorded() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.urls((0..16).map(|n| format!("http://o-{n}.test/drip?bytes=1000&ms=300")));
    let args = ["--rate", "unlimited", "--per-exit", "2"];
    for moment in [150, 450, 700] {
        let mut child = world.command(&args).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
        whole_and_recorded(&world);
    }
    let journal = world.out().join("results.jsonl");
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(journal)
        .unwrap();
    file.write_all(b"{\"id\":\"half").unwrap();
    let run = world.run(&args).expect(0);
    assert_eq!(run.count(Outcome::Ok), 16);
    assert_eq!(whole_and_recorded(&world), 16);
}

/// Every file under its final name has all its bytes, every ok record has its file. Answers how
/// many files there are.
fn whole_and_recorded(world: &World) -> usize {
    let mut bodies = Vec::new();
    let mut folders = vec![world.out().join("bodies")];
    while let Some(folder) = folders.pop() {
        // A run killed early has made no directory yet.
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => bodies.push(path),
            }
        }
    }
    for body in &bodies {
        assert_eq!(body.metadata().unwrap().len(), 1000, "{}", body.display());
    }
    let text = std::fs::read_to_string(world.out().join("results.jsonl")).unwrap_or_default();
    let whole = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Record>(line).ok());
    for record in whole.filter(|record| record.outcome == Outcome::Ok) {
        assert_eq!(world.body(&record).len(), 1000);
    }
    bodies.len()
}

/// Invariant 8: the target is on this very machine and could be reached without an exit, and
/// the environment names other ways.
#[test]
fn nothing_leaves_but_through_an_exit_whatever_the_environment_says() {
    let (target, direct) = watched();
    let (other, strayed) = watched();
    let broken =
        ExitConfig::http().behaving(Behaviour::Everything(exitfetch::lab::Page::bare(502)));
    let world = World::new(LabConfig::with([broken, ExitConfig::http()]));
    world.urls([
        format!("http://{target}/ok/5"),
        format!("http://{target}/redirect-to?url=http://{target}/ok/6"),
    ]);
    let proxy = format!("http://{other}");
    let mut command = world.command(&[]);
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env(name, &proxy);
    }
    command.env("NO_PROXY", "*").env("no_proxy", "*");
    let run = world.finish(command).expect(0);
    assert_eq!(run.count(Outcome::Ok), 2);
    for list in ["", "# none\n", "alice:pw:127.0.0.1:1\n"] {
        world.write("exits.txt", list);
        world.run(&["--out", "none"]).expect(2);
        assert!(!world.dir().join("none").exists(), "{list:?}");
    }
    assert_eq!(
        direct.load(Ordering::SeqCst),
        0,
        "a target was asked directly"
    );
    assert_eq!(
        strayed.load(Ordering::SeqCst),
        0,
        "a proxy of the environment was used"
    );
}

/// Every byte below `dir`.
fn all_bytes(dir: &std::path::Path, into: &mut Vec<u8>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all_bytes(&path, into);
        } else {
            std::fs::File::open(path)
                .unwrap()
                .read_to_end(into)
                .unwrap();
        }
    }
}

/// Invariant 9: logins of exits and of URLs, good and refused ones, plain and in Base64.
#[test]
fn no_login_shows_in_any_output() {
    let good = ExitConfig::http().login("s3ssion-a", "hunter2");
    let world = World::new(LabConfig::with([good, ExitConfig::socks5()]));
    let exits = format!(
        "{}socks9://s3ssion-a:hunter2@h.test:1\nhttp://s3ssion-a:hunter2@h.test:99999\nhttp://s3ssion-a:wrong-hunter2@{}\n",
        world.lab.exits_txt(),
        world.exit(0).address(),
    );
    world.write("exits.txt", exits);
    world.urls([
        "http://o.test/ok/9",
        "http://s3ssion-a:hunter2@o.test/status/500",
        "http://s3ssion-a:hunter2@[::/",
    ]);
    for more in [
        ["-v", "--log-format=text"],
        ["-v", "--log-format=json"],
        ["--summary=json", "--dry-run"],
    ] {
        let run = world
            .run(&[&more[..], &["--retries", "1", "--rate", "unlimited"]].concat())
            .expect(3);
        let mut seen = (run.stdout + &run.stderr).into_bytes();
        all_bytes(&world.out(), &mut seen);
        let seen = String::from_utf8_lossy(&seen);
        for secret in ["s3ssion-a", "hunter2", "czNzc2lvbi1h", "aHVudGVyMg"] {
            let at = seen.find(secret);
            let near = at.map(|at| {
                seen[at.saturating_sub(80)..]
                    .chars()
                    .take(120)
                    .collect::<String>()
            });
            assert_eq!(near, None, "{more:?}");
        }
    }
    assert_eq!(world.lab.origin_stats().proxy_fields, 0);
}
