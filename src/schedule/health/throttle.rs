//! The share of 429s among an exit's answers, against the pool's: an exit that origins throttle
//! far more than others carries too much, or has neighbours behind its address.

/// Answers over which an exit's share is taken.
const ANSWERS: u8 = 50;
/// An exit with more than this many times the pool's share stands out.
const TIMES: f32 = 3.0;
/// Fewer 429s than this among the answers are no share.
const LEAST: u8 = 5;
/// Per answer; halves the pool's counts over 1,000 answers.
const KEEP: f32 = 0.999_307_1;

/// Whether an answer was a 429.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttled {
    /// It was.
    Yes,
    /// It was not.
    No,
}

/// The pool's share of 429s.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolShare {
    throttled: f32,
    answers: f32,
}

impl PoolShare {
    /// An answer through any exit.
    pub fn record(&mut self, throttled: Throttled) {
        self.answers = self.answers * KEEP + 1.0;
        self.throttled = self.throttled * KEEP + f32::from(u8::from(throttled == Throttled::Yes));
    }

    /// 0 to 1.
    pub fn share(&self) -> f32 {
        self.throttled / self.answers.max(1.0)
    }
}

/// An exit's 429s among its last answers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExitShare {
    throttled: u8,
    answers: u8,
}

impl ExitShare {
    /// An answer; whether the exit stands out, asked once per fifty answers.
    pub(super) fn record(&mut self, throttled: Throttled, pool: &PoolShare) -> bool {
        self.answers += 1;
        self.throttled += u8::from(throttled == Throttled::Yes);
        if self.answers < ANSWERS {
            return false;
        }
        let share = f32::from(self.throttled) / f32::from(ANSWERS);
        let stands_out = self.throttled >= LEAST && share > TIMES * pool.share();
        *self = ExitShare::default();
        stands_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often an exit with one 429 in `every` answers stands out in 500 of them, in a pool
    /// that has one in `pool_every`.
    fn stands_out(every: u32, pool_every: u32) -> usize {
        let throttled = |n: u32, every: u32| match n % every {
            0 => Throttled::Yes,
            _ => Throttled::No,
        };
        let mut pool = PoolShare::default();
        (0..10_000).for_each(|n| pool.record(throttled(n, pool_every)));
        let mut exit = ExitShare::default();
        (0..500)
            .filter(|&n| exit.record(throttled(n, every), &pool))
            .count()
    }

    #[test]
    fn more_than_three_times_the_pools_share_stands_out_once_per_fifty_answers() {
        assert_eq!(stands_out(5, 20), 10);
        assert_eq!(stands_out(5, 10), 0, "only twice the share");
    }

    #[test]
    fn a_few_429s_are_no_share_however_rare_they_are_elsewhere() {
        assert_eq!(stands_out(20, 1000), 0);
    }
}
