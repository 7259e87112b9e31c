//! `results.jsonl`, folded while it is read.
//!
//! Only what is counted is parsed, borrowed from the line. The last record of an id counts: a
//! job that failed and was tried again in a later run is one job, with those of its entries that
//! were answered along with it; a refusal is of its line and hides no other record. So the ids of
//! failures are remembered (16 bytes each), those of successes are not: what a refresh asked
//! again counts once for each answer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::exits::ExitLine;
use super::latency::Latencies;
use super::open;
use crate::model::record::{Phases, Waits};
use crate::model::{Blame, ErrorKind, Outcome};
use crate::report::largest::Largest;

/// Origins and exits counted at a time.
const COUNTED: usize = 8192;
/// Tiers told apart; those of further exits count as one.
const TIERS: usize = 12;
/// Examples kept of each kind of failure.
const EXAMPLES: usize = 3;
/// Characters kept of a text in an example.
const EXAMPLE_TEXT: usize = 300;

/// What all records say together.
#[derive(Debug)]
pub(in crate::report) struct Records {
    /// Lines that are records.
    pub read: u64,
    pub malformed: u64,
    pub ok: u64,
    pub failed: u64,
    pub refused: u64,
    pub attempts: u64,
    pub bytes: u64,
    /// When the first and the last were written, in milliseconds since the Unix epoch.
    pub span: Option<(i64, i64)>,
    pub failures: Vec<Failed>,
    pub sites: Largest<Box<str>, Site>,
    /// Exits by name, where `exits.csv` does not have them.
    pub exits: Largest<Box<str>, Seen>,
    /// Time to first byte by tier, the tiers by name.
    pub tiers: Vec<(String, Latencies)>,
    tier_of: HashMap<Box<str>, usize, Hasher>,
    not_ok: HashMap<u64, NotOk, Hasher>,
    hasher: Hasher,
}

type Hasher = foldhash::fast::RandomState;

/// What is counted of a job, or of a line, whose last record is not ok.
#[derive(Clone, Copy, Debug)]
struct NotOk {
    /// Index into the failures.
    failed: u32,
    /// Entries that ended so.
    entries: u32,
}

/// Failures of one kind and blame.
#[derive(Clone, Debug)]
pub(in crate::report) struct Failed {
    pub kind: ErrorKind,
    pub blame: Blame,
    pub refused: bool,
    pub count: u64,
    pub examples: Vec<Example>,
}

#[derive(Clone, Debug)]
pub(in crate::report) struct Example {
    id: u64,
    pub line: u64,
    pub url: String,
    pub detail: String,
}

/// Records of one origin.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::report) struct Site {
    pub records: u64,
    pub ok: u64,
    pub status_429: u64,
    pub bytes: u64,
    pub waited_ms: f64,
}

/// Records whose last attempt went through one exit.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::report) struct Seen {
    pub records: u64,
    pub ok: u64,
    pub bytes: u64,
}

/// Text of a line, borrowed where it holds no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Light<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(default)]
    line: u64,
    #[serde(borrow)]
    url: Cow<'a, str>,
    outcome: Outcome,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    wire_bytes: Option<u64>,
    #[serde(borrow, default)]
    exit: Option<Text<'a>>,
    #[serde(default)]
    attempts: u32,
    #[serde(borrow, default)]
    error: Option<LightError<'a>>,
    #[serde(default)]
    waits: Option<Waits>,
    #[serde(default)]
    phases: Option<Phases>,
    #[serde(borrow, default)]
    at: Cow<'a, str>,
}

#[derive(Deserialize)]
struct LightError<'a> {
    kind: ErrorKind,
    blame: Blame,
    #[serde(borrow, default)]
    detail: Cow<'a, str>,
}

impl Light<'_> {
    /// One more entry of a job, answered with the record of the first: it cost nothing.
    fn is_twin(&self) -> bool {
        self.outcome != Outcome::Refused && self.attempts == 0 && self.waits.is_none()
    }
}

impl Default for Records {
    fn default() -> Records {
        Records::new(&[])
    }
}

impl Records {
    fn new(exits: &[ExitLine]) -> Records {
        let mut records = Records {
            read: 0,
            malformed: 0,
            ok: 0,
            failed: 0,
            refused: 0,
            attempts: 0,
            bytes: 0,
            span: None,
            failures: Vec::new(),
            sites: Largest::new(COUNTED, |site: &Site| site.records),
            exits: Largest::new(COUNTED, |seen: &Seen| seen.records),
            tiers: vec![("no tier".to_owned(), Latencies::default())],
            tier_of: HashMap::default(),
            not_ok: HashMap::default(),
            hasher: Hasher::default(),
        };
        for exit in exits {
            let tier = records.tier(&exit.tier);
            records.tier_of.insert(exit.id.as_str().into(), tier);
        }
        records
    }

    fn tier(&mut self, name: &str) -> usize {
        let known = self.tiers.iter().position(|(tier, _)| tier == name);
        match known {
            _ if name.is_empty() => 0,
            Some(known) => known,
            None if self.tiers.len() <= TIERS => {
                self.tiers.push((name.to_owned(), Latencies::default()));
                self.tiers.len() - 1
            }
            None => 0,
        }
    }

    /// Reads the file at `path`; none is as an empty one.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub(super) fn read(path: &Path, exits: &[ExitLine]) -> anyhow::Result<Records> {
        let mut records = Records::new(exits);
        if let Some(file) = open(path)? {
            let mut source = BufReader::with_capacity(1 << 20, file);
            let mut text = Vec::new();
            let context = || format!("cannot read {}", path.display());
            while source.read_until(b'\n', &mut text).with_context(context)? > 0 {
                records.line(&text);
                text.clear();
            }
        }
        records.failures.retain(|failed| failed.count > 0);
        records
            .failures
            .sort_by_key(|failed| std::cmp::Reverse(failed.count));
        records.tiers.retain(|(_, latencies)| latencies.count > 0);
        Ok(records)
    }

    fn line(&mut self, text: &[u8]) {
        if text.trim_ascii().is_empty() {
            return;
        }
        match serde_json::from_slice::<Light<'_>>(text) {
            Ok(record) => self.take(&record),
            Err(_) => self.malformed += 1,
        }
    }

    fn take(&mut self, record: &Light<'_>) {
        self.read += 1;
        self.attempts += u64::from(record.attempts);
        self.bytes += record.wire_bytes.unwrap_or_default();
        if let Some(at) = unix_millis(&record.at) {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
        }
        self.outcome(record);
        self.site(record);
        self.exit(record);
    }

    fn outcome(&mut self, record: &Light<'_>) {
        let refused_line = (record.outcome == Outcome::Refused).then_some(record.line);
        let id = self.hasher.hash_one((&*record.id, refused_line));
        if !self.not_ok.is_empty()
            && !record.is_twin()
            && let Some(before) = self.not_ok.remove(&id)
        {
            self.forget(id, before);
        }
        let refused = match record.outcome {
            Outcome::Ok => {
                self.ok += 1;
                return;
            }
            Outcome::Failed => {
                self.failed += 1;
                false
            }
            Outcome::Refused => {
                self.refused += 1;
                true
            }
        };
        let Some(error) = &record.error else {
            return;
        };
        let failed = self.failed_as(error, refused);
        let of_id = self.not_ok.entry(id).or_insert(NotOk {
            failed: failed as u32,
            entries: 0,
        });
        of_id.entries += 1;
        let failed = &mut self.failures[failed];
        failed.count += 1;
        if failed.examples.len() < EXAMPLES {
            failed.examples.push(Example {
                id,
                line: record.line,
                url: record.url.chars().take(EXAMPLE_TEXT).collect(),
                detail: error.detail.chars().take(EXAMPLE_TEXT).collect(),
            });
        }
    }

    fn failed_as(&mut self, error: &LightError<'_>, refused: bool) -> usize {
        let same = |failed: &Failed| {
            (failed.kind, failed.blame, failed.refused) == (error.kind, error.blame, refused)
        };
        if let Some(known) = self.failures.iter().position(same) {
            return known;
        }
        self.failures.push(Failed {
            kind: error.kind,
            blame: error.blame,
            refused,
            count: 0,
            examples: Vec::new(),
        });
        self.failures.len() - 1
    }

    /// A later record of the same id takes this failure's place.
    fn forget(&mut self, id: u64, before: NotOk) {
        let failed = &mut self.failures[before.failed as usize];
        let entries = u64::from(before.entries);
        failed.count -= entries;
        failed.examples.retain(|example| example.id != id);
        match failed.refused {
            true => self.refused -= entries,
            false => self.failed -= entries,
        }
    }

    fn site(&mut self, record: &Light<'_>) {
        if record.outcome == Outcome::Refused {
            return;
        }
        let Some(origin) = origin_of(&record.url) else {
            return;
        };
        let site = self.sites.of(origin);
        site.records += 1;
        site.ok += u64::from(record.outcome == Outcome::Ok);
        site.status_429 += u64::from(record.status == Some(429));
        site.bytes += record.wire_bytes.unwrap_or_default();
        let waited = record.waits.map_or(0.0, |waits| waits.budget_ms);
        site.waited_ms += if waited.is_finite() { waited } else { 0.0 };
    }

    fn exit(&mut self, record: &Light<'_>) {
        let Some(Text(exit)) = &record.exit else {
            return;
        };
        let tier = self.tier_of.get(exit.as_ref()).copied();
        // A fault has its time, too, but it is no answer's.
        if record.status.is_some()
            && let Some(ms) = record.phases.and_then(|phases| phases.first_byte_ms)
        {
            self.tiers[tier.unwrap_or(0)].1.add(ms);
        }
        if tier.is_none() {
            let seen = self.exits.of(exit.as_ref().into());
            seen.records += 1;
            seen.ok += u64::from(record.outcome == Outcome::Ok);
            seen.bytes += record.wire_bytes.unwrap_or_default();
        }
    }
}

/// Host and port of a listed URL, a default port left out.
fn origin_of(url: &str) -> Option<Box<str>> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (_, host) = rest[..end].rsplit_once('@').unwrap_or(("", &rest[..end]));
    let default = match scheme.eq_ignore_ascii_case("https") {
        true => ":443",
        false => ":80",
    };
    let host = host.strip_suffix(default).unwrap_or(host);
    (!host.is_empty()).then(|| host.to_ascii_lowercase().into())
}

/// `2026-01-31T20:10:40.126Z` in milliseconds since the Unix epoch. By hand, as there are
/// millions of them.
fn unix_millis(at: &str) -> Option<i64> {
    let at = at.as_bytes();
    if at.len() < 20 {
        return None;
    }
    let number = |from: usize, to: usize| {
        at.get(from..to)?.iter().try_fold(0_i64, |n, byte| {
            byte.is_ascii_digit()
                .then(|| n * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let millis = if at[19] == b'.' { number(20, 23)? } else { 0 };
    // Days since 1970-03-01 of the Gregorian calendar, the year beginning in March.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(lines: &[&str]) -> Records {
        let mut records = Records::new(&[]);
        for line in lines {
            records.line(line.as_bytes());
        }
        records
    }

    fn failed(id: &str, kind: &str) -> String {
        format!(
            r#"{{"id":"{id}","line":1,"url":"http://a.test/x","outcome":"failed","attempts":2,"error":{{"kind":"{kind}","blame":"exit","detail":"d"}},"at":"2026-01-31T20:10:40.126Z"}}"#
        )
    }

    #[test]
    fn the_last_record_of_an_id_counts() {
        let ok = r#"{"id":"a","url":"http://a.test/x","outcome":"ok","status":200,"wire_bytes":5,"attempts":1,"at":"2026-01-31T20:10:41.000Z"}"#;
        let records = fold(&[
            &failed("a", "connect"),
            &failed("b", "connect"),
            ok,
            &failed("b", "status"),
        ]);
        assert_eq!((records.ok, records.failed, records.read), (1, 1, 4));
        let left: Vec<_> = records.failures.iter().filter(|f| f.count > 0).collect();
        assert_eq!(left.len(), 1);
        assert_eq!(
            (left[0].kind, left[0].count, left[0].examples.len()),
            (ErrorKind::Status, 1, 1)
        );
        assert!(records.failures[0].examples.is_empty());
        assert_eq!(records.span.map(|(a, b)| b - a), Some(874));
    }

    #[test]
    fn entries_answered_along_with_a_failed_one_count_until_it_is_tried_again() {
        let first = failed("a", "connect");
        let twin = first.replace("\"attempts\":2", "\"attempts\":0");
        let records = fold(&[&first, &twin]);
        assert_eq!((records.failed, records.failures[0].count), (2, 2));
        let records = fold(&[&first, &twin, &failed("a", "status")]);
        assert_eq!((records.failed, records.failures[0].count), (1, 0));
    }

    #[test]
    fn a_refusal_hides_no_other_record_of_its_id() {
        let refused = failed("a", "duplicate_id").replace("\"failed\"", "\"refused\"");
        let records = fold(&[&failed("a", "connect"), &refused, &failed("a", "connect")]);
        assert_eq!((records.failed, records.refused), (1, 1));
        let records = fold(&[&refused, &refused]);
        assert_eq!(records.refused, 1, "a later run met it again");
    }

    #[test]
    fn lines_that_are_no_records_are_counted_and_passed_over() {
        let whole = failed("a", "connect");
        let records = fold(&[&whole[..40], "", "null", r#"{"id":3}"#, &whole]);
        assert_eq!((records.malformed, records.read), (3, 1));
    }

    #[test]
    fn an_origin_is_host_and_port_however_the_url_is_written() {
        for (url, origin) in [
            ("http://A.test/x", "a.test"),
            ("https://***@a.test:443?q=http://b.test/", "a.test"),
            ("http://a.test:443", "a.test:443"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(origin_of(url).as_deref(), Some(origin), "{url}");
        }
        assert_eq!(origin_of("nonsense"), None);
    }

    #[test]
    fn instants_are_read_as_any_other_reader_reads_them() {
        for at in [
            "1970-01-01T00:00:00.000Z",
            "2000-02-29T23:59:59.999Z",
            "2026-12-31T00:00:01Z",
        ] {
            let known: jiff::Timestamp = at.parse().unwrap();
            assert_eq!(unix_millis(at), Some(known.as_millisecond()), "{at}");
        }
        assert_eq!(unix_millis("yesterday, at some time"), None);
    }
}
