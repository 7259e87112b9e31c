//! Time from left to right: every run its piece of the width, cut into columns.
//!
//! A drawing has a few hundred columns however long the runs were. Runs stand beside each
//! other with a gap between them; the time between them is not drawn.

use super::figures;
use crate::report::timeline::{Span, Track};

/// Width of every drawing in its own units.
pub(super) const WIDTH: f64 = 1000.0;
/// Columns over the whole width.
const COLUMNS: f64 = 250.0;
/// Between two runs.
const GAP: f64 = 8.0;
/// Runs drawn; of more, the last ones are.
const RUNS: usize = 16;
/// Marks below the axis.
const MARKS: f64 = 6.0;
/// Distances between marks, in seconds.
const STEPS: [f64; 22] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0,
    3600.0, 7200.0, 14_400.0, 21_600.0, 43_200.0, 86_400.0, 604_800.0,
];

/// A piece of the width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Column {
    pub x0: f64,
    pub x1: f64,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Axis<'a> {
    pub(super) runs: Vec<Run<'a>>,
    pub(super) columns: Vec<Column>,
    /// Runs before those that are drawn.
    pub(super) left_out: usize,
}

#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) track: &'a Track,
    first: usize,
    count: usize,
    seconds: f64,
}

impl<'a> Axis<'a> {
    /// For these runs; those without a span are left out.
    pub(super) fn new(tracks: &'a [Track]) -> Axis<'a> {
        let with_spans: Vec<&Track> = tracks.iter().filter(|run| !run.spans.is_empty()).collect();
        let left_out = with_spans.len().saturating_sub(RUNS);
        let shown = &with_spans[left_out..];
        let total: f64 = shown.iter().map(|run| length(run)).sum();
        let room = WIDTH - GAP * shown.len().saturating_sub(1) as f64;
        let mut axis = Axis {
            runs: Vec::new(),
            columns: Vec::new(),
            left_out,
        };
        let mut x = 0.0;
        for track in shown {
            let width = room * length(track) / total;
            let wanted = (COLUMNS * width / WIDTH).round().max(1.0) as usize;
            let count = wanted.min(track.spans.len());
            let edge = |n: usize| x + width * n as f64 / count as f64;
            axis.runs.push(Run {
                track,
                first: axis.columns.len(),
                count,
                seconds: length(track),
            });
            let columns = (0..count).map(|n| Column {
                x0: edge(n),
                x1: edge(n + 1),
            });
            axis.columns.extend(columns);
            x += width + GAP;
        }
        axis
    }

    /// Calls `each` for every column that `span` of run number `run` reaches into, with the
    /// part of the span that lies in it.
    pub(super) fn spread(&self, run: usize, span: &Span, mut each: impl FnMut(usize, f64)) {
        let Run {
            first,
            count,
            seconds,
            ..
        } = self.runs[run];
        let place = |t: f64| (t / seconds * count as f64).clamp(0.0, count as f64);
        let (from, to) = (place(span.t), place(span.t + span.s));
        let last = count - 1;
        if to - from < 1e-6 {
            each(first + (from as usize).min(last), 1.0);
            return;
        }
        let mut at = from;
        while to - at > 1e-6 {
            // An edge that rounding put a hair before a column belongs to the column.
            let column = ((at + 1e-6) as usize).min(last);
            let end = if column == last {
                to
            } else {
                to.min((column + 1) as f64)
            };
            each(first + column, (end - at) / (to - from));
            at = end;
        }
    }

    /// Seconds that a column of run number `run` stands for.
    pub(super) fn column_seconds(&self, run: usize) -> f64 {
        self.runs[run].seconds / self.runs[run].count as f64
    }

    /// Where marks stand, from 0 to [`WIDTH`], and what they say.
    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        if let [run] = self.runs.as_slice() {
            let fits = |step: &&f64| run.seconds / **step <= MARKS;
            let step = STEPS.iter().find(fits).unwrap_or(&STEPS[STEPS.len() - 1]);
            let marks = (0..).map(|n| f64::from(n) * step);
            let marks = marks.take_while(|t| *t <= run.seconds * 0.93);
            return marks
                .map(|t| (t / run.seconds * WIDTH, figures::seconds(t)))
                .collect();
        }
        let narrow =
            |run: &Run| self.columns[run.first + run.count - 1].x1 - self.columns[run.first].x0;
        let named = self.runs.iter().enumerate();
        let named = named.filter(|(_, run)| narrow(run) > WIDTH / 14.0);
        named
            .map(|(n, run)| {
                let name = format!("run {}", self.left_out + n + 1);
                (self.columns[run.first].x0, name)
            })
            .collect()
    }
}

fn length(track: &Track) -> f64 {
    let last = track.spans.last();
    last.map_or(1.0, |span| span.t + span.s).max(0.1)
}

/// What a scale ends at so that `most` fits: a number of one or two digits times a power of ten.
pub(super) fn nice(most: f64) -> f64 {
    if most <= 0.0 || !most.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = steps.into_iter().find(|step| step * power >= most * 0.999);
    fits.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(spans: u32, s: f64) -> Track {
        let span = |n: u32| Span {
            t: f64::from(n) * s,
            s,
            ..Span::default()
        };
        Track {
            spans: (0..spans).map(span).collect(),
            ..Track::default()
        }
    }

    #[test]
    fn every_span_is_spread_whole_and_columns_do_not_overlap() {
        let tracks = [
            track(3, 1.0),
            track(0, 1.0),
            track(9_999, 2.0),
            track(1, 0.2),
        ];
        let axis = Axis::new(&tracks);
        assert_eq!(axis.runs.len(), 3);
        assert!(axis.columns.len() <= COLUMNS as usize + 3);
        assert!(
            axis.columns
                .windows(2)
                .all(|two| two[0].x1 <= two[1].x0 + 1e-9)
        );
        assert!((axis.columns.last().unwrap().x1 - WIDTH).abs() < 1e-6);
        for (number, run) in axis.runs.iter().enumerate() {
            let mut got = vec![0.0; axis.columns.len()];
            for span in &run.track.spans {
                axis.spread(number, span, |column, part| got[column] += part * span.s);
            }
            let whole: f64 = got.iter().sum();
            assert!(
                (whole - run.seconds).abs() < 1e-3,
                "{whole} of {}",
                run.seconds
            );
            let own = &got[run.first..run.first + run.count];
            let each = axis.column_seconds(number);
            assert!(own.iter().all(|s| (s - each).abs() < 1e-3), "{own:?}");
        }
    }

    #[test]
    fn scales_end_at_round_numbers_and_marks_are_few() {
        assert_eq!(
            [0.0, 0.2, 7.0, 18.0, 41.0].map(nice),
            [1.0, 0.2, 8.0, 20.0, 50.0]
        );
        for seconds in [0.2, 4.6, 59.0, 4_000.0, 1e6] {
            let tracks = [track(1, seconds)];
            let marks = Axis::new(&tracks).marks();
            assert!((1..=7).contains(&marks.len()), "{seconds}: {marks:?}");
        }
    }
}
