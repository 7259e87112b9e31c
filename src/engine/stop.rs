//! Why and when a run ends before its list does, in two steps: start nothing new and give
//! what is under way a few seconds; then stop.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use crate::model::Time;
use crate::store::CopyError;

/// What running attempts are given after the first signal.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Why a run ended.
#[derive(Debug)]
pub enum Ended {
    /// The list is done.
    Complete,
    /// No exit was left; the jobs that remained are recorded as failed.
    NoExit,
    /// `--max-time` was reached with work left.
    OutOfTime,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// The reader of `--results -` has closed its end.
    ReaderGone,
    /// This machine failed: disk, list, descriptors.
    Local(anyhow::Error),
}

/// A signal that nobody takes within this time finds the program blocked.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);
/// What a run does after the first signal takes less: [`GRACE`], then the waits of its end.
const ENDED_WITHIN: Duration = Duration::from_secs(60);

/// The signals that end a run, caught from the moment this is made.
///
/// A thread of its own catches them. The run's task may be blocked for ever in a call that
/// no signal ends (a pipe that nobody reads or writes, a file system that is gone), and
/// would then never hear of them: the thread ends the program instead.
pub struct Signals {
    caught: Receiver<Caught>,
}

/// What was caught.
#[derive(Clone, Copy, Debug)]
enum Caught {
    Interrupt,
    Terminate,
}

impl Signals {
    /// Catches SIGINT and SIGTERM from now on. `last_resort` ends the program with what the
    /// first of them asked for; it is called where signals do not, on another thread.
    ///
    /// # Errors
    /// The system has no room for a handler or a thread.
    pub fn catch(last_resort: impl FnOnce(Ended) + Send + 'static) -> io::Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (tell, caught) = channel(1);
        let source = {
            let _inside = runtime.enter();
            Source {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || last_resort(runtime.block_on(watch(source, tell)).into()))?;
        Ok(Signals { caught })
    }

    /// The next one, as the end it asks for. Cancel-safe.
    pub async fn next(&mut self) -> Ended {
        match self.caught.recv().await {
            Some(caught) => caught.into(),
            // The thread has ended: the program is about to.
            None => std::future::pending().await,
        }
    }
}

struct Source {
    interrupt: Signal,
    terminate: Signal,
}

impl Source {
    async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
        }
    }
}

/// Hands signals on. Returns the first one when the program should have ended and has not.
async fn watch(mut source: Source, tell: Sender<Caught>) -> Caught {
    let first = source.next().await;
    let hand_on = async {
        let mut next = first;
        loop {
            let _ = tell.try_send(next);
            match timeout(TAKEN_WITHIN, tell.reserve()).await {
                Ok(Ok(_)) => next = source.next().await,
                // The run is over: the rest of the program has this long.
                Ok(Err(_)) => return sleep(TAKEN_WITHIN).await,
                Err(_) => return,
            }
        }
    };
    let _ = timeout(ENDED_WITHIN, hand_on).await;
    first
}

impl From<Caught> for Ended {
    fn from(caught: Caught) -> Ended {
        match caught {
            Caught::Interrupt => Ended::Interrupted,
            Caught::Terminate => Ended::Terminated,
        }
    }
}

impl From<CopyError> for Ended {
    fn from(error: CopyError) -> Ended {
        match error {
            CopyError::ResultsClosed => Ended::ReaderGone,
            CopyError::Io { .. } => Ended::Local(error.into()),
        }
    }
}

/// Where the run stands on its way to an early end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    reason: Option<Ended>,
    deadline: Option<Time>,
}

impl Stop {
    /// Nothing new starts; what is under way has [`GRACE`]. The first reason counts; asked
    /// again, everything stops now.
    pub(super) fn ask(&mut self, why: Ended, now: Time) {
        match self.reason {
            None => {
                self.reason = Some(why);
                self.deadline = Some(now + GRACE);
            }
            Some(_) => self.deadline = Some(now),
        }
    }

    /// As [`Stop::ask`], but a second reason of this kind changes nothing.
    pub(super) fn ask_once(&mut self, why: Ended, now: Time) {
        if self.reason.is_none() {
            self.ask(why, now);
        }
    }

    /// An end is under way.
    pub(super) fn is_asked(&self) -> bool {
        self.reason.is_some()
    }

    /// What is still under way is cut short at this instant.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// The reason, taken out at the very end.
    pub(super) fn reason(self) -> Option<Ended> {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_counts_and_the_second_request_stops_now() {
        let mut stop = Stop::default();
        stop.ask(Ended::Interrupted, Time::from_secs(1));
        assert_eq!(stop.deadline(), Some(Time::from_secs(6)));
        stop.ask_once(Ended::ReaderGone, Time::from_secs(2));
        assert_eq!(stop.deadline(), Some(Time::from_secs(6)));
        stop.ask(Ended::Terminated, Time::from_secs(3));
        assert_eq!(stop.deadline(), Some(Time::from_secs(3)));
        assert!(matches!(stop.reason(), Some(Ended::Interrupted)));
    }
}
