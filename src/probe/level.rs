//! One level of the ladder as it is measured: so many closed-loop workers, and what they saw.
//!
//! Owns which samples count, when a level has enough and when it ends early. Sans-IO: whoever
//! sends the requests (`run`, or a test's simulated exit) tells when each began and how it
//! ended. Leaves to `knee` what the figures mean, and to `ladder` which level comes next.
//!
//! Invariants: a level never asks for more requests than [`Plan::most`]; a sample counts only if
//! all workers were busy from its beginning to its end.

use std::time::Duration;

use crate::model::Time;

/// Fewest samples of a level: the median of 30 is within 20 % where times spread like most
/// sites' (σ of the logarithm 0.8).
const LEAST: u32 = 30;
/// Samples per worker, so that each of many workers goes round a few times.
const PER_WORKER: u32 = 4;
/// Most samples of a level, before they are rounded up to whole rounds.
pub(super) const MOST: u32 = 120;
/// Longest time of one level. Targets up to some 3 s can be measured within it.
const LEVEL_TIME: Duration = Duration::from_secs(90);
/// When it is first looked at whether the level can end in time. A cold start is over by then,
/// and the usual time limit for reaching the exit has told what it has to tell.
const FIRST_LOOK: Duration = Duration::from_secs(12);
/// This many failures, if they are more than half of what came, end a level.
const FAILURES: u32 = 6;
/// Refusals that show a hard limit where none came below.
pub(super) const REFUSALS: u32 = 2;

/// What a level is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Workers; with several exits, over all of them.
    pub concurrency: u32,
    /// Samples that count.
    pub samples: u32,
    /// Targets, visited in turn.
    pub targets: usize,
    /// Refusals that end it.
    pub refusals: u32,
}

impl Plan {
    /// The level with so many workers.
    pub(super) fn of(concurrency: u32, targets: usize) -> Plan {
        let wanted = (PER_WORKER * concurrency).clamp(LEAST, MOST);
        Plan {
            concurrency,
            // Whole rounds of workers and targets, so that no worker and no target weighs more.
            samples: wanted
                .next_multiple_of(concurrency)
                .next_multiple_of(targets.max(1) as u32),
            targets: targets.max(1),
            refusals: REFUSALS,
        }
    }

    /// Most requests it takes: each worker's first one and those cut off at the end do not count.
    pub(super) fn most(&self) -> u32 {
        self.samples + 2 * self.concurrency - 1
    }
}

/// How one request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// An answer of the target came through.
    Answer,
    /// The exit refused because too much was in flight.
    Refused,
    /// The exit's fault.
    ExitFault,
    /// A fault that may be the exit's or the target's.
    Unclear,
    /// The same, in the form in which limits without words show: a new connection was closed or
    /// reset before anything came, while others were in flight.
    TurnedAway,
    /// The target's fault.
    TargetFault,
    /// The target asks for less (429).
    Throttled,
}

/// Why a level ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has its samples.
    Enough,
    /// Enough refusals for a hard limit.
    Refusals,
    /// More than half failed.
    Failing,
    /// The target asked for less.
    Throttled,
    /// It would take too long.
    TooSlow,
}

/// A level under way.
pub(super) struct Level {
    plan: Plan,
    begun: Time,
    busy: u32,
    sent: u32,
    /// All workers are busy since then.
    all_busy: Option<Time>,
    /// Time of all workers while all were busy, in seconds.
    worked: f64,
    last_event: Time,
    counted: u32,
    end: Option<End>,
    found: Measured,
}

impl Level {
    pub(super) fn new(plan: Plan, now: Time) -> Level {
        Level {
            plan,
            begun: now,
            busy: 0,
            sent: 0,
            all_busy: None,
            worked: 0.0,
            last_event: now,
            counted: 0,
            end: None,
            found: Measured::none(plan.concurrency, plan.targets),
        }
    }

    /// Whether a free worker may send another request.
    pub(super) fn wants_more(&self) -> bool {
        self.end.is_none() && self.busy < self.plan.concurrency && self.sent < self.plan.most()
    }

    /// Which target the next request is for.
    pub(super) fn next_target(&self) -> usize {
        self.sent as usize % self.plan.targets
    }

    /// A request begins.
    pub(super) fn start(&mut self, now: Time) {
        self.pass(now);
        self.busy += 1;
        self.sent += 1;
        if self.busy == self.plan.concurrency && self.all_busy.is_none() {
            self.all_busy = Some(now);
        }
    }

    /// A request that began at `begun` for that target has ended.
    pub(super) fn end(&mut self, begun: Time, target: usize, outcome: Outcome, now: Time) {
        self.pass(now);
        self.busy -= 1;
        self.found.count(outcome);
        if self.end.is_some() {
            return;
        }
        if let Some(since) = self.all_busy {
            self.found.seconds = (now - since).as_secs_f64();
            self.found.completed += u32::from(outcome == Outcome::Answer);
            if begun > since {
                self.counted += 1;
                if outcome == Outcome::Answer {
                    self.found.times[target].push((now - begun).as_secs_f64());
                }
            }
        }
        self.end = self.ended_by(outcome);
    }

    fn ended_by(&self, outcome: Outcome) -> Option<End> {
        let found = &self.found;
        let failed = found.failed();
        if outcome == Outcome::Throttled {
            Some(End::Throttled)
        } else if found.refused >= self.plan.refusals {
            Some(End::Refusals)
        } else if failed >= FAILURES && 2 * failed > failed + found.answers {
            Some(End::Failing)
        } else if self.counted >= self.plan.samples
            || (self.sent >= self.plan.most() && self.busy == 0)
        {
            Some(End::Enough)
        } else {
            None
        }
    }

    /// When [`Level::look`] has something to see.
    pub(super) fn look_at(&self, now: Time) -> Time {
        if now - self.begun < FIRST_LOOK {
            self.begun + FIRST_LOOK
        } else {
            self.begun + LEVEL_TIME
        }
    }

    /// Ends the level if it cannot end in time by itself. `rest` are requests that are to come
    /// after it at the same concurrency.
    pub(super) fn look(&mut self, rest: u32, now: Time) {
        let passed = now - self.begun;
        if self.end.is_some() || passed < FIRST_LOOK {
            return;
        }
        let ended = self.found.failed() + self.found.answers;
        let all = f64::from(self.plan.most() + rest) / f64::from(ended + 1);
        if passed >= LEVEL_TIME || passed.mul_f64(all) > LEVEL_TIME {
            self.end = Some(End::TooSlow);
        }
    }

    /// Nothing more is to be sent; what is still under way does not count.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Whether it has ended in this way.
    pub(super) fn has_ended_with(&self, end: End) -> bool {
        self.end == Some(end)
    }

    /// What was measured.
    pub(super) fn finish(self) -> Measured {
        let mut found = self.found;
        found.end = self.end.unwrap_or(End::Enough);
        found.sent = self.sent;
        found.worked = self.worked;
        found
    }

    fn pass(&mut self, now: Time) {
        if self.all_busy.is_some() && self.end.is_none() {
            self.worked += f64::from(self.busy) * (now - self.last_event).as_secs_f64();
        }
        self.last_event = now;
    }
}

/// What a level showed.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub concurrency: u32,
    /// Seconds of each sample, by target.
    pub times: Vec<Vec<f64>>,
    /// Answers that came while all workers were busy …
    pub completed: u32,
    /// … and how long that was.
    pub seconds: f64,
    /// Seconds of work of all workers in that time.
    pub worked: f64,
    pub sent: u32,
    pub answers: u32,
    pub refused: u32,
    pub exit_faults: u32,
    pub unclear: u32,
    /// Those of `unclear` that were turned away.
    pub turned_away: u32,
    pub target_faults: u32,
    pub end: End,
}

impl Measured {
    fn none(concurrency: u32, targets: usize) -> Measured {
        Measured {
            concurrency,
            times: vec![Vec::new(); targets],
            completed: 0,
            seconds: 0.0,
            worked: 0.0,
            sent: 0,
            answers: 0,
            refused: 0,
            exit_faults: 0,
            unclear: 0,
            turned_away: 0,
            target_faults: 0,
            end: End::Enough,
        }
    }

    fn count(&mut self, outcome: Outcome) {
        self.turned_away += u32::from(outcome == Outcome::TurnedAway);
        let counter = match outcome {
            Outcome::Answer => &mut self.answers,
            Outcome::Refused => &mut self.refused,
            Outcome::ExitFault => &mut self.exit_faults,
            Outcome::Unclear | Outcome::TurnedAway => &mut self.unclear,
            Outcome::TargetFault | Outcome::Throttled => &mut self.target_faults,
        };
        *counter += 1;
    }

    /// Requests that brought no answer.
    pub(super) fn failed(&self) -> u32 {
        self.refused + self.exit_faults + self.unclear + self.target_faults
    }

    /// Requests that ended.
    pub(super) fn ended(&self) -> u32 {
        self.answers + self.failed()
    }

    /// Answers a second.
    pub(super) fn goodput(&self) -> f64 {
        f64::from(self.completed) / self.seconds.max(1e-9)
    }

    /// Requests in flight, on average.
    pub(super) fn reached(&self) -> f64 {
        self.worked / self.seconds.max(1e-9)
    }

    /// Seconds that a share of the answers took at most, all targets together; NaN: no answer.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let mut all: Vec<f64> = self.times.concat();
        all.sort_by(f64::total_cmp);
        let at = (share * all.len() as f64).ceil() as usize;
        all.get(at.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// The same level measured once more.
    pub(super) fn add(&mut self, more: &Measured) {
        for (times, more) in self.times.iter_mut().zip(&more.times) {
            times.extend(more);
        }
        self.completed += more.completed;
        self.seconds += more.seconds;
        self.worked += more.worked;
        self.sent += more.sent;
        self.answers += more.answers;
        self.refused += more.refused;
        self.exit_faults += more.exit_faults;
        self.unclear += more.unclear;
        self.turned_away += more.turned_away;
        self.target_faults += more.target_faults;
        self.end = more.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn samples_count_only_while_all_workers_are_busy() {
        let plan = Plan {
            samples: 4,
            ..Plan::of(2, 1)
        };
        let mut level = Level::new(plan, at(0));
        level.start(at(0));
        // The second worker comes later: from here on all are busy.
        level.start(at(50));
        level.end(at(0), 0, Outcome::Answer, at(100));
        level.start(at(100));
        level.end(at(50), 0, Outcome::Answer, at(150));
        level.start(at(150));
        for (begun, now) in [(100, 200), (150, 250), (200, 300)] {
            level.end(at(begun), 0, Outcome::Answer, at(now));
            level.start(at(now));
        }
        assert!(!level.is_over());
        level.end(at(250), 0, Outcome::Answer, at(350));
        assert!(level.is_over() && !level.wants_more());
        level.end(at(300), 0, Outcome::Answer, at(9_000));
        let found = level.finish();
        assert_eq!(found.times[0].len(), 4, "not the first two, not the last");
        assert!((found.goodput() - 6.0 / 0.3).abs() < 1e-9, "{found:?}");
        assert!((found.reached() - 2.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_level_takes_whole_rounds_and_never_more_than_it_said() {
        for (concurrency, samples) in [(1, 30), (2, 30), (4, 32), (8, 32), (16, 64), (80, 160)] {
            let plan = Plan::of(concurrency, 1);
            assert_eq!(plan.samples, samples);
            let mut level = Level::new(plan, at(0));
            let mut sent = 0;
            // Every request fails in a way that is nobody's: no sample ever counts.
            while level.wants_more() {
                level.start(at(sent));
                sent += 1;
            }
            assert_eq!(sent, u64::from(concurrency));
            assert!(plan.most() <= samples + 2 * concurrency);
        }
        assert_eq!(Plan::of(4, 3).samples % 3, 0);
    }

    #[test]
    fn a_level_that_only_fails_or_is_throttled_ends_early() {
        let end = |outcome: Outcome| {
            let mut level = Level::new(Plan::of(1, 1), at(0));
            while level.wants_more() {
                level.start(at(0));
                level.end(at(0), 0, outcome, at(1));
            }
            let found = level.finish();
            (found.end, found.sent)
        };
        assert_eq!(end(Outcome::Refused), (End::Refusals, 2));
        assert_eq!(end(Outcome::ExitFault), (End::Failing, 6));
        assert_eq!(end(Outcome::Unclear), (End::Failing, 6));
        assert_eq!(end(Outcome::TargetFault), (End::Failing, 6));
        assert_eq!(end(Outcome::Throttled), (End::Throttled, 1));
        assert_eq!(end(Outcome::Answer), (End::Enough, 31));
    }

    #[test]
    fn a_level_that_cannot_end_in_time_is_given_up_at_the_first_look() {
        let mut level = Level::new(Plan::of(1, 1), at(0));
        level.start(at(0));
        assert_eq!(level.look_at(at(0)), at(12_000));
        level.look(0, at(11_999));
        assert!(!level.is_over());
        level.look(0, at(12_000));
        assert_eq!(level.finish().end, End::TooSlow);
        // A cold start of five seconds is no reason.
        let mut level = Level::new(Plan::of(1, 1), at(0));
        for n in 0..10 {
            level.start(at(0));
            level.end(at(0), 0, Outcome::Answer, at(5_000 + 500 * n));
        }
        level.look(0, at(12_000));
        assert!(!level.is_over());
        assert_eq!(level.look_at(at(12_000)), at(90_000));
    }
}
