//! Origins, exits and failures as tables that scroll inside their own boxes.

use super::figures::{bytes, count, millis, percent, rate, seconds};
use super::markup::Html;
use super::over_time::state_class;
use crate::model::Outcome;
use crate::report::OriginRow;
use crate::report::exits_csv::ExitRow;
use crate::report::gather::{Failed, LastRun, Site};
use crate::report::largest::Largest;

/// Origins listed.
const ORIGINS: usize = 40;
/// Exits listed.
const EXITS: usize = 200;
/// Kinds of failure listed.
const FAILURES: usize = 40;

/// Origins: what each was asked, against what its budget allows.
pub(super) fn origins(html: &mut Html, last: Option<&LastRun>, sites: Largest<Box<str>, Site>) {
    let asked = last.map_or(&[][..], |last| &last.origins);
    if !asked.is_empty() {
        html.raw("<section><h2>Sites</h2><p class=small>Of the last run that ended, those asked most: the rate that each reached against its budget. A 429 is the site’s wish for less.</p><div class=box><table><thead><tr><th>site<th class=n>requests<th class=n>reached<th class=n>budget<th>used<th class=n>waited for it<th class=n>429<th class=n>pauses<th class=n>paused up to</tr></thead><tbody>");
        asked
            .iter()
            .take(ORIGINS)
            .for_each(|origin| origin_row(html, origin));
        html.raw("</tbody></table></div></section>");
        return;
    }
    let mut sites: Vec<(Box<str>, Site)> = sites.into_items().collect();
    if sites.is_empty() {
        return;
    }
    sites.sort_by(|a, b| (b.1.records, &a.0).cmp(&(a.1.records, &b.0)));
    html.raw("<section><h2>Sites</h2><p class=small>Counted from the records; the budgets are told only when a run ends.</p><div class=box><table><thead><tr><th>site<th class=n>records<th class=n>ok<th class=n>429<th class=n>waited for budget<th class=n>received</tr></thead><tbody>");
    for (name, site) in sites.iter().take(ORIGINS) {
        html.element("<tr><th scope=row>", name, "</th>");
        for cell in [count(site.records), count(site.ok), count(site.status_429)] {
            html.element("<td class=n>", cell, "</td>");
        }
        html.element("<td class=n>", seconds(site.waited_ms / 1e3), "</td>");
        html.element("<td class=n>", bytes(site.bytes), "</td></tr>");
    }
    html.raw("</tbody></table></div>");
    more(html, sites.len(), ORIGINS, "sites");
    html.raw("</section>");
}

fn origin_row(html: &mut Html, origin: &OriginRow) {
    html.element("<tr><th scope=row>", &origin.origin, "</th>");
    html.element("<td class=n>", count(origin.requests), "</td>");
    let reached = origin
        .reached
        .map_or("–".to_owned(), |r| format!("{}/s", rate(r)));
    html.element("<td class=n>", reached, "</td>");
    let budget = origin
        .rate
        .map_or("unlimited".to_owned(), |r| format!("{}/s", rate(r)));
    html.element("<td class=n>", budget, "</td><td>");
    if let (Some(reached), Some(budget)) = (origin.reached, origin.rate) {
        let used = (reached / budget).clamp(0.0, 1.0);
        html.raw("<span class=meter><i style=\"width:");
        html.put(format_args!("{:.0}", used * 100.0))
            .raw("%\"></i></span> ");
        html.put(percent(used));
    }
    html.element("</td><td class=n>", seconds(origin.waited_s), "</td>");
    for n in [origin.status_429, origin.pauses] {
        html.element("<td class=\"n ", if n > 0 { "warn" } else { "zero" }, "\">");
        html.put(count(n)).raw("</td>");
    }
    html.element("<td class=n>", seconds(origin.paused_s), "</td></tr>");
}

/// Exits: those that are odd first, then those used most.
pub(super) fn exits(html: &mut Html, exits: &[ExitRow]) {
    if exits.is_empty() {
        return;
    }
    let mut order: Vec<&ExitRow> = exits.iter().collect();
    if order.len() > 12 {
        order.sort_by_key(|exit| {
            let above = exit.peak.max(exit.peak_sockets) > exit.cap;
            let odd = exit.faults > 0 || exit.state != "healthy";
            std::cmp::Reverse((above, odd, exit.faults, exit.attempts))
        });
    }
    html.raw("<section><h2>Exits</h2><p class=small>As the last run that ended left them");
    if order.len() > 12 {
        html.raw(", those with faults first");
    }
    html.raw(".</p><div class=box><table><thead><tr><th>exit<th>tier<th>state<th class=n>cap<th class=n>peak<th class=n>sockets<th class=n>attempts<th class=n>ok<th class=n>faults<th class=n>429<th class=n>50 %<th class=n>95 %<th class=n>received</tr></thead><tbody>");
    order
        .iter()
        .take(EXITS)
        .for_each(|exit| exit_row(html, exit));
    if let Some(rest) = order.get(EXITS..).filter(|rest| !rest.is_empty()) {
        rest_row(html, rest);
    }
    html.raw("</tbody></table></div></section>");
}

fn exit_row(html: &mut Html, exit: &ExitRow) {
    html.element("<tr><th scope=row>", &exit.id, "</th>");
    let tier = exit.tier.as_deref().unwrap_or("–");
    html.element("<td>", tier, "</td>");
    html.element(
        "<td><span class=\"dot ",
        state_class(&exit.state),
        "\"></span>",
    );
    html.put(&exit.state);
    if let Some(reason) = &exit.reason {
        html.element("<small>", reason, "</small>");
    }
    html.raw("</td><td class=n>").put(exit.cap);
    if exit.cap_now != exit.cap {
        html.element("<small>now ", exit.cap_now, "</small>");
    }
    html.raw("</td>");
    for most in [exit.peak, exit.peak_sockets] {
        html.element(
            "<td class=\"n ",
            if most > exit.cap { "bad" } else { "" },
            "\">",
        );
        html.put(most).raw("</td>");
    }
    html.element("<td class=n>", count(exit.attempts), "</td>");
    html.element("<td class=n>", count(exit.ok), "</td>");
    for n in [exit.faults, exit.status_429] {
        html.element("<td class=\"n ", if n > 0 { "warn" } else { "zero" }, "\">");
        html.put(count(n)).raw("</td>");
    }
    for time in [exit.ttfb_p50_ms, exit.ttfb_p95_ms] {
        html.element("<td class=n>", time.map_or("–".to_owned(), millis), "</td>");
    }
    html.element("<td class=n>", bytes(exit.bytes), "</td></tr>");
}

fn rest_row(html: &mut Html, rest: &[&ExitRow]) {
    let sum = |of: fn(&ExitRow) -> u64| count(rest.iter().map(|exit| of(exit)).sum());
    html.element(
        "<tr class=sum><th scope=row>",
        count(rest.len() as u64),
        " more</th><td><td><td><td><td>",
    );
    let sums = [
        sum(|exit| exit.attempts),
        sum(|exit| exit.ok),
        sum(|exit| exit.faults),
        sum(|exit| exit.status_429),
    ];
    for sum in sums {
        html.element("<td class=n>", sum, "</td>");
    }
    let received = rest.iter().map(|exit| exit.bytes).sum();
    html.element("<td><td><td class=n>", bytes(received), "</td></tr>");
}

/// What failed, by kind and blame, with examples.
pub(super) fn failures(html: &mut Html, failures: &[Failed]) {
    html.raw("<section><h2>Failures</h2>");
    if failures.is_empty() {
        html.raw("<p>None.</p></section>");
        return;
    }
    html.raw("<p class=small>By kind and by whose fault it was; the last record of a job counts.</p><div class=failures>");
    for failed in failures.iter().take(FAILURES) {
        html.element("<article><h3><b>", count(failed.count), "</b> × ");
        html.element("<code>", failed.kind.as_str(), "</code>");
        let blame = format!("{:?}", failed.blame).to_lowercase();
        html.element("<span class=\"badge quiet\">", blame, "</span>");
        if failed.outcome == Outcome::Refused {
            html.raw("<span class=\"badge quiet\">refused</span>");
        }
        html.raw("</h3><ul>");
        for example in &failed.examples {
            html.element("<li><span class=url>", &example.url, "</span>");
            html.element("<small>line ", example.line, ": ")
                .put(&example.detail)
                .raw("</small></li>");
        }
        html.raw("</ul></article>");
    }
    html.raw("</div>");
    more(html, failures.len(), FAILURES, "kinds");
    html.raw("</section>");
}

fn more(html: &mut Html, all: usize, shown: usize, what: &'static str) {
    if all > shown {
        html.element("<p class=small>And ", count((all - shown) as u64), " ")
            .put(what)
            .raw(" more.</p>");
    }
}
