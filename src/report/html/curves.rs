//! What a probe found: answers per second and median time by requests at a time.

use super::axis::nice;
use super::figures::{millis, rate};
use super::markup::Html;
use crate::report::gather::Curve;

/// The curves; nothing where no run used a probe.
pub(super) fn section(html: &mut Html, curves: &[Curve]) {
    if curves.is_empty() {
        return;
    }
    html.raw("<section><h2>Probe</h2><p class=small>What an exit gave at each number of requests at a time: bars for good answers per second, below them the median time.</p><div class=curves>");
    for curve in curves {
        html.raw("<figure><figcaption>").put(&curve.name);
        if let Some(carries) = curve.per_exit {
            html.element(" <span class=\"badge quiet\">carries ", carries, "</span>");
        }
        html.raw("</figcaption><div class=levels>");
        let most = curve
            .levels
            .iter()
            .map(|level| level.goodput)
            .fold(0.0, f64::max);
        let top = nice(most);
        for level in &curve.levels {
            let share = (level.goodput / top).clamp(0.0, 1.0) * 100.0;
            html.raw("<div><span class=bar-box><i style=\"height:");
            html.put(format_args!("{share:.0}")).raw("%\"></i></span>");
            html.element("<b>", rate(level.goodput.max(0.0)), "/s</b>");
            html.element("<small>", millis(level.median_ms.max(0.0)), "</small>");
            html.element("<span>", level.concurrency, "</span></div>");
        }
        html.raw("</div></figure>");
    }
    html.raw("</div></section>");
}
