//! The end of a run: cut what is still under way, write the last records, fold the summary.

use std::time::Duration;

use super::stop::{Ended, GRACE};
use super::{End, Engine};
use crate::report::{ExitEnd, GroupRow, RunEnd};
use crate::schedule::{ExitIx, State};

/// How long the rest of the list is counted after an early end.
const COUNT_REST: Duration = Duration::from_secs(2);
/// How long a slow reader of `--results` is waited for; in an early end no longer than a body.
const COPY_PATIENCE: Duration = Duration::from_secs(30);

impl Engine {
    /// Ends the run. Attempts that are still out are cancelled; their jobs have no record.
    pub(super) async fn end(mut self) -> End {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.land(ended);
        }
        self.store_all().await;
        self.conns.close_all();
        let now = self.clock.now();
        self.look(now);
        self.cut_span(now);
        self.progress.finish();
        if self.stop.is_asked() && !self.list_read {
            self.count_rest().await;
        }
        if self.has_nothing_left() {
            self.stop.forget_early_end();
        }
        self.finish_copy().await;
        let facts = self.facts();
        let over = self.scheduler.is_over();
        self.end_replacing();
        let stop = match self.store.close() {
            Ok(()) => self.stop.reason(),
            Err(error) => match self.stop.reason() {
                None => Some(Ended::Local(error.into())),
                // The disk's first word is said at the end.
                Some(Ended::Local(first)) => Some(Ended::Local(first)),
                Some(earlier) => {
                    tracing::error!("{error}");
                    Some(earlier)
                }
            },
        };
        let ended = stop.unwrap_or(if over { Ended::NoExit } else { Ended::Complete });
        self.recording.end(ended.sentence());
        let rules = self.scheduler.rules();
        self.tally.allowed(|origin| rules.rate_of(origin));
        let summary = self.tally.finish(RunEnd {
            stopped: ended.sentence(),
            ..facts
        });
        End { ended, summary }
    }

    /// Counts entries that were never looked at, as far as they come soon: the summary says
    /// how many were not reached.
    async fn count_rest(&mut self) {
        let rest = async {
            while let Some(batch) = self.urls.next().await {
                let Ok(batch) = batch else { return };
                self.entries += batch.len() as u64;
            }
            self.list_read = true;
        };
        // A list without end is cut here; the entries then are those that were seen.
        let _ = tokio::time::timeout(COUNT_REST, rest).await;
    }

    /// Every entry of the list has its record.
    pub(super) fn has_nothing_left(&self) -> bool {
        let counts = self.tally.counts();
        self.list_read && counts.ok + counts.failed + counts.refused == self.entries
    }

    /// Waits for the reader of `--results`, until a signal says not to.
    async fn finish_copy(&mut self) {
        let Some(copy) = self.copy.take() else {
            return;
        };
        let patience = if self.stop.is_asked() {
            GRACE
        } else {
            COPY_PATIENCE
        };
        let why = tokio::select! {
            written = copy.finish(patience) => match written {
                Ok(()) => return,
                Err(error) => error.into(),
            },
            ended = self.signals.next() => ended,
        };
        self.stop.ask_once(why, self.clock.now());
    }

    fn facts(&self) -> RunEnd {
        let now = self.clock.now();
        let exit = |number: u32| {
            let state = self.scheduler.exit(ExitIx::new(number), now);
            ExitEnd {
                cap: state.ceiling,
                cap_now: state.cap,
                peak: state.peak,
                peak_sockets: self.conns.peak(number as usize),
                attempts: state.attempts,
                ok: state.ok,
                faults: state.faults,
                status_429: state.status_429,
                state: state.state.as_str(),
                reason: (state.state != State::Healthy || !state.reason.is_empty())
                    .then(|| state.reason.clone()),
                last_error: state.last_error.map(str::to_owned),
            }
        };
        let group = |(number, (name, cap)): (usize, &(String, u32))| GroupRow {
            name: name.clone(),
            cap: *cap,
            peak: self.scheduler.group_peak(number as u32),
        };
        RunEnd {
            exits: (0..self.scheduler.exits()).map(exit).collect(),
            groups: self.groups.iter().enumerate().map(group).collect(),
            entries: self.entries,
            wall: now - self.started,
            disk: self.recording.disk,
            disk_alone: self.recording.disk_alone,
            slots: self.recording.slots,
            group_share: self.recording.recorder.group_share(),
            stopped: None,
        }
    }
}

impl Ended {
    /// Why the run ended before its list, one line; `None` if it did not.
    pub fn sentence(&self) -> Option<String> {
        Some(match self {
            Ended::Complete => return None,
            Ended::NoExit => "no usable exit was left".to_owned(),
            Ended::OutOfTime => "--max-time was reached".to_owned(),
            Ended::Interrupted => "interrupted (SIGINT)".to_owned(),
            Ended::Terminated => "terminated (SIGTERM)".to_owned(),
            Ended::ReaderGone => "the reader of --results has closed".to_owned(),
            Ended::Local(error) => without_hint(format!("{error:#}")),
        })
    }
}

/// What to do about it is said where the error is, not in the summary.
fn without_hint(text: String) -> String {
    match text.split_once("\nhint: ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}
