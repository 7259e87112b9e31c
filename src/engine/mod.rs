//! The loop: one task that owns all state of a run, one `select!`, one `JoinSet`.
//!
//! It starts what the scheduler allows, hands what lands back to the scheduler, stores and
//! records what is done, and ends the run: list done, time up, interrupted, disk gone. It
//! decides nothing about exits, origins and retries (`schedule`), and no byte of a long body
//! passes it (`flight`). The only place that reads the clock.
//!
//! Invariant: every lease that [`Scheduler::next`] hands out comes back through
//! [`Scheduler::finish`] or [`Scheduler::abandon`], also when its task is cancelled or panics.

mod cuts;
mod flight;
mod intake;
mod landing;
mod recording;
mod records;
mod refresh;
mod signals;
mod standing;
mod stop;
mod storing;
mod winding_up;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::task::{Id, JoinSet, yield_now};

use crate::fetch::{Conns, Fetcher, Request, cut};
use crate::input::Urls;
use crate::model::{Clock, Codes, Exit, Record, Time};
use crate::report::{Metrics, Progress, Summary, Tally};
use crate::schedule::{Lease, Next, Note, PauseCause, Scheduler, Start, Ticket, Work};
use crate::store::{ResultsCopy, Store};
use crate::wake::Wake;
use cuts::Head;
use flight::{Ground, Landed, Plane};
use recording::Recording;
use stop::Stop;
use storing::Storing;

pub use refresh::Stored;
pub use signals::{Signals, StatusRequests, outlive_file_size_limits};
pub use stop::Ended;

/// Time between two looks at idle sockets and progress.
const TICK: Duration = Duration::from_millis(200);
/// Answers of the scheduler that one turn of the loop carries out. A fleet that dies gives up
/// all that waits, which can be millions: signals, ends and a reader of `--results` that is
/// behind are heeded in between. Smaller: more turns for the same; larger: they wait longer.
const STEPS: usize = 4096;

/// Everything a run needs, resolved.
pub struct Plan {
    /// The run's clock; its zero is the start of the program.
    pub clock: Clock,
    /// The fleet, in the order of the scheduler's exit indices.
    pub exits: Arc<[Exit]>,
    /// Names and caps of the groups, in the order of the scheduler's indices.
    pub groups: Vec<(String, u32)>,
    /// Requests that the fleet may carry at a time, its groups' caps kept.
    pub slots: u64,
    /// Rules and seats of the fleet.
    pub scheduler: Scheduler,
    /// Makes attempts.
    pub fetcher: Fetcher,
    /// Sockets between attempts.
    pub conns: Conns,
    /// Statuses that are stored.
    pub accept: Codes,
    /// 0: a 3xx is an answer like any other.
    pub max_redirects: u32,
    /// The URL list as it is read.
    pub urls: Urls,
    /// How messages name that list.
    pub list: String,
    /// The output directory.
    pub store: Store,
    /// What becomes of entries whose body is in it already.
    pub stored: Stored,
    /// A second place for records.
    pub copy: Option<ResultsCopy>,
    /// Stop after this long.
    pub max_time: Option<Duration>,
    /// Where to show how it goes.
    pub progress: Progress,
    /// Who wants figures while it goes.
    pub metrics: Option<Metrics>,
    /// What may end it early.
    pub signals: Signals,
    /// Who asks how it stands.
    pub status: StatusRequests,
}

/// How a run ended.
pub struct End {
    /// Why it stopped.
    pub ended: Ended,
    /// What was done.
    pub summary: Summary,
}

/// The machine's clocks, read here once; everything else asks the [`Clock`].
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn start_clock() -> Clock {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH);
    Clock::new(Instant::now(), unix.unwrap_or_default())
}

/// Runs `plan` to its end; every record is in the journal when it returns.
pub async fn run(plan: Plan) -> End {
    let mut engine = Engine::new(plan);
    engine.work().await;
    engine.end().await
}

struct Engine {
    clock: Clock,
    started: Time,
    exits: Arc<[Exit]>,
    groups: Vec<(String, u32)>,
    scheduler: Scheduler,
    conns: Conns,
    ground: Arc<Ground>,
    tasks: JoinSet<Box<Landed>>,
    /// What each task holds; a task that dies returns nothing itself.
    flights: HashMap<Id, Flight, foldhash::fast::RandomState>,
    /// Of them, those that the scheduler may ask to be cut.
    tickets: HashMap<Ticket, Id, foldhash::fast::RandomState>,
    urls: Urls,
    list: String,
    /// The list has been read to its end.
    list_read: bool,
    /// The least time that the rest of the list takes was said.
    floor_told: bool,
    /// Entries of the list so far.
    entries: u64,
    /// Of these, refused ones.
    refusals: u64,
    store: Store,
    stored: Stored,
    copy: Option<ResultsCopy>,
    tally: Tally,
    recording: Recording,
    storing: Storing,
    progress: Progress,
    metrics: Option<Metrics>,
    signals: Signals,
    status: StatusRequests,
    /// Requests that all exits may carry at a time.
    slots: u32,
    /// The last instant that a record was stamped with, in milliseconds, and how it is written.
    stamp: (i64, String),
    max_time: Option<Time>,
    stop: Stop,
    /// When idle sockets and progress are looked at next.
    next_tick: Time,
    /// Nothing starts before: this machine had no descriptor or port to spare.
    resume_at: Time,
}

struct Flight {
    lease: Lease,
    work: Box<Work>,
    exit: usize,
    head: Head,
    /// The record of what is stored already, which the request may ask by.
    known: Option<Box<Record>>,
}

impl Engine {
    fn new(plan: Plan) -> Engine {
        let started = plan.clock.now();
        Engine {
            clock: plan.clock,
            started,
            tally: Tally::new(&plan.exits),
            recording: Recording::new(&plan, started),
            storing: Storing::new(),
            exits: plan.exits,
            groups: plan.groups,
            slots: plan.scheduler.slots(),
            scheduler: plan.scheduler,
            conns: plan.conns,
            ground: Arc::new(Ground {
                fetcher: plan.fetcher,
                bodies: plan.store.bodies.clone(),
                clock: plan.clock,
                archive: plan.store.warc.as_ref().map(|warc| warc.archive.clone()),
                accept: plan.accept,
                max_redirects: plan.max_redirects,
            }),
            tasks: JoinSet::new(),
            flights: HashMap::default(),
            tickets: HashMap::default(),
            urls: plan.urls,
            list: plan.list,
            list_read: false,
            floor_told: false,
            entries: 0,
            refusals: 0,
            store: plan.store,
            stored: plan.stored,
            copy: plan.copy,
            progress: plan.progress,
            metrics: plan.metrics,
            signals: plan.signals,
            status: plan.status,
            max_time: plan.max_time.map(|span| started + span),
            stamp: (i64::MIN, String::new()),
            stop: Stop::default(),
            next_tick: started,
            resume_at: Time::ZERO,
        }
    }

    /// The loop.
    async fn work(&mut self) {
        let mut timer = match Wake::new() {
            Ok(timer) => timer,
            Err(error) => return self.no_timer(error),
        };
        loop {
            let wake = self.start_what_can();
            self.make_room();
            self.flush();
            if self.is_over() {
                break;
            }
            if let Err(error) = self.set(&mut timer, wake) {
                return self.no_timer(error);
            }
            let reads = self.reads();
            tokio::select! {
                // A signal is heard before anything else that is ready as well. Nothing starves:
                // no task ends, and so none lands, while the loop itself runs; and before the
                // list, which another thread may bring without a pause, stands what is rare.
                biased;
                ended = self.signals.next() => self.end_early(ended),
                () = self.status.next() => self.answer_status(),
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.land(ended);
                    while let Some(ended) = self.tasks.try_join_next_with_id() {
                        self.land(ended);
                    }
                }
                load = self.storing.back() => self.came_back(load),
                batch = self.urls.next(), if reads => match batch {
                    Some(Ok(batch)) => self.take_in(batch),
                    Some(Err(error)) => self.list_failed(error),
                    None => self.list_read = true,
                },
                () = timer.rung() => self.tick(),
                // Pending once: tasks that have something to do go first.
                () = yield_now(), if self.storing.waits() => self.store_some(),
            }
        }
    }

    /// Starts everything that may start now. Answers when to ask again, if time alone can
    /// change the answer.
    fn start_what_can(&mut self) -> Option<Time> {
        let now = self.clock.now();
        if self.stop.is_asked() {
            return None;
        }
        if now < self.resume_at || self.copy_is_behind() {
            return Some(now + TICK);
        }
        let mut steps = 0..STEPS;
        let wake = loop {
            // A disk that fails meanwhile ends the run.
            if self.stop.is_asked() {
                break None;
            }
            if steps.next().is_none() {
                break Some(now);
            }
            match self.scheduler.next(now) {
                Next::Start(start) => self.start(start, now),
                Next::GiveUp(work, failure) => self.fail(&work, failure),
                Next::Cut(ticket) => self.cut(ticket, now),
                Next::LastCall => self.last_call(now),
                Next::Refill(refill) => self.refill(refill),
                Next::At(time) => break Some(time),
                Next::Idle => break None,
            }
        };
        for note in self.scheduler.notes() {
            self.tell(&note);
        }
        wake
    }

    fn copy_is_behind(&self) -> bool {
        self.copy.as_ref().is_some_and(ResultsCopy::is_behind)
    }

    fn start(&mut self, start: Start, now: Time) {
        let Start { lease, exit, work } = start;
        let exit = exit.index();
        let seat = self.conns.take(exit, work.target(), now);
        let known = self.known(&work);
        let request = Request {
            method: work.method().clone(),
            target: work.target().clone(),
            authorization: work.authorization().cloned(),
            headers: work.headers().map(std::borrow::Cow::into_owned),
            body: work.body().cloned(),
            left_origin: work.left_origin(),
            validators: refresh::validators(known.as_deref()),
        };
        self.recording.recorder.started(exit);
        let (cut, patience) = cut();
        let plane = Box::new(Plane {
            exit,
            seat,
            request,
            patience,
        });
        let id = self
            .tasks
            .spawn(flight::fly(Arc::clone(&self.ground), plane))
            .id();
        if let Some(ticket) = lease.ticket() {
            self.tickets.insert(ticket, id);
        }
        let flight = Flight {
            lease,
            work,
            exit,
            head: Head::Awaited(cut),
            known,
        };
        self.flights.insert(id, flight);
    }

    fn tell(&mut self, note: &Note) {
        self.keep(note);
        match note {
            Note::OriginPaused {
                cause: PauseCause::AskedTooMuch,
                ..
            } => tracing::warn!("{note}"),
            Note::OriginPaused { origin, wait, .. } => {
                self.tally.pause(origin, *wait);
                tracing::info!("{note}");
            }
            Note::Exit { .. } | Note::TriesSpent { .. } | Note::PanicOver => {
                tracing::info!("{note}");
            }
            Note::OriginDead { .. } | Note::Panic | Note::NoExit => tracing::warn!("{note}"),
        }
    }

    fn flush(&mut self) {
        let since = self.clock.now();
        let flushed = self.store.journal.flush();
        // A segment ends when all of it is recorded.
        let rolled = flushed.and_then(|()| match &mut self.store.warc {
            Some(warc) => warc.segments.roll(),
            None => Ok(()),
        });
        if let Err(error) = rolled {
            self.disk_failed(error);
        }
        match self.copy.as_mut().map(ResultsCopy::flush) {
            None | Some(Ok(())) => {}
            Some(Err(error)) => {
                self.copy = None;
                self.stop.ask_once(error.into(), self.clock.now());
            }
        }
        self.ground.fetcher.stood_still(self.clock.now() - since);
    }

    fn is_over(&self) -> bool {
        match self.stop.deadline() {
            Some(deadline) => self.tasks.is_empty() || self.clock.now() >= deadline,
            None => {
                let runs = !self.scheduler.is_empty() || !self.tasks.is_empty();
                self.list_read && !runs && self.storing.is_empty()
            }
        }
    }

    fn set(&self, timer: &mut Wake, wake: Option<Time>) -> std::io::Result<()> {
        let tick = self.next_tick;
        let wake = [wake, self.stop.deadline(), self.max_time_left(), Some(tick)];
        let wake = wake.into_iter().flatten().min().unwrap_or(tick);
        timer.set(wake, || self.clock.now())
    }

    fn no_timer(&mut self, error: std::io::Error) {
        let error = anyhow::Error::from(error).context("cannot set a timer");
        self.stop.ask_once(Ended::Local(error), self.clock.now());
    }

    fn max_time_left(&self) -> Option<Time> {
        self.max_time.filter(|_| !self.stop.is_asked())
    }

    /// Starts the end, and says so where it takes a while.
    fn end_early(&mut self, why: Ended) {
        let running = self.tasks.len();
        if !self.stop.is_asked()
            && running > 0
            && let Some(reason) = why.sentence()
        {
            tracing::info!(
                "{reason}: nothing new starts; {running} under way get up to {} s, a signal now cuts them short",
                stop::GRACE.as_secs()
            );
        }
        self.stop.ask(why, self.clock.now());
    }

    /// What time alone brings.
    fn tick(&mut self) {
        let now = self.clock.now();
        if self.max_time_left().is_some_and(|end| now >= end) {
            self.end_early(Ended::OutOfTime);
        }
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.conns.expire(now);
        self.tell_floor();
        self.look(now);
        self.show(now);
    }
}
