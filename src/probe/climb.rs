//! The ladder with real requests: closed-loop workers through one exit, or through several.
//!
//! Owns connections and the bound on requests of a whole probe. Leaves every decision to `ladder`
//! and `level`, when a target may be asked to `budgets`, and whose fault a failure is to `judged`.
//! One task owns all state; attempts are spawned and return facts, as in a run.
//!
//! Invariants: no request without its target's budget; not more in flight and not more sockets
//! at an exit than its share of the level; never more requests than the probe may send.

use std::pin::Pin;
use std::time::Duration;

use http::Method;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};
use url::Url;

use super::budgets::{Budgets, Room};
use super::found::{Found, Row};
use super::judged::judged;
use super::ladder::{Ladder, Step};
use super::level::{End, Level, Measured, Outcome, Plan};
use super::scope::{Scope, within};
use super::verdict::Verdict;
use crate::fetch::{Conn, ConnRule, Conns, Fetcher, Request, Seat};
use crate::model::{Attempt, Clock, Codes, Route, Secret, Time};
use crate::schedule::budget::Allowance;

/// How long the last answers of a level are waited for: the next one begins with an idle exit.
const DRAIN: Duration = Duration::from_secs(5);

/// A page that is asked for.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub url: Url,
    /// `Authorization` that came with it.
    pub authorization: Option<Secret>,
    /// What its site allows; of several targets of one site, the first one's holds.
    pub allowance: Allowance,
}

/// What a probe is made of.
pub struct Setup {
    /// Makes attempts.
    pub fetcher: Fetcher,
    /// Tells the time.
    pub clock: Clock,
    /// At least one.
    pub targets: Vec<Target>,
    /// Whether a connection may serve several requests. Where targets need one each, none may:
    /// levels would differ in how often they dial.
    pub keep_alive: bool,
    /// Levels, ascending, from 1.
    pub levels: Vec<u32>,
    /// Most requests of the whole probe.
    pub max_requests: u32,
}

/// How far several exits are probed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Together {
    /// What each of them carries by itself.
    pub each: u32,
    /// What the contract allows all of them.
    pub cap: Option<u32>,
}

/// What a probe has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Requests that began.
    pub requests: u32,
    /// Body bytes received, as on the wire.
    pub bytes: u64,
}

/// Probes one exit after the other.
pub struct Prober {
    setup: Setup,
    budgets: Budgets,
    spent: Spent,
    last_error: Option<String>,
    odd_status: Option<u16>,
}

/// An attempt that has ended.
struct Landed {
    worker: usize,
    target: usize,
    begun: Time,
    attempt: Box<Attempt>,
    conn: Option<Conn>,
}

impl Prober {
    /// Nothing is sent yet.
    pub fn new(setup: Setup) -> Prober {
        Prober {
            budgets: Budgets::new(&setup.targets),
            setup,
            spent: Spent::default(),
            last_error: None,
            odd_status: None,
        }
    }

    /// Requests and bytes so far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// Most requests that a ladder through one exit takes, if nothing is measured twice.
    pub fn ladder_takes(&self) -> u32 {
        Ladder::most(&self.scope(self.setup.levels.clone()))
    }

    /// A status outside 200–299 that a target answered with.
    pub fn odd_status(&self) -> Option<u16> {
        self.odd_status
    }

    /// Climbs the ladder through the exit with this index, not above `cap`. `tell` gets each
    /// level as it is measured.
    pub async fn single(
        &mut self,
        exit: usize,
        cap: Option<u32>,
        tell: &mut dyn FnMut(&Row),
    ) -> Found {
        let levels = within(&self.setup.levels, cap);
        self.climb(&[exit], levels, tell).await
    }

    /// The same through several exits together. Levels count the requests of all of them: one,
    /// then one through each, two through each, and so on.
    pub async fn joint(
        &mut self,
        exits: &[usize],
        bounds: Together,
        tell: &mut dyn FnMut(&Row),
    ) -> Found {
        let levels = self.joint_levels(exits.len(), bounds);
        self.climb(exits, levels, tell).await
    }

    /// Most requests that this takes.
    pub fn joint_takes(&self, exits: usize, bounds: Together) -> u32 {
        Ladder::most(&self.scope(self.joint_levels(exits, bounds)))
    }

    fn joint_levels(&self, exits: usize, bounds: Together) -> Vec<u32> {
        let each = within(&self.setup.levels, Some(bounds.each));
        let all = each.into_iter().map(|level| level * exits as u32);
        let mut levels: Vec<u32> = std::iter::once(1).chain(all).collect();
        levels.dedup();
        within(&levels, bounds.cap)
    }

    async fn climb(
        &mut self,
        exits: &[usize],
        levels: Vec<u32>,
        tell: &mut dyn FnMut(&Row),
    ) -> Found {
        let scope = self.scope(levels);
        let pace = scope.pace;
        let mut ladder = Ladder::new(scope);
        self.last_error = None;
        let verdict = loop {
            let left = self.setup.max_requests.saturating_sub(self.spent.requests);
            match ladder.next(left) {
                Step::Done(verdict) => break verdict,
                Step::Measure { plan, rest } => {
                    let found = self.measure(exits, plan, rest).await;
                    if rest == 0 {
                        tell(&Row::of(&found, ladder.levels().first().copied()));
                    }
                    ladder.take(found);
                }
            }
        };
        let levels = ladder.levels();
        let rows = levels
            .iter()
            .map(|level| Row::of(level, levels.first().copied()));
        Found {
            verdict,
            rows: rows.collect(),
            last_error: match verdict {
                Verdict::None(_) => self.last_error.take(),
                Verdict::Knee { .. } | Verdict::NoKnee { .. } => None,
            },
            pace,
        }
    }

    fn scope(&self, levels: Vec<u32>) -> Scope {
        Scope {
            levels,
            targets: self.setup.targets.len(),
            pace: self.budgets.pace(),
        }
    }

    async fn measure(&mut self, exits: &[usize], plan: Plan, rest: u32) -> Measured {
        let mut round = Round::new(exits, plan, &self.setup);
        loop {
            let now = self.setup.clock.now();
            round.level.look(rest, now);
            let wake = self.send(&mut round, now);
            if round.level.is_over() || (round.tasks.is_empty() && wake.is_none()) {
                break;
            }
            let look = round.level.look_at(now);
            let until = self
                .setup
                .clock
                .instant(wake.map_or(look, |wake| wake.min(look)));
            tokio::select! {
                Some(landed) = round.tasks.join_next() => {
                    if let Ok(landed) = landed {
                        self.land(&mut round, *landed);
                    }
                }
                () = sleep_until(until.into()) => {}
            }
        }
        self.drain(&mut round).await;
        round.conns.close().await;
        round.level.finish()
    }

    /// Sends what may be sent now. Answers when there may be more.
    fn send(&mut self, round: &mut Round<'_>, now: Time) -> Option<Time> {
        while round.level.wants_more() && self.spent.requests < self.setup.max_requests {
            let target = round.level.next_target();
            match self.budgets.room(target, now) {
                Room::Now => {}
                Room::At(at) => return Some(at),
                Room::AfterAnEnd => return None,
            }
            let worker = round.free.pop()?;
            self.budgets.dispatch(target, now);
            self.spent.requests += 1;
            let Target {
                url, authorization, ..
            } = self.setup.targets[target].clone();
            let place = worker % round.exits.len();
            let seat = round.conns.take(place, &url, now);
            let request = Request {
                method: Method::GET,
                target: url,
                authorization,
                headers: None,
                body: None,
                left_origin: false,
                validators: None,
            };
            let flight = Flight {
                worker,
                target,
                begun: now,
                exit: round.exits[place],
            };
            round.level.start(now);
            round
                .tasks
                .spawn(flight.fly(self.setup.fetcher.clone(), seat, request));
        }
        None
    }

    fn land(&mut self, round: &mut Round<'_>, landed: Landed) {
        let now = self.setup.clock.now();
        let Landed {
            worker,
            target,
            begun,
            attempt,
            conn,
        } = landed;
        round.conns.give_back(worker % round.exits.len(), conn, now);
        round.free.push(worker);
        self.budgets.landed(target);
        self.spent.bytes += attempt.wire_bytes;
        let outcome = self.outcome(&attempt, round.concurrency);
        round.level.end(begun, target, outcome, now);
    }

    fn outcome(&mut self, attempt: &Attempt, in_flight: u32) -> Outcome {
        let outcome = judged(attempt, in_flight);
        let status = attempt.status();
        match (outcome, &attempt.fault) {
            (Outcome::Answer, _) => {
                self.odd_status = self
                    .odd_status
                    .or(status.filter(|code| !Codes::default().contains(*code)));
            }
            (_, Some(fault)) => self.last_error = Some(fault.detail.clone()),
            (_, None) => {
                let own = match attempt.route {
                    Route::Forward => "; --tunnel tells whether the exit or the target says so",
                    Route::Tunnel => "",
                };
                self.last_error = status.map(|code| format!("status {code}{own}"));
            }
        }
        outcome
    }

    /// Lets the last requests of a level end; those of one that ended early are cut.
    async fn drain(&mut self, round: &mut Round<'_>) {
        if round.level.has_ended_with(End::Enough) {
            let rest = async {
                while let Some(landed) = round.tasks.join_next().await {
                    if let Ok(landed) = landed {
                        self.spent.bytes += landed.attempt.wire_bytes;
                        self.budgets.landed(landed.target);
                        let (exit, now) =
                            (landed.worker % round.exits.len(), self.setup.clock.now());
                        round.conns.give_back(exit, landed.conn, now);
                    }
                }
            };
            let _ = timeout(DRAIN, rest).await;
        }
        round.tasks.shutdown().await;
        self.budgets.all_landed();
    }
}

/// One level under way.
struct Round<'a> {
    exits: &'a [usize],
    concurrency: u32,
    level: Level,
    conns: Conns,
    tasks: JoinSet<Box<Landed>>,
    /// Workers that wait; worker `w` goes through exit `w` modulo their number.
    free: Vec<usize>,
}

impl Round<'_> {
    fn new<'a>(exits: &'a [usize], plan: Plan, setup: &Setup) -> Round<'a> {
        let count = exits.len() as u32;
        // Connections of its own for each level: never more sockets than workers, and each
        // worker's dial is in its first request, which does not count.
        let rules = (0..count).map(|place| ConnRule {
            ceiling: ((plan.concurrency + count - 1 - place) / count).max(1),
            keep_alive: setup.keep_alive,
        });
        let rules: Vec<ConnRule> = rules.collect();
        Round {
            exits,
            concurrency: plan.concurrency,
            level: Level::new(plan, setup.clock.now()),
            conns: Conns::new(&rules, plan.concurrency as usize),
            tasks: JoinSet::new(),
            free: (0..plan.concurrency as usize).rev().collect(),
        }
    }
}

/// An attempt on its way.
struct Flight {
    worker: usize,
    target: usize,
    begun: Time,
    exit: usize,
}

impl Flight {
    /// Boxed for the reason that a run's attempts are: a task moves its future several times.
    fn fly(
        self,
        fetcher: Fetcher,
        seat: Seat,
        request: Request,
    ) -> Pin<Box<impl Future<Output = Box<Landed>> + Send>> {
        Box::pin(async move {
            let mut exchange = fetcher.start(self.exit, seat, &request).await;
            while exchange.chunk().await.is_some() {}
            let (attempt, conn) = exchange.finish().await;
            Box::new(Landed {
                worker: self.worker,
                target: self.target,
                begun: self.begun,
                attempt,
                conn,
            })
        })
    }
}
