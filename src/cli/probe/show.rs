//! What a probe says: a row per level as it is measured, the verdict, what was spent; the same
//! as JSON.

use std::fmt::Write;

use bytesize::ByteSize;
use serde::Serialize;

use super::super::ends::{Code, Stopped};
use super::super::stdout;
use crate::model::{Exit, counted};
use crate::probe::{Found, GroupEntry, Obstacle, Row, Spent, TierEntry, Verdict};

/// Longest bar, in characters.
const BAR: f64 = 32.0;
/// The bar of that length: so many times the answers of level 1.
const FULL: f64 = 16.0;

/// What standard output is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A row per level while it is measured, and sentences.
    Table,
    /// The result alone, as JSON.
    Json,
}

/// Where rows go while an exit is measured.
pub(super) struct Screen {
    form: Form,
    /// Levels shown so far, and the goodput of level 1.
    seen: Vec<u32>,
    base: f64,
}

impl Screen {
    /// Begins with the title and the names of the columns.
    pub(super) fn new(form: Form, title: &str) -> Result<Screen, Stopped> {
        if form == Form::Table {
            let head = format!(
                "\n{title}\n  {:>5}  {:>7}  {:>8}  {:>8}  {:>9}  {:>7}  {:>6}\n",
                "level", "reached", "median", "p95", "answers", "refused", "errors"
            );
            stdout::print(&head).map_err(Stopped::local)?;
        }
        Ok(Screen {
            form,
            seen: Vec::new(),
            base: 0.0,
        })
    }

    /// One level.
    pub(super) fn row(&mut self, row: &Row) {
        if self.seen.is_empty() {
            self.base = row.goodput;
        }
        let again = if self.seen.contains(&row.concurrency) {
            " again"
        } else {
            ""
        };
        self.seen.push(row.concurrency);
        if self.form == Form::Json {
            return;
        }
        let share = row.goodput / self.base.max(1e-9) / FULL;
        let length = (share * BAR).round().clamp(0.0, BAR) as usize;
        let text = format!(
            "  {:>5}  {:>7.1}  {:>8}  {:>8}  {:>7.1}/s  {:>7}  {:>6}  {}{again}",
            row.concurrency,
            row.reached,
            millis(row.median_ms),
            millis(row.p95_ms),
            row.goodput,
            row.refused,
            row.errors,
            "█".repeat(length),
        );
        // A screen that is gone or full is told at the verdict.
        let _ = stdout::print(&format!("{}\n", text.trim_end()));
    }

    /// What it came to.
    pub(super) fn verdict(&self, found: &Found) -> Result<(), Stopped> {
        if self.form == Form::Json {
            return Ok(());
        }
        stdout::print(&format!("  {}\n", found.sentence())).map_err(Stopped::local)
    }
}

fn millis(ms: Option<f64>) -> String {
    match ms {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.1} ms"),
        Some(ms) => format!("{ms:.0} ms"),
    }
}

/// `lab-1 (tier static, region de)`, and what its contract allows.
pub(super) fn exit_title(exit: &Exit, cap: Option<u32>) -> String {
    let mut notes = Vec::new();
    for (what, value) in [
        ("tier", &exit.tier),
        ("region", &exit.region),
        ("group", &exit.group),
    ] {
        notes.extend(value.as_ref().map(|value| format!("{what} {value}")));
    }
    notes.extend(cap.map(|cap| format!("at most {cap} by contract")));
    let title = if notes.is_empty() {
        exit.id.to_string()
    } else {
        format!("{} ({})", exit.id, notes.join(", "))
    };
    one_line(&title)
}

pub(super) fn group_title(group: &str, exits: usize) -> String {
    one_line(&format!("group {group}: {exits} exits together"))
}

/// Names come from a list: nothing in them moves the cursor.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "?")
}

/// Exits without a verdict.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    pub exits: Vec<String>,
    pub verdict: String,
    #[serde(skip)]
    pub is_dead: bool,
}

impl Failed {
    pub(super) fn new(exits: Vec<String>, found: &Found) -> Failed {
        Failed {
            exits,
            verdict: found.sentence(),
            is_dead: found.verdict == Verdict::None(Obstacle::Exit),
        }
    }
}

/// Everything that came of a probe; it serialises as `--json` prints it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    pub date: String,
    pub targets: Vec<String>,
    pub tiers: Vec<TierEntry>,
    pub groups: Vec<GroupEntry>,
    pub failed: Vec<Failed>,
    pub requests: u32,
    pub bytes: u64,
    pub seconds: f64,
    /// Where the results were written, if there are any.
    pub file: Option<String>,
}

impl Outcome {
    pub(super) fn close(&mut self, spent: Spent, seconds: f64, date: String) {
        self.requests = spent.requests;
        self.bytes = spent.bytes;
        self.seconds = (seconds * 10.0).round() / 10.0;
        self.date = date;
        if self.is_empty() {
            self.file = None;
        }
    }

    /// Nothing was found.
    pub(super) fn is_empty(&self) -> bool {
        self.tiers.is_empty() && self.groups.is_empty()
    }

    /// What was found for exits like this one.
    pub(super) fn per_exit(&self, exit: &Exit) -> Option<u32> {
        let found = self.tiers.iter().find(|entry| {
            entry.tier.as_deref() == exit.tier.as_deref()
                && entry.region.as_deref() == exit.region.as_deref()
        });
        found.map(|entry| entry.per_exit)
    }

    pub(super) fn json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// What was spent, and where the result is.
    pub(super) fn last_lines(&self) -> String {
        let bytes = ByteSize(self.bytes).display().iec();
        let mut out = format!(
            "\nspent: {}, {bytes} of bodies, {:.1} s\n",
            counted(self.requests, "request", "requests"),
            self.seconds
        );
        // Writing to a string cannot fail.
        let _ = match &self.file {
            Some(file) => writeln!(
                out,
                "written to {file}; `exitfetch run` takes its caps from there"
            ),
            None if self.is_empty() => writeln!(out, "nothing was found, so nothing was written"),
            None => writeln!(
                out,
                "the exit list is no file, so nothing was written: give the numbers to --per-exit or the settings file"
            ),
        };
        out
    }

    pub(super) fn code(&self) -> Code {
        if self.failed.is_empty() {
            Code::Ok
        } else if self.is_empty() && self.failed.iter().all(|failed| failed.is_dead) {
            Code::NoExit
        } else {
            Code::SomeFailed
        }
    }
}
