//! The ladder: which level is measured next, and when enough is known.
//!
//! Owns the order (warm-up, levels from below, the baseline again after level 4 and at the end,
//! one bisection step under the knee), what is measured again in doubt, and the bound on
//! requests. A pure state machine: [`Ladder::next`] says what to measure, [`Ladder::take`] takes
//! what came. Leaves to `scope` which levels there are, to `level` which samples count and to `knee`
//! what they mean.
//!
//! Invariant: the steps it asks for never take more requests than it was told are left.

use super::knee::{Below, Finding, Reason, Shift, judge};
use super::level::{End, MOST, Measured, Plan, REFUSALS};
use super::scope::Scope;
use super::verdict::{Obstacle, Verdict};

/// After this level the baseline is measured again.
const CHECK_AFTER: u32 = 4;
/// Requests before the baseline: they find names, open tunnels and fill caches.
const WARM_UP: u32 = 2;
/// A level counts as reached from this share of its concurrency on.
const REACHED: f64 = 0.9;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Measure this level; `rest` are requests at the same concurrency that come after it.
    Measure {
        /// Which.
        plan: Plan,
        /// See above.
        rest: u32,
    },
    /// No more.
    Done(Verdict),
}

/// What the level that was asked for last is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    WarmUp,
    Base,
    Level(u32),
    Bisection(u32),
    /// Level 1 again, to see whether it moved.
    Check,
    /// A level again, because the one in doubt is compared with it, or is it.
    Again(u32),
}

/// See the module's text.
pub(super) struct Ladder {
    scope: Scope,
    role: Option<Role>,
    base: Option<Measured>,
    /// Levels above 1 as measured, repetitions included.
    measured: Vec<Measured>,
    /// Levels that are carried, ascending.
    good: Vec<u32>,
    knee: Option<(u32, Reason)>,
    /// A level that looks like a knee (why) or good, and may be the other.
    doubt: Option<(u32, Option<Reason>)>,
    bisected: bool,
    /// The baseline had moved when it was looked at last, so it is looked at once more.
    moved: bool,
    /// The baseline was looked at again on the way up.
    checked: bool,
    ended: Option<Obstacle>,
}

impl Ladder {
    pub(super) fn new(scope: Scope) -> Ladder {
        Ladder {
            scope,
            role: None,
            base: None,
            measured: Vec::new(),
            good: Vec::new(),
            knee: None,
            doubt: None,
            bisected: false,
            moved: false,
            checked: false,
            ended: None,
        }
    }

    /// Most requests that a whole ladder takes where nothing is in doubt.
    pub(super) fn most(scope: &Scope) -> u32 {
        let plan = |level| Plan::of(level, scope.targets).most();
        let levels: u32 = scope.levels.iter().map(|level| plan(*level)).sum();
        let pairs = scope.levels.windows(2);
        let bisections = pairs.map(|pair| plan(u32::midpoint(pair[0], pair[1])));
        levels + bisections.max().unwrap_or(0) + 2 * plan(1) + WARM_UP + scope.targets as u32
    }

    /// What to do, with so many requests left.
    pub(super) fn next(&mut self, left: u32) -> Step {
        if let Some(obstacle) = self.ended {
            return Step::Done(Verdict::None(obstacle));
        }
        if let Some((level, reason)) = self.doubt.take() {
            let spare = match reason {
                Some(_) => left,
                None => left.saturating_sub(self.still_to_climb(level)),
            };
            if let Some(again) = self.worth_repeating(level, spare) {
                self.doubt = Some((level, reason));
                return self.ask(Role::Again(again));
            }
            match reason {
                Some(reason) => self.knee_at(level, reason),
                None => self.carried(level),
            }
        }
        let Some(role) = self.next_role(left) else {
            return Step::Done(self.verdict());
        };
        if self.cost(role) + self.reserve(role) > left {
            self.ended = Some(Obstacle::Spent);
            return Step::Done(Verdict::None(Obstacle::Spent));
        }
        if let Some(obstacle) = self.beyond_budget(role) {
            self.ended = Some(obstacle);
            return Step::Done(Verdict::None(obstacle));
        }
        self.ask(role)
    }

    fn next_role(&self, left: u32) -> Option<Role> {
        match (self.role, &self.base) {
            (None, _) => return Some(Role::WarmUp),
            (_, None) => return Some(Role::Base),
            _ => {}
        }
        if self.moved {
            return Some(Role::Check);
        }
        let last = self.last_good();
        match self.knee {
            Some((knee, _)) => {
                let middle = u32::midpoint(last, knee);
                let role = Role::Bisection(middle);
                if !self.bisected && middle > last && self.affords(role, left) {
                    return Some(role);
                }
            }
            None => {
                if last >= CHECK_AFTER && !self.checked {
                    return Some(Role::Check);
                }
                let higher = self.scope.levels.iter().find(|level| **level > last);
                if let Some(level) = higher {
                    return Some(Role::Level(*level));
                }
            }
        }
        (self.role != Some(Role::Check)).then_some(Role::Check)
    }

    fn affords(&self, role: Role, left: u32) -> bool {
        self.cost(role) + self.reserve(role) <= left
    }

    /// Of the level in doubt and the one it is compared with, the one with fewer samples, if
    /// it may have more and there are requests for it.
    fn worth_repeating(&self, level: u32, left: u32) -> Option<u32> {
        let samples = |level: u32| self.at(level).map_or(0, Measured::ended);
        let mut pair = [self.last_good(), level];
        pair.sort_by_key(|level| samples(*level));
        let again = |l: &u32| {
            let role = Role::Again(*l);
            samples(*l) + self.plan(role).samples <= MOST && self.affords(role, left)
        };
        pair.into_iter().find(again)
    }

    /// Requests for the levels above and the look at the baseline on the way.
    fn still_to_climb(&self, level: u32) -> u32 {
        let above = self.scope.levels.iter().filter(|l| **l > level);
        let climb: u32 = above.map(|l| self.cost(Role::Level(*l))).sum();
        climb + self.cost(Role::Check)
    }

    fn plan(&self, role: Role) -> Plan {
        let targets = self.scope.targets;
        match role {
            Role::WarmUp => Plan {
                samples: WARM_UP.max(targets as u32),
                ..Plan::of(1, targets)
            },
            Role::Base | Role::Check => Plan::of(1, targets),
            Role::Level(level) | Role::Bisection(level) | Role::Again(level) => Plan {
                refusals: if self.refused() > 0 {
                    u32::MAX
                } else {
                    REFUSALS
                },
                ..Plan::of(level, targets)
            },
        }
    }

    fn cost(&self, role: Role) -> u32 {
        self.plan(role).most()
    }

    /// What has to be left after it: the last look at the baseline.
    fn reserve(&self, role: Role) -> u32 {
        match role {
            Role::Check => 0,
            _ => self.cost(Role::Check),
        }
    }

    fn ask(&mut self, role: Role) -> Step {
        self.role = Some(role);
        let rest = match role {
            Role::WarmUp => self.cost(Role::Base),
            _ => 0,
        };
        Step::Measure {
            plan: self.plan(role),
            rest,
        }
    }

    /// Takes what was measured.
    pub(super) fn take(&mut self, found: Measured) {
        let Some(role) = self.role else { return };
        self.ended = obstacle(&found, role, self.refused());
        if self.ended.is_some() {
            return;
        }
        match role {
            Role::WarmUp => {
                if found.answers == 0 {
                    self.ended = Some(Obstacle::of(&found));
                }
            }
            Role::Base => {
                self.good = vec![1];
                self.base = Some(found);
                self.look_at_base();
            }
            Role::Check => self.check(found),
            Role::Level(level) | Role::Bisection(level) => {
                self.bisected |= role == Role::Bisection(level);
                self.measured.push(found);
                self.settle(level);
            }
            Role::Again(level) => {
                match (level, &mut self.base) {
                    (1, Some(base)) => base.add(&found),
                    _ => {
                        let same = self.measured.iter_mut().find(|m| m.concurrency == level);
                        if let Some(same) = same {
                            same.add(&found);
                        }
                    }
                }
                if let Some((level, _)) = self.doubt.take() {
                    self.settle(level);
                }
            }
        }
    }

    fn settle(&mut self, level: u32) {
        let (Some(base), Some(last), Some(found)) =
            (&self.base, self.at(self.last_good()), self.at(level))
        else {
            return;
        };
        let good = self.good.iter().filter_map(|level| self.at(*level));
        let (unclear, ended) = good.fold((0, 0), |(unclear, ended), m| {
            (unclear + m.unclear, ended + m.ended())
        });
        let full = self.knee.filter(|(knee, reason)| {
            *knee > level && matches!(reason, Reason::Plateau | Reason::Latency)
        });
        let below = Below {
            base,
            last,
            full: full.and_then(|(knee, _)| self.at(knee)),
            refused: self.refused(),
            unclear: f64::from(unclear) / f64::from(ended.max(1)),
        };
        let finding = judge(found, &below);
        let level_reached = Ladder::is_reached(found);
        match finding {
            Finding::Good | Finding::Unsure if !level_reached => {
                self.ended = Some(self.unreached(level));
            }
            Finding::Good => self.carried(level),
            Finding::Knee(Reason::Plateau) | Finding::Doubt(Reason::Plateau) if !level_reached => {
                self.ended = Some(self.unreached(level));
            }
            Finding::Knee(reason) => self.knee_at(level, reason),
            Finding::Doubt(reason) => self.doubt = Some((level, Some(reason))),
            Finding::Unsure => self.doubt = Some((level, None)),
        }
    }

    fn carried(&mut self, level: u32) {
        self.good.push(level);
        self.good.sort_unstable();
    }

    fn knee_at(&mut self, level: u32, reason: Reason) {
        self.knee = Some((level, reason));
    }

    fn look_at_base(&mut self) {
        let Some(base) = &self.base else { return };
        let failed = base.exit_faults + base.refused + base.unclear;
        if failed >= 3 && f64::from(failed) > 0.1 * f64::from(base.ended()) {
            self.ended = Some(Obstacle::Faulty);
        } else if !Ladder::is_reached(base) {
            self.ended = Some(self.unreached(1));
        }
    }

    fn check(&mut self, found: Measured) {
        let Some(base) = &mut self.base else { return };
        let is_second = std::mem::take(&mut self.moved);
        let shift = Shift::between(base, &found);
        match shift {
            Some(shift) if shift.is_drift() && !is_second => self.moved = true,
            Some(shift) if shift.is_drift() && shift.is_sure() => {
                self.ended = Some(Obstacle::Unstable);
            }
            _ => {
                base.add(&found);
                self.checked = true;
            }
        }
    }

    /// The budget does not allow what this step takes.
    fn beyond_budget(&self, role: Role) -> Option<Obstacle> {
        let (Role::Level(level) | Role::Bisection(level)) = role else {
            return None;
        };
        let needs = self.needs(level)?;
        (needs > self.scope.pace?).then_some(Obstacle::Budget { level, needs })
    }

    /// Requests a second at a level, if answers take as long as at the baseline.
    fn needs(&self, level: u32) -> Option<f64> {
        let base = self.base.as_ref()?;
        let per_worker = base.goodput() / base.reached();
        Some(per_worker * f64::from(level))
    }

    /// All its workers were busy, and did not wait for a budget.
    fn is_reached(level: &Measured) -> bool {
        level.reached() >= REACHED * f64::from(level.concurrency)
    }

    fn unreached(&self, level: u32) -> Obstacle {
        Obstacle::Budget {
            level,
            needs: self.needs(level).unwrap_or(0.0),
        }
    }

    fn verdict(&self) -> Verdict {
        let carries = self.last_good();
        match self.knee {
            Some((knee, reason)) => Verdict::Knee {
                carries,
                knee,
                reason,
            },
            None => Verdict::NoKnee { carries },
        }
    }

    fn last_good(&self) -> u32 {
        self.good.last().copied().unwrap_or(1)
    }

    fn refused(&self) -> u32 {
        let good = self.good.iter().filter_map(|level| self.at(*level));
        good.map(|measured| measured.refused).sum()
    }

    fn at(&self, level: u32) -> Option<&Measured> {
        match level {
            1 => self.base.as_ref(),
            _ => self.measured.iter().find(|m| m.concurrency == level),
        }
    }

    /// The baseline and every other level, as measured so far, ascending.
    pub(super) fn levels(&self) -> Vec<&Measured> {
        let mut all: Vec<&Measured> = self.base.iter().chain(&self.measured).collect();
        all.sort_by_key(|level| level.concurrency);
        all
    }
}

/// What a level's early end means, if it is the end of the ladder.
fn obstacle(found: &Measured, role: Role, refused_below: u32) -> Option<Obstacle> {
    match found.end {
        End::Enough => None,
        End::Refusals if role == Role::Base || role == Role::WarmUp || role == Role::Check => {
            Some(Obstacle::Faulty)
        }
        End::Refusals => None,
        End::Throttled => Some(Obstacle::Throttled),
        End::TooSlow if found.failed() > found.answers => Some(Obstacle::of(found)),
        End::TooSlow if found.answers == 0 => Some(Obstacle::Silent),
        End::TooSlow => Some(Obstacle::TooSlow),
        End::Failing if found.refused >= 2 && refused_below == 0 => None,
        // Too much for the exit: that is a knee, and not the end of everything.
        End::Failing if matches!(role, Role::Level(_) | Role::Bisection(_) | Role::Again(2..)) => {
            Some(Obstacle::of(found)).filter(|whose| *whose == Obstacle::Target)
        }
        End::Failing => Some(Obstacle::of(found)),
    }
}
