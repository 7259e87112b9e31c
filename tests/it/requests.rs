//! What goes out: tunnels on demand, requests with bodies, addresses of every family.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{Outcome, Record};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::world::{Run, World};

const EXITS: [fn() -> ExitConfig; 3] = [ExitConfig::http, ExitConfig::https, ExitConfig::socks5];

/// A run over `urls.jsonl`.
fn run_jsonl(world: &World, entries: &[Value], more: &[&str]) -> Run {
    let lines: Vec<String> = entries.iter().map(|entry| format!("{entry}\n")).collect();
    world.write("urls.jsonl", lines.concat());
    let fixed = ["run", "--exits", "exits.txt", "--urls", "urls.jsonl"];
    let free = ["--rate", "unlimited", "--cacert", "lab-ca.pem"];
    let words = fixed.iter().chain(&free).chain(more);
    world.finish(world.exitfetch(words))
}

fn said(world: &World, record: &Record) -> Value {
    assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
    serde_json::from_slice(&world.body(record)).unwrap()
}

#[test]
fn tunnel_asks_for_a_tunnel_for_http_too() {
    for exit in EXITS {
        for (flags, tunnels) in [(&[][..], false), (&["--tunnel"][..], true)] {
            let world = World::new(LabConfig::alike(1, &exit()).logging(100));
            world.urls((0..6).map(|n| format!("http://o{}.test/ok/100/{n}", n % 2)));
            let args = [&["--rate", "unlimited", "--cacert", "lab-ca.pem"], flags].concat();
            world.run(&args).expect(0);
            let socks = world.exit(0).stats().scheme == "socks5";
            assert!(
                world
                    .lab
                    .log()
                    .iter()
                    .all(|seen| seen.tunnel == (tunnels || socks))
            );
        }
    }
}

/// A request goes out as listed: method, headers, body, path and query to the byte.
#[test]
fn method_headers_body_and_target_arrive_as_listed() {
    for exit in EXITS {
        let world = World::new(LabConfig::alike(1, &exit()));
        let entries = [
            json!({"url": "http://o.test/echo", "method": "POST", "body": "a=1&b=2",
                   "headers": {"Content-Type": "application/x-www-form-urlencoded", "X-One": "1"}}),
            json!({"url": "https://o.test/echo?q=%2Fa%20b&e=", "method": "PUT", "body_base64": "aGVsbG8="}),
            json!({"url": "http://o.test/echo/%7Euser/a%2Fb#frag"}),
        ];
        let run = run_jsonl(&world, &entries, &[]).expect(0);
        let first = said(&world, run.line(1));
        assert_eq!(
            (&first["method"], &first["body"]),
            (&json!("POST"), &json!("a=1&b=2"))
        );
        let fields = first["headers"].to_string().to_lowercase();
        assert!(
            fields.contains("x-one") && fields.contains("urlencoded"),
            "{fields}"
        );
        let second = said(&world, run.line(2));
        assert_eq!(second["target"], "/echo?q=%2Fa%20b&e=");
        assert_eq!(
            (&second["method"], &second["body"]),
            (&json!("PUT"), &json!("hello"))
        );
        assert_eq!(said(&world, run.line(3))["target"], "/echo/%7Euser/a%2Fb");
    }
}

/// A POST that may have arrived is not sent again; one that certainly did not is.
#[test]
fn a_post_is_sent_again_only_if_it_cannot_have_arrived() {
    for exit in EXITS {
        let post = |url: &str| json!({"url": url, "method": "POST", "body": "order=1"});
        // The origin took it and failed.
        let world = World::new(LabConfig::alike(2, &exit()));
        let hows = ["503", "reset", "close", "cut"];
        let entries: Vec<Value> = ["http", "https"]
            .into_iter()
            .flat_map(|scheme| hows.map(|how| (scheme, how)))
            .map(|(scheme, how)| post(&format!("{scheme}://{how}-{scheme}.test/flaky/1?how={how}")))
            .collect();
        let run = run_jsonl(&world, &entries, &[]).expect(3);
        for (name, host) in &world.lab.origin_stats().hosts {
            assert_eq!(host.requests, 1, "{name}");
        }
        assert_eq!(run.count(Outcome::Failed), 8);

        // The exit never passed it on.
        let exits = [exit().behaving("reset".parse().unwrap()), exit()];
        let world = World::new(LabConfig::with(exits));
        let entries: Vec<Value> = (0..6)
            .map(|n| post(&format!("https://o{n}.test/echo")))
            .collect();
        let run = run_jsonl(&world, &entries, &[]).expect(0);
        assert_eq!(run.count(Outcome::Ok), 6);
        assert_eq!(world.lab.origin_stats().requests, 6);
    }
}

/// A POST on a kept-alive socket that the peer closes meanwhile is not sent twice.
#[test]
fn a_post_over_a_socket_that_dies_unanswered_is_not_repeated() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    let entries: Vec<Value> = (0..4)
        .map(|n| json!({"url": format!("http://o.test/stale/20/{n}"), "method": "POST", "body": "x"}))
        .collect();
    run_jsonl(&world, &entries, &["--per-exit", "1"]);
    let at = world.lab.origin_stats().host("o.test").requests;
    assert!(at <= 4, "{at} requests for 4 orders");
}

/// Addresses as targets, through every exit.
#[test]
fn targets_may_be_addresses_of_either_family() {
    for exit in EXITS {
        let world = World::new(LabConfig::alike(1, &exit()));
        let urls = [
            "http://127.0.0.1:8080/ok/10",
            "https://127.0.0.1/ok/11",
            "http://[::1]:8080/ok/12",
            "https://[::1]/ok/13",
            "https://[2001:db8::7]:8443/ok/14",
        ];
        world.urls(urls);
        let args = ["--rate", "unlimited", "--cacert", "lab-ca.pem"];
        let run = world.run(&args).expect(0);
        for line in 1..=5 {
            assert_eq!(run.line(line).bytes, Some(line + 9));
        }
    }
}

/// An exit listed by an IPv6 address: a forwarder on `[::1]` in front of the lab's exit.
#[test]
fn an_exit_may_be_listed_by_an_ipv6_address() {
    // The certificate of the lab's https exits is for 127.0.0.1 alone.
    for exit in [ExitConfig::http, ExitConfig::socks5] {
        let world = World::new(LabConfig::alike(1, &exit().login("us", "pa")));
        let Ok(listener) = world.runtime.block_on(TcpListener::bind("[::1]:0")) else {
            eprintln!("no IPv6 on this machine: left out");
            return;
        };
        let (front, behind) = (listener.local_addr().unwrap(), world.exit(0).address());
        world.runtime.spawn(async move {
            while let Ok((mut from, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(behind).await.unwrap();
                    let _ = copy_bidirectional(&mut from, &mut to).await;
                });
            }
        });
        let scheme = world.exit(0).stats().scheme;
        world.write("exits.txt", format!("{scheme}://us:pa@{front}\n"));
        world.urls((0..20).map(|n| {
            let scheme = if n % 2 == 0 { "http" } else { "https" };
            format!("{scheme}://o{}.test/ok/100/{n}", n % 3)
        }));
        let args = [
            "--rate",
            "unlimited",
            "--per-exit",
            "2",
            "--cacert",
            "lab-ca.pem",
        ];
        let run = world.run(&args).expect(0);
        assert_eq!(run.count(Outcome::Ok), 20);
        assert_eq!(world.exits_csv()[0]["id"], front.to_string());
        assert!(world.exit(0).stats().sockets.peak <= 2);
    }
}
