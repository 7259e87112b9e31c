//! The frontier: every origin with its waiting jobs, each in exactly one place (ALGORITHMS 7).
//!
//! Owns: where an origin stands. `Ready` (its budget allows a start: lists by attempts in
//! flight, first in first out, so a stalled origin holds few slots while others have work),
//! `Delayed` (by instant), `Parked` (its in-flight bound is reached), `Misfit` (its budget
//! allows a start, but its jobs have tried every exit that is free), `Closed` (its jobs are
//! given up), `Refill` (its jobs are being read from disk), `Idle` (no job waits); or, with all
//! its jobs on disk and no memory of its own, `asleep`. Leaves to others: what the place should
//! be (`site`), which exit (`pool`), how many jobs are in memory (`intake`).
//!
//! Invariant: whatever changes a site is followed by [`Frontier::settle`], so a place is
//! always the one that `site` asks for; only time makes it stale, and the alarms name when.

use std::collections::HashMap;

use crate::model::{Origin, Time};

use super::alarms::Alarms;
use super::asleep::{Asleep, Chain};
use super::lists::{Ladder, Links, List};
use super::site::{Site, Wish};
use super::steps::{Berth, Refill, Whose};
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

    /// The jobs of an origin on disk, and who keeps them; and how many of its jobs are in memory,
    /// with its quota. `None` in place of these: the origin is not known.
    pub(super) fn berth(&self, origin: &Origin) -> (Berth, Option<&Site>) {
        let Some(&site) = self.by_origin.get(origin) else {
            let key = Asleep::key(origin);
            let berth = Berth {
                whose: Whose::Asleep(key),
                chain: self.asleep.get(key),
            };
            return (berth, None);
        };
        let here = self.site(site);
        let berth = Berth {
            whose: Whose::Site(site),
            chain: here.chain,
        };
        (berth, Some(here))
    }

    /// A job was written to disk, where it is the newest of its origin.
    pub(super) fn spilled(&mut self, berth: &Berth, newest: u64, now: Time) {
        self.spilled += 1;
        let chain = Chain::and(berth.chain, newest);
        match berth.whose {
            Whose::Asleep(key) => self.asleep.set(key, chain),
            Whose::Site(site) => {
                self.sites[site.index()].chain = Some(chain);
                self.settle(site, now);
            }
        }
    }

    /// Lets jobs of an origin be read from disk, `most` of them; until they come it stands aside.
    pub(super) fn refill(&mut self, site: SiteIx, most: usize) -> Option<Refill> {
        let chain = self.sites[site.index()].chain?;
        self.leave(site);
        self.sites[site.index()].place = Place::Refill;
        self.count(site);
        Some(Refill {
            whose: Whose::Site(site),
            chain,
            most,
        })
    }

    pub(super) fn is_any_asleep(&self) -> bool {
        self.asleep.len() > 0
    }

    /// Wakes the origin that sleeps longest.
    pub(super) fn wake_one(&mut self, most: usize) -> Option<Refill> {
        let (key, chain) = self.asleep.pop()?;
        self.spilled -= chain.jobs as usize;
        Some(Refill {
            whose: Whose::Asleep(key),
            chain,
            most,
        })
    }

    /// `read` jobs were read from disk; those that are left begin at `rest`.
    pub(super) fn refilled(&mut self, refill: &Refill, read: usize, rest: Option<u64>, now: Time) {
        let chain = refill.chain.without(read, rest);
        self.spilled += chain.map_or(0, |chain| chain.jobs as usize);
        match (refill.whose, chain) {
            (Whose::Asleep(key), Some(chain)) => self.asleep.put_back(key, chain),
            (Whose::Asleep(_), None) => {}
            (Whose::Site(site), chain) => {
                self.spilled -= refill.chain.jobs as usize;
                self.sites[site.index()].chain = chain;
                self.leave(site);
                self.settle(site, now);
            }
        }
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

    /// Takes out every waiting job, one at a time.
    pub(super) fn drain(&mut self, now: Time) -> impl Iterator<Item = Box<Work>> {
        let mut sites = self.all().peekable();
        std::iter::from_fn(move || {
            while let Some(&site) = sites.peek() {
                if let Some(work) = self.take_any(site, now) {
                    return Some(work);
                }
                sites.next();
            }
            None
        })
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

    /// Panics if an origin is not in exactly the place it must be in. For tests; O(origins).
    pub(super) fn check(&self, now: Time) {
        let (mut jobs, mut spilled, mut untried) = (0, self.asleep.jobs(), 0);
        let mut startable = 0;
        let (mut misfits, mut closed) = (0, 0);
        for index in self.all() {
            let site = self.site(index);
            if self.by_origin.get(&site.origin) != Some(&index) {
                assert_eq!(site.jobs(), 0, "a forgotten origin has jobs");
                continue;
            }
            jobs += site.queue.len();
            spilled += site.jobs() as usize - site.queue.len();
            untried += usize::from(site.has_untried());
            assert!(
                site.chain.is_none() || self.asleep.get(Asleep::key(&site.origin)).is_none(),
                "{} has two chains",
                site.origin
            );
            assert_eq!(site.startable, site.startable_jobs(), "{}", site.origin);
            startable += site.startable;
            misfits += u32::from(site.place == Place::Misfit);
            closed += u32::from(site.place == Place::Closed);
            let fits = match (site.wish(now), site.place) {
                // Whatever it wants meanwhile.
                (_, Place::Refill) => site.chain.is_some(),
                (Wish::Nothing, place) => place == Place::Idle,
                (Wish::Land, place) => place == Place::Parked,
                (Wish::GiveUp, place) => place == Place::Closed,
                (Wish::At(_), place) => place == Place::Delayed,
                (Wish::Start, Place::Ready { in_flight }) => in_flight == site.in_flight,
                // Time has passed that `wake` has not been told of.
                (Wish::Start, place) => matches!(place, Place::Misfit | Place::Delayed),
            };
            assert!(
                fits,
                "{} in {:?}, wants {:?}",
                site.origin,
                site.place,
                site.wish(now)
            );
        }
        assert_eq!(self.jobs, jobs, "jobs in memory");
        assert_eq!(self.spilled, spilled, "jobs on disk");
        assert_eq!(self.untried, untried, "origins with untried jobs");
        assert_eq!(self.startable, startable);
        assert_eq!(self.misfits.len(), misfits);
        assert_eq!(self.closed.len(), closed);
    }
}
