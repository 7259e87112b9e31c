//! The breaker of one origin: rests an origin that only fails and gives it up in the end.
//!
//! Owns the count of origin faults in a row, the pause with its single request after it, and
//! `--origin-patience`. Leaves to `blame` and `split` what is an origin's fault, and to the budget
//! the pauses that the origin asks for itself; those do not count against its patience.
//!
//! The last single request is made when patience runs out, so an origin that comes back late is
//! still found, and one that does not is given up then and not a pause later.

use std::time::Duration;

use crate::model::Time;

use super::distinct::Distinct;

/// Faults in a row that open the breaker.
const FAULTS: u32 = 8;
/// They must come through this many exits, or through all if there are fewer.
const EXITS: usize = 3;
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_MOST: Duration = Duration::from_secs(60);

/// What an origin fault leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing yet.
    None,
    /// No request to the origin before this instant, then one at a time.
    Pause(Time),
    /// Give its jobs up.
    Dead,
}

/// The breaker of one origin. Of one that works nothing is remembered, and eight bytes kept.
#[derive(Clone, Debug, Default)]
pub struct Breaker(Option<Box<Failing>>);

/// Since the last good answer.
#[derive(Clone, Debug, Default)]
struct Failing {
    in_a_row: u32,
    exits: Distinct<EXITS>,
    pauses: u8,
    paused_until: Time,
    /// First fault since the last good answer.
    failing_since: Option<Time>,
    /// Pauses that the origin asked for since then.
    excused: Duration,
}

impl Breaker {
    /// A good answer: closed, and all is forgotten.
    pub fn good(&mut self) {
        self.0 = None;
    }

    /// The origin asked for a pause of this length; it does not count against its patience.
    pub fn excuse(&mut self, pause: Duration) {
        if let Some(failing) = &mut self.0 {
            failing.excused = failing.excused.saturating_add(pause);
        }
    }

    /// An origin fault, through `exit`, of an attempt dispatched then. `usable_exits` is how many
    /// the run has.
    pub fn fault(&mut self, fault: OriginFault, patience: Duration, now: Time) -> Reaction {
        self.0.get_or_insert_default().fault(fault, patience, now)
    }

    /// How many requests may be in flight: one while the breaker is open.
    pub fn in_flight_bound(&self) -> Option<u32> {
        let open = self.0.as_ref().is_some_and(|failing| failing.pauses > 0);
        open.then_some(1)
    }

    /// No request before this instant.
    pub fn paused_until(&self) -> Time {
        self.0
            .as_ref()
            .map_or(Time::ZERO, |failing| failing.paused_until)
    }
}

impl Failing {
    fn fault(&mut self, fault: OriginFault, patience: Duration, now: Time) -> Reaction {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.exits.insert(fault.exit);
        let since = *self.failing_since.get_or_insert(now);
        let dead_at = since + patience.saturating_add(self.excused);
        if now >= dead_at {
            return Reaction::Dead;
        }
        let enough = EXITS.min(fault.usable_exits.max(1) as usize);
        if self.in_a_row < FAULTS || self.exits.len() < enough {
            return Reaction::None;
        }
        // Answers to requests from before the last pause say nothing new.
        if fault.dispatched < self.paused_until {
            return Reaction::Pause(self.paused_until);
        }
        let pause = PAUSE
            .saturating_mul(1 << self.pauses.min(8))
            .min(PAUSE_MOST);
        self.pauses = self.pauses.saturating_add(1);
        self.paused_until = (now + pause).min(dead_at);
        Reaction::Pause(self.paused_until)
    }
}

/// Where and when an origin fault was met.
#[derive(Clone, Copy, Debug)]
pub struct OriginFault {
    /// The exit it came through.
    pub exit: u32,
    /// When its lease was given out.
    pub dispatched: Time,
    /// Exits that are not evicted.
    pub usable_exits: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(120);

    fn fault(breaker: &mut Breaker, exit: u32, now: Time) -> Reaction {
        let fault = OriginFault {
            exit,
            dispatched: now,
            usable_exits: 10,
        };
        breaker.fault(fault, PATIENCE, now)
    }

    fn opened(now: Time) -> Breaker {
        let mut breaker = Breaker::default();
        (0..8).for_each(|n| {
            fault(&mut breaker, n, now);
        });
        breaker
    }

    #[test]
    fn eight_faults_in_a_row_over_three_exits_pause_the_origin() {
        let now = Time::from_secs(1);
        let mut breaker = Breaker::default();
        for n in 0..7 {
            assert_eq!(fault(&mut breaker, n % 3, now), Reaction::None);
        }
        assert_eq!(
            fault(&mut breaker, 0, now),
            Reaction::Pause(Time::from_secs(6))
        );
        assert_eq!(breaker.in_flight_bound(), Some(1));
    }

    #[test]
    fn faults_through_two_exits_only_do_not_unless_there_are_no_more() {
        let now = Time::from_secs(1);
        let mut breaker = Breaker::default();
        for n in 0..20 {
            assert_eq!(fault(&mut breaker, n % 2, now), Reaction::None);
        }
        let few = OriginFault {
            exit: 1,
            dispatched: now,
            usable_exits: 2,
        };
        assert!(matches!(
            breaker.fault(few, PATIENCE, now),
            Reaction::Pause(_)
        ));
    }

    #[test]
    fn a_good_answer_closes_it() {
        let mut breaker = opened(Time::from_secs(1));
        breaker.good();
        assert_eq!(breaker.in_flight_bound(), None);
        assert_eq!(fault(&mut breaker, 0, Time::from_secs(2)), Reaction::None);
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_stragglers_do_not_prolong_them() {
        let mut breaker = Breaker::default();
        let patience = Duration::from_secs(3600);
        let mut now = Time::from_secs(1);
        for n in 0..8 {
            breaker.fault(
                OriginFault {
                    exit: n,
                    dispatched: now,
                    usable_exits: 9,
                },
                patience,
                now,
            );
        }
        for pause in [10, 20, 40, 60, 60] {
            let old = OriginFault {
                exit: 0,
                dispatched: now,
                usable_exits: 9,
            };
            let until = breaker.paused_until();
            assert_eq!(breaker.fault(old, patience, now), Reaction::Pause(until));
            now = until;
            let probe = OriginFault {
                exit: 0,
                dispatched: now,
                usable_exits: 9,
            };
            let next = Reaction::Pause(now + Duration::from_secs(pause));
            assert_eq!(breaker.fault(probe, patience, now), next);
        }
    }

    #[test]
    fn patience_ends_with_one_last_request() {
        let mut breaker = opened(Time::ZERO);
        let mut now = Time::ZERO;
        while let Reaction::Pause(until) = fault(&mut breaker, 0, now) {
            now = until;
        }
        assert_eq!(now, Time::from_secs(120));
    }

    #[test]
    fn pauses_that_the_origin_asked_for_do_not_count() {
        let mut breaker = Breaker::default();
        breaker.excuse(Duration::from_secs(1000));
        fault(&mut breaker, 0, Time::ZERO);
        breaker.excuse(Duration::from_secs(100));
        assert_ne!(fault(&mut breaker, 0, Time::from_secs(219)), Reaction::Dead);
        assert_eq!(fault(&mut breaker, 0, Time::from_secs(220)), Reaction::Dead);
    }
}
