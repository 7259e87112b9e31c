//! Record ids: version 4 UUIDs, drawn without asking the system each time.
//!
//! Two runs never share a seed: it comes from the system's random numbers, and neither
//! `--seed` nor anything else sets it, because ids have to differ between archives.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::job::hex_pairs;

/// Makes ids.
#[derive(Debug)]
pub(super) struct Ids {
    seed: [u64; 2],
    next: AtomicU64,
}

/// `<urn:uuid:…>`, as records write it. Kept as text: three records of an exchange tell one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordId([u8; 47]);

impl Ids {
    /// With a seed of its own.
    pub(super) fn new() -> Ids {
        // The standard library's hasher is seeded by the system.
        let random = RandomState::new();
        Ids {
            seed: [random.hash_one(1), random.hash_one(2)],
            next: AtomicU64::new(0),
        }
    }

    /// One that was not drawn before.
    pub(super) fn draw(&self) -> RecordId {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let step = self
            .next
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_mul(GOLDEN);
        let high = mixed(self.seed[0].wrapping_add(step));
        let low = mixed(self.seed[1].wrapping_add(step));
        let id = u128::from(high) << 64 | u128::from(low);
        // Version 4, variant 1 (RFC 9562 §5.4).
        let id = id & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        RecordId::new(id)
    }
}

/// The mixing of splitmix64: one to one.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl RecordId {
    fn new(id: u128) -> RecordId {
        let mut text = *b"<urn:uuid:00000000-0000-0000-0000-000000000000>";
        let pairs = hex_pairs(&id.to_be_bytes());
        let digits = pairs.as_flattened();
        let groups = [
            (10..18, 0..8),
            (19..23, 8..12),
            (24..28, 12..16),
            (29..33, 16..20),
            (34..46, 20..32),
        ];
        for (place, group) in groups {
            text[place].copy_from_slice(&digits[group]);
        }
        RecordId(text)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_version_4_and_no_two_are_alike() {
        let (one, other) = (Ids::new(), Ids::new());
        let drawn: HashSet<[u8; 47]> = (0..1000)
            .flat_map(|_| [one.draw().0, other.draw().0])
            .collect();
        assert_eq!(drawn.len(), 2000);
        for id in drawn {
            let id = std::str::from_utf8(&id).unwrap();
            let uuid = id.strip_prefix("<urn:uuid:").unwrap();
            let groups: Vec<&str> = uuid.strip_suffix('>').unwrap().split('-').collect();
            let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            let digits = groups.concat();
            assert!(digits.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
            assert!(groups[2].starts_with('4'), "{id}");
            assert!(groups[3].starts_with(['8', '9', 'a', 'b']), "{id}");
        }
    }

    #[test]
    fn an_id_is_written_in_its_groups() {
        let id = RecordId::new(0x0011_2233_4455_4677_8899_aabb_ccdd_eeff);
        let text = b"<urn:uuid:00112233-4455-4677-8899-aabbccddeeff>";
        assert_eq!(id.as_bytes(), text);
    }
}
