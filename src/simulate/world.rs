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

use super::baseline;
use super::checks::{Checks, Leg, Seat as Checked, Showed};
use super::exits::Exits;
use super::fate::{self, Limits};
use super::figures::{EXITS, Figures, ORIGINS, WINDOWS};
use super::ideal;
use super::load::Load;
use super::origins::Origins;
use super::pace::Allowed;
use super::scenario::Scenario;
use super::tracks::Tracks;
use super::usage::Usage;
use crate::model::record::{RecordError, Waits};
use crate::model::{self, Attempt, Failure, Origin, Outcome as Ended, Phase, Record, Scheme, Time};
use crate::report::{ExitEnd, GroupEnd, RunEnd, Summary, Tally, Tried};
use crate::schedule::{
    ExitIx, Lease, Next, Note, Rules, Scheduler, Seat, Start, State, Verdict, Work,
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

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// As a run would show it.
    pub summary: Summary,
    /// The same and more, by name.
    pub figures: Figures,
    /// What did not hold that must hold in every run; empty, or there is a fault in the scheduler.
    pub broken: Vec<String>,
}

/// Plays a scenario to its end. `told` hears of each change of an exit or an origin.
pub fn run(setting: &Setting<'_>, told: &mut dyn FnMut(Time, &Note)) -> Outcome {
    let mut world = World::new(setting);
    let complete = world.play(told);
    world.finish(complete)
}

struct World<'a> {
    setting: &'a Setting<'a>,
    scheduler: Scheduler,
    exits: Exits<'a>,
    origins: Origins<'a>,
    groups: Vec<u32>,
    allowed: Vec<Allowed>,
    /// By origin: the same names as the scheduler's.
    names: Vec<Origin>,
    load: Load,
    rng: Xoshiro256PlusPlus,
    now: Time,
    flights: Vec<Option<Flight>>,
    spare: Vec<usize>,
    landings: BinaryHeap<Reverse<(Time, u64, usize)>>,
    serial: u64,
    last_end: Time,
    tally: Tally,
    tracks: Tracks,
    usage: Usage,
    checks: Checks,
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
            && let Some(job) = self.load.read(&self.origins)
        {
            self.checks.pushed(self.load.host(job.line));
            self.scheduler.push(job, self.now);
        }
    }

    fn hear(&mut self, note: &Note) {
        self.tracks.note(note);
        match note {
            Note::Panic => self.checks.panic = true,
            Note::PanicOver => self.checks.panic = false,
            Note::OriginPaused { origin, until } => self.tally.pause(origin, *until - self.now),
            Note::Exit { .. } | Note::OriginDead { .. } | Note::NoExit => {}
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

    fn finish(self, complete: bool) -> Outcome {
        let figures = self.figures();
        let over = self.scheduler.is_over();
        let exit = |number: u32| {
            let state = self.scheduler.exit(ExitIx::new(number));
            ExitEnd {
                cap: state.ceiling,
                cap_now: state.cap,
                peak: state.peak,
                // Here a lease is a socket.
                peak_sockets: state.peak,
                attempts: state.attempts,
                ok: state.ok,
                faults: state.faults,
                status_429: state.status_429,
                state: state.state.as_str(),
                reason: Some(state.reason.clone()).filter(|reason| !reason.is_empty()),
                last_error: state.last_error.map(str::to_owned),
            }
        };
        let group = |(number, spec): (u32, &super::scenario::GroupSpec)| GroupEnd {
            name: spec.name.clone(),
            cap: spec.cap.max(1),
            peak: self.scheduler.group_peak(number),
        };
        let end = RunEnd {
            exits: (0..self.scheduler.exits()).map(exit).collect(),
            groups: (0..)
                .zip(&self.setting.scenario.groups)
                .map(group)
                .collect(),
            entries: self.load.len() as u64,
            wall: self.now - Time::ZERO,
            disk: Duration::ZERO,
            stopped: match (over, complete) {
                (true, _) => Some("no usable exit was left".to_owned()),
                (false, true) => None,
                (false, false) => Some("--max-time was reached".to_owned()),
            },
        };
        Outcome {
            summary: self.tally.finish(end),
            broken: self.checks.finish(complete, self.now),
            figures,
        }
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::default();
        self.totals(&mut figures);
        for (class, spec) in self.setting.scenario.exits.iter().enumerate() {
            let prefix = format!("exits.{}", spec.name);
            figures.class(&prefix, EXITS, self.exits_of(class));
        }
        for (class, spec) in self.setting.scenario.origins.iter().enumerate() {
            let prefix = format!("origins.{}", spec.name);
            figures.class(&prefix, ORIGINS, self.origins_of(class));
        }
        let slots = self.slots();
        for (name, &(from, until)) in &self.setting.scenario.windows {
            let part = self.usage.part(from, until);
            let values = [part.in_flight / slots, part.started, part.ok];
            figures.class(&format!("windows.{name}"), WINDOWS, values);
        }
        for (kind, &count) in &self.tracks.failures {
            figures.set(format!("failures.{kind}"), count as f64);
        }
        if self.setting.scenario.contrast.is_some() {
            self.contrast(&mut figures);
        }
        figures
    }

    fn totals(&self, figures: &mut Figures) {
        let counts = self.tally.counts();
        let makespan = self.last_end.as_secs_f64();
        let jobs = self.load.by_host(self.origins.all.len());
        let ideal = ideal::seconds(
            &self.exits,
            &self.groups,
            &self.origins,
            &jobs,
            &self.allowed,
        );
        let busy: f64 = self
            .tracks
            .exits
            .iter()
            .map(|exit| exit.busy.as_secs_f64())
            .sum();
        let ejections: u64 = self.tracks.exits.iter().map(|exit| exit.ejections).sum();
        for (name, value) in [
            ("jobs", self.load.len() as f64),
            ("ok", counts.ok as f64),
            ("failed", counts.failed as f64),
            ("attempts", counts.attempts as f64),
            ("makespan_s", makespan),
            ("ideal_s", ideal),
            ("over_ideal", makespan / ideal.max(1e-9)),
            ("utilisation", busy / (self.slots() * makespan.max(1e-9))),
            ("utilisation_spread", self.spread(makespan)),
            ("ejections", ejections as f64),
            ("most_out", f64::from(self.tracks.most_out)),
            ("panics", self.tracks.panics as f64),
            ("no_exit", f64::from(u8::from(self.scheduler.is_over()))),
        ] {
            figures.set(name, value);
        }
    }

    /// Standard deviation of the exits' own utilisation.
    fn spread(&self, makespan: f64) -> f64 {
        let both = self.exits.all.iter().zip(&self.tracks.exits);
        let shares = both.map(|(exit, track)| {
            track.busy.as_secs_f64() / (f64::from(exit.cap) * makespan.max(1e-9))
        });
        let shares: Vec<f64> = shares.collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let squares = shares.iter().map(|share| (share - mean).powi(2));
        (squares.sum::<f64>() / shares.len() as f64).sqrt()
    }

    /// In the order of [`EXITS`].
    fn exits_of(&self, class: usize) -> [f64; EXITS.len()] {
        let members = (0..self.exits.all.len()).filter(|&exit| self.exits.all[exit].class == class);
        let members: Vec<usize> = members.collect();
        let ends = members
            .iter()
            .map(|&exit| self.scheduler.exit(ExitIx::new(exit as u32)));
        let ends: Vec<_> = ends.collect();
        let tracks = || members.iter().map(|&exit| &self.tracks.exits[exit]);
        let attempts: u64 = tracks().map(|exit| exit.attempts).sum();
        let ejections: u64 = tracks().map(|exit| exit.ejections).sum();
        let in_state = |state| ends.iter().filter(|end| end.state == state).count() as f64;
        // One that was never ejected was not ejected after any number.
        let after = |exit: &super::tracks::ExitTrack| {
            exit.ejected_after.map_or(f64::INFINITY, |n| n as f64)
        };
        [
            attempts as f64,
            tracks().map(|exit| exit.attempts).max().unwrap_or(0) as f64,
            ends.iter().map(|end| end.ok).sum::<u64>() as f64,
            ends.iter().map(|end| end.faults).sum::<u64>() as f64,
            ejections as f64,
            ejections as f64 / (attempts as f64).max(1.0),
            tracks().filter(|exit| exit.ejected_after.is_some()).count() as f64,
            tracks().map(after).fold(0.0, f64::max),
            in_state(State::Evicted),
            in_state(State::Healthy),
            f64::from(ends.iter().map(|end| end.peak).max().unwrap_or(0)),
        ]
    }

    /// In the order of [`ORIGINS`].
    fn origins_of(&self, class: usize) -> [f64; ORIGINS.len()] {
        let members = self.origins.all.iter().zip(&self.tracks.hosts);
        let members = members.filter(|(host, _)| host.class == class);
        members.fold([0.0; ORIGINS.len()], |sums, (_, host)| {
            let counts = [
                host.ok,
                host.failed,
                host.requests,
                host.refused,
                host.pauses,
                host.given_up,
            ];
            std::array::from_fn(|at| sums[at] + counts[at] as f64)
        })
    }

    fn contrast(&self, figures: &mut Figures) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.setting.rules.seed);
        let exits = Exits::new(self.setting.scenario, self.setting.per_exit);
        let other = baseline::makespan(exits, &self.origins, &self.load, &mut rng).as_secs_f64();
        let (ours, ideal) = (figures.get("makespan_s"), figures.get("ideal_s"));
        figures.set("contrast.makespan_s", other);
        figures.set("contrast.over_ideal", other / ideal.max(1e-9));
        figures.set("contrast.loss", other / ours.max(1e-9) - 1.0);
    }

    fn slots(&self) -> f64 {
        self.exits.all.iter().map(|exit| f64::from(exit.cap)).sum()
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

/// What the summary counts of a job's end.
fn record(work: &Work, failure: Option<Failure>) -> Record {
    let waited = work.waited();
    let millis = |span: Duration| span.as_micros() as f64 / 1e3;
    Record {
        id: work.job.id.to_string(),
        line: work.job.line,
        url: work.job.shown_url().to_owned(),
        final_url: None,
        outcome: match failure {
            None => Ended::Ok,
            Some(_) => Ended::Failed,
        },
        status: None,
        file: None,
        bytes: None,
        wire_bytes: None,
        sha256: None,
        content_type: None,
        content_encoding: None,
        length_verified: None,
        exit: None,
        tried: Vec::new(),
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
        phases: None,
        at: String::new(),
        extra: None,
    }
}
