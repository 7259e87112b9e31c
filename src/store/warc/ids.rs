//! Record ids: version 4 UUIDs, drawn without asking the system each time.
//!
//! Two runs never share a seed: it comes from the system's random numbers, and neither
//! `--seed` nor anything else sets it, because ids have to differ between archives.

use std::fmt::{self, Display, Formatter};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::job::hex;

/// Makes ids.
#[derive(Debug)]
pub(super) struct Ids {
    seed: [u64; 2],
    next: AtomicU64,
}

/// `urn:uuid:…`, as `WARC-Record-ID` writes it without its brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId(u128);

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
        RecordId(id)
    }
}

/// The mixing of splitmix64: one to one.
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Display for RecordId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Five of them are in each exchange: `{:x}` of 128 bits would be a tenth of its cost.
        let digits = hex(&self.0.to_be_bytes());
        f.write_str("urn:uuid:")?;
        f.write_str(&digits[..8])?;
        for part in [8..12, 12..16, 16..20, 20..32] {
            f.write_str("-")?;
            f.write_str(&digits[part])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_version_4_and_no_two_are_alike() {
        let (one, other) = (Ids::new(), Ids::new());
        let drawn: HashSet<String> = (0..1000)
            .flat_map(|_| [one.draw().to_string(), other.draw().to_string()])
            .collect();
        assert_eq!(drawn.len(), 2000);
        for id in drawn {
            let bytes = id.strip_prefix("urn:uuid:").unwrap().as_bytes();
            assert_eq!((bytes.len(), bytes[14]), (36, b'4'), "{id}");
            assert!(b"89ab".contains(&bytes[19]), "{id}");
        }
    }
}
