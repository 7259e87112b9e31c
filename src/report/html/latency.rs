//! Time to first byte by tier: the distribution on a logarithmic scale, and three percentiles.

use super::figures::{count, millis};
use super::markup::Html;
use crate::report::gather::Latencies;

/// The scale: from 1 ms to 100 s.
const FROM_MS: f64 = 1.0;
const TO_MS: f64 = 100_000.0;
/// Bars of the drawing.
const BARS: usize = 100;
/// Where the scale is marked.
const MARKS: [(f64, &str); 5] = [
    (1.0, "1 ms"),
    (10.0, "10 ms"),
    (100.0, "100 ms"),
    (1_000.0, "1 s"),
    (10_000.0, "10 s"),
];

pub(super) fn section(html: &mut Html, tiers: &[(String, Latencies)]) {
    if tiers.is_empty() {
        return;
    }
    html.raw("<section><h2>Time to first byte</h2><p class=small>Of the last attempt of each job, by tier of its exit. Lines at the median and at 95 %.</p><div class=strips>");
    for (name, latencies) in tiers {
        html.raw("<div class=\"strip tall\"><span class=name>")
            .put(name);
        html.element("<small>", count(latencies.count), " answers</small></span>");
        draw(html, latencies);
        html.raw("<span class=peak>");
        for (quantile, label) in [(0.5, "50 %"), (0.95, "95 %"), (0.99, "99 %")] {
            let ms = latencies.ms(quantile).unwrap_or(0.0);
            html.element("<span>", label, " <b>")
                .put(millis(ms))
                .raw("</b></span>");
        }
        html.raw("</span></div>");
    }
    html.raw("<div class=axis><div class=marks>");
    for (ms, text) in MARKS {
        html.element("<span style=\"left:", place(ms) / 10.0, "%\">")
            .put(text)
            .raw("</span>");
    }
    html.raw("</div></div></div></section>");
}

/// Where a time stands on the scale, from 0 to 1000.
fn place(ms: f64) -> f64 {
    let share = (ms / FROM_MS).ln() / (TO_MS / FROM_MS).ln();
    (share.clamp(0.0, 1.0) * 10_000.0).round() / 10.0
}

fn draw(html: &mut Html, latencies: &Latencies) {
    let bars = latencies.spread(FROM_MS, TO_MS, BARS);
    let most = bars.iter().copied().max().unwrap_or(0).max(1) as f64;
    html.raw("<svg viewBox=\"0 0 1000 200\" preserveAspectRatio=none role=img aria-label=\"distribution of the time to first byte\"><path class=grid d=\"M200 0V200M400 0V200M600 0V200M800 0V200\"/><path class=first d=\"");
    let width = 1000.0 / BARS as f64;
    for (n, bar) in bars.iter().enumerate().filter(|(_, bar)| **bar > 0) {
        // What is there is seen, however little it is beside the rest.
        let height = (*bar as f64 / most * 190.0).max(3.0);
        let x = n as f64 * width;
        html.put(format_args!(
            "M{x:.0} 200V{:.0}h{:.1}V200Z",
            200.0 - height,
            width * 0.9
        ));
    }
    html.raw("\"/><path class=mark d=\"");
    for quantile in [0.5, 0.95] {
        let x = latencies.ms(quantile).map_or(0.0, place);
        html.put(format_args!("M{x:.1} 0V200"));
    }
    html.raw("\"/></svg>");
}
