//! `exits.txt.probe.json`: what probes found, beside the exit list they were for.
//!
//! Owns its form, the merge of a new probe into it, and its age. One entry per tier and region,
//! one per group; a new one replaces the old one of the same name and leaves the others alone.
//! Written in one step: a probe that is killed leaves the old file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::found::Row;
use crate::report::write_whole;

/// Older than this, a result may no longer be so: providers move their customers.
pub const STALE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeFile {
    /// What it is, for who finds it.
    pub about: String,
    /// By tier and region.
    pub tiers: Vec<TierEntry>,
    /// By group, where several exits were probed together.
    #[serde(default)]
    pub groups: Vec<GroupEntry>,
}

/// What one exit of a tier and region carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierEntry {
    /// `null`: exits without tier.
    pub tier: Option<String>,
    /// `null`: exits without region.
    pub region: Option<String>,
    /// Requests that one exit carries at a time; at least 1.
    pub per_exit: u32,
    /// The lowest level that was too much; `null`: none was.
    pub knee: Option<u32>,
    /// `HARD`, `ERR`, `LATENCY` or `PLATEAU`.
    pub reason: Option<String>,
    /// The verdict in words.
    pub verdict: String,
    /// When: RFC 3339, UTC.
    pub date: String,
    /// What was asked for, logins masked.
    pub targets: Vec<String>,
    /// The exits that were probed.
    pub exits: Vec<String>,
    /// The levels of the one that counts.
    pub levels: Vec<Row>,
}

/// What the exits of a group carry together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupEntry {
    /// Its name.
    pub group: String,
    /// Requests that all its exits carry at a time; `null`: no limit of the group was found.
    pub cap: Option<u32>,
    /// The lowest level that was too much, all exits together; `null`: none was.
    pub knee: Option<u32>,
    /// As of a tier.
    pub reason: Option<String>,
    /// As of a tier.
    pub verdict: String,
    /// As of a tier.
    pub date: String,
    /// As of a tier.
    pub targets: Vec<String>,
    /// The exits that were probed together.
    pub exits: Vec<String>,
    /// Levels count the requests of all of them.
    pub levels: Vec<Row>,
}

impl ProbeFile {
    /// Where the file of an exit list is: `exits.txt` has `exits.txt.probe.json`.
    pub fn beside(list: &Path) -> PathBuf {
        let mut name = list.as_os_str().to_owned();
        name.push(".probe.json");
        PathBuf::from(name)
    }

    /// The file at `path`; `None`: there is none.
    ///
    /// # Errors
    /// It cannot be read, or is not what it should be: with file and line.
    pub fn read(path: &Path) -> anyhow::Result<Option<ProbeFile>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("{}: cannot be read", path.display()));
            }
        };
        ProbeFile::parse(&text)
            .map(Some)
            .map_err(|(line, why)| anyhow!("{}:{line}: {why}", path.display()))
    }

    /// The line of the first mistake, and what it is.
    fn parse(text: &str) -> Result<ProbeFile, (usize, String)> {
        let file: ProbeFile = serde_json::from_str(text).map_err(|error| {
            let why = error.to_string();
            let end = why.rfind(" at line ").unwrap_or(why.len());
            (error.line().max(1), why[..end].to_owned())
        })?;
        let zero = |key: &str| {
            let line = text.lines().position(|line| {
                let line = line.trim().trim_end_matches(',');
                line.split_once(':')
                    .is_some_and(|(name, value)| name.trim() == key && value.trim() == "0")
            });
            let why = format!("{key} is 0: write 1 or more");
            (line.map_or(1, |line| line + 1), why)
        };
        if file.tiers.iter().any(|entry| entry.per_exit == 0) {
            return Err(zero("\"per_exit\""));
        }
        if file.groups.iter().any(|entry| entry.cap == Some(0)) {
            return Err(zero("\"cap\""));
        }
        let dates = file.tiers.iter().map(|entry| &entry.date);
        for date in dates.chain(file.groups.iter().map(|entry| &entry.date)) {
            if when(date).is_err() {
                let line = text.lines().position(|line| line.contains(date.as_str()));
                let why = "the date is none: write it like 2026-01-31T20:10:40Z".to_owned();
                return Err((line.map_or(1, |line| line + 1), why));
            }
        }
        Ok(file)
    }

    /// Takes a new entry in, in the place of the old one, and answers with what an exit carries
    /// by the file. One without a knee says no more than "at least": a higher number stays.
    pub fn put_tier(&mut self, entry: TierEntry) -> u32 {
        let key = |entry: &TierEntry| (entry.tier.clone(), entry.region.clone());
        let old = self.tiers.iter().find(|old| key(old) == key(&entry));
        if let Some(old) = old
            && entry.knee.is_none()
            && old.per_exit > entry.per_exit
        {
            return old.per_exit;
        }
        let carries = entry.per_exit;
        self.tiers.retain(|old| key(old) != key(&entry));
        self.tiers.push(entry);
        self.tiers.sort_by_key(key);
        carries
    }

    /// See [`ProbeFile::put_tier`].
    pub fn put_group(&mut self, entry: GroupEntry) {
        self.groups.retain(|old| old.group != entry.group);
        self.groups.push(entry);
        self.groups.sort_by(|a, b| a.group.cmp(&b.group));
    }

    /// Writes it whole.
    ///
    /// # Errors
    /// The disk refused; the file at `path` is then as it was.
    pub fn write(&mut self, path: &Path) -> anyhow::Result<()> {
        "what `exitfetch probe` found: how much one exit carries; `exitfetch run` reads it"
            .clone_into(&mut self.about);
        let text = serde_json::to_string_pretty(self)? + "\n";
        write_whole(path, text.as_bytes())
    }
}

/// How old an entry of this date is, `now` being since the Unix epoch; one of the future is new.
///
/// # Errors
/// It is no date.
pub fn age(date: &str, now: Duration) -> anyhow::Result<Duration> {
    Ok(now.saturating_sub(when(date)?))
}

fn when(date: &str) -> anyhow::Result<Duration> {
    let stamp: jiff::Timestamp = date.parse()?;
    match u64::try_from(stamp.as_second()) {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => bail!("before 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(tier: &str, region: Option<&str>, per_exit: u32) -> TierEntry {
        TierEntry {
            tier: Some(tier.to_owned()),
            region: region.map(str::to_owned),
            per_exit,
            knee: None,
            reason: None,
            verdict: String::new(),
            date: "2026-01-31T20:10:40Z".to_owned(),
            targets: Vec::new(),
            exits: Vec::new(),
            levels: Vec::new(),
        }
    }

    #[test]
    fn a_new_entry_replaces_that_of_its_tier_and_region_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = ProbeFile::beside(&dir.path().join("exits.txt"));
        assert!(path.ends_with("exits.txt.probe.json"));
        assert!(ProbeFile::read(&path).unwrap().is_none());
        let mut file = ProbeFile::default();
        file.put_tier(tier("b", None, 1));
        file.put_tier(tier("a", Some("de"), 2));
        file.put_tier(tier("a", Some("fr"), 3));
        file.write(&path).unwrap();
        let mut file = ProbeFile::read(&path).unwrap().unwrap();
        assert_eq!(file.put_tier(tier("a", Some("de"), 7)), 7);
        let found: Vec<u32> = file.tiers.iter().map(|entry| entry.per_exit).collect();
        assert_eq!(found, [7, 3, 1]);
        assert!(std::fs::read_to_string(&path).unwrap().lines().count() > 20);
    }

    #[test]
    fn a_higher_number_gives_way_to_a_knee_only() {
        let mut file = ProbeFile::default();
        file.put_tier(tier("a", None, 4));
        assert_eq!(file.put_tier(tier("a", None, 2)), 4, "at least 2");
        let knee = TierEntry {
            knee: Some(3),
            ..tier("a", None, 2)
        };
        assert_eq!(file.put_tier(knee), 2);
        assert_eq!(file.put_tier(tier("a", None, 16)), 16);
        assert_eq!(file.tiers.len(), 1);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let mut file = ProbeFile::default();
        file.put_tier(tier("a", None, 2));
        let text = serde_json::to_string_pretty(&file).unwrap();
        let mistake = |from: &str, to: &str| ProbeFile::parse(&text.replace(from, to)).unwrap_err();
        let line_of = |part: &str| 1 + text.lines().position(|l| l.contains(part)).unwrap();
        for (from, to, said) in [
            ("\"per_exit\": 2", "\"per_exit\": 0", "1 or more"),
            ("\"per_exit\": 2", "\"per_exit\": -2", "invalid value"),
            ("\"per_exit\"", "\"per_exits\"", "unknown field"),
            ("2026-01-31", "yesterday", "the date"),
            ("\"verdict\": \"\"", "\"verdict\" \"\"", "expected `:`"),
        ] {
            let (line, why) = mistake(from, to);
            let near = line.abs_diff(line_of(from)) <= 1;
            assert!(near && why.contains(said), "{to}: {line}: {why}");
        }
        assert!(ProbeFile::parse("").is_err());
        assert!(ProbeFile::parse(&text).is_ok());
    }

    #[test]
    fn the_age_is_counted_from_the_date_and_a_future_one_is_new() {
        let day = Duration::from_secs(24 * 3600);
        assert_eq!(age("1970-01-02T00:00:00Z", 3 * day).unwrap(), 2 * day);
        assert_eq!(age("1970-01-09T00:00:00Z", day).unwrap(), Duration::ZERO);
        assert!(age("soon", day).is_err());
        assert!(age("1960-01-01T00:00:00Z", day).is_err());
    }
}
