//! What levels say about an exit: pure statistics, and the four criteria of a knee.
//!
//! Owns the comparison of two levels and the verdict on one level given those below it. Leaves
//! to `ladder` what is measured next. Every estimate has an interval beside it: a criterion
//! that chance alone could have met is a [`Finding::Doubt`], and `ladder` measures once more
//! before it believes it. Without that, a flat exit whose times spread widely (σ of the
//! logarithm 0.8) shows a false plateau in one probe of seventeen.
//!
//! In a closed loop, concurrency is goodput times mean latency. So a plateau of the goodput and
//! a doubled latency are two views of one queue; the plateau also shows queues that serve some
//! requests at full speed and let the others wait, which no median sees.

use super::level::{Measured, REFUSALS};

/// Goodput has to grow by this factor when the concurrency doubles.
const LEAST_GROWTH: f64 = 1.25;
/// The median latency may be this many times the baseline's …
const MOST_RATIO: f64 = 2.0;
/// … and the lower end of its interval this many times.
const MOST_LOWER: f64 = 1.6;
/// Faults of the exit that are too many: so many …
const FAULTS: u32 = 3;
/// … and this share of a level's requests.
const FAULT_SHARE: f64 = 0.05;
/// Faults that nobody can be blamed for count as the exit's where their share is this many
/// times that of the levels below: the site's own would come at every level.
const UNCLEAR_RISE: f64 = 3.0;
/// Faults beyond doubt. At 1 % of background errors, three in a level come once in 300 levels.
const FAULTS_SURELY: u32 = 6;
/// A plateau is beyond doubt when full growth (twice as much from twice the concurrency) is
/// this many standard errors away.
const SURE: f64 = 3.3;
/// A plateau may hide where the growth is within this many standard errors of the least.
const UNSURE: f64 = 1.0;
/// Half width of the order-statistics interval of a median, in standard errors: the difference
/// of two such medians is then within the sum of both with 95 % (1.96 / √2).
const HALF_WIDTH: f64 = 1.386;
/// The baseline may move between these factors within a probe.
const DRIFT: (f64, f64) = (0.67, 1.5);

/// Why a level is a knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The exit refuses what is above a limit.
    Hard,
    /// The exit fails too often.
    Err,
    /// Answers take too long.
    Latency,
    /// More at a time brings no more answers.
    Plateau,
}

impl Reason {
    /// As shown and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Hard => "HARD",
            Reason::Err => "ERR",
            Reason::Latency => "LATENCY",
            Reason::Plateau => "PLATEAU",
        }
    }
}

/// What a level is found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The exit carries it.
    Good,
    /// It does not.
    Knee(Reason),
    /// It looks like a knee, and chance could look the same.
    Doubt(Reason),
    /// It looks good, and a queue could look the same.
    Unsure,
}

/// The levels that a new one is compared with.
#[derive(Clone, Copy)]
pub(super) struct Below<'a> {
    /// Level 1, all its measurements together.
    pub base: &'a Measured,
    /// The last good one.
    pub last: &'a Measured,
    /// The level above that is a plateau or too slow, if one was found: what the exit brings
    /// when it is full.
    pub full: Option<&'a Measured>,
    /// Refusals of all good levels.
    pub refused: u32,
    /// Share of unclear faults in all good levels.
    pub unclear: f64,
}

/// Whether the exit carries `level`.
pub(super) fn judge(level: &Measured, below: &Below<'_>) -> Finding {
    if level.refused >= REFUSALS && below.refused == 0 {
        return Finding::Knee(Reason::Hard);
    }
    let faults = faults(level, below);
    if faults >= FAULTS && f64::from(faults) >= FAULT_SHARE * f64::from(level.ended()) {
        // A limit that is kept by closing connections looks like faults, all of one form.
        let reason = if 2 * level.turned_away > faults {
            Reason::Hard
        } else {
            Reason::Err
        };
        return if faults >= FAULTS_SURELY {
            Finding::Knee(reason)
        } else {
            Finding::Doubt(reason)
        };
    }
    let growth = match below.full {
        None => Growth::between(below.last, level),
        Some(full) => Growth::with(below.last, level, full),
    };
    let shift = Shift::between(below.base, level);
    if growth.factor < LEAST_GROWTH {
        return if growth.is_surely_not_full() {
            Finding::Knee(Reason::Plateau)
        } else {
            Finding::Doubt(Reason::Plateau)
        };
    }
    match shift {
        Some(shift) if shift.lower > MOST_LOWER => Finding::Knee(Reason::Latency),
        Some(shift) if shift.ratio > MOST_RATIO => Finding::Doubt(Reason::Latency),
        _ if growth.may_be_none() => Finding::Unsure,
        _ => Finding::Good,
    }
}

/// Faults that count against the exit. Refusals do where they came at lower levels, too: then
/// they are no limit on how much it carries.
fn faults(level: &Measured, below: &Below<'_>) -> u32 {
    let share = f64::from(level.unclear) / f64::from(level.ended().max(1));
    let unclear = if share >= UNCLEAR_RISE * below.unclear {
        level.unclear
    } else {
        0
    };
    level.exit_faults + level.refused + unclear
}

/// How the goodput grew from one level to a higher one, per doubling of the concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// 2 is full growth, 1 none.
    pub factor: f64,
    /// Standard error of the factor's logarithm.
    error: f64,
}

impl Growth {
    pub(super) fn between(lower: &Measured, higher: &Measured) -> Growth {
        let doublings = (f64::from(higher.concurrency) / f64::from(lower.concurrency))
            .log2()
            .max(1e-3);
        let gained = (higher.goodput().max(1e-9) / lower.goodput().max(1e-9)).ln();
        // Completions of a closed loop are sums of service times: the error of their rate is
        // the spread of the times over the root of their number.
        let variance = spread(lower) + spread(higher);
        Growth {
            factor: (gained / doublings).exp(),
            error: variance.sqrt() / doublings,
        }
    }

    /// As [`Growth::between`], for a level under one that is `full`. An exit that is full at
    /// `higher` brings the same there as at `full`, so both are evidence; one that is not brings
    /// more at `full` only, which is growth all the same.
    pub(super) fn with(lower: &Measured, higher: &Measured, full: &Measured) -> Growth {
        let mut both = higher.clone();
        both.add(full);
        Growth::between(lower, &both)
    }

    fn may_be_none(&self) -> bool {
        self.factor.ln() - UNSURE * self.error < LEAST_GROWTH.ln()
    }

    fn is_surely_not_full(&self) -> bool {
        self.factor.ln() + SURE * self.error < 2_f64.ln()
    }
}

/// Squared relative error of a level's mean time; targets are compared with themselves.
fn spread(level: &Measured) -> f64 {
    let (mut squares, mut count) = (0.0, 0_usize);
    for times in level.times.iter().filter(|times| times.len() > 1) {
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        squares += times
            .iter()
            .map(|time| (time / mean - 1.0).powi(2))
            .sum::<f64>();
        count += times.len() - 1;
    }
    if count == 0 {
        return f64::INFINITY;
    }
    squares / (count as f64).powi(2)
}

/// How many times longer answers take at a level than at the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shift {
    /// Ratio of the medians per target, the median over targets.
    pub ratio: f64,
    /// Ends of its interval by order statistics.
    pub lower: f64,
    /// See `lower`.
    pub upper: f64,
}

impl Shift {
    /// `None`: no target has answers in both.
    pub(super) fn between(base: &Measured, level: &Measured) -> Option<Shift> {
        let pairs = base.times.iter().zip(&level.times);
        let pairs = pairs.filter(|(base, level)| !base.is_empty() && !level.is_empty());
        let (mut ratios, mut own, mut other) = (Vec::new(), Vec::new(), Vec::new());
        for (base, level) in pairs {
            let (from, to) = (log_median(base), log_median(level));
            ratios.push(to - from);
            own.extend(level.iter().map(|time| time.ln() - to));
            other.extend(base.iter().map(|time| time.ln() - from));
        }
        if ratios.is_empty() {
            return None;
        }
        ratios.sort_by(f64::total_cmp);
        let ratio = middle(&ratios);
        let ((below, above), (base_below, base_above)) = (interval(own), interval(other));
        Some(Shift {
            ratio: ratio.exp(),
            lower: (ratio + below - base_above).exp(),
            upper: (ratio + above - base_below).exp(),
        })
    }

    /// Whether a second baseline differs from the first by more than a probe bears.
    pub(super) fn is_drift(&self) -> bool {
        !(DRIFT.0..=DRIFT.1).contains(&self.ratio)
    }

    /// Whether chance alone hardly makes it differ at all.
    pub(super) fn is_sure(&self) -> bool {
        self.lower > 1.0 || self.upper < 1.0
    }
}

fn log_median(times: &[f64]) -> f64 {
    let mut logs: Vec<f64> = times.iter().map(|time| time.max(1e-9).ln()).collect();
    logs.sort_by(f64::total_cmp);
    middle(&logs)
}

/// The median of what is sorted and not empty.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        f64::midpoint(sorted[half - 1], sorted[half])
    }
}

/// Interval of the median by order statistics: ranks `n/2 ± HALF_WIDTH · √n / 2`.
fn interval(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let reach = HALF_WIDTH * n.sqrt() / 2.0;
    let low = (n / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((n / 2.0 + reach).ceil() as usize).min(values.len() - 1);
    (values[low], values[high])
}

#[cfg(test)]
mod tests {
    use super::super::level::{Level, Outcome, Plan};
    use super::*;
    use crate::model::Time;

    /// A level whose workers all take so long, by target in turn, and where these failed.
    fn level(concurrency: u32, millis: &[u64], failed: &[(Outcome, u32)]) -> Measured {
        let plan = Plan::of(concurrency, millis.len());
        let mut level = Level::new(plan, Time::ZERO);
        let mut free: Vec<Time> = vec![Time::ZERO; concurrency as usize];
        let mut bad = failed
            .iter()
            .flat_map(|(outcome, times)| (0..*times).map(|_| *outcome));
        // Workers in step: they begin together and end together.
        while level.wants_more() {
            let mut begun = Vec::new();
            for at in &mut free {
                let target = level.next_target();
                level.start(*at);
                begun.push((*at, target));
                *at = *at + std::time::Duration::from_millis(millis[target]);
            }
            for ((start, target), end) in begun.into_iter().zip(&free) {
                let outcome = bad.next().unwrap_or(Outcome::Answer);
                level.end(start, target, outcome, *end);
            }
        }
        level.finish()
    }

    fn found(level: &Measured, base: &Measured, unclear: f64) -> Finding {
        let below = Below {
            base,
            last: base,
            full: None,
            refused: base.refused,
            unclear,
        };
        judge(level, &below)
    }

    #[test]
    fn each_target_is_compared_with_itself() {
        let base = level(1, &[10, 1_000], &[]);
        let shift = Shift::between(&base, &level(2, &[30, 1_000], &[])).unwrap();
        // The logarithms' median is between none and three times.
        assert!((shift.ratio - 3_f64.sqrt()).abs() < 1e-6, "{shift:?}");
        assert!(shift.lower <= shift.ratio && shift.ratio <= shift.upper);
        assert!(
            Shift::between(&base, &level(2, &[10, 1_000], &[]))
                .unwrap()
                .ratio
                < 1.01
        );
    }

    #[test]
    fn growth_is_counted_per_doubling() {
        let base = level(1, &[100], &[]);
        let growth = |concurrency, millis| {
            Growth::between(&base, &level(concurrency, &[millis], &[])).factor
        };
        assert!((growth(2, 100) - 2.0).abs() < 0.1, "{}", growth(2, 100));
        assert!((growth(4, 100) - 2.0).abs() < 0.1);
        assert!((growth(4, 400) - 1.0).abs() < 0.1);
        assert!((growth(4, 200) - 2_f64.sqrt()).abs() < 0.1);
    }

    #[test]
    fn refusals_are_a_limit_only_where_none_came_below() {
        let base = level(1, &[100], &[]);
        let refusing = level(2, &[100], &[(Outcome::Refused, 2)]);
        assert_eq!(found(&refusing, &base, 0.0), Finding::Knee(Reason::Hard));
        let refused_before = level(1, &[100], &[(Outcome::Refused, 1)]);
        assert_ne!(
            found(&refusing, &refused_before, 0.0),
            Finding::Knee(Reason::Hard)
        );
    }

    #[test]
    fn three_faults_in_a_level_are_in_doubt_and_six_are_not() {
        let base = level(1, &[100], &[]);
        let faulty = |kind, times| found(&level(2, &[100], &[(kind, times)]), &base, 0.0);
        assert_eq!(faulty(Outcome::ExitFault, 2), Finding::Good);
        assert_eq!(faulty(Outcome::ExitFault, 3), Finding::Doubt(Reason::Err));
        assert_eq!(faulty(Outcome::Unclear, 3), Finding::Doubt(Reason::Err));
        assert_eq!(faulty(Outcome::TargetFault, 3), Finding::Good);
        let many = level(2, &[100], &[(Outcome::Answer, 8), (Outcome::ExitFault, 6)]);
        assert_eq!(found(&many, &base, 0.0), Finding::Knee(Reason::Err));
        // The site's own faults come at every level.
        let unclear = level(2, &[100], &[(Outcome::Unclear, 4)]);
        assert_eq!(found(&unclear, &base, 0.1), Finding::Good);
    }

    #[test]
    fn a_latency_that_grows_while_the_goodput_does_is_a_knee_at_twice_the_baseline() {
        let (base, last) = (level(1, &[100], &[]), level(2, &[140], &[]));
        let judged = |millis| {
            let below = Below {
                base: &base,
                last: &last,
                full: None,
                refused: 0,
                unclear: 0.0,
            };
            judge(&level(4, &[millis], &[]), &below)
        };
        assert_eq!(judged(150), Finding::Good);
        assert_eq!(judged(210), Finding::Knee(Reason::Latency));
        assert_eq!(judged(280), Finding::Knee(Reason::Plateau));
    }
}
