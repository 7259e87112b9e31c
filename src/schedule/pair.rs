//! One origin's view of the exits: who had good answers here lately, who is not welcome.
//!
//! Owns the pair hold-off (this exit at this origin) and the witnesses: exits with a good answer in
//! the last minute, by which other exits are judged. Leaves to the scheduler to keep held-off exits
//! out of the pick. Four witnesses are enough for every question asked ("at least three
//! others"), so an origin needs no table of all exits.

use std::time::Duration;

use crate::model::Time;

use super::split::Counter;

/// Good answers are evidence for this long.
const FRESH: Duration = Duration::from_secs(60);
/// "At least three others" needs four when the one in question may be among them.
const WITNESSES: usize = 4;
/// A limit that this many other exits met as well …
const THROTTLED_OTHERS: usize = 3;
/// … in this part of the answers is the origin's. Smaller: a limit per address slows all exits
/// down; larger: more refusals are provoked. Simulated with 20 exits and 2,000 jobs: an origin that
/// bears half of our rate refused 1,980 requests without this rule; a limit per address, met
/// by 5 % of the requests, took 11 times the ideal time without the share.
const THROTTLED_SHARE: f32 = 0.1;
const HOLD: Duration = Duration::from_secs(30);
const HOLD_MOST: Duration = Duration::from_secs(15 * 60);

#[derive(Clone, Copy, Debug)]
struct Witness {
    exit: u32,
    at: Time,
    over: Over,
}

/// How a good answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Without TLS to the origin.
    Plain,
    /// Over TLS with a valid certificate.
    Tls,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    exit: u32,
    until: Time,
    times: u8,
}

/// An exit that got a 429, and when.
type Throttled = Option<(u32, Time)>;

/// What one origin knows about the exits.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    witnesses: [Option<Witness>; WITNESSES],
    /// Exits that got a 429 here lately, and which part of the answers these are.
    throttled: Option<Box<[Throttled; WITNESSES]>>,
    throttling: Counter,
    /// Sorted by exit: an origin that refuses whole fleets is asked about each of them.
    holds: Vec<Hold>,
}

impl Pairs {
    /// `exit` had a good answer here. It forgets an expired hold-off of the pair.
    pub fn good(&mut self, exit: u32, over: Over, now: Time) {
        self.throttling.good();
        if let Ok(at) = self.place(exit)
            && self.holds[at].until <= now
        {
            self.holds.remove(at);
        }
        let slot = self
            .witnesses
            .iter()
            .position(|slot| slot.is_some_and(|witness| witness.exit == exit))
            .unwrap_or_else(|| self.oldest());
        self.witnesses[slot] = Some(Witness {
            exit,
            at: now,
            over,
        });
    }

    fn oldest(&self) -> usize {
        (0..WITNESSES)
            .min_by_key(|&slot| self.witnesses[slot].map(|witness| witness.at))
            .unwrap_or_default()
    }

    /// How many other exits (at most four are known) had good answers in the last minute.
    pub fn clean_elsewhere(&self, exit: u32, now: Time) -> u32 {
        self.fresh(exit, now).count() as u32
    }

    /// `exit` got a 429 here.
    pub fn throttled(&mut self, exit: u32, now: Time) {
        let throttled = self.throttled.get_or_insert_default();
        let own = |slot: &Throttled| slot.is_some_and(|(known, _)| known == exit);
        let oldest = || (0..WITNESSES).min_by_key(|&slot| throttled[slot].map(|(_, at)| at));
        let slot = throttled.iter().position(own).or_else(oldest);
        throttled[slot.unwrap_or_default()] = Some((exit, now));
        self.throttling.fault();
    }

    /// Whether a 429 is about all of us and not about `exit` alone: many answers are, through
    /// several exits in the last minute. Half of an overloaded origin's answers are clean, so
    /// that others get these proves nothing then.
    pub fn throttles_all(&self, exit: u32, now: Time) -> bool {
        let fresh = |&&(other, at): &&(u32, Time)| other != exit && now - at < FRESH;
        let others = self.throttled_lately().filter(fresh).count();
        others >= THROTTLED_OTHERS && self.throttling.share() >= THROTTLED_SHARE
    }

    /// Whether any exit got a 429 here lately: then the origin counts, perhaps by address, and
    /// requests are better spread than sent through the exit with the open socket.
    pub fn is_counting(&self, now: Time) -> bool {
        let lately = |&(_, at): &(u32, Time)| now - at < HOLD_MOST;
        self.throttled_lately().any(lately)
    }

    fn throttled_lately(&self) -> impl Iterator<Item = &(u32, Time)> {
        self.throttled
            .iter()
            .flat_map(|slots| slots.iter().flatten())
    }

    /// Whether another exit had a valid certificate from this origin in the last minute.
    pub fn valid_tls_elsewhere(&self, exit: u32, now: Time) -> bool {
        self.fresh(exit, now)
            .any(|witness| witness.over == Over::Tls)
    }

    fn fresh(&self, exit: u32, now: Time) -> impl Iterator<Item = &Witness> {
        self.witnesses
            .iter()
            .flatten()
            .filter(move |witness| witness.exit != exit && now - witness.at < FRESH)
    }

    /// The pair is held off, longer each time; until when.
    pub fn hold(&mut self, exit: u32, now: Time) -> Time {
        let place = self.place(exit);
        let times = match place {
            // Stragglers of one burst count once.
            Ok(at) if self.holds[at].until > now => return self.holds[at].until,
            Ok(at) => self.holds[at].times.saturating_add(1),
            Err(_) => 0,
        };
        let length = HOLD.saturating_mul(1 << times.min(8)).min(HOLD_MOST);
        let until = now + length;
        let hold = Hold { exit, until, times };
        match place {
            Ok(at) => self.holds[at] = hold,
            Err(at) => self.holds.insert(at, hold),
        }
        until
    }

    /// Whether an exit is held off here now.
    pub fn is_held(&self, exit: u32, now: Time) -> bool {
        self.place(exit).is_ok_and(|at| self.holds[at].until > now)
    }

    /// The exits that are held off here now.
    pub fn held(&self, now: Time) -> impl Iterator<Item = u32> {
        self.holds
            .iter()
            .filter(move |hold| hold.until > now)
            .map(|hold| hold.exit)
    }

    /// At most this many are held off.
    pub fn holds(&self) -> usize {
        self.holds.len()
    }

    fn place(&self, exit: u32) -> Result<usize, usize> {
        self.holds.binary_search_by_key(&exit, |hold| hold.exit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_secs(secs)
    }

    #[test]
    fn witnesses_are_other_exits_of_the_last_minute_each_counted_once() {
        let mut pairs = Pairs::default();
        for (exit, at) in [(1, 0), (2, 10), (2, 11), (3, 30)] {
            pairs.good(exit, Over::Plain, secs(at));
        }
        assert_eq!(pairs.clean_elsewhere(9, secs(40)), 3);
        assert_eq!(pairs.clean_elsewhere(3, secs(40)), 2);
        assert_eq!(pairs.clean_elsewhere(9, secs(60)), 2);
        assert_eq!(pairs.clean_elsewhere(9, secs(95)), 0);
    }

    #[test]
    fn three_others_are_known_whatever_came_before() {
        let mut pairs = Pairs::default();
        for exit in 0..100 {
            pairs.good(exit, Over::Plain, secs(u64::from(exit) / 10));
        }
        for exit in 0..100 {
            assert!(pairs.clean_elsewhere(exit, secs(10)) >= 3);
        }
    }

    #[test]
    fn a_limit_is_common_if_it_meets_several_exits_in_many_answers() {
        let mut pairs = Pairs::default();
        (0..3).for_each(|exit| pairs.throttled(exit, secs(0)));
        assert!(pairs.throttles_all(9, secs(59)));
        assert!(!pairs.throttles_all(2, secs(59)), "itself does not count");
        assert!(!pairs.throttles_all(9, secs(60)), "too long ago");
        (0..60).for_each(|_| pairs.good(5, Over::Plain, secs(1)));
        assert!(!pairs.throttles_all(9, secs(1)), "few of the answers");
    }

    #[test]
    fn only_valid_certificates_speak_for_tls() {
        let mut pairs = Pairs::default();
        pairs.good(1, Over::Plain, secs(0));
        assert!(!pairs.valid_tls_elsewhere(9, secs(1)));
        pairs.good(1, Over::Tls, secs(1));
        assert!(pairs.valid_tls_elsewhere(9, secs(2)));
        assert!(
            !pairs.valid_tls_elsewhere(1, secs(2)),
            "itself is no witness"
        );
    }

    #[test]
    fn a_pair_is_held_off_longer_each_time_up_to_a_quarter_of_an_hour() {
        let mut pairs = Pairs::default();
        let mut now = secs(0);
        for length in [30, 60, 120, 240, 480, 900, 900] {
            let until = pairs.hold(1, now);
            assert_eq!(until - now, Duration::from_secs(length));
            assert_eq!(pairs.hold(1, now), until, "a burst counts once");
            assert_eq!(pairs.held(now).collect::<Vec<_>>(), [1]);
            assert!(pairs.is_held(1, now) && !pairs.is_held(1, until));
            now = until;
            assert_eq!(pairs.held(now).count(), 0);
        }
    }

    #[test]
    fn a_good_answer_after_the_hold_off_makes_the_next_one_short_again() {
        let mut pairs = Pairs::default();
        pairs.hold(1, secs(0));
        pairs.good(1, Over::Plain, secs(31));
        assert_eq!(pairs.hold(1, secs(40)), secs(70));
    }
}
