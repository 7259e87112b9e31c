//! The summary as a table for people: readable without colour, columns exactly aligned.
//!
//! A large fleet is cut to its most telling rows (a cap passed, faults, a state unlike the
//! others', then the busiest) and one line for the rest; `exits.csv` has all.

use std::cmp::Reverse;
use std::fmt::Write;
use std::time::Duration;

use bytesize::ByteSize;
use unicode_width::UnicodeWidthStr;

use super::Summary;
use super::exits_csv::ExitRow;
use super::summary::{ExitFacts, Totals};
use crate::model::counted;

/// Exits shown one by one.
const ROWS: usize = 60;
/// Characters in a line of running text.
const WIDTH: usize = 98;
/// Kinds of failure shown.
const FAILURES: usize = 10;
/// Origins shown among those that slowed the run down.
const SLOW_ORIGINS: usize = 5;

const HEADER: [(&str, Side); 11] = [
    ("exit", Side::Left),
    ("tier", Side::Left),
    ("cap", Side::Right),
    ("peak", Side::Right),
    ("attempts", Side::Right),
    ("ok", Side::Right),
    ("faults", Side::Right),
    ("ttfb p50", Side::Right),
    ("ttfb p95", Side::Right),
    ("bytes", Side::Right),
    ("state", Side::Left),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

type Cells = [String; HEADER.len()];

impl Summary {
    /// The table, its proof line and what is worth knowing beside it; ends with a newline.
    pub fn table(&self) -> String {
        let mut out = String::new();
        self.write_exits(&mut out);
        out.push('\n');
        let above: Vec<String> = self.above_cap().collect();
        let proof = match above.as_slice() {
            [] => "yes".to_owned(),
            above => format!("NO: {}", clean(&above.join(", "))),
        };
        line(
            &mut out,
            format_args!("peak in flight never above the cap: {proof}"),
        );
        for group in &self.groups {
            let name = clean(&group.name);
            line(
                &mut out,
                format_args!("group {name}: cap {}, peak {}", group.cap, group.peak),
            );
        }
        if let Some(probe) = &self.probe {
            line(&mut out, format_args!("{}", clean(&probe.sentence())));
        }
        out.push('\n');
        line(&mut out, format_args!("{}", totals_line(&self.totals)));
        if let Some(why) = &self.stopped {
            line(&mut out, format_args!("stopped early: {}", clean(why)));
        }
        self.write_failures(&mut out);
        self.write_slow_origins(&mut out);
        self.write_time(&mut out);
        out
    }

    fn write_exits(&self, out: &mut String) {
        let (shown, rest) = telling(&self.exits);
        let mut rows = vec![HEADER.map(|(name, _)| name.to_owned())];
        rows.extend(shown.iter().map(|exit| exit_cells(&exit.row)));
        if !rest.is_empty() {
            let name = format!("{} more", rest.len());
            rows.push(sum_cells(name, &rest, None));
        }
        if self.exits.len() > 1 {
            let all: Vec<&ExitFacts> = self.exits.iter().collect();
            rows.push(sum_cells("all".to_owned(), &all, Some(&self.totals)));
        }
        write_rows(out, &rows);
    }

    fn write_failures(&self, out: &mut String) {
        if self.failures.is_empty() {
            return;
        }
        line(out, format_args!("\nfailed and refused"));
        let width = self.failures[0].count.to_string().len();
        for row in self.failures.iter().take(FAILURES) {
            let (kind, blame) = (row.kind.as_str(), format!("{:?}", row.blame).to_lowercase());
            let example = row.examples.first().map_or(String::new(), |example| {
                let what = if example.detail.is_empty() {
                    &example.url
                } else {
                    &example.detail
                };
                format!(", first in line {}: {}", example.line, clean(what))
            });
            line(
                out,
                format_args!("  {:>width$} × {kind} ({blame}){example}", row.count),
            );
        }
        let more: u64 = self
            .failures
            .iter()
            .skip(FAILURES)
            .map(|row| row.count)
            .sum();
        if more > 0 {
            line(
                out,
                format_args!("  {more:>width$} × others, see summary.json"),
            );
        }
    }

    fn write_slow_origins(&self, out: &mut String) {
        let slow = self.origins.iter().filter(|o| o.status_429 + o.pauses > 0);
        for origin in slow.take(SLOW_ORIGINS) {
            line(
                out,
                format_args!(
                    "{} held us back: {}, {} answered 429, paused {} × for up to {} in all",
                    clean(&origin.origin),
                    counted(origin.requests, "request", "requests"),
                    origin.status_429,
                    origin.pauses,
                    seconds(origin.paused_s),
                ),
            );
        }
    }

    fn write_time(&self, out: &mut String) {
        let Some(hint) = &self.hint else {
            return;
        };
        let shares: Vec<String> = self
            .time
            .iter()
            .map(|share| format!("{} {:.0} %", share.stage.as_str(), share.share * 100.0))
            .collect();
        line(
            out,
            format_args!("\nwhere jobs spent their time\n  {}", shares.join(", ")),
        );
        for part in wrapped(&clean(&hint.knob)) {
            line(out, format_args!("  {part}"));
        }
    }
}

/// `text` in lines of at most [`WIDTH`] characters, cut at blanks.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = |line: &String| line.width() + 1 + word.width() > WIDTH;
        match lines
            .last_mut()
            .filter(|line| line.is_empty() || !full(line))
        {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Writing to a string cannot fail.
fn line(out: &mut String, text: std::fmt::Arguments) {
    let _ = writeln!(out, "{text}");
}

/// The rows to show one by one, and the others. A fleet that fits keeps the list's order.
fn telling(exits: &[ExitFacts]) -> (Vec<&ExitFacts>, Vec<&ExitFacts>) {
    let mut order: Vec<&ExitFacts> = exits.iter().collect();
    if order.len() <= ROWS {
        return (order, Vec::new());
    }
    order.sort_by_key(|exit| {
        let row = &exit.row;
        let above = row.peak.max(row.peak_sockets) > row.cap;
        let odd = row.faults > 0 || row.state != "healthy";
        (
            Reverse(above),
            Reverse(odd),
            Reverse(row.faults),
            Reverse(row.attempts),
        )
    });
    let rest = order.split_off(ROWS);
    (order, rest)
}

fn exit_cells(row: &ExitRow) -> Cells {
    let state = match &row.reason {
        // What its last fault was, and no reason for its state.
        Some(reason) if row.state == "healthy" => format!("healthy, but {}", clean(reason)),
        Some(reason) => format!("{}: {}", row.state, clean(reason)),
        None => row.state.clone(),
    };
    [
        clean(&row.id),
        row.tier.as_deref().map_or("-".to_owned(), clean),
        row.cap.to_string(),
        row.peak.to_string(),
        row.attempts.to_string(),
        row.ok.to_string(),
        row.faults.to_string(),
        row.ttfb_p50_ms.map_or("-".to_owned(), millis),
        row.ttfb_p95_ms.map_or("-".to_owned(), millis),
        bytes(row.bytes),
        state,
    ]
}

/// One row for several exits. Percentiles cannot be summed: only the whole run has them.
fn sum_cells(name: String, exits: &[&ExitFacts], totals: Option<&Totals>) -> Cells {
    let sum = |of: fn(&ExitRow) -> u64| exits.iter().map(|exit| of(&exit.row)).sum::<u64>();
    let percentile =
        |of: fn(&Totals) -> Option<f64>| totals.and_then(of).map_or(String::new(), millis);
    [
        name,
        String::new(),
        String::new(),
        String::new(),
        sum(|row| row.attempts).to_string(),
        sum(|row| row.ok).to_string(),
        sum(|row| row.faults).to_string(),
        percentile(|totals| totals.ttfb_p50_ms),
        percentile(|totals| totals.ttfb_p95_ms),
        bytes(sum(|row| row.bytes)),
        String::new(),
    ]
}

fn write_rows(out: &mut String, rows: &[Cells]) {
    let widths: [usize; HEADER.len()] =
        std::array::from_fn(|n| rows.iter().map(|row| row[n].width()).max().unwrap_or(0));
    for row in rows {
        let mut text = String::new();
        for (n, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[n] - cell.width());
            let between = if n > 0 { "  " } else { "" };
            match HEADER[n].1 {
                Side::Left => text.extend([between, cell, &gap]),
                Side::Right => text.extend([between, &gap, cell]),
            }
        }
        line(out, format_args!("{}", text.trim_end()));
    }
}

fn totals_line(totals: &Totals) -> String {
    let before = match totals.already_ok {
        0 => String::new(),
        n => format!(" ({n} from before)"),
    };
    format!(
        "{}: {} ok{before}, {} failed, {} refused, {} not reached; {} in {}",
        counted(totals.entries, "entry", "entries"),
        totals.ok,
        totals.failed,
        totals.refused,
        totals.not_reached,
        counted(totals.attempts, "attempt", "attempts"),
        seconds(totals.wall_s),
    )
}

fn bytes(n: u64) -> String {
    ByteSize(n).display().iec().to_string()
}

fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 9_999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1e3),
    }
}

/// A span of at least a minute in words, a shorter one in seconds.
pub(super) fn seconds(s: f64) -> String {
    if s < 60.0 {
        return format!("{s:.1} s");
    }
    let whole = Duration::try_from_secs_f64(s.round()).unwrap_or(Duration::MAX);
    humantime::format_duration(whole).to_string()
}

/// Text from outside on one line: nothing in it moves the cursor or colours the terminal.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
