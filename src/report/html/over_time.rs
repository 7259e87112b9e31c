//! How it went: what waited, what was in flight, what ended, and what changed meanwhile.

use super::axis::Axis;
use super::chart::{Layer, Words, stacked};
use super::figures::{count, seconds};
use super::markup::Html;
use crate::report::Stage;
use crate::report::timeline::{Happened, Span};

/// Changes listed.
const CHANGES: usize = 200;

/// The charts; one sentence where there is no timeline.
pub(super) fn section(html: &mut Html, axis: &Axis<'_>) {
    html.raw("<section><h2>Over time</h2>");
    if axis.columns.is_empty() {
        html.raw("<p>There is no timeline.jsonl here, or nothing in it: the directory is of an older version, or the run had no time to write it.</p></section>");
        return;
    }
    if axis.left_out > 0 {
        html.element(
            "<p class=small>Runs before number ",
            axis.left_out + 1,
            " are not drawn.</p>",
        );
    }
    stacked(html, axis, &WAITING, &layers(axis, 0..3));
    stacked(html, axis, &IN_FLIGHT, &layers(axis, 3..9));
    stacked(html, axis, &ENDED, &ended(axis));
    html.raw("</section>");
}

const WAITING: Words = Words {
    title: "Waiting to start",
    about: "Jobs read from the list that may not start yet, by what they wait for.",
    unit: "jobs",
};
const IN_FLIGHT: Words = Words {
    title: "In flight",
    about: "Requests that hold a slot of an exit, by what they wait for.",
    unit: "requests",
};
const ENDED: Words = Words {
    title: "Entries ended",
    about: "How fast the list was worked off.",
    unit: "per second",
};

/// Classes and names of the places, in the order of [`Stage::ALL`].
const COLOURS: [&str; Stage::ALL.len()] = [
    "budget",
    "slot",
    "group",
    "dial",
    "handshake",
    "tls",
    "first",
    "body",
    "disk",
];

/// Jobs by place, averaged over each column.
fn layers(axis: &Axis<'_>, places: std::ops::Range<usize>) -> Vec<Layer> {
    let layer = |place: usize| Layer {
        class: COLOURS[place],
        name: Stage::ALL[place].as_str(),
        values: per_second(axis, |span| span.jobs[place] * span.s),
    };
    places.map(layer).collect()
}

fn ended(axis: &Axis<'_>) -> Vec<Layer> {
    let layer = |(n, (class, name)): (usize, &(&'static str, &'static str))| Layer {
        class,
        name,
        values: per_second(axis, |span| span.ended[n] as f64),
    };
    let kinds = [("ok", "ok"), ("failed", "failed"), ("refused", "refused")];
    kinds.iter().enumerate().map(layer).collect()
}

/// What spans amount to, spread over the columns, per second of them.
fn per_second(axis: &Axis<'_>, amount: impl Fn(&Span) -> f64) -> Vec<f64> {
    let mut values = vec![0.0; axis.columns.len()];
    for (number, run) in axis.runs.iter().enumerate() {
        let each = axis.column_seconds(number);
        for span in &run.track.spans {
            let amount = amount(span);
            axis.spread(number, span, |column, part| {
                values[column] += amount * part / each
            });
        }
    }
    values
}

/// State changes and pauses, the latest of them.
pub(super) fn changes(html: &mut Html, axis: &Axis<'_>) {
    let spans = axis.runs.iter().enumerate();
    let spans = spans.flat_map(|(run, of)| of.track.spans.iter().map(move |span| (run, span)));
    let lost: u64 = spans
        .clone()
        .map(|(_, span)| u64::from(span.more_events))
        .sum();
    let all: Vec<(usize, f64, &Happened)> = spans
        .flat_map(|(run, span)| {
            span.events
                .iter()
                .map(move |event| (run, span.t + span.s, event))
        })
        .collect();
    if all.is_empty() {
        return;
    }
    html.raw("<section><h2>Changes</h2><p class=small>What exits and sites were found fit for, as it changed.</p>");
    html.raw("<div class=box><table><thead><tr><th class=n>after<th>who<th>what<th>why</tr></thead><tbody>");
    let from = all.len().saturating_sub(CHANGES);
    for (run, t, event) in &all[from..] {
        html.raw("<tr><td class=n>");
        if axis.runs.len() > 1 {
            html.put(format_args!("run {}, ", axis.left_out + run + 1));
        }
        html.put(seconds(*t)).raw("</td>");
        row(html, event);
        html.raw("</tr>");
    }
    html.raw("</tbody></table></div>");
    if from as u64 + lost > 0 {
        html.element(
            "<p class=small>And ",
            count(from as u64 + lost),
            " more before or between these.</p>",
        );
    }
    html.raw("</section>");
}

fn row(html: &mut Html, event: &Happened) {
    match event {
        Happened::Exit {
            id,
            state,
            cap,
            why,
        } => {
            html.element("<td>exit ", id, "</td>");
            html.element("<td><span class=\"dot ", state_class(state), "\"></span>");
            html.put(format_args!("{state}, cap {cap}")).raw("</td>");
            html.element("<td>", why, "</td>");
        }
        Happened::Pause {
            origin,
            wait_s,
            why,
        } => {
            html.element("<td>site ", origin, "</td><td>");
            html.put(format_args!("paused for {}", seconds(*wait_s)))
                .raw("</td>");
            html.element("<td>", why, "</td>");
        }
        Happened::Dead { origin } => {
            html.element(
                "<td>site ",
                origin,
                "</td><td>given up</td><td>nothing good came from it</td>",
            );
        }
        Happened::Fleet { why } => {
            html.element("<td>all exits</td><td colspan=2>", why, "</td>");
        }
    }
}

/// The colour of an exit's state.
pub(super) fn state_class(state: &str) -> &'static str {
    match state {
        "healthy" => "good",
        "limited" | "probation" => "warn",
        "ejected" | "evicted" => "bad",
        _ => "quiet",
    }
}
