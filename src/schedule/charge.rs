//! What the end of an attempt means for its exit and its origin.
//!
//! Owns: carrying a judgement to those whom it concerns: the exit's health and counters, the
//! origin's budget, breaker and witnesses. Leaves to `blame` and `split` whose fault it was, to
//! `fleet`, `breaker` and `budget` what follows, and to `settle` the job.

use std::time::Duration;

use crate::model::{Attempt, Blame, Route, Time};

use super::Scheduler;
use super::blame::{self, ExitSign, OriginSign, Retry};
use super::breaker::{OriginFault, Reaction};
use super::fleet::Unclear;
use super::health::Proven;
use super::judge::{Ended, never_reached};
use super::pair::Over;
use super::retry_after::{limit_reset, retry_after};
use super::settle::{Asked, describe};
use super::site::Closed;
use super::split::Share;
use super::steps::{Lease, Note, PauseCause};
use super::work::{Met, Work};

impl Scheduler {
    /// Settles the exit's side.
    pub(super) fn charge_exit(&mut self, ended: &Ended<'_>, work: &mut Work) {
        let (exit, span) = (ended.lease.exit, ended.span);
        match ended.judgement.exit {
            ExitSign::Good => {
                let proves = if answered_over_tls(ended.attempt, work) {
                    Proven::Tls
                } else {
                    Proven::Answers
                };
                let status = ended.attempt.status().unwrap_or_default();
                self.exits.good(exit, proves, status, span);
            }
            ExitSign::Neutral => self.exits.neutral(exit, span),
            ExitSign::Fault | ExitSign::Unclear => {
                self.exits.fault(exit, ended.share, span, &mut self.rng);
            }
            ExitSign::Congested => self.exits.congested(exit, ended.in_flight, span),
            ExitSign::Evict(why) => self.exits.evict(exit, why, span),
        }
        if ended.judgement.retry != Retry::Uncharged {
            self.compare(ended, work);
            self.count(ended);
        }
    }

    /// The exit's part in an unclear fault.
    pub(super) fn weigh(&mut self, lease: &Lease, attempt: &Attempt, now: Time) -> Share {
        let site = self.frontier.site(lease.site);
        let exit = lease.exit.number();
        self.exits.weigh(Unclear {
            exit,
            origin: site.tag(),
            record: &site.record,
            answered_elsewhere: site.pairs.clean_elsewhere(exit, now) > 0,
            mute: blame::is_mute(attempt),
        })
    }

    /// What this end shows about the job's earlier ones: when two exits fail it alike, what the
    /// first one carries moves to the origin; a valid certificate refutes an invalid one.
    fn compare(&mut self, ended: &Ended<'_>, work: &mut Work) {
        let (exit, sign) = (ended.lease.exit, ended.judgement.exit);
        let origins_part = ended.judgement.origin != OriginSign::Neutral;
        let valid = sign == ExitSign::Good && answered_over_tls(ended.attempt, work);
        for met in work.met.iter_mut().filter(|met| met.exit != exit) {
            if Some(met.symptom) == ended.symptom && origins_part {
                if let Some(share) = met.charged.take() {
                    self.exits.pardon(met.exit, share, ended.span.now);
                }
            } else if valid && met.symptom.is_certificate() && met.charged.take().is_some() {
                self.exits
                    .wrong_certificate(met.exit, ended.span, &mut self.rng);
            }
        }
        if let Some(symptom) = ended.symptom {
            work.met.push(Met {
                exit,
                symptom,
                charged: (sign == ExitSign::Unclear).then_some(ended.share),
            });
        }
    }

    /// Counters, the open tunnel, and how slow the exit is.
    fn count(&mut self, ended: &Ended<'_>) {
        let (exit, attempt) = (ended.lease.exit, ended.attempt);
        let sign = ended.judgement.exit;
        let row = self.exits.row_mut(exit);
        row.attempts += 1;
        row.status_429 += u64::from(attempt.status() == Some(429));
        let refused = ended.judgement.blame == Some(Blame::Pair);
        if refused || !matches!(sign, ExitSign::Good | ExitSign::Neutral) {
            row.last_error = Some(describe(attempt).into());
        }
        let site = self.frontier.site_mut(ended.lease.site);
        if attempt.kept && attempt.route == Route::Tunnel {
            site.warm.add(exit, ended.span.now);
        }
        if sign == ExitSign::Good
            && let Some(first_byte) = attempt.phases.first_byte
        {
            self.exits
                .answered_after(exit, &mut site.latency, first_byte);
            let phases = &attempt.phases;
            let before = [phases.dial, phases.handshake, phases.tls];
            let took = before.into_iter().flatten().sum::<Duration>() + first_byte;
            site.slowest.add(took);
            self.exits.head_after(took);
        }
    }

    /// Settles the origin's side.
    pub(super) fn charge_origin(&mut self, ended: &Ended<'_>, work: &Work) -> Asked {
        let now = ended.span.now;
        let exit = ended.lease.exit.number();
        let site = self.frontier.site_mut(ended.lease.site);
        if never_reached(ended.attempt) {
            site.budget.refund(ended.lease.charge);
        }
        if ended.judgement.blame == Some(Blame::Pair) {
            site.pairs.hold(exit, now);
        }
        if ended.attempt.status() == Some(429) {
            site.pairs.throttled(exit, now);
        }
        match ended.judgement.origin {
            OriginSign::Clean => {
                let over = if answered_over_tls(ended.attempt, work) {
                    Over::Tls
                } else {
                    Over::Plain
                };
                // Given up too early: what still waits is tried again.
                site.closed.take_if(|closed| *closed == Closed::Dead);
                site.record.good();
                site.breaker.good();
                site.budget.clean_answer(now);
                site.pairs.good(exit, over, now);
            }
            OriginSign::Fault => self.origin_fault(ended),
            OriginSign::Unclear if !ended.share.is_mostly_exit() => self.origin_fault(ended),
            // The record counts it in full, the breaker not: the exit is the likelier cause.
            OriginSign::Unclear => {
                site.record.fault();
                site.faulted(now);
            }
            OriginSign::Throttled | OriginSign::Neutral => {}
        }
        self.heed(ended)
    }

    fn origin_fault(&mut self, ended: &Ended<'_>) {
        let fault = OriginFault {
            exit: ended.lease.exit.number(),
            dispatched: ended.span.dispatched,
            usable_exits: self.exits.left(),
        };
        let (patience, now) = (self.rules.origin_patience, ended.span.now);
        let site = self.frontier.site_mut(ended.lease.site);
        site.record.fault();
        site.faulted(now);
        let before = site.breaker.paused_until();
        match site.breaker.fault(fault, patience, now) {
            Reaction::Pause(until) if until > before => {
                let note = Note::OriginPaused {
                    origin: site.origin.clone(),
                    wait: until - now,
                    cause: PauseCause::Fails,
                };
                self.exits.note(note);
            }
            Reaction::Dead if site.closed.is_none() => {
                site.closed = Some(Closed::Dead);
                let origin = site.origin.clone();
                self.exits.note(Note::OriginDead { origin });
            }
            Reaction::None | Reaction::Pause(_) | Reaction::Dead => {}
        }
    }

    /// Does what the origin's answer asks for: slower, or not before an instant.
    fn heed(&mut self, ended: &Ended<'_>) -> Asked {
        let Some(head) = &ended.attempt.head else {
            return Asked::Nothing;
        };
        let (now, received) = (ended.span.now, ended.attempt.received_unix);
        let sign = ended.judgement.origin;
        let throttled = sign == OriginSign::Throttled;
        let overloaded = sign == OriginSign::Fault && head.status == 503;
        let redirect = sign == OriginSign::Clean && (300..400).contains(&head.status);
        let wait = retry_after(&head.headers, received)
            .filter(|wait| !wait.is_zero() && (throttled || overloaded || redirect));

        let site = self.frontier.site_mut(ended.lease.site);
        let before = site.budget.paused_until().max(now);
        let slower = (throttled || overloaded) && site.budget.slow_down(ended.lease.charge, now);
        if slower && throttled {
            site.budget.back_off(now, &mut self.rng);
        }
        let max_pause = self.rules.max_pause;
        if let Some(wait) = wait {
            if wait > max_pause {
                site.shut(wait, max_pause, now);
            }
            site.budget.pause(wait, now, &mut self.rng);
        } else if matches!(
            sign,
            OriginSign::Clean | OriginSign::Fault | OriginSign::Throttled
        ) && let Some(reset) = limit_reset(&head.headers, received)
        {
            let wait = reset.min(max_pause);
            site.budget.pause(wait, now, &mut self.rng);
        }
        let cause = match wait {
            Some(wait) if wait > max_pause => PauseCause::AskedTooMuch,
            _ => PauseCause::Asked,
        };
        self.excuse(ended, before, cause);
        if throttled || (overloaded && wait.is_some()) {
            Asked::ToWait
        } else {
            Asked::Nothing
        }
    }

    /// A pause that the origin asked for does not count against its patience; `before` is when
    /// the one before would have ended, or now.
    fn excuse(&mut self, ended: &Ended<'_>, before: Time, cause: PauseCause) {
        let site = self.frontier.site_mut(ended.lease.site);
        let until = site.budget.paused_until();
        if until <= before {
            return;
        }
        site.breaker.excuse(until - before);
        // A storm of answers only makes a pause longer: that is no news.
        if before == ended.span.now {
            let note = Note::OriginPaused {
                origin: site.origin.clone(),
                wait: until - ended.span.now,
                cause,
            };
            self.exits.note(note);
        }
    }
}

/// A whole answer came over TLS, so the certificate was valid (a kept tunnel's was, too).
fn answered_over_tls(attempt: &Attempt, work: &Work) -> bool {
    attempt.head.is_some() && work.target().scheme() == "https"
}
