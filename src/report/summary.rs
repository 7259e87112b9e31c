//! The result of a run in figures: what `summary.json`, `exits.csv` and the table show.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::end::{ExitEnd, RunEnd};
use super::exits_csv::{self, ExitRow};
use super::knob::{Limits, Parts, binding};
use super::origins::OriginRow;
use super::spent::{Share, Stage};
use super::tally::{ExitTally, Tally};
use crate::model::{Blame, ErrorKind};

/// The finished summary. It serialises as `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Entries by how they ended.
    pub totals: Totals,
    /// Why the run ended before its list did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// No exit or group had more leases, and no exit more sockets, than its cap.
    pub never_above_cap: bool,
    /// Failed and refused entries by kind and blame, the most frequent first.
    pub failures: Vec<FailureRow>,
    /// The origins with most requests.
    pub origins: Vec<OriginRow>,
    /// Where the time of jobs went.
    pub time: Vec<Share>,
    /// What would help most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Hint>,
    /// Caps that came from a probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbedCaps>,
    /// Groups with a cap.
    pub groups: Vec<GroupRow>,
    /// One row per exit, in the order of the list.
    pub exits: Vec<ExitFacts>,
}

/// Entries by how they ended, and sums over the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Entries of the list: the sum of the next four.
    pub entries: u64,
    /// Fetched and stored, in this run or before.
    pub ok: u64,
    /// Tried and given up.
    pub failed: u64,
    /// Could not be used.
    pub refused: u64,
    /// The run ended before their turn.
    pub not_reached: u64,
    /// Those of `ok` that an earlier run had recorded.
    pub already_ok: u64,
    /// Attempts made.
    pub attempts: u64,
    /// Body bytes received, as on the wire.
    pub bytes: u64,
    /// Median time to first byte in milliseconds.
    pub ttfb_p50_ms: Option<f64>,
    /// The time to first byte that 95 % of the answers kept.
    pub ttfb_p95_ms: Option<f64>,
    /// How long the run took, in seconds.
    pub wall_s: f64,
}

/// Failures of one kind and blame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureRow {
    /// What happened.
    pub kind: ErrorKind,
    /// Whose fault.
    pub blame: Blame,
    /// How many entries ended so.
    pub count: u64,
    /// The first few of the list.
    pub examples: Vec<Example>,
}

/// One failed entry.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// Its line of the list.
    pub line: u64,
    /// As listed, userinfo masked.
    pub url: String,
    /// What was seen.
    pub detail: String,
}

/// The stage that took most and what to change about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hint {
    /// Where most time went.
    pub stage: Stage,
    /// What it held, what stood idle, and the one knob that would help.
    pub knob: String,
}

/// Caps that came from a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbedCaps {
    /// The file they were read from.
    pub file: String,
    /// Age of the oldest of them.
    pub age_days: u64,
    /// What each exit of a tier and region carries, or all exits of a group together.
    pub caps: BTreeMap<String, u32>,
}

impl ProbedCaps {
    /// All of it on one line.
    pub fn sentence(&self) -> String {
        let caps = self.caps.iter().map(|(name, cap)| format!("{name} {cap}"));
        let days = match self.age_days {
            0 => "today's".to_owned(),
            1 => "1 day old".to_owned(),
            days => format!("{days} days old"),
        };
        let caps = caps.collect::<Vec<_>>().join(", ");
        format!("caps from {} ({days}): {caps}", self.file)
    }
}

/// How a group stood at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRow {
    /// Its name.
    pub name: String,
    /// Leases its exits may hold together.
    pub cap: u32,
    /// Most leases at one time.
    pub peak: u32,
}

/// An exit's row and what `exits.csv` has no column for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExitFacts {
    /// The row.
    #[serde(flatten)]
    pub row: ExitRow,
    /// The last thing that went wrong there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Summary {
    pub(super) fn new(tally: Tally, mut end: RunEnd) -> Summary {
        let mut spent = tally.spent;
        spent.add(Stage::Disk, end.disk);
        spent.share_with_groups(end.group_share);
        let mut ends = std::mem::take(&mut end.exits).into_iter();
        let exits: Vec<ExitFacts> = tally
            .exits
            .iter()
            .map(|exit| exit_facts(exit, ends.next().unwrap_or_default()))
            .collect();
        let groups = std::mem::take(&mut end.groups);
        let mut failures: Vec<FailureRow> = tally.failures.into_values().collect();
        failures.sort_by_key(|row| (Reverse(row.count), row.kind.as_str(), row.blame as u8));
        let origins = tally.origins.rows();
        let limits = Limits::of(&Parts {
            exits: &exits,
            groups: &groups,
            origins: &origins,
            spent: &spent,
            end: &end,
        });
        let (p50, p95) = (tally.ttfb.ms(0.5), tally.ttfb.ms(0.95));
        let mut summary = Summary {
            totals: Totals {
                ttfb_p50_ms: p50,
                ttfb_p95_ms: p95,
                ..totals(tally.counts, end.entries, end.wall)
            },
            stopped: end.stopped,
            never_above_cap: false,
            failures,
            hint: binding(&spent, &limits).filter(|_| tally.counts.attempts > 0),
            origins,
            time: spent.shares(),
            probe: None,
            groups,
            exits,
        };
        let kept = summary.above_cap().next().is_none();
        summary.never_above_cap = kept;
        summary
    }

    /// Who passed a cap: `id (peak 4, cap 3)`.
    pub fn above_cap(&self) -> impl Iterator<Item = String> {
        let exits = self.exits.iter().filter_map(|exit| {
            let (row, cap) = (&exit.row, exit.row.cap);
            if row.peak > cap {
                Some(format!("{} (peak {}, cap {cap})", row.id, row.peak))
            } else if row.peak_sockets > cap {
                Some(format!(
                    "{} ({} sockets, cap {cap})",
                    row.id, row.peak_sockets
                ))
            } else {
                None
            }
        });
        let groups = self.groups.iter().filter(|group| group.peak > group.cap);
        exits.chain(groups.map(|group| {
            format!(
                "group {} (peak {}, cap {})",
                group.name, group.peak, group.cap
            )
        }))
    }

    /// `summary.json`, ended by a newline.
    ///
    /// # Errors
    /// Never in practice: every part of a summary can be written as JSON.
    pub fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// `exits.csv` with its header.
    ///
    /// # Errors
    /// Never in practice: it is written to memory.
    pub fn csv(&self) -> anyhow::Result<String> {
        exits_csv::text(self.exits.iter().map(|exit| &exit.row))
    }
}

fn totals(counts: super::Counts, entries: u64, wall: Duration) -> Totals {
    let ended = counts.ok + counts.failed + counts.refused;
    Totals {
        entries: entries.max(ended),
        ok: counts.ok,
        failed: counts.failed,
        refused: counts.refused,
        not_reached: entries.saturating_sub(ended),
        already_ok: counts.already_ok,
        attempts: counts.attempts,
        bytes: counts.bytes,
        ttfb_p50_ms: None,
        ttfb_p95_ms: None,
        wall_s: (wall.as_secs_f64() * 1e3).round() / 1e3,
    }
}

fn exit_facts(exit: &ExitTally, end: ExitEnd) -> ExitFacts {
    let text = |part: &Option<std::sync::Arc<str>>| part.as_deref().map(str::to_owned);
    let unwell = end.state != "healthy" || (end.ok == 0 && end.faults > 0);
    let last_error = end.last_error.map(one_line);
    let reason = end.reason.map(one_line);
    let reason = reason.or_else(|| last_error.clone().filter(|_| unwell));
    ExitFacts {
        row: ExitRow {
            id: exit.id.to_string(),
            tier: text(&exit.tier),
            group: text(&exit.group),
            cap: end.cap,
            peak: end.peak,
            peak_sockets: end.peak_sockets,
            attempts: end.attempts,
            ok: end.ok,
            faults: end.faults,
            status_429: end.status_429,
            bytes: exit.bytes,
            ttfb_p50_ms: exit.ttfb.ms(0.5),
            ttfb_p95_ms: exit.ttfb.ms(0.95),
            state: end.state.to_owned(),
            reason,
            cap_now: end.cap_now,
        },
        last_error,
    }
}

/// On one line, whatever an exit or a site put into it.
fn one_line(text: String) -> String {
    text.replace(|c: char| c.is_control(), " ")
}
