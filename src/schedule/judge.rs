//! What an attempt was: its facts judged (`blame`) in the light of what exit and origin have shown.
//!
//! Owns: [`Ended`], the attempt with its judgement, and what is put before the judge. Leaves to
//! `blame` the verdict, to `split` the shares of an unclear fault, to `charge` and `settle` what
//! follows from it.

use crate::model::{Attempt, Blame, Phase, Route, Time};

use super::Scheduler;
use super::blame::{
    self, Echo, ExitSign, Judgement, OriginSign, Others, Retry, Seen, Symptom, TlsSeen,
};
use super::health::{Proven, Span};
use super::split::Share;
use super::steps::{ExitIx, Lease};
use super::work::Work;

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

impl Scheduler {
    /// Judges an attempt, with what its exit and its origin have shown before.
    pub(super) fn judge<'a>(
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
