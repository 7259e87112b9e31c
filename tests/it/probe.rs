//! `probe` against exits of the lab whose capacity is known, and what `run` makes of it.

use std::time::Duration;

use exitfetch::lab::{Account, Behaviour, ExitConfig, LabConfig};
use rustix::process::Signal;
use serde_json::Value;

use crate::shells::{send, until};
use crate::world::{Run, World};

/// What an exit takes for a request: long against the noise of a busy machine.
const BASE: Duration = Duration::from_millis(60);
/// The same where no capacity is looked for.
const SHORT: Duration = Duration::from_millis(30);

const FILE: &str = "exits.txt.probe.json";

fn exit(capacity: u32) -> ExitConfig {
    ExitConfig::http().capacity(capacity).base(BASE)
}

fn world(exits: impl IntoIterator<Item = ExitConfig>) -> World {
    World::new(LabConfig::with(exits))
}

/// `exitfetch probe --exits exits.txt ARGS`, to its end.
fn probe(world: &World, args: &[&str]) -> Run {
    let mut command = world.exitfetch(["probe", "--exits", "exits.txt"]);
    command.args(args);
    world.finish(command)
}

/// A probe whose result has to be right. A busy machine may disturb some: then a later one has
/// to be right.
#[track_caller]
fn measure(world: &World, args: &[&str], is_right: impl Fn(&Value) -> bool) -> (Run, Value) {
    let mut told = String::new();
    for _ in 0..5 {
        world.lab.reset();
        let run = probe(world, args);
        if run.status == Some(0) {
            let found = file(world);
            if is_right(&found) {
                return (run, found);
            }
        }
        told += &run.stdout;
    }
    panic!("five probes were wrong:\n{told}");
}

/// What one exit of the first tier carries.
fn per_exit(found: &Value) -> u64 {
    found["tiers"][0]["per_exit"].as_u64().unwrap()
}

fn own(target: &str) -> [&str; 3] {
    ["--target", target, "--own-target"]
}

fn file(world: &World) -> Value {
    let text = std::fs::read_to_string(world.dir().join(FILE)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn requests(world: &World) -> u64 {
    world
        .lab
        .exits()
        .iter()
        .map(|exit| exit.stats().requests)
        .sum()
}

/// Probe, then run, in one directory: the run's caps are the probed ones, and it says so.
#[test]
fn a_run_takes_its_caps_from_the_probe() {
    let world = world([exit(4).attributes("tier=static")]);
    let page = world.dir().join("probe.html");
    let mut args = own("http://o.test/bytes/100").to_vec();
    args.extend(["--html", "probe.html"]);
    let (probed, found) = measure(&world, &args, |found| (4..=6).contains(&per_exit(found)));
    let carries = per_exit(&found);
    assert_eq!(found["tiers"][0]["tier"], "static");
    // Which of the two shows first is a matter of milliseconds.
    let reason = found["tiers"][0]["reason"].as_str();
    assert!(matches!(reason, Some("PLATEAU" | "LATENCY")), "{found:#}");
    assert!(requests(&world) <= 400 && probed.stdout.contains("spent: "));
    assert!(
        probed.stdout.contains(&format!("per_exit {carries}\n")),
        "{}",
        probed.stdout
    );
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg") && html.contains(">knee</text>"));
    assert!(world.exit_at_rest(0).sockets.peak <= 16);

    world.urls((0..30).map(|n| format!("http://o.test/ok/{n}")));
    world.lab.reset();
    let fast = ["--rate", "unlimited"];
    let run = world.run(&fast).expect(0);
    assert_eq!(world.exits_csv()[0]["cap"], carries.to_string());
    assert_eq!(u64::from(world.exit_at_rest(0).in_flight.peak), carries);
    let sentence = format!("caps from {FILE} (today's): static {carries}");
    assert!(
        run.stdout.contains(&sentence) && run.stderr.contains(&sentence),
        "{}",
        run.stdout
    );
    let summary = std::fs::read_to_string(world.out().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["probe"]["caps"]["static"], carries);

    // The page of the run draws what its caps came from.
    let report = world.finish(world.exitfetch(["report", "exitfetch-out"]));
    report.expect(0);
    let page = std::fs::read_to_string(world.out().join("report.html")).unwrap();
    assert!(page.contains("<h2>Probe</h2>"), "no curve");

    // Without the file the tier's name decides, with --per-exit the user.
    for (flags, cap) in [
        (["--no-probe-file", "--fresh"], "5"),
        (["--per-exit=2", "--fresh"], "2"),
    ] {
        let run = world.run(&[&fast[..], &flags[..]].concat()).expect(0);
        assert_eq!(world.exits_csv()[0]["cap"], cap);
        assert!(!run.stdout.contains("caps from"), "{}", run.stdout);
    }
}

/// A result of 31 days ago is used and warned about; a file that cannot be read is ignored.
#[test]
fn an_old_file_is_warned_about_and_a_broken_one_ignored() {
    let world = world([
        exit(0).attributes("tier=static cap=9"),
        exit(0).attributes("tier=static"),
    ]);
    let now = jiff::Timestamp::now();
    let dated = |days: i64| {
        let date = now - jiff::SignedDuration::from_hours(24 * days);
        let tier = serde_json::json!({
            "tier": "static", "region": null, "per_exit": 10, "knee": 16, "reason": "PLATEAU",
            "verdict": "", "date": date.to_string(), "targets": [], "exits": [], "levels": [],
        });
        let group = serde_json::json!({
            "group": "plan", "cap": 11, "knee": 16, "reason": "PLATEAU",
            "verdict": "", "date": date.to_string(), "targets": [], "exits": [], "levels": [],
        });
        serde_json::json!({"about": "", "tiers": [tier], "groups": [group]})
    };
    let list = world
        .lab
        .exits_txt()
        .replace("tier=static", "tier=static group=plan");
    world.write("exits.txt", list);
    world.urls(["http://o.test/ok/1"]);
    for (days, warned) in [(29, false), (31, true)] {
        world.write(FILE, serde_json::to_string_pretty(&dated(days)).unwrap());
        let run = world.run(&["--fresh"]).expect(0);
        let caps = world.exits_csv().into_iter().map(|row| row["cap"].clone());
        assert_eq!(
            caps.collect::<Vec<_>>(),
            ["9", "10"],
            "the contract binds the first"
        );
        let sentence = format!("({days} days old): group plan 11, static 10");
        assert!(run.stdout.contains(&sentence), "{}", run.stdout);
        assert!(run.stdout.contains("group plan: cap 11"), "{}", run.stdout);
        let warning = "31 days old: probe again";
        assert_eq!(run.stderr.contains(warning), warned, "{}", run.stderr);
    }
    world.write(FILE, "{\"about\": \"\",\n\"tiers\": 7}\n");
    let run = world.run(&["--fresh"]).expect(0);
    assert!(
        run.stderr.contains(&format!("{FILE}:2: invalid type")),
        "{}",
        run.stderr
    );
    assert_eq!(world.exits_csv()[1]["cap"], "5");
    // A probe would write over it: it says so before anything is sent.
    let before = requests(&world);
    let probed = probe(&world, &own("http://o.test/ok/1")).expect(2);
    assert!(
        probed.stderr.contains(&format!("{FILE}:2: ")),
        "{}",
        probed.stderr
    );
    assert_eq!(requests(&world), before);
}

#[test]
fn an_exit_that_refuses_the_fifth_connection_has_a_hard_limit_of_four() {
    // In words, and by resets alone.
    for (limit, route) in [
        ("limit:4:429", Some("--tunnel")),
        ("limit:4:reset", Some("--tunnel")),
        ("limit:4:reset", None),
    ] {
        let limit: Behaviour = limit.parse().unwrap();
        refuses_the_fifth(exit(0).behaving(limit), route);
    }
}

fn refuses_the_fifth(exit: ExitConfig, route: Option<&str>) {
    let world = world([exit]);
    let mut args = own("http://o.test/bytes/100").to_vec();
    args.push("--json");
    args.extend(route);
    let (probed, _) = measure(&world, &args, |found| {
        per_exit(found) == 4 && found["tiers"][0]["reason"] == "HARD"
    });
    let found: Value = serde_json::from_str(&probed.stdout).unwrap();
    // What was cut off is counted, too, so the exit saw at most as many.
    let stats = world.exit_at_rest(0);
    let spent = found["requests"].as_u64().unwrap();
    assert!(
        spent >= stats.requests + stats.turned_away && spent <= 400,
        "{spent}: {stats:?}"
    );
}

/// Five exits of one account that serves ten requests at full speed, each exit any number.
#[test]
fn what_the_exits_of_a_group_share_is_found_by_probing_them_together() {
    let account = Account::of(10);
    let one = exit(4)
        .account(&account)
        .attributes("tier=static group=plan");
    let world = world(std::iter::repeat_n(one, 5));
    let mut args = own("http://o.test/bytes/100").to_vec();
    args.extend(["--joint", "--max-requests", "1000"]);
    let group_cap = |found: &Value| found["groups"][0]["cap"].as_u64();
    let (_, found) = measure(&world, &args, |found| {
        let cap_is_right = group_cap(found).is_some_and(|cap| (10..=15).contains(&cap));
        cap_is_right && (4..=6).contains(&per_exit(found))
    });
    let (cap, single) = (group_cap(&found).unwrap(), per_exit(&found));
    assert!(requests(&world) <= 1000);

    world.urls((0..60).map(|n| format!("http://o.test/ok/{n}")));
    let run = world.run(&["--rate", "unlimited"]).expect(0);
    let sentence = format!("group plan {cap}, static {single}");
    assert!(run.stdout.contains(&sentence), "{}", run.stdout);
    assert!(
        run.stdout
            .contains(&format!("group plan: cap {cap}, peak ")),
        "{}",
        run.stdout
    );
}

/// What the contract allows is never passed, and what the probe may send neither.
#[test]
fn contract_and_request_bound_are_kept() {
    let world = world([exit(0).base(SHORT).attributes("cap=3")]);
    measure(&world, &own("http://o.test/bytes/100"), |found| {
        per_exit(found) == 3
    });
    let stats = world.exit_at_rest(0);
    assert_eq!((stats.in_flight.peak, stats.sockets.peak), (3, 3));
    world.lab.reset();
    let mut args = own("http://o.test/bytes/100").to_vec();
    args.extend(["--max-requests", "70"]);
    let probed = probe(&world, &args).expect(3);
    assert!(requests(&world) <= 70);
    assert!(
        probed.stdout.contains("raise --max-requests"),
        "{}",
        probed.stdout
    );
}

/// Troubles: each ends with a clear verdict, and leaves the old file as it was.
#[test]
fn trouble_ends_a_probe_early_and_writes_nothing() {
    let troubles = [
        ("good", "http://o.test/delay/30000", 3, "too slow"),
        ("good", "http://o.test/status/429", 3, "answers 429"),
        ("hang", "http://o.test/ok/1", 3, "keeps silent"),
        ("refuse", "http://o.test/ok/1", 4, "the exit does not serve"),
        (
            "drop-syn",
            "http://o.test/ok/1",
            4,
            "the exit does not serve",
        ),
        (
            "502",
            "http://o.test/ok/1",
            3,
            "the exit's or the target's fault",
        ),
        ("good", "https://tls-alert.o.test/", 3, "the target fails"),
        // Ten a second, and one at a time takes more already.
        ("good", "http://o.test/bytes/10", 3, "--own-target"),
    ];
    std::thread::scope(|scope| {
        for trouble in troubles {
            scope.spawn(move || ends_early(trouble));
        }
    });
}

fn ends_early((behaviour, target, status, said): (&str, &str, i32, &str)) {
    let behaviour: Behaviour = behaviour.parse().unwrap();
    let world = world([exit(0).behaving(behaviour)]);
    let old = serde_json::json!({"about": "old", "tiers": [], "groups": []}).to_string();
    for before in [None, Some(old.as_str())] {
        if let Some(text) = before {
            world.write(FILE, text);
        }
        let args = ["--target", target, "--cacert", "lab-ca.pem"];
        let probed = probe(&world, &args).expect(status);
        assert!(probed.stdout.contains(said), "{}", probed.stdout);
        assert!(!probed.stdout.contains("knee at"), "{}", probed.stdout);
        let after = std::fs::read_to_string(world.dir().join(FILE)).ok();
        assert_eq!(after.as_deref(), before, "{target}");
        assert!(
            probed.took < Duration::from_secs(60),
            "{target}: {:?}",
            probed.took
        );
        if target.ends_with("30000") {
            return;
        }
    }
    assert!(requests(&world) <= 80, "{target}: {}", requests(&world));
}

/// `probe` takes those keys of `[run]` that are its own flags, and the other tables.
#[test]
fn the_settings_file_holds_for_a_probe_too() {
    let world = world([exit(0).base(SHORT)]);
    let text = "[run]\nexits = \"exits.txt\"\nout = \"there\"\nrate = \"unlimited\"\n\
                user_agent = \"from file\"\n[origins.\"o.test\"]\nper_origin = 2\n";
    world.write("exitfetch.toml", text);
    let mut command = world.exitfetch(["probe", "--target", "http://o.test/echo"]);
    command.args(["--levels", "1,2,4"]);
    let probed = world.finish(command).expect(3);
    assert!(
        probed.stdout.contains("per_origin binds"),
        "{}",
        probed.stdout
    );
    assert_eq!(world.exit_at_rest(0).in_flight.peak, 2);
    assert!(!world.dir().join("there").exists());
}

/// A signal ends it; what was not measured to its end is not written.
#[test]
fn an_interrupted_probe_writes_nothing() {
    let world = world([exit(0)]);
    let mut command = world.exitfetch(["probe", "--exits", "exits.txt"]);
    command.args(own("http://o.test/bytes/10"));
    let child = command.spawn().unwrap();
    let start = std::time::Instant::now();
    while world.exit(0).stats().requests < 3 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let run = world.wait(child).expect(130);
    let said = "stopped; nothing was written";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert!(!world.dir().join(FILE).exists());
    world.exit_at_rest(0);
}

/// The second tier's exit keeps silent, so the first one's result is all there is.
#[test]
fn an_interrupted_probe_names_the_file_that_it_has_written() {
    let silent = exit(0).behaving(Behaviour::Hang);
    let world = world([exit(0).attributes("tier=a"), silent.attributes("tier=b")]);
    let mut command = world.exitfetch(["probe", "--exits", "exits.txt", "--levels", "1,2"]);
    command.args(own("http://o.test/bytes/10"));
    let child = command.spawn().unwrap();
    until("the file", || world.dir().join(FILE).exists());
    send(&child, Signal::INT);
    let run = world.wait(child).expect(130);
    let said = format!("stopped; what was measured to its end is in {FILE}");
    assert!(run.stderr.contains(&said), "{}", run.stderr);
}

#[test]
fn without_a_target_nothing_is_sent_and_a_rehearsal_is_offered() {
    let world = world([exit(0)]);
    let probed = probe(&world, &[]).expect(2);
    assert!(probed.stderr.contains("you may load") && probed.stderr.contains("exitfetch lab"));
    assert_eq!(world.exit(0).stats().connections, 0);
    let probed = probe(&world, &["--target", "o.test/x"]).expect(2);
    assert!(
        probed.stderr.contains("write http:// or https://"),
        "{}",
        probed.stderr
    );
}

/// No login of an exit or a target shows anywhere, and it arrives.
#[test]
fn logins_are_used_and_never_shown() {
    let world = world([exit(2).base(SHORT).login("customer", "hunter2")]);
    let mut args = own("http://us:s3cret@o.test/bytes/50").to_vec();
    args.extend(["--levels", "1,2", "--html", "page.html", "--json"]);
    let (probed, _) = measure(&world, &args, |_| true);
    let written =
        ["page.html", FILE].map(|name| std::fs::read_to_string(world.dir().join(name)).unwrap());
    let all = [probed.stdout, probed.stderr, written.concat()].concat();
    assert!(all.contains("http://***@o.test/"), "{all}");
    for secret in ["customer", "hunter2", "s3cret"] {
        assert!(!all.contains(secret), "{secret}");
    }
}
