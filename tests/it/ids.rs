//! Ids, given and made: records keep them, files are named by them, and no two requests
//! share one. An entry listed twice is fetched once and recorded twice.

use std::collections::HashSet;

use exitfetch::lab::content;
use exitfetch::model::{ErrorKind, Outcome};
use serde_json::{Value, json};

use crate::list_fields::{echo, run, sent, world};

/// Given ids: kept in records whatever they hold, never a path, never two jobs in one file.
#[test]
fn given_ids_name_records_and_harmless_files() {
    let world = world();
    let ids = [
        "plain",
        "Plain",
        "../../etc/passwd",
        "/abs",
        "a/b",
        "..",
        "con",
        "é".repeat(40).as_str(),
        "a b",
        ".hidden",
        "x".repeat(300).as_str(),
        "plain.",
        "-rf",
        "~",
        "a:b",
    ]
    .map(str::to_owned);
    let list: Vec<String> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| json!({"url": format!("http://o.test/ok/{}", n + 1), "id": id}).to_string())
        .collect();
    world.write("urls.jsonl", list.join("\n"));
    let run = run(&world, "urls.jsonl", &[]).expect(0);
    let mut files = HashSet::new();
    for (n, id) in ids.iter().enumerate() {
        let record = run.line(n as u64 + 1);
        assert_eq!(&record.id, id);
        let file = record.file.clone().unwrap();
        assert!(file.starts_with("bodies/") && file.is_ascii(), "{file}");
        assert!(
            !file.contains("..") && file.split('/').count() == 4,
            "{file}"
        );
        assert!(files.insert(file.to_lowercase()), "{file}");
        assert_eq!(
            world.body(record),
            content("o.test", &format!("/ok/{}", n + 1), n + 1)
        );
    }
    assert!(!world.dir().join("etc").exists());
}

/// An id that another request has: the later line is refused, in one run and the next.
#[test]
fn an_id_given_twice_refuses_the_later_line() {
    let world = world();
    world.write(
        "urls.csv",
        "id,url,note\na,http://o.test/ok/1,x\na,http://o.test/ok/2,y\nb,http://o.test/ok/3,z\na,http://o.test/ok/1,again\n",
    );
    for _ in 0..2 {
        let run = run(&world, "urls.csv", &[]).expect(3);
        let mut lines: Vec<u64> = run.records.iter().map(|record| record.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [2, 3, 4, 5]);
        let error = run.line(3).error.as_ref().unwrap();
        assert_eq!(error.kind, ErrorKind::DuplicateId);
        assert!(error.detail.contains("line 2"), "{}", error.detail);
        assert_eq!(run.line(3).extra.as_ref().unwrap()["note"], "y");
        assert_eq!(run.line(5).extra.as_ref().unwrap()["note"], "again");
        assert_eq!(run.line(5).file, run.line(2).file);
    }
    assert_eq!(world.lab.origin_stats().requests, 2);
}

/// E02: the id does not tell headers and passwords apart, so such lines need ids of their own:
/// one line's body is never stored as the answer to another request.
#[test]
fn the_same_url_with_other_headers_or_another_login_is_no_twin() {
    let world = world();
    world.write(
        "urls.csv",
        "url,header:Accept,id\nhttp://o.test/echo,text/a,\nhttp://o.test/echo,text/b,\n\
         http://o.test/echo,text/a,\nhttp://o.test/echo,text/b,own\n\
         http://u:1@p.test/echo,,\nhttp://u:2@p.test/echo,,\nhttp://u:1@p.test/echo,,\n",
    );
    let run = run(&world, "urls.csv", &[]).expect(3);
    for (line, outcome) in [
        (2, Outcome::Ok),
        (3, Outcome::Refused),
        (4, Outcome::Ok),
        (5, Outcome::Ok),
        (6, Outcome::Ok),
        (7, Outcome::Refused),
        (8, Outcome::Ok),
    ] {
        assert_eq!(run.line(line).outcome, outcome, "line {line}");
    }
    assert_eq!(world.lab.origin_stats().requests, 3);
    assert_eq!(sent(&echo(&world, run.line(5)), "accept"), ["text/b"]);
}

/// E02: a URL listed again: a record per line, one request, one file; failed ones alike.
#[test]
fn a_line_listed_twice_is_fetched_once_and_recorded_twice() {
    let world = world();
    let urls = [
        "http://o.test/delay/300",
        "http://o.test/ok/5",
        "http://o.test/status/404",
    ];
    world.urls(urls.iter().cycle().take(9));
    let run = run(&world, "urls.txt", &["--summary", "json"]).expect(3);
    assert_eq!(run.records.len(), 9);
    assert_eq!((run.count(Outcome::Ok), run.count(Outcome::Failed)), (6, 3));
    assert_eq!(world.lab.origin_stats().requests, 3);
    for line in 1..=3 {
        for twin in [line + 3, line + 6] {
            assert_eq!(run.line(line).file, run.line(twin).file);
            assert_eq!(run.line(line).sha256, run.line(twin).sha256);
        }
    }
    let summary: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(summary["totals"]["ok"], 6, "{summary}");
    // The next run has nothing to do but the failed one.
    let run = crate::list_fields::run(&world, "urls.txt", &[]).expect(3);
    assert_eq!(world.lab.origin_stats().requests, 4);
    let last: HashSet<(u64, Outcome)> = run.records.iter().map(|r| (r.line, r.outcome)).collect();
    assert_eq!(last.len(), 9);
}
