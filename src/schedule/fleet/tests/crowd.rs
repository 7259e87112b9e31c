//! A fleet under load on a virtual clock: endless jobs, exits with slots, seeded chance.
//!
//! It has no pool and no budgets: each free slot of a usable exit takes a job at once. That is
//! harder on the rules than a scheduler would be, since nothing steers load away from bad exits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::RngExt;

use super::*;

/// How an attempt ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    Good,
    /// The exit's fault.
    Fault,
    /// Unclear: the exit, or the origin of the job; nothing came from the exit.
    Mute,
    /// Unclear: the exit, or the origin of the job; the exit passed something on.
    Unclear,
    /// Ours.
    Cancelled,
}

/// An attempt as the scenario sees it.
pub(super) struct Try {
    pub(super) exit: u32,
    pub(super) origin: u32,
    pub(super) now: Time,
}

/// Ends attempts: how, and after how many milliseconds.
pub(super) type World<'a> = &'a dyn Fn(&Try, &mut StdRng) -> (End, u64);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    ends: Time,
    number: u64,
    dispatched: Time,
    exit: u32,
    origin: u32,
    end: u8,
}

pub(super) struct Crowd {
    pub(super) fleet: Fleet,
    pub(super) now: Time,
    /// Attempts through each exit.
    pub(super) attempts: Vec<u64>,
    /// How often each exit was ejected or evicted, and at which of its attempts first.
    pub(super) ejections: Vec<u64>,
    pub(super) first_ejection: Vec<Option<u64>>,
    pub(super) most_out: usize,
    pub(super) panics: u32,
    /// When each good answer came, in seconds.
    pub(super) goods: Vec<f64>,
    flights: BinaryHeap<Reverse<Flight>>,
    in_flight: Vec<u32>,
    records: Vec<Counter>,
    witnesses: Vec<Vec<(u32, Time)>>,
    rng: StdRng,
}

impl Crowd {
    pub(super) fn new(exits: usize, slots: u32, origins: usize, seed: u64) -> Crowd {
        Crowd {
            fleet: Fleet::new(vec![slots; exits], MINUTE),
            now: Time::from_secs(1),
            attempts: vec![0; exits],
            ejections: vec![0; exits],
            first_ejection: vec![None; exits],
            most_out: 0,
            panics: 0,
            goods: Vec::new(),
            flights: BinaryHeap::new(),
            in_flight: vec![0; exits],
            records: vec![Counter::default(); origins],
            witnesses: vec![Vec::new(); origins],
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Runs until `stop` says so or the fleet is given up.
    pub(super) fn run(&mut self, world: World<'_>, stop: impl Fn(&Crowd) -> bool) {
        while !stop(self) && !self.fleet.is_over(self.now) {
            self.dispatch(world);
            self.step();
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.attempts.iter().sum()
    }

    fn dispatch(&mut self, world: World<'_>) {
        let exits = self.in_flight.len() as u32;
        let first = self.rng.random_range(0..exits);
        let mut idle = false;
        while !idle {
            idle = true;
            for exit in (first..exits).chain(0..first) {
                if self.may_start(exit) {
                    self.start(exit, world);
                    idle = false;
                }
            }
        }
    }

    fn may_start(&mut self, exit: u32) -> bool {
        let usable = self.fleet.usable_at(exit).is_some_and(|at| at <= self.now);
        usable
            && self.in_flight[exit as usize] < self.fleet.cap(exit, self.now)
            && matches!(self.fleet.gate(self.now), Gate::Open | Gate::Probe)
    }

    fn start(&mut self, exit: u32, world: World<'_>) {
        let origin = self.rng.random_range(0..self.records.len() as u32);
        let attempt = Try {
            exit,
            origin,
            now: self.now,
        };
        let (end, millis) = world(&attempt, &mut self.rng);
        self.fleet.started(self.now);
        self.in_flight[exit as usize] += 1;
        self.attempts[exit as usize] += 1;
        self.flights.push(Reverse(Flight {
            ends: self.now + Duration::from_millis(millis),
            number: self.total(),
            dispatched: self.now,
            exit,
            origin,
            end: end as u8,
        }));
    }

    /// Goes to the next thing that happens.
    fn step(&mut self) {
        let exits = 0..self.in_flight.len() as u32;
        let wake = exits
            .clone()
            .filter_map(|exit| self.fleet.changes_at(exit, self.now))
            .min();
        let gate = match self.fleet.gate(self.now) {
            Gate::Shut(until) => Some(until),
            Gate::Open | Gate::Probe | Gate::Probing => None,
        };
        let landing = self.flights.peek().map(|flight| flight.0.ends);
        let over = self.fleet.over_at();
        let next = [wake, gate, landing, over].into_iter().flatten().min();
        self.now = next.expect("something is always to come").max(self.now);
        exits.for_each(|exit| {
            self.fleet.wake(exit, self.now);
        });
        while self.flights.peek().is_some_and(|f| f.0.ends <= self.now) {
            if let Some(Reverse(flight)) = self.flights.pop() {
                self.land(&flight);
            }
        }
    }

    fn land(&mut self, flight: &Flight) {
        let exit = flight.exit;
        self.in_flight[exit as usize] -= 1;
        let span = Span {
            dispatched: flight.dispatched,
            now: self.now,
        };
        let panicked = self.fleet.panics();
        let change = match flight.end {
            end if end == End::Good as u8 => self.good(flight, span),
            end if end == End::Fault as u8 => {
                self.fleet.fault(exit, Share::WHOLE, span, &mut self.rng)
            }
            end if end == End::Cancelled as u8 => {
                self.fleet.neutral(span);
                Change::None
            }
            end => self.unclear(flight, span, end == End::Mute as u8),
        };
        self.panics += u32::from(!panicked && self.fleet.panics());
        if matches!(change, Change::Ejected | Change::Evicted) {
            self.ejections[exit as usize] += 1;
            let attempts = self.attempts[exit as usize];
            self.first_ejection[exit as usize].get_or_insert(attempts);
            self.most_out = self
                .most_out
                .max(self.in_flight.len() - self.fleet.up() as usize);
        }
    }

    fn good(&mut self, flight: &Flight, span: Span) -> Change {
        let origin = flight.origin as usize;
        self.records[origin].good();
        self.witnesses[origin].retain(|&(exit, _)| exit != flight.exit);
        self.witnesses[origin].push((flight.exit, self.now));
        self.goods.push(self.now.as_secs_f64());
        self.fleet.good(flight.exit, Proven::Answers, span)
    }

    fn unclear(&mut self, flight: &Flight, span: Span, mute: bool) -> Change {
        let origin = flight.origin as usize;
        let answered_elsewhere = self.witnesses[origin]
            .iter()
            .any(|&(exit, at)| exit != flight.exit && self.now - at < MINUTE);
        let share = self.fleet.weigh(Unclear {
            exit: flight.exit,
            origin: flight.origin,
            record: &self.records[origin],
            answered_elsewhere,
            mute,
        });
        if share.tells_of_origin() {
            self.records[origin].fault();
        }
        self.fleet.fault(flight.exit, share, span, &mut self.rng)
    }
}
