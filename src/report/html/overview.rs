//! The top of the page: what ran, how it ended, what held it back.

use super::figures::{bytes, count, instant, millis, percent, rate, seconds};
use super::markup::Html;
use crate::report::gather::{Gathered, LastRun};

/// Title, state, when.
pub(super) fn head(html: &mut Html, gathered: &Gathered) {
    html.raw("<header><p class=brand>exitfetch report</p>");
    html.element("<h1>", &gathered.name, "</h1><p class=when>");
    let (class, state) = state(gathered);
    html.raw("<span class=\"badge ")
        .put(class)
        .raw("\">")
        .put(state)
        .raw("</span> ");
    let runs = &gathered.tracks.runs;
    let begun = runs.last().and_then(|run| i64::try_from(run.head.at).ok());
    let begun = begun.or(gathered.records.span.map(|(first, _)| first));
    if let Some(begun) = begun {
        html.put(instant(begun));
    }
    if let Some(last) = gathered.last.as_ref().filter(|_| gathered.is_up_to_date()) {
        html.put(format_args!(" · {}", seconds(last.totals.wall_s)));
    }
    if runs.len() > 1 {
        html.put(format_args!(" · {} runs", runs.len()));
    }
    if let Some(run) = runs.last() {
        let exits = count(u64::from(run.head.exits));
        html.put(format_args!(
            " · {exits} exits carry {}",
            count(run.head.slots)
        ));
    }
    html.raw("</p></header>");
}

fn state(gathered: &Gathered) -> (&'static str, String) {
    let stopped = gathered.last.as_ref().and_then(|last| last.stopped.clone());
    match (gathered.is_up_to_date(), stopped) {
        (true, Some(why)) => ("warn", format!("stopped early: {why}")),
        (true, None) => ("good", "complete".to_owned()),
        (false, _) if gathered.records.read == 0 && gathered.tracks.runs.is_empty() => {
            ("quiet", "nothing recorded".to_owned())
        }
        (false, _) => ("warn", "not ended".to_owned()),
    }
}

/// The sentence that names the binding limit, and where jobs spent their time.
pub(super) fn verdict(html: &mut Html, gathered: &Gathered) {
    let Some(last) = &gathered.last else {
        return;
    };
    let spent = last.time.iter().any(|part| part.share > 0.0);
    if last.hint.is_none() && !spent {
        return;
    }
    html.raw("<section><h2>What held it back</h2>");
    if let Some(hint) = &last.hint {
        html.element("<p class=verdict>", sentence(&hint.knob), "</p>");
    }
    if spent {
        html.raw("<div class=bar role=img aria-label=\"Where jobs spent their time\">");
        for part in last.time.iter().filter(|part| part.share >= 0.002) {
            html.element(
                "<i class=\"",
                class_of(&part.stage),
                "\" style=\"flex-grow:",
            );
            html.put(format_args!("{:.4}", part.share.clamp(0.0, 1.0)));
            html.raw("\"></i>");
        }
        html.raw("</div><ul class=\"legend shares\">");
        for part in last.time.iter().filter(|part| part.share > 0.0) {
            html.element("<li><i class=\"", class_of(&part.stage), "\"></i>");
            html.put(part.stage.replace('_', " "));
            html.element(" <b>", percent(part.share), "</b></li>");
        }
        html.raw("</ul><p class=small>Of the time of all jobs together, waiting included.</p>");
    }
    html.raw("</section>");
}

fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).chain(['.']).collect(),
        None => String::new(),
    }
}

/// The colour of a place.
fn class_of(stage: &str) -> &'static str {
    match stage {
        "budget" => "budget",
        "exit_slot" => "slot",
        "group" => "group",
        "dial" => "dial",
        "handshake" => "handshake",
        "tls" => "tls",
        "first_byte" => "first",
        "body" => "body",
        "disk" => "disk",
        _ => "other",
    }
}

/// The figures that everybody looks for first.
pub(super) fn totals(html: &mut Html, gathered: &Gathered) {
    html.raw("<section><h2>Totals</h2><dl class=tiles>");
    match gathered.last.as_ref().filter(|_| gathered.is_up_to_date()) {
        Some(last) => of_last_run(html, last),
        None => of_records(html, gathered),
    }
    html.raw("</dl>");
    if let Some(last) = gathered.last.as_ref().filter(|_| gathered.is_up_to_date()) {
        proof(html, last);
    }
    if gathered.tracks.runs.len() > 1 {
        let records = count(gathered.records.read);
        html.raw("<p class=small>The directory holds ").put(records);
        html.raw(" records of ").put(gathered.tracks.runs.len());
        html.raw(" runs; figures above are the last run’s, entries that earlier runs had fetched included.</p>");
    }
    html.raw("</section>");
}

fn of_last_run(html: &mut Html, last: &LastRun) {
    let totals = &last.totals;
    tile(html, "", "entries", count(totals.entries));
    let before = match totals.already_ok {
        0 => String::new(),
        n => format!("{} from before", count(n)),
    };
    tile_with(html, "good", "ok", count(totals.ok), &before);
    tile(html, bad(totals.failed), "failed", count(totals.failed));
    tile(html, bad(totals.refused), "refused", count(totals.refused));
    tile(
        html,
        bad(totals.not_reached),
        "not reached",
        count(totals.not_reached),
    );
    tile(html, "", "attempts", count(totals.attempts));
    let pace = totals.attempts as f64 / totals.wall_s.max(1e-3);
    tile_with(
        html,
        "",
        "received",
        bytes(totals.bytes),
        &format!("{} attempts/s", rate(pace)),
    );
    if let (Some(p50), Some(p95)) = (totals.ttfb_p50_ms, totals.ttfb_p95_ms) {
        let note = format!("95 % below {}", millis(p95));
        tile_with(html, "", "median first byte", millis(p50), &note);
    }
}

fn of_records(html: &mut Html, gathered: &Gathered) {
    let records = &gathered.records;
    tile(html, "", "records", count(records.read));
    tile(html, "good", "ok", count(records.ok));
    tile(html, bad(records.failed), "failed", count(records.failed));
    tile(
        html,
        bad(records.refused),
        "refused",
        count(records.refused),
    );
    tile(html, "", "attempts", count(records.attempts));
    tile(html, "", "received", bytes(records.bytes));
}

fn bad(n: u64) -> &'static str {
    if n > 0 { "bad" } else { "" }
}

fn tile(html: &mut Html, class: &'static str, name: &'static str, value: String) {
    tile_with(html, class, name, value, "");
}

fn tile_with(html: &mut Html, class: &'static str, name: &'static str, value: String, note: &str) {
    html.element("<div class=\"", class, "\">");
    html.element("<dt>", name, "</dt>");
    html.element("<dd>", value, "</dd>");
    if !note.is_empty() {
        html.element("<dd class=note>", note, "</dd>");
    }
    html.raw("</div>");
}

fn proof(html: &mut Html, last: &LastRun) {
    match last.never_above_cap {
        true => html.raw("<p class=\"proof good\">Peak in flight and open sockets never above the cap: <b>yes</b></p>"),
        false => html.raw("<p class=\"proof bad\">Peak in flight or open sockets above a cap: <b>see the exits below</b></p>"),
    };
    if !last.groups.is_empty() {
        html.raw("<p class=small>");
        for (n, group) in last.groups.iter().take(20).enumerate() {
            let between = if n > 0 { " · " } else { "Groups: " };
            html.put(format_args!(
                "{between}{} peak {} of {}",
                group.name, group.peak, group.cap
            ));
        }
        html.raw("</p>");
    }
}
