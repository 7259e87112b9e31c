//! Settings from every place: flag, environment, file, default, in this order; and
//! `--print-config`, which shows them and gives the same run again.

use exitfetch::lab::{ExitConfig, LabConfig};

use crate::world::{Run, World};

fn world() -> World {
    let world = World::new(LabConfig::with([ExitConfig::http()]));
    world.urls(["http://o.test/ok/1"]);
    world
}

/// `exitfetch run WORDS` with these variables.
fn run(world: &World, variables: &[(&str, &str)], words: &[&str]) -> Run {
    let mut command = world.exitfetch(["run"]);
    command.args(words).envs(variables.iter().copied());
    world.finish(command)
}

/// The line of `--print-config` about a key.
#[track_caller]
fn line<'a>(text: &'a str, key: &str) -> &'a str {
    let about = |line: &&str| {
        let line = line.trim_start_matches("# ");
        line.starts_with(&format!("{key} = ")) || line.starts_with(&format!("{key} is "))
    };
    let found = text.lines().find(about);
    found.unwrap_or_else(|| panic!("nothing about {key}:\n{text}"))
}

#[test]
fn variables_stand_between_flags_and_file() {
    let world = world();
    let own = [
        ("EXITFETCH_EXITS", "exits.txt"),
        ("EXITFETCH_URLS", "urls.txt"),
        ("EXITFETCH_OUT", "of-variable"),
        ("EXITFETCH_QUIET", "true"),
    ];
    world.write(
        "exitfetch.toml",
        "[run]\nout = \"of-file\"\nsummary = \"json\"\n",
    );
    let ran = run(&world, &own, &[]).expect(0);
    assert!(world.dir().join("of-variable/results.jsonl").is_file());
    assert!(!world.dir().join("of-file").exists());
    assert!(
        ran.stdout.starts_with('{'),
        "the file's summary holds: {}",
        ran.stdout
    );
    run(&world, &own, &["--out", "of-flag"]).expect(0);
    assert!(world.dir().join("of-flag/results.jsonl").is_file());

    world.write("other.toml", "[run]\nsummary = \"csv\"\n");
    let other = [&own[..], &[("EXITFETCH_CONFIG", "other.toml")]].concat();
    let ran = run(&world, &other, &[]).expect(0);
    assert!(ran.stdout.starts_with("id,tier"), "{}", ran.stdout);
}

#[test]
fn a_bad_variable_is_told_by_its_name_and_nothing_is_sent() {
    let world = world();
    for (name, value, said) in [
        (
            "EXITFETCH_PER_EXIT",
            "0",
            "error: EXITFETCH_PER_EXIT: invalid value '0'",
        ),
        (
            "EXITFETCH_FRESH",
            "perhaps",
            "error: EXITFETCH_FRESH: write true or false",
        ),
        (
            "EXITFETCH_HEADER",
            "hunter2",
            "error: EXITFETCH_HEADER: --header: ",
        ),
        ("EXITFETCH_RETRYS", "1", "did you mean EXITFETCH_RETRIES?"),
        (
            "EXITFETCH_CONFIG",
            "nowhere.toml",
            "error: nowhere.toml: cannot be read",
        ),
    ] {
        let words = ["--exits", "exits.txt", "--urls", "urls.txt"];
        let ran = run(&world, &[(name, value)], &words).expect(2);
        assert!(ran.stderr.contains(said), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("hunter2"));
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    assert_eq!(world.exit(0).stats().connections, 0);
}

#[test]
fn every_setting_is_printed_with_where_it_comes_from() {
    let world = world();
    world.write(
        "exitfetch.toml",
        "[run]\nrate = \"30/m\"\nburst = 2\nretries = 7\n\n[tiers.own]\nper_exit = 2\n\
         [tiers.static]\nkeep_alive = false\n[groups.plan]\ncap = 9\n\
         [origins.\"o.test\"]\nrate = 0.5\n",
    );
    let variables = [("EXITFETCH_BURST", "3"), ("EXITFETCH_RETRIES", "8")];
    let words = ["--print-config", "--retries", "9", "--exits", "nowhere.txt"];
    let text = run(&world, &variables, &words).expect(0).stdout;
    for (key, value, source) in [
        ("exits", "exits = \"nowhere.txt\"", "flag"),
        ("retries", "retries = 9", "flag"),
        ("burst", "burst = 3", "environment EXITFETCH_BURST"),
        ("rate", "rate = \"30/m\"", "exitfetch.toml:2"),
        ("per_exit", "# per_exit = 3", "default"),
        ("max_body", "# max_body is not set", "default"),
        ("cap", "cap = 9", "exitfetch.toml:11"),
        ("keep_alive", "keep_alive = false", "exitfetch.toml:9"),
    ] {
        let line = line(&text, key);
        assert!(line.starts_with(value), "{line}");
        assert!(line.ends_with(&format!(" # {source}")), "{line}");
    }
    assert!(text.contains("[tiers.static]\nkeep_alive = false"));
    assert!(
        text.contains("# per_exit = 5 "),
        "what the tier carries of itself"
    );
    assert!(!world.out().exists());

    let help = world.finish(world.exitfetch(["run", "--help"])).stdout;
    let flags = help.split("\nDUR:").next().unwrap();
    let flags = flags.lines().filter_map(|line| {
        let flag = line.trim_start().split_once("--")?;
        (line.starts_with("  ") && !line.starts_with("          ")).then_some(flag.1)
    });
    let mut seen = 0;
    for flag in flags {
        let key = flag.split(' ').next().unwrap().replace('-', "_");
        if !["help", "config", "print_config", "header"].contains(&key.as_str()) {
            line(&text, &key);
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn what_is_printed_is_a_settings_file_that_means_the_same() {
    let world = world();
    world.write(
        "exitfetch.toml",
        "[run]\nexits = \"exits.txt\"\nurls = \"urls.txt\"\nheader = [\"Accept: a\\\"b\"]\n\
         user_agent = \"own\"\n[tiers.\"my own\"]\nper_exit = 2\n\
         [origins.\"o.test:8080\"]\nrate = \"30/m\"\nheaders = { Accept = \"x\" }\n",
    );
    let print = |words: &[&str]| {
        let words = [&["--print-config", "--rate", "7"], words].concat();
        run(&world, &[], &words).expect(0).stdout
    };
    let first = print(&[]);
    world.write("saved.toml", &first);
    let second = print(&["--config", "saved.toml"]);
    let active = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'));
        let code = |line: &str| line.split(" # ").next().unwrap().trim().to_owned();
        lines.map(code).filter(|line| !line.is_empty()).collect()
    };
    let (first, second) = (active(&first), active(&second));
    assert_eq!(
        first.join("\n").replace("headers.", ""),
        second.join("\n").replace("headers.", "")
    );
    assert!(first.iter().any(|line| line == "rate = 7"), "{first:?}");
}

#[test]
fn no_secret_is_printed_and_none_is_replaced_by_stars() {
    let world = world();
    world.write(
        "exitfetch.toml",
        "[run]\nheader = [\"X-Key: hunter2\", \"Accept: text/html\"]\n\
         [origins.\"o.test\".headers]\nAuthorization = \"Bearer hunter2\"\nAccept-Language = \"de\"\n",
    );
    let words = [
        "--print-config",
        "--exits",
        "https://bob:hunter2@provider.test/list?token=hunter2",
        "-H",
        "Cookie: hunter2",
    ];
    let text = run(&world, &[], &words).expect(0).stdout;
    assert!(!text.contains("hunter2"), "{text}");
    for shown in [
        "accept: text/html",
        "Accept-Language = \"de\"",
        "Authorization = \"***\"",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let table: toml::Table = text.parse().unwrap();
    assert!(!table.to_string().contains("***"), "{table}");
}

#[test]
fn short_help_is_short_and_leads_on() {
    let world = world();
    let brief = run(&world, &[], &["-h"]).expect(0).stdout;
    let full = run(&world, &[], &["--help"]).expect(0).stdout;
    assert!(brief.lines().count() * 2 < full.lines().count());
    assert!(brief.contains("exitfetch run --help") && !brief.contains("--stall-timeout"));
    for line in brief.lines().filter(|line| line.contains("--")) {
        let flag = line.split_whitespace().find(|word| word.starts_with("--"));
        assert!(full.contains(flag.unwrap()), "{line}");
    }
    for heading in [
        "Lists:",
        "Exits:",
        "Sites:",
        "Requests:",
        "Output:",
        "Run:",
        "Examples:",
    ] {
        assert!(full.contains(&format!("\n{heading}\n")), "{heading}");
    }
}

#[test]
fn a_wrong_flag_is_answered_with_the_right_one() {
    let world = world();
    for (wrong, right) in [
        ("--per-exits", "'--per-exit'"),
        ("--exit", "'--exits'"),
        ("--url", "'--urls'"),
        ("--retry", "'--retries'"),
        ("--user_agent", "'--user-agent'"),
        ("--max-redirect", "'--max-redirects'"),
        ("--output", "'--out'"),
    ] {
        let ran = run(&world, &[], &[wrong, "3"]).expect(2);
        assert!(ran.stderr.contains(right), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn a_number_that_is_none_is_answered_with_what_it_must_be() {
    let world = world();
    for (flag, range) in [
        ("--per-exit", "from 1 to 65535"),
        ("--burst", "from 1"),
        ("--retries", "from 0"),
        ("--seed", "from 0"),
    ] {
        let ran = run(&world, &[], &[flag, "x"]).expect(2);
        let first = ran.stderr.lines().next().unwrap();
        let told = format!("write a whole number {range}");
        assert!(first.ends_with(&told), "{flag}: {first}");
    }
}

/// Two forms of one archive exclude each other on one level; a flag still wins over the file.
#[test]
fn an_archive_has_one_form() {
    let world = world();
    let ran = run(&world, &[], &["--warc", "--warc-gz"]).expect(2);
    let told = "the argument '--warc' cannot be used with '--warc-gz'";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    world.write("exitfetch.toml", "[run]\nwarc = true\n");
    let shown = run(&world, &[], &["--warc-gz", "--print-config"]).expect(0);
    assert!(line(&shown.stdout, "warc_gz").starts_with("warc_gz = true"));
    assert!(!line(&shown.stdout, "warc").starts_with("warc = true"));
}
