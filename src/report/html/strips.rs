//! Each exit's requests in flight over time, with its cap above them.

use std::collections::HashMap;

use super::axis::Axis;
use super::chart::{area, marks, steps};
use super::figures::count;
use super::markup::Html;
use crate::report::timeline::{ExitUse, Named};

/// Exits drawn one by one.
const STRIPS: usize = 40;
/// The cap is drawn at this part of the height, so that a line above it would be seen.
const ROOM: f64 = 1.15;

/// One exit over all columns.
struct Strip<'a> {
    name: &'a str,
    /// The most it may ever carry.
    ceiling: u32,
    most: Vec<Option<f64>>,
    cap: Vec<Option<f64>>,
    /// Seconds times requests: how much it was used.
    used: f64,
}

impl Strip<'_> {
    fn peak(&self) -> f64 {
        self.most.iter().flatten().copied().fold(0.0, f64::max)
    }
}

/// The strips; nothing where there is no timeline.
pub(super) fn section(html: &mut Html, axis: &Axis<'_>) {
    let mut strips = gather(axis);
    if strips.is_empty() {
        return;
    }
    strips.sort_by(|a, b| b.used.total_cmp(&a.used));
    let exits = axis.runs.iter().map(|run| run.track.head.exits).max();
    let exits = (exits.unwrap_or(0) as usize).max(strips.len());
    html.raw("<section><h2>Exits over time</h2><p class=small>The most requests in flight at one time (filled), the cap that health left (line), the ceiling (dashed).");
    if exits > STRIPS.min(strips.len()) {
        html.put(format_args!(
            " The {} most used of {} exits.",
            STRIPS.min(strips.len()),
            count(exits as u64)
        ));
    }
    html.raw("</p>");
    strips.truncate(STRIPS);
    // Those with a number in their names stand in its order.
    strips.sort_by(|a, b| order(a.name).cmp(&order(b.name)));
    html.raw("<div class=strips>");
    for strip in &strips {
        draw(html, axis, strip);
    }
    rest(html, axis);
    html.raw("<div class=axis>");
    marks(html, axis);
    html.raw("</div></div></section>");
}

/// Digits at the end count as a number.
fn order(name: &str) -> (&str, u64) {
    let text = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (text, name[text.len()..].parse().unwrap_or(0))
}

fn gather<'a>(axis: &Axis<'a>) -> Vec<Strip<'a>> {
    let columns = axis.columns.len();
    let mut strips: Vec<Strip<'a>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (number, run) in axis.runs.iter().enumerate() {
        let mut named: HashMap<u32, usize> = HashMap::new();
        let mut now: HashMap<u32, (u32, u32)> = HashMap::new();
        for span in &run.track.spans {
            for Named(index, name, ceiling) in &span.names {
                let strip = *known.entry(name).or_insert_with(|| {
                    strips.push(Strip {
                        name,
                        ceiling: 0,
                        most: vec![None; columns],
                        cap: vec![None; columns],
                        used: 0.0,
                    });
                    strips.len() - 1
                });
                strips[strip].ceiling = strips[strip].ceiling.max(*ceiling);
                named.insert(*index, strip);
            }
            for gone in &span.gone {
                now.remove(gone);
            }
            for &ExitUse(index, most, cap) in &span.used {
                now.insert(index, (most, cap));
            }
            for (index, (most, cap)) in &now {
                let Some(strip) = named.get(index).and_then(|at| strips.get_mut(*at)) else {
                    continue;
                };
                strip.used += f64::from(*most) * span.s;
                axis.spread(number, span, |column, _| {
                    let high = strip.most[column].unwrap_or(0.0).max(f64::from(*most));
                    strip.most[column] = Some(high);
                    strip.cap[column] = Some(f64::from(*cap));
                });
            }
        }
    }
    strips
}

fn draw(html: &mut Html, axis: &Axis<'_>, strip: &Strip<'_>) {
    let peak = strip.peak();
    let top = f64::from(strip.ceiling).max(peak) * ROOM;
    let columns = &axis.columns;
    let most: Vec<f64> = strip.most.iter().map(|most| most.unwrap_or(0.0)).collect();
    let ceiling: Vec<Option<f64>> = strip
        .most
        .iter()
        .map(|most| most.map(|_| f64::from(strip.ceiling)))
        .collect();
    html.raw("<div class=strip data-exit=\"").put(strip.name);
    html.raw("\" data-peak=\"").put(peak);
    html.raw("\" data-cap=\"").put(strip.ceiling);
    html.element("\"><span class=name title=\"", strip.name, "\">");
    html.put(strip.name);
    html.raw("</span><svg viewBox=\"0 0 1000 200\" preserveAspectRatio=none role=img aria-label=\"requests in flight\">");
    let none = vec![0.0; columns.len()];
    html.element(
        "<path class=use d=\"",
        area(columns, &none, &most, top),
        "\"/>",
    );
    html.element(
        "<path class=ceiling d=\"",
        steps(columns, &ceiling, top),
        "\"/>",
    );
    html.element(
        "<path class=cap d=\"",
        steps(columns, &strip.cap, top),
        "\"/></svg>",
    );
    html.element("<span class=peak>peak <b>", peak, "</b> of ");
    html.put(strip.ceiling).raw("</span></div>");
}

/// What goes through exits that are not recorded one by one.
fn rest(html: &mut Html, axis: &Axis<'_>) {
    let mut values = vec![0.0; axis.columns.len()];
    for (number, run) in axis.runs.iter().enumerate() {
        for span in &run.track.spans {
            let rest = f64::from(span.rest);
            axis.spread(number, span, |column, _| {
                values[column] = f64::max(values[column], rest);
            });
        }
    }
    let top = values.iter().copied().fold(0.0, f64::max);
    if top <= 0.0 {
        return;
    }
    html.raw("<div class=strip><span class=name>all others</span><svg viewBox=\"0 0 1000 200\" preserveAspectRatio=none role=img aria-label=\"requests in flight through all other exits\">");
    let none = vec![0.0; axis.columns.len()];
    html.element(
        "<path class=use d=\"",
        area(&axis.columns, &none, &values, top * ROOM),
        "\"/></svg>",
    );
    html.element(
        "<span class=peak>up to <b>",
        count(top as u64),
        "</b></span></div>",
    );
}
