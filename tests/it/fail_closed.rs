//! No request leaves except through a listed exit, and no target name is looked up here:
//! without a usable exit, with the environment's proxies, over redirects, by every scheme.

use exitfetch::lab::{Behaviour, ExitConfig, LabConfig};
use exitfetch::model::Outcome;

use crate::world::World;

/// An URL that a direct connection would reach.
fn direct(world: &World) -> String {
    format!("http://{}/ok/5", world.lab.origin_http())
}

/// B05: lists without a usable exit.
#[test]
fn without_a_usable_exit_nothing_is_sent() {
    let world = World::new(LabConfig::with([]));
    world.urls([direct(&world)]);
    for (name, list) in [
        ("exits.txt", ""),
        ("exits.txt", "\n \t\r\n"),
        ("exits.txt", "# only\n# comments\n"),
        ("exits.txt", "socks9://127.0.0.1:1\n127.0.0.1:0\n"),
        ("exits.csv", "exit,name\n"),
        ("exits.csv", ""),
        ("exits.jsonl", "\n"),
        ("exits.jsonl", "{}\n"),
    ] {
        world.write(name, list);
        let mut command = world.exitfetch(["run", "--exits", name, "--urls", "urls.txt"]);
        command.env("HTTP_PROXY", format!("http://{}", world.lab.origin_http()));
        let run = world.finish(command).expect(2);
        assert!(run.stderr.contains("no usable exit"), "{}", run.stderr);
        assert!(run.stderr.contains(name), "{}", run.stderr);
        assert!(!world.out().exists(), "{name}: {list:?}");
    }
    assert_eq!(world.lab.origin_stats().connections, 0);
}

/// B05: the environment adds, replaces and bypasses nothing.
#[test]
fn the_environment_s_proxies_do_not_exist_for_targets() {
    for exit in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        let world = World::new(LabConfig::with([exit, ExitConfig::http()]));
        let https = format!("https://{}/ok/6", world.lab.origin_https());
        world.urls([direct(&world), https]);
        world.write("exits.txt", world.exit(0).line());
        let other = format!("http://{}", world.exit(1).address());
        let mut command = world.command(&["--rate", "unlimited", "--cacert", "lab-ca.pem"]);
        command.env("NO_PROXY", "*").env("no_proxy", "*");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env(name, &other).env(name.to_lowercase(), &other);
        }
        world.finish(command).expect(0);
        assert_eq!(world.exit(0).stats().requests, 2);
        assert_eq!(world.exit(1).stats().connections, 0);
        assert_eq!(world.lab.origin_stats().connections, 0);
    }
}

/// B05: an exit that refuses is not gone around.
#[test]
fn a_refusing_exit_is_never_bypassed() {
    for word in ["502", "refuse", "reset", "407"] {
        let behaviour: Behaviour = word.parse().unwrap();
        let world = World::new(LabConfig::with([ExitConfig::http().behaving(behaviour)]));
        world.urls([direct(&world)]);
        let run = world.run(&[
            "--retries",
            "0",
            "--no-exit-timeout",
            "1s",
            "--max-time",
            "20s",
        ]);
        assert!(
            matches!(run.status, Some(3..=5)),
            "{word}: {run:?}",
            run = run.status
        );
        assert_eq!(world.lab.origin_stats().connections, 0, "{word}");
    }
}

/// B05: a redirect's hop takes an exit like any other request, from http to https and back.
#[test]
fn every_hop_of_a_redirect_goes_through_an_exit() {
    for exit in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        let world = World::new(LabConfig::with([exit]).logging(100));
        let (http, https) = (world.lab.origin_http(), world.lab.origin_https());
        world.urls([
            format!("http://{http}/redirect-to?url=https://{https}/ok/7&status=302"),
            format!("https://{https}/redirect-to?url=http://{http}/ok/8&status=301"),
        ]);
        let run = world
            .run(&["--rate", "unlimited", "--cacert", "lab-ca.pem"])
            .expect(0);
        assert!(run.records.iter().all(|record| record.final_url.is_some()));
        let stats = world.lab.origin_stats();
        assert_eq!((stats.requests, stats.connections), (4, 0));
        assert!(world.lab.log().iter().all(|seen| seen.exit.is_some()));
    }
}

/// G03: names go to the exit as names, by every scheme, for http and https.
#[test]
fn target_names_are_resolved_at_the_exit() {
    for (scheme, exit) in [
        ("socks5h", ExitConfig::socks5()),
        ("socks5", ExitConfig::socks5()),
        ("http", ExitConfig::http()),
        ("https", ExitConfig::https()),
    ] {
        let world = World::new(LabConfig::with([exit]));
        let place = world.exit(0).address();
        world.write("exits.txt", format!("{scheme}://{place}\n"));
        world.urls((0..50).map(|n| {
            let scheme = if n % 2 == 0 { "http" } else { "https" };
            format!("{scheme}://name-{n}.inner.test/ok/{n}")
        }));
        let run = world
            .run(&["--rate", "unlimited", "--cacert", "lab-ca.pem"])
            .expect(0);
        assert_eq!(run.count(Outcome::Ok), 50);
        let stats = world.exit(0).stats();
        if scheme.starts_with("socks") {
            assert_eq!((stats.names, stats.addresses), (stats.handshakes, 0));
        }
        let hosts = world.lab.origin_stats().hosts;
        assert_eq!(
            hosts.keys().filter(|h| h.contains(".inner.test")).count(),
            50
        );
    }
}

/// G03: an address in a URL is an address to the exit, in both families.
#[test]
fn addresses_in_urls_reach_a_socks_exit_as_addresses() {
    let world = World::new(LabConfig::with([ExitConfig::socks5()]).logging(10));
    world.urls([
        "http://192.0.2.7/ok/1",
        "http://[2001:db8::7]/ok/2",
        "http://[2001:db8::7]:8080/ok/3",
    ]);
    world.run(&["--rate", "unlimited"]).expect(0);
    let stats = world.exit(0).stats();
    assert_eq!((stats.names, stats.addresses), (0, 3));
}

/// G03: a scheme that says nothing about who resolves is refused.
#[test]
fn unknown_exit_schemes_are_refused() {
    let world = World::new(LabConfig::with([ExitConfig::socks5()]));
    world.urls(["http://o.test/ok/1"]);
    let place = world.exit(0).address();
    for scheme in [
        "socks", "socks4", "socks4a", "socks5s", "tcp", "ftp", "HTTPX",
    ] {
        world.write("exits.txt", format!("{scheme}://{place}\n"));
        let run = world.run(&[]).expect(2);
        assert!(run.stderr.contains("exits.txt:1: "), "{}", run.stderr);
        assert!(run.stderr.contains("socks5h"), "{}", run.stderr);
    }
    assert_eq!(world.exit(0).stats().connections, 0);
}
