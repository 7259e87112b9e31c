//! The loop of a simulation: virtual time goes from one event to the next.
//!
//! Owns what the engine owns in a run: the scheduler, the attempts under way, the counts. It
//! takes in the list as the scheduler asks for it, starts what may start, and lands each attempt
//! at the instant that `fate` has set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::checks::{Checks, Leg, Seat as Checked, Showed};
use super::disk::Disk;
use super::exits::Exits;
use super::fate::{self, Limits};
use super::load::Load;
use super::origins::Origins;
use super::outcome::Outcome;
use super::pace::Allowed;
use super::scenario::Scenario;
use super::tracks::Tracks;
use super::usage::Usage;
use crate::model::record::{RecordError, Waits};
use crate::model::{self, Attempt, Failure, Origin, Outcome as Ended, Phase, Record, Scheme, Time};
use crate::report::{Tally, Tried};
use crate::schedule::{
    Lease, Next, Note, PauseCause, Refill, Room, Rules, Scheduler, Seat, Start, Verdict, Work,
};

/// Virtual time after which a run counts as one that never ends.
const FOREVER: Time = Time::from_secs(366 * 24 * 3600);
/// So many wake-ups in a row for nothing are a fault.
const VAIN: u32 = 10_000;
/// The simulation's own chance is another sequence than the scheduler's of the same seed.
const OTHER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A scenario with the rules that it is played by.
#[derive(Debug)]
pub struct Setting<'a> {
    /// The world.
    pub scenario: &'a Scenario,
    /// The scheduler's rules; their seed is the simulation's too.
    pub rules: Rules,
    /// Cap of exits that have none of their own.
    pub per_exit: u32,
    /// Limits of an attempt.
    pub limits: Limits,
    /// The run stops after this long.
    pub max_time: Option<Duration>,
}

/// Plays a scenario to its end. `told` hears of each change of an exit or an origin.
pub fn run(setting: &Setting<'_>, told: &mut dyn FnMut(Time, &Note)) -> Outcome {
    let mut world = World::new(setting);
    let complete = world.play(told);
    world.finish(complete)
}

pub(super) struct World<'a> {
    pub(super) setting: &'a Setting<'a>,
    pub(super) scheduler: Scheduler,
    pub(super) exits: Exits<'a>,
    pub(super) origins: Origins<'a>,
    pub(super) groups: Vec<u32>,
    pub(super) allowed: Vec<Allowed>,
    /// By origin: the same names as the scheduler's.
    names: Vec<Origin>,
    pub(super) load: Load,
    disk: Disk,
    rng: Xoshiro256PlusPlus,
    pub(super) now: Time,
    flights: Vec<Option<Flight>>,
    spare: Vec<usize>,
    landings: BinaryHeap<Reverse<(Time, u64, usize)>>,
    serial: u64,
    pub(super) last_end: Time,
    pub(super) tally: Tally,
    pub(super) tracks: Tracks,
    pub(super) usage: Usage,
    pub(super) checks: Checks,
}

struct Flight {
    lease: Lease,
    work: Box<Work>,
    attempt: Option<Attempt>,
    leg: Leg,
    delivered: bool,
}

impl<'a> World<'a> {
    fn new(setting: &'a Setting<'a>) -> World<'a> {
        let scenario = setting.scenario;
        let exits = Exits::new(scenario, setting.per_exit);
        let origins = Origins::new(scenario);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(setting.rules.seed ^ OTHER);
        let load = Load::new(scenario, &origins, &mut rng);
        let groups: Vec<u32> = scenario
            .groups
            .iter()
            .map(|group| group.cap.max(1))
            .collect();
        let names: Vec<Origin> = origins.all.iter().map(|host| host.origin()).collect();
        let allowed: Vec<Allowed> = names
            .iter()
            .map(|name| allowed(&setting.rules, name))
            .collect();
        let seat = |exit: &super::exits::Exit| Checked::new(exit.id.clone(), exit.cap, exit.group);
        let checked = exits.all.iter().map(seat).collect();
        let mut checks = Checks::new(checked, &groups, allowed.clone());
        checks.expect(load.len(), setting.rules.max_in_flight);
        World {
            scheduler: Scheduler::new(setting.rules.clone(), &seats(&exits), &groups),
            tally: Tally::new(&rows(&exits, scenario)),
            tracks: Tracks::new(&exits, &origins),
            usage: Usage::default(),
            checks,
            setting,
            exits,
            origins,
            groups,
            allowed,
            names,
            load,
            disk: Disk::default(),
            rng,
            now: Time::ZERO,
            flights: Vec::new(),
            spare: Vec::new(),
            landings: BinaryHeap::new(),
            serial: 0,
            last_end: Time::ZERO,
        }
    }

    /// Whether it came to its own end.
    fn play(&mut self, told: &mut dyn FnMut(Time, &Note)) -> bool {
        let most = self
            .setting
            .max_time
            .map_or(FOREVER, |most| Time::ZERO + most);
        let (mut vain, mut before) = (0, (0, 0));
        loop {
            let wake = self.step(told);
            if self.load.is_read() && self.scheduler.is_empty() {
                return true;
            }
            let landing = self.landings.peek().map(|Reverse((at, ..))| *at);
            let Some(next) = [wake, landing].into_iter().flatten().min() else {
                self.checks
                    .complain(self.now, format_args!("jobs wait, and nothing will happen"));
                return false;
            };
            if next > most {
                if self.setting.max_time.is_none() {
                    self.checks
                        .complain(self.now, format_args!("it does not end"));
                }
                return false;
            }
            let counts = (self.serial, self.tally.counts().failed);
            vain = if landing == Some(next) || counts != before {
                0
            } else {
                vain + 1
            };
            before = counts;
            if vain > VAIN || next <= self.now && landing != Some(next) {
                self.checks.complain(
                    self.now,
                    format_args!("it wakes for nothing, again and again"),
                );
                return false;
            }
            self.now = next;
            self.land();
        }
    }

    /// All that can happen now. Answers when time alone can change that.
    fn step(&mut self, told: &mut dyn FnMut(Time, &Note)) -> Option<Time> {
        let wake = loop {
            self.take_in();
            match self.scheduler.next(self.now) {
                Next::Start(start) => self.start(start),
                Next::GiveUp(work, failure) => self.end(&work, Some(failure)),
                Next::Refill(refill) => self.refill(refill),
                Next::At(at) => break Some(at),
                Next::Idle => break None,
            }
        };
        for note in self.scheduler.notes() {
            self.hear(&note);
            told(self.now, &note);
        }
        self.checks.rests(&self.scheduler, self.now);
        wake
    }

    /// Reads the list as far as the scheduler wants it.
    fn take_in(&mut self) {
        while self.scheduler.wants_more()
            && let Some(line) = self.load.read()
        {
            let host = self.load.host(line);
            self.checks.pushed(host);
            match self.scheduler.room(&self.names[host]) {
                Room::Memory => self.push(line),
                Room::Disk(berth) => {
                    let at = self.disk.put(berth.after(), line);
                    self.scheduler.spilled(berth, at, self.now);
                }
            }
        }
    }

    fn push(&mut self, line: u64) {
        if let Some(job) = self.load.job(line, &self.origins) {
            self.scheduler.push(job, self.now);
        }
    }

    fn refill(&mut self, refill: Refill) {
        let (lines, rest) = self.disk.take(refill.newest(), refill.most());
        self.scheduler.refilled(refill, lines.len(), rest, self.now);
        lines.into_iter().for_each(|line| self.push(line));
    }

    fn hear(&mut self, note: &Note) {
        self.tracks.note(note);
        match note {
            Note::Panic => self.checks.panic = true,
            Note::PanicOver => self.checks.panic = false,
            Note::OriginPaused {
                cause: PauseCause::AskedTooMuch,
                ..
            } => {}
            Note::OriginPaused { origin, wait, .. } => self.tally.pause(origin, *wait),
            Note::Exit { .. }
            | Note::TriesSpent { .. }
            | Note::OriginDead { .. }
            | Note::NoExit => {}
        }
    }

    fn start(&mut self, start: Start) {
        let Start { lease, exit, work } = start;
        let line = work.job.line;
        let leg = Leg {
            exit: exit.index(),
            host: self.load.host(line),
            line,
            started: self.now,
        };
        self.exits.enter(leg.exit);
        self.checks.starts(leg, &self.scheduler);
        self.usage.started(self.now);
        let begins = fate::Start {
            exit: leg.exit,
            host: leg.host,
            now: self.now,
        };
        let limits = &self.setting.limits;
        let fate = fate::draw(
            begins,
            &self.exits,
            &mut self.origins,
            limits,
            &mut self.rng,
        );
        let flight = Flight {
            lease,
            work,
            attempt: fate.attempt,
            leg,
            delivered: fate.delivered,
        };
        let slot = self.spare.pop().unwrap_or(self.flights.len());
        match self.flights.get_mut(slot) {
            Some(free) => *free = Some(flight),
            None => self.flights.push(Some(flight)),
        }
        self.serial += 1;
        self.landings
            .push(Reverse((self.now + fate.takes, self.serial, slot)));
    }

    /// Ends the attempts that are due.
    fn land(&mut self) {
        while let Some(Reverse((at, _, slot))) = self.landings.peek().copied()
            && at <= self.now
        {
            self.landings.pop();
            self.spare.push(slot);
            if let Some(flight) = self.flights[slot].take() {
                self.end_attempt(flight);
            }
        }
    }

    fn end_attempt(&mut self, flight: Flight) {
        let Flight {
            lease,
            work,
            attempt,
            leg,
            delivered,
        } = flight;
        self.exits.leave(leg.exit);
        self.usage.landed(self.now);
        self.checks.lands(leg, showed(attempt.as_ref()));
        self.tracks.attempt(leg.exit, self.now - leg.started);
        if delivered {
            let status = attempt.as_ref().and_then(Attempt::status);
            let limit = self.origins.spec(leg.host).limit.as_ref();
            self.tracks.request(
                leg.host,
                limit.is_some_and(|limit| status == Some(limit.status)),
            );
        }
        let verdict = match &attempt {
            Some(attempt) => {
                self.tally.attempt(&Tried {
                    exit: leg.exit,
                    origin: &self.names[leg.host],
                    attempt,
                });
                self.scheduler.finish(lease, work, attempt, self.now)
            }
            None => self.scheduler.abandon(lease, work, self.now),
        };
        match verdict {
            Verdict::Ok(work) => self.end(&work, None),
            Verdict::Failed(work, failure) => self.end(&work, Some(failure)),
            Verdict::Again => {}
        }
    }

    fn end(&mut self, work: &Work, failure: Option<Failure>) {
        let host = self.load.host(work.job.line);
        self.last_end = self.now;
        self.checks.ends(host, work.job.line, self.now);
        self.tracks.end(host, failure.as_ref());
        if failure.is_none() {
            self.usage.ok(self.now);
        }
        self.tally.record(&record(work, failure));
    }
}

/// What the attempt's end can have shown of its origin.
fn showed(attempt: Option<&Attempt>) -> Showed {
    let Some(attempt) = attempt else {
        return Showed::Something;
    };
    match (&attempt.fault, attempt.status()) {
        (Some(fault), _) if fault.phase <= Phase::ExitTls => Showed::Nothing,
        (Some(fault), _) if fault.phase <= Phase::Handshake => Showed::Silence,
        (None, Some(200..300)) => Showed::Clean,
        (Some(_) | None, _) => Showed::Something,
    }
}

/// The budget of an origin, from the rules as the user gave them.
fn allowed(rules: &Rules, origin: &Origin) -> Allowed {
    let own = rules
        .origins
        .get(origin.as_str())
        .copied()
        .unwrap_or_default();
    let rate = own.rate.unwrap_or(rules.rate);
    let bound = own.per_origin.or(rules.per_origin);
    Allowed {
        rate,
        burst: own.burst.unwrap_or(rules.burst).max(1),
        bound: bound
            .unwrap_or_else(|| rate.map_or(u32::MAX, |rate| ((4.0 * rate).ceil() as u32).max(2))),
    }
}

fn seats(exits: &Exits<'_>) -> Vec<Seat> {
    let login = |exit: usize| {
        let name = exits.spec(exit).login.as_ref()?;
        Some(
            name.bytes()
                .fold(OTHER, |hash, byte| hash.rotate_left(5) ^ u64::from(byte)),
        )
    };
    let seats = exits.all.iter().enumerate().map(|(at, exit)| Seat {
        id: exit.id.clone(),
        ceiling: exit.cap,
        group: exit.group,
        credentials: login(at),
    });
    seats.collect()
}

/// The exits as the summary names them.
fn rows(exits: &Exits<'_>, scenario: &Scenario) -> Vec<model::Exit> {
    let row = |(line, exit): (u64, &super::exits::Exit)| model::Exit {
        id: exit.id.clone(),
        scheme: Scheme::Http,
        host: "simulated".into(),
        port: 1,
        login: None,
        tier: None,
        region: None,
        group: exit
            .group
            .map(|group| scenario.groups[group as usize].name.as_str().into()),
        cap: Some(exit.cap),
        line,
    };
    (1..).zip(&exits.all).map(row).collect()
}

/// What the summary counts of a job's end; it names a job only where it failed.
fn record(work: &Work, failure: Option<Failure>) -> Record {
    let waited = work.waited();
    let millis = |span: Duration| span.as_micros() as f64 / 1e3;
    let outcome = match failure {
        None => Ended::Ok,
        Some(_) => Ended::Failed,
    };
    Record {
        line: work.job.line,
        url: failure
            .as_ref()
            .map_or_else(String::new, |_| work.job.shown_url().to_owned()),
        attempts: work.attempts(),
        error: failure.map(|failure| RecordError {
            kind: failure.kind,
            blame: failure.blame,
            detail: failure.detail,
        }),
        waits: Some(Waits {
            budget_ms: millis(waited.budget),
            exit_ms: millis(waited.exit),
        }),
        ..Record::empty(outcome, String::new())
    }
}
