//! File names: whatever a URL, an id, a content type or a template makes of them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use exitfetch::lab::{ExitConfig, LabConfig, content};
use exitfetch::model::{Outcome, Record};

use crate::shells::{tree, whole_records};
use crate::world::World;

const FAST: [&str; 2] = ["--rate", "unlimited"];

fn world() -> World {
    World::new(LabConfig::alike(2, &ExitConfig::http()))
}

/// Long in every part that a name could be made of.
fn long_list() -> String {
    let mut csv = "url,id\n".to_owned();
    let urls = [
        format!("http://o.test/bytes/20/{}", "a".repeat(252)),
        format!("http://o.test/bytes/21/{}", "a".repeat(4000)),
        format!("http://o.test/bytes/22/{}", "é".repeat(200)),
        format!("http://o.test/bytes/23?{}", "q".repeat(9000)),
        format!("http://o.test/bytes/24?type=text/{}", "t".repeat(800)),
        "http://o.test/bytes/25?type=text/%C3%A9t%C3%A9".to_owned(),
        "http://o.test/bytes/26?type=../../x/y;z=%22..%22".to_owned(),
        format!(
            "http://{}.test/bytes/27",
            ["l".repeat(60), "m".repeat(60), "n".repeat(60)].join(".")
        ),
    ];
    for url in urls {
        writeln!(csv, "{url},").unwrap();
    }
    let ids = [
        "i".repeat(251),
        "i".repeat(300),
        "é".repeat(128),
        "é".repeat(127) + "x",
        "../../../etc/passwd".to_owned(),
        "/abs".to_owned(),
        "..".to_owned(),
        ".part".to_owned(),
        "a/b\\c".to_owned(),
        "NUL".to_owned(),
        "😀".repeat(70),
    ];
    for (n, id) in ids.iter().enumerate() {
        writeln!(csv, "http://ids.test/bytes/{},{id}", 100 + n).unwrap();
    }
    csv
}

#[track_caller]
fn files_of(records: &[Record]) -> BTreeMap<u64, String> {
    records
        .iter()
        .filter(|record| record.outcome == Outcome::Ok)
        .map(|record| (record.line, record.file.clone().unwrap()))
        .collect()
}

/// E01: names made from anything are bounded, whole characters, unique, and chosen the same
/// way again.
fn names_fit(template: &[&str]) {
    let world = world();
    world.write("urls.csv", long_list());
    let run = |out: &str| {
        let mut args = vec!["run", "--exits", "exits.txt", "--urls", "urls.csv"];
        args.extend(FAST);
        args.extend(["--out", out]);
        args.extend(template);
        world.finish(world.exitfetch(args)).expect(0);
        let out = world.dir().join(out);
        let records = whole_records(&out);
        assert_eq!(records.len(), 19);
        (records, tree(&out, "bodies"))
    };
    let (records, bodies) = run("one");
    let files = files_of(&records);
    assert_eq!(files.len(), 19, "all ok");
    for file in files.values() {
        assert!(!file.contains(".."), "{file}");
        for part in Path::new(file) {
            let part = part.to_str().unwrap();
            assert!(part.len() <= 250, "{} bytes: {part}", part.len());
        }
    }
    let folded: HashSet<String> = files.values().map(|file| file.to_lowercase()).collect();
    assert_eq!(folded.len(), 19, "all differ, also without case");
    for record in &records {
        let file = record.file.as_ref().unwrap();
        let body = &bodies[Path::new(file)];
        assert_eq!(body.len() as u64, record.bytes.unwrap());
    }
    assert_eq!(bodies.len(), 19, "nothing else is stored");
    assert_eq!(files_of(&run("two").0), files, "the same names again");
    let outside = tree(world.dir(), "").into_keys();
    let stray = outside.filter(|p| !p.starts_with("one") && !p.starts_with("two"));
    assert_eq!(stray.count(), 4, "lists and certificate only");
}

/// E01.
#[test]
fn long_and_odd_names_fit_and_stay_the_same() {
    names_fit(&[]);
}

/// E01.
#[test]
fn names_of_a_template_fit_and_stay_the_same() {
    names_fit(&["--name-template", "{host}/{id}.{ext}"]);
    names_fit(&["--name-template", "{id}{id}{id}-{line}{ext}"]);
}

/// E02: different URLs, slow enough to overlap, never share a file; one listed twice is
/// fetched once.
#[test]
fn jobs_that_look_alike_have_a_file_each() {
    let world = world();
    let slow = |target: &str| format!("{target}&wait=150");
    let list = [
        slow("http://o.test/drip/x?bytes=300&ms=300&a"),
        slow("http://o.test/drip/x?bytes=300&ms=300&b"),
        slow("http://o.test/drip/x?bytes=300&ms=300&a"),
        slow("http://other.test/drip/x?bytes=300&ms=300&a"),
        slow("http://o.test/drip/File?bytes=300&ms=300"),
        slow("http://o.test/drip/file?bytes=300&ms=300"),
        slow("http://o.test/drip/d?bytes=300&ms=300"),
        slow("http://o.test/drip/d/e?bytes=300&ms=300"),
        slow("http://o.test/drip/d/?bytes=300&ms=300"),
        slow("http://o.test/drip/x%2Fy?bytes=300&ms=300"),
        slow("http://o.test/drip/x/y?bytes=300&ms=300"),
        slow("http://O.test/drip/case?bytes=300&ms=300"),
        slow("http://o.test/drip/case?bytes=300&ms=300"),
        slow("https://o.test/drip/x?bytes=300&ms=300&a"),
    ];
    world.urls(&list);
    let args = ["--rate", "unlimited", "--per-exit", "8"];
    let run = world
        .run(&[&args[..], &["--cacert", "lab-ca.pem"]].concat())
        .expect(0);
    assert_eq!(run.count(Outcome::Ok), list.len(), "one record a line");
    let mut by_url: BTreeMap<String, HashSet<String>> = BTreeMap::new();
    for record in &run.records {
        let url: url::Url = record.url.parse().unwrap();
        let expected = content(
            url.host_str().unwrap(),
            &url[url::Position::BeforePath..],
            300,
        );
        assert_eq!(world.body(record), expected, "{}", record.url);
        let file = record.file.as_ref().unwrap().to_lowercase();
        by_url.entry(record.url.clone()).or_default().insert(file);
    }
    for (url, files) in &by_url {
        assert_eq!(files.len(), 1, "{url}: {files:?}");
    }
    let files: HashSet<&String> = by_url.values().flatten().collect();
    assert_eq!((by_url.len(), files.len()), (13, 13));
    assert_eq!(
        world.lab.origin_stats().requests,
        13,
        "twins are fetched once"
    );
    world.assert_whole();
}

/// E02: a given id stands for one URL; ids that differ in case or Unicode form only are
/// different and so are their files.
#[test]
fn a_given_id_belongs_to_one_url() {
    let world = world();
    let list = "url,id\n\
        http://o.test/bytes/100?wait=100,same\n\
        http://o.test/bytes/101,same\n\
        http://o.test/bytes/100?wait=100,same\n\
        http://o.test/bytes/102,Same\n\
        http://o.test/bytes/103,SAME\n\
        http://o.test/bytes/104,caf\u{e9}\n\
        http://o.test/bytes/105,cafe\u{301}\n\
        http://o.test/bytes/106,CAF\u{c9}\n";
    world.write("urls.csv", list);
    let args = ["run", "--exits", "exits.txt", "--urls", "urls.csv"];
    for round in 0..2 {
        let run = world
            .finish(world.exitfetch([&args[..], &FAST[..]].concat()))
            .expect(3);
        assert_eq!(run.line(3).outcome, Outcome::Refused, "round {round}");
        assert_eq!(
            run.line(3).error.as_ref().unwrap().kind.as_str(),
            "duplicate_id"
        );
        assert_eq!(
            (run.count(Outcome::Ok), run.count(Outcome::Refused)),
            (7, 1)
        );
        let files = files_of(&run.records);
        let folded: HashSet<String> = files.values().map(|file| file.to_lowercase()).collect();
        assert_eq!(folded.len(), 6);
        assert_eq!(world.lab.origin_stats().requests, 6);
        for record in run.records.iter().filter(|r| r.outcome == Outcome::Ok) {
            let url: url::Url = record.url.parse().unwrap();
            let bytes = record.bytes.unwrap() as usize;
            assert_eq!(
                world.body(record),
                content("o.test", &url[url::Position::BeforePath..], bytes)
            );
        }
    }
}
