//! Behaviours that take turns: how often it was bad already, and for how long.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::model::Time;

use super::super::behaviour::{Act, Behaviour, Moment};

/// A behaviour with its memory.
pub(super) struct Mood {
    behaviour: Behaviour,
    since: Time,
    turns: AtomicU64,
    /// Grows with every change.
    pub(super) serial: u64,
}

impl Mood {
    /// Behaves so from `since` on.
    pub(super) fn new(behaviour: Behaviour, since: Time, serial: u64) -> Mood {
        Mood {
            behaviour,
            since,
            turns: AtomicU64::new(0),
            serial,
        }
    }

    /// What is done at `moment`. A turn is a connection where the bad behaviour shows at the
    /// accept, else a handshake or a plain request; what is inside a tunnel takes no turn.
    pub(super) fn act(&self, moment: Moment, now: impl FnOnce() -> Time) -> Act {
        match &self.behaviour {
            Behaviour::First { times, bad } => {
                self.by_turn(bad, moment, |turn| turn < u64::from(*times))
            }
            Behaviour::Flap {
                good,
                bad_times,
                bad,
            } => {
                let (good, both) = (u64::from(*good), u64::from(*good) + u64::from(*bad_times));
                self.by_turn(bad, moment, |turn| turn % both.max(1) >= good)
            }
            Behaviour::Swing {
                good,
                bad_time,
                bad,
            } => {
                let both = (*good + *bad_time).max(Duration::from_nanos(1));
                let at = (now() - self.since).as_nanos() % both.as_nanos();
                if at >= good.as_nanos() {
                    bad.act(moment)
                } else {
                    Act::Serve
                }
            }
            steady => steady.act(moment),
        }
    }

    /// What is done about this target, beyond [`Mood::act`].
    pub(super) fn act_towards(&self, target: &str, moment: Moment) -> Act {
        self.behaviour.act_towards(target, moment)
    }

    fn by_turn(&self, bad: &Behaviour, moment: Moment, is_bad: impl Fn(u64) -> bool) -> Act {
        let takes_turn = match moment {
            Moment::Accept { .. } => bad.acts_at_accept(),
            Moment::Forward | Moment::Handshake => !bad.acts_at_accept(),
            Moment::InTunnel => false,
        };
        if takes_turn && is_bad(self.turns.fetch_add(1, Relaxed)) {
            bad.act(moment)
        } else {
            Act::Serve
        }
    }

    /// How the port is kept.
    pub(super) fn port(&self) -> Port {
        match self.behaviour {
            Behaviour::Refuse => Port::Closed,
            Behaviour::DropSyn => Port::Full,
            _ => Port::Open,
        }
    }
}

impl fmt::Display for Mood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.behaviour.fmt(f)
    }
}

/// How an exit keeps its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    Open,
    /// Bound and not listening: connection refused.
    Closed,
    /// Listening with a full queue: no answer to a SYN.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(word: &str, moment: Moment, times: usize) -> String {
        let mood = Mood::new(word.parse().unwrap(), Time::ZERO, 1);
        (0..times)
            .map(|_| match mood.act(moment, || Time::ZERO) {
                Act::Serve => '.',
                _ => 'x',
            })
            .collect()
    }

    #[test]
    fn the_first_turns_are_bad_and_the_rest_good() {
        assert_eq!(acts("first:3:502", Moment::Forward, 6), "xxx...");
        assert_eq!(acts("first:3:502", Moment::InTunnel, 3), "...");
        assert_eq!(acts("first:3:502", Moment::Accept { open: 1 }, 3), "...");
        assert_eq!(acts("first:2:reset", Moment::Accept { open: 1 }, 4), "xx..");
        assert_eq!(acts("first:2:reset", Moment::Forward, 4), "....");
    }

    #[test]
    fn a_flapping_exit_is_good_first_and_comes_back() {
        assert_eq!(acts("flap:2:3:502", Moment::Handshake, 12), "..xxx..xxx..");
        assert_eq!(acts("flap:0:0:502", Moment::Handshake, 2), "xx");
    }

    #[test]
    fn a_swinging_exit_goes_by_the_clock() {
        let mood = Mood::new(
            "swing:1000:500:hang".parse().unwrap(),
            Time::from_secs(10),
            1,
        );
        let at = |millis| mood.act(Moment::InTunnel, || Time::from_millis(millis));
        assert_eq!(at(10_000), Act::Serve);
        assert_eq!(at(10_999), Act::Serve);
        assert_eq!(at(11_000), Act::Hang);
        assert_eq!(at(11_499), Act::Hang);
        assert_eq!(at(11_500), Act::Serve);
    }
}
