//! What the timeline is told: starts, ends, looks at the queues, changes, one span a second.
//!
//! `report` folds and writes; this is the translation from the engine's words to its own.

use std::time::Duration;

use super::flight::AtDisk;
use super::{Engine, Plan};
use crate::fetch::Fetcher;
use crate::model::Time;
use crate::report::Stage;
use crate::report::timeline::{Gauges, Happened, Line, Recorder, RunHead, Timeline};
use crate::schedule::{ExitIx, Note, PauseCause, Scheduler};

/// Length of a span.
const SPAN: Duration = Duration::from_secs(1);

/// The run's way into `timeline.jsonl`.
pub(super) struct Recording {
    pub(super) recorder: Recorder,
    /// Requests that the fleet may carry at a time.
    pub(super) slots: u64,
    timeline: Timeline,
    /// Jobs' time at the disk.
    pub(super) disk: Duration,
    /// The part of it in which the loop waited and started nothing.
    pub(super) disk_alone: Duration,
}

impl Recording {
    pub(super) fn new(plan: &Plan, started: Time) -> Recording {
        let mut timeline = Timeline::open(plan.store.dir(), plan.store.backup.as_deref());
        let at = plan.clock.unix(started).as_millis();
        timeline.add(&Line::Run(RunHead {
            at: u64::try_from(at).unwrap_or(u64::MAX),
            exits: plan.scheduler.exits(),
            slots: plan.slots,
            rate: plan.scheduler.rules().rate,
        }));
        Recording {
            recorder: Recorder::new(&plan.exits, started),
            slots: plan.slots,
            timeline,
            disk: Duration::ZERO,
            disk_alone: Duration::ZERO,
        }
    }

    /// An attempt waited for the disk, while others went on.
    pub(super) fn at_disk(&mut self, waited: AtDisk) {
        self.disk += waited.meanwhile + waited.after;
    }

    /// Another thread's file calls took this long, while the loop went on.
    pub(super) fn stored_elsewhere(&mut self, took: Duration) {
        self.disk += took;
    }

    /// A file call of the loop took this long.
    pub(super) fn committed(&mut self, took: Duration) {
        self.disk += took;
        self.disk_alone += took;
    }

    /// The run is over.
    pub(super) fn end(&mut self, why: Option<String>) {
        let why = why.unwrap_or_else(|| "complete".to_owned());
        self.timeline.add(&Line::End(why));
    }
}

impl Engine {
    /// Looks where jobs are; a span that is long enough is written.
    pub(super) fn look(&mut self, now: Time) {
        let mut gauges = gauges(&self.scheduler, &self.ground.fetcher);
        gauges.disk = self.recording.disk;
        self.recording.recorder.look(&gauges, now);
        if self.recording.recorder.age(now) >= SPAN {
            self.cut_span(now);
        }
    }

    /// Writes the present span.
    pub(super) fn cut_span(&mut self, now: Time) {
        let scheduler = &self.scheduler;
        let cap_of = |exit: usize| {
            let state = scheduler.exit(ExitIx::new(exit as u32), now);
            (state.ceiling, state.cap)
        };
        let counts = self.tally.counts();
        let span = self.recording.recorder.cut(now, counts, cap_of);
        self.recording.timeline.add(&Line::Span(span));
    }

    /// Keeps a change for the present span.
    pub(super) fn keep(&mut self, note: &Note) {
        if let Some(event) = happened(note) {
            self.recording.recorder.happened(event);
        }
    }
}

fn gauges(scheduler: &Scheduler, fetcher: &Fetcher) -> Gauges {
    let mut gauges = Gauges {
        up: scheduler.exits_in_use(),
        ..Gauges::default()
    };
    let mut put = |place: Stage, jobs: usize| {
        gauges.jobs[place as usize] = u32::try_from(jobs).unwrap_or(u32::MAX);
    };
    let under_way = fetcher.under_way();
    put(Stage::Budget, scheduler.waiting_for_budget());
    let exit = match scheduler.groups_hold() {
        true => Stage::Group,
        false => Stage::ExitSlot,
    };
    put(exit, scheduler.waiting_for_exit());
    for (place, attempts) in [
        (Stage::Dial, under_way.dial),
        (Stage::Handshake, under_way.handshake),
        (Stage::Tls, under_way.tls),
        (Stage::FirstByte, under_way.first_byte),
        (Stage::Body, under_way.body),
    ] {
        put(place, attempts as usize);
    }
    gauges
}

fn happened(note: &Note) -> Option<Happened> {
    Some(match note {
        // The job's record tells it.
        Note::TriesSpent { .. } => return None,
        Note::Exit {
            id,
            state,
            cap,
            reason,
            ..
        } => Happened::Exit {
            id: id.to_string(),
            state: state.as_str().to_owned(),
            cap: *cap,
            why: reason.clone(),
        },
        Note::OriginPaused {
            origin,
            wait,
            cause,
        } => Happened::Pause {
            origin: origin.to_string(),
            wait_s: (wait.as_secs_f64() * 10.0).round() / 10.0,
            why: match cause {
                PauseCause::Asked => "asked",
                PauseCause::AskedTooMuch => "asked too much",
                PauseCause::Fails => "fails",
            }
            .to_owned(),
        },
        Note::OriginDead { origin } => Happened::Dead {
            origin: origin.to_string(),
        },
        Note::Panic | Note::PanicOver | Note::NoExit => Happened::Fleet {
            why: note.to_string(),
        },
    })
}
