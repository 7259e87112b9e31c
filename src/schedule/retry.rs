//! Whether a job is tried again, and when.
//!
//! Owns the count of a job's tries, the bound on repeating what may not be repeated, and the
//! retry budget of an origin. Leaves to `blame` which retry would help and to the scheduler to
//! pick another exit and to charge the origin's budget for it. A waiting retry is a number: it
//! holds no slot, no token, no task.
//!
//! Two bounds, since they stop different things: `--retries` stops one hopeless job, and the
//! retry budget (after Finagle's) stops a failing origin from being asked more than a healthy one.

use std::time::Duration;

use rand::{Rng, RngExt};

use super::blame;

/// Exit faults cost a job nothing, this often.
const FREE_MOST: u8 = 10;
/// Back-off before the first counted retry, doubled with each further one.
const BACK_OFF: Duration = Duration::from_millis(500);
const BACK_OFF_MOST: Duration = Duration::from_secs(60);
/// Retries may be this share of an origin's requests …
const BUDGET_SHARE: f64 = 0.2;
/// … and this many on top, so that a short list can be retried at all.
const BUDGET_FLOOR: f64 = 10.0;

/// How often a job was tried again so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    counted: u32,
    free: u8,
}

/// What is known about the request to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The method is idempotent, or the request certainly did not reach the origin.
    Harmless,
    /// It may have been carried out already.
    Doubtful,
}

/// The answer to a wish for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Again after this long, through another exit if there is one.
    After(Duration),
    /// No retry was wanted: it is over.
    Over,
    /// The job has used up its tries.
    Exhausted,
    /// The request may have been carried out and must not be repeated.
    NotRepeatable,
    /// The origin's retry budget is spent.
    BudgetSpent,
}

/// The retry budget of one origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct RetryBudget {
    requests: u64,
    retries: u64,
}

impl RetryBudget {
    /// A request was dispatched to the origin, whether first or again.
    pub fn request(&mut self) {
        self.requests += 1;
    }

    /// Takes one retry out; `false` if it is spent.
    fn withdraw(&mut self) -> bool {
        let most = BUDGET_SHARE * self.requests as f64 + BUDGET_FLOOR;
        let granted = (self.retries + 1) as f64 <= most;
        self.retries += u64::from(granted);
        granted
    }
}

/// A retry that would help.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// What `blame` would like.
    pub retry: blame::Retry,
    /// Whether the request may be repeated.
    pub repeat: Repeat,
    /// `--retries`: more means more patience with each job, 0 that only exit faults are retried.
    pub most: u32,
}

impl Tries {
    /// Grants or refuses a retry.
    pub fn decide(&mut self, wish: Wish, budget: &mut RetryBudget, rng: &mut impl Rng) -> Decision {
        match wish.retry {
            blame::Retry::No => Decision::Over,
            _ if wish.repeat == Repeat::Doubtful => Decision::NotRepeatable,
            blame::Retry::Uncharged => Decision::After(Duration::ZERO),
            blame::Retry::Free if self.free >= FREE_MOST => Decision::Exhausted,
            blame::Retry::Free => {
                self.free += 1;
                Decision::After(Duration::ZERO)
            }
            blame::Retry::Counted if self.counted >= wish.most => Decision::Exhausted,
            blame::Retry::Counted if !budget.withdraw() => Decision::BudgetSpent,
            blame::Retry::Counted => {
                let delay = back_off(self.counted, rng);
                self.counted += 1;
                Decision::After(delay)
            }
        }
    }
}

/// Full jitter: U(0, min(60 s, 0.5 s · 2^k)) (AWS Architecture Blog, "Exponential Backoff And Jitter").
fn back_off(times: u32, rng: &mut impl Rng) -> Duration {
    let most = BACK_OFF
        .saturating_mul(1 << times.min(8))
        .min(BACK_OFF_MOST);
    most.mul_f64(rng.random_range(0.0..1.0))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    struct Case {
        tries: Tries,
        budget: RetryBudget,
        rng: StdRng,
    }

    impl Case {
        fn new() -> Case {
            Case {
                tries: Tries::default(),
                budget: RetryBudget::default(),
                rng: StdRng::seed_from_u64(7),
            }
        }

        fn ask(&mut self, retry: blame::Retry, repeat: Repeat, most: u32) -> Decision {
            let wish = Wish {
                retry,
                repeat,
                most,
            };
            self.tries.decide(wish, &mut self.budget, &mut self.rng)
        }
    }

    #[test]
    fn exit_faults_are_retried_at_once_ten_times_and_use_up_no_try() {
        let mut case = Case::new();
        for _ in 0..10 {
            let decision = case.ask(blame::Retry::Free, Repeat::Harmless, 0);
            assert_eq!(decision, Decision::After(Duration::ZERO));
        }
        let decision = case.ask(blame::Retry::Free, Repeat::Harmless, 0);
        assert_eq!(decision, Decision::Exhausted);
        let counted = case.ask(blame::Retry::Counted, Repeat::Harmless, 1);
        assert!(matches!(counted, Decision::After(_)));
    }

    #[test]
    fn other_faults_are_retried_as_often_as_asked_for_with_growing_jitter() {
        let mut case = Case::new();
        for times in 0..12 {
            let Decision::After(delay) = case.ask(blame::Retry::Counted, Repeat::Harmless, 12)
            else {
                panic!("refused after {times}");
            };
            case.budget.requests += 10;
            assert!(delay <= Duration::from_secs(60));
            assert!(delay <= Duration::from_millis(500 << times));
        }
        let decision = case.ask(blame::Retry::Counted, Repeat::Harmless, 12);
        assert_eq!(decision, Decision::Exhausted);
    }

    #[test]
    fn jitter_is_spread_over_the_whole_span() {
        let mut rng = StdRng::seed_from_u64(1);
        let delays: Vec<f64> = (0..1000)
            .map(|_| back_off(1, &mut rng).as_secs_f64())
            .collect();
        let mean = delays.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        assert!(delays.iter().any(|&d| d < 0.05) && delays.iter().any(|&d| d > 0.95));
    }

    #[test]
    fn what_may_have_been_carried_out_is_not_repeated() {
        for wish in [
            blame::Retry::Free,
            blame::Retry::Counted,
            blame::Retry::Uncharged,
        ] {
            let decision = Case::new().ask(wish, Repeat::Doubtful, 9);
            assert_eq!(decision, Decision::NotRepeatable);
        }
        let over = Case::new().ask(blame::Retry::No, Repeat::Doubtful, 9);
        assert_eq!(over, Decision::Over);
    }

    #[test]
    fn what_is_ours_uses_up_nothing() {
        let mut case = Case::new();
        for _ in 0..100 {
            case.ask(blame::Retry::Uncharged, Repeat::Harmless, 0);
        }
        assert_eq!(case.tries, Tries::default());
    }

    #[test]
    fn retries_are_at_most_a_fifth_of_the_requests_and_ten() {
        let mut case = Case::new();
        (0..100).for_each(|_| case.budget.request());
        let granted = (0..100)
            .map(|_| case.ask(blame::Retry::Counted, Repeat::Harmless, u32::MAX))
            .filter(|&decision| decision != Decision::BudgetSpent)
            .count();
        assert_eq!(granted, 30);
    }
}
