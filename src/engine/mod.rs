//! The loop: one task that owns all state of a run, one `select!`, one `JoinSet`.
//!
//! It starts what the scheduler allows, hands what lands back to the scheduler, stores and
//! records what is done, and ends the run: list done, time up, interrupted, disk gone. It
//! decides nothing about exits, origins and retries (`schedule`), and no body byte passes
//! it (`flight`). The only place that reads the clock.
//!
//! Invariant: every lease that [`Scheduler::next`] hands out comes back through
//! [`Scheduler::finish`] or [`Scheduler::abandon`], also when its task is cancelled or panics.

mod flight;
mod landing;
mod records;
mod stop;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio::time::Sleep;

use crate::fetch::{Conns, Fetcher};
use crate::input::Batch;
use crate::model::{Clock, Codes, Exit, Job, Record, Refusal, Time};
use crate::report::{Progress, Summary, Tally};
use crate::schedule::{Lease, Next, Scheduler, Start, Work};
use crate::store::{Decision, ResultsCopy, Store};
use flight::{Ground, Landed};
use stop::Stop;
pub use stop::Ended;

/// Everything a run needs, resolved.
pub struct Plan {
    /// The run's clock; its zero is the start of the program.
    pub clock: Clock,
    /// The fleet, in the order of the scheduler's exit indices.
    pub exits: Arc<[Exit]>,
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
    pub entries: mpsc::Receiver<Batch>,
    /// The output directory.
    pub store: Store,
    /// A second place for records.
    pub copy: Option<ResultsCopy>,
    /// Stop after this long.
    pub max_time: Option<Duration>,
    /// Where to show how it goes.
    pub progress: Progress,
}

/// The machine's clocks, read here once; everything else asks the [`Clock`].
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn start_clock() -> Clock {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH);
    Clock::new(Instant::now(), unix.unwrap_or_default())
}

/// How a run ended.
pub struct End {
    /// Why it stopped.
    pub ended: Ended,
    /// What was done.
    pub summary: Summary,
}

/// Runs `plan` to its end. The files of the output directory are written when it returns.
pub async fn run(plan: Plan) -> End {
    Engine::new(plan).run().await
}

struct Engine {
    clock: Clock,
    exits: Arc<[Exit]>,
    scheduler: Scheduler,
    conns: Conns,
    ground: Arc<Ground>,
    tasks: JoinSet<Landed>,
    /// What each task holds; a task that dies returns nothing itself.
    flights: HashMap<Id, Flight>,
    /// `None`: the list is read.
    entries: Option<mpsc::Receiver<Batch>>,
    store: Store,
    copy: Option<ResultsCopy>,
    tally: Tally,
    progress: Progress,
    stop: Stop,
    /// Nothing starts before: this machine had no descriptor or port to spare.
    resume_at: Time,
    wake: std::pin::Pin<Box<Sleep>>,
}

struct Flight {
    lease: Lease,
    work: Box<Work>,
    exit: usize,
}

impl Engine {
    fn new(plan: Plan) -> Engine {
        let tally = Tally::new(&plan.exits);
        let wake = Box::pin(tokio::time::sleep_until(plan.clock.instant(Time::NEVER).into()));
        Engine {
            clock: plan.clock,
            scheduler: plan.scheduler,
            conns: plan.conns,
            ground: Arc::new(Ground {
                fetcher: plan.fetcher,
                bodies: plan.store.bodies.clone(),
                accept: plan.accept,
                max_redirects: plan.max_redirects,
            }),
            tasks: JoinSet::new(),
            flights: HashMap::new(),
            entries: Some(plan.entries),
            store: plan.store,
            copy: plan.copy,
            tally,
            progress: plan.progress,
            stop: Stop::new(plan.max_time),
            resume_at: Time::ZERO,
            exits: plan.exits,
            wake,
        }
    }
}
