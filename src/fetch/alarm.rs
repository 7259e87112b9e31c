//! The limits of an attempt, as one timer; and the word from outside that cuts it short.
//!
//! Two instants count: when the running phase has had its time, and when the whole attempt
//! has. The clock decides whether one has passed; the timer only wakes us. So a peer that
//! keeps the task busy (which makes tokio's own timers yield unread) beats neither.
//!
//! Time in which nobody could use what had come is taken off no limit: an attempt's own waits for
//! the disk, and the file calls of the thread that all attempts run on ([`Standstill`]).
//!
//! One timer serves all phases and, kept with the connection, all attempts over it. It is
//! re-armed only when it would ring too late or has rung: a body of a thousand chunks moves the
//! stall limit a thousand times, a thousand attempts all limits, and the timer hardly ever.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::model::{Clock, Fault, FaultKind, Phase, Time};

use super::cut::Patience;

/// Which limit passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// The one given to [`Alarm::allow`].
    Phase(Duration),
    /// That of the whole attempt.
    Attempt(Duration),
    /// None: it was cut from outside.
    Patience,
}

impl Passed {
    /// The fault it is in `phase`; `missing` is what had not come by then.
    pub(super) fn fault(self, phase: Phase, missing: &str) -> Fault {
        let (kind, detail) = match self {
            Passed::Phase(limit) => (FaultKind::Timeout, format!("{missing} within {limit:?}")),
            Passed::Attempt(limit) => (
                FaultKind::Deadline,
                format!("{missing}: the attempt's {limit:?} are over"),
            ),
            Passed::Patience => (
                FaultKind::Timeout,
                format!("{missing}, and it is not waited for any longer"),
            ),
        };
        Fault {
            phase,
            kind,
            detail,
        }
    }
}

/// How long in all the thread that attempts run on was held up by something else. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Standstill(Arc<AtomicU64>);

impl Standstill {
    /// It was for so long.
    pub(super) fn add(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }

    fn total(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// The running limits of one attempt.
pub(super) struct Alarm {
    clock: Clock,
    attempt: (Time, Duration),
    phase: (Time, Duration),
    standstill: Standstill,
    /// What it was when the attempt, and when the phase, began.
    stood: (Duration, Duration),
    /// `None` until something has to be waited for, unless an earlier attempt has left one.
    timer: Option<Timer>,
    patience: Patience,
}

/// What wakes an attempt.
pub(super) struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` rings; [`Time::NEVER`] once it has rung.
    set_for: Time,
}

impl Alarm {
    /// Starts the limit of the attempt; no phase has one yet.
    pub(super) fn new(clock: Clock, total: Duration) -> Alarm {
        let end = clock.now() + total;
        Alarm {
            clock,
            attempt: (end, total),
            phase: (Time::NEVER, Duration::MAX),
            standstill: Standstill::default(),
            stood: (Duration::ZERO, Duration::ZERO),
            timer: None,
            patience: Patience::default(),
        }
    }

    /// The same with the timer that an earlier attempt has left.
    pub(super) fn on(self, timer: Option<Timer>) -> Alarm {
        Alarm { timer, ..self }
    }

    /// The same on a thread that `standstill` tells of.
    pub(super) fn beside(self, standstill: &Standstill) -> Alarm {
        let stood = standstill.total();
        Alarm {
            standstill: standstill.clone(),
            stood: (stood, stood),
            ..self
        }
    }

    /// The attempt is over; its timer can serve another one.
    pub(super) fn into_timer(self) -> Option<Timer> {
        self.timer
    }

    /// The same, and `patience` may be lost before the head is complete.
    pub(super) fn with(self, patience: Patience) -> Alarm {
        Alarm { patience, ..self }
    }

    /// The head is complete: nobody cuts the attempt any more.
    pub(super) fn head_came(&mut self) {
        self.patience.keep();
    }

    /// The present.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// `at` in seconds since the Unix epoch.
    pub(super) fn unix(&self, at: Time) -> u64 {
        self.clock.unix(at).as_secs()
    }

    /// Gives what comes next `limit` from now; answers the present.
    pub(super) fn allow(&mut self, limit: Duration) -> Time {
        let now = self.now();
        self.phase = (now + limit, limit);
        self.stood.1 = self.standstill.total();
        now
    }

    /// When the attempt, and when the phase, has had its time.
    fn ends(&self) -> (Time, Time) {
        let stood = self.standstill.total();
        (
            self.attempt.0 + stood.saturating_sub(self.stood.0),
            self.phase.0 + stood.saturating_sub(self.stood.1),
        )
    }

    /// So much of the time was not the peer's to use.
    pub(super) fn excuse(&mut self, wait: Duration) {
        self.attempt.0 = self.attempt.0 + wait;
        self.phase.0 = self.phase.0 + wait;
    }

    /// What is left of the running phase's limit.
    pub(super) fn left(&self) -> Duration {
        self.phase.0 - self.now()
    }

    /// The limit that has passed, if one has. Looks at the clock, not at the timer.
    pub(super) fn passed(&self) -> Option<Passed> {
        self.passed_at(self.now())
    }

    /// The same at `now`, which is the present.
    pub(super) fn passed_at(&self, now: Time) -> Option<Passed> {
        if self.patience.is_lost() {
            return Some(Passed::Patience);
        }
        let (attempt, phase) = self.ends();
        if now >= attempt {
            Some(Passed::Attempt(self.attempt.1))
        } else if now >= phase {
            Some(Passed::Phase(self.phase.1))
        } else {
            None
        }
    }

    /// Ready once a limit has passed; to be polled after the work itself was pending.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Passed> {
        if self.patience.poll(cx).is_ready() {
            return Poll::Ready(Passed::Patience);
        }
        loop {
            if let Some(passed) = self.passed() {
                return Poll::Ready(passed);
            }
            let (attempt, phase) = self.ends();
            let due = attempt.min(phase);
            let at = || Instant::from_std(self.clock.instant(due));
            let Timer { sleep, set_for } = self.timer.get_or_insert_with(|| Timer {
                sleep: Box::pin(sleep_until(at())),
                set_for: due,
            });
            if due < *set_for {
                sleep.as_mut().reset(at());
                *set_for = due;
            }
            ready!(sleep.as_mut().poll(cx));
            *set_for = Time::NEVER;
        }
    }

    /// Runs `work` until it is done or a limit passes.
    pub(super) async fn bound<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Passed> {
        let mut work = pin!(work);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }

    /// As [`Alarm::bound`], within `slice` of what the phase has left.
    pub(super) async fn bound_slice<T>(
        &mut self,
        slice: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, Passed> {
        let whole = self.phase;
        self.phase = (whole.0.min(self.now() + slice), whole.1);
        let done = self.bound(work).await;
        self.phase = whole;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::cut::{Reached, cut};
    use crate::fetch::testing::clock;

    #[tokio::test]
    async fn work_that_is_done_passes_no_limit() {
        let mut alarm = Alarm::new(clock(), Duration::from_secs(60));
        alarm.allow(Duration::from_secs(60));
        assert_eq!(alarm.bound(async { 7 }).await, Ok(7));
    }

    #[tokio::test]
    async fn the_phase_and_the_attempt_are_told_apart() {
        let short = Duration::from_millis(5);
        let long = Duration::from_secs(600);
        let mut alarm = Alarm::new(clock(), long);
        alarm.allow(short);
        let never = std::future::pending::<()>();
        assert_eq!(alarm.bound(never).await, Err(Passed::Phase(short)));

        let mut alarm = Alarm::new(clock(), short);
        alarm.allow(long);
        let never = std::future::pending::<()>();
        assert_eq!(alarm.bound(never).await, Err(Passed::Attempt(short)));
    }

    #[tokio::test]
    async fn what_is_excused_and_while_the_thread_is_held_up_no_limit_runs_that_had_begun() {
        let (zero, long) = (Duration::ZERO, Duration::from_secs(600));
        for excused in [true, false] {
            let standstill = Standstill::default();
            standstill.add(long);
            let mut alarm = Alarm::new(clock(), zero).beside(&standstill);
            let wait = |alarm: &mut Alarm| match excused {
                true => alarm.excuse(long),
                false => standstill.add(long),
            };
            assert_eq!(alarm.passed(), Some(Passed::Attempt(zero)));
            wait(&mut alarm);
            assert_eq!(alarm.passed(), None);
            alarm.allow(zero);
            assert_eq!(alarm.passed(), Some(Passed::Phase(zero)));
            wait(&mut alarm);
            assert_eq!(alarm.passed(), None);
        }
    }

    #[tokio::test]
    async fn a_limit_moved_later_after_the_timer_was_set_still_rings() {
        let mut alarm = Alarm::new(clock(), Duration::from_secs(600));
        alarm.allow(Duration::from_millis(5));
        poll_fn(|cx| {
            let _ = alarm.poll(cx);
            Poll::Ready(())
        })
        .await;
        let later = Duration::from_millis(20);
        alarm.allow(later);
        let never = std::future::pending::<()>();
        assert_eq!(alarm.bound(never).await, Err(Passed::Phase(later)));
    }

    /// Left to ring earlier than the next limit, in between, and later.
    #[tokio::test]
    async fn a_timer_that_another_attempt_has_left_rings_for_the_limits_of_this_one() {
        let short = Duration::from_millis(5);
        for (left, pause) in [(5, 0), (5, 20), (600_000, 0)] {
            let mut before = Alarm::new(clock(), Duration::from_millis(left));
            poll_fn(|cx| Poll::Ready(before.poll(cx).is_ready())).await;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let mut alarm = Alarm::new(clock(), Duration::from_secs(600)).on(before.into_timer());
            let late = poll_fn(|cx| Poll::Ready(alarm.poll(cx).is_ready())).await;
            assert!(!late, "no limit has passed");
            alarm.allow(short);
            let never = std::future::pending::<()>();
            assert_eq!(alarm.bound(never).await, Err(Passed::Phase(short)));
        }
    }

    #[tokio::test]
    async fn a_cut_ends_the_wait_for_the_head_and_every_later_one() {
        let long = Duration::from_secs(600);
        let (say, patience) = cut();
        let mut alarm = Alarm::new(clock(), long).with(patience);
        assert_eq!(say.say(), Reached::Nothing);
        let never = std::future::pending::<()>();
        assert_eq!(alarm.bound(never).await, Err(Passed::Patience));
        assert_eq!(alarm.passed(), Some(Passed::Patience));
    }

    #[tokio::test]
    async fn an_attempt_whose_head_is_there_is_not_cut() {
        let (say, patience) = cut();
        let mut alarm = Alarm::new(clock(), Duration::from_secs(600)).with(patience);
        alarm.head_came();
        assert_eq!(say.say(), Reached::Head);
        assert_eq!(alarm.passed(), None);
    }

    #[tokio::test]
    async fn nobody_left_who_could_cut_is_no_cut() {
        let (say, patience) = cut();
        let mut alarm = Alarm::new(clock(), Duration::from_secs(600)).with(patience);
        drop(say);
        let limit = Duration::from_millis(5);
        alarm.allow(limit);
        let never = std::future::pending::<()>();
        assert_eq!(alarm.bound(never).await, Err(Passed::Phase(limit)));
    }

    #[tokio::test]
    async fn work_that_never_lets_go_of_the_task_is_stopped_all_the_same() {
        let mut alarm = Alarm::new(clock(), Duration::from_millis(20));
        // Uses up the task's budget at every poll, as a flood of ready reads does.
        let busy = poll_fn(|cx| {
            while let Poll::Ready(unit) = tokio::task::coop::poll_proceed(cx) {
                unit.made_progress();
            }
            Poll::<()>::Pending
        });
        assert!(alarm.bound(busy).await.is_err());
    }
}
