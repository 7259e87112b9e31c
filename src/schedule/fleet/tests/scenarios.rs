//! What the rules are for, shown on a fleet under load.

use rand::RngExt;

use super::crowd::{Crowd, End, Try};
use super::*;

/// A good answer after about a second.
fn good(rng: &mut StdRng) -> (End, u64) {
    (End::Good, rng.random_range(500..1_500))
}

fn fails_at(rate: f64, rng: &mut StdRng) -> (End, u64) {
    match rng.random_bool(rate) {
        true => (End::Fault, rng.random_range(500..1_500)),
        false => good(rng),
    }
}

/// Good answers per second in a stretch of time.
fn speed(crowd: &Crowd, from: f64, to: f64) -> f64 {
    let answers = crowd.goods.iter().filter(|&&at| (from..to).contains(&at));
    answers.count() as f64 / (to - from)
}

#[test]
fn an_exit_that_fails_60_percent_is_ejected_within_30_of_its_attempts() {
    for seed in 0..50 {
        let mut crowd = Crowd::new(20, 2, 5, seed);
        let world = |attempt: &Try, rng: &mut StdRng| match attempt.exit {
            0 => fails_at(0.6, rng),
            _ => fails_at(0.05, rng),
        };
        crowd.run(&world, |crowd| crowd.first_ejection[0].is_some());
        let attempts = crowd.first_ejection[0].unwrap_or_default();
        assert!(attempts <= 30, "{attempts} with seed {seed}");
    }
}

#[test]
fn exits_at_the_pools_rate_are_ejected_in_less_than_5_of_10_000_attempts() {
    let mut crowd = Crowd::new(50, 3, 5, 1);
    let world = |_: &Try, rng: &mut StdRng| fails_at(0.05, rng);
    crowd.run(&world, |crowd| crowd.total() >= 50_000);
    let ejections: u64 = crowd.ejections.iter().sum();
    assert!(ejections < 25, "{ejections} of {}", crowd.total());
    assert_eq!(crowd.panics, 0);
}

#[test]
fn an_origin_that_fails_everywhere_gets_no_exit_ejected() {
    let mut crowd = Crowd::new(100, 3, 100, 1);
    let world = |attempt: &Try, rng: &mut StdRng| match attempt.origin {
        0 => (End::Unclear, 200),
        _ => good(rng),
    };
    crowd.run(&world, |crowd| crowd.total() >= 50_000);
    assert_eq!(crowd.ejections.iter().sum::<u64>(), 0);
}

#[test]
fn a_silent_origin_behind_the_only_exit_does_not_put_it_out_of_use() {
    let mut crowd = Crowd::new(1, 4, 2, 1);
    let world = |attempt: &Try, rng: &mut StdRng| match attempt.origin {
        0 => (End::Mute, 3_000),
        _ => good(rng),
    };
    crowd.run(&world, |crowd| crowd.total() >= 2_000);
    assert_eq!(crowd.ejections, [0]);
}

#[test]
fn an_exit_that_answers_502_at_once_takes_few_jobs_however_free_it_looks() {
    for seed in 0..20 {
        let mut crowd = Crowd::new(4, 3, 1, seed);
        let world = |attempt: &Try, rng: &mut StdRng| match attempt.exit {
            0 => (End::Unclear, 1),
            _ => (End::Good, rng.random_range(450..550)),
        };
        crowd.run(&world, |crowd| crowd.goods.len() >= 90);
        let taken = crowd.attempts[0];
        assert!(taken <= 10, "{taken} attempts with seed {seed}");
    }
}

#[test]
fn an_exit_that_is_dead_from_the_start_takes_few_jobs() {
    for seed in 0..20 {
        let mut crowd = Crowd::new(4, 3, 1, seed);
        let world = |attempt: &Try, rng: &mut StdRng| match attempt.exit {
            0 => (End::Fault, 1),
            _ => (End::Good, rng.random_range(450..550)),
        };
        crowd.run(&world, |crowd| crowd.goods.len() >= 90);
        let taken = crowd.attempts[0];
        assert!(taken <= 10, "{taken} attempts with seed {seed}");
    }
}

#[test]
fn a_pool_of_dead_exits_is_given_up_within_about_a_minute_whatever_they_die_of() {
    let refused = |_: &Try, _: &mut StdRng| (End::Fault, 1_u64);
    let silent = |_: &Try, _: &mut StdRng| (End::Mute, 3_000_u64);
    let mixed = |attempt: &Try, _: &mut StdRng| match attempt.exit {
        0 => (End::Mute, 2_000),
        _ => (End::Fault, 1),
    };
    for exits in [1, 2, 3, 4, 5, 20] {
        for seed in 0..10 {
            for world in [&refused as super::crowd::World<'_>, &silent, &mixed] {
                let mut crowd = Crowd::new(exits, 3, 1, seed);
                crowd.run(world, |crowd| crowd.now > Time::from_secs(120));
                let taken = crowd.now.as_secs_f64();
                // Larger pools probe a few exits at a time, so there a minute without a usable exit
                // ends the run; the time that its probes take comes on top.
                let most = if exits <= 5 { 60.0 } else { 80.0 };
                assert!(taken < most, "{exits} exits, seed {seed}: {taken} s");
            }
        }
    }
}

#[test]
fn an_exit_that_works_again_after_six_resets_is_back_before_the_run_is_given_up() {
    for seed in 0..100 {
        let mut crowd = Crowd::new(1, 3, 1, seed);
        let tries = std::cell::Cell::new(0);
        let world = |_: &Try, rng: &mut StdRng| {
            tries.set(tries.get() + 1);
            match tries.get() {
                1..=6 => (End::Fault, 5),
                _ => good(rng),
            }
        };
        crowd.run(&world, |crowd| crowd.goods.len() >= 20);
        assert_eq!(crowd.goods.len(), 20, "seed {seed}");
        assert!(crowd.now < Time::from_secs(120), "seed {seed}");
    }
}

#[test]
fn an_outage_of_the_pool_panics_ejects_half_at_most_and_is_over_30_s_after_its_end() {
    for (seed, outage) in (0..6).zip([20.0, 30.0, 45.0, 20.0, 30.0, 45.0]) {
        let mut crowd = Crowd::new(40, 3, 5, seed);
        let world = move |attempt: &Try, rng: &mut StdRng| {
            let at = attempt.now.as_secs_f64();
            match (60.0..60.0 + outage).contains(&at) {
                true => (End::Fault, 100),
                false => good(rng),
            }
        };
        let end = 60.0 + outage;
        crowd.run(&world, |crowd| crowd.now.as_secs_f64() > end + 45.0);
        assert!(crowd.panics >= 1, "seed {seed}");
        assert!(crowd.most_out <= 20, "{} out, seed {seed}", crowd.most_out);
        let before = speed(&crowd, 20.0, 60.0);
        let after = speed(&crowd, end + 30.0, end + 45.0);
        assert!(after > 0.9 * before, "seed {seed}: {after} of {before}");
    }
}

#[test]
fn a_pool_in_which_most_exits_are_dead_works_on_through_the_others() {
    let mut crowd = Crowd::new(20, 3, 5, 1);
    let world = |attempt: &Try, rng: &mut StdRng| match attempt.exit {
        0..12 => (End::Fault, 5),
        _ => good(rng),
    };
    crowd.run(&world, |crowd| crowd.now > Time::from_secs(300));
    assert!(crowd.most_out <= 10);
    let through_good = speed(&crowd, 30.0, 300.0);
    assert!(through_good > 0.95 * 8.0 * 3.0, "{through_good} per second");
}

#[test]
fn cancelled_attempts_change_nothing() {
    let mut crowd = Crowd::new(4, 2, 1, 1);
    let world = |_: &Try, rng: &mut StdRng| match rng.random_bool(0.9) {
        true => (End::Cancelled, 10),
        false => good(rng),
    };
    crowd.run(&world, |crowd| crowd.total() >= 10_000);
    assert_eq!(crowd.ejections.iter().sum::<u64>(), 0);
    assert_eq!(crowd.fleet.up(), 4);
}
