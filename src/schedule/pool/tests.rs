use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;

use super::*;

fn pool(caps: &[u32]) -> (Pool, Xoshiro256PlusPlus) {
    let mut pool = Pool::new(&[], caps.iter().map(|_| None));
    for (exit, &cap) in caps.iter().enumerate() {
        pool.set_cap(ExitIx::new(exit as u32), cap);
    }
    (pool, Xoshiro256PlusPlus::seed_from_u64(1))
}

fn take(pool: &mut Pool, rng: &mut Xoshiro256PlusPlus) -> Option<ExitIx> {
    let exit = pool.pick(rng, |_| true, std::iter::empty())?;
    pool.lease(exit);
    Some(exit)
}

#[test]
fn every_slot_is_given_out_once_and_then_none() {
    let (mut pool, mut rng) = pool(&[1, 3, 0, 2]);
    let mut taken = [0; 4];
    while let Some(exit) = take(&mut pool, &mut rng) {
        taken[exit.index()] += 1;
    }
    assert_eq!(taken, [1, 3, 0, 2]);
    assert!(!pool.has_free());
}

#[test]
fn load_spreads_in_proportion_to_the_caps() {
    let caps: Vec<u32> = (0..1000).map(|n| 1 + n % 16).collect();
    let (mut pool, mut rng) = pool(&caps);
    let jobs = caps.iter().sum::<u32>() * 7 / 10;
    let mut held = Vec::new();
    for _ in 0..jobs {
        held.push(take(&mut pool, &mut rng).unwrap());
    }
    // Steady state: one ends at random, the next begins.
    let mut busy = vec![0u32; caps.len()];
    let rounds = 200;
    for _ in 0..rounds {
        for _ in 0..500 {
            let ended = rng.random_range(0..held.len());
            pool.release(held.swap_remove(ended));
            held.push(take(&mut pool, &mut rng).unwrap());
        }
        for (sum, slot) in busy.iter_mut().zip(&pool.slots) {
            *sum += slot.in_flight;
        }
    }
    let shares = || {
        let shares = busy.iter().zip(&caps);
        shares.map(|(&sum, &cap)| f64::from(sum) / f64::from(cap * rounds))
    };
    let mean = shares().sum::<f64>() / caps.len() as f64;
    let variance = shares().map(|share| (share - mean).powi(2)).sum::<f64>();
    let spread = (variance / caps.len() as f64).sqrt();
    assert!(spread < 0.2, "standard deviation {spread}");
}

#[test]
fn a_full_group_offers_none_of_its_exits() {
    let mut pool = Pool::new(&[2], [Some(0), Some(0), None].into_iter());
    for exit in 0..3 {
        pool.set_cap(ExitIx::new(exit), 5);
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut grouped = 0;
    while let Some(exit) = take(&mut pool, &mut rng) {
        grouped += u32::from(exit.index() < 2);
    }
    assert_eq!((grouped, pool.in_flight(), pool.group_peak(0)), (2, 7, 2));
    pool.release(ExitIx::new(0));
    assert_eq!(
        take(&mut pool, &mut rng).map(|exit| exit.index() < 2),
        Some(true)
    );
}

#[test]
fn unwanted_exits_are_passed_over_and_the_last_wanted_one_is_found() {
    let (pool, mut rng) = pool(&[1; 40]);
    for _ in 0..100 {
        let found = pool.pick(&mut rng, |exit| exit.index() == 17, std::iter::empty());
        assert_eq!(found, Some(ExitIx::new(17)));
    }
    assert_eq!(pool.pick(&mut rng, |_| false, std::iter::empty()), None);
}

#[test]
fn an_open_socket_wins_among_the_least_loaded_only() {
    let (mut pool, mut rng) = pool(&[2; 8]);
    let warm = ExitIx::new(5);
    assert_eq!(
        pool.pick(&mut rng, |_| true, [warm].into_iter()),
        Some(warm)
    );
    pool.lease(warm);
    assert_ne!(
        pool.pick(&mut rng, |_| true, [warm].into_iter()),
        Some(warm)
    );
}

#[test]
fn a_slow_exit_is_chosen_less_often_but_not_never() {
    let (mut pool, mut rng) = pool(&[4, 4]);
    pool.set_slowness(ExitIx::new(0), 4.0);
    let slow = (0..1000)
        .filter(|_| pool.pick(&mut rng, |_| true, std::iter::empty()) == Some(ExitIx::new(0)))
        .count();
    assert!((200..450).contains(&slow), "{slow}");
}

proptest! {
    #[test]
    fn counts_and_places_hold_after_any_sequence(
        groups in prop::collection::vec(1u32..6, 0..3),
        exits in prop::collection::vec(prop::option::of(0u32..4), 1..12),
        steps in prop::collection::vec((0u8..3, 0u32..12, 0u32..6), 1..150),
        seed: u64,
    ) {
        let mut pool = Pool::new(&groups, exits.iter().copied());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut held = Vec::new();
        for (what, exit, cap) in steps {
            match what {
                0 => pool.set_cap(ExitIx::new(exit % exits.len() as u32), cap),
                1 => held.extend(take(&mut pool, &mut rng)),
                _ if held.is_empty() => {}
                _ => pool.release(held.swap_remove(exit as usize % held.len())),
            }
            pool.check();
            prop_assert_eq!(pool.in_flight() as usize, held.len());
            let free = (0..pool.len()).map(ExitIx::new).any(|exit| {
                let slot = &pool.slots[exit.index()];
                let group = &pool.groups[slot.group as usize];
                slot.in_flight < slot.cap && group.in_flight < group.cap
            });
            prop_assert_eq!(pool.has_free(), free);
        }
    }
}
