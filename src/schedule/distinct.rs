//! The first few different indices of a stream: "through at least three exits".
//!
//! Owns nothing but the counting. Fixed in size, since each origin and each exit has some.

/// Up to `N` different indices; more are not needed by anybody and are dropped.
#[derive(Clone, Copy, Debug)]
pub struct Distinct<const N: usize> {
    ids: [u32; N],
    len: u8,
}

impl<const N: usize> Default for Distinct<N> {
    fn default() -> Distinct<N> {
        Distinct {
            ids: [0; N],
            len: 0,
        }
    }
}

impl<const N: usize> Distinct<N> {
    /// Notes `id`.
    pub fn insert(&mut self, id: u32) {
        if !self.contains(id) && self.len() < N {
            self.ids[self.len()] = id;
            self.len += 1;
        }
    }

    /// How many there are, `N` at most.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there are `N`.
    pub fn is_full(&self) -> bool {
        self.len() == N
    }

    fn contains(&self, id: u32) -> bool {
        self.ids[..self.len()].contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_count_once_and_more_than_fit_are_dropped() {
        let mut seen = Distinct::<3>::default();
        for id in [0, 0, 7, 7] {
            seen.insert(id);
        }
        assert_eq!(seen.len(), 2);
        assert!(!seen.is_full());
        (8..20).for_each(|id| seen.insert(id));
        assert!(seen.is_full());
        assert_eq!(seen.len(), 3);
    }
}
