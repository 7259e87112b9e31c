//! The page of a run: one HTML file that needs nothing else, neither script nor font nor
//! network. Its own content policy forbids them, so a mistake here could not fetch anything.
//!
//! Owns: which sections there are and in what order. Each section draws itself and is left
//! out where there is nothing to show. Everything that is not markup of these files is
//! escaped (`markup`).

mod axis;
mod chart;
mod curves;
mod figures;
mod latency;
mod markup;
mod over_time;
mod overview;
mod strips;
mod tables;

#[cfg(test)]
mod tests;

use super::gather::Gathered;
use axis::Axis;
use markup::Html;

pub use markup::escaped;

/// The page.
pub fn page(gathered: Gathered) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=en><head><meta charset=utf-8>");
    html.raw("<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">");
    html.raw("<meta name=viewport content=\"width=device-width,initial-scale=1\"><meta name=color-scheme content=\"light dark\"><link rel=icon href=\"data:,\">");
    html.element("<title>exitfetch: ", &gathered.name, "</title><style>");
    html.raw(include_str!("page.css"))
        .raw("</style></head><body><main>");
    overview::head(&mut html, &gathered);
    notes(&mut html, &gathered.notes);
    overview::totals(&mut html, &gathered);
    overview::verdict(&mut html, &gathered);
    let axis = Axis::new(&gathered.tracks.runs);
    over_time::section(&mut html, &axis);
    strips::section(&mut html, &axis);
    latency::section(&mut html, &gathered.records.tiers);
    curves::section(&mut html, &gathered.curves);
    tables::failures(&mut html, gathered.records.failures.kinds());
    tables::exits(&mut html, &gathered.exits);
    tables::origins(&mut html, gathered.last.as_ref(), gathered.records.sites);
    over_time::changes(&mut html, &axis);
    html.raw("<footer>Made by exitfetch ")
        .put(env!("CARGO_PKG_VERSION"));
    html.raw(". This page holds all it needs and asks nobody for anything.</footer></main></body></html>\n");
    html.finish()
}

fn notes(html: &mut Html, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    html.raw("<ul class=notes>");
    for note in notes {
        html.element("<li>", note, "</li>");
    }
    html.raw("</ul>");
}
