//! No login of an exit, of a URL or of a header reaches an output or the origin.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};

use crate::world::{ONE_RETRY, Run, World};

const USER: &str = "carol-zone7";
const PASSWORD: &str = "hunter2";

/// Exits with a login each: good ones of every scheme, 407, 502, and lines that are refused.
fn world() -> World {
    let bad = |word: &str| word.parse::<Behaviour>().unwrap();
    let exits = [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
        ExitConfig::http().behaving(bad("407")),
        ExitConfig::socks5().behaving(bad("407")),
        ExitConfig::http().behaving(bad("502")),
        ExitConfig::http().behaving(bad("reset")),
        ExitConfig::https().behaving(bad("garbage")),
    ];
    let exits = exits.map(|exit| exit.login(USER, PASSWORD));
    let world = World::new(LabConfig::with(exits));
    // Without `name=`, ids are made from what is not secret.
    let mut lines: Vec<String> = world
        .lab
        .exits()
        .iter()
        .map(|exit| exit.line().split(' ').next().unwrap().to_owned())
        .collect();
    lines.push(format!("http://{USER}:{PASSWORD}@127.0.0.1:99999"));
    lines.push(format!("socks9://{USER}:{PASSWORD}@127.0.0.1:1"));
    lines.push(format!("127.0.0.1:1:{USER}:{PASSWORD} {PASSWORD}=1"));
    lines.push(format!("{USER}:{PASSWORD}:127.0.0.1:1"));
    world.write("exits.txt", lines.join("\n"));
    let urls = (0..24).map(|n| match n % 3 {
        0 => format!("http://o-{n}.test/echo"),
        1 => format!("https://o-{n}.test/ok/{n}"),
        _ => format!("http://o-{n}.test/redirect-to?url=https://p-{n}.test/ok/1&status=302"),
    });
    let bad = [
        format!("http://{USER}:{PASSWORD}@o.test:99999/"),
        format!("ftp://{USER}:{PASSWORD}@o.test/"),
        format!("{USER}:{PASSWORD}@o.test/"),
        format!("http://{USER}:{PASSWORD}@a.test/ http://{USER}:{PASSWORD}@b.test/"),
        format!("http://{USER}:{PASSWORD}@good.test/ok/9"),
        format!("http://{USER}:{PASSWORD}@good.test/status/500"),
    ];
    world.urls(urls.chain(bad));
    world
}

fn assert_no_secret(world: &World, run: &Run) {
    let basic = STANDARD.encode(format!("{USER}:{PASSWORD}"));
    let secrets = [USER, PASSWORD, basic.trim_end_matches('=')];
    let check = |place: &str, text: &str| {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} in {place}:\n{text}");
        }
    };
    check("stdout", &run.stdout);
    check("stderr", &run.stderr);
    let mut dirs = vec![world.out()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            // The lab's own echo says who came.
            let text = text.replace(&format!("\"login\": \"{USER}\""), "");
            check(&path.display().to_string(), &text);
        }
    }
}

/// B06: every form of log and summary, the dry run, a resumed run.
#[test]
fn no_output_holds_a_login() {
    let world = world();
    for extra in [
        &["--dry-run", "-v"][..],
        &["-v", "--summary", "json"],
        &["--log-format", "json", "-v", "--summary", "csv"],
        &["--fresh", "--results", "-", "--summary", "table", "-v"],
        &["--fresh", "--progress", "always", "--summary", "table"],
    ] {
        let run = world.run(&[&ONE_RETRY, extra].concat());
        assert_eq!(run.status, Some(3), "{extra:?}: {}", run.stderr);
        assert_no_secret(&world, &run);
    }
    let origin = world.lab.origin_stats();
    assert!(origin.requests > 0);
    assert_eq!(origin.proxy_fields, 0);
}

/// B06: a login that is wrong is in no message either, and the proxy's field goes to the
/// exit only.
#[test]
fn a_refused_login_is_told_without_the_login() {
    for exit in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        let world = World::new(LabConfig::with([exit.login("other", "login")]));
        let (scheme, place) = (world.exit(0).stats().scheme, world.exit(0).address());
        world.write(
            "exits.txt",
            format!("{scheme}://{USER}:{PASSWORD}@{place}\n"),
        );
        world.urls(["http://o.test/ok/1", "https://o.test/ok/1"]);
        let run = world
            .run(&["-v", "--cacert", "lab-ca.pem", "--rate", "unlimited"])
            .expect(4);
        assert_no_secret(&world, &run);
        assert_eq!(world.lab.origin_stats().requests, 0);
    }
}

/// The rest of a header without quotes, an exit without its flag, half a login: told, not shown.
#[test]
fn a_word_that_may_be_a_secret_is_not_shown_where_it_is_wrong() {
    let world = World::new(LabConfig::with([]));
    let exit = format!("http://{USER}:{PASSWORD}@gate.test:1");
    for (words, told) in [
        (
            &["lab", "--login", PASSWORD][..],
            "--login: write USER:PASS",
        ),
        (
            &["run", "-H", "Authorization:", PASSWORD],
            "word 4 belongs to no flag",
        ),
        (&["probe", &exit], "word 2 belongs to no flag"),
        (&[&exit], "word 1 is no command"),
    ] {
        let run = world.finish(world.exitfetch(words)).expect(2);
        assert_no_secret(&world, &run);
        assert!(run.stderr.contains(told), "{}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

/// Values of headers are secrets too, wherever they are given and however wrong they are.
#[test]
fn no_message_shows_the_value_of_a_header() {
    let world = World::new(LabConfig::with([ExitConfig::http()]));
    world.urls(["http://o.test/ok/1"]);
    for header in [
        format!("Authorization {PASSWORD}"),
        format!("Authorization: {PASSWORD}\u{1}"),
        format!("Host: {PASSWORD}"),
        format!("a b: {PASSWORD}"),
        PASSWORD.to_owned(),
    ] {
        let run = world.run(&["-H", &header]).expect(2);
        assert_no_secret(&world, &run);
        let header = serde_json::to_string(&header).unwrap();
        world.write("own.toml", format!("[run]\nheader = [{header}]\n"));
        let run = world.run(&["--config", "own.toml"]).expect(2);
        assert_no_secret(&world, &run);
        world.write("own.toml", format!("[run]\nrate = 1\nheader = [{header}\n"));
        let run = world.run(&["--config", "own.toml"]).expect(2);
        assert_no_secret(&world, &run);
    }
    world.write(
        "own.toml",
        format!("[origins.\"o.test\".headers]\nAuthorization = \"{PASSWORD}\\u0001\"\n"),
    );
    let run = world.run(&["--config", "own.toml"]).expect(2);
    assert_no_secret(&world, &run);
    assert!(run.stderr.contains("own.toml"), "{}", run.stderr);
    assert!(!world.out().exists());
}
