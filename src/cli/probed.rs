//! What a probe found, for a run: the file beside the exit list, and which caps came from it.
//!
//! The file never stops a run: one that cannot be read is told and ignored. Its figures stand
//! under the contract's `cap=` and under what the user wrote (`fleet` has the order).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::input::ListSource;
use crate::model::Exit;
use crate::probe::{ProbeFile, STALE, age};
use crate::report::{ProbedCaps, write_whole};

/// What is known from probes.
#[derive(Debug, Default)]
pub(super) struct Probed {
    file: PathBuf,
    /// By tier and region: what one exit carries, and how old that is.
    tiers: BTreeMap<(Option<String>, Option<String>), (u32, Duration)>,
    /// What the exits of a group carry together; `None`: no limit of the group was found.
    groups: BTreeMap<String, (Option<u32>, Duration)>,
}

impl Probed {
    /// Reads the file beside `list`; without one nothing is known. `now` is since the Unix epoch.
    pub(super) fn beside(list: &ListSource, now: Duration) -> Probed {
        let ListSource::File(list) = list else {
            return Probed::default();
        };
        let path = ProbeFile::beside(list);
        let file = match ProbeFile::read(&path) {
            Ok(Some(file)) => file,
            Ok(None) => return Probed::default(),
            Err(error) => {
                tracing::warn!("{error:#}; no cap was taken from this file");
                return Probed::default();
            }
        };
        let old = |date: &str| age(date, now).unwrap_or_default();
        let tiers = file.tiers.into_iter().map(|entry| {
            let found = (entry.per_exit, old(&entry.date));
            ((entry.tier, entry.region), found)
        });
        let groups = file.groups.into_iter().map(|entry| {
            let found = (entry.cap, old(&entry.date));
            (entry.group, found)
        });
        Probed {
            file: path,
            tiers: tiers.collect(),
            groups: groups.collect(),
        }
    }

    /// What exits of this one's tier and region carry.
    pub(super) fn per_exit(&self, exit: &Exit) -> Option<u32> {
        let text = |part: &Option<std::sync::Arc<str>>| part.as_deref().map(str::to_owned);
        let found = self.tiers.get(&(text(&exit.tier), text(&exit.region)));
        found.map(|(carries, _)| *carries)
    }

    /// Names and caps of groups that have one.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, u32)> {
        let capped = self.groups.iter();
        capped.filter_map(|(name, (cap, _))| Some((name.as_str(), (*cap)?)))
    }

    /// Whether this group was probed.
    pub(super) fn knows_group(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    /// The caps that count in a run, for the summary; `None`: no cap came from here. `decides`
    /// says whether it is the probe that an exit's cap comes from, `groups` which groups' do.
    pub(super) fn used(
        &self,
        exits: &[Exit],
        decides: impl Fn(&Exit) -> bool,
        groups: &[String],
    ) -> Option<ProbedCaps> {
        let mut caps: BTreeMap<String, u32> = BTreeMap::new();
        let mut oldest = Duration::ZERO;
        for exit in exits.iter().filter(|exit| decides(exit)) {
            let text = |part: &Option<std::sync::Arc<str>>| part.as_deref().map(str::to_owned);
            let key = (text(&exit.tier), text(&exit.region));
            if let Some((carries, old)) = self.tiers.get(&key) {
                caps.insert(name(&key), *carries);
                oldest = oldest.max(*old);
            }
        }
        for group in groups {
            if let Some((Some(cap), old)) = self.groups.get(group) {
                caps.insert(format!("group {group}"), *cap);
                oldest = oldest.max(*old);
            }
        }
        (!caps.is_empty()).then(|| ProbedCaps {
            file: self.file.display().to_string(),
            age_days: oldest.as_secs() / (24 * 3600),
            caps,
        })
    }
}

/// Says which caps came from the probe; warns if it is old.
pub(super) fn tell(used: &ProbedCaps) {
    tracing::info!("{}", used.sentence());
    if used.age_days > STALE.as_secs() / (24 * 3600) {
        tracing::warn!(
            "{} is {} days old: probe again, or leave it out with --no-probe-file",
            used.file,
            used.age_days
        );
    }
}

/// Leaves a copy in the output directory: what the caps came from belongs to what a run did, and
/// `exitfetch report` draws it.
pub(super) fn keep(used: &ProbedCaps, out: &Path) {
    let to = out.join("probe.json");
    let kept = std::fs::read(&used.file)
        .map_err(anyhow::Error::from)
        .and_then(|text| write_whole(&to, &text));
    if let Err(error) = kept {
        tracing::warn!("{}: {error:#}; the report will show no probe", to.display());
    }
}

/// `static`, `static de`, `exits of de`, or `exits`: tier and region as people read them.
pub(super) fn name(key: &(Option<String>, Option<String>)) -> String {
    match key {
        (None, None) => "exits".to_owned(),
        (Some(tier), None) => tier.clone(),
        (None, Some(region)) => format!("exits of {region}"),
        (Some(tier), Some(region)) => format!("{tier} {region}"),
    }
}
