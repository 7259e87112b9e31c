//! Every count and place of the frontier against what is counted, for tests and the simulator.

use crate::model::Time;

use super::super::asleep::Asleep;
use super::super::site::Wish;
use super::super::work::Work;
use super::{Frontier, Place};

impl Frontier {
    /// Panics if an origin is not in exactly the place it must be in. For tests; O(jobs).
    pub(in crate::schedule) fn check(&self, now: Time) {
        let (mut jobs, mut spilled, mut untried) = (0, self.asleep.jobs(), 0);
        let (mut bytes, mut startable) = (0, 0);
        let (mut misfits, mut closed) = (0, 0);
        for index in self.all() {
            let site = self.site(index);
            if self.by_origin.get(&site.origin) != Some(&index) {
                assert_eq!(site.jobs(), 0, "a forgotten origin has jobs");
                continue;
            }
            jobs += site.queue.len();
            bytes += site.queue.all().map(Work::size).sum::<usize>();
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
        assert_eq!(self.bytes, bytes, "memory of these");
        assert_eq!(self.spilled, spilled, "jobs on disk");
        assert_eq!(self.untried, untried, "origins with untried jobs");
        assert_eq!(self.startable, startable);
        assert_eq!(self.misfits.len(), misfits);
        assert_eq!(self.closed.len(), closed);
    }
}
