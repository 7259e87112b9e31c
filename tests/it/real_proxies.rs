//! The main job through proxies that others wrote, against the lab's own listeners.

use exitfetch::lab::{LabConfig, content};
use exitfetch::model::Outcome;

use crate::proxies::Proxy;
use crate::world::World;

const PER_EXIT: u32 = 3;

/// 200 jobs, http and https in turn, all stored as they were served, within the cap.
fn two_hundred_jobs(proxy: Option<Proxy>, line: impl Fn(&Proxy) -> String, more: &[&str]) {
    let Some(proxy) = proxy else {
        return;
    };
    let world = World::new(LabConfig::with([]));
    world.write("exits.txt", line(&proxy) + " name=real\n");
    let (http, https) = (world.lab.origin_http(), world.lab.origin_https());
    let urls: Vec<String> = (0..200)
        .map(|n| match n % 2 {
            0 => format!("http://{http}/bytes/{}/{n}", 100 + 37 * n),
            _ => format!("https://{https}/bytes/{}/{n}", 100 + 37 * n),
        })
        .collect();
    world.urls(&urls);
    let per_exit = PER_EXIT.to_string();
    let args = [
        "--rate",
        "unlimited",
        "--per-exit",
        &per_exit,
        "--cacert",
        "lab-ca.pem",
    ];
    let run = world.run(&[&args, more].concat()).expect(0);

    assert_eq!(run.count(Outcome::Ok), 200);
    for record in &run.records {
        let url: url::Url = record.url.parse().unwrap();
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let size = usize::try_from(record.bytes.unwrap()).unwrap();
        assert_eq!(world.body(record), content(host, url.path(), size), "{url}");
        assert_eq!(record.attempts, 1, "{record:?}");
    }
    let row = &world.exits_csv()[0];
    let number = |column: &str| row[column].parse::<u32>().unwrap();
    assert_eq!((number("ok"), number("faults")), (200, 0), "{row:?}");
    assert!(
        number("peak") <= PER_EXIT && number("peak_sockets") <= PER_EXIT,
        "{row:?}"
    );
    let proof = "peak in flight never above the cap: yes";
    assert!(run.stdout.contains(proof), "{}", run.stdout);
    let origin = world.lab.origin_stats();
    assert_eq!(origin.requests, 200);
    assert!(origin.in_flight.peak <= PER_EXIT, "{:?}", origin.in_flight);
    assert_eq!(origin.proxy_fields, 0);
}

fn http(proxy: &Proxy) -> String {
    format!("http://{}", proxy.address)
}

fn socks5(proxy: &Proxy) -> String {
    format!("socks5://{}", proxy.address)
}

#[test]
fn squid_serves_http_and_tunnels() {
    two_hundred_jobs(Proxy::squid(PER_EXIT), http, &[]);
}

#[test]
fn squid_serves_http_in_tunnels() {
    two_hundred_jobs(Proxy::squid(PER_EXIT), http, &["--tunnel"]);
}

#[test]
fn tinyproxy_serves_http_and_tunnels() {
    two_hundred_jobs(Proxy::tinyproxy(), http, &[]);
}

#[test]
fn tinyproxy_serves_http_in_tunnels() {
    two_hundred_jobs(Proxy::tinyproxy(), http, &["--tunnel"]);
}

#[test]
fn microsocks_serves_http_and_https() {
    two_hundred_jobs(Proxy::microsocks(None), socks5, &[]);
}

#[test]
fn microsocks_serves_who_knows_its_login() {
    let login = Some(("us@er", "p:@ss"));
    let line = |proxy: &Proxy| format!("socks5h://us%40er:p%3A%40ss@{}", proxy.address);
    two_hundred_jobs(Proxy::microsocks(login), line, &[]);
}

#[test]
fn dante_serves_http_and_https() {
    two_hundred_jobs(Proxy::dante(), socks5, &[]);
}
