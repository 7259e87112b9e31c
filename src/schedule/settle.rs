//! What the end of an attempt means for its job: done, again, or over.
//!
//! Owns: `finish` and `abandon`, and the order of things: the facts are judged (`judge`); slot and
//! origin are given back, on every path; exit and origin are charged (`charge`); then the job's
//! way is decided. Leaves to `retry` and `redirect` the rules.

use std::time::Duration;

use crate::model::{Attempt, Blame, ErrorKind, Failure, Fault, FaultKind, Phase, Time};

use super::Scheduler;
use super::blame::{OriginSign, Retry};
use super::first_answer::Landed;
use super::health::Span;
use super::judge::{Ended, never_reached};
use super::redirect;
use super::retry::{Decision, Repeat, Wish};
use super::steps::{Lease, Note, Verdict};
use super::work::{Hop, Work};

/// A job that met this many pauses of its origin is over: it would go on for ever.
const PAUSES_MOST: u8 = 5;
/// A job that failed this often in a row for a reason of ours is over.
const MISHAPS_MOST: u8 = 10;
/// The first wait after such a failure, doubled with each: descriptors come back.
const MISHAP_WAIT: Duration = Duration::from_millis(50);

/// Whether the origin asked for less, so that the job waits without using up a try.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    ToWait,
}

impl Scheduler {
    /// Takes the lease back and decides what the attempt means. `work` is the job that the
    /// lease was given out with.
    pub fn finish(
        &mut self,
        lease: Lease,
        mut work: Box<Work>,
        attempt: &Attempt,
        now: Time,
    ) -> Verdict {
        let site = lease.site;
        let mut ended = self.judge(lease, &work, attempt, now);
        self.intake.landed(now - ended.span.dispatched);
        // At the end of the run all are cut.
        if self.land(&ended.lease, now) == Landed::Cut || self.over {
            self.was_cut(&mut ended);
        }
        self.charge_exit(&ended, &mut work);
        let asked = self.charge_origin(&ended, &work);
        let verdict = self.conclude(&ended, asked, work);
        self.frontier.settle(site, now);
        verdict
    }

    /// Takes the lease back of an attempt that was cut short by us (cancelled, its task died):
    /// nobody is charged and no try is used up.
    pub fn abandon(&mut self, lease: Lease, work: Box<Work>, now: Time) -> Verdict {
        let span = Span {
            dispatched: lease.dispatched,
            now,
        };
        self.land(&lease, now);
        self.exits.neutral(lease.exit, span);
        let failure = Failure {
            kind: ErrorKind::Cancelled,
            blame: Blame::Local,
            detail: "the attempt was cut short".to_owned(),
        };
        let verdict = self.after_mishap(&lease, work, failure, now);
        self.frontier.settle(lease.site, now);
        verdict
    }

    /// Slot and place at the origin are free again.
    fn land(&mut self, lease: &Lease, now: Time) -> Landed {
        self.exits.release(lease.exit);
        self.frontier.site_mut(lease.site).landed(lease, now);
        match lease.ticket {
            Some(ticket) => self.firsts.landed(ticket),
            None => Landed::ByItself,
        }
    }

    /// We did not wait for its head: that says nothing about the origin, costs the job no try,
    /// and makes us wait longer for the exit the next time.
    fn was_cut(&mut self, ended: &mut Ended<'_>) {
        let cut = |fault: &Fault| fault.kind == FaultKind::Timeout && fault.phase <= Phase::Head;
        if !ended.attempt.fault.as_ref().is_some_and(cut) {
            return;
        }
        self.exits.was_cut(ended.lease.exit, ended.span);
        ended.judgement.origin = OriginSign::Neutral;
        if ended.judgement.retry == Retry::Counted {
            ended.judgement.retry = Retry::Free;
        }
    }

    fn conclude(&mut self, ended: &Ended<'_>, asked: Asked, mut work: Box<Work>) -> Verdict {
        let now = ended.span.now;
        if ended.judgement.retry == Retry::Uncharged {
            let failure = failure(ended, Blame::Local);
            return self.after_mishap(&ended.lease, work, failure, now);
        }
        work.tried.push(ended.lease.exit);
        work.mishaps = 0;
        if let Some(hop) = self.redirect(ended, &work) {
            return self.redirected(ended, hop, work);
        }
        let Some(blame) = ended.judgement.blame else {
            self.exits.row_mut(ended.lease.exit).ok += 1;
            return Verdict::Ok(work);
        };
        let failure = failure(ended, blame);
        work.remember(ended.attempt, Some(failure.clone()));
        match asked {
            Asked::ToWait => self.after_pause(ended, work, failure),
            Asked::Nothing => self.after_failure(ended, work, failure),
        }
    }

    /// Where the answer leads, if it is the origin's and whole.
    fn redirect(&self, ended: &Ended<'_>, work: &Work) -> Option<Result<Hop, Failure>> {
        let head = ended.attempt.head.as_ref()?;
        let whole = ended.attempt.fault.is_none();
        (whole && ended.judgement.origin == OriginSign::Clean)
            .then(|| redirect::follow(work, head, self.rules.max_redirects))?
    }

    fn redirected(
        &mut self,
        ended: &Ended<'_>,
        hop: Result<Hop, Failure>,
        mut work: Box<Work>,
    ) -> Verdict {
        self.exits.row_mut(ended.lease.exit).ok += 1;
        match hop {
            Ok(hop) => {
                work.remember(ended.attempt, None);
                work.goes_to(hop, ended.span.now);
                self.file_by_target(work, ended.span.now);
                Verdict::Again
            }
            Err(failure) => {
                work.remember(ended.attempt, Some(failure.clone()));
                Verdict::Failed(work, failure)
            }
        }
    }

    /// The origin asked for a pause. A 429 was not carried out, so any method may come again.
    fn after_pause(&mut self, ended: &Ended<'_>, mut work: Box<Work>, failure: Failure) -> Verdict {
        let refused = ended.judgement.origin == OriginSign::Throttled;
        if !refused && !work.method().is_idempotent() {
            return Verdict::Failed(work, failure);
        }
        work.pauses += 1;
        if work.pauses >= PAUSES_MOST {
            let detail = format!(
                "asked to wait {PAUSES_MOST} times; last: {}",
                failure.detail
            );
            let failure = Failure {
                kind: ErrorKind::OriginPaused,
                detail,
                ..failure
            };
            return Verdict::Failed(work, failure);
        }
        work.back_off(Duration::ZERO, ended.span.now);
        self.frontier.file(ended.lease.site, work, ended.span.now);
        Verdict::Again
    }

    fn after_failure(
        &mut self,
        ended: &Ended<'_>,
        mut work: Box<Work>,
        failure: Failure,
    ) -> Verdict {
        let now = ended.span.now;
        let harmless = work.method().is_idempotent() || never_reached(ended.attempt);
        let wish = Wish {
            retry: ended.judgement.retry,
            repeat: if harmless {
                Repeat::Harmless
            } else {
                Repeat::Doubtful
            },
            most: self.rules.retries,
        };
        let site = self.frontier.site_mut(ended.lease.site);
        match work.tries.decide(wish, &mut site.retries, &mut self.rng) {
            Decision::After(delay) => {
                work.back_off(delay, now);
                self.frontier.file(ended.lease.site, work, now);
                Verdict::Again
            }
            Decision::BudgetSpent => {
                let detail = format!(
                    "too many requests to {} were retries; last: {}",
                    site.origin, failure.detail
                );
                let failure = Failure {
                    kind: ErrorKind::RetryBudgetSpent,
                    detail,
                    ..failure
                };
                self.tries_spent(work, failure)
            }
            Decision::Exhausted => self.tries_spent(work, failure),
            Decision::Over | Decision::NotRepeatable => Verdict::Failed(work, failure),
        }
    }

    fn tries_spent(&mut self, work: Box<Work>, failure: Failure) -> Verdict {
        self.exits.note(Note::TriesSpent {
            url: work.job.shown_url().to_owned(),
            attempts: work.attempts(),
            detail: failure.detail.clone(),
        });
        Verdict::Failed(work, failure)
    }

    /// It failed for a reason of ours: again a little later, and not for ever.
    fn after_mishap(
        &mut self,
        lease: &Lease,
        mut work: Box<Work>,
        failure: Failure,
        now: Time,
    ) -> Verdict {
        work.mishaps += 1;
        if work.mishaps >= MISHAPS_MOST {
            return Verdict::Failed(work, failure);
        }
        work.back_off(MISHAP_WAIT.saturating_mul(1 << work.mishaps), now);
        self.frontier.file(lease.site, work, now);
        Verdict::Again
    }
}

/// One line about what went wrong.
pub(super) fn describe(attempt: &Attempt) -> String {
    match (&attempt.fault, &attempt.head) {
        (Some(fault), _) => fault.detail.clone(),
        (None, Some(head)) => format!("status {}", head.status),
        (None, None) => "the attempt ended without a result".to_owned(),
    }
}

fn failure(ended: &Ended<'_>, blame: Blame) -> Failure {
    let kind = match (&ended.attempt.fault, ended.attempt.status()) {
        (Some(fault), _) => ErrorKind::of(fault),
        (None, Some(407)) if blame == Blame::Exit => ErrorKind::Credentials,
        (None, Some(_)) => ErrorKind::Status,
        (None, None) => ErrorKind::Local,
    };
    Failure {
        kind,
        blame,
        detail: describe(ended.attempt),
    }
}
