//! `exitfetch report`: the page of real runs, opened in a real browser where there is one.

use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exitfetch::lab::{ExitConfig, LabConfig};

use crate::world::World;

/// A browser that takes longer than this is ended; the machine may be busy.
const LIMIT: Duration = Duration::from_secs(150);

/// What opening a page brought.
struct Opened {
    stdout: String,
    stderr: String,
}

fn has_chromium() -> bool {
    let has = Command::new("chromium")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("left out: chromium is not installed");
    }
    has
}

/// Opens `page` in a browser that knows nothing and nobody.
fn open(page: &Path, args: &[&str]) -> Opened {
    let profile = tempfile::tempdir().unwrap();
    let output = |name: &str| profile.path().join(name);
    let file = |name: &str| std::fs::File::create(output(name)).unwrap();
    let mut child = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .arg(format!(
            "--user-data-dir={}",
            profile.path().join("profile").display()
        ))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .process_group(0)
        .spawn()
        .unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if start.elapsed() > LIMIT {
            // Its helpers are in its group.
            let group = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let read =
        |name: &str| String::from_utf8_lossy(&std::fs::read(output(name)).unwrap()).into_owned();
    let opened = Opened {
        stdout: read("stdout"),
        stderr: read("stderr"),
    };
    assert!(
        status.is_some_and(|status| status.success()),
        "{status:?}\n{}",
        opened.stderr
    );
    opened
}

/// What `report` wrote for the world's output directory.
fn report(world: &World) -> (PathBuf, String) {
    let run = world
        .finish(world.exitfetch(["report", "exitfetch-out"]))
        .expect(0);
    assert_eq!(run.stdout, "exitfetch-out/report.html\n");
    let path = world.out().join("report.html");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() < 2_000_000);
    (path, text)
}

/// The value of an attribute of each strip, by exit.
fn strips(dom: &str, attribute: &str) -> HashMap<String, String> {
    let value = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!("{name}=\"")).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let tags = dom.split("data-exit=").skip(1);
    let tags = tags.map(|rest| format!("data-exit={}", rest.split('>').next().unwrap()));
    tags.map(|tag| (value(&tag, "data-exit"), value(&tag, attribute)))
        .collect()
}

/// Several exits, one of them of no use, and answers that would like to be markup.
fn fetched() -> World {
    let mut exits = vec![
        ExitConfig::http()
            .capacity(3)
            .attributes("tier=static cap=3");
        3
    ];
    exits.push(ExitConfig::http().behaving("407".parse().unwrap()));
    let world = World::new(LabConfig::with(exits));
    let evil = "http://o.test/status/404?<img/src=http://evil.test/x><script>a</script>".to_owned();
    let good = (0..40).map(|n| format!("http://o{}.test/delay/200/{n}", n % 8));
    world.urls(good.chain([evil]));
    world.run(&["--rate", "8", "--progress", "never"]).expect(3);
    world
}

#[test]
fn the_page_opens_without_error_and_request_and_its_strips_show_the_peaks() {
    let world = fetched();
    let (path, text) = report(&world);
    let csv: HashMap<String, String> = world
        .exits_csv()
        .into_iter()
        .filter(|row| row["attempts"] != "0")
        .map(|row| (row["id"].clone(), row["peak"].clone()))
        .collect();
    assert_eq!(csv.len(), 4);
    assert_eq!(strips(&text, "data-peak"), csv);
    for (exit, cap) in strips(&text, "data-cap") {
        assert!(
            csv[&exit].parse::<u32>().unwrap() <= cap.parse().unwrap(),
            "{exit}"
        );
    }
    if !has_chromium() {
        return;
    }
    let log = world.dir().join("net.json");
    let opened = open(
        &path,
        &["--dump-dom", &format!("--log-net-log={}", log.display())],
    );
    assert_eq!(strips(&opened.stdout, "data-peak"), csv);
    assert!(!opened.stdout.contains("<script"), "a script came in");
    let console: Vec<&str> = opened
        .stderr
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    assert!(console.is_empty(), "{console:?}");
    let asked = std::fs::read_to_string(log).unwrap();
    assert!(asked.contains("report.html"), "the log is not of this page");
    assert!(!asked.contains("evil.test"), "the page asked the network");
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target");
    std::fs::create_dir_all(&target).unwrap();
    for (width, height) in [(1280, 2600), (390, 3600)] {
        let shot = target.join(format!("report-{width}.png"));
        let _ = std::fs::remove_file(&shot);
        let opened = open(
            &path,
            &[
                &format!("--screenshot={}", shot.display()),
                &format!("--window-size={width},{height}"),
            ],
        );
        let size = std::fs::metadata(&shot).map_or(0, |meta| meta.len());
        assert!(size > 10_000, "{width}: {size} bytes\n{}", opened.stderr);
    }
}

#[test]
fn a_resumed_directory_shows_both_runs_and_fresh_begins_a_new_timeline() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.urls((0..20).map(|n| format!("http://o.test/ok/{n}")));
    world
        .run(&["--rate", "5", "--max-time", "1500ms"])
        .expect(5);
    world.run(&["--rate", "20"]).expect(0);
    let (_, text) = report(&world);
    for part in [
        "complete</span>",
        "2 runs",
        ">run 1</span>",
        ">run 2</span>",
    ] {
        assert!(text.contains(part), "{part}");
    }
    world.run(&["--rate", "unlimited", "--fresh"]).expect(0);
    let lines = |name: &str| {
        let text = std::fs::read_to_string(world.out().join(name)).unwrap();
        text.matches("{\"run\":").count()
    };
    assert_eq!((lines("timeline.jsonl"), lines("timeline.1.jsonl")), (1, 2));
}

#[test]
fn the_page_goes_where_it_is_wanted_and_other_directories_are_refused() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let words = |words: &[&str]| world.finish(world.exitfetch(words));
    std::fs::create_dir(world.dir().join("empty")).unwrap();
    let run = words(&["report", "empty", "-o", "-"]).expect(0);
    assert!(run.stdout.starts_with("<!doctype html>") && run.stdout.contains("no record yet"));
    words(&["report", "empty", "-o", "page.html"]).expect(0);
    assert!(world.dir().join("page.html").is_file());
    let run = words(&["report", "."]).expect(2);
    assert!(run.stderr.contains("no output directory"), "{}", run.stderr);
    let run = words(&["report", "gone"]).expect(2);
    assert!(run.stderr.contains("gone"), "{}", run.stderr);
}
