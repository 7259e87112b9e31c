//! Two neighbouring spans as one: half the lines, half the resolution.
//!
//! The use of an exit is told only where it changes, so merging plays the changes forward and
//! tells them anew.

use std::collections::BTreeMap;

use super::TRACKED;
use super::line::{ExitUse, Line, Span};
use crate::report::Stage;

/// Changes kept of a merged span.
const EVENTS_MOST: usize = 48;

/// Merges the spans of each run two by two; heads and ends stay.
pub(super) fn halve(lines: Vec<Line>) -> Vec<Line> {
    let mut halved = Vec::with_capacity(lines.len() / 2 + 2);
    let mut waiting: Option<Span> = None;
    let mut play = Play::default();
    for line in lines {
        match (line, waiting.take()) {
            (Line::Span(span), None) => waiting = Some(span),
            (Line::Span(span), Some(before)) => halved.push(Line::Span(play.pair(before, span))),
            (other, before) => {
                halved.extend(before.map(|span| Line::Span(play.single(span))));
                if matches!(other, Line::Run(_)) {
                    play = Play::default();
                }
                halved.push(other);
            }
        }
    }
    halved.extend(waiting.map(|span| Line::Span(play.single(span))));
    halved
}

/// Each exit's most in flight and cap: as read so far, and as told so far.
#[derive(Default)]
struct Play {
    read: BTreeMap<u32, (u32, u32)>,
    told: BTreeMap<u32, (u32, u32)>,
}

impl Play {
    fn read(&mut self, span: &Span) {
        for gone in &span.gone {
            self.read.remove(gone);
        }
        for &ExitUse(exit, most, cap) in &span.used {
            self.read.insert(exit, (most, cap));
        }
    }

    fn single(&mut self, mut span: Span) -> Span {
        self.read(&span);
        let present = self.read.clone();
        self.tell(&mut span, &present);
        span
    }

    fn pair(&mut self, first: Span, second: Span) -> Span {
        self.read(&first);
        let before = self.read.clone();
        self.read(&second);
        let mut most = self.read.clone();
        for (exit, (high, _)) in &mut most {
            *high = before
                .get(exit)
                .map_or(*high, |(other, _)| (*high).max(*other));
        }
        let mut span = join(first, second);
        self.tell(&mut span, &most);
        span
    }

    fn tell(&mut self, span: &mut Span, present: &BTreeMap<u32, (u32, u32)>) {
        let gone = self.told.keys().filter(|exit| !present.contains_key(exit));
        span.gone = gone.copied().collect();
        let changed = present
            .iter()
            .filter(|(exit, now)| self.told.get(exit) != Some(now));
        let changed = changed.map(|(exit, (most, cap))| ExitUse(*exit, *most, *cap));
        span.used = changed.collect();
        self.told.clone_from(present);
    }
}

/// Everything but the use of exits.
fn join(first: Span, second: Span) -> Span {
    let s = first.s + second.s;
    let mean = |place: Stage| {
        let n = place as usize;
        let sum = first.jobs[n] * first.s + second.jobs[n] * second.s;
        (sum / s.max(1e-3) * 100.0).round() / 100.0
    };
    let mut events = first.events;
    events.extend(second.events);
    let lost = events.len().saturating_sub(EVENTS_MOST);
    events.truncate(EVENTS_MOST);
    let mut names = first.names;
    names.extend(second.names);
    names.truncate(2 * TRACKED);
    Span {
        t: first.t,
        s: (s * 1e3).round() / 1e3,
        jobs: Stage::ALL.map(mean),
        peak: first.peak.max(second.peak),
        up: second.up,
        ended: [0, 1, 2].map(|n| first.ended[n] + second.ended[n]),
        attempts: first.attempts + second.attempts,
        bytes: first.bytes + second.bytes,
        names,
        used: Vec::new(),
        gone: Vec::new(),
        rest: second.rest,
        events,
        more_events: first.more_events + second.more_events + lost as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::timeline::line::RunHead;

    fn span(t: f64, used: &[ExitUse]) -> Line {
        Line::Span(Span {
            t,
            s: 1.0,
            ended: [1, 0, 0],
            used: used.to_vec(),
            ..Span::default()
        })
    }

    fn spans(lines: &[Line]) -> Vec<&Span> {
        let spans = lines.iter().filter_map(|line| match line {
            Line::Span(span) => Some(span),
            _ => None,
        });
        spans.collect()
    }

    #[test]
    fn the_most_in_flight_survives_and_an_exit_that_rests_is_told_so() {
        let lines = vec![
            Line::Run(RunHead::default()),
            span(0.0, &[ExitUse(7, 3, 3)]),
            span(1.0, &[ExitUse(7, 1, 3)]),
            span(2.0, &[]),
            span(3.0, &[]),
            span(4.0, &[ExitUse(7, 2, 2)]),
        ];
        let merged = halve(lines);
        let merged = spans(&merged);
        assert_eq!(merged.len(), 3);
        assert_eq!(merged[0].used, [ExitUse(7, 3, 3)]);
        assert_eq!(
            (merged[0].t, merged[0].s, merged[0].ended),
            (0.0, 2.0, [2, 0, 0])
        );
        assert_eq!(merged[1].used, [ExitUse(7, 1, 3)]);
        assert_eq!(
            (merged[2].s, &merged[2].used[..]),
            (1.0, &[ExitUse(7, 2, 2)][..])
        );
    }

    #[test]
    fn runs_are_never_merged_with_each_other() {
        let run = |at| {
            Line::Run(RunHead {
                at,
                ..RunHead::default()
            })
        };
        let lines = vec![
            run(1),
            span(0.0, &[ExitUse(0, 3, 3)]),
            Line::End("complete".into()),
            run(2),
            span(0.0, &[ExitUse(0, 3, 3)]),
            span(1.0, &[]),
        ];
        let merged = halve(lines);
        assert_eq!(merged.len(), 5);
        assert_eq!(merged[3], run(2));
        assert_eq!(spans(&merged)[1].used, [ExitUse(0, 3, 3)]);
    }
}
