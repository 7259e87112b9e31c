use proptest::prelude::*;
use serde_json::json;

use super::super::{Batch, Reading};
use super::*;
use crate::input::format::ListFormat;
use crate::input::rows::Rows;
use crate::model::{ErrorKind, Job, Refusal};

/// Entries of a list held in memory.
fn entries(format: ListFormat, list: &[u8]) -> anyhow::Result<Batch> {
    let mut reading = Reading::default();
    let mut rows = Rows::new(format);
    rows.buffer().extend_from_slice(list);
    rows.end();
    while let Some(row) = rows.next_row() {
        reading.take(row)?;
    }
    Ok(reading.batch)
}

fn jobs(format: ListFormat, list: &str) -> Vec<Job> {
    let entries = entries(format, list.as_bytes()).unwrap();
    let job = |entry| match entry {
        Entry::Job(job) => job,
        Entry::Refused(refusal) => panic!("{refusal:?}"),
    };
    entries.into_iter().map(job).collect()
}

fn refusals(format: ListFormat, list: &[u8]) -> Vec<Refusal> {
    let entries = entries(format, list).unwrap();
    let refusal = |entry| match entry {
        Entry::Job(job) => panic!("{job:?}"),
        Entry::Refused(refusal) => refusal,
    };
    entries.into_iter().map(refusal).collect()
}

#[test]
fn a_text_line_is_a_get_with_an_id_of_its_own() {
    let jobs = jobs(
        ListFormat::Text,
        "http://o.test/a\nhttp://o.test/b\nhttp://o.test/a",
    );
    assert_eq!(jobs[0].method, http::Method::GET);
    assert!(!jobs[0].id_given && jobs[0].id.len() == 16);
    assert_eq!(jobs[0].id, jobs[2].id);
    assert_ne!(jobs[0].id, jobs[1].id);
}

#[test]
fn csv_columns_are_fields_headers_and_extras() {
    let list = concat!(
        "Team, URL ,id,METHOD,body,header:X-Tag,header:Accept\r\n",
        "a,http://o.test/,one,post,\"x\r\n\"\"y\"\"\",t,\r\n",
        ",http://o.test/,,,,,text/html\n",
        "b,http://o.test/2\n",
    );
    let jobs = jobs(ListFormat::Csv, list);
    assert_eq!((&*jobs[0].id, jobs[0].id_given), ("one", true));
    assert_eq!(jobs[0].method, http::Method::POST);
    assert_eq!(jobs[0].body.as_deref(), Some(&b"x\r\n\"y\""[..]));
    let headers = jobs[0].headers.as_ref().unwrap();
    assert_eq!(
        (headers.len(), &headers["x-tag"]),
        (1, &"t".parse().unwrap())
    );
    assert_eq!(jobs[0].extra.as_ref().unwrap()["Team"], json!("a"));
    assert!(!jobs[1].id_given && jobs[1].body.is_none());
    assert_eq!(jobs[1].extra.as_ref().unwrap()["Team"], json!(""));
    assert_eq!((jobs[1].line, jobs[2].line), (4, 5));
}

#[test]
fn csv_headers_that_do_not_fit_end_the_list() {
    for header in [
        "link,id",
        "url,url",
        "url,ID,id",
        "url,header:Host",
        "url,header:",
        "url,\"open",
        "http://hunter2:hunter2@o.test/",
    ] {
        let list = format!("{header}\nhttp://o.test/\n");
        let error = entries(ListFormat::Csv, list.as_bytes()).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.contains("CSV header in line 1"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert!(entries(ListFormat::Csv, b"\n\n").unwrap().is_empty());
}

#[test]
fn csv_rows_that_do_not_fit_are_refused_with_their_id() {
    let list = b"url,id,method,header:X\nhttp://o.test/a,b,c,d,e\n,x,,\nhttp://o.test/,y,\xc3,\nhttp://o.test/,z,a b,\n";
    let refusals = refusals(ListFormat::Csv, list);
    let seen: Vec<_> = refusals.iter().map(|r| (r.line, &*r.id, r.kind)).collect();
    assert_eq!(seen[0], (2, "b", ErrorKind::BadEntry));
    assert_eq!(seen[1], (3, "x", ErrorKind::BadUrl));
    assert_eq!(seen[3], (5, "z", ErrorKind::BadEntry));
    assert!(refusals[2].reason.contains("UTF-8"));
}

#[test]
fn json_members_are_fields_and_extras() {
    let list = concat!(
        r#"{"url":" http://o.test/ ","id":17,"method":"delete","headers":{"X":["1","2"],"A":"b"},"team":["a",1]}"#,
        "\n",
        r#"{"url":"http://o.test/","body_base64":"/wA=","id":null,"headers":null}"#,
        "\n",
        r#"{"url":"http://o.test/","method":"PURGE","body":""}"#,
    );
    let jobs = jobs(ListFormat::Jsonl, list);
    assert_eq!((&*jobs[0].id, jobs[0].method.as_str()), ("17", "DELETE"));
    assert_eq!(jobs[0].headers.as_ref().unwrap().len(), 3);
    assert_eq!(jobs[0].extra.as_ref().unwrap()["team"], json!(["a", 1]));
    assert_eq!(jobs[1].body.as_deref(), Some(&b"\xff\0"[..]));
    assert_eq!(jobs[1].method, http::Method::POST);
    assert_eq!((jobs[2].method.as_str(), &jobs[2].body), ("PURGE", &None));
}

#[test]
fn json_entries_that_do_not_fit_are_refused_with_url_and_id() {
    for (members, kind) in [
        (
            r#""url":"http://o.test/","id":"k","body":"a","body_base64":"YQ==""#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","body":{"a":1}"#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","body_base64":"?""#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","method":"CONNECT""#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","method":7"#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","headers":["a"]"#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","headers":{"a":1}"#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","headers":{"Proxy-X":"a"}"#,
            ErrorKind::BadEntry,
        ),
        (
            r#""url":"http://o.test/","id":"k","headers":{"a":"b\nc: d"}"#,
            ErrorKind::BadEntry,
        ),
        (r#""url":"http://o.test/ x","id":"k""#, ErrorKind::BadUrl),
    ] {
        let list = format!("{{{members}}}");
        let refusals = refusals(ListFormat::Jsonl, list.as_bytes());
        let [refusal] = &refusals[..] else {
            panic!("{members}")
        };
        assert_eq!((&*refusal.id, refusal.kind), ("k", kind), "{members}");
        assert!(refusal.url.starts_with("http://o.test/"), "{members}");
    }
}

#[test]
fn ids_that_cannot_be_shown_on_a_line_are_refused() {
    let long = "x".repeat(1025);
    for id in ["", "a\\nb", &long] {
        let list = format!(r#"{{"url":"http://o.test/","id":"{id}"}}"#);
        let refusal = &refusals(ListFormat::Jsonl, list.as_bytes())[0];
        assert_eq!(refusal.kind, ErrorKind::BadEntry);
        assert_eq!(refusal.id.len(), 16);
    }
    for id in ["../x", "a b", "\u{e9}"] {
        let list = format!(r#"{{"url":"http://o.test/","id":"{id}"}}"#);
        assert_eq!(&*jobs(ListFormat::Jsonl, &list)[0].id, id);
    }
}

#[test]
fn a_listed_authorization_wins_over_the_login_of_the_url() {
    let list = concat!(
        r#"{"url":"http://u:p@o.test/","headers":{"authorization":"Bearer t"}}"#,
        "\n",
        r#"{"url":"http://u:p@o.test/"}"#,
    );
    let jobs = jobs(ListFormat::Jsonl, list);
    assert!(jobs[0].authorization.is_none() && jobs[1].authorization.is_some());
}

#[test]
fn no_login_of_a_url_shows_in_jobs_refusals_or_debug() {
    let list = concat!(
        "http://hunter2:hunter2@o.test/\n",
        "http://hunter2:hunter2@o.test:x/\n",
        "hunter2:hunter2@o.test/\n",
        "http://hunter2:hunter2@a.test/ http://hunter2:hunter2@b.test/\n",
        "http://hunter2:hunter2/@o.test/\n",
    );
    let entries = entries(ListFormat::Text, list.as_bytes()).unwrap();
    assert_eq!(entries.len(), 5);
    let said = format!("{entries:?}");
    assert!(!said.contains("hunter2"), "{said}");
    let Entry::Job(job) = &entries[0] else {
        panic!()
    };
    assert_eq!(job.shown_url(), "http://***@o.test/");
}

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(&b"\n"[..]),
        Just(&b"\r\n"[..]),
        Just(&b"\""[..]),
        Just(&b","[..]),
        Just(&b" "[..]),
        Just(&b"http://"[..]),
        Just(&b"u:p@"[..]),
        Just(&b"o.test"[..]),
        Just(&b":80"[..]),
        Just(&b"/"[..]),
        Just(&b"\\"[..]),
        Just(&b"[::1]"[..]),
        Just(&b"xn--"[..]),
        Just("b\u{fc}".as_bytes()),
        Just(&b"%41"[..]),
        Just(&b"{\"url\":\""[..]),
        Just(&b"\"}"[..]),
        Just(&b"url,id\n"[..]),
        Just(&b"\xff\0"[..]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_line_that_counts_is_one_entry_whatever_it_holds(
        soup in prop_oneof![soup(), prop::collection::vec(any::<u8>(), 0..200)],
    ) {
        let blank = |line: &&[u8]| match std::str::from_utf8(line) {
            Ok(text) => text.trim().is_empty(),
            Err(_) => false,
        };
        let comment = |line: &&[u8]| match std::str::from_utf8(line) {
            Ok(text) => text.trim().starts_with('#'),
            Err(_) => line.trim_ascii_start().starts_with(b"#"),
        };
        let lines = || soup.split(|&b| b == b'\n');
        let text = entries(ListFormat::Text, &soup).unwrap();
        prop_assert_eq!(text.len(), lines().filter(|l| !blank(l) && !comment(l)).count());
        let json = entries(ListFormat::Jsonl, &soup).unwrap();
        prop_assert_eq!(json.len(), lines().filter(|l| !blank(l)).count());
        let mut csv = b"url,id\n".to_vec();
        csv.extend_from_slice(&soup);
        let csv = entries(ListFormat::Csv, &csv).unwrap();
        prop_assert!(csv.len() <= lines().count());
        for entry in text.into_iter().chain(json).chain(csv) {
            if let Entry::Job(job) = entry {
                prop_assert!(http::Uri::try_from(job.url.as_str()).is_ok());
                prop_assert!(job.url.username().is_empty() && job.url.fragment().is_none());
            }
        }
    }
}
