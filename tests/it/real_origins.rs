//! The main job at servers that others wrote: what they do to connections and codings.

use std::collections::HashMap;

use exitfetch::lab::LabConfig;
use exitfetch::model::Outcome;

use crate::proxies::{self, Identity};
use crate::real_proxies::{JOBS, PER_EXIT, assert_within_the_cap};
use crate::services::Service;
use crate::world::{Run, World};

/// Files of text that differ, some too short to be worth a coding.
fn files() -> Vec<(String, Vec<u8>)> {
    let text = |n: usize| format!("line {n} of a page\n").repeat(n % 50 + 1);
    (0..JOBS)
        .map(|n| (format!("{n}.txt"), text(n).into_bytes()))
        .collect()
}

/// Fetches each file from one of `places` in turn, through `proxy`.
fn fetch(proxy: &Service, places: &[String], more: &[&str]) -> (World, Run) {
    let world = World::new(LabConfig::with([]));
    world.write("exits.txt", format!("socks5://{}\n", proxy.address));
    world.urls((0..JOBS).map(|n| format!("{}/{n}.txt", places[n % places.len()])));
    let per_exit = PER_EXIT.to_string();
    let args = ["--rate", "unlimited", "--per-exit", &per_exit];
    let run = world.run(&[&args, more].concat()).expect(0);
    (world, run)
}

fn assert_all_stored(world: &World, run: &Run, files: &[(String, Vec<u8>)]) {
    assert_eq!(run.count(Outcome::Ok), JOBS);
    for record in &run.records {
        let (name, content) = &files[usize::try_from(record.line).unwrap() - 1];
        assert!(record.url.ends_with(name));
        assert_eq!(&world.body(record), content, "{}", record.url);
        assert_eq!(record.attempts, 1, "{record:?}");
    }
    assert_within_the_cap(world);
}

/// A connection that the server ends after its seventh answer costs no job a try.
#[test]
fn nginx_with_few_requests_a_connection_and_gzip_serves_all() {
    let (identity, files) = (Identity::new(), files());
    let Some((nginx, secure)) = proxies::nginx(&identity, &files) else {
        return;
    };
    let Some(proxy) = proxies::microsocks(None) else {
        return;
    };
    let places = [
        format!("http://{}", nginx.address),
        format!("https://{secure}"),
    ];
    let roots = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(roots.path(), &identity.certificate).unwrap();
    let trust = ["--compressed", "--cacert", roots.path().to_str().unwrap()];
    let (world, run) = fetch(&proxy, &places, &trust);
    assert_all_stored(&world, &run, &files);
    let coded = run.records.iter().filter(|r| r.content_encoding.is_some());
    assert!(coded.count() > JOBS / 2);
    assert_kept(&nginx.read("access.log"));
}

/// Each request was one line, and connections were used as often as the server allows.
fn assert_kept(log: &str) {
    let mut requests: HashMap<&str, u32> = HashMap::new();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), JOBS);
    for line in &lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number: u32 = words[1].parse().unwrap();
        let most = requests.entry(words[0]).or_default();
        *most = number.max(*most);
        assert_eq!(words[2], "200");
    }
    assert!(requests.values().all(|number| *number <= 7), "{requests:?}");
    let full = requests.values().filter(|number| **number == 7).count();
    assert!(full > JOBS / 7 / 2, "{requests:?}");
}

/// HTTP/1.0: a connection a request, closed by the server.
#[test]
fn pythons_server_serves_all() {
    let files = files();
    let server = proxies::python_server(&files);
    let (Some(server), Some(proxy)) = (server, proxies::microsocks(None)) else {
        return;
    };
    let places = [format!("http://{}", server.address)];
    let (world, run) = fetch(&proxy, &places, &[]);
    assert_all_stored(&world, &run, &files);
}
