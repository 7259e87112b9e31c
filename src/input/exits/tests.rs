use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::input::rows::Rows;

fn rows(format: ListFormat, list: &[u8]) -> ExitList {
    let environment = |name: &str| (name == "PASS").then(|| "from-env".to_owned());
    let mut reading = Reading::new(Variables::new(&environment));
    let mut rows = Rows::new(format);
    rows.buffer().extend_from_slice(list);
    rows.end();
    while let Some(row) = rows.next_row() {
        if reading.take(row).is_err() {
            return ExitList::default();
        }
    }
    reading.finish()
}

fn text(list: &str) -> ExitList {
    rows(ListFormat::Text, list.as_bytes())
}

fn refused(list: &ExitList) -> Vec<u64> {
    list.refused.iter().map(|refused| refused.line).collect()
}

fn ids(list: &ExitList) -> Vec<&str> {
    list.exits.iter().map(|exit| &*exit.id).collect()
}

async fn fixture(name: &str) -> anyhow::Result<ExitList> {
    let path = format!("{}/fixtures/lists/{name}", env!("CARGO_MANIFEST_DIR"));
    read(ListSource::File(path.into()), None, |_| None).await
}

#[test]
fn spellings_of_one_exit_are_one_exit() {
    let list = text(
        "http://h.test:80\r\n\r\n# note\r\nHTTP://H.test:80/\r\nh.test:80\r\nhttp://H.TEST.\r\n",
    );
    assert_eq!(ids(&list), ["h.test:80"]);
    assert_eq!(list.duplicates, 3);
    assert!(list.refused.is_empty());
}

#[test]
fn scheme_and_username_make_other_exits_and_a_password_does_not() {
    let list = text("a:1@h.test:80\nb:1@h.test:80\na:2@h.test:80\nh.test:80\nhttps://h.test:80");
    assert_eq!(list.exits.len(), 4);
    assert_eq!(list.duplicates, 1);
    let password = list.exits[0].login.as_ref().map(|login| &login.password);
    assert_eq!(password, Some(&Secret::new("1")));
}

#[test]
fn attributes_are_read_and_unknown_ones_refused_by_name() {
    let list = text(concat!(
        "h.test:80  name=n tier=static\tregion=de group=g cap=3\n",
        "h.test:81 capp=3\n",
        "h.test:82 # note\n",
        "h.test:83 cap=0\n",
        "h.test:84 cap=1 cap=2\n",
        "h.test:85 name=\n",
        "h.test:86 name=a~b\n",
        "h.test:87 hunter2hunter2=hunter2\n",
    ));
    let exit = &list.exits[0];
    assert_eq!(
        (&*exit.id, exit.tier.as_deref(), exit.region.as_deref()),
        ("n", Some("static"), Some("de"))
    );
    assert_eq!((exit.group.as_deref(), exit.cap), (Some("g"), Some(3)));
    assert_eq!(refused(&list), [2, 3, 4, 5, 6, 7, 8]);
    assert!(list.refused[0].reason.contains("capp"));
    assert!(!format!("{list:?}").contains("hunter2"));
}

#[test]
fn sessions_make_one_exit_each() {
    let list = text("http://al-{session}:pw@h.test:80 sessions=3 name=gate cap=2\n");
    assert_eq!(ids(&list), ["gate-1", "gate-2", "gate-3"]);
    let users: Vec<_> = list
        .exits
        .iter()
        .filter_map(|exit| exit.login.as_ref())
        .map(|login| login.username.expose())
        .collect();
    assert_eq!(users, ["al-1", "al-2", "al-3"]);
    assert!(list.exits.iter().all(|exit| exit.cap == Some(2)));
    assert_eq!(
        text("al%7Bsession%7D:pw@h.test:80 sessions=2").exits.len(),
        2
    );
}

#[test]
fn sessions_that_make_no_sense_are_refused() {
    let list = text(concat!(
        "al-{session}:pw@h.test:80\n",
        "al:pw@h.test:80 sessions=3\n",
        "al-{session}:pw@h.test:80 sessions=0\n",
        "al-{session}:pw@h.test:80 sessions=1000000\n",
        "al:pw-{session}@h.test:80 sessions=2\n",
    ));
    assert_eq!(refused(&list), [1, 2, 3, 4, 5]);
}

#[test]
fn a_name_belongs_to_one_exit() {
    let list = text(concat!(
        "h.test:80 name=a-2\n",
        "h.test:81 name=a-2\n",
        "u{session}:p@h.test:82 sessions=3 name=a\n",
        "h.test:80 name=a-2\n",
    ));
    assert_eq!(ids(&list), ["a-2"]);
    assert_eq!(refused(&list), [2, 3]);
    assert_eq!(list.duplicates, 1);
}

#[test]
fn logins_that_a_protocol_cannot_carry_are_refused() {
    let long = "x".repeat(256);
    let list = text(&format!(
        concat!(
            "us%3Aer:pw@h.test:80\n",
            "https://us%3Aer:pw@h.test:80\n",
            "socks5://al:{long}@h.test:80\n",
            "socks5://{long}:pw@h.test:80\n",
            "socks5://al@h.test:80\n",
            "socks5://al:@h.test:80\n",
            "@h.test:80\n",
            "al%0D:pw@h.test:80\n",
            "socks5://us%3Aer:pw@h.test:81\n",
            "al:{long}@h.test:82\n",
            "al@h.test:83\n",
            ":pw@h.test:84\n",
        ),
        long = long
    ));
    assert_eq!(refused(&list), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(list.exits.len(), 4);
}

#[test]
fn csv_and_jsonl_have_the_same_fields_in_one_address_or_in_parts() {
    let in_csv = rows(
        ListFormat::Csv,
        b"exit,name,cap\nal:pw@h.test:80,a,2\n\"h.test:81:u:p,w\",,\n,x,1\n1,2,3,4\n",
    );
    assert_eq!(ids(&in_csv), ["a", "h.test:81"]);
    assert_eq!(refused(&in_csv), [4, 5]);
    let parts = rows(
        ListFormat::Csv,
        b"Scheme,IP,port,user,pass\nsocks5,::1,9,a%41,${PASS}\nhttp,h.test,,,\n",
    );
    assert_eq!(ids(&parts), ["[::1]:9", "h.test:80"]);
    let login = parts.exits[0].login.as_ref().unwrap();
    assert_eq!(login.username.expose(), "a%41");
    assert_eq!(login.password.expose(), "from-env");
    let in_json = rows(
        ListFormat::Jsonl,
        concat!(
            "{\"exit\":\"h.test:80\",\"cap\":3,\"name\":null}\n",
            "{\"host\":\"h.test\",\"port\":81,\"username\":\"a{session}\",\"sessions\":2}\n",
            "{\"exit\":\"h.test:82\",\"teir\":\"x\"}\n",
            "{\"exit\":\"h.test:82\",\"host\":\"h.test\"}\n",
            "{\"exit\":\"al:pw@h.test:82\",\"username\":\"b\"}\n",
            "{\"exit\":\"h.test:82\",\"cap\":[1]}\n",
            "nonsense\n",
        )
        .as_bytes(),
    );
    assert_eq!(in_json.exits.len(), 3);
    assert_eq!(in_json.exits[0].cap, Some(3));
    assert_eq!(refused(&in_json), [3, 4, 5, 6, 7]);
    assert!(in_json.refused[0].reason.contains("teir"));
}

#[test]
fn a_csv_header_that_does_not_fit_is_refused_without_its_words() {
    for names in [
        ["http://al:hunter2@h.test:80", "x"],
        ["exit", "hunter2"],
        ["name", "cap"],
        ["exit", "proxy"],
    ] {
        let names = names.map(str::to_owned);
        let reason = Columns::new(&names).unwrap_err();
        assert!(!reason.contains("hunter2"), "{reason}");
    }
}

#[test]
fn an_unset_variable_is_named_and_costs_its_line_only() {
    let list = text("al:${PASS}@h.test:80\nal:${NO_SUCH}@h.test:81\n");
    assert_eq!(ids(&list), ["h.test:80"]);
    assert_eq!(refused(&list), [2]);
    assert!(list.refused[0].reason.contains("NO_SUCH"));
}

#[test]
fn no_reason_and_no_debug_shows_a_login() {
    let list = text(concat!(
        "http://hunter2:hunter2@h.test:99999\n",
        "socks9://hunter2:hunter2@h.test:80\n",
        "hunter2:hunter2:h.test:80\n",
        "\"http://hunter2:hunter2@h.test:80\",\n",
        "http://hunter2:hun ter2=hunter2@h.test:80\n",
        "http://hunter2:hunter2@h.test:80\n",
        "hunter2:hunter2@h.test:81 name=n name=hunter2\n",
    ));
    assert_eq!(refused(&list), [1, 2, 3, 4, 5, 7]);
    assert!(!format!("{list:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_dirty_text_list_gives_its_good_exits_and_names_its_bad_lines() {
    let list = fixture("exits-dirty.txt").await.unwrap();
    assert_eq!(ids(&list), ["127.0.0.1:8081", "fast", "[::1]:8083"]);
    assert_eq!(refused(&list), [4, 8, 9, 10, 11, 12]);
    assert_eq!(list.duplicates, 2);
}

#[tokio::test]
async fn the_other_formats_are_told_by_their_names() {
    for name in ["exits.csv", "exits.jsonl"] {
        let list = fixture(name).await.unwrap();
        assert_eq!(ids(&list), ["static-1", "127.0.0.1:8082"], "{name}");
        assert_eq!(refused(&list), [4], "{name}");
    }
    assert!(fixture("none.txt").await.is_err());
}

#[tokio::test]
async fn a_list_that_cannot_be_used_as_a_whole_is_an_error() {
    let mut file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    file.write_all(b"hunter2:hunter2@h.test:80\n").unwrap();
    let source = ListSource::File(file.path().to_owned());
    let error = read(source, None, |_| None).await.unwrap_err();
    let said = format!("{error:#}");
    assert!(
        said.contains("CSV header") && !said.contains("hunter2"),
        "{said}"
    );
}

fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("http://"),
        Just("socks5://"),
        Just("h.test"),
        Just("10.0.0.1"),
        Just("[::1]"),
        Just(":"),
        Just("@"),
        Just(":80"),
        Just("/"),
        Just("%41"),
        Just("%"),
        Just("${PASS}"),
        Just("${"),
        Just("{session}"),
        Just(" sessions=2"),
        Just(" name=n"),
        Just("\u{e9}"),
        Just("\n"),
        Just(","),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_line_that_counts_is_an_exit_a_duplicate_or_refused(soup in soup()) {
        let list = text(&soup);
        let counted = soup.split('\n').filter(|line| !line.trim().is_empty()).count();
        let sessions = list.exits.len() as u64 + list.duplicates + list.refused.len() as u64;
        // `sessions=2` makes two exits of a line.
        prop_assert!((counted as u64..=2 * counted as u64).contains(&sessions));
        let mut ids = ids(&list);
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), list.exits.len());
        for format in [ListFormat::Csv, ListFormat::Jsonl] {
            rows(format, soup.as_bytes());
        }
    }

    #[test]
    fn bytes_of_any_kind_make_no_two_exits_of_one_name_in_any_format(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        soup in soup(),
        quoted in any::<String>(),
    ) {
        let json = serde_json::json!({"exit": soup, "name": quoted, "sessions": 2}).to_string();
        let mixed = [soup.as_bytes(), &noise, b"\n", json.as_bytes(), b"\n", &noise].concat();
        for (format, header) in [
            (ListFormat::Text, ""),
            (ListFormat::Csv, "exit,name,cap,sessions\n"),
            (ListFormat::Csv, "host,port,username,password\n"),
            (ListFormat::Jsonl, ""),
        ] {
            let list = rows(format, &[header.as_bytes(), &mixed].concat());
            let lines = mixed.split(|&byte| byte == b'\n').count() as u64;
            // A session each, of at most two a line; a number in a column could ask for more.
            prop_assert!(format == ListFormat::Csv || list.refused.len() as u64 <= lines);
            let mut ids = ids(&list);
            ids.sort_unstable();
            ids.dedup();
            prop_assert_eq!(ids.len(), list.exits.len());
        }
    }
}
