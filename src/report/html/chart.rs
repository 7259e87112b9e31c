//! A drawing over time: layers on top of each other, in steps, with a scale and marks.
//!
//! The drawing stretches to the width of the page; its letters are HTML beside it, so that
//! they keep their size on a phone.

use std::fmt::Write;

use super::axis::{Axis, Column, WIDTH, nice};
use super::markup::Html;

/// Height of a drawing in its own units.
const HEIGHT: f64 = 200.0;

/// One layer: a class for its colour, its name, and a value for each column.
pub(super) struct Layer {
    pub(super) class: &'static str,
    pub(super) name: &'static str,
    pub(super) values: Vec<f64>,
}

/// A chart's words.
pub(super) struct Words {
    /// What the chart shows.
    pub(super) title: &'static str,
    /// One sentence below the title.
    pub(super) about: &'static str,
    /// What the scale counts.
    pub(super) unit: &'static str,
}

/// Draws the layers on top of each other, the first one lowest. Those that are empty stay out
/// of the drawing and of the legend.
pub(super) fn stacked(html: &mut Html, axis: &Axis<'_>, words: &Words, layers: &[Layer]) {
    let sums: Vec<f64> = (0..axis.columns.len())
        .map(|column| layers.iter().map(|layer| layer.values[column]).sum())
        .collect();
    let top = nice(sums.iter().copied().fold(0.0, f64::max));
    let shown = || {
        layers
            .iter()
            .filter(|layer| layer.values.iter().any(|v| *v > 0.0))
    };
    html.raw("<figure class=chart><figcaption>");
    html.element("<h3>", words.title, "</h3>");
    html.element("<p>", words.about, "</p></figcaption>");
    scale(html, top, words.unit);
    html.raw(
        "<svg class=plot viewBox=\"0 0 1000 200\" preserveAspectRatio=none role=img aria-label=\"",
    );
    html.put(words.title).raw("\">");
    html.raw("<path class=grid d=\"M0 0.5H1000M0 100H1000M0 199.5H1000\"/>");
    let mut below = vec![0.0; axis.columns.len()];
    for layer in shown() {
        let above: Vec<f64> = below
            .iter()
            .zip(&layer.values)
            .map(|(b, v)| b + v)
            .collect();
        html.element("<path class=\"", layer.class, "\" d=\"");
        html.put(area(&axis.columns, &below, &above, top));
        html.element("\"><title>", layer.name, "</title></path>");
        below = above;
    }
    html.raw("</svg>");
    marks(html, axis);
    html.raw("<ul class=legend>");
    for layer in shown() {
        html.element("<li><i class=\"", layer.class, "\"></i>");
        html.element("", layer.name, "</li>");
    }
    html.raw("</ul></figure>");
}

fn scale(html: &mut Html, top: f64, unit: &'static str) {
    html.element("<div class=scale><span>", short(top), "</span>");
    html.element("<span>", short(top / 2.0), "</span><span>0</span></div>");
    html.element("<div class=unit>", unit, "</div>");
}

/// A number on a scale.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{} M", trimmed(v / 1e6)),
        v if v >= 1e4 => format!("{} k", trimmed(v / 1e3)),
        v => trimmed(v),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The marks of the time axis.
pub(super) fn marks(html: &mut Html, axis: &Axis<'_>) {
    let marks = axis.marks();
    let class = if marks.len() > 4 {
        "marks many"
    } else {
        "marks"
    };
    html.element("<div class=\"", class, "\">");
    for (x, text) in marks {
        html.raw("<span style=\"left:")
            .put(format_args!("{:.1}", x / WIDTH * 100.0));
        html.element("%\">", text, "</span>");
    }
    html.raw("</div>");
}

/// The outline of what lies between two lines, in steps; runs apart from each other.
pub(super) fn area(columns: &[Column], below: &[f64], above: &[f64], top: f64) -> String {
    let mut path = String::new();
    let y = |value: f64| HEIGHT - HEIGHT * (value / top).min(1.0);
    let mut from = 0;
    while from < columns.len() {
        let joined = |at: usize| columns[at].x0 - columns[at - 1].x1 < 1e-6;
        let to = (from + 1..columns.len())
            .find(|at| !joined(*at))
            .unwrap_or(columns.len());
        if above[from..to]
            .iter()
            .zip(&below[from..to])
            .any(|(a, b)| a > b)
        {
            outline(&mut path, &columns[from..to], |n| {
                (y(below[from + n]), y(above[from + n]))
            });
        }
        from = to;
    }
    path
}

/// Writing to a string cannot fail.
fn outline(path: &mut String, columns: &[Column], y: impl Fn(usize) -> (f64, f64)) {
    let (low, high) = y(0);
    let _ = write!(path, "M{:.1} {low:.1}V{high:.1}", columns[0].x0);
    let mut last = high;
    for (n, column) in columns.iter().enumerate() {
        let (_, high) = y(n);
        if (high - last).abs() > 0.04 {
            let _ = write!(path, "H{:.1}V{high:.1}", column.x0);
            last = high;
        }
    }
    let _ = write!(path, "H{:.1}", columns[columns.len() - 1].x1);
    let mut last = f64::NAN;
    for (n, column) in columns.iter().enumerate().rev() {
        let (low, _) = y(n);
        if last.is_nan() || (low - last).abs() > 0.04 {
            if !last.is_nan() {
                let _ = write!(path, "H{:.1}", column.x1);
            }
            let _ = write!(path, "V{low:.1}");
            last = low;
        }
    }
    path.push('Z');
}

/// A line in steps through the values that are there.
pub(super) fn steps(columns: &[Column], values: &[Option<f64>], top: f64) -> String {
    let mut path = String::new();
    // Where the line ends so far: right edge and height.
    let mut end: Option<(f64, f64)> = None;
    for (column, value) in columns.iter().zip(values) {
        let y = value.map(|value| HEIGHT - HEIGHT * (value / top).min(1.0));
        let joined = end.filter(|(x, _)| column.x0 - x < 1e-6);
        // Writing to a string cannot fail.
        let _ = match (joined, y) {
            (Some((_, before)), Some(y)) if (before - y).abs() < 0.04 => Ok(()),
            (Some(_), Some(y)) => write!(path, "H{:.1}V{y:.1}", column.x0),
            (None, Some(y)) => {
                close(&mut path, end).and_then(|()| write!(path, "M{:.1} {y:.1}", column.x0))
            }
            (_, None) => close(&mut path, end),
        };
        end = y.map(|y| (column.x1, y));
    }
    let _ = close(&mut path, end);
    path
}

fn close(path: &mut String, end: Option<(f64, f64)>) -> std::fmt::Result {
    match end {
        Some((x, _)) => write!(path, "H{x:.1}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { x0: 0.0, x1: 10.0 },
        Column { x0: 10.0, x1: 20.0 },
        Column { x0: 30.0, x1: 40.0 },
    ];

    #[test]
    fn an_area_goes_along_its_top_and_back_along_its_foot_run_by_run() {
        let path = area(&COLUMNS, &[0.0, 0.0, 0.0], &[1.0, 2.0, 1.0], 2.0);
        assert_eq!(
            path,
            "M0.0 200.0V100.0H10.0V0.0H20.0V200.0ZM30.0 200.0V100.0H40.0V200.0Z"
        );
        assert_eq!(area(&COLUMNS, &[1.0; 3], &[1.0; 3], 2.0), "");
    }

    #[test]
    fn a_line_breaks_where_there_is_no_value_and_between_runs() {
        let values = [Some(2.0), Some(1.0), Some(1.0)];
        assert_eq!(
            steps(&COLUMNS, &values, 2.0),
            "M0.0 0.0H10.0V100.0H20.0M30.0 100.0H40.0"
        );
        assert_eq!(
            steps(&COLUMNS, &[Some(2.0), None, None], 2.0),
            "M0.0 0.0H10.0"
        );
    }
}
