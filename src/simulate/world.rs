//! The loop of a simulation: virtual time goes from one event to the next.
//!
//! Owns what the engine owns in a run: the scheduler, the attempts under way (`flights`), the
//! counts. It takes in the list as the scheduler asks for it, starts what may start, and lands each attempt
//! at the instant that `fate` has set.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::checks::{Checks, Leg, Seat as Checked, Showed};
use super::disk::Disk;
use super::exits::Exits;
use super::fate::{self, Limits};
use super::flights::{Flight, Flights};
use super::load::Load;
use super::origins::Origins;
use super::outcome::Outcome;
use super::pace::Allowed;
use super::roster::{rows, seats};
use super::scenario::Scenario;
use super::tracks::Tracks;
use super::usage::Usage;
use crate::model::record::{RecordError, Waits};
use crate::model::{Attempt, Failure, Origin, Outcome as Ended, Phase, Record, Time};
use crate::report::{Tally, Tried};
use crate::schedule::health::Throttled;
use crate::schedule::{
    Next, Note, PauseCause, Refill, Room, Rules, Scheduler, Start, Ticket, Verdict, Work,
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

/// How a simulation came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its list was done.
    Complete,
    /// Its time was over, or nothing could happen any more.
    Early,
}

/// Plays a scenario to its end. `told` hears of each change of an exit or an origin.
pub fn run(setting: &Setting<'_>, told: &mut dyn FnMut(Time, &Note)) -> Outcome {
    let mut world = World::new(setting);
    let ending = world.play(told);
    world.finish(ending)
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
    flights: Flights,
    pub(super) last_end: Time,
    pub(super) tally: Tally,
    pub(super) tracks: Tracks,
    pub(super) usage: Usage,
    pub(super) checks: Checks,
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
            .map(|name| Allowed::of(&setting.rules, name))
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
            flights: Flights::default(),
            last_end: Time::ZERO,
        }
    }

    fn play(&mut self, told: &mut dyn FnMut(Time, &Note)) -> Ending {
        let most = self
            .setting
            .max_time
            .map_or(FOREVER, |most| Time::ZERO + most);
        let (mut vain, mut before) = (0, (0, 0));
        loop {
            let wake = self.step(told);
            if self.load.is_read() && self.scheduler.is_empty() {
                return Ending::Complete;
            }
            let landing = self.flights.next_landing();
            let Some(next) = [wake, landing].into_iter().flatten().min() else {
                self.checks
                    .complain(self.now, format_args!("jobs wait, and nothing will happen"));
                return Ending::Early;
            };
            if next > most {
                if self.setting.max_time.is_none() {
                    self.checks
                        .complain(self.now, format_args!("it does not end"));
                }
                return Ending::Early;
            }
            let counts = (self.flights.landings_set(), self.tally.counts().failed);
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
                return Ending::Early;
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
                Next::Cut(ticket) => self.cut(ticket),
                Next::LastCall => self.last_call(),
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
            Note::NoExit => self.checks.gives_up(&self.scheduler, self.now),
            Note::Exit { .. } | Note::TriesSpent { .. } | Note::OriginDead { .. } => {}
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
            head: fate.head.map(|head| self.now + head),
        };
        self.flights.start(flight, self.now + fate.takes);
    }

    /// Ends the attempts that are due.
    fn land(&mut self) {
        while let Some(flight) = self.flights.land(self.now) {
            self.end_attempt(flight);
        }
    }

    /// An attempt is not waited for any longer.
    fn cut(&mut self, ticket: Ticket) {
        if let Some((slot, flight)) = self.flights.with_ticket(ticket) {
            self.checks.cuts(flight.leg, &self.scheduler, self.now);
            self.tracks.exits[flight.leg.exit].cut += 1;
            self.cut_at(slot);
        }
    }

    /// None is.
    fn last_call(&mut self) {
        self.flights.slots().for_each(|slot| self.cut_at(slot));
    }

    /// It goes on if its head is there, else it ends now.
    fn cut_at(&mut self, slot: usize) {
        let Some(flight) = self.flights.at(slot) else {
            return;
        };
        if flight.head.is_some_and(|head| head <= self.now) {
            self.scheduler.heard(&flight.lease, self.now);
            return;
        }
        flight.attempt = Some(fate::cut(flight.attempt.as_ref()));
        self.flights.land_at(slot, self.now);
    }

    fn end_attempt(&mut self, flight: Flight) {
        let Flight {
            lease,
            work,
            attempt,
            leg,
            delivered,
            ..
        } = flight;
        self.exits.leave(leg.exit);
        self.usage.landed(self.now);
        self.checks.lands(leg, showed(attempt.as_ref()));
        if attempt.as_ref().is_some_and(|it| it.status().is_some()) {
            self.checks.speaks(leg.exit);
        }
        self.tracks.attempt(leg.exit, self.now - leg.started);
        if delivered {
            let status = attempt.as_ref().and_then(Attempt::status);
            let limit = self.origins.spec(leg.host).limit.as_ref();
            let throttled = match limit.is_some_and(|limit| status == Some(limit.status)) {
                true => Throttled::Yes,
                false => Throttled::No,
            };
            self.tracks.request(leg.host, throttled);
        }
        let verdict = match &attempt {
            Some(attempt) => {
                self.tally.attempt(&Tried {
                    exit: leg.exit,
                    origin: &self.names[leg.host],
                    attempt,
                    at: self.now,
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
