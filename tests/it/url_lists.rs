//! The URL list as people have it: byte-order marks, CRLF, comments, two URLs on a line, odd
//! hosts. Each entry ends as one record with its line; the origin sees what was meant.

use exitfetch::lab::{ExitConfig, LabConfig};
use exitfetch::model::{ErrorKind, Outcome};

use crate::world::{Run, World};

const FAST: [&str; 2] = ["--rate", "unlimited"];

fn world(exit: ExitConfig) -> World {
    World::new(LabConfig::with([exit]).logging(1000))
}

/// What the origin was asked, in no order.
fn asked(world: &World) -> Vec<String> {
    let mut asked: Vec<String> = world
        .lab
        .log()
        .into_iter()
        .map(|seen| format!("{}{}", seen.host, seen.target))
        .collect();
    asked.sort();
    asked
}

fn lines(run: &Run, outcome: Outcome) -> Vec<u64> {
    let records = run.records.iter().filter(|r| r.outcome == outcome);
    let mut lines: Vec<u64> = records.map(|record| record.line).collect();
    lines.sort_unstable();
    lines
}

/// A01: a list saved on Windows, for text, CSV and JSON Lines.
#[test]
fn a_byte_order_mark_and_crlf_cost_no_line() {
    for (name, list, expected) in [
        (
            "urls.txt",
            "\u{feff}http://o.test/ok/1\r\nhttp://o.test/ok/2\r\n\r\nhttp://o.test/ok/3".to_owned(),
            [1, 2, 4],
        ),
        (
            "urls.csv",
            "\u{feff}url,note\r\nhttp://o.test/ok/1,a\r\nhttp://o.test/ok/2,b\r\n\r\nhttp://o.test/ok/3,c"
                .to_owned(),
            [2, 3, 5],
        ),
        (
            "urls.csv",
            "\u{feff}\"url\",\"note\"\r\n\"http://o.test/ok/1\",a\r\nhttp://o.test/ok/2,b\r\n\r\nhttp://o.test/ok/3,c\r\n"
                .to_owned(),
            [2, 3, 5],
        ),
        (
            "urls.jsonl",
            (1..=3)
                .map(|n| format!("{{\"url\": \"http://o.test/ok/{n}\"}}\r\n"))
                .collect::<String>()
                .replace("{\"url\": \"http://o.test/ok/3", "\r\n{\"url\": \"http://o.test/ok/3")
                .replacen("{", "\u{feff}{", 1),
            [1, 2, 4],
        ),
    ] {
        let world = world(ExitConfig::http());
        world.write(name, &list);
        let run = world.finish(list_command(&world, name)).expect(0);
        assert_eq!(lines(&run, Outcome::Ok), expected, "{name}: {list:?}");
        assert_eq!(asked(&world), ["o.test/ok/1", "o.test/ok/2", "o.test/ok/3"]);
        if name.ends_with("csv") {
            let extra = run.line(2).extra.clone().unwrap();
            assert_eq!(extra["note"], "a");
            assert_eq!(extra.len(), 1, "{extra:?}");
        }
    }
}

fn list_command(world: &World, name: &str) -> std::process::Command {
    let mut command = world.exitfetch(["run", "--exits", "exits.txt", "--urls", name]);
    command.args(FAST);
    command
}

/// A01: the exit list has the same marks.
#[test]
fn an_exit_list_saved_on_windows_is_read_in_every_format() {
    let world = world(ExitConfig::http());
    world.urls(["http://o.test/ok/1"]);
    let place = world.exit(0).address();
    for (name, list) in [
        ("exits.txt", format!("\u{feff}{place}\r\n\r\n")),
        ("exits.csv", format!("\u{feff}exit,name\r\n{place},one\r\n")),
        (
            "exits.jsonl",
            format!("\u{feff}{{\"exit\": \"{place}\"}}\r\n"),
        ),
    ] {
        world.write(name, list);
        let mut command = world.exitfetch(["run", "--exits", name, "--urls", "urls.txt"]);
        command.args(["--fresh"]).args(FAST);
        let run = world.finish(command).expect(0);
        assert!(!run.stderr.contains("WARN"), "{name}: {}", run.stderr);
    }
}

/// A01: UTF-16, with and without mark, both byte orders, either list.
#[test]
fn a_utf_16_list_is_refused_whole_and_named() {
    let world = world(ExitConfig::http());
    let little: Vec<u8> = "http://o.test/ok/1\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let big: Vec<u8> = "http://o.test/ok/1\r\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    world.urls(["http://o.test/ok/1"]);
    for bytes in [
        [b"\xff\xfe".as_slice(), &little].concat(),
        [b"\xfe\xff".as_slice(), &big].concat(),
        little,
        big,
    ] {
        for (exits, urls) in [("exits.txt", "wide.txt"), ("wide.txt", "urls.txt")] {
            world.write("wide.txt", &bytes);
            let run = world.finish(world.exitfetch(["run", "--exits", exits, "--urls", urls]));
            let run = run.expect(2);
            assert!(run.stderr.contains("UTF-16"), "{}", run.stderr);
            assert!(run.stderr.contains("wide.txt"), "{}", run.stderr);
            assert!(!world.out().exists());
        }
    }
    assert_eq!(world.lab.origin_stats().requests, 0);
}

/// A02: blank lines, comments, notes, two URLs on a line.
#[test]
fn comments_and_blanks_are_told_from_urls() {
    let world = world(ExitConfig::http());
    let list = "# head\n\n  http://o.test/ok/1  \t\nhttp://o.test/ok/2 # note\n\
                http://o.test/ok/3#frag\nhttp://o.test/a b\n\t\n\
                http://o.test/ok/4 http://o.test/ok/5\nhttp://o.test/ok/6\thttp://o.test/ok/7\n";
    world.write("urls.txt", list);
    let run = world.run(&FAST).expect(3);
    assert_eq!(asked(&world), ["o.test/ok/1", "o.test/ok/3"]);
    assert_eq!(run.records.len(), 6);
    assert_eq!(lines(&run, Outcome::Ok), [3, 5]);
    assert_eq!(lines(&run, Outcome::Refused), [4, 6, 8, 9]);
    for line in [4, 6, 8, 9] {
        let error = run.line(line).error.as_ref().unwrap();
        assert_eq!(error.kind, ErrorKind::BadUrl);
        assert!(error.detail.contains("blank"), "{}", error.detail);
        let told = format!("urls.txt:{line}: ");
        assert!(run.stderr.contains(&told), "{}", run.stderr);
    }
    // A second run asks nothing and ends the same.
    let run = world.run(&FAST).expect(3);
    assert_eq!((run.records.len(), asked(&world).len()), (6, 2));
}

/// A02: the other places where a blank can hide: JSON escapes, quoted cells, a non-breaking
/// space, a carriage return inside the line.
#[test]
fn a_blank_inside_a_url_refuses_its_entry_in_every_format() {
    for (name, list) in [
        (
            "urls.jsonl",
            "{\"url\": \"http://o.test/a b\"}\n{\"url\": \"http://o.test/a\\tb\"}\n\
             {\"url\": \"http://o.test/a\\nb\"}\n{\"url\": \"http://o.test/ok/1\"}\n",
        ),
        (
            "urls.csv",
            "url\nhttp://o.test/a b\n\"http://o.test/a\nb\"\nhttp://o.test/a\tb\nhttp://o.test/ok/1\n",
        ),
        (
            "urls.txt",
            "http://o.test/a\u{a0}b\nhttp://o.test/a\rb\nhttp://o.test/a\u{2028}b\nhttp://o.test/ok/1\n",
        ),
    ] {
        let world = world(ExitConfig::http());
        world.write(name, list);
        let run = world.finish(list_command(&world, name)).expect(3);
        assert_eq!(run.count(Outcome::Refused), 3, "{name}: {:?}", run.records);
        assert_eq!(asked(&world), ["o.test/ok/1"], "{name}");
    }
}

/// A04: odd hosts and URLs end alone, through every kind of exit.
#[test]
fn a_url_that_cannot_be_fetched_ends_alone() {
    let long = "a".repeat(300);
    let labels = [["b".repeat(63).as_str(); 4].join("."), "test".to_owned()].join(".");
    for exit in [
        ExitConfig::http(),
        ExitConfig::https(),
        ExitConfig::socks5(),
    ] {
        let world = world(exit);
        let list = [
            "http://o.test/ok/1",
            "o.test/x",
            "http://b\u{fc}cher.test/ok/2",
            "http://\u{1f600}.test/ok/3",
            &format!("http://{long}/"),
            &format!("https://{labels}/"),
            "http://[::1",
            "http://o.test:99999/",
            "ftp://o.test/",
            "http:///x",
            "mailto:a@b",
            "http://o.test/ok/4?{}|^`",
            "http://o.test/{}|^`",
            "https://b\u{fc}cher.test/ok/5",
            "http://xn--a.test/",
            "http://o.test:0/",
            "http://-.test/ok/6",
            "http://%31%32/ok/7",
            "HTTP://O.TEST/ok/8",
        ];
        world.urls(list);
        let run = world
            .run(&[
                "--rate",
                "unlimited",
                "--cacert",
                "lab-ca.pem",
                "--retries",
                "0",
            ])
            .expect(3);
        assert!(!run.stderr.contains("panic"), "{}", run.stderr);
        assert_eq!(run.records.len(), list.len());
        for line in [1, 3, 4, 12, 14, 19] {
            let record = run.line(line);
            assert_eq!(record.outcome, Outcome::Ok, "{record:?}");
        }
        for line in [2, 5, 6, 7, 8, 9, 10, 11, 15, 16] {
            let record = run.line(line);
            assert_eq!(record.outcome, Outcome::Refused, "{record:?}");
            assert!(!record.error.as_ref().unwrap().detail.is_empty());
        }
        let hosts = world.lab.origin_stats().hosts;
        assert!(hosts.contains_key("xn--bcher-kva.test"), "{hosts:?}");
        assert!(hosts.keys().all(|host| host.is_ascii()), "{hosts:?}");
    }
}

/// A04: lines that are no text at all, and one that is far too long.
#[test]
fn bytes_that_are_no_text_refuse_their_line_only() {
    let world = world(ExitConfig::http());
    let mut list = b"http://o.test/ok/1\nhttp://o.test/\xff\n".to_vec();
    list.extend_from_slice(b"http://o.test/");
    list.extend(std::iter::repeat_n(b'x', 2 << 20));
    list.extend_from_slice(b"\nhttp://o.test/\x07\nhttp://o.test/\0\nhttp://o.test/ok/2");
    world.write("urls.txt", list);
    let run = world.run(&FAST).expect(3);
    assert_eq!(lines(&run, Outcome::Ok), [1, 6]);
    assert_eq!(lines(&run, Outcome::Refused), [2, 3, 4, 5]);
    let journal = std::fs::read_to_string(world.out().join("results.jsonl")).unwrap();
    assert!(journal.len() < 8192, "{}", journal.len());
}

/// What cannot be used is refused anew by each run: its copy of the records tells it, while the
/// journal has it once.
#[test]
fn a_refusal_that_is_recorded_already_is_told_by_the_next_run_too() {
    let world = world(ExitConfig::http());
    world.urls(["no-scheme.test/1", "http://o.test/ok/1"]);
    for expected in [2, 1] {
        let run = world
            .run(&[&FAST[..], &["--results", "copy.jsonl"]].concat())
            .expect(3);
        let copy = std::fs::read_to_string(world.dir().join("copy.jsonl")).unwrap();
        assert_eq!(copy.lines().count(), expected, "{copy}");
        assert!(copy.contains("no-scheme.test/1"), "{copy}");
        assert_eq!(run.records.len(), 2);
    }
}

/// A list that is wrong throughout: each line has its record, the first hundred are told.
#[test]
fn a_wrong_list_does_not_bury_everything_else() {
    let world = world(ExitConfig::http());
    let wrong = (0..250).map(|n| format!("no-scheme.test/{n}"));
    world.urls(wrong.chain(["http://o.test/ok/1".to_owned()]));
    let run = world.run(&FAST).expect(3);
    assert_eq!(run.count(Outcome::Refused), 250);
    assert_eq!(run.count(Outcome::Ok), 1);
    let told = run.stderr.matches("urls.txt:").count();
    assert_eq!(told, 100, "{}", run.stderr);
    assert!(run.stderr.contains("in results.jsonl only"));
}
