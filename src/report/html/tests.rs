use super::*;
use crate::report::gather::Gathered;

/// A directory with these files.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn page_of(files: &[(&str, &str)]) -> String {
    page(Gathered::read(directory(files).path()).unwrap())
}

const TIMELINE: &str = r#"{"run":{"at":1769890240126,"exits":2,"slots":6,"rate":10.0}}
{"span":{"t":0.0,"s":1.0,"jobs":[40.0,2.5,0.0,1.0,0.0,0.0,4.0,1.0,0.02],"peak":6,"up":2,"ended":[5,1,0],"attempts":6,"bytes":1000,"names":[[0,"<b>one</b>",3],[1,"two",3]],"used":[[0,3,3],[1,2,3]],"events":[{"what":"exit","id":"two","state":"limited","cap":1,"why":"too many <i>faults</i>"},{"what":"pause","origin":"o.test","wait_s":2.5,"why":"asked"}]}}
{"span":{"t":1.0,"s":1.0,"jobs":[30.0,0,0,0,0,0,3.0,0,0],"peak":4,"up":2,"ended":[5,0,0],"attempts":5,"bytes":1000,"used":[[1,1,1]]}}
{"end":"complete"}
"#;

const SUMMARY: &str = r#"{"totals":{"entries":12,"ok":10,"failed":1,"refused":1,"wall_s":2.0,"attempts":11,"bytes":2000},
"never_above_cap":true,"time":[{"stage":"budget","ms":900.0,"share":0.9},{"stage":"first_byte","ms":100.0,"share":0.1}],
"hint":{"stage":"budget","knob":"the budget of <o.test> at 10/s held 90 % of the time"},
"origins":[{"origin":"o.test","requests":11,"status_429":1,"pauses":1,"paused_s":2.5,"rate":10.0,"reached":5.0,"waited_s":9.0}],
"exits":[{"id":"two"}]}"#;

/// Every tag of the page, for a look at its markup.
fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.split('<')
        .skip(1)
        .map(|tag| tag.split('>').next().unwrap_or(tag))
}

#[test]
fn hostile_text_from_everywhere_stays_text() {
    const EVIL: &str = "\\\"'><script>alert(1)</script><img src=http://evil.test/x>";
    let record = format!(
        r#"{{"id":"{EVIL}","line":1,"url":"http://{EVIL}/","outcome":"failed","status":500,"exit":"{EVIL}","error":{{"kind":"status","blame":"origin","detail":"{EVIL}"}},"phases":{{"first_byte_ms":3.0}},"at":"2026-01-31T20:10:40.126Z"}}"#
    );
    let csv = EVIL.replace("\\\"", "\"\"");
    let exits =
        format!("id,tier,cap,peak,state,reason\n\"{csv}\",\"{csv}\",3,3,\"{csv}\",\"{csv}\"\n");
    let timeline = TIMELINE.replace("two", EVIL).replace("o.test", EVIL);
    let summary = SUMMARY
        .replace("o.test", EVIL)
        .replace("\"never", "\"stopped\":\"<script>\",\"never");
    let probe = format!(
        r#"{{"tier":"{EVIL}","levels":[{{"concurrency":1,"median_ms":1,"goodput":1}},{{"concurrency":2,"median_ms":1,"goodput":2}}]}}"#
    );
    let page = page_of(&[
        ("results.jsonl", &record),
        ("exits.csv", &exits),
        ("timeline.jsonl", &timeline),
        ("summary.json", &summary),
        ("probe.json", &probe),
    ]);
    assert!(page.matches("&lt;script&gt;alert(1)").count() > 8, "{page}");
    for tag in tags(&page) {
        let name: String = tag
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(
            !["script", "img", "b>one"].contains(&name.as_str()),
            "{tag}"
        );
        let bare: String = tag.split('"').step_by(2).collect();
        assert!(!bare.contains("http:") && !bare.contains("https:"), "{tag}");
    }
}

#[test]
fn the_page_shows_what_a_run_did() {
    let page = page_of(&[
        (
            "results.jsonl",
            r#"{"id":"a","line":1,"url":"http://o.test/","outcome":"ok","status":200,"exit":"two","attempts":1,"phases":{"first_byte_ms":30.0},"at":"2026-01-31T20:10:40.126Z"}"#,
        ),
        (
            "exits.csv",
            "id,tier,cap,peak,state\ntwo,static,3,2,healthy\n",
        ),
        ("timeline.jsonl", TIMELINE),
        ("summary.json", SUMMARY),
    ]);
    for text in [
        "complete</span> 2026-01-31 20:10:40 UTC · 2 s · 2 exits carry 6",
        "<dt>entries</dt><dd>12</dd>",
        "The budget of &lt;o.test&gt; at 10/s held 90 % of the time.",
        "data-exit=\"two\" data-peak=\"2\" data-cap=\"3\"",
        "&lt;b&gt;one&lt;/b&gt;",
        "limited, cap 1",
        "paused for 2.5 s",
        "static<small>1 answers",
        "5.00/s</td><td class=n>10.0/s",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
}

#[test]
fn a_directory_may_lack_anything() {
    let empty = page_of(&[]);
    assert!(empty.contains("There is no record yet.") && empty.contains("nothing recorded"));
    assert!(empty.contains("There is no timeline.jsonl here"));
    let killed = page_of(&[(
        "timeline.jsonl",
        &TIMELINE.replace("{\"end\":\"complete\"}\n", "{\"spa"),
    )]);
    assert!(
        killed.contains("not ended") && killed.contains("1 line was no record"),
        "{killed}"
    );
    let again = TIMELINE.replace("{\"end\":\"complete\"}\n", "");
    let resumed = page_of(&[
        ("timeline.jsonl", &(TIMELINE.to_owned() + &again)),
        ("summary.json", SUMMARY),
    ]);
    assert!(resumed.contains("The last run has not ended") && resumed.contains("run 2"));
}

#[test]
fn a_directory_of_other_things_and_none_at_all_are_told_apart_from_an_empty_one() {
    let other = directory(&[("notes.txt", "x")]);
    let error = Gathered::read(other.path()).unwrap_err().to_string();
    assert!(error.contains("no output directory"), "{error}");
    let error = Gathered::read(&other.path().join("gone"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("gone"), "{error}");
}

#[test]
fn a_long_run_through_many_exits_makes_a_page_of_bounded_size() {
    let mut exits = "id,tier,cap,peak,attempts,state,reason\n".to_owned();
    for n in 0..3000 {
        exits +=
            &format!("gateway-exit-number-{n},residential,3,3,{n},ejected,too many faults here\n");
    }
    let mut timeline = "{\"run\":{\"at\":0,\"exits\":100000,\"slots\":300000}}\n".to_owned();
    for t in 0..4000_u32 {
        let names = match t {
            0 => (0..64)
                .map(|n| format!("[{n},\"gateway-exit-number-{n}\",3]"))
                .collect::<Vec<_>>()
                .join(","),
            _ => String::new(),
        };
        let used: Vec<String> = (0..64)
            .map(|n| format!("[{n},{},3]", (n * 7 + t * 3) % 4))
            .collect();
        timeline += &format!(
            "{{\"span\":{{\"t\":{t},\"s\":1,\"jobs\":[{t},1,2,3,4,5,6,7,{}],\"ended\":[{t},1,0],\"names\":[{names}],\"used\":[{}],\"rest\":{}}}}}\n",
            t % 7,
            used.join(","),
            t % 1000
        );
    }
    let page = page_of(&[
        ("exits.csv", &exits),
        ("timeline.jsonl", &timeline),
        ("results.jsonl", ""),
    ]);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert_eq!(page.matches("<div class=strip data-exit").count(), 40);
    assert!(page.contains("The 40 most used of 100\u{202f}000 exits"));
    assert!(page.contains("2\u{202f}800 more"));
}
