//! A run with a secret in every place that takes one, and every kind of failure: none of them
//! in any output of any command, nor in a file of the output directory.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::world::World;

/// Login of the exits, with what has to be escaped in a list.
const EXIT: (&str, &str) = ("carol-zone7", "hun/ter2:@x");
/// What the username of every session of the gateway begins with.
const SESSION: &str = "dave-session-";
/// In URLs of the list.
const URL: (&str, &str) = ("urluser5", "url@word5");
/// Of the provider that serves the exit list, and its token.
const PROVIDER: (&str, &str) = ("apiuser8", "apiword8");
const TOKEN: &str = "apitoken8";
/// Values of headers: of a flag, of the settings file, of a variable, of an entry.
const HEADERS: [&str; 4] = ["flagword4", "siteword6", "envword9", "entryword3"];

/// All of them, each as it is, percent-encoded and in base64.
fn secrets() -> Vec<String> {
    let mut secrets = vec![SESSION.to_owned(), TOKEN.to_owned()];
    secrets.extend(HEADERS.map(str::to_owned));
    for (user, word) in [EXIT, URL, PROVIDER] {
        let pair = format!("{user}:{word}");
        secrets.extend([user.to_owned(), word.to_owned()]);
        for coded in [STANDARD.encode(&pair), URL_SAFE.encode(&pair)] {
            secrets.push(coded.trim_end_matches('=').to_owned());
        }
    }
    let encoded = |secret: &String| utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let mut more: Vec<String> = secrets.iter().map(encoded).collect();
    // As the program itself writes them into a URL.
    more.push("url%40word5".to_owned());
    secrets.append(&mut more);
    secrets
}

fn userinfo((user, word): (&str, &str)) -> String {
    format!("{user}:{}", utf8_percent_encode(word, NON_ALPHANUMERIC))
}

/// Exits that serve, by every scheme, and exits that fail, in every phase.
fn world() -> World {
    let bad = |word: &str| word.parse::<Behaviour>().unwrap();
    let plain = [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
        ExitConfig::http().behaving(bad("407")),
        ExitConfig::socks5().behaving(bad("407")),
        ExitConfig::http().behaving(bad("refuse")),
        ExitConfig::http().behaving(bad("502")),
        ExitConfig::https().behaving(bad("garbage")),
        ExitConfig::http().behaving(bad("hang")),
        ExitConfig::socks5().behaving(bad("hang-handshake")),
        ExitConfig::http().behaving(bad("intercept")),
        ExitConfig::http().behaving(bad("connect:403")),
    ];
    let exits = plain.map(|exit| exit.login(EXIT.0, EXIT.1));
    let gateway = ExitConfig::http().gateway(SESSION, EXIT.1, 3);
    let world = World::new(LabConfig::with(exits.into_iter().chain([gateway])));
    let mut list: Vec<String> = world
        .lab
        .exits()
        .iter()
        // Without `name=`, ids are made from what is not secret.
        .map(|exit| exit.line().replace(&format!(" name={}", exit.name()), ""))
        .collect();
    let login = userinfo(EXIT);
    list.extend([
        format!("http://{login}@127.0.0.1:99999"),
        format!("socks9://{login}@127.0.0.1:1"),
        format!("127.0.0.1:1:{} {}=1", EXIT.0, EXIT.1),
        format!("{}:{}:127.0.0.1:1", EXIT.0, EXIT.1),
    ]);
    world.write("exits.txt", list.join("\n"));
    world.write("urls.jsonl", entries().join("\n"));
    world.write(
        "exitfetch.toml",
        format!(
            "[run]\nretries = 1\n[origins.\"o-1.test\".headers]\nX-Site = \"{}\"\n",
            HEADERS[1]
        ),
    );
    world
}

/// Entries with a login or a header each, those that fail and those that are refused.
fn entries() -> Vec<String> {
    let login = userinfo(URL);
    let paths = [
        "ok/10",
        "status/404",
        "status/500",
        "status/401",
        "silent",
        "close",
        "reset",
        "no-http",
        "truncated/10",
        "chunked-bad",
        "redirect/2",
        "redirect-loop",
        "retry-after/9999",
        "half/100",
    ];
    let mut entries = Vec::new();
    for (n, path) in paths.iter().enumerate() {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{login}@o-{n}.test/{path}");
            entries.push(serde_json::json!({"url": url}).to_string());
        }
        let headers = serde_json::json!({"Authorization": format!("Bearer {}", HEADERS[3])});
        let url = format!("http://o-{n}.test/{path}/more");
        entries.push(serde_json::json!({"url": url, "headers": headers}).to_string());
    }
    let (user, word) = URL;
    for url in [
        format!("http://{login}@o.test:99999/"),
        format!("ftp://{login}@o.test/"),
        format!("{user}:{word}@o.test/"),
        format!("http://{login}@a.test/ http://{login}@b.test/"),
    ] {
        entries.push(serde_json::json!({"url": url}).to_string());
    }
    let header = |name: &str| {
        let headers = serde_json::json!({name: format!("{}\u{1}", HEADERS[3])});
        serde_json::json!({"url": "http://o.test/", "headers": headers}).to_string()
    };
    entries.extend([header("X-Token"), header("a b"), header("Host")]);
    // Lines that break off behind a secret.
    entries.push(format!("{{\"url\": \"http://{login}@o.test/\", "));
    entries.push(format!(
        "{{\"headers\": {{\"Authorization\": \"{}\"",
        HEADERS[3]
    ));
    entries
}

#[track_caller]
fn assert_clean(place: &str, text: &str) {
    for secret in secrets() {
        assert!(!text.contains(&secret), "{secret} in {place}:\n{text}");
    }
}

/// Every file below `dir`, names included. Archives hold headers of requests as they were
/// sent, but for logins.
#[track_caller]
fn assert_files_clean(dir: &Path) {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            assert_clean("a file's name", &path.display().to_string());
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let mut text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            if path.components().any(|part| part.as_os_str() == "warc") {
                for (name, value) in [("x-flag", HEADERS[0]), ("x-site", HEADERS[1])] {
                    text = text.replace(&format!("{name}: {value}"), "");
                }
            }
            assert_clean(&path.display().to_string(), &text);
        }
    }
}

/// Serves `list` as a provider's API does, as often as it is asked for.
fn provider(list: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let mut head = [0; 4096];
            let _ = socket.read(&mut head);
            let start = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                list.len()
            );
            let _ = socket.write_all(&[start.as_bytes(), &list].concat());
        }
    });
    address
}

/// Runs `exitfetch WORDS` to its end; what it printed is clean.
#[track_caller]
fn said(world: &World, words: &[&str], status: &[i32]) -> String {
    let mut command = world.exitfetch(words);
    command.env("EXITFETCH_HEADER", format!("X-Env: {}", HEADERS[2]));
    let run = world.finish(command);
    let text = run.stdout + &run.stderr;
    assert!(
        run.status.is_some_and(|is| status.contains(&is)),
        "{words:?}: {:?}\n{text}",
        run.status
    );
    assert_clean(&words.join(" "), &text);
    text
}

/// What is given to every run.
fn common(exits: &str) -> Vec<&str> {
    vec![
        "run",
        "--exits",
        exits,
        "--urls",
        "urls.jsonl",
        "--rate",
        "unlimited",
        "--cacert",
        "lab-ca.pem",
        "--connect-timeout",
        "1s",
        "--first-byte-timeout",
        "1s",
        "--stall-timeout",
        "1s",
        "--max-pause",
        "1s",
        "--origin-patience",
        "5s",
        "--no-exit-timeout",
        "20s",
    ]
}

/// B06, everywhere.
#[test]
fn no_secret_leaves_in_anything_a_run_prints_serves_or_stores() {
    let world = world();
    let list = std::fs::read(world.dir().join("exits.txt")).unwrap();
    let api = format!(
        "http://{}:{}@{}/{TOKEN}/exits.txt?key={TOKEN}",
        PROVIDER.0,
        PROVIDER.1,
        provider(list)
    );
    let flag = format!("X-Flag: {}", HEADERS[0]);
    let with = |more: &[&str]| -> Vec<String> {
        let words = common(&api).into_iter().chain(["-H", &flag]);
        words
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect()
    };
    let run = |more: &[&str], status: &[i32]| {
        let words = with(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        said(&world, &words, status)
    };
    let shown = run(&["--print-config"], &[0]);
    assert!(
        shown.contains("X-Env: ***") || shown.contains("x-env: ***"),
        "{shown}"
    );
    run(&["--dry-run", "-v"], &[0, 3]);
    let text = run(&["-v", "--results", "-"], &[3]);
    assert!(text.lines().count() > 50, "attempts are told:\n{text}");
    assert_files_clean(&world.out());
    said(&world, &["report", "exitfetch-out"], &[0]);
    for form in ["text", "jsonl"] {
        said(
            &world,
            &["urls", "exitfetch-out", "--format", form],
            &[0, 3],
        );
    }
    let stored = world
        .records()
        .into_iter()
        .find(|record| record.file.is_some())
        .unwrap();
    said(&world, &["cat", "exitfetch-out", &stored.id], &[0]);
    said(&world, &["cat", "exitfetch-out", "urluser"], &[2]);
    assert_files_clean(&world.out());
}

/// The same while a run goes: its log as JSON, its metrics, its files before the end, and an
/// archive in place of files.
#[test]
fn no_secret_is_seen_while_a_run_is_under_way() {
    let world = world();
    let flag = format!("X-Flag: {}", HEADERS[0]);
    let mut command = world.exitfetch(common("exits.txt"));
    command.args([
        "-H",
        &flag,
        "-v",
        "--log-format",
        "json",
        "--metrics",
        "0",
        "--warc",
    ]);
    command.args(["--progress", "always"]);
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    let address = loop {
        let mut line = String::new();
        assert!(
            log.read_line(&mut line).unwrap() > 0,
            "no address of metrics:\n{text}"
        );
        text.push_str(&line);
        if let Some((_, at)) = line.split_once("Prometheus: http://") {
            break at.split('/').next().unwrap().parse::<SocketAddr>().unwrap();
        }
    };
    let reader = std::thread::spawn(move || {
        let _ = log.read_to_string(&mut text);
        text
    });
    world.until_asked(10);
    let mut metrics = TcpStream::connect(address).unwrap();
    metrics.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut scraped = String::new();
    metrics.read_to_string(&mut scraped).unwrap();
    assert!(scraped.contains("exitfetch_attempts_total"), "{scraped}");
    assert_clean("the metrics", &scraped);
    assert_process_clean(child.id());
    assert_files_clean(&world.out());
    let run = world.wait(child).expect(3);
    let log = reader.join().unwrap();
    assert!(
        log.lines().filter(|line| line.starts_with('{')).count() > 50,
        "{log}"
    );
    assert_clean("the log", &log);
    assert_clean("stdout", &run.stdout);
    said(&world, &["report", "exitfetch-out"], &[0]);
    assert_files_clean(&world.out());
}

/// Names of files it has open, and the names of its threads.
fn assert_process_clean(id: u32) {
    let proc = PathBuf::from(format!("/proc/{id}"));
    for link in std::fs::read_dir(proc.join("fd")).unwrap() {
        let target = std::fs::read_link(link.unwrap().path());
        assert_clean(
            "open files",
            &target.unwrap_or_default().display().to_string(),
        );
    }
    for task in std::fs::read_dir(proc.join("task")).unwrap() {
        let name = std::fs::read_to_string(task.unwrap().path().join("comm"));
        assert_clean("names of threads", &name.unwrap_or_default());
    }
}

/// A probe: what it prints in each form, the file beside the list, its page.
#[test]
fn no_secret_is_in_what_a_probe_finds() {
    let world = world();
    let target = format!("http://{}@o.test/ok/10", userinfo(URL));
    let secure = format!("https://{}@o.test/ok/10", userinfo(URL));
    let words = [
        "probe",
        "--exits",
        "exits.txt",
        "--target",
        &target,
        "--target",
        &secure,
        "--own-target",
        "--levels",
        "1,2",
        "--cacert",
        "lab-ca.pem",
        "--connect-timeout",
        "1s",
        "--first-byte-timeout",
        "1s",
    ];
    said(&world, &words, &[0, 3]);
    let more = [&words[..], &["--json", "--html", "probe.html"]].concat();
    // A busy machine may disturb a level: then there is no verdict, and the page shows none.
    let measured = || {
        said(&world, &more, &[0, 3]);
        let page = std::fs::read_to_string(world.dir().join("probe.html")).unwrap_or_default();
        page.contains("o.test/ok/10")
    };
    assert!((0..5).any(|_| measured()), "no verdict in five probes");
    let every = [&words[..], &["--all", "--max-requests", "60"]].concat();
    said(&world, &every, &[3, 4]);
    for name in ["exits.txt.probe.json", "probe.html"] {
        let text = std::fs::read_to_string(world.dir().join(name)).unwrap();
        assert!(text.contains("o.test/ok/10"), "{text}");
        assert_clean(name, &text);
    }
}

/// Mistakes: an exit in the place of its list, a settings file that cannot be read.
#[test]
fn no_secret_is_in_what_is_said_about_mistakes() {
    let world = world();
    let (user, word) = PROVIDER;
    for exits in [
        format!("socks5://{user}:{word}@gw.test:1080"),
        format!("{user}:{word}@gw.test:8080"),
        format!("gw.test:8080:{user}:{word}"),
        format!("http://{user}:{word}@127.0.0.1:1/{TOKEN}?key={TOKEN}"),
        format!("http://{user}:{word}@[bad/{TOKEN}"),
    ] {
        said(
            &world,
            &["run", "--exits", &exits, "--urls", "urls.jsonl"],
            &[2],
        );
        said(
            &world,
            &["run", "--exits", "exits.txt", "--urls", &exits],
            &[2],
        );
        said(
            &world,
            &[
                "run",
                "--exits",
                &exits,
                "--urls",
                "urls.jsonl",
                "--dry-run",
            ],
            &[2],
        );
        said(
            &world,
            &["run", "--exits", &exits, "--urls", &exits, "--print-config"],
            &[0],
        );
        said(
            &world,
            &["probe", "--exits", &exits, "--target", "http://o.test/"],
            &[2],
        );
    }
    let target = format!("http://{user}:{word}@o.test:99999/");
    said(
        &world,
        &["probe", "--exits", "exits.txt", "--target", &target],
        &[2],
    );
    for settings in [
        format!("[run]\nexits = \"http://{user}:{word}@x.test/{TOKEN}\n"),
        format!("[run]\nexits = {{ a = \"http://{user}:{word}@x.test/{TOKEN}\" }}\n"),
        format!("[run]\nrate = \"{TOKEN}\"\nexits = \"http://{user}:{word}@x.test/\"\n"),
        format!("[run]\nexit = \"http://{user}:{word}@x.test/\"\n"),
    ] {
        world.write("own.toml", &settings);
        let words = ["run", "--config", "own.toml", "--urls", "urls.jsonl"];
        let mut command = world.exitfetch(words);
        command.args(["--exits", "exits.txt"]);
        let run = world.finish(command).expect(2);
        // The value of `rate` is no secret, and is shown so that it can be mended.
        let text = run
            .stderr
            .replace(&format!("'{TOKEN}'"), "")
            .replace(&format!("`{TOKEN}`"), "");
        assert_clean(&settings, &text);
    }
}
