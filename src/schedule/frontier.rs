//! The frontier: every origin with its waiting jobs, each in exactly one place.
//!
//! Owns: where an origin stands. `Ready` (its budget allows a start: lists by attempts in
//! flight, first in first out, so a stalled origin holds few slots while others have work),
//! `Delayed` (by instant), `Parked` (its in-flight bound is reached), `Misfit` (its budget
//! allows a start, but its jobs have tried every exit that is free), `Closed` (its jobs are
//! given up), `Refill` (its jobs are being read from disk), `Idle` (no job waits); or, with all
//! its jobs on disk and no memory of its own, `asleep`. Leaves to others: what the place should
//! be (`site`), which exit (`pool`), how many jobs are in memory (`intake`). `on_disk` has the verbs
//! for jobs that wait there, `check` compares every count with what is counted.
//!
//! Invariant: whatever changes a site is followed by [`Frontier::settle`], so a place is
//! always the one that `site` asks for; only time makes it stale, and the alarms name when.

mod check;
mod on_disk;

use std::collections::HashMap;

use crate::model::{Origin, Time};

use super::alarms::Alarms;
use super::asleep::Asleep;
use super::lists::{Ladder, Links, List};
use super::site::{Site, Wish};
use super::work::Work;

/// Index of an origin. Its slot is used again once the origin is forgotten, which never
/// happens while a job waits or an attempt is in flight there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SiteIx(u32);

impl SiteIx {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where an origin stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Idle,
    Ready {
        /// Attempts in flight when it was filed: its rung.
        in_flight: u32,
    },
    Delayed,
    Parked,
    Misfit,
    /// The engine reads jobs of it; until [`Frontier::refilled`].
    Refill,
    Closed,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Frontier {
    sites: Vec<Site>,
    spare: Vec<SiteIx>,
    by_origin: HashMap<Origin, SiteIx>,
    links: Links,
    ready: Ladder,
    misfits: List,
    closed: List,
    /// When a delayed origin, or a misfit, is looked at again.
    wakes: Alarms,
    /// When an origin without jobs may be forgotten. Wakes nobody.
    rests: Alarms,
    asleep: Asleep,
    /// Origins at which jobs wait that were never tried, those asleep left out.
    untried: usize,
    /// Jobs in memory.
    jobs: usize,
    bytes: usize,
    /// Jobs on disk.
    spilled: usize,
    startable: usize,
}

impl Frontier {
    /// The site of `origin`, made by `make` where there is none.
    pub(super) fn open(
        &mut self,
        origin: Origin,
        now: Time,
        make: impl FnOnce(Origin) -> Site,
    ) -> SiteIx {
        if let Some(&site) = self.by_origin.get(&origin) {
            return site;
        }
        let mut site = make(origin.clone());
        if self.asleep.len() > 0 {
            site.chain = self.asleep.remove(Asleep::key(&origin));
        }
        let wakes = site.chain.is_some();
        let index = match self.spare.pop() {
            Some(index) => {
                self.sites[index.index()] = site;
                index
            }
            None => {
                self.sites.push(site);
                SiteIx(self.sites.len() as u32 - 1)
            }
        };
        self.by_origin.insert(origin, index);
        if wakes {
            self.settle(index, now);
        }
        index
    }

    /// What is known of an origin.
    pub(super) fn site(&self, site: SiteIx) -> &Site {
        &self.sites[site.index()]
    }

    /// The same, to be changed; to be followed by [`Frontier::settle`].
    pub(super) fn site_mut(&mut self, site: SiteIx) -> &mut Site {
        &mut self.sites[site.index()]
    }

    /// All origins that are remembered.
    pub(super) fn all(&self) -> impl Iterator<Item = SiteIx> + use<> {
        (0..self.sites.len() as u32).map(SiteIx)
    }

    /// Up to `most` of them, beginning with the one at `from`. O(1) in those before.
    pub(super) fn stretch(&self, from: usize, most: usize) -> impl Iterator<Item = SiteIx> + use<> {
        let end = self.sites.len().min(from + most);
        (from.min(end) as u32..end as u32).map(SiteIx)
    }

    /// Jobs that wait, in memory and on disk.
    pub(super) fn jobs(&self) -> usize {
        self.jobs + self.spilled
    }

    /// Origins at which jobs wait that were never tried. One at which only retries wait makes
    /// no work for others to hide behind: it is not counted.
    pub(super) fn origins(&self) -> usize {
        self.untried + self.asleep.len()
    }

    /// What waits at each origin, those asleep left out.
    pub(super) fn waiting_at(&self) -> impl Iterator<Item = (&Origin, u64)> {
        let sites = self.sites.iter().filter(|site| site.place != Place::Idle);
        sites.map(|site| (&site.origin, site.jobs()))
    }

    /// About how much memory the jobs there take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Jobs that wait for nothing but an exit.
    pub(super) fn startable(&self) -> usize {
        self.startable
    }

    /// Files a job under its origin.
    pub(super) fn file(&mut self, site: SiteIx, mut work: Box<Work>, now: Time) {
        self.jobs += 1;
        self.bytes += work.size();
        work.lack_before = self.sites[site.index()].exit_lack;
        self.sites[site.index()].queue.push(work, now);
        self.settle(site, now);
    }

    /// This job was taken out of the origin's queue.
    pub(super) fn taken(&mut self, site: SiteIx, work: &Work, now: Time) {
        self.jobs -= 1;
        self.bytes -= work.size();
        self.settle(site, now);
    }

    /// Takes any job of an origin out.
    pub(super) fn take_any(&mut self, site: SiteIx, now: Time) -> Option<Box<Work>> {
        let work = self.sites[site.index()].queue.take_any()?;
        self.taken(site, &work, now);
        Some(work)
    }

    /// Moves an origin to the place that it asks for now.
    pub(super) fn settle(&mut self, site: SiteIx, now: Time) {
        if self.sites[site.index()].place == Place::Refill {
            return;
        }
        let wish = self.sites[site.index()].wish(now);
        let same_rung = Place::Ready {
            in_flight: self.sites[site.index()].in_flight,
        };
        if wish == Wish::Start && self.sites[site.index()].place == same_rung {
            // It keeps its turn.
            self.count(site);
            return;
        }
        self.leave(site);
        match wish {
            Wish::Nothing => self.rest(site, now),
            Wish::GiveUp => self.enter_list(site, Place::Closed),
            Wish::Land => self.sites[site.index()].place = Place::Parked,
            Wish::At(at) => {
                self.sites[site.index()].place = Place::Delayed;
                self.wakes.set(site.0, at);
            }
            Wish::Start => {
                self.ready
                    .push(&mut self.links, site.0, self.sites[site.index()].in_flight);
                self.sites[site.index()].place = same_rung;
            }
        }
        self.count(site);
    }

    /// The origin whose turn it is.
    pub(super) fn first_ready(&self) -> Option<SiteIx> {
        self.ready.first().map(SiteIx)
    }

    /// None of the free exits fits: the origin steps aside until `wake` or until told.
    pub(super) fn set_aside(&mut self, site: SiteIx, wake: Time) {
        self.leave(site);
        self.enter_list(site, Place::Misfit);
        self.wakes.set(site.0, wake);
        self.count(site);
    }

    /// The misfit that waits longest.
    pub(super) fn first_misfit(&self) -> Option<SiteIx> {
        self.misfits.first().map(SiteIx)
    }

    /// How many misfits there are.
    pub(super) fn misfits(&self) -> u32 {
        self.misfits.len()
    }

    /// Lets the next misfit be the first.
    pub(super) fn turn_misfit(&mut self, site: SiteIx) {
        self.misfits.remove(&mut self.links, site.0);
        self.misfits.push(&mut self.links, site.0);
    }

    /// An origin whose jobs are to be given up.
    pub(super) fn first_closed(&self) -> Option<SiteIx> {
        self.closed.first().map(SiteIx)
    }

    /// When the next origin's instant comes.
    pub(super) fn next_wake(&self) -> Option<Time> {
        self.wakes.first()
    }

    /// Moves the origins whose instant has come, and forgets those at rest.
    pub(super) fn wake(&mut self, now: Time) {
        while let Some(index) = self.wakes.due(now) {
            self.settle(SiteIx(index), now);
        }
        while let Some(index) = self.rests.due(now) {
            self.forget(SiteIx(index));
        }
    }

    /// Takes the origin out of its place: `Idle`, until it gets another one.
    fn leave(&mut self, site: SiteIx) {
        let place = std::mem::take(&mut self.sites[site.index()].place);
        match place {
            Place::Idle => self.rests.cancel(site.0),
            Place::Ready { in_flight } => {
                self.ready.remove(&mut self.links, site.0, in_flight);
            }
            Place::Delayed => self.wakes.cancel(site.0),
            Place::Parked | Place::Refill => {}
            Place::Misfit => {
                self.misfits.remove(&mut self.links, site.0);
                self.wakes.cancel(site.0);
            }
            Place::Closed => self.closed.remove(&mut self.links, site.0),
        }
    }

    fn enter_list(&mut self, site: SiteIx, place: Place) {
        let list = match place {
            Place::Misfit => &mut self.misfits,
            _ => &mut self.closed,
        };
        list.push(&mut self.links, site.0);
        self.sites[site.index()].place = place;
    }

    /// No job waits: the origin is forgotten once nothing about it is worth remembering.
    fn rest(&mut self, site: SiteIx, now: Time) {
        let here = &self.sites[site.index()];
        if here.in_flight > 0 {
            return;
        }
        match here.rests_at() {
            Some(at) if at <= now => self.forget(site),
            Some(at) => self.rests.set(site.0, at),
            None => {}
        }
    }

    fn forget(&mut self, site: SiteIx) {
        let here = &mut self.sites[site.index()];
        self.startable -= here.startable;
        here.startable = 0;
        if self.by_origin.remove(&here.origin).is_some() {
            self.spare.push(site);
        }
    }

    /// Keeps the counts of jobs that wait for an exit, and of origins with untried ones, in step
    /// with the origin.
    fn count(&mut self, site: SiteIx) {
        let here = &mut self.sites[site.index()];
        let untried = here.has_untried();
        self.untried = self.untried + usize::from(untried) - usize::from(here.counted);
        here.counted = untried;
        let now = here.startable_jobs();
        self.startable = self.startable + now - here.startable;
        here.startable = now;
    }
}
