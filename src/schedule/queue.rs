//! The jobs of one origin that wait in memory; more may be on disk (`site`).
//!
//! Owns: their order. Retries whose time has come go before jobs that were never tried, so
//! that a job once begun ends; jobs whose back-off is not over wait by their instant. Leaves
//! to others: whether the origin may be asked at all (`site`), which exit fits (`pool`).

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use crate::model::Time;

use super::work::Work;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Queue {
    fresh: VecDeque<Box<Work>>,
    /// Most origins never have any.
    retries: Option<Box<Retries>>,
}

/// Jobs that were tried.
#[derive(Debug, Default)]
struct Retries {
    again: VecDeque<Box<Work>>,
    later: BinaryHeap<Reverse<Later>>,
}

impl Queue {
    /// Adds a job; one whose `since` lies ahead waits for it.
    pub(super) fn push(&mut self, work: Box<Work>, now: Time) {
        if work.since > now {
            let retries = self.retries.get_or_insert_default();
            retries.later.push(Reverse(Later(work)));
        } else if work.attempts() == 0 {
            self.fresh.push_back(work);
        } else {
            self.retries.get_or_insert_default().again.push_back(work);
        }
    }

    /// Lets jobs whose back-off is over take part.
    pub(super) fn ripen(&mut self, now: Time) {
        while self.next_back_off().is_some_and(|since| since <= now) {
            if let Some(work) = self
                .retries
                .as_mut()
                .and_then(|retries| retries.pop_later())
            {
                self.push(work, now);
            }
        }
    }

    /// When a job can be taken: at once (`Time::ZERO`), at the end of a back-off, or never.
    pub(super) fn earliest(&self) -> Option<Time> {
        if self.ripe() > 0 {
            return Some(Time::ZERO);
        }
        self.next_back_off()
    }

    /// The end of the first back-off.
    pub(super) fn next_back_off(&self) -> Option<Time> {
        let first = self.retries.as_ref()?.later.peek();
        first.map(|Reverse(later)| later.0.since)
    }

    /// How many jobs, back-offs included.
    pub(super) fn len(&self) -> usize {
        let later = self
            .retries
            .as_ref()
            .map_or(0, |retries| retries.later.len());
        self.ripe() + later
    }

    /// No job that was never tried is here.
    pub(super) fn lacks_fresh(&self) -> bool {
        self.fresh.is_empty()
    }

    /// All of them, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Work> {
        let retries = self.retries.iter();
        let retries = retries.flat_map(|retries| {
            let later = retries.later.iter().map(|Reverse(Later(work))| work);
            retries.again.iter().chain(later)
        });
        self.fresh.iter().chain(retries).map(AsRef::as_ref)
    }

    /// How many jobs could be taken now.
    pub(super) fn ripe(&self) -> usize {
        let again = self
            .retries
            .as_ref()
            .map_or(0, |retries| retries.again.len());
        self.fresh.len() + again
    }

    /// Takes the first job for which `fit` finds something: up to `looks` retries, in turn,
    /// then the next fresh job (for those `fit` depends on the origin alone).
    pub(super) fn take_fitting<T>(
        &mut self,
        looks: usize,
        mut fit: impl FnMut(&Work) -> Option<T>,
    ) -> Option<(Box<Work>, T)> {
        if let Some(retries) = &mut self.retries {
            for _ in 0..looks.min(retries.again.len()) {
                let Some(work) = retries.again.pop_front() else {
                    break;
                };
                if let Some(found) = fit(&work) {
                    return Some((work, found));
                }
                retries.again.push_back(work);
            }
        }
        let found = fit(self.fresh.front()?)?;
        self.fresh.pop_front().map(|work| (work, found))
    }

    /// The jobs that `take_fitting` looks at.
    pub(super) fn candidates(&self, looks: usize) -> impl Iterator<Item = &Work> {
        let again = self.retries.iter().flat_map(|retries| &retries.again);
        let again = again.take(looks);
        again.chain(self.fresh.front()).map(AsRef::as_ref)
    }

    /// Takes any job, those in back-off too.
    pub(super) fn take_any(&mut self) -> Option<Box<Work>> {
        let again = self.retries.as_mut().and_then(|r| r.again.pop_front());
        again
            .or_else(|| self.fresh.pop_front())
            .or_else(|| self.retries.as_mut().and_then(|r| r.pop_later()))
    }
}

impl Retries {
    fn pop_later(&mut self) -> Option<Box<Work>> {
        self.later.pop().map(|Reverse(Later(work))| work)
    }
}

/// A job in back-off, ordered by its end; the line number keeps equals in a fixed order.
#[derive(Debug)]
struct Later(Box<Work>);

impl Later {
    fn key(&self) -> (Time, u64) {
        (self.0.since, self.0.job.line)
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Later) -> Ordering {
        self.key().cmp(&other.key())
    }
}
