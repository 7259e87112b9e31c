//! Where lists come from: standard input, a URL, compressed files; and that a line is acted on
//! when it arrives.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::World;

fn world() -> World {
    let world = World::new(LabConfig::with([ExitConfig::http()]).logging(500));
    world.urls(["http://o.test/ok/1", "http://o.test/ok/2"]);
    world
}

fn with(world: &World, exits: &str, urls: &str) -> Command {
    let mut command = world.exitfetch(["run", "--exits", exits, "--urls", urls]);
    command.args(["--rate", "unlimited"]);
    command
}

/// Gives `text` on standard input and closes it.
fn fed(world: &World, mut command: Command, text: &[u8]) -> crate::world::Run {
    let path = world.write("stdin", text);
    command.stdin(std::fs::File::open(path).unwrap());
    world.finish(command)
}

#[test]
fn either_list_comes_from_standard_input() {
    let world = world();
    let run = fed(
        &world,
        with(&world, "exits.txt", "-"),
        b"http://o.test/ok/1\r\nbad\nhttp://o.test/ok/3",
    );
    let run = run.expect(3);
    assert_eq!(
        (run.count(Outcome::Ok), run.count(Outcome::Refused)),
        (2, 1)
    );
    assert!(run.stderr.contains("standard input:2: "), "{}", run.stderr);
    let exits = world.lab.exits_txt();
    fed(&world, with(&world, "-", "urls.txt"), exits.as_bytes()).expect(0);
    let mut csv = with(&world, "exits.txt", "-");
    csv.args(["--urls-format", "csv", "--fresh"]);
    fed(&world, csv, b"id,url\n1,http://o.test/ok/1\n").expect(0);
    let run = fed(&world, with(&world, "-", "urls.txt"), b"socks9://x:1\n").expect(2);
    assert!(run.stderr.contains("standard input:1: "), "{}", run.stderr);
}

fn compressed(program: &str, bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout
}

/// By name and by magic bytes, files and standard input, both lists.
#[test]
fn compressed_lists_are_read_as_they_are() {
    let world = world();
    let text = b"\xef\xbb\xbfhttp://o.test/ok/1\nhttp://o.test/ok/2\n";
    let exits = world.lab.exits_txt();
    let gzip = compressed("gzip", text);
    let two_members = [gzip.clone(), compressed("gzip", b"http://o.test/ok/3\n")].concat();
    for (name, bytes, entries) in [
        ("urls.txt.gz", gzip.clone(), 2),
        ("urls.gz", two_members, 3),
        ("urls.unnamed", gzip.clone(), 2),
    ] {
        world.write(name, bytes);
        let mut command = with(&world, "exits.txt", name);
        command.arg("--fresh");
        let run = world.finish(command).expect(0);
        assert_eq!(run.count(Outcome::Ok), entries, "{name}");
    }
    world.write("exits.gz", compressed("gzip", exits.as_bytes()));
    world.finish(with(&world, "exits.gz", "urls.txt")).expect(0);
    fed(&world, with(&world, "exits.txt", "-"), &gzip).expect(0);
    if Command::new("zstd")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok()
    {
        world.write(
            "urls.csv.zst",
            compressed("zstd", b"url,note\nhttp://o.test/ok/9,x\n"),
        );
        let run = world
            .finish(with(&world, "exits.txt", "urls.csv.zst"))
            .expect(0);
        assert_eq!(run.line(2).extra.as_ref().unwrap()["note"], "x");
    }
}

/// A list that breaks off is told, what came before it is kept, and the status is not 0.
#[test]
fn a_compressed_list_that_breaks_off_is_no_success() {
    let world = world();
    let lines: String = (0..20_000)
        .map(|n| format!("http://o.test/ok/1?{n}-{:x}\n", n * 7919))
        .collect();
    let whole = compressed("gzip", lines.as_bytes());
    world.write("cut.gz", &whole[..whole.len() / 2]);
    let mut command = with(&world, "exits.txt", "cut.gz");
    command.args(["--max-time", "60s"]);
    let run = world.finish(command);
    assert!(
        matches!(run.status, Some(1 | 2)),
        "{:?}: {}",
        run.status,
        run.stderr
    );
    assert!(run.stderr.contains("cut.gz"), "{}", run.stderr);
    world.write(
        "tiny.gz",
        &compressed("gzip", b"http://o.test/ok/1\n")[..15],
    );
    let mut command = with(&world, "exits.txt", "tiny.gz");
    command.args(["--out", "other"]);
    let run = world.finish(command).expect(2);
    assert!(run.stderr.contains("tiny.gz"), "{}", run.stderr);
    assert!(!world.dir().join("other").exists());
}

/// Answers each request with the next of `answers`.
fn server(answers: Vec<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut socket, _)) = listener.accept() else {
                return;
            };
            let mut head = Vec::new();
            let mut block = [0; 1024];
            while !head.ends_with(b"\r\n\r\n") {
                match socket.read(&mut block) {
                    Ok(read @ 1..) => head.extend_from_slice(&block[..read]),
                    Ok(0) | Err(_) => break,
                }
            }
            let _ = socket.write_all(&answer);
        }
    });
    address
}

fn page(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Both lists from a provider's API; the name in the path tells the format.
#[test]
fn lists_are_fetched_from_a_url() {
    let world = world();
    let exits = server(vec![page(world.lab.exits_txt().as_bytes())]);
    let urls = server(vec![page(&compressed(
        "gzip",
        b"url,n\nhttp://o.test/ok/1,7\n",
    ))]);
    let run = world.finish(with(
        &world,
        &format!("http://{exits}/list?key=hunter2"),
        &format!("http://{urls}/hunter2/urls.csv.gz?key=hunter2"),
    ));
    let run = run.expect(0);
    assert_eq!(run.line(2).extra.as_ref().unwrap()["n"], "7");
    assert_eq!(world.lab.origin_stats().connections, 0);
    assert!(!run.stderr.contains("hunter2") && !run.stdout.contains("hunter2"));
}

/// A list that cannot be had: status 2, the server is named, the token is not.
#[test]
fn a_list_url_that_fails_is_told_without_its_token() {
    let world = world();
    for answer in [
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_vec(),
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nhttp://".to_vec(),
        b"hunter2\r\n".to_vec(),
        Vec::new(),
    ] {
        let list = |answer: &[u8]| {
            let address = server(vec![answer.to_vec()]);
            (
                format!("http://carol:hunter2@{address}/hunter2?key=hunter2"),
                address,
            )
        };
        let (url, address) = list(&answer);
        let run = world.finish(with(&world, &url, "urls.txt")).expect(2);
        assert!(run.stderr.contains(&address.to_string()), "{}", run.stderr);
        assert!(
            !run.stderr.contains("hunter2") && !run.stderr.contains("carol"),
            "{}",
            run.stderr
        );
        let (url, address) = list(&answer);
        let run = world.finish(with(&world, "exits.txt", &url)).expect(2);
        assert!(run.stderr.contains(&address.to_string()), "{}", run.stderr);
        assert!(
            !run.stderr.contains("hunter2") && !run.stderr.contains("carol"),
            "{}",
            run.stderr
        );
        assert!(!world.out().exists());
    }
}

/// G02: through a pipe each line is fetched when it comes; the last needs no line end.
#[test]
fn a_line_is_acted_on_when_it_arrives() {
    let world = world();
    let mut command = with(&world, "exits.txt", "-");
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let requests = || world.lab.origin_stats().requests;
    for (n, line) in [
        "http://o.test/ok/1\n",
        "# note\nhttp://o.test/ok/2\n",
        "http://o.test/ok/3\r\n",
    ]
    .into_iter()
    .enumerate()
    {
        pipe.write_all(line.as_bytes()).unwrap();
        until(|| requests() == n as u64 + 1);
    }
    pipe.write_all(b"http://o.test/ok/4").unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(requests(), 4);
    assert_eq!(world.records().len(), 4);
}

fn until(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(5), "nothing happened");
        std::thread::sleep(Duration::from_millis(10));
    }
}
