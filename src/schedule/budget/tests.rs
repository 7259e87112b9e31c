use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::*;

fn budget(rate: f64, burst: u32) -> Budget {
    Budget::new(Allowance {
        rate: Some(rate),
        burst,
        per_origin: None,
    })
}

fn rng() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(11)
}

/// Dispatches at the earliest instant each, `count` times.
fn run(budget: &mut Budget, count: usize) -> Vec<Time> {
    let mut now = Time::ZERO;
    (0..count)
        .map(|_| {
            now = now.max(budget.ready_at());
            budget.dispatch(now);
            now
        })
        .collect()
}

#[test]
fn dispatches_are_an_interval_apart_at_every_rate() {
    for rate in [0.2, 1.0, 7.3] {
        let times = run(&mut budget(rate, 1), 1000);
        let interval = 1.0 / rate;
        for pair in times.windows(2) {
            let gap = (pair[1] - pair[0]).as_secs_f64();
            assert!(
                gap >= interval - 1e-12 && gap < interval + 2e-9,
                "{rate}: {gap}"
            );
        }
    }
}

#[test]
fn a_burst_is_exactly_as_large_as_allowed() {
    let mut budget = budget(1.0, 4);
    let now = Time::from_secs(100);
    let mut sent = 0;
    while budget.ready_at() <= now {
        budget.dispatch(now);
        sent += 1;
    }
    assert_eq!(sent, 4);
    assert_eq!(budget.ready_at(), Time::from_secs(101));
}

#[test]
fn a_clock_that_stands_still_lets_one_burst_through() {
    let mut budget = budget(5.0, 1);
    budget.dispatch(Time::ZERO);
    assert!(budget.ready_at() > Time::ZERO);
}

#[test]
fn waiting_for_exits_saves_nothing_up() {
    let mut budget = budget(10.0, 1);
    run(&mut budget, 5);
    let back = Time::from_secs(60);
    assert!(budget.ready_at() <= back);
    budget.dispatch(back);
    assert_eq!(budget.ready_at(), back + Duration::from_millis(100));
}

#[test]
fn unlimited_skips_the_bucket_and_the_bound_but_not_the_pause() {
    let mut budget = Budget::new(Allowance {
        rate: None,
        burst: 1,
        per_origin: None,
    });
    for _ in 0..1000 {
        assert_eq!(budget.ready_at(), Time::ZERO);
        budget.dispatch(Time::ZERO);
    }
    assert_eq!(budget.bound(), u32::MAX);
    budget.pause(Duration::from_secs(5), Time::ZERO, &mut rng());
    assert!(budget.ready_at() >= Time::from_secs(5));
}

#[test]
fn the_bound_covers_four_seconds_of_latency_and_at_least_two() {
    for (rate, bound) in [(0.2, 2), (1.0, 4), (7.3, 30), (10.0, 40)] {
        assert_eq!(budget(rate, 1).bound(), bound);
    }
}

#[test]
fn a_refund_lets_the_same_instant_be_used_again_but_never_two_at_once() {
    let mut budget = budget(1.0, 1);
    let lost = budget.dispatch(Time::ZERO);
    budget.refund(lost);
    assert_eq!(budget.ready_at(), Time::ZERO);
    let lost = budget.dispatch(Time::ZERO);
    budget.dispatch(Time::from_secs(1));
    budget.refund(lost);
    assert_eq!(
        budget.ready_at(),
        Time::from_secs(2),
        "a later one has gone"
    );
}

#[test]
fn a_pause_has_jitter_on_top_and_the_longest_wins() {
    let mut budget = budget(10.0, 1);
    let mut rng = rng();
    for _ in 0..100 {
        let wait = budget.pause(Duration::from_secs(10), Time::ZERO, &mut rng);
        assert!(wait >= Duration::from_secs(10) && wait <= Duration::from_secs(11));
    }
    let until = budget.paused_until();
    budget.pause(Duration::from_secs(1), Time::ZERO, &mut rng);
    assert_eq!(budget.paused_until(), until);
    budget.pause(Duration::MAX, Time::from_secs(3), &mut rng);
    assert_eq!(budget.paused_until(), Time::NEVER);
}

#[test]
fn a_storm_of_refusals_in_flight_is_one_halving() {
    let mut budget = budget(50.0, 50);
    let charges: Vec<Charge> = (0..50).map(|_| budget.dispatch(Time::ZERO)).collect();
    let cuts = charges
        .iter()
        .filter(|charge| budget.slow_down(**charge, Time::from_secs(1)))
        .count();
    assert_eq!(cuts, 1);
    assert_eq!(budget.spacing(), Duration::from_millis(40));
}

#[test]
fn the_rate_never_falls_below_a_sixty_fourth() {
    let mut budget = budget(64.0, 1);
    for second in 0..20 {
        let charge = budget.dispatch(Time::from_secs(second));
        assert!(budget.slow_down(charge, Time::from_secs(second)));
    }
    assert_eq!(budget.spacing(), Duration::from_secs(1));
}

#[test]
fn the_rate_recovers_after_twenty_clean_answers_or_a_minute() {
    let mut budget = budget(10.0, 1);
    let charge = budget.dispatch(Time::ZERO);
    budget.slow_down(charge, Time::ZERO);
    budget.back_off(Time::ZERO, &mut rng());
    for _ in 0..19 {
        budget.clean_answer(Time::from_secs(1));
    }
    assert_eq!(budget.spacing(), Duration::from_millis(200));
    budget.clean_answer(Time::from_secs(1));
    assert!(budget.spacing() < Duration::from_millis(167));
    assert_eq!(budget.pauses, 0);
    budget.clean_answer(Time::from_secs(62));
    assert!(budget.spacing() < Duration::from_millis(143));
}

#[test]
fn the_pause_of_a_429_grows_to_its_limit() {
    let mut budget = budget(10.0, 1);
    let mut rng = rng();
    for (k, full) in [1u64, 2, 4, 8, 16, 30, 30].into_iter().enumerate() {
        let wait = budget.back_off(Time::ZERO, &mut rng).as_secs_f64();
        assert!(
            wait >= full as f64 / 2.0 && wait <= full as f64,
            "{k}: {wait}"
        );
    }
}

#[test]
fn a_budget_rests_when_it_is_what_a_new_one_would_be() {
    let mut budget = budget(1.0, 1);
    assert_eq!(budget.rests_at(), Time::ZERO);
    let charge = budget.dispatch(Time::from_secs(5));
    assert_eq!(budget.rests_at(), Time::from_secs(6));
    budget.slow_down(charge, Time::from_secs(5));
    assert_eq!(budget.rests_at(), Time::from_secs(65));
}

proptest! {
    #[test]
    fn no_window_holds_more_than_burst_and_rate_allow(
        rate in 0.1f64..50.0,
        burst in 1u32..6,
        steps in prop::collection::vec((0u64..3_000, 0u8..8), 1..120),
    ) {
        let mut budget = budget(rate, burst);
        let mut rng = rng();
        let mut now = Time::ZERO;
        let mut sent: Vec<(Time, Charge)> = Vec::new();
        for (step, what) in steps {
            now = now + Duration::from_millis(step);
            match what {
                // An attempt that never reached the origin is not one of its requests, if refunded.
                0 => if let Some((_, charge)) = sent.last() {
                    let before = budget.tat;
                    budget.refund(*charge);
                    if budget.tat != before {
                        sent.pop();
                    }
                },
                1 => if let Some((_, charge)) = sent.last() {
                    budget.slow_down(*charge, now);
                },
                2 => budget.clean_answer(now),
                3 => { budget.pause(Duration::from_millis(step), now, &mut rng); }
                _ => while budget.ready_at() <= now {
                    let charge = budget.dispatch(now);
                    sent.push((now, charge));
                },
            }
        }
        for (from, (start, _)) in sent.iter().enumerate() {
            for (to, (end, _)) in sent.iter().enumerate().skip(from) {
                let window = (*end - *start).as_secs_f64();
                let allowed = f64::from(burst) + rate * window + 1e-6;
                prop_assert!((to - from + 1) as f64 <= allowed, "{} in {window}", to - from + 1);
            }
        }
    }
}
