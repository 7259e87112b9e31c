//! The main job through proxies that others wrote, against the lab's own listeners.

use exitfetch::lab::{LabConfig, content};
use exitfetch::model::Outcome;

use crate::proxies::{self, Identity, LOGIN};
use crate::services::Service;
use crate::world::World;

/// The cap of the exit.
pub const PER_EXIT: u32 = 3;
/// How many jobs each proxy gets.
pub const JOBS: usize = 500;

/// [`JOBS`] jobs, http and https in turn, all stored as they were served, within the cap.
fn all_jobs(proxy: Option<&Service>, line: impl Fn(&Service) -> String, more: &[&str]) {
    let Some(proxy) = proxy else {
        return;
    };
    let world = World::new(LabConfig::with([]));
    world.write("exits.txt", line(proxy) + " name=real\n");
    fetch_all(&world, &[&["--cacert", "lab-ca.pem"], more].concat());
}

/// The same in a world whose exit list is there already.
fn fetch_all(world: &World, more: &[&str]) {
    let (http, https) = (world.lab.origin_http(), world.lab.origin_https());
    let urls: Vec<String> = (0..JOBS)
        .map(|n| match n % 2 {
            0 => format!("http://{http}/bytes/{}/{n}", 100 + 37 * n),
            _ => format!("https://{https}/bytes/{}/{n}", 100 + 37 * n),
        })
        .collect();
    world.urls(&urls);
    let per_exit = PER_EXIT.to_string();
    let args = ["--rate", "unlimited", "--per-exit", &per_exit];
    let run = world.run(&[&args, more].concat()).expect(0);

    assert_eq!(run.count(Outcome::Ok), JOBS);
    for record in &run.records {
        let url: url::Url = record.url.parse().unwrap();
        let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let size = usize::try_from(record.bytes.unwrap()).unwrap();
        assert_eq!(world.body(record), content(host, url.path(), size), "{url}");
        assert_eq!(record.attempts, 1, "{record:?}");
    }
    assert_within_the_cap(world);
    let proof = "peak in flight never above the cap: yes";
    assert!(run.stdout.contains(proof), "{}", run.stdout);
    let origin = world.lab.origin_stats();
    assert_eq!(origin.requests as usize, JOBS);
    assert!(origin.in_flight.peak <= PER_EXIT, "{:?}", origin.in_flight);
    assert_eq!(origin.proxy_fields, 0);
}

/// The only exit has served all jobs, without one fault and within its cap.
pub fn assert_within_the_cap(world: &World) {
    let row = &world.exits_csv()[0];
    let number = |column: &str| row[column].parse::<u32>().unwrap();
    assert_eq!(
        (number("ok") as usize, number("faults")),
        (JOBS, 0),
        "{row:?}"
    );
    assert!(
        number("peak") <= PER_EXIT && number("peak_sockets") <= PER_EXIT,
        "{row:?}"
    );
}

fn http(proxy: &Service) -> String {
    format!("http://{}", proxy.address)
}

fn socks5(proxy: &Service) -> String {
    format!("socks5://{}", proxy.address)
}

/// [`LOGIN`], as an exit list has it.
fn with_login(scheme: &str) -> impl Fn(&Service) -> String {
    move |proxy| format!("{scheme}://us%40er:p%3A%40ss@{}", proxy.address)
}

#[test]
fn squid_serves_http_and_tunnels() {
    all_jobs(proxies::squid(PER_EXIT).as_ref(), http, &[]);
}

#[test]
fn squid_serves_http_in_tunnels() {
    all_jobs(proxies::squid(PER_EXIT).as_ref(), http, &["--tunnel"]);
}

#[test]
fn squid_serves_who_knows_its_login() {
    let squid = proxies::squid_with_login(PER_EXIT);
    all_jobs(squid.as_ref(), with_login("http"), &[]);
}

/// Its 407 is about credentials, and no job is asked of the origin.
#[test]
fn squid_refuses_who_does_not_know_its_login() {
    let Some(squid) = proxies::squid_with_login(PER_EXIT) else {
        return;
    };
    let world = World::new(LabConfig::with([]));
    world.write(
        "exits.txt",
        format!("http://us%40er:other@{}\n", squid.address),
    );
    world.urls([
        format!("http://{}/ok/1", world.lab.origin_http()),
        format!("https://{}/ok/1", world.lab.origin_https()),
    ]);
    let run = world.run(&["--rate", "unlimited"]).expect(4);
    assert!(run.stdout.contains("credentials refused"), "{}", run.stdout);
    assert_eq!(world.lab.origin_stats().requests, 0);
}

/// Where the provider's limit is below the cap, its refusals teach the exit's ceiling and cost
/// no job.
#[test]
fn squid_that_takes_fewer_at_once_than_the_cap_says_costs_no_job() {
    let Some(squid) = proxies::squid_that_says_so(2) else {
        return;
    };
    let world = World::new(LabConfig::with([]));
    world.write("exits.txt", http(&squid) + "\n");
    let https = world.lab.origin_https();
    world.urls((0..60).map(|n| format!("https://{https}/ok/{n}?wait=20")));
    let args = [
        "--rate",
        "unlimited",
        "--per-exit",
        "4",
        "--cacert",
        "lab-ca.pem",
    ];
    let run = world.run(&args).expect(0);
    assert_eq!(run.count(Outcome::Ok), 60);
    let origin = world.lab.origin_stats();
    assert!(origin.in_flight.peak <= 2, "{:?}", origin.in_flight);
}

#[test]
fn tinyproxy_serves_http_and_tunnels() {
    all_jobs(proxies::tinyproxy().as_ref(), http, &[]);
}

#[test]
fn tinyproxy_serves_http_in_tunnels() {
    all_jobs(proxies::tinyproxy().as_ref(), http, &["--tunnel"]);
}

#[test]
fn privoxy_serves_http_and_tunnels() {
    all_jobs(proxies::privoxy().as_ref(), http, &[]);
}

#[test]
fn a_proxy_behind_haproxy_serves_http_and_tunnels() {
    let Some(haproxy) = proxies::tinyproxy().and_then(proxies::haproxy) else {
        return;
    };
    all_jobs(Some(&haproxy), http, &[]);
    let peak = proxies::haproxy_peak(&haproxy);
    // A close is waited for, but no longer than 250 ms: on a busy machine haproxy may see it later.
    assert!(
        (1..2 * PER_EXIT).contains(&peak),
        "{peak} connections at once"
    );
}

#[test]
fn a_proxy_behind_stunnel_is_an_https_exit() {
    let identity = Identity::new();
    let stunnel = proxies::tinyproxy().and_then(|inner| proxies::stunnel(inner, &identity));
    let Some(stunnel) = stunnel else {
        return;
    };
    let world = World::new(LabConfig::with([]));
    world.write("exits.txt", format!("https://{}\n", stunnel.address));
    let lab = std::fs::read_to_string(world.dir().join("lab-ca.pem")).unwrap();
    world.write("roots.pem", lab + &identity.certificate);
    fetch_all(&world, &["--cacert", "roots.pem"]);
}

#[test]
fn microsocks_serves_http_and_https() {
    all_jobs(proxies::microsocks(None).as_ref(), socks5, &[]);
}

#[test]
fn microsocks_serves_who_knows_its_login() {
    let microsocks = proxies::microsocks(Some(LOGIN));
    all_jobs(microsocks.as_ref(), with_login("socks5h"), &[]);
}

#[test]
fn dante_serves_http_and_https() {
    all_jobs(proxies::dante().as_ref(), socks5, &[]);
}

#[test]
fn dante_serves_who_knows_its_login() {
    let dante = proxies::dante_with_login();
    all_jobs(dante.as_ref(), with_login("socks5"), &[]);
}
