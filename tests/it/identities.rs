//! Many identities behind one gateway address: no connection ever serves two of them.

use std::collections::{BTreeSet, HashMap};

use exitfetch::lab::{ExitConfig, LabConfig};
use url::Url;

use crate::world::World;

const SCHEMES: [&str; 3] = ["http", "https", "socks5"];

fn gateway(scheme: &str) -> World {
    let exit = match scheme {
        "http" => ExitConfig::http(),
        "https" => ExitConfig::https(),
        _ => ExitConfig::socks5(),
    };
    let exit = exit.gateway("s-", "s3cret-word", 3).named("gate");
    World::new(LabConfig::with([exit]).logging(1000))
}

/// Thirty http and thirty https URLs through three logins at one address.
fn each_login_has_its_own_connections(world: &World) {
    let urls: Vec<String> = (0..60)
        .map(|n| {
            let scheme = if n % 2 == 0 { "http" } else { "https" };
            format!("{scheme}://o{}.test/ok/200/{n}", n % 3)
        })
        .collect();
    world.urls(&urls);
    let run = world
        .run(&[
            "--rate",
            "unlimited",
            "--per-origin",
            "50",
            "--per-exit",
            "1",
            "--cacert",
            "lab-ca.pem",
        ])
        .expect(0);

    let stats = world.exit(0).stats();
    assert_eq!(stats.two_logins, 0);
    assert!(stats.sockets.peak <= 3, "{stats:?}");
    assert_eq!(stats.logins.len(), 3, "{stats:?}");
    for (login, own) in &stats.logins {
        assert!(
            own.sockets.peak <= 1 && own.in_flight.peak <= 1,
            "{login}: {own:?}"
        );
    }

    // Which login carried a request, as the gateway saw it, against what the record says.
    let carried: HashMap<(String, String), String> = world
        .lab
        .log()
        .into_iter()
        .map(|seen| ((seen.host, seen.target), seen.login.unwrap()))
        .collect();
    let mut login_of: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for record in &run.records {
        let url: Url = record.url.parse().unwrap();
        let key = (url.host_str().unwrap().to_owned(), url.path().to_owned());
        login_of
            .entry(record.exit.as_deref().unwrap())
            .or_default()
            .insert(&carried[&key]);
    }
    assert_eq!(login_of.len(), 3, "{login_of:?}");
    assert!(login_of.values().all(|logins| logins.len() == 1));
    let logins: BTreeSet<_> = login_of.values().flatten().collect();
    assert_eq!(logins.len(), 3, "{login_of:?}");

    let rows = world.exits_csv();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["peak_sockets"] == "1"));
    let table = std::fs::read_to_string(world.out().join("exits.csv")).unwrap();
    for text in [&table, &run.stdout, &run.stderr] {
        assert!(
            !text.contains("s-a") && !text.contains("s3cret-word"),
            "{text}"
        );
        assert!(!text.contains("s-1"), "{text}");
    }
}

/// C03: three lines with one host and port.
#[test]
fn three_users_of_one_gateway_are_three_exits() {
    for scheme in SCHEMES {
        let world = gateway(scheme);
        let address = world.exit(0).address();
        let line = |user: &str| format!("{scheme}://s-{user}:s3cret-word@{address}\n");
        world.write("exits.txt", [line("a"), line("b"), line("c")].concat());
        each_login_has_its_own_connections(&world);
    }
}

/// C03, with names of their own.
#[test]
fn named_users_of_one_gateway_are_shown_by_their_names() {
    for scheme in SCHEMES {
        let world = gateway(scheme);
        let address = world.exit(0).address();
        let line =
            |user: &str| format!("{scheme}://s-{user}:s3cret-word@{address} name=way-{user}\n");
        world.write("exits.txt", [line("a"), line("b"), line("c")].concat());
        each_login_has_its_own_connections(&world);
        let ids: Vec<String> = world
            .exits_csv()
            .iter()
            .map(|row| row["id"].clone())
            .collect();
        assert_eq!(ids, ["way-a", "way-b", "way-c"]);
    }
}

/// C03, as a template.
#[test]
fn sessions_made_from_a_template_are_exits_of_their_own() {
    for scheme in SCHEMES {
        let world = gateway(scheme);
        each_login_has_its_own_connections(&world);
    }
}
