//! `--metrics`: scraped over a raw socket during a run, and read line by line by the rules of
//! the format.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::time::Duration;

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::World;

/// The figures by name and labels, after the text was checked line by line.
fn read(text: &str) -> BTreeMap<String, f64> {
    let mut lines = text.lines();
    assert_eq!(lines.next_back(), Some("# EOF"), "the end is marked");
    let (mut types, mut helps) = (BTreeMap::new(), BTreeSet::new());
    let mut figures = BTreeMap::new();
    for line in lines {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name, kind).is_none(), "twice: {line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helps.insert(name) && help.len() > 10, "{line}");
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').unwrap();
            assert!(name.ends_with(&format!("_{unit}")), "{line}");
        } else {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let name = key.split('{').next().unwrap();
            let family = types.iter().find(|(family, kind)| {
                let ends: &[&str] = match **kind {
                    "counter" => &["_total"],
                    "histogram" => &["_bucket", "_count", "_sum"],
                    _ => &[""],
                };
                ends.iter().any(|end| name == format!("{family}{end}"))
            });
            let (family, _) = family.unwrap_or_else(|| panic!("of no family: {line}"));
            assert!(helps.contains(family), "no help: {line}");
            assert!(name.starts_with("exitfetch_"), "{line}");
            let value: f64 = value.parse().unwrap();
            assert!(value >= 0.0, "{line}");
            assert!(
                figures.insert(key.to_owned(), value).is_none(),
                "twice: {line}"
            );
        }
    }
    assert!(types.len() >= 8, "{types:?}");
    figures
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn scrape(address: SocketAddr) -> (String, BTreeMap<String, f64>) {
    let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    (text.to_owned(), read(text))
}

/// Where the figures of a run with `--metrics 0` are; it says so before it sends anything.
fn address(child: &mut Child) -> SocketAddr {
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let line = lines.find(|line| line.as_ref().unwrap().contains("Prometheus: http://"));
    let line = line.unwrap().unwrap();
    let (_, at) = line.split_once("http://").unwrap();
    at.strip_suffix("/metrics").unwrap().parse().unwrap()
}

#[test]
fn a_run_can_be_scraped_while_it_lasts_and_no_longer() {
    let bad = ExitConfig::http().behaving("407".parse().unwrap());
    let exit = ExitConfig::http().login("alice-s3cret", "pass-s3cret");
    let world = World::new(LabConfig::with([exit, bad]));
    world.urls((0..40).map(|n| format!("http://secret-name.test/ok/{n}?wait=20")));
    let mut child = world.start(&["--metrics", "0"]);
    let address = address(&mut child);
    assert!(address.ip().is_loopback());
    world.until_asked(20);
    let (text, figures) = crate::shells::found("twenty attempts are counted", || {
        let (text, figures) = scrape(address);
        let attempts = figures["exitfetch_attempts_total{fault=\"none\"}"];
        (attempts >= 10.0).then_some((text, figures))
    });
    for secret in ["s3cret", "secret-name", "lab-", "127.0.0.1"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let figure = |name: &str| figures[&format!("exitfetch_{name}")];
    assert_eq!(figure("entries_read_total"), 40.0);
    assert_eq!(figure("exits{state=\"healthy\"}"), 1.0);
    assert_eq!(figure("exits{state=\"evicted\"}"), 1.0);
    assert!(figure("waiting{for=\"budget\"}") > 0.0, "{text}");
    assert!(figure("entries_total{outcome=\"ok\"}") > 0.0);
    assert!(figure("received_bytes_total") > 0.0);
    let count = figure("phase_duration_seconds_count{phase=\"first_byte\"}");
    let all = "phase_duration_seconds_bucket{le=\"+Inf\",phase=\"first_byte\"}";
    assert_eq!(figure(all), count);
    assert!(count >= 10.0);
    assert!(text.lines().count() < 200, "bounded:\n{text}");
    let status = |request: &str| ask(address, request)[9..12].to_owned();
    assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status("DELETE /metrics HTTP/1.1\r\n\r\n"), "405");
    // A client that says nothing keeps nobody from the end.
    let silent = TcpStream::connect(address).unwrap();
    let run = world.wait(child).expect(0);
    assert_eq!(run.count(Outcome::Ok), 40);
    drop(silent);
    assert!(
        TcpStream::connect(address).is_err(),
        "it ended with the run"
    );
}

#[test]
fn a_port_that_is_taken_is_told_before_anything_is_sent_or_written() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls(["http://o.test/ok/1"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = world.run(&["--metrics", &port]).expect(1);
    let mut lines = run.stderr.lines().rev();
    assert!(
        lines.next().unwrap().starts_with("hint: "),
        "{}",
        run.stderr
    );
    let error = lines.next().unwrap();
    assert!(
        error.starts_with("error: cannot serve --metrics at 127.0.0.1:"),
        "{error}"
    );
    assert!(!world.out().exists());
    assert_eq!(world.lab.origin_stats().requests, 0);
}
