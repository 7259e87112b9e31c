//! Jobs that wait on disk: whose they are, which are read next, and what came of it.
//!
//! An origin's jobs on disk are a chain, kept by its site or, where it has none in memory, by
//! `asleep`. While some of them are read the origin stands in [`Place::Refill`].

use crate::model::{Origin, Time};

use super::super::asleep::{Asleep, Chain};
use super::super::site::Site;
use super::super::steps::{Berth, Refill, Whose};
use super::{Frontier, Place, SiteIx};

impl Frontier {
    /// The jobs of an origin on disk, and who keeps them; and how many of its jobs are in memory,
    /// with its quota. `None` in place of these: the origin is not known.
    pub(in crate::schedule) fn berth(&self, origin: &Origin) -> (Berth, Option<&Site>) {
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
    pub(in crate::schedule) fn spilled(&mut self, berth: &Berth, newest: u64, now: Time) {
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
    pub(in crate::schedule) fn refill(&mut self, site: SiteIx, most: usize) -> Option<Refill> {
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

    pub(in crate::schedule) fn is_any_asleep(&self) -> bool {
        self.asleep.len() > 0
    }

    /// Wakes the origin that sleeps longest.
    pub(in crate::schedule) fn wake_one(&mut self, most: usize) -> Option<Refill> {
        let (key, chain) = self.asleep.pop()?;
        self.spilled -= chain.jobs as usize;
        Some(Refill {
            whose: Whose::Asleep(key),
            chain,
            most,
        })
    }

    /// `read` jobs were read from disk; those that are left begin at `rest`.
    pub(in crate::schedule) fn refilled(
        &mut self,
        refill: &Refill,
        read: usize,
        rest: Option<u64>,
        now: Time,
    ) {
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
}
