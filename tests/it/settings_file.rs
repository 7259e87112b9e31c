//! `exitfetch.toml`: the flags under `[run]`, tiers, groups, origins; flags win; a mistake is
//! answered with file and line.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::World;

fn world(exits: &[ExitConfig]) -> World {
    let world = World::new(LabConfig::with(exits.iter().cloned()).logging(500));
    world.urls((0..12).map(|n| format!("http://o.test/delay/100/{n}")));
    world
}

/// The file in the working directory is read, its keys are the flags, flags win.
#[test]
fn the_file_s_flags_hold_and_the_command_line_wins() {
    let world = world(&[ExitConfig::http()]);
    world.write(
        "exitfetch.toml",
        "[run]\nexits = \"exits.txt\"\nurls = \"urls.txt\"\nout = \"there\"\nper_exit = 2\n\
         rate = \"unlimited\"\nper-origin = 50\nuser_agent = \"from file\"\nheader = [\"X-A: 1\", \"X-B: 2\"]\n\
         max_time = 30\ncompressed = false\nsummary = \"csv\"\n",
    );
    world.finish(world.exitfetch(["run"])).expect(0);
    assert!(world.dir().join("there/results.jsonl").is_file());
    assert!(!world.out().exists());
    assert_eq!(world.exit(0).stats().in_flight.peak, 2);

    world.lab.reset();
    let mut command = world.exitfetch(["run", "--per-exit", "4", "--out", "exitfetch-out"]);
    command.args(["-H", "X-A: 9", "--summary", "none"]);
    let run = world.finish(command).expect(0);
    assert_eq!(run.stdout, "");
    assert_eq!(world.exit(0).stats().in_flight.peak, 4);
}

/// Headers of the file and of the flag both arrive; of one name the flag's.
#[test]
fn headers_of_file_flag_origin_and_entry_win_in_this_order() {
    let world = world(&[ExitConfig::http()]);
    world.write(
        "urls.jsonl",
        "{\"url\":\"http://a.test/echo\"}\n{\"url\":\"http://b.test/echo\"}\n\
         {\"url\":\"http://b.test/echo/2\",\"headers\":{\"X-A\":\"entry\"}}\n",
    );
    world.write(
        "own.toml",
        "[run]\nheader = [\"X-A: file\", \"X-B: file\"]\n[origins.\"B.test\".headers]\nX-A = \"origin\"\n",
    );
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", "urls.jsonl"]);
    command.args(["--config", "own.toml", "-H", "X-B: flag"]);
    let run = world.finish(command).expect(0);
    for (line, expected) in [(1, "file"), (2, "origin"), (3, "entry")] {
        let echo: serde_json::Value = serde_json::from_slice(&world.body(run.line(line))).unwrap();
        let sent = |name: &str| {
            let headers = echo["headers"].as_array().unwrap().iter();
            let same = headers.filter(|h| h[0].as_str().unwrap().eq_ignore_ascii_case(name));
            same.map(|h| h[1].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(sent("x-a"), [expected], "line {line}");
        assert_eq!(sent("x-b"), ["flag"], "line {line}");
    }
}

/// `[tiers]`: built-in and own classes, the contract above both, a given flag over all.
#[test]
fn tiers_set_caps_and_keep_alive() {
    let world = world(&[
        ExitConfig::http().attributes("tier=slow"),
        ExitConfig::http().attributes("tier=slow cap=1"),
        ExitConfig::http().attributes("tier=residential"),
        ExitConfig::http().attributes("tier=datacenter"),
        ExitConfig::http(),
    ]);
    world.write(
        "exitfetch.toml",
        "[tiers.slow]\nper_exit = 2\nkeep_alive = false\n",
    );
    world.run(&["--rate", "unlimited"]).expect(0);
    let caps: Vec<String> = world.exits_csv().iter().map(|r| r["cap"].clone()).collect();
    assert_eq!(caps, ["2", "1", "3", "32", "3"]);
    let slow = world.exit(0).stats();
    assert_eq!(slow.connections, slow.requests, "no socket serves twice");

    world
        .run(&["--rate", "unlimited", "--per-exit", "5", "--fresh"])
        .expect(0);
    let caps: Vec<String> = world.exits_csv().iter().map(|r| r["cap"].clone()).collect();
    assert_eq!(caps, ["5", "1", "5", "5", "5"]);
}

/// `[groups]`: one capacity over several exits, which they use and never pass.
#[test]
fn a_group_s_cap_holds_over_its_exits() {
    let member = || ExitConfig::http().attributes("group=plan");
    let world = world(&[member(), member(), member()]);
    let run = world.run(&["--dry-run"]).expect(0);
    assert!(run.stderr.contains("group=plan has no cap"));
    world.write("exitfetch.toml", "[groups.plan]\ncap = 4\n");
    let run = world
        .run(&[
            "--rate",
            "unlimited",
            "--per-exit",
            "3",
            "--per-origin",
            "50",
            "--dry-run",
        ])
        .expect(0);
    assert!(
        run.stdout.contains("3 exits carry 4 requests"),
        "{}",
        run.stdout
    );
    world
        .run(&[
            "--rate",
            "unlimited",
            "--per-exit",
            "3",
            "--per-origin",
            "50",
        ])
        .expect(0);
    assert_eq!(world.lab.origin_stats().in_flight.peak, 4);
}

/// `[origins]`: a rate and bounds of its own; the port counts, the default port does not.
#[test]
fn an_origin_has_its_own_rate_and_bound() {
    let world = World::new(LabConfig::with([ExitConfig::http()]));
    let urls = |host: &str, n: usize| -> Vec<String> {
        (0..n)
            .map(|n| format!("http://{host}/delay/100/{n}"))
            .collect()
    };
    world.urls(
        [
            urls("slow.test", 4),
            urls("few.test:8080", 6),
            urls("free.test", 10),
        ]
        .concat(),
    );
    world.write(
        "exitfetch.toml",
        "[run]\nrate = \"unlimited\"\nper_exit = 10\n\
         [origins.\"Slow.test:80\"]\nrate = 2.5\n\
         [origins.\"few.test:8080\"]\nper_origin = 1\nrate = \"600/m\"\nburst = 6\n",
    );
    let run = world.run(&[]).expect(0);
    assert_eq!(run.count(Outcome::Ok), 20);
    let stats = world.lab.origin_stats();
    assert!(stats.host("slow.test").least_gap().unwrap() > 0.25);
    assert_eq!(stats.host("few.test:8080").in_flight.peak, 1);
}

/// Mistakes: file and line, what is wrong, what would be right; no request, no directory.
#[test]
fn mistakes_in_the_file_are_told_with_file_and_line() {
    let world = world(&[ExitConfig::http()]);
    for (text, words) in [
        (
            "[run]\nrate = 5\nper_exits = 3\n",
            &[":3:", "per_exits", "`per_exit`"][..],
        ),
        (
            "[run]\nrate = 5\n\"per_exit\" = 3\nzzzzz = 1\n",
            &[":4:", "zzzzz"],
        ),
        ("rate = 5\n", &[":1:", "rate"]),
        ("[rum]\nrate = 5\n", &[":1:", "rum"]),
        ("[run]\nrate = 0\n", &[":2:", "rate", "30/m"]),
        ("[run]\n\nper_exit = 0\n", &[":3:", "per-exit"]),
        ("[run]\nfresh = 1\n", &[":2:", "fresh", "true or false"]),
        ("[run]\nrate = [\"1\", \"2\"]\n", &[":2:", "rate"]),
        ("[run]\nrate = true\n", &[":2:", "rate"]),
        ("[run]\nheader = [1]\n", &[":2:", "header"]),
        ("[run]\nsummary = \"pie\"\n", &[":2:", "summary"]),
        ("[run]\nconfig = \"x\"\n", &[":2:", "config"]),
        ("[run\n", &[":1:"]),
        ("[run]\nrate = 1\nrate = 2\n", &[":3:", "duplicate"]),
        ("[tiers.a]\nperexit = 1\n", &[":2:", "perexit", "per_exit"]),
        ("[tiers.a]\nper_exit = 0\n", &[":2:"]),
        ("[groups.a]\ncap = 0\n", &[":2:"]),
        ("[groups.a]\ncap = -1\n", &[":2:"]),
        ("[groups.a]\n", &["cap"]),
        ("[origins.\"a b\"]\nrate = 1\n", &["a b", "host:port"]),
        ("[origins.\"http://a.test/\"]\nrate = 1\n", &["host:port"]),
        ("[origins.\"a.test\"]\nrate = 0\n", &[":2:", "30/m"]),
        ("[origins.\"a.test\"]\nburst = 0\n", &[":2:"]),
        (
            "[origins.\"a.test\"]\nrates = 1\n",
            &[":2:", "rates", "rate"],
        ),
        (
            "[origins.\"a.test\".headers]\nHost = \"x\"\n",
            &["header host"],
        ),
    ] {
        world.write("own.toml", text);
        let run = world.run(&["--config", "own.toml"]).expect(2);
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{text}: {}", run.stderr);
        assert!(
            lines[0].starts_with("error: own.toml"),
            "{text}: {}",
            run.stderr
        );
        for word in words {
            assert!(lines[0].contains(word), "{word}: {}", run.stderr);
        }
        assert!(!world.out().exists());
    }
    assert_eq!(world.exit(0).stats().connections, 0);
}
