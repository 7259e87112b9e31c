//! The fields of an entry: method, headers, body, other columns; file names by template; the
//! dry run.

use std::collections::HashSet;

use exitfetch::lab::{ExitConfig, LabConfig, content};
use exitfetch::model::{Outcome, Record};
use serde_json::{Value, json};

use crate::world::{Run, World};

pub fn world() -> World {
    World::new(LabConfig::with([ExitConfig::http()]).logging(500))
}

pub fn run(world: &World, list: &str, args: &[&str]) -> Run {
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", list]);
    command.args(["--rate", "unlimited"]).args(args);
    world.finish(command)
}

pub fn echo(world: &World, record: &Record) -> Value {
    serde_json::from_slice(&world.body(record)).unwrap()
}

pub fn sent(echo: &Value, name: &str) -> Vec<String> {
    let headers = echo["headers"].as_array().unwrap().iter();
    headers
        .filter(|header| header[0].as_str().unwrap().eq_ignore_ascii_case(name))
        .map(|header| header[1].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn csv_fields_are_sent_and_other_columns_come_back() {
    let world = world();
    world.write(
        "urls.csv",
        "note,URL,id,Method,body,header:X-Tag,header:Accept,rank\n\
         \"a, \"\"b\"\"\",http://o.test/echo/1,first,,,,,1\n\
         \"two\nlines\",http://o.test/echo/2,,put,\"x,y\nz\",t1,text/html,2\n\
         c,http://o.test/echo/3,,,q=1,,,\n\
         d,not a url,fourth,,,,,4\n\
         short,http://o.test/echo/5\n",
    );
    let run = run(&world, "urls.csv", &[]).expect(3);
    let first = run.line(2);
    assert_eq!(first.id, "first");
    let extra = Value::Object(first.extra.clone().unwrap());
    assert_eq!(extra, json!({"note": "a, \"b\"", "rank": "1"}));
    assert_eq!(echo(&world, first)["method"], "GET");

    let second = run.line(3);
    let said = echo(&world, second);
    assert_eq!(
        (&said["method"], &said["body"]),
        (&json!("PUT"), &json!("x,y\nz"))
    );
    assert_eq!(sent(&said, "x-tag"), ["t1"]);
    assert_eq!(sent(&said, "accept"), ["text/html"]);
    assert_eq!(sent(&said, "content-length"), ["5"]);
    assert_eq!(second.extra.as_ref().unwrap()["note"], "two\nlines");

    let said = echo(&world, run.line(6));
    assert_eq!(
        (&said["method"], &said["body"]),
        (&json!("POST"), &json!("q=1"))
    );

    let refused = run.line(7);
    assert_eq!(
        (refused.outcome, &*refused.id),
        (Outcome::Refused, "fourth")
    );
    let extra = refused.extra.as_ref().expect("columns of a refused row");
    assert_eq!((&extra["note"], &extra["rank"]), (&json!("d"), &json!("4")));
    assert_eq!(run.line(8).outcome, Outcome::Ok);
}

#[test]
fn jsonl_fields_are_sent_and_other_members_come_back() {
    let world = world();
    world.write(
        "urls.jsonl",
        [
            r#"{"url":"http://o.test/echo/1","id":7,"tags":["a",{"b":1}],"n":1.5,"none":null}"#,
            r#"{"url":"http://o.test/echo/2","method":"patch","headers":{"X-Tag":["a","b"],"Content-Type":"text/x"},"body":"h\u00e9"}"#,
            r#"{"url":"https://o.test/echo/3","body_base64":"AAEC/w==","method":"POST"}"#,
            r#"{"url":"http://o.test/echo/4","body":"a","body_base64":"AA=="}"#,
            r#"{"url":"http://o.test/echo/5","body_base64":"%%%"}"#,
            r#"{"url":"http://o.test/echo/6","headers":{"Host":"x"}}"#,
            r#"{"url":"http://o.test/echo/7","headers":{"X":"a\r\nB: c"}}"#,
            r#"{"url":"http://o.test/echo/8","method":"CONNECT"}"#,
            r#"{"url":"http://o.test/echo/9","method":"G T"}"#,
            r#"{"url":7}"#,
            r#"{"uri":"http://o.test/echo/11","mine":true}"#,
            r#"["http://o.test/echo/12"]"#,
            r#"{"url":"http://o.test/echo/13""#,
            r#"{"url":"http://o.test/echo/14","id":""}"#,
            r#"{"url":"http://o.test/echo/15","method":"HEAD"}"#,
        ]
        .join("\n"),
    );
    let run = run(&world, "urls.jsonl", &["--cacert", "lab-ca.pem"]).expect(3);
    assert_eq!(run.records.len(), 15);
    let first = run.line(1);
    assert_eq!(first.id, "7");
    let extra = Value::Object(first.extra.clone().unwrap());
    assert_eq!(
        extra,
        json!({"tags": ["a", {"b": 1}], "n": 1.5, "none": null})
    );
    let said = echo(&world, run.line(2));
    assert_eq!(
        (&said["method"], &said["body"]),
        (&json!("PATCH"), &json!("h\u{e9}"))
    );
    assert_eq!(sent(&said, "x-tag"), ["a", "b"]);
    assert_eq!(sent(&said, "content-type"), ["text/x"]);
    assert_eq!(sent(&echo(&world, run.line(3)), "content-length"), ["4"]);
    for line in 4..=14 {
        let record = run.line(line);
        assert_eq!(record.outcome, Outcome::Refused, "{record:?}");
        let told = format!("urls.jsonl:{line}: ");
        assert!(run.stderr.contains(&told), "{line}: {}", run.stderr);
    }
    assert_eq!(run.line(11).extra.as_ref().unwrap()["mine"], true);
    assert_eq!(
        (run.line(15).outcome, run.line(15).bytes),
        (Outcome::Ok, Some(0))
    );
}

#[test]
fn a_name_template_makes_the_files() {
    let world = world();
    world.write(
        "urls.csv",
        "id,url\nA1,http://O.test/ok/1\na1,http://o.test/ok/2\nb2,http://p.test:8080/ok/3?type=text/html\n",
    );
    for (template, expected) in [
        ("{host}/{line}{ext}", "bodies/p.test/4~"),
        ("{host}/{id}.{ext}", "bodies/p.test/b2.html"),
        ("all/{hash}", "bodies/all/"),
        ("page-{line}", "bodies/page-4~"),
    ] {
        let run = run(
            &world,
            "urls.csv",
            &["--fresh", "--name-template", template],
        )
        .expect(0);
        let files: HashSet<String> = run
            .records
            .iter()
            .map(|record| record.file.clone().unwrap().to_lowercase())
            .collect();
        assert_eq!(files.len(), 3, "{template}");
        let file = run.line(4).file.clone().unwrap();
        assert!(file.starts_with(expected), "{template}: {file}");
        for (line, n) in [(2, 1), (3, 2)] {
            assert_eq!(
                world.body(run.line(line)),
                content("o.test", &format!("/ok/{n}"), n)
            );
        }
    }
}

/// The dry run reads both lists, tells refused lines like the run does, and touches nothing.
#[test]
fn a_dry_run_says_what_would_run_and_touches_nothing() {
    let world = world();
    world.urls(
        (0..31)
            .map(|n| format!("http://o.test/ok/{n}"))
            .chain(["bad".to_owned()]),
    );
    let files = || std::fs::read_dir(world.dir()).unwrap().count();
    let before = files();
    let run = world.run(&["--dry-run", "--rate", "30/m"]).expect(3);
    assert!(
        run.stdout.contains("32 entries: 31 to fetch"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("1 refused"), "{}", run.stdout);
    assert!(run.stdout.contains("at least 1m"), "{}", run.stdout);
    assert!(run.stdout.contains("o.test"), "{}", run.stdout);
    assert!(run.stderr.contains("urls.txt:32: "), "{}", run.stderr);
    // A burst is not waited for, so it makes the least time shorter.
    let run = world
        .run(&["--dry-run", "--rate", "30/m", "--burst", "21"])
        .expect(3);
    assert!(run.stdout.contains("at least 20s"), "{}", run.stdout);
    // How long a request takes is not known, so what is made of it is no least time.
    let run = world
        .run(&["--dry-run", "--rate", "30", "--per-exit", "1"])
        .expect(3);
    assert!(run.stdout.contains("about 31s"), "{}", run.stdout);
    assert!(!run.stdout.contains("at least"), "{}", run.stdout);
    assert_eq!(files(), before);
    assert!(!world.out().exists());
    assert_eq!(world.exit(0).stats().connections, 0);
}
