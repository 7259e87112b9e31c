//! A world to schedule in: an attempt's end is a function of exit, job and time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use http::header::{HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method};
use url::Url;

use crate::model::{
    Attempt, Codes, Failure, Fault, FaultKind, Head, Job, Phase, PhaseTimes, Route, Time,
};

use super::super::*;

pub fn rules() -> Rules {
    Rules {
        rate: None,
        burst: 1,
        per_origin: None,
        max_in_flight: 10_000,
        retries: 3,
        max_redirects: 10,
        max_pause: Duration::from_secs(900),
        origin_patience: Duration::from_secs(120),
        no_exit_timeout: Duration::from_secs(60),
        accept: Codes::default(),
        origins: HashMap::new(),
        seed: 7,
    }
}

pub fn seats(ceilings: &[u32]) -> Vec<Seat> {
    let seat = |(index, &ceiling): (usize, &u32)| Seat {
        id: format!("exit-{index}").into(),
        ceiling,
        group: None,
        credentials: None,
    };
    ceilings.iter().enumerate().map(seat).collect()
}

pub fn job(line: u64, url: &str) -> Job {
    Job {
        id: line.to_string().into(),
        id_given: false,
        line,
        method: Method::GET,
        url: Url::parse(url).unwrap(),
        listed: None,
        authorization: None,
        headers: None,
        body: None,
        extra: None,
    }
}

pub fn answer(status: u16) -> Attempt {
    Attempt {
        phases: PhaseTimes {
            first_byte: Some(Duration::from_millis(50)),
            ..PhaseTimes::default()
        },
        head: Some(Head {
            status,
            headers: HeaderMap::new(),
        }),
        length_verified: true,
        ..Attempt::default()
    }
}

pub fn with(mut attempt: Attempt, name: HeaderName, value: &str) -> Attempt {
    let head = attempt.head.as_mut().unwrap();
    head.headers
        .insert(name, HeaderValue::from_str(value).unwrap());
    attempt
}

pub fn retry_after(status: u16, seconds: u64) -> Attempt {
    with(answer(status), RETRY_AFTER, &seconds.to_string())
}

pub fn fault(phase: Phase, kind: FaultKind) -> Attempt {
    Attempt {
        fault: Some(Fault {
            phase,
            kind,
            detail: format!("{kind:?} in {}", phase.as_str()),
        }),
        ..Attempt::default()
    }
}

/// A plain answer of a forward proxy that may be its own.
pub fn forward(status: u16) -> Attempt {
    Attempt {
        route: Route::Forward,
        ..answer(status)
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Ok,
    Failed(Failure),
}

/// One attempt, in the order of their starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    pub at: Time,
    pub exit: usize,
    pub line: u64,
}

/// An attempt under way, with the end it will have.
type Running = (Lease, Box<Work>, Attempt);
type Script = Box<dyn FnMut(usize, &Work, Time) -> (Duration, Attempt)>;

pub struct World {
    pub scheduler: Scheduler,
    pub now: Time,
    pub begun: Vec<Begun>,
    pub ends: BTreeMap<u64, End>,
    pub attempts: BTreeMap<u64, u32>,
    pub notes: Vec<Note>,
    /// What is left of the list: lines and URLs.
    pub list: VecDeque<(u64, String)>,
    /// Records of chains: the one before, line and URL; each is read once.
    disk: Vec<Option<(Option<u64>, u64, String)>>,
    script: Script,
    running: BTreeMap<Reverse<(Time, u64)>, Running>,
    serial: u64,
}

impl World {
    pub fn new(
        rules: Rules,
        ceilings: &[u32],
        script: impl FnMut(usize, &Work, Time) -> (Duration, Attempt) + 'static,
    ) -> World {
        World {
            scheduler: Scheduler::new(rules, &seats(ceilings), &[]),
            now: Time::ZERO,
            begun: Vec::new(),
            ends: BTreeMap::new(),
            attempts: BTreeMap::new(),
            notes: Vec::new(),
            list: VecDeque::new(),
            disk: Vec::new(),
            script: Box::new(script),
            running: BTreeMap::new(),
            serial: 0,
        }
    }

    pub fn push(&mut self, lines: std::ops::Range<u64>, url: &str) {
        for line in lines {
            self.scheduler.push(job(line, url), self.now);
        }
    }

    pub fn in_flight(&self) -> usize {
        self.running.len()
    }

    /// Reads the list as far as the scheduler wants it, onto the disk what it wants there.
    fn take_in(&mut self) {
        while self.scheduler.wants_more()
            && let Some((line, url)) = self.list.pop_front()
        {
            let job = job(line, &url);
            match self.scheduler.room(&Origin::of(&job.url)) {
                Room::Memory => self.scheduler.push(job, self.now),
                Room::Disk(berth) => {
                    let at = self.disk.len() as u64;
                    self.disk.push(Some((berth.after(), line, url)));
                    self.scheduler.spilled(berth, at, self.now);
                }
            }
        }
    }

    fn refill(&mut self, refill: Refill) {
        let (mut rest, mut read) = (Some(refill.newest()), Vec::new());
        while let Some(at) = rest
            && read.len() < refill.most()
        {
            let record = self.disk[at as usize].take();
            let (before, line, url) = record.expect("a record is read once");
            read.push((line, url));
            rest = before;
        }
        self.scheduler.check(self.now);
        self.scheduler.refilled(refill, read.len(), rest, self.now);
        for (line, url) in read {
            self.push(line..line + 1, &url);
        }
    }

    /// Jobs on disk.
    pub fn on_disk(&self) -> usize {
        self.disk.iter().flatten().count()
    }

    /// Takes every step that can be taken now; answers when to look again.
    pub fn step(&mut self) -> Option<Time> {
        loop {
            self.take_in();
            match self.scheduler.next(self.now) {
                Next::Start(start) => self.begin(start),
                Next::GiveUp(work, failure) => self.end(&work, End::Failed(failure)),
                Next::At(at) => {
                    assert!(at > self.now, "asked to wait for the past");
                    return Some(at);
                }
                Next::Refill(refill) => self.refill(refill),
                Next::Idle => return None,
            }
        }
    }

    /// Runs until nothing is left, or until `limit`.
    pub fn run(&mut self, limit: Time) {
        let mut idle_steps = 0;
        loop {
            let wake = self.step();
            self.scheduler.check(self.now);
            self.notes.extend(self.scheduler.notes());
            if self.scheduler.is_empty() && self.list.is_empty() {
                return;
            }
            let landing = self.running.last_key_value().map(|(key, _)| key.0.0);
            let next = [wake, landing].into_iter().flatten().min();
            let next = next.expect("jobs wait, and nothing will ever happen");
            if next > limit {
                self.now = limit;
                return;
            }
            idle_steps = if landing == Some(next) {
                0
            } else {
                idle_steps + 1
            };
            assert!(idle_steps < 1000, "it wakes for nothing");
            self.now = next;
            self.land();
        }
    }

    /// Goes to the next end of an attempt.
    pub fn advance(&mut self) {
        if let Some((key, _)) = self.running.last_key_value() {
            self.now = key.0.0;
        }
        self.land();
    }

    /// Ends the attempts that are due.
    pub fn land(&mut self) {
        while let Some(entry) = self.running.last_entry() {
            if entry.key().0.0 > self.now {
                return;
            }
            let (lease, work, attempt) = entry.remove();
            let tried = work.attempts();
            let line = work.job.line;
            match self.scheduler.finish(lease, work, &attempt, self.now) {
                Verdict::Ok(work) => self.end(&work, End::Ok),
                Verdict::Failed(work, failure) => self.end(&work, End::Failed(failure)),
                Verdict::Again => {
                    self.attempts.insert(line, tried + 1);
                }
            }
        }
    }

    pub fn ok(&self) -> usize {
        self.ends.values().filter(|end| **end == End::Ok).count()
    }

    pub fn failure(&self, line: u64) -> &Failure {
        match &self.ends[&line] {
            End::Failed(failure) => failure,
            End::Ok => panic!("{line} is ok"),
        }
    }

    pub fn begun_at(&self, exit: usize) -> usize {
        self.begun.iter().filter(|begun| begun.exit == exit).count()
    }

    pub fn exit(&self, exit: u32) -> ExitState<'_> {
        self.scheduler.exit(ExitIx::new(exit), self.now)
    }

    fn begin(&mut self, start: Start) {
        let exit = start.exit.index();
        self.begun.push(Begun {
            at: self.now,
            exit,
            line: start.work.job.line,
        });
        let (takes, attempt) = (self.script)(exit, &start.work, self.now);
        self.serial += 1;
        let key = Reverse((self.now + takes, self.serial));
        self.running.insert(key, (start.lease, start.work, attempt));
    }

    fn end(&mut self, work: &Work, end: End) {
        let line = work.job.line;
        self.attempts.insert(line, work.attempts());
        assert_eq!(self.ends.insert(line, end), None, "{line} ended twice");
    }
}

pub fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}
