//! What the end of an attempt means for its job: done, again, or over.
//!
//! Owns: `finish` and `abandon`, and the order of things: slot and origin are given back
//! first, on every path; the facts are judged (`blame`); exit and origin are charged
//! (`charge`); then the job's way is decided. Leaves to `retry` and `redirect` the rules.

use std::time::Duration;

use crate::model::{Attempt, Blame, ErrorKind, Failure, Phase, Route, Time};

use super::Scheduler;
use super::blame::TlsSeen;
use super::blame::{self, Echo, ExitSign, Judgement, OriginSign, Others, Retry, Seen, Symptom};
use super::health::{Proven, Span};
use super::redirect;
use super::retry::{Decision, Repeat, Wish};
use super::split::Share;
use super::steps::{ExitIx, Lease, Note, Verdict};
use super::work::{Hop, Work};

/// A job that met this many pauses of its origin is over: it would go on for ever.
const PAUSES_MOST: u8 = 5;
/// A job that failed this often in a row for a reason of ours is over.
const MISHAPS_MOST: u8 = 10;
/// The first wait after such a failure, doubled with each: descriptors come back.
const MISHAP_WAIT: Duration = Duration::from_millis(50);

/// An attempt that has ended.
pub(super) struct Ended<'a> {
    pub(super) lease: Lease,
    pub(super) attempt: &'a Attempt,
    pub(super) judgement: Judgement,
    pub(super) symptom: Option<Symptom>,
    /// The exit's part in an unclear fault; of any other one, what is charged, all.
    pub(super) share: Share,
    /// Attempts in flight through the exit when it ended, itself included.
    pub(super) in_flight: u32,
    pub(super) span: Span,
}

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
        let ended = self.judge(lease, &work, attempt, now);
        self.intake.landed(now - ended.span.dispatched);
        self.land(&ended.lease, now);
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

    fn judge<'a>(
        &mut self,
        lease: Lease,
        work: &Work,
        attempt: &'a Attempt,
        now: Time,
    ) -> Ended<'a> {
        let exit = lease.exit;
        if login_taken(attempt) {
            self.exits.login_works(exit);
        }
        let accept = &self.rules.accept;
        let symptom = Symptom::of(attempt, accept);
        let mut seen = self.seen(&lease, work, symptom, now);
        let mut judgement = blame::judge(attempt, accept, &seen);
        // An exit that refuses this origin: whether it refuses many is known only now.
        if judgement.blame == Some(Blame::Pair) && judgement.exit == ExitSign::Neutral {
            let origin = self.frontier.site(lease.site).tag();
            seen.refusing_origins = self.exits.refusing(exit, origin);
            judgement = blame::judge(attempt, accept, &seen);
        }
        let share = match judgement.exit {
            ExitSign::Unclear => self.weigh(&lease, attempt, now),
            _ => Share::WHOLE,
        };
        if judgement.exit == ExitSign::Unclear {
            refine(&mut judgement, share, attempt);
        }
        Ended {
            judgement,
            symptom,
            share,
            in_flight: seen.in_flight,
            span: Span {
                dispatched: lease.dispatched,
                now,
            },
            lease,
            attempt,
        }
    }

    /// What is known beyond the attempt itself.
    fn seen(&self, lease: &Lease, work: &Work, symptom: Option<Symptom>, now: Time) -> Seen {
        let exit = lease.exit;
        let pairs = &self.frontier.site(lease.site).pairs;
        Seen {
            in_flight: self.exits.pool.in_flight_of(exit),
            credentials_worked: self.exits.login_worked(exit),
            refusing_origins: 0,
            clean_elsewhere: pairs.clean_elsewhere(exit.number(), now),
            throttles_all: pairs.throttles_all(exit.number(), now),
            echo: echo(work, symptom, exit),
            tls: match (
                pairs.valid_tls_elsewhere(exit.number(), now),
                self.exits.proven(exit),
            ) {
                (false, _) => TlsSeen::Unknown,
                (true, Proven::Tls) => TlsSeen::Elsewhere,
                (true, Proven::Answers | Proven::Nothing) => TlsSeen::OnlyElsewhere,
            },
            others: if self.exits.left() > 1 {
                Others::Some
            } else {
                Others::None
            },
        }
    }

    /// Slot and place at the origin are free again.
    fn land(&mut self, lease: &Lease, now: Time) {
        self.exits.release(lease.exit);
        self.frontier.site_mut(lease.site).landed(lease, now);
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

/// What the shares of an unclear fault make clear.
fn refine(judgement: &mut Judgement, share: Share, attempt: &Attempt) {
    // A fleet of dead exits must not make an origin look dead.
    if !share.tells_of_origin() {
        judgement.origin = OriginSign::Neutral;
    }
    // To the job it is as good as an exit fault: at once through another exit, not counted.
    if share.is_mostly_exit() && never_reached(attempt) {
        judgement.retry = Retry::Free;
    }
}

/// Whether the job met the same symptom before, and where.
fn echo(work: &Work, symptom: Option<Symptom>, exit: ExitIx) -> Echo {
    let mut alike = work.met.iter().filter(|met| Some(met.symptom) == symptom);
    match alike.clone().any(|met| met.exit != exit) {
        true => Echo::OtherExit,
        false if alike.next().is_some() => Echo::SameExit,
        false => Echo::None,
    }
}

/// The exit asked for no other login: it answered something else than 407, or opened a tunnel.
fn login_taken(attempt: &Attempt) -> bool {
    match (&attempt.head, &attempt.fault) {
        (Some(head), _) => head.status != 407,
        (None, Some(fault)) => fault.phase > Phase::Handshake,
        (None, None) => false,
    }
}

/// The request certainly did not reach the origin.
pub(super) fn never_reached(attempt: &Attempt) -> bool {
    let by_proxy = attempt.route == Route::Forward && attempt.status() == Some(407);
    attempt.not_delivered() || by_proxy
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
