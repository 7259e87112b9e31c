//! An error that a person can act on ends in a line that begins `hint:`.

use exitfetch::lab::{ExitConfig, LabConfig};

use crate::world::{ONE_RETRY, Run, World};

fn hints(run: &Run) -> Vec<&str> {
    let hints = run.stderr.lines().filter_map(|l| l.strip_prefix("hint: "));
    hints.collect()
}

#[test]
fn a_login_that_is_not_taken_is_traced_to_line_and_variable_and_not_shown() {
    let good = ExitConfig::http();
    let bad = || ExitConfig::http().behaving("407".parse().unwrap());
    let world = World::new(LabConfig::with([good, bad(), bad(), bad()]));
    let list = std::fs::read_to_string(world.dir().join("exits.txt")).unwrap();
    let port = |n: usize| {
        let line = list.lines().filter(|l| !l.starts_with('#')).nth(n).unwrap();
        let address = line.split_whitespace().next().unwrap();
        address
            .rsplit(':')
            .next()
            .unwrap()
            .trim_matches('/')
            .to_owned()
    };
    let lines = [
        "# exits".to_owned(),
        format!("127.0.0.1:{} name=good", port(0)),
        format!(
            "${{GATE_USER}}:${{GATE_PASS}}@127.0.0.1:{} name=bad-1",
            port(1)
        ),
        format!("alice-s3cret:pass-s3cret@127.0.0.1:{} name=bad-2", port(2)),
        format!("127.0.0.1:{} name=bad-3", port(3)),
    ];
    world.write("exits.txt", lines.join("\n"));
    world.urls((0..20).map(|n| format!("http://o-{n}.test/ok/{n}?wait=100")));
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command
            .env("GATE_USER", "bob-s3cret")
            .env("GATE_PASS", "word-s3cret");
        world.finish(command).expect(0)
    };
    let loud = run(&[]);
    assert_eq!(
        hints(&loud),
        [
            "exit bad-1 does not take the login of exits.txt:3, which comes from ${GATE_USER}, ${GATE_PASS}",
            "exit bad-2 does not take the login that stands in exits.txt:4",
            "exit bad-3 asks for a login, and exits.txt:5 gives none",
        ],
        "{}",
        loud.stderr
    );
    assert!(!loud.stderr.contains("s3cret"), "{}", loud.stderr);
    for exit in ["bad-1", "bad-2", "bad-3"] {
        let line = format!("exit {exit}: evicted");
        assert_eq!(loud.stderr.matches(&line).count(), 1, "{}", loud.stderr);
    }
    assert_eq!(run(&["--fresh", "-q"]).stderr, "");
    let json = run(&["--fresh", "--log-format", "json"]);
    assert_eq!(json.stderr.matches("hint: exit bad-").count(), 3);
    for line in json.stderr.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_list_without_a_usable_url_names_the_first_reason() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls(["", "example.com/a", "ftp://example.com/b"]);
    let run = world.run(&[]).expect(3);
    let hints = hints(&run);
    assert_eq!(hints.len(), 1, "{}", run.stderr);
    let hint = hints[0];
    assert!(
        hint.starts_with("no entry can be used; the first of them: urls.txt:2: "),
        "{hint}"
    );
    world.urls(["example.com/a", "http://o.test/ok/1"]);
    assert!(self::hints(&world.run(&["--fresh"]).expect(3)).is_empty());
}

#[test]
fn mistakes_in_the_call_end_in_what_would_be_right() {
    let world = World::new(LabConfig::alike(1, &ExitConfig::http()));
    world.urls(["http://o.test/ok/1"]);
    world.write("none.txt", "");
    world.write("wide.txt", b"h\0t\0t\0p\0");
    world.write("file", "");
    world.write("urls.csv", "link,id\nhttp://o.test/ok/1,a\n");
    for (args, status, message, hint) in [
        (
            &["--urls", ""][..],
            2,
            "error: --urls is missing",
            "name a file",
        ),
        (
            &["--exits", "-", "--urls", "-"],
            2,
            "both be standard input",
            "put one list into",
        ),
        (
            &["--exits", "none.txt"],
            2,
            "none.txt has no usable exit (it is empty)",
            "write one per line",
        ),
        (
            &["--urls", "wide.txt"],
            2,
            "wide.txt is UTF-16",
            "save it as UTF-8",
        ),
        (
            &["--urls", "urls.csv", "--dry-run"],
            2,
            "the CSV header in line 1 has no column named url",
            "call the one with the URLs url",
        ),
        (
            &["--out", "file"],
            1,
            "error: file is a file",
            "--out needs a directory",
        ),
    ] {
        let run = world.run(args).expect(status);
        let mut lines = run.stderr.lines().rev();
        let last = lines.next().unwrap();
        assert!(
            last.starts_with("hint: ") && last.contains(hint),
            "{args:?}: {}",
            run.stderr
        );
        let error = lines.next().unwrap();
        assert!(
            error.starts_with("error: ") && error.contains(message),
            "{args:?}: {error}"
        );
    }
    let limited = world
        .finish(world.shell("ulimit -n 30; exec $RUN"))
        .expect(1);
    let hint = "hint: raise it (ulimit -n)";
    assert_eq!(
        limited.stderr.lines().last(),
        Some(hint),
        "{}",
        limited.stderr
    );
}

#[test]
fn a_certificate_of_an_unknown_authority_leads_to_cacert() {
    let world = World::new(LabConfig::alike(2, &ExitConfig::http()));
    world.urls(["https://untrusted.a.test/ok/1", "http://o.test/ok/1"]);
    let run = world.run(&ONE_RETRY).expect(3);
    let hints = hints(&run);
    assert_eq!(hints.len(), 1, "{}", run.stderr);
    assert!(hints[0].contains("--cacert"), "{}", run.stderr);
}
