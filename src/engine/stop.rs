//! Why and when a run ends before its list does, in two steps: start nothing new and give
//! what is under way a few seconds; then stop.

use std::time::Duration;

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

impl From<CopyError> for Ended {
    fn from(error: CopyError) -> Ended {
        match error {
            CopyError::ResultsClosed => Ended::ReaderGone,
            CopyError::Late | CopyError::Io { .. } => Ended::Local(error.into()),
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

    /// As long as no disk failed, a reason to stop early is none where nothing was left to do.
    pub(super) fn forget_early_end(&mut self) {
        self.reason = self.reason.take().filter(|reason| match reason {
            Ended::OutOfTime | Ended::Interrupted | Ended::Terminated => false,
            Ended::Complete | Ended::NoExit | Ended::ReaderGone | Ended::Local(_) => true,
        });
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
