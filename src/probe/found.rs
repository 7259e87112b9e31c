//! What a probe of one exit, or of several together, brought: figures, verdict, words.

use serde::{Deserialize, Serialize};

use super::knee::{Reason, Shift};
use super::level::Measured;
use super::verdict::{Obstacle, Verdict};

/// One level as people and files see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Workers that sent one request after the other.
    pub concurrency: u32,
    /// Requests in flight on average while all of them were busy.
    pub reached: f64,
    /// Answers that count.
    pub samples: u32,
    /// Median of their times, from the dial to the last byte; `None` without answers.
    pub median_ms: Option<f64>,
    /// What 95 % of them kept.
    pub p95_ms: Option<f64>,
    /// Answers per second.
    pub goodput: f64,
    /// Median against that of level 1; `None` without answers.
    pub ratio: Option<f64>,
    /// Refused by the exit because of a limit, or closed on while others were in flight.
    pub refused: u32,
    /// Failed otherwise, whoever's fault it was.
    pub errors: u32,
}

impl Row {
    pub(super) fn of(level: &Measured, base: Option<&Measured>) -> Row {
        let ms = |share| {
            let seconds = level.quantile(share);
            seconds.is_finite().then(|| round(seconds * 1e3))
        };
        let shift = base.and_then(|base| Shift::between(base, level));
        let refused = level.refused + level.turned_away;
        Row {
            concurrency: level.concurrency,
            reached: round(level.reached()),
            samples: level.times.iter().map(|times| times.len() as u32).sum(),
            median_ms: ms(0.5),
            p95_ms: ms(0.95),
            goodput: round(level.goodput()),
            ratio: shift.map(|shift| round(shift.ratio)),
            refused,
            errors: level.failed() - refused,
        }
    }
}

/// To two digits behind the point: more is noise.
fn round(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// The end of one ladder.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it says.
    pub verdict: Verdict,
    /// Its levels, ascending, each with all its measurements.
    pub rows: Vec<Row>,
    /// The last thing that went wrong, one line without secrets.
    pub last_error: Option<String>,
    /// What the budgets of all targets allow, requests a second; `None`: unlimited.
    pub pace: Option<f64>,
}

impl Found {
    /// What the exit carries, if that was found out.
    pub fn carries(&self) -> Option<u32> {
        match self.verdict {
            Verdict::Knee { carries, .. } | Verdict::NoKnee { carries } => Some(carries),
            Verdict::None(_) => None,
        }
    }

    /// The verdict in one sentence, without a stop at its end.
    pub fn sentence(&self) -> String {
        match self.verdict {
            Verdict::Knee {
                carries,
                knee,
                reason,
            } => self.of_knee(carries, knee, reason),
            Verdict::NoKnee { carries } => format!("no knee: it carries ≥ {carries}"),
            Verdict::None(obstacle) => format!("no verdict: {}", self.of_obstacle(obstacle)),
        }
    }

    fn row(&self, concurrency: u32) -> Option<&Row> {
        self.rows.iter().find(|row| row.concurrency == concurrency)
    }

    fn of_knee(&self, carries: u32, knee: u32, reason: Reason) -> String {
        let (at, below) = (self.row(knee), self.row(carries));
        let figure = |of: fn(&Row) -> f64, row: Option<&Row>| row.map_or(0.0, of);
        let what = match reason {
            Reason::Hard => format!(
                "{} requests were refused, none at {carries}",
                at.map_or(0, |row| row.refused)
            ),
            Reason::Err => format!(
                "{} requests failed",
                at.map_or(0, |row| row.errors + row.refused)
            ),
            Reason::Latency => format!(
                "answers take {:.1} times as long as one at a time",
                at.and_then(|row| row.ratio).unwrap_or(0.0)
            ),
            Reason::Plateau => format!(
                "{:.1} answers a second, against {:.1} at {carries}",
                figure(|row| row.goodput, at),
                figure(|row| row.goodput, below)
            ),
        };
        format!("knee at {knee} ({}): {what}", reason.as_str())
    }

    fn of_obstacle(&self, obstacle: Obstacle) -> String {
        let error = match &self.last_error {
            Some(error) => format!(" (last: {error})"),
            None => String::new(),
        };
        match obstacle {
            Obstacle::Exit => format!("the exit does not serve{error}"),
            Obstacle::Target => format!("the target fails{error}"),
            Obstacle::Unclear => {
                format!("nothing comes of most requests, the exit's or the target's fault{error}")
            }
            Obstacle::Faulty => {
                format!("one request at a time fails too often already{error}")
            }
            Obstacle::Throttled => format!(
                "the target answers 429: its own limit is what binds, not the exit; give a lower \
                 --rate, or a target of your own{error}"
            ),
            Obstacle::TooSlow => "the target is too slow to be measured: a level would take more \
                                  than a minute and a half; choose one that answers within a second"
                .to_owned(),
            Obstacle::Silent => {
                "nothing came in time to measure a level: the exit or the target keeps \
                                 silent, or is too slow; try a target that answers within a second"
                    .to_owned()
            }
            Obstacle::Unstable => "unstable: one request at a time took another time at the end \
                                   than at the start; probe again at a quieter time"
                .to_owned(),
            Obstacle::Budget { level, needs } => match self.pace {
                Some(pace) => format!(
                    "the rate binds, not the exit: {level} at a time take {needs:.0} requests a \
                     second, and the budget allows {pace:.0}; give --own-target if the target is \
                     yours, a higher --rate, or more --target at other sites"
                ),
                None => format!(
                    "the settings file's per_origin binds, not the exit: it allows fewer than \
                     {level} at a time"
                ),
            },
            Obstacle::Spent => {
                "too few requests are left for the next level: raise --max-requests".to_owned()
            }
        }
    }
}
