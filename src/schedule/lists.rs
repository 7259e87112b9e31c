//! First-in-first-out lists of small indices, with removal from the middle in O(1).
//!
//! Owns: the links. All lists made over one [`Links`] share one pair of links per index, so
//! an index can stand in only one of them at a time: that makes half of the frontier's
//! one-place property true by construction. Leaves to others: which list an index is in.

const END: u32 = u32::MAX;

/// Neighbours of each index in the list it stands in.
#[derive(Debug, Default)]
pub struct Links(Vec<(u32, u32)>);

/// One list; its members are linked in a [`Links`] that the caller passes in.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl Default for List {
    fn default() -> List {
        List {
            head: END,
            tail: END,
            len: 0,
        }
    }
}

impl List {
    /// The member that came first.
    pub fn first(&self) -> Option<u32> {
        (self.head != END).then_some(self.head)
    }

    /// How many members.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Appends `index`, which must be in no list of `links`.
    pub fn push(&mut self, links: &mut Links, index: u32) {
        let needed = index as usize + 1;
        if links.0.len() < needed {
            links.0.resize(needed, (END, END));
        }
        links.0[index as usize] = (self.tail, END);
        match self.tail {
            END => self.head = index,
            tail => links.0[tail as usize].1 = index,
        }
        self.tail = index;
        self.len += 1;
    }

    /// Takes out `index`, which must be in this list.
    pub fn remove(&mut self, links: &mut Links, index: u32) {
        let (before, after) = links.0[index as usize];
        match before {
            END => self.head = after,
            before => links.0[before as usize].1 = after,
        }
        match after {
            END => self.tail = before,
            after => links.0[after as usize].0 = before,
        }
        self.len -= 1;
    }
}

/// How many lists a [`Ladder`] keeps apart; counts above share the last one.
const RUNGS: usize = 64 * 64;

/// Lists by a count, and the lowest non-empty one in O(1).
#[derive(Debug)]
pub struct Ladder {
    rungs: Vec<List>,
    filled: [u64; 64],
    words: u64,
}

impl Default for Ladder {
    fn default() -> Ladder {
        Ladder {
            rungs: vec![List::default(); RUNGS],
            filled: [0; 64],
            words: 0,
        }
    }
}

impl Ladder {
    /// The first member of the lowest rung that has one.
    pub fn first(&self) -> Option<u32> {
        if self.words == 0 {
            return None;
        }
        let word = self.words.trailing_zeros() as usize;
        let bit = self.filled[word].trailing_zeros() as usize;
        self.rungs[word * 64 + bit].first()
    }

    /// Appends `index` to the rung of `count`.
    pub fn push(&mut self, links: &mut Links, index: u32, count: u32) {
        let rung = rung(count);
        self.rungs[rung].push(links, index);
        self.filled[rung / 64] |= 1 << (rung % 64);
        self.words |= 1 << (rung / 64);
    }

    /// Takes `index` out of the rung of `count`, where it must be.
    pub fn remove(&mut self, links: &mut Links, index: u32, count: u32) {
        let rung = rung(count);
        self.rungs[rung].remove(links, index);
        if self.rungs[rung].len() == 0 {
            self.filled[rung / 64] &= !(1 << (rung % 64));
            if self.filled[rung / 64] == 0 {
                self.words &= !(1 << (rung / 64));
            }
        }
    }
}

fn rung(count: u32) -> usize {
    (count as usize).min(RUNGS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_when_the_middle_and_the_ends_go() {
        let (mut links, mut list) = (Links::default(), List::default());
        for index in 0..5 {
            list.push(&mut links, index);
        }
        for gone in [2, 4, 0] {
            list.remove(&mut links, gone);
        }
        list.push(&mut links, 2);
        let mut left = Vec::new();
        while let Some(index) = list.first() {
            list.remove(&mut links, index);
            left.push(index);
        }
        assert_eq!(left, [1, 3, 2]);
        assert_eq!(list.len(), 0);
    }

    #[test]
    fn a_ladder_answers_its_lowest_rung_first_and_in_order() {
        let (mut links, mut ladder) = (Links::default(), Ladder::default());
        let counts = [3, 70, 3, 9_999, 5_000, 0];
        for (index, count) in (0u32..).zip(counts) {
            ladder.push(&mut links, index, count);
        }
        let mut order = Vec::new();
        while let Some(index) = ladder.first() {
            ladder.remove(&mut links, index, counts[index as usize]);
            order.push(index);
        }
        assert_eq!(order, [5, 0, 2, 1, 3, 4]);
    }
}
