//! What goes over the scheduler's edge: leases, decisions, verdicts, notes.
//!
//! Owns plain values between the scheduler and the engine. A [`Lease`] can be neither copied
//! nor made elsewhere, and it is used up by `finish` or `abandon`: a slot given back twice, or
//! a probe that keeps its place, does not compile.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Failure, Origin, Time};

use super::asleep::Chain;
use super::budget;
use super::first_answer::Ticket;
use super::frontier::SiteIx;
use super::health::{Change, State};
use super::work::Work;

/// Index of an exit: its position among the seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExitIx(u32);

impl ExitIx {
    /// The exit at this position.
    pub const fn new(position: u32) -> ExitIx {
        ExitIx(position)
    }

    /// Its position among the seats.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The same, as rules know an exit.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The right to use one slot of an exit and one request of an origin's budget, from before
/// the dial until the body is read or the socket is closed.
#[derive(Debug)]
#[must_use = "a lease that is not finished or abandoned holds its slot for ever"]
pub struct Lease {
    pub(super) exit: ExitIx,
    pub(super) site: SiteIx,
    pub(super) charge: budget::Charge,
    /// It tries whether an origin that only failed works again.
    pub(super) trial: bool,
    pub(super) dispatched: Time,
    /// Its exit never gave a good answer when it was given out, and the request may be repeated.
    pub(super) ticket: Option<Ticket>,
}

impl Lease {
    /// The exit it is for.
    pub fn exit(&self) -> ExitIx {
        self.exit
    }

    /// The name by which [`Next::Cut`] may ask for the attempt's end.
    pub fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// When it was given out.
    pub fn dispatched(&self) -> Time {
        self.dispatched
    }
}

/// What to do next.
#[derive(Debug)]
#[must_use]
pub enum Next {
    /// Start this job now; ask again.
    Start(Start),
    /// This job ends here without another attempt; ask again.
    GiveUp(Box<Work>, Failure),
    /// This attempt is not to wait for its head any longer. If the head is there, it goes on and
    /// the scheduler is told by `heard`; else it ends as by a time limit. Ask again.
    Cut(Ticket),
    /// No exit is left to hope for. The same for all attempts under way; ask again: the head of
    /// one answer is enough to go on, else the jobs that wait are given up.
    LastCall,
    /// Read these jobs from disk, give the rest of the chain back to `refilled`, push the jobs;
    /// ask again.
    Refill(Refill),
    /// Nothing before this instant, unless a job is pushed or an attempt ends.
    At(Time),
    /// Nothing before a job is pushed or an attempt ends.
    Idle,
}

/// Where a job that was read from the list is to wait.
#[derive(Debug)]
pub enum Room {
    /// In memory: `push` it.
    Memory,
    /// On disk: write it there and tell `spilled`; or `push` it if the disk has no room.
    Disk(Berth),
}

/// Where on disk a job is to go: behind those of its origin.
#[derive(Debug)]
pub struct Berth {
    pub(super) whose: Whose,
    pub(super) chain: Option<Chain>,
}

impl Berth {
    /// Where the origin's newest job on disk is.
    pub fn after(&self) -> Option<u64> {
        self.chain.map(|chain| chain.newest)
    }
}

/// Jobs of one origin that are wanted from disk.
#[derive(Debug)]
#[must_use = "jobs that are not read back are lost"]
pub struct Refill {
    pub(super) whose: Whose,
    pub(super) chain: Chain,
    pub(super) most: usize,
}

impl Refill {
    /// Where the newest one is.
    pub fn newest(&self) -> u64 {
        self.chain.newest
    }

    /// How many are wanted at most; at least 1.
    pub fn most(&self) -> usize {
        self.most
    }
}

/// Who keeps a chain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// An origin that is known.
    Site(SiteIx),
    /// One that is not, by its key.
    Asleep(u64),
}

/// A job to start.
#[derive(Debug)]
pub struct Start {
    /// To be given back to `finish` or `abandon` with the job.
    pub lease: Lease,
    /// The exit to go through.
    pub exit: ExitIx,
    /// The job.
    pub work: Box<Work>,
}

/// What an attempt's end means for its job.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// Done: store the body.
    Ok(Box<Work>),
    /// Over without success.
    Failed(Box<Work>, Failure),
    /// It goes on: a retry, or where a redirect leads.
    Again,
}

/// One exit, as summaries show it.
#[derive(Clone, Debug)]
pub struct ExitState<'a> {
    /// What its health leaves of the ceiling; 0 if it is ejected or evicted.
    pub cap: u32,
    /// Leases it may hold at this moment: `cap`, or 0 while it rests after a fault.
    pub open: u32,
    /// What it may carry at best.
    pub ceiling: u32,
    /// Leases now.
    pub in_flight: u32,
    /// The most leases at once.
    pub peak: u32,
    /// What it is fit for.
    pub state: State,
    /// Why it is not simply healthy; empty if it is.
    pub reason: String,
    /// Attempts that ended, those that failed for a reason of ours left out.
    pub attempts: u64,
    /// Attempts with an accepted answer, or a redirect that was followed.
    pub ok: u64,
    /// Attempts whose fault is wholly or mostly this exit's.
    pub faults: u64,
    /// Answers with status 429.
    pub status_429: u64,
    /// The last fault that it had a part in; one line, no secret.
    pub last_error: Option<&'a str>,
}

/// Why an origin is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseCause {
    /// It asked for it, or for less.
    Asked,
    /// It asked for more than `--max-pause`: nobody waits for that.
    AskedTooMuch,
    /// Its answers are faults, one after the other.
    Fails,
}

/// Something that changed; one log line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// An exit's state or cap.
    Exit {
        /// The exit's name.
        id: Arc<str>,
        /// What changed.
        change: Change,
        /// What it is fit for now.
        state: State,
        /// What it may carry now.
        cap: u32,
        /// Why.
        reason: String,
    },
    /// An origin asked to be left alone, or only fails.
    OriginPaused {
        /// The origin.
        origin: Origin,
        /// For how long from now.
        wait: Duration,
        /// Why.
        cause: PauseCause,
    },
    /// A job has used up its tries, or its origin's budget for retries is spent.
    TriesSpent {
        /// Its URL as it may be shown.
        url: String,
        /// Attempts it had.
        attempts: u32,
        /// Why it failed at last.
        detail: String,
    },
    /// Nothing good came from an origin for too long: its jobs are given up.
    OriginDead {
        /// The origin.
        origin: Origin,
    },
    /// So many exits fail that the cause is likely a common one: the pool rests.
    Panic,
    /// Some exit works again.
    PanicOver,
    /// No exit is left: all jobs are given up.
    NoExit,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Exit {
                id,
                change: _,
                state,
                cap,
                reason,
            } => {
                write!(f, "exit {id}: {}, cap {cap}", state.as_str())?;
                if !reason.is_empty() {
                    write!(f, " ({reason})")?;
                }
                Ok(())
            }
            Note::OriginPaused {
                origin,
                wait,
                cause,
            } => {
                let wait = wait.as_secs_f64();
                match cause {
                    PauseCause::Asked => {
                        write!(
                            f,
                            "origin {origin}: paused for {wait:.1} s, it asks for less"
                        )
                    }
                    PauseCause::AskedTooMuch => write!(
                        f,
                        "origin {origin}: asks to be left alone for {wait:.0} s, longer than \
                         --max-pause: giving its jobs up"
                    ),
                    PauseCause::Fails => {
                        write!(f, "origin {origin}: paused for {wait:.1} s, it only fails")
                    }
                }
            }
            Note::TriesSpent {
                url,
                attempts,
                detail,
            } => write!(f, "{url}: given up (tries: {attempts}): {detail}"),
            Note::OriginDead { origin } => {
                write!(f, "origin {origin}: given up, nothing good came from it")
            }
            Note::Panic => f.write_str(
                "too many exits fail at once: the cause is likely common to them; \
                 pausing all and sending single probes",
            ),
            Note::PanicOver => f.write_str("exits work again"),
            Note::NoExit => f.write_str("no usable exit is left: giving up the remaining jobs"),
        }
    }
}
