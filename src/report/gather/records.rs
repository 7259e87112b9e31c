//! `results.jsonl`, folded while it is read.
//!
//! Owns the counts. Leaves to `light` what is read of a line, and to `failures` which records count
//! of a job that was tried in several runs. What a refresh asked again counts once for each answer.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;

use super::failures::{Failures, Hasher};
use super::latency::Latencies;
use super::light::{Light, Text};
use super::open;
use crate::model::Outcome;
use crate::report::exits_csv::ExitRow;
use crate::report::largest::Largest;

/// Origins and exits counted at a time.
const COUNTED: usize = 8192;
/// Tiers told apart; those of further exits count as one.
const TIERS: usize = 12;

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
    pub failures: Failures,
    pub sites: Largest<Box<str>, Site>,
    /// Exits by name, where `exits.csv` does not have them.
    pub exits: Largest<Box<str>, Seen>,
    /// Time to first byte by tier, the tiers by name.
    pub tiers: Vec<(String, Latencies)>,
    tier_of: HashMap<Box<str>, usize, Hasher>,
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

impl Default for Records {
    fn default() -> Records {
        Records::new(&[])
    }
}

impl Records {
    fn new(exits: &[ExitRow]) -> Records {
        let mut records = Records {
            read: 0,
            malformed: 0,
            ok: 0,
            failed: 0,
            refused: 0,
            attempts: 0,
            bytes: 0,
            span: None,
            failures: Failures::default(),
            sites: Largest::new(COUNTED, |site: &Site| site.records),
            exits: Largest::new(COUNTED, |seen: &Seen| seen.records),
            tiers: vec![("no tier".to_owned(), Latencies::default())],
            tier_of: HashMap::default(),
        };
        for exit in exits {
            let tier = records.tier(exit.tier.as_deref());
            records.tier_of.insert(exit.id.as_str().into(), tier);
        }
        records
    }

    fn tier(&mut self, name: Option<&str>) -> usize {
        let Some(name) = name else {
            return 0;
        };
        let known = self.tiers.iter().position(|(tier, _)| tier == name);
        match known {
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
    pub(super) fn read(path: &Path, exits: &[ExitRow]) -> anyhow::Result<Records> {
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
        records.failures.rank();
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
        if let Some(at) = record.unix_millis() {
            let (first, last) = self.span.unwrap_or((at, at));
            self.span = Some((first.min(at), last.max(at)));
        }
        self.outcome(record);
        self.site(record);
        self.exit(record);
    }

    fn outcome(&mut self, record: &Light<'_>) {
        if let Some(before) = self.failures.replaced_by(record) {
            match before.outcome {
                Outcome::Ok => {}
                Outcome::Failed => self.failed -= before.entries,
                Outcome::Refused => self.refused -= before.entries,
            }
        }
        match record.outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Refused => self.refused += 1,
        }
        self.failures.add(record);
    }

    fn site(&mut self, record: &Light<'_>) {
        if record.outcome == Outcome::Refused {
            return;
        }
        let Some(origin) = record.origin() else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ErrorKind;

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
        let left: Vec<_> = records
            .failures
            .kinds()
            .iter()
            .filter(|f| f.count > 0)
            .collect();
        assert_eq!(left.len(), 1);
        assert_eq!(
            (left[0].kind, left[0].count, left[0].examples.len()),
            (ErrorKind::Status, 1, 1)
        );
        assert!(records.failures.kinds()[0].examples.is_empty());
        assert_eq!(records.span.map(|(a, b)| b - a), Some(874));
    }

    #[test]
    fn entries_answered_along_with_a_failed_one_count_until_it_is_tried_again() {
        let first = failed("a", "connect");
        let twin = first.replace("\"attempts\":2", "\"attempts\":0");
        let records = fold(&[&first, &twin]);
        assert_eq!((records.failed, records.failures.kinds()[0].count), (2, 2));
        let records = fold(&[&first, &twin, &failed("a", "status")]);
        assert_eq!((records.failed, records.failures.kinds()[0].count), (1, 0));
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
}
