//! What must hold in every simulation, by counts of its own.
//!
//! Owns: caps of exits, groups and the run; the pace at each origin (`pace`); work conservation;
//! exactly one end of each job; no attempt is cut for nothing, and the run is not given up beside
//! an exit that works. Counts what starts and ends as the simulated world sees it and
//! asks the scheduler only what health leaves of an exit's cap.
//!
//! Work conservation is looked at where nothing but a slot can be missing: a job that was never
//! tried, at an origin that never showed anything but clean answers, with room in its budget by
//! the count here. The look costs as much as there are exits and origins, so it comes after
//! that many steps.

use std::sync::Arc;
use std::time::Duration;

use super::pace::{Allowed, Window, too_fast};
use super::world::Ending;
use crate::model::Time;
use crate::schedule::{ExitIx, Scheduler, State};

/// More complaints than these are not kept.
const KEPT: usize = 10;
/// A budget that had room this long ago has room: instants are rounded.
const SURELY: Duration = Duration::from_micros(1);
/// No attempt is cut sooner.
const CUT_LEAST: Duration = Duration::from_secs(2);

/// The state of the checks.
#[derive(Debug)]
pub(super) struct Checks {
    exits: Vec<Seat>,
    groups: Vec<Shared>,
    hosts: Vec<Host>,
    /// Lines that were started, and those that have ended.
    started: Vec<bool>,
    ended: Vec<bool>,
    requests: Vec<(u32, Time)>,
    in_flight: u32,
    most: u32,
    next_look: usize,
    steps: usize,
    /// The pool as a whole is being spared.
    pub(super) panic: bool,
    broken: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) id: Arc<str>,
    pub(super) cap: u32,
    pub(super) group: Option<u32>,
    in_flight: u32,
    /// An answer came through it, whatever its status; and a clean one.
    spoke: bool,
    answered: bool,
}

impl Seat {
    pub(super) fn new(id: Arc<str>, cap: u32, group: Option<u32>) -> Seat {
        Seat {
            id,
            cap,
            group,
            in_flight: 0,
            spoke: false,
            answered: false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Shared {
    cap: u32,
    in_flight: u32,
}

#[derive(Clone, Copy, Debug)]
struct Host {
    allowed: Allowed,
    window: Window,
    in_flight: u32,
    /// Jobs that wait and were never started.
    fresh: u64,
    /// It never showed anything but clean answers.
    spotless: bool,
}

/// One attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) exit: usize,
    pub(super) host: usize,
    pub(super) line: u64,
    pub(super) started: Time,
}

/// How it ended, for its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Showed {
    /// A clean answer.
    Clean,
    /// Nothing: it never got there, and for a reason that is certainly the exit's.
    Nothing,
    /// It never got there, but that may be the origin's fault.
    Silence,
    /// Something that may make the scheduler wait.
    Something,
}

impl Checks {
    pub(super) fn new(exits: Vec<Seat>, groups: &[u32], hosts: Vec<Allowed>) -> Checks {
        let shared = |&cap: &u32| Shared { cap, in_flight: 0 };
        let host = |allowed| Host {
            allowed,
            window: Window::default(),
            in_flight: 0,
            fresh: 0,
            spotless: true,
        };
        Checks {
            exits,
            groups: groups.iter().map(shared).collect(),
            hosts: hosts.into_iter().map(host).collect(),
            started: Vec::new(),
            ended: Vec::new(),
            requests: Vec::new(),
            in_flight: 0,
            most: u32::MAX,
            next_look: 0,
            steps: 0,
            panic: false,
            broken: Vec::new(),
        }
    }

    /// The list has this many lines, and the run this bound in flight.
    pub(super) fn expect(&mut self, lines: usize, most: u32) {
        self.started = vec![false; lines];
        self.ended = vec![false; lines];
        self.most = most;
    }

    /// A job was handed to the scheduler.
    pub(super) fn pushed(&mut self, host: usize) {
        self.hosts[host].fresh += 1;
    }

    /// An attempt starts.
    pub(super) fn starts(&mut self, leg: Leg, scheduler: &Scheduler) {
        let now = leg.started;
        let exit = &mut self.exits[leg.exit];
        exit.in_flight += 1;
        self.in_flight += 1;
        let health = scheduler.exit(ExitIx::new(leg.exit as u32), now).open;
        let (id, carries, cap) = (exit.id.clone(), exit.in_flight, exit.cap.min(health));
        if carries > cap {
            self.complain(
                now,
                format_args!("exit {id} carries {carries}, its cap is {cap}"),
            );
        }
        if let Some(group) = self.exits[leg.exit].group {
            let shared = &mut self.groups[group as usize];
            shared.in_flight += 1;
            let Shared { cap, in_flight } = *shared;
            if in_flight > cap {
                self.complain(
                    now,
                    format_args!("group {group} carries {in_flight} of {cap}"),
                );
            }
        }
        if self.in_flight > self.most {
            let (all, most) = (self.in_flight, self.most);
            self.complain(now, format_args!("{all} in flight, at most {most} may be"));
        }
        let host = &mut self.hosts[leg.host];
        host.in_flight += 1;
        host.window.take(now, host.allowed.rate.unwrap_or(f64::MAX));
        let Host {
            in_flight, allowed, ..
        } = *host;
        if in_flight > allowed.bound {
            let bound = allowed.bound;
            self.complain(
                now,
                format_args!("{in_flight} in flight at an origin with {bound}"),
            );
        }
        let first = !std::mem::replace(&mut self.started[leg.line as usize - 1], true);
        self.hosts[leg.host].fresh -= u64::from(first);
    }

    /// An attempt has ended.
    pub(super) fn lands(&mut self, leg: Leg, showed: Showed) {
        self.exits[leg.exit].in_flight -= 1;
        self.exits[leg.exit].answered |= showed == Showed::Clean;
        if let Some(group) = self.exits[leg.exit].group {
            self.groups[group as usize].in_flight -= 1;
        }
        self.in_flight -= 1;
        let host = &mut self.hosts[leg.host];
        host.in_flight -= 1;
        host.spotless &= matches!(showed, Showed::Clean | Showed::Nothing);
        let delivered = matches!(showed, Showed::Clean | Showed::Something);
        if delivered && host.allowed.rate.is_some() {
            self.requests.push((leg.host as u32, leg.started));
        }
    }

    /// The head of an answer has come through an exit.
    pub(super) fn speaks(&mut self, exit: usize) {
        self.exits[exit].spoke = true;
    }

    /// An attempt is to be cut: only one that waits for its exit's first answer, and only if
    /// another exit, which has answered, is idle.
    pub(super) fn cuts(&mut self, leg: Leg, scheduler: &Scheduler, now: Time) {
        let id = self.exits[leg.exit].id.clone();
        if self.exits[leg.exit].answered {
            self.complain(now, format_args!("cut at exit {id}, which has answered"));
        }
        if now - leg.started < CUT_LEAST {
            self.complain(now, format_args!("cut at exit {id} too soon"));
        }
        let better = |&exit: &usize| {
            exit != leg.exit && self.exits[exit].spoke && self.is_free(exit, scheduler, now)
        };
        if (0..self.exits.len()).find(better).is_none() {
            self.complain(now, format_args!("cut at exit {id}, and no other is free"));
        }
    }

    /// The run is given up for want of exits.
    pub(super) fn gives_up(&mut self, scheduler: &Scheduler, now: Time) {
        let works = |&exit: &usize| {
            let state = scheduler.exit(ExitIx::new(exit as u32), now).state;
            self.exits[exit].answered && matches!(state, State::Healthy | State::Limited)
        };
        let works = (0..self.exits.len()).find(works).filter(|_| !self.panic);
        if let Some(exit) = works {
            let id = self.exits[exit].id.clone();
            self.complain(now, format_args!("given up, and exit {id} works"));
        }
    }

    /// A job has its end.
    pub(super) fn ends(&mut self, host: usize, line: u64, now: Time) {
        let at = line as usize - 1;
        if std::mem::replace(&mut self.ended[at], true) {
            self.complain(now, format_args!("job {line} ended twice"));
        }
        // It was given up without an attempt.
        let untried = !std::mem::replace(&mut self.started[at], true);
        self.hosts[host].fresh -= u64::from(untried);
    }

    /// The scheduler has said that nothing can start now.
    pub(super) fn rests(&mut self, scheduler: &Scheduler, now: Time) {
        self.steps += 1;
        if self.steps < self.next_look {
            return;
        }
        self.next_look = self.steps + (self.exits.len() + self.hosts.len()) / 2;
        scheduler.check(now);
        if self.panic || scheduler.is_over() || self.in_flight >= self.most {
            return;
        }
        let ready = self.hosts.iter().position(|host| host.is_ready(now));
        let free = (0..self.exits.len()).find(|&exit| self.is_free(exit, scheduler, now));
        if let (Some(host), Some(exit)) = (ready, free) {
            let id = self.exits[exit].id.clone();
            self.complain(
                now,
                format_args!("a job of origin {host} waits beside the free exit {id}"),
            );
        }
    }

    /// The last looks; what did not hold, the first few.
    pub(super) fn finish(mut self, ending: Ending, now: Time) -> Vec<String> {
        if let Some(line) = self.ended.iter().position(|ended| !ended)
            && ending == Ending::Complete
        {
            self.complain(now, format_args!("job {} has no end", line + 1));
        }
        let mut requests = std::mem::take(&mut self.requests);
        let allowed = |host: u32| self.hosts[host as usize].allowed;
        if let Some((host, at)) = too_fast(&mut requests, allowed) {
            self.complain(
                at,
                format_args!("origin {host} was asked faster than its budget"),
            );
        }
        self.broken
    }

    fn is_free(&self, exit: usize, scheduler: &Scheduler, now: Time) -> bool {
        let seat = &self.exits[exit];
        let shared = seat.group.map(|group| self.groups[group as usize]);
        shared.is_none_or(|group| group.in_flight < group.cap)
            && seat.in_flight < scheduler.exit(ExitIx::new(exit as u32), now).open
    }

    pub(super) fn complain(&mut self, now: Time, what: std::fmt::Arguments<'_>) {
        if self.broken.len() < KEPT {
            self.broken
                .push(format!("at {:.3} s: {what}", now.as_secs_f64()));
        }
    }
}

impl Host {
    /// Whether a job may start there without any doubt.
    fn is_ready(&self, now: Time) -> bool {
        let room = self.allowed.rate.is_none_or(|rate| {
            let level = self.window.with_one_at(now.back(SURELY), rate);
            level <= f64::from(self.allowed.burst)
        });
        self.spotless && self.fresh > 0 && self.in_flight < self.allowed.bound && room
    }
}
