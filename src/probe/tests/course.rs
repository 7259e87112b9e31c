//! The course of a ladder: the order of its steps, what bounds it, what ends it.

use super::super::ladder::{Ladder, Step};
use super::super::scope::{Scope, within};
use super::super::verdict::{Obstacle, Verdict};
use super::simulated::{SERVICE, SOUND, Sim, Times};

/// A ladder over this scope with so many requests, against a flat exit.
fn climb(scope: Scope, mut left: u32) -> (Verdict, Vec<u32>) {
    let times = Times::of(SOUND.sigma);
    let mut sim = Sim::new(SOUND, &times, 1);
    let mut ladder = Ladder::new(scope);
    let mut asked = Vec::new();
    loop {
        match ladder.next(left) {
            Step::Done(verdict) => return (verdict, asked),
            Step::Measure { plan, .. } => {
                asked.push(plan.concurrency);
                let found = sim.measure(plan);
                left = left.checked_sub(found.sent).unwrap();
                ladder.take(found);
            }
        }
    }
}

fn scope(levels: &[u32]) -> Scope {
    Scope {
        levels: levels.to_vec(),
        targets: 1,
        pace: None,
    }
}

#[test]
fn levels_are_climbed_in_order_and_the_baseline_is_looked_at_again() {
    let (verdict, asked) = climb(scope(&[1, 2, 4, 8, 16]), 400);
    assert_eq!(verdict, Verdict::NoKnee { carries: 16 });
    assert_eq!(asked, [1, 1, 2, 4, 1, 8, 16, 1]);
}

#[test]
fn a_contract_ends_the_ladder() {
    let levels = |cap| within(&[1, 2, 4, 8, 16], cap);
    assert_eq!(levels(None), [1, 2, 4, 8, 16]);
    assert_eq!(levels(Some(40)), [1, 2, 4, 8, 16]);
    assert_eq!(levels(Some(1)), [1]);
    assert_eq!(levels(Some(2)), [1, 2]);
    assert_eq!(levels(Some(5)), [1, 2, 5]);
    assert_eq!(levels(Some(6)), [1, 2, 4, 6]);
    assert_eq!(levels(Some(12)), [1, 2, 4, 8, 12]);
}

#[test]
fn no_step_takes_more_than_is_left() {
    for left in (0..420).step_by(7) {
        let (verdict, _) = climb(scope(&[1, 2, 4, 8, 16]), left);
        let spent = verdict == Verdict::None(Obstacle::Spent);
        assert!(
            spent || verdict == Verdict::NoKnee { carries: 16 },
            "{left}: {verdict:?}"
        );
        assert_eq!(spent, left < 300 || spent, "{left}");
    }
    assert!(Ladder::most(&scope(&[1, 2, 4, 8, 16])) <= 400);
}

#[test]
fn a_budget_that_binds_is_told_and_is_no_knee() {
    let bound = Scope {
        pace: Some(30.0),
        ..scope(&[1, 2, 4, 8, 16])
    };
    let (verdict, asked) = climb(bound, 400);
    let Verdict::None(Obstacle::Budget { level, needs }) = verdict else {
        panic!("{verdict:?}");
    };
    // Ten a second each: four workers need forty.
    assert_eq!(level, 4);
    assert!((30.0..50.0).contains(&needs), "{needs}");
    assert_eq!(asked, [1, 1, 2]);
}

#[test]
fn a_baseline_that_moves_is_looked_at_again_and_then_there_is_no_verdict() {
    let verdict = |slow_from: usize, slow_to: usize| {
        let (times, slow) = (Times::of(0.3), Times(vec![3.0 * SERVICE; Times::COUNT]));
        let mut ladder = Ladder::new(scope(&[1, 2, 4, 8, 16]));
        let (mut asked, mut left) = (0, 400);
        loop {
            match ladder.next(left) {
                Step::Done(verdict) => return (verdict, asked),
                Step::Measure { plan, .. } => {
                    asked += 1;
                    let is_slow = (slow_from..slow_to).contains(&asked);
                    let times = if is_slow { &slow } else { &times };
                    let found = Sim::new(SOUND, times, 1).measure(plan);
                    left -= found.sent;
                    ladder.take(found);
                }
            }
        }
    };
    // The fifth step is the second look at the baseline.
    assert_eq!(verdict(99, 99), (Verdict::NoKnee { carries: 16 }, 8));
    let unstable = Verdict::None(Obstacle::Unstable);
    assert_eq!(verdict(5, 99), (unstable, 6));
    // Slow once, and not when looked at again.
    assert_eq!(verdict(5, 6), (Verdict::NoKnee { carries: 16 }, 9));
}
