//! The exit list as providers and spreadsheets hand it out: logins in every form, dirt,
//! duplicates, sessions. What cannot be meant is refused by line number, never by content.

use exitfetch::lab::{ExitConfig, LabConfig};

use crate::world::{Run, World};

fn fetch(world: &World, exits: &str) -> Run {
    world.write("exits.txt", exits);
    world.run(&["--rate", "unlimited", "--retries", "0", "--fresh"])
}

/// Nothing that was printed or stored holds one of these.
fn assert_hidden(world: &World, run: &Run, secrets: &[&str]) {
    let mut seen = vec![("stdout".to_owned(), run.stdout.clone().into_bytes())];
    seen.push(("stderr".to_owned(), run.stderr.clone().into_bytes()));
    let mut dirs = vec![world.out()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => dirs.push(path),
                false => seen.push((path.display().to_string(), std::fs::read(&path).unwrap())),
            }
        }
    }
    for (place, bytes) in seen {
        let text = String::from_utf8_lossy(&bytes);
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} in {place}: {text}");
        }
    }
}

/// B01: the same login, escaped, raw and in the provider's form, through every scheme.
#[test]
fn an_exit_is_given_exactly_the_login_that_was_meant() {
    let (user, password) = ("us@er", "p:@ss/#%");
    for (scheme, exit) in [
        ("http", ExitConfig::http()),
        ("https", ExitConfig::https()),
        ("socks5", ExitConfig::socks5()),
        ("socks5h", ExitConfig::socks5()),
    ] {
        let world = World::new(LabConfig::with([exit.login(user, password)]));
        world.urls(["http://o.test/ok/1", "https://o.test/ok/2"]);
        let place = world.exit(0).address();
        for login in [
            "us%40er:p%3A%40ss%2F%23%25@PLACE",
            "us@er:p:@ss/#%@PLACE",
            "us%40er:p:@ss/#%25@PLACE",
            "PLACE:us@er:p:@ss/#%",
            "PLACE:us%40er:p%3A%40ss%2F%23%25",
        ] {
            let line = format!("{scheme}://{}", login.replace("PLACE", &place.to_string()));
            world.write("exits.txt", &line);
            let run = world
                .run(&["--rate", "unlimited", "--cacert", "lab-ca.pem", "--fresh"])
                .expect(0);
            let stats = world.exit(0).stats();
            assert_eq!(stats.logins.keys().collect::<Vec<_>>(), [user], "{line}");
            assert_eq!(stats.turned_away, 0, "{line}");
            assert_hidden(&world, &run, &["p:@ss", "us@er", "us%40er", "p%3A"]);
        }
    }
}

/// B01: credentials from the environment and from columns are taken as they are.
#[test]
fn logins_from_variables_and_columns_are_not_decoded() {
    let world = World::new(LabConfig::with([
        ExitConfig::http().login("us%40er", "p%41@:/ x")
    ]));
    world.urls(["http://o.test/ok/1"]);
    let place = world.exit(0).address();
    let (host, port) = (place.ip(), place.port());
    for (name, list) in [
        ("exits.txt", format!("http://${{U}}:${{P}}@{place}\n")),
        ("exits.txt", format!("{place}:${{U}}:${{P}}\n")),
        (
            "exits.csv",
            format!("host,port,username,password\n{host},{port},us%40er,p%41@:/ x\n"),
        ),
        (
            "exits.csv",
            format!("ip,port,user,pass,scheme\n{host},{port},${{U}},${{P}},http\n"),
        ),
        (
            "exits.jsonl",
            format!(
                "{{\"host\":\"{host}\",\"port\":{port},\"user\":\"us%40er\",\"password\":\"p%41@:/ x\"}}"
            ),
        ),
    ] {
        world.write(name, &list);
        let mut command = world.exitfetch(["run", "--exits", name, "--urls", "urls.txt"]);
        command.args(["--rate", "unlimited", "--fresh"]);
        command.env("U", "us%40er").env("P", "p%41@:/ x");
        let run = world.finish(command).expect(0);
        assert_hidden(&world, &run, &["p%41", "us%40er"]);
    }
}

/// B01: an empty password and a password of special characters alone.
#[test]
fn short_logins_arrive_as_they_are() {
    for (exit, line) in [
        (ExitConfig::http().login("hannah", ""), "hannah@PLACE"),
        (ExitConfig::http().login("hannah", ""), "hannah:@PLACE"),
        (
            ExitConfig::socks5().login("hannah", "p:@"),
            "socks5://hannah:p:@@PLACE",
        ),
        (
            ExitConfig::socks5().login("hannah", "p:@"),
            "socks5h://hannah:p%3A%40@PLACE",
        ),
    ] {
        let world = World::new(LabConfig::with([exit]));
        world.urls(["http://o.test/ok/1"]);
        let place = world.exit(0).address().to_string();
        fetch(&world, &line.replace("PLACE", &place)).expect(0);
        assert!(
            world.exit(0).stats().logins.contains_key("hannah"),
            "{line}"
        );
    }
}

/// B01, B02: logins no protocol can carry, and forms with no reading: status 2, the line is
/// named, its content is not, nothing is sent.
#[test]
fn impossible_logins_and_unknown_forms_are_refused_when_read() {
    let world = World::new(LabConfig::with([ExitConfig::http()]));
    world.urls(["http://o.test/ok/1"]);
    let place = world.exit(0).address().to_string();
    let long = "hunter2".repeat(43);
    for line in [
        "us%3Ahunter2:hunter2@PLACE".to_owned(),
        "https://us%3Ahunter2:hunter2@PLACE".to_owned(),
        format!("socks5://hunter2:{long}@PLACE"),
        format!("socks5://{long}:hunter2@PLACE"),
        "socks5://hunter2@PLACE".to_owned(),
        "socks5h://hunter2:@PLACE".to_owned(),
        "hunter2-s7:hunter2:PLACE".to_owned(),
        "http://hunter2-s7:hunter2:PLACE".to_owned(),
        "8080:8080:8080:8080".to_owned(),
        "1080:hunter2".to_owned(),
        "socks9://hunter2:hunter2@PLACE".to_owned(),
        "socks://PLACE:hunter2:hunter2".to_owned(),
        "hunter2:hunter2@127.0.0.1:0".to_owned(),
        "hunter2:hunter2@127.0.0.1:99999".to_owned(),
        "hunter2:hunter2@127.0.0.1".to_owned(),
        "\"PLACE:hunter2:hunter2\",".to_owned(),
        "PLACE hunter2".to_owned(),
        "PLACE password=hunter2".to_owned(),
        "hunter2:hunter2@PLACE cap=none".to_owned(),
        "hunter2:hunter2@PLACE cap=0".to_owned(),
        "hunter2:hunter2@[::1:PLACE".to_owned(),
        "hunter2-{session}:hunter2@PLACE".to_owned(),
        "hunter2:hunter2@PLACE sessions=3".to_owned(),
        "hunter2:${NOT_SET}@PLACE".to_owned(),
        "hunter2:%ff@PLACE".to_owned(),
        "hunter2:hun%0ater2@PLACE".to_owned(),
    ] {
        let line = line.replace("PLACE", &place);
        let run = fetch(&world, &format!("# exits\n\n{line}\n"));
        let run = run.expect(2);
        assert!(
            run.stderr.contains("exits.txt:3: "),
            "{line}: {}",
            run.stderr
        );
        assert!(!world.out().exists(), "{line}");
        assert_hidden(&world, &run, &["hunter2", "8080", &place]);
    }
    assert_eq!(world.exit(0).stats().connections, 0);
}

/// B02: the form providers hand out, and a login left away.
#[test]
fn a_listed_login_is_always_used_and_a_missing_one_is_told() {
    let world = World::new(LabConfig::with([
        ExitConfig::http().login("alice-s7", "hunter2")
    ]));
    world.urls(["http://o.test/ok/1"]);
    let place = world.exit(0).address();
    for line in [
        format!("{place}:alice-s7:hunter2"),
        format!("alice-s7:hunter2@{place}"),
        format!("http://{place}:alice-s7:hunter2"),
    ] {
        let run = fetch(&world, &line).expect(0);
        assert_hidden(&world, &run, &["alice-s7", "hunter2"]);
    }
    assert_eq!(world.exit(0).stats().turned_away, 0);
    world.lab.reset();
    let run = fetch(&world, &place.to_string()).expect(4);
    assert_eq!(world.lab.origin_stats().requests, 0);
    assert!(
        world.exits_csv()[0]["reason"].contains("407"),
        "{}",
        run.stdout
    );
}

/// B03: one exit in many spellings among dirt: one row, one cap, refused lines by number.
#[test]
fn copies_of_an_exit_share_one_cap_and_dirt_is_named_by_line() {
    for exit in [ExitConfig::http(), ExitConfig::socks5()] {
        let scheme = exit.scheme.as_str();
        let world = World::new(LabConfig::with([exit]));
        world.urls((0..12).map(|n| format!("http://o-{n}.test/drip/{n}?bytes=20&ms=300")));
        let place = world.exit(0).address();
        let upper = scheme.to_uppercase();
        let bare = match scheme {
            "http" => place.to_string(),
            scheme => format!("{scheme}h://{place}"),
        };
        world.write(
            "exits.txt",
            format!(
                "{scheme}://{place}\r\n\n# comment\n{upper}://{place}/\n  {bare}\t\n\
                 \"{place}\",\nsocks9://{place}\nhttp://127.0.0.1:0\n{scheme}://{place} name=again\n"
            ),
        );
        let run = world
            .run(&["--rate", "unlimited", "--per-exit", "2"])
            .expect(0);
        let stats = world.exit(0).stats();
        assert!(stats.sockets.peak <= 2, "{stats:?}");
        assert_eq!(stats.requests, 12);
        let rows = world.exits_csv();
        assert_eq!(rows.len(), 1);
        assert_eq!((&*rows[0]["cap"], &*rows[0]["peak"]), ("2", "2"));
        for line in [6, 7, 8] {
            let told = format!("exits.txt:{line}: ");
            assert!(run.stderr.contains(&told), "{}", run.stderr);
        }
        for line in [1, 2, 3, 4, 5, 9] {
            let told = format!("exits.txt:{line}: ");
            assert!(!run.stderr.contains(&told), "{}", run.stderr);
        }
    }
}

/// B03: the default port is the same exit too.
#[test]
fn a_scheme_s_default_port_needs_not_be_written() {
    let world = World::new(LabConfig::with([]));
    world.urls(["http://o.test/ok/1"]);
    world.write(
        "exits.txt",
        "http://gate.test\nhttp://GATE.test:80/\ngate.test.:80\nsocks5://gate.test\nsocks5h://gate.test:1080\nhttps://gate.test\n",
    );
    let run = world.run(&["--dry-run"]).expect(0);
    assert!(run.stdout.contains("3 exits carry 9"), "{}", run.stdout);
}

/// Sessions of one line are exits of their own, with a name each that shows no login.
#[test]
fn a_line_with_sessions_makes_so_many_exits() {
    for (exit, name) in [
        (ExitConfig::http().gateway("s-", "hunter2", 4), "gate-"),
        (ExitConfig::socks5().gateway("s-", "hunter2", 4), "gate-"),
    ] {
        let world = World::new(LabConfig::with([exit.named("gate")]));
        world.urls((0..40).map(|n| format!("http://o.test/ok/{n}")));
        let run = world
            .run(&["--rate", "unlimited", "--per-exit", "1"])
            .expect(0);
        let stats = world.exit(0).stats();
        assert_eq!(stats.logins.len(), 4, "{stats:?}");
        assert_eq!(stats.two_logins, 0);
        let rows = world.exits_csv();
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row["id"].starts_with(name)));
        assert_hidden(&world, &run, &["hunter2", "s-1", "s-4"]);
    }
}
