//! Patience with exits that have never answered.
//!
//! A fresh exit may hang, and only time limits would tell, which have to suit the slowest good
//! site. So the attempts through exits that never gave a good answer are remembered here, and
//! one that waits several times longer than answers take through others is cut and its job
//! sent through an exit that has answered, if one stands idle: while all are busy nothing is
//! gained. It rests then (`health`). The second cut at an exit takes twice as long, and so on: a
//! slow exit that works is cut once or twice, then it has answered and is never cut again.
//!
//! Owns: which attempts wait for an exit's first answer, when to look at each next, and how
//! long is too long. Leaves to `dispatch` to look, and to `settle` what a cut means.
//!
//! Invariant: memory for attempts under way only, O(log n) for each.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use crate::model::Time;

use super::frontier::SiteIx;
use super::health::Span;
use super::latency::Slowest;
use super::steps::ExitIx;

/// Nothing is cut sooner. Less: exits that merely dial slowly are cut; more: the last jobs of
/// short lists wait.
const LEAST: Duration = Duration::from_secs(2);
/// This many times the slowest answer of late is too long. The slowest and not the usual one:
/// where one page in fifty takes ten times as long, such pages are not cut.
const TIMES: u32 = 3;
/// Doublings after which only the attempt's own limits count.
const CUTS_MOST: u8 = 5;
/// Without anything to compare with it is looked at again after this long, or half of
/// what it has waited.
const LOOK: Duration = Duration::from_millis(500);

/// Names an attempt that waits for its exit's first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Such an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) exit: ExitIx,
    pub(super) site: SiteIx,
    pub(super) dispatched: Time,
}

/// How an attempt ended that was given a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Landed {
    /// As it would have anyway.
    ByItself,
    /// It had been cut.
    Cut,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct FirstAnswers {
    waiting: HashMap<Ticket, Waiting, foldhash::fast::FixedState>,
    /// When to look at each; entries of attempts that have landed are skipped.
    looks: BinaryHeap<Reverse<(Time, Ticket)>>,
    /// Cut, and not yet back.
    cut: Vec<Ticket>,
    issued: u64,
}

impl FirstAnswers {
    /// An attempt starts through an exit that never gave a good answer.
    pub(super) fn started(&mut self, waiting: Waiting) -> Ticket {
        self.issued += 1;
        let ticket = Ticket(self.issued);
        self.waiting.insert(ticket, waiting);
        self.look_at(ticket, waiting.dispatched + LEAST);
        ticket
    }

    /// It is over.
    pub(super) fn landed(&mut self, ticket: Ticket) -> Landed {
        self.waiting.remove(&ticket);
        match self.cut.iter().position(|&cut| cut == ticket) {
            Some(at) => {
                self.cut.swap_remove(at);
                Landed::Cut
            }
            None => Landed::ByItself,
        }
    }

    /// It is no longer to be looked at.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// It is to be cut.
    pub(super) fn cut(&mut self, ticket: Ticket) {
        self.forget(ticket);
        self.cut.push(ticket);
    }

    /// One that is to be looked at now. It has to be cut, forgotten or looked at later.
    pub(super) fn due(&mut self, now: Time) -> Option<(Ticket, Waiting)> {
        while let Some(&Reverse((at, ticket))) = self.looks.peek()
            && at <= now
        {
            self.looks.pop();
            if let Some(&waiting) = self.waiting.get(&ticket) {
                return Some((ticket, waiting));
            }
        }
        None
    }

    /// Looks at it again then.
    pub(super) fn look_at(&mut self, ticket: Ticket, at: Time) {
        self.looks.push(Reverse((at, ticket)));
    }

    /// When to look next.
    pub(super) fn next_look(&mut self) -> Option<Time> {
        while let Some(&Reverse((at, ticket))) = self.looks.peek() {
            if self.waiting.contains_key(&ticket) {
                return Some(at);
            }
            self.looks.pop();
        }
        None
    }
}

impl Waiting {
    /// When to look again if nothing is known yet.
    pub(super) fn later(&self, now: Time) -> Time {
        now + LOOK.max((now - self.dispatched) / 2)
    }
}

/// How long an attempt may wait for an exit's first answer where answers take as long as
/// these; `cuts`: how often the exit was cut already. `None`: as long as its limits allow.
pub(super) fn patience(usual: Slowest, cuts: u8) -> Option<Duration> {
    let least = LEAST.max(usual.get()?.saturating_mul(TIMES));
    (cuts < CUTS_MOST).then(|| least.saturating_mul(1 << cuts))
}

/// How often an exit was cut; the attempts of one burst count once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cuts {
    times: u8,
    last: Time,
}

impl Cuts {
    /// An attempt was cut.
    pub(super) fn add(&mut self, span: Span) {
        if self.times == 0 || span.dispatched >= self.last {
            self.times = self.times.saturating_add(1);
            self.last = span.now;
        }
    }

    /// How often.
    pub(super) fn times(self) -> u8 {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    fn waiting(dispatched: Time) -> Waiting {
        Waiting {
            exit: ExitIx::new(0),
            site: SiteIx::default(),
            dispatched,
        }
    }

    fn answers_of(millis: &[u64]) -> Slowest {
        let mut slowest = Slowest::default();
        for &millis in millis {
            slowest.add(Duration::from_millis(millis));
        }
        slowest
    }

    #[test]
    fn patience_is_three_times_the_slowest_answer_and_two_seconds_at_least() {
        let patience = |millis: &[u64]| patience(answers_of(millis), 0);
        assert_eq!(patience(&[]), None, "nothing to compare with");
        assert_eq!(patience(&[100]), Some(Duration::from_secs(2)));
        assert_eq!(patience(&[100, 2_000]), Some(Duration::from_secs(6)));
    }

    #[test]
    fn it_doubles_with_each_cut_and_then_ends() {
        let usual = answers_of(&[1_000]);
        let all: Vec<_> = (0..7).map(|cuts| patience(usual, cuts)).collect();
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(
            all,
            [secs(3), secs(6), secs(12), secs(24), secs(48), None, None]
        );
    }

    #[test]
    fn a_burst_that_is_cut_counts_once() {
        let mut cuts = Cuts::default();
        let span = |dispatched, now| Span {
            dispatched: secs(dispatched),
            now: secs(now),
        };
        (0..3).for_each(|_| cuts.add(span(0, 2)));
        assert_eq!(cuts.times(), 1);
        cuts.add(span(3, 8));
        assert_eq!(cuts.times(), 2);
    }

    #[test]
    fn each_is_looked_at_when_its_time_has_come_and_never_after_it_landed() {
        let mut firsts = FirstAnswers::default();
        let a = firsts.started(waiting(secs(0)));
        let b = firsts.started(waiting(secs(1)));
        assert_eq!(firsts.next_look(), Some(secs(2)));
        assert!(firsts.due(secs(1)).is_none());
        assert_eq!(firsts.landed(a), Landed::ByItself);
        let (due, _) = firsts.due(secs(3)).expect("b waits");
        assert_eq!(due, b);
        firsts.look_at(b, secs(9));
        assert!(firsts.due(secs(8)).is_none());
        firsts.cut(b);
        assert!(firsts.due(secs(9)).is_none(), "cut once is enough");
        assert_eq!(firsts.landed(b), Landed::Cut);
        assert_eq!(firsts.next_look(), None);
    }
}
