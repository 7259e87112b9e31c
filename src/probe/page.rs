//! `--html`: latency and goodput against concurrency, the knee marked. One file that asks for
//! nothing from elsewhere: styles and drawings are inline, no script.

use std::fmt::Write;

use super::file::{GroupEntry, TierEntry};
use super::found::Row;
use crate::report::escaped;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#66707c;--line:#d5dae0;--back:#fff;--a:#1f6feb;--b:#b35900;--bad:#c4314b}\
@media(prefers-color-scheme:dark){:root{--ink:#e6eaef;--dim:#96a1ad;--line:#39424d;--back:#14181d;--a:#6cb0ff;--b:#f0a35a;--bad:#ff7b8e}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:60rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}p.dim,figcaption{color:var(--dim)}\
.charts{display:flex;flex-wrap:wrap;gap:1rem}figure{flex:1 1 22rem;margin:0}svg{width:100%;height:auto}\
svg text{fill:var(--dim);font-size:12px}.axis{stroke:var(--line);fill:none}.a{stroke:var(--a);fill:none;stroke-width:2}\
.b{stroke:var(--b);fill:none;stroke-width:2;stroke-dasharray:5 4}.dot{fill:var(--a)}\
.knee{stroke:var(--bad);stroke-width:1.5}svg text.bad{fill:var(--bad)}.ideal{stroke:var(--dim);fill:none;stroke-dasharray:2 4}\
table{border-collapse:collapse;margin-top:1rem}th,td{padding:.2rem .8rem;text-align:right;border-bottom:1px solid var(--line)}";

/// Size of a drawing and of the space for its labels.
const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 30.0;

/// The page of these results.
pub fn page(tiers: &[TierEntry], groups: &[GroupEntry]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>exitfetch probe</title><style>{STYLE}</style></head><body>\n\
         <h1>How much one exit carries</h1>\n"
    );
    for entry in tiers {
        let about = about(&entry.date, &entry.targets, &entry.exits);
        let texts = [&tier_title(entry), entry.verdict.as_str(), &about];
        section(&mut out, texts, &entry.levels, entry.knee);
    }
    for entry in groups {
        let about = about(&entry.date, &entry.targets, &entry.exits);
        let texts = [&group_title(entry), entry.verdict.as_str(), &about];
        section(&mut out, texts, &entry.levels, entry.knee);
    }
    out + "</body></html>\n"
}

fn tier_title(entry: &TierEntry) -> String {
    let name = match (&entry.tier, &entry.region) {
        (None, None) => "exits without tier and region".to_owned(),
        (Some(tier), None) => format!("tier {tier}"),
        (None, Some(region)) => format!("region {region}"),
        (Some(tier), Some(region)) => format!("tier {tier}, region {region}"),
    };
    format!("{name}: per_exit {}", entry.per_exit)
}

fn group_title(entry: &GroupEntry) -> String {
    let cap = match entry.cap {
        Some(cap) => format!("cap {cap}"),
        None => "no cap found".to_owned(),
    };
    format!("group {}, exits together: {cap}", entry.group)
}

fn about(date: &str, targets: &[String], exits: &[String]) -> String {
    format!(
        "{date}, through {}; {}",
        exits.join(", "),
        targets.join(", ")
    )
}

/// A result: title, verdict, the rest; drawings and table.
fn section(out: &mut String, texts: [&str; 3], rows: &[Row], knee: Option<u32>) {
    let [title, verdict, about] = texts.map(escaped);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<h2>{title}</h2>\n<p>{verdict}</p>\n<p class=\"dim\">{about}</p>\n<div class=\"charts\">"
    );
    let median = |row: &Row| row.median_ms;
    let p95 = |row: &Row| row.p95_ms;
    let goodput = |row: &Row| Some(row.goodput);
    let latency = Chart::new(rows, knee, &[&median, &p95]);
    let speed = Chart::new(rows, knee, &[&goodput]);
    let ideal = rows
        .first()
        .map_or(0.0, |row| row.goodput / f64::from(row.concurrency));
    let _ = writeln!(
        out,
        "<figure>{}<figcaption>latency in ms: median, dashed the 95th percentile</figcaption></figure>\n\
         <figure>{}<figcaption>answers a second; dotted: as many times level 1 as there are workers\
         </figcaption></figure>\n</div>",
        latency.draw(&[("a", &median), ("b", &p95)], None),
        speed.draw(&[("a", &goodput)], Some(ideal)),
    );
    table(out, rows);
}

fn table(out: &mut String, rows: &[Row]) {
    let _ = writeln!(
        out,
        "<table><tr><th>level</th><th>reached</th><th>median ms</th><th>p95 ms</th>\
         <th>answers/s</th><th>refused</th><th>errors</th></tr>"
    );
    for row in rows {
        let ms = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td></tr>",
            row.concurrency,
            row.reached,
            ms(row.median_ms),
            ms(row.p95_ms),
            row.goodput,
            row.refused,
            row.errors
        );
    }
    let _ = writeln!(out, "</table>");
}

type Figure<'a> = &'a dyn Fn(&Row) -> Option<f64>;

/// A drawing of figures against the concurrency, which doubles from mark to mark.
struct Chart<'a> {
    rows: &'a [Row],
    knee: Option<u32>,
    most_x: f64,
    most_y: f64,
}

impl<'a> Chart<'a> {
    fn new(rows: &'a [Row], knee: Option<u32>, figures: &[Figure<'_>]) -> Chart<'a> {
        let values = figures.iter().flat_map(|of| rows.iter().filter_map(of));
        let highest = rows.iter().map(|row| row.concurrency).max().unwrap_or(1);
        Chart {
            rows,
            knee,
            most_x: f64::from(highest).log2().max(1.0),
            most_y: values.fold(0.0, f64::max).max(1e-6) * 1.08,
        }
    }

    fn x(&self, concurrency: u32) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * f64::from(concurrency.max(1)).log2() / self.most_x
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value / self.most_y).min(1.0)
    }

    fn draw(&self, lines: &[(&str, Figure<'_>)], ideal: Option<f64>) -> String {
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"drawing of the table below\">"
        );
        self.axes(&mut svg);
        if let Some(per_worker) = ideal {
            let points = self.rows.iter().map(|row| {
                let value = per_worker * f64::from(row.concurrency);
                (row.concurrency, value)
            });
            self.line(
                &mut svg,
                "ideal",
                points.filter(|(_, value)| *value <= self.most_y),
            );
        }
        for (class, of) in lines {
            let points = || {
                self.rows
                    .iter()
                    .filter_map(|row| Some((row.concurrency, of(row)?)))
            };
            self.line(&mut svg, class, points());
            for (concurrency, value) in points().filter(|_| *class == "a") {
                let (x, y) = (self.x(concurrency), self.y(value));
                let _ = write!(
                    svg,
                    "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
                );
            }
        }
        svg + "</svg>"
    }

    fn axes(&self, svg: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        let _ = write!(
            svg,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>",
            LEFT - 6.0,
            TOP + 4.0,
            short(self.most_y),
            LEFT - 6.0,
        );
        for row in self.rows {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                self.x(row.concurrency),
                bottom + 18.0,
                row.concurrency
            );
        }
        if let Some(knee) = self.knee {
            let x = self.x(knee);
            let _ = write!(
                svg,
                "<path class=\"knee\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
                 <text class=\"bad\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">knee</text>",
                TOP - 8.0
            );
        }
    }

    fn line(&self, svg: &mut String, class: &str, points: impl Iterator<Item = (u32, f64)>) {
        let points: Vec<String> = points
            .map(|(concurrency, value)| format!("{:.1},{:.1}", self.x(concurrency), self.y(value)))
            .collect();
        let _ = write!(
            svg,
            "<polyline class=\"{class}\" points=\"{}\"/>",
            points.join(" ")
        );
    }
}

fn short(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(concurrency: u32, median: f64, goodput: f64) -> Row {
        Row {
            concurrency,
            reached: f64::from(concurrency),
            samples: 30,
            median_ms: Some(median),
            p95_ms: Some(median * 1.5),
            goodput,
            ratio: Some(1.0),
            refused: 0,
            errors: 0,
        }
    }

    #[test]
    fn the_page_stands_alone_and_text_from_outside_stays_text() {
        let entry = TierEntry {
            tier: Some("<script>".to_owned()),
            region: None,
            per_exit: 2,
            knee: Some(4),
            reason: Some("PLATEAU".to_owned()),
            verdict: "knee at 4".to_owned(),
            date: "2026-01-31T20:10:40Z".to_owned(),
            targets: vec!["http://o.test/?a=1&b=2".to_owned()],
            exits: vec!["e-1".to_owned()],
            levels: vec![row(1, 50.0, 20.0), row(2, 50.0, 40.0), row(4, 100.0, 40.0)],
        };
        let page = page(&[entry], &[]);
        assert!(page.contains("tier &lt;script&gt;: per_exit 2") && page.contains("a=1&amp;b=2"));
        for absent in ["<script", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(absent), "{absent}");
        }
        assert_eq!(page.matches("class=\"knee\"").count(), 2);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn points_are_higher_where_values_are_and_further_right_where_there_are_more_workers() {
        let rows = [row(1, 50.0, 20.0), row(4, 100.0, 40.0)];
        let chart = Chart::new(&rows, None, &[&|row: &Row| row.median_ms]);
        assert!(chart.y(100.0) < chart.y(50.0) && chart.x(4) > chart.x(1));
        assert!(chart.y(100.0) >= TOP && chart.x(4) <= WIDTH - RIGHT + 1e-9);
    }
}
