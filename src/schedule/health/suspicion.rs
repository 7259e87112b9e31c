//! How much the faults of an exit speak for it being broken: a one-sided CUSUM (Page 1954).
//!
//! Owns the sum and its two thresholds. Each event adds the logarithm of how much more likely it
//! is for a broken exit than for an ordinary one, and the sum never falls below zero: so it
//! finds both the exit that dies at once and the one that turns from 5 % to 50 % faults, for one
//! addition per event and without the choice of a window. That its steps are log-likelihood
//! ratios bounds false alarms: an ordinary exit passes `t` with probability e^-t per excursion.

use super::super::split::{Ejects, Share};

/// Above this the cap is halved.
const LIMIT_AT: f32 = 4.0;
/// Above this the exit is ejected: at a pool rate of 5 %, four faults in a row.
const EJECT_AT: f32 = 8.0;
/// An exit is taken to be broken at this fault rate at least.
const P1_LEAST: f32 = 0.5;
/// And at this much above the pool's.
const P1_ABOVE: f32 = 0.3;

/// The two steps of the CUSUM, from the pool's fault rate.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    fault: f32,
    good: f32,
}

impl Odds {
    /// `p0`: the fault rate of an ordinary exit.
    pub fn new(p0: f32) -> Odds {
        let p1 = P1_LEAST.max(p0 + P1_ABOVE);
        Odds {
            fault: (p1 / p0).ln(),
            good: ((1.0 - p1) / (1.0 - p0)).ln(),
        }
    }
}

/// What the sum calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Nothing.
    Low,
    /// Less load.
    Limit,
    /// No load.
    Eject,
}

/// The sum of one exit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspicion(f32);

impl Suspicion {
    /// An event without fault.
    pub(super) fn good(&mut self, odds: Odds) {
        self.0 = (self.0 + odds.good).max(0.0);
    }

    /// A fault of which the exit carries `share`. One without evidence against the exit takes
    /// the sum up to the threshold of ejection, not past it.
    pub(super) fn fault(&mut self, share: Share, odds: Odds) {
        let raised = self.0 + share.exit * odds.fault;
        self.0 = match share.ejects {
            Ejects::Yes => raised,
            Ejects::No => raised.min(EJECT_AT.max(self.0)),
        };
    }

    /// A fault turned out to be somebody else's.
    pub(super) fn pardon(&mut self, share: Share, odds: Odds) {
        self.0 = (self.0 - share.exit * odds.fault).max(0.0);
    }

    /// The exit would be ejected but is not: the next fault asks again.
    pub(super) fn hold(&mut self) {
        self.0 = self.0.min(EJECT_AT);
    }

    /// What it calls for now.
    pub(super) fn level(self) -> Level {
        match self.0 {
            sum if sum > EJECT_AT => Level::Eject,
            sum if sum > LIMIT_AT => Level::Limit,
            _ => Level::Low,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Attempts until an exit with this fault rate is ejected in a pool with fault rate `p0`.
    fn attempts_to_ejection(rate: f64, p0: f32, rng: &mut StdRng) -> u32 {
        let odds = Odds::new(p0);
        let mut suspicion = Suspicion::default();
        for attempt in 1.. {
            match rng.random_bool(rate) {
                true => suspicion.fault(Share::WHOLE, odds),
                false => suspicion.good(odds),
            }
            if suspicion.level() == Level::Eject {
                return attempt;
            }
        }
        unreachable!("the loop ends by return only")
    }

    #[test]
    fn in_an_ordinary_pool_two_faults_in_a_row_limit_and_four_eject() {
        let odds = Odds::new(0.05);
        let mut suspicion = Suspicion::default();
        let levels: Vec<Level> = (0..4)
            .map(|_| {
                suspicion.fault(Share::WHOLE, odds);
                suspicion.level()
            })
            .collect();
        assert_eq!(
            levels,
            [Level::Low, Level::Limit, Level::Limit, Level::Eject]
        );
    }

    #[test]
    fn an_exit_at_60_percent_in_a_pool_at_5_is_ejected_within_30_attempts() {
        let mut rng = StdRng::seed_from_u64(60);
        let late = (0..10_000)
            .filter(|_| attempts_to_ejection(0.6, 0.05, &mut rng) > 30)
            .count();
        assert!(late <= 20, "{late} of 10,000 took longer");
    }

    #[test]
    fn an_exit_at_the_pools_rate_is_ejected_in_less_than_5_of_10_000_attempts() {
        for (rate, p0) in [(0.01, 0.05), (0.05, 0.05), (0.15, 0.15), (0.3, 0.3)] {
            let mut rng = StdRng::seed_from_u64(5);
            let odds = Odds::new(p0);
            let mut suspicion = Suspicion::default();
            let mut ejections = 0;
            for _ in 0..200_000 {
                match rng.random_bool(rate) {
                    true => suspicion.fault(Share::WHOLE, odds),
                    false => suspicion.good(odds),
                }
                if suspicion.level() == Level::Eject {
                    ejections += 1;
                    suspicion = Suspicion::default();
                }
            }
            assert!(ejections < 100, "{ejections} in 200,000 at {rate}");
        }
    }

    #[test]
    fn a_broken_exit_is_found_in_bad_pools_too() {
        let mut rng = StdRng::seed_from_u64(7);
        let mean = (0..1_000)
            .map(|_| f64::from(attempts_to_ejection(0.9, 0.3, &mut rng)))
            .sum::<f64>()
            / 1_000.0;
        assert!(mean < 25.0, "{mean} attempts on average");
    }

    #[test]
    fn faults_without_evidence_never_eject_and_one_with_it_does() {
        let odds = Odds::new(0.05);
        let mut suspicion = Suspicion::default();
        let quarter = Share {
            exit: 0.25,
            origin: 0.75,
            ejects: Ejects::No,
        };
        (0..1_000).for_each(|_| suspicion.fault(quarter, odds));
        assert_eq!(suspicion.level(), Level::Limit);
        suspicion.fault(Share::WHOLE, odds);
        assert_eq!(suspicion.level(), Level::Eject);
    }

    #[test]
    fn a_pardon_takes_the_charge_back() {
        let odds = Odds::new(0.05);
        let mut suspicion = Suspicion::default();
        (0..2).for_each(|_| suspicion.fault(Share::WHOLE, odds));
        suspicion.pardon(Share::WHOLE, odds);
        assert_eq!(suspicion.level(), Level::Low);
    }
}
