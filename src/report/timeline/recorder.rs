//! From starts, ends and looks at the queues to spans: a pure fold.
//!
//! A start and an end cost a few integer updates. Which exits are recorded one by one settles
//! on those used most: an exit takes the place of another only when it is used far more, so
//! that a fleet used evenly does not change places all the time.

use std::sync::Arc;
use std::time::Duration;

use super::TRACKED;
use super::line::{ExitUse, Happened, Named, Span};
use crate::model::{Exit, Time};
use crate::report::{Counts, Stage};

/// Changes kept of one span.
const EVENTS_MOST: usize = 24;
/// An exit takes another's place when it is used this many times as often …
const FAR_MORE: u32 = 2;
/// … and this much more.
const AND: u32 = 8;

/// Where jobs are at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Jobs at each place, in the order of [`Stage::ALL`]; the disk's is not looked at.
    pub jobs: [u32; Stage::ALL.len()],
    /// Jobs' time at the disk so far: file calls block, so nobody can look while they last.
    pub disk: Duration,
    /// Exits in use.
    pub up: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    now: u32,
    /// In the span of this number; in a later one, before its first start: `now`.
    most: u32,
    span: u32,
    uses: u32,
    tracked: bool,
}

impl Use {
    /// Before it changes, or is told, in span `span`.
    fn renew(&mut self, span: u32) {
        if self.span != span {
            (self.span, self.most) = (span, self.now);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Tracked {
    exit: u32,
    told: Option<(u32, u32)>,
}

/// See the module's text.
#[derive(Debug)]
pub struct Recorder {
    exits: Vec<Use>,
    ids: Vec<Arc<str>>,
    tracked: Vec<Tracked>,
    gone: Vec<u32>,
    /// Number of the present span.
    span: u32,
    /// Fewest uses among the tracked ones, as of the last span.
    least: u32,
    now: u32,
    most: u32,
    /// Job-seconds by place since the span began.
    sums: [f64; Stage::ALL.len()],
    looked: Time,
    disk: Duration,
    up: u32,
    begun: Time,
    started: Time,
    counts: Counts,
    events: Vec<Happened>,
    more_events: u32,
    held: Held,
}

/// Job-seconds of waiting for exits, over the whole run.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    slot: f64,
    group: f64,
}

impl Recorder {
    /// A run that begins now.
    pub fn new(exits: &[Exit], started: Time) -> Recorder {
        Recorder {
            exits: vec![Use::default(); exits.len()],
            ids: exits.iter().map(|exit| exit.id.clone()).collect(),
            tracked: Vec::new(),
            gone: Vec::new(),
            span: 0,
            least: 0,
            now: 0,
            most: 0,
            sums: [0.0; Stage::ALL.len()],
            looked: started,
            disk: Duration::ZERO,
            up: 0,
            begun: started,
            started,
            counts: Counts::default(),
            events: Vec::new(),
            more_events: 0,
            held: Held::default(),
        }
    }

    /// A lease was given out.
    pub fn started(&mut self, exit: usize) {
        self.now += 1;
        self.most = self.most.max(self.now);
        let Some(used) = self.exits.get_mut(exit) else {
            return;
        };
        used.renew(self.span);
        used.now += 1;
        used.most = used.most.max(used.now);
        used.uses = used.uses.saturating_add(1);
        let bound = self.least.saturating_mul(FAR_MORE).saturating_add(AND);
        if !used.tracked && (self.tracked.len() < TRACKED || used.uses > bound) {
            self.track(exit);
        }
    }

    /// It came back.
    pub fn landed(&mut self, exit: usize) {
        self.now = self.now.saturating_sub(1);
        if let Some(used) = self.exits.get_mut(exit) {
            used.renew(self.span);
            used.now = used.now.saturating_sub(1);
        }
    }

    fn track(&mut self, exit: usize) {
        if self.tracked.len() >= TRACKED {
            let uses = |tracked: &Tracked| self.exits[tracked.exit as usize].uses;
            let least = (0..self.tracked.len()).min_by_key(|&n| uses(&self.tracked[n]));
            if let Some(at) = least {
                let out = self.tracked.swap_remove(at);
                self.exits[out.exit as usize].tracked = false;
                self.gone.extend(out.told.map(|_| out.exit));
            }
        }
        self.exits[exit].tracked = true;
        self.tracked.push(Tracked {
            exit: exit as u32,
            told: None,
        });
    }

    /// Something changed.
    pub fn happened(&mut self, event: Happened) {
        if self.events.len() < EVENTS_MOST {
            self.events.push(event);
        } else {
            self.more_events += 1;
        }
    }

    /// Where jobs are now; what was seen holds since the last look.
    pub fn look(&mut self, gauges: &Gauges, now: Time) {
        let since = (now - self.looked).as_secs_f64();
        self.looked = now;
        for (sum, jobs) in self.sums.iter_mut().zip(gauges.jobs) {
            *sum += f64::from(jobs) * since;
        }
        let disk = gauges.disk.saturating_sub(self.disk).as_secs_f64();
        self.sums[Stage::Disk as usize] += disk;
        self.disk = gauges.disk;
        self.up = gauges.up;
        self.held.slot += f64::from(gauges.jobs[Stage::ExitSlot as usize]) * since;
        self.held.group += f64::from(gauges.jobs[Stage::Group as usize]) * since;
    }

    /// What part of the waiting for exits was for full groups, 0 to 1.
    pub fn group_share(&self) -> f64 {
        let whole = self.held.slot + self.held.group;
        if whole > 0.0 {
            self.held.group / whole
        } else {
            0.0
        }
    }

    /// How long the present span is already.
    pub fn age(&self, now: Time) -> Duration {
        now - self.begun
    }

    /// Ends the span. `counts` are those of the whole run; `cap_of` says what an exit's
    /// ceiling and present cap are.
    pub fn cut(&mut self, now: Time, counts: Counts, cap_of: impl Fn(usize) -> (u32, u32)) -> Span {
        let length = (now - self.begun).as_secs_f64();
        let before = std::mem::replace(&mut self.counts, counts);
        let mut span = Span {
            t: round((self.begun - self.started).as_secs_f64(), 1e3),
            s: round(length, 1e3),
            jobs: self.sums.map(|sum| round(sum / length.max(1e-3), 1e2)),
            peak: self.most,
            up: self.up,
            ended: [
                (counts.ok - counts.already_ok) - (before.ok - before.already_ok),
                counts.failed - before.failed,
                counts.refused - before.refused,
            ],
            attempts: counts.attempts - before.attempts,
            bytes: counts.bytes - before.bytes,
            gone: std::mem::take(&mut self.gone),
            events: std::mem::take(&mut self.events),
            more_events: std::mem::take(&mut self.more_events),
            ..Span::default()
        };
        self.fill_exits(&mut span, cap_of);
        self.sums = [0.0; Stage::ALL.len()];
        self.span = self.span.wrapping_add(1);
        self.most = self.now;
        self.begun = now;
        span
    }

    fn fill_exits(&mut self, span: &mut Span, cap_of: impl Fn(usize) -> (u32, u32)) {
        let mut listed = 0;
        for tracked in &mut self.tracked {
            let exit = tracked.exit as usize;
            let used = &mut self.exits[exit];
            let (ceiling, cap) = cap_of(exit);
            used.renew(self.span);
            let present = (used.most, cap);
            if tracked.told.is_none() {
                let id = self.ids[exit].to_string();
                span.names.push(Named(tracked.exit, id, ceiling));
            }
            if tracked.told != Some(present) {
                span.used.push(ExitUse(tracked.exit, used.most, cap));
                tracked.told = Some(present);
            }
            listed += used.now;
        }
        span.rest = self.now.saturating_sub(listed);
        let uses = self.tracked.iter();
        let uses = uses.map(|tracked| self.exits[tracked.exit as usize].uses);
        self.least = uses.min().unwrap_or(0);
    }
}

fn round(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tally::tests::exit;

    fn fleet(count: usize) -> Vec<Exit> {
        (0..count).map(|n| exit(&format!("e{n}"))).collect()
    }

    fn cut(recorder: &mut Recorder, second: u64) -> Span {
        recorder.cut(Time::from_secs(second), Counts::default(), |_| (3, 3))
    }

    #[test]
    fn the_most_at_a_time_is_kept_per_span_and_told_only_when_it_changes() {
        let mut recorder = Recorder::new(&fleet(2), Time::ZERO);
        for exit in [0, 0, 1] {
            recorder.started(exit);
        }
        recorder.landed(0);
        let first = cut(&mut recorder, 1);
        assert_eq!(first.peak, 3);
        assert_eq!(first.used, [ExitUse(0, 2, 3), ExitUse(1, 1, 3)]);
        assert_eq!(first.names[1], Named(1, "e1".into(), 3));
        let second = cut(&mut recorder, 2);
        assert_eq!((second.peak, second.t, second.s), (2, 1.0, 1.0));
        assert_eq!(second.used, [ExitUse(0, 1, 3)]);
        assert!(second.names.is_empty());
        assert!(cut(&mut recorder, 3).used.is_empty());
    }

    #[test]
    fn an_exit_that_fills_and_empties_within_one_span_shows_its_peak_there() {
        let mut recorder = Recorder::new(&fleet(1), Time::ZERO);
        recorder.started(0);
        recorder.started(0);
        recorder.landed(0);
        recorder.landed(0);
        assert_eq!(cut(&mut recorder, 1).used, [ExitUse(0, 2, 3)]);
        assert_eq!(cut(&mut recorder, 2).used, [ExitUse(0, 0, 3)]);
    }

    #[test]
    fn jobs_by_place_are_averages_and_the_disk_is_a_share_of_time() {
        let mut recorder = Recorder::new(&fleet(1), Time::ZERO);
        let mut gauges = Gauges::default();
        gauges.jobs[Stage::Budget as usize] = 10;
        gauges.jobs[Stage::Group as usize] = 1;
        gauges.disk = Duration::from_millis(250);
        recorder.look(&gauges, Time::from_millis(500));
        gauges.jobs = [0; 9];
        recorder.look(&gauges, Time::from_secs(1));
        let span = cut(&mut recorder, 1);
        assert_eq!(span.jobs, [5.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25]);
        assert_eq!(recorder.group_share(), 1.0);
    }

    #[test]
    fn a_large_fleet_is_told_by_its_busiest_exits_and_the_sum_of_the_others() {
        let mut recorder = Recorder::new(&fleet(1000), Time::ZERO);
        for exit in 0..1000 {
            recorder.started(exit);
        }
        let first = cut(&mut recorder, 1);
        assert_eq!(first.used.len(), TRACKED);
        assert_eq!(first.rest, 1000 - TRACKED as u32);
        for _ in 0..100 {
            recorder.started(999);
        }
        let second = cut(&mut recorder, 2);
        assert_eq!(second.gone.len(), 1);
        assert!(second.used.contains(&ExitUse(999, 101, 3)), "{second:?}");
        assert_eq!(second.rest, 1000 - TRACKED as u32);
    }

    #[test]
    fn an_exit_that_is_told_from_now_on_is_told_by_this_span_alone() {
        let mut recorder = Recorder::new(&fleet(TRACKED + 1), Time::ZERO);
        (0..TRACKED).for_each(|exit| recorder.started(exit));
        (0..8).for_each(|_| recorder.started(TRACKED));
        (0..8).for_each(|_| recorder.landed(TRACKED));
        assert!(
            cut(&mut recorder, 1)
                .used
                .iter()
                .all(|used| used.0 < TRACKED as u32)
        );
        for _ in 0..9 {
            recorder.started(TRACKED);
            recorder.landed(TRACKED);
        }
        let second = cut(&mut recorder, 2);
        assert!(
            second.used.contains(&ExitUse(TRACKED as u32, 1, 3)),
            "{second:?}"
        );
    }

    #[test]
    fn a_storm_of_changes_is_counted_not_kept() {
        let mut recorder = Recorder::new(&fleet(1), Time::ZERO);
        for n in 0..100 {
            let why = format!("{n}");
            recorder.happened(Happened::Fleet { why });
        }
        let span = cut(&mut recorder, 1);
        assert_eq!((span.events.len(), span.more_events), (EVENTS_MOST, 76));
    }
}
