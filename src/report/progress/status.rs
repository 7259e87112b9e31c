//! A snapshot in words: up to five lines for a terminal, or all of it in one line.
//!
//! Pure: the same snapshot and rates give the same text. Plain ASCII, so that any terminal and
//! any locale shows it; no colour, so that nothing has to be turned off.

use std::fmt::Write;
use std::time::Duration;

use bytesize::ByteSize;
use unicode_width::UnicodeWidthChar;

use super::pace::Rates;
use super::snapshot::{HeldBack, Snapshot};

/// Width of the bars, in columns.
const BAR: u64 = 20;

/// The five lines of a terminal; the last one only where an origin holds jobs back.
pub(super) fn lines(now: &Snapshot, rates: Rates) -> Vec<String> {
    let counts = &now.counts;
    let mut lines = vec![
        match now.entries {
            Some(entries) => format!(
                "{} [{}] {} of {entries} ({:.0} %){}",
                clock(now.elapsed),
                bar(now.ended(), entries),
                now.ended(),
                100.0 * now.ended() as f64 / entries.max(1) as f64,
                left(now, rates),
            ),
            None => format!(
                "{} {} done, {} read so far",
                clock(now.elapsed),
                now.ended(),
                now.read
            ),
        },
        format!(
            "{}; {} ok, {} failed, {} refused",
            speed(now, rates),
            counts.ok,
            counts.failed,
            counts.refused
        ),
        format!(
            "in flight {} [{}] {}",
            now.under_way.sum(),
            phase_bar(now),
            phases(now)
        ),
        format!(
            "waiting {} for budget, {} for an exit; exits: {}",
            now.waiting_budget,
            now.waiting_exit,
            exits(now)
        ),
    ];
    if let Some(held) = held_back(now) {
        lines.push(held);
    }
    lines
}

/// The same without bars in one line.
pub(super) fn line(now: &Snapshot, rates: Rates) -> String {
    let counts = &now.counts;
    let of = match now.entries {
        Some(entries) => format!("{} of {entries} done", now.ended()),
        None => format!("{} done, {} read so far", now.ended(), now.read),
    };
    let mut line = format!(
        "{of}: {} ok, {} failed, {} refused; {}{}; in flight {}: {}; \
         waiting {} for budget, {} for an exit; exits: {}",
        counts.ok,
        counts.failed,
        counts.refused,
        speed(now, rates),
        left(now, rates),
        now.under_way.sum(),
        phases(now),
        now.waiting_budget,
        now.waiting_exit,
        exits(now),
    );
    if let Some(held) = held_back(now) {
        line += "; ";
        line += &held;
    }
    line
}

/// As much of `line` as `columns` show.
pub(super) fn fit(line: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in line.char_indices() {
        used += c.width().unwrap_or_default();
        if used > columns {
            return &line[..at];
        }
    }
    line
}

/// `hh:mm:ss`.
fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

fn speed(now: &Snapshot, rates: Rates) -> String {
    format!(
        "{:.1}/s, {}/s, {} in all",
        rates.entries,
        size(rates.bytes as u64),
        size(now.received)
    )
}

fn size(bytes: u64) -> impl std::fmt::Display {
    ByteSize(bytes).display().iec()
}

fn bar(done: u64, of: u64) -> String {
    let filled = (done.min(of) * BAR / of.max(1)) as usize;
    format!("{:-<width$}", "#".repeat(filled), width = BAR as usize)
}

/// The time that is left at the present rate, never less than the floor, and the floor itself.
fn left(now: &Snapshot, rates: Rates) -> String {
    let Some(entries) = now.entries else {
        return String::new();
    };
    let floor = now.floor.unwrap_or_default();
    let left = entries.saturating_sub(now.ended()) as f64;
    if left == 0.0 {
        return String::new();
    }
    let mut text = match Duration::try_from_secs_f64(left / rates.entries) {
        Ok(eta) => format!(", ETA {}", span(eta.max(floor))),
        // Nothing ended lately.
        Err(_) => ", ETA unknown".to_owned(),
    };
    if now.floor.is_some() {
        let _ = write!(text, ", floor {}", span(floor));
    }
    text
}

/// Whole seconds, and no more than two units.
fn span(span: Duration) -> String {
    let seconds = span.as_secs_f64().ceil() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m{:02}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h{minutes:02}m"),
        (days, hours, _) => format!("{days}d{hours:02}h"),
    }
}

/// One letter per attempt, or per share of them where the bar is too short for all.
fn phase_bar(now: &Snapshot) -> String {
    let all = u64::from(now.under_way.sum());
    let mut bar = String::new();
    let (mut before, mut drawn) = (0, 0);
    for (name, count) in now.under_way.named() {
        before += u64::from(count);
        let end = if all <= BAR {
            before
        } else {
            // Whoever is there at all is seen, as far as there is room.
            (before * BAR / all)
                .max(drawn + u64::from(count > 0))
                .min(BAR)
        };
        let letter = &name[..1];
        bar += &letter.repeat((end - drawn) as usize);
        drawn = end;
    }
    format!("{bar:-<width$}", width = BAR as usize)
}

fn phases(now: &Snapshot) -> String {
    let each = now.under_way.named();
    let each = each.map(|(name, count)| format!("{name} {count}"));
    each.join(", ")
}

fn exits(now: &Snapshot) -> String {
    let there = now.exits.iter().filter(|(_, count)| *count > 0);
    let there: Vec<String> = there.map(|(state, n)| format!("{n} {state}")).collect();
    there.join(", ")
}

fn held_back(now: &Snapshot) -> Option<String> {
    let one = |held: &HeldBack| {
        let HeldBack {
            origin,
            jobs,
            wait,
            why,
        } = held;
        format!("{origin} {jobs} for {} ({why})", span(*wait))
    };
    let all: Vec<String> = now.held_back.iter().map(one).collect();
    (!all.is_empty()).then(|| format!("held back: {}", all.join(", ")))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
