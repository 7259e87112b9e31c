use proptest::prelude::*;

use super::*;

fn loaded(offset: u64, ok: bool, unmatched: u32) -> Entry {
    Entry::Loaded {
        offset,
        ok,
        unmatched,
    }
}

fn only(index: &Index, key: u64) -> Option<Entry> {
    let entries: Vec<Entry> = index.of(key).map(|(_, entry)| entry).collect();
    assert!(entries.len() < 2, "{entries:?}");
    entries.first().copied()
}

#[test]
fn an_id_costs_less_than_15_bytes_at_any_time() {
    let mut index = Index::default();
    let keys = index.keys().clone();
    // Each table has a block that is not full.
    let begun = TABLES * 4200;
    for n in 1..=600_000_u64 {
        index.load(keys.of(n), n * 500, Outcome::Ok);
        if n % 1000 == 0 {
            let each = index.bytes().saturating_sub(begun) as f64 / n as f64;
            assert!(each < 15.0, "{each} bytes for each of {n} ids");
        }
    }
    let found =
        (1..=600_000_u64).all(|n| only(&index, keys.of(n)) == Some(loaded(n * 500, true, 1)));
    assert!(found);
}

#[test]
fn only_the_last_row_of_like_outcomes_is_counted() {
    let mut index = Index::default();
    for (offset, outcome) in [Outcome::Failed, Outcome::Ok, Outcome::Ok]
        .into_iter()
        .enumerate()
    {
        index.load(7, offset as u64, outcome);
    }
    assert_eq!(only(&index, 7), Some(loaded(2, true, 2)));
    index.load(7, 3, Outcome::Failed);
    assert_eq!(only(&index, 7), Some(loaded(3, false, 1)));
}

#[test]
fn numbers_of_any_size_are_kept_and_small_ones_again_after_large_ones() {
    let mut index = Index::default();
    index.insert(9, loaded(0, true, 1));
    let entries = [
        loaded(u64::MAX, true, u32::MAX),
        loaded(1, false, 31),
        loaded(1, false, 32),
        loaded((1 << 40) - 1, true, 1),
        loaded(1 << 40, true, 1),
        Entry::claim(u64::from(u32::MAX), 0x00ab_cdef),
        Entry::claim(1 << 32, 0x00ab_cdef),
        Entry::Settled {
            offset: 1 << 40,
            what: WHAT,
        },
        Entry::Matched {
            offset: 5,
            unmatched: 0,
            what: WHAT,
        },
    ];
    for entry in entries {
        let (at, _) = index.of(9).next().unwrap();
        index.replace(at, 9, entry);
        assert_eq!(only(&index, 9), Some(entry));
    }
    assert!(index.wide.is_empty());
}

#[test]
fn ids_that_differ_in_any_bit_of_the_hash_are_told_apart_as_far_as_an_entry_can() {
    let key = 0x0123_4567_89ab_cdef;
    let kept = [
        (loaded(1, true, 1), 0),
        (Entry::claim(1, 0xffff), 3),
        (Entry::Refused, 0),
        (loaded(1 << 40, true, 1), 0),
        // The record tells.
        (Entry::Settled { offset: 1, what: 1 }, 24),
    ];
    for (entry, unknown) in kept {
        let mut index = Index::default();
        index.insert(key, entry);
        let taken = (0..64).filter(|bit| only(&index, key ^ (1 << bit)).is_some());
        assert_eq!(taken.count(), unknown, "{entry:?}");
    }
}

/// Any entry; numbers near the bounds of their fields.
fn any_entry() -> impl Strategy<Value = Entry> {
    let offset = prop_oneof![0u64..1000, (1u64 << 40) - 2..(1 << 40) + 2];
    let line = prop_oneof![1u64..1000, (1u64 << 32) - 2..(1 << 32) + 2];
    (0..4, offset, line, 0u32..34, 1..=WHAT, any::<bool>()).prop_map(
        |(kind, offset, line, unmatched, what, ok)| match kind {
            0 => loaded(offset, ok, unmatched),
            1 => Entry::Matched {
                offset,
                unmatched,
                what,
            },
            2 => Entry::Settled { offset, what },
            _ => Entry::claim(line, what),
        },
    )
}

proptest! {
    #[test]
    fn the_index_says_what_a_hash_map_says(
        steps in prop::collection::vec((0u64..40, any_entry()), 0..300),
    ) {
        let mut index = Index::default();
        let mut model = HashMap::new();
        // Two tables, few homes.
        let key_of = |n: u64| (n % 2) << 56 | n << 24 | n;
        for (n, entry) in steps {
            let key = key_of(n);
            let at = index.of(key).next().map(|(at, _)| at);
            match at {
                Some(at) => index.replace(at, key, entry),
                None => index.insert(key, entry),
            }
            model.insert(n, entry);
        }
        for n in 0..40 {
            prop_assert_eq!(only(&index, key_of(n)), model.get(&n).copied());
        }
    }
}
