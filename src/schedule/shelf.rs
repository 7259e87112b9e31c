//! Sixteen dense vectors by load, with a bit mask of the non-empty ones.
//!
//! Owns: which index stands in which row. Leaves to others: how load is measured, and each
//! index's place (row and position), which its owner keeps because removal moves one other.
//! Everything is O(1): a row is drawn from at random, so its order does not matter.

/// Rows of a shelf: load ratios `⌊16·in_flight/cap⌋` from 0 to 15.
pub const ROWS: u8 = 16;

/// Where an index stands on a shelf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Below [`ROWS`].
    pub row: u8,
    /// Position in the row.
    pub at: u32,
}

/// See the module's text.
#[derive(Debug, Default)]
pub struct Shelf {
    rows: [Vec<u32>; ROWS as usize],
    filled: u16,
}

impl Shelf {
    /// The lowest row that is not empty.
    pub fn lowest(&self) -> Option<u8> {
        (self.filled != 0).then(|| self.filled.trailing_zeros() as u8)
    }

    /// The members of `row`.
    pub fn row(&self, row: u8) -> &[u32] {
        &self.rows[usize::from(row)]
    }

    /// The rows that are not empty, lowest first.
    pub fn filled_rows(&self) -> impl Iterator<Item = u8> {
        let filled = self.filled;
        (0..ROWS).filter(move |row| filled & (1 << row) != 0)
    }

    /// Adds `index` to `row`.
    pub fn put(&mut self, row: u8, index: u32) -> Place {
        let members = &mut self.rows[usize::from(row)];
        members.push(index);
        self.filled |= 1 << row;
        Place {
            row,
            at: members.len() as u32 - 1,
        }
    }

    /// Takes out what stands at `place`; the answer is the index that now stands there instead.
    pub fn take(&mut self, place: Place) -> Option<u32> {
        let members = &mut self.rows[usize::from(place.row)];
        members.swap_remove(place.at as usize);
        if members.is_empty() {
            self.filled &= !(1 << place.row);
        }
        members.get(place.at as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_one_out_names_the_one_that_moved() {
        let mut shelf = Shelf::default();
        let first = shelf.put(3, 10);
        shelf.put(3, 11);
        let last = shelf.put(3, 12);
        assert_eq!(shelf.take(first), Some(12));
        assert_eq!(shelf.row(3), [12, 11]);
        assert_eq!(
            shelf.take(Place { at: 1, ..last }),
            None,
            "the last moves nobody"
        );
        assert_eq!(shelf.lowest(), Some(3));
        shelf.take(first);
        assert_eq!(shelf.lowest(), None);
    }
}
