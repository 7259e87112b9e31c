//! How slow an exit is against the others, from times to the first byte.
//!
//! Owns: streaming medians of logarithms and slowest times, eight bytes each, no samples kept.
//! Leaves to `pool` what slowness does to a pick, to `first_answer` what is too slow. Medians, since one stalled origin must not make an exit
//! look slow; logarithms, since half and double the usual are equally far from it.

use std::time::Duration;

/// The smallest step, as a share of the value: how fast a settled median follows a change.
const STEP: f32 = 0.05;
/// An origin's own median counts from this many answers on; before, the pool's stands in.
const ENOUGH: u32 = 8;
/// How much of the way to a faster answer the slowest one goes.
const FORGETS: f32 = 1.0 / 64.0;
/// Bounds of the slowness that a pick sees.
const SLOWNESS: (f32, f32) = (0.5, 4.0);

/// A median that moves one step towards each sample (after Robbins and Monro 1951).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Median {
    value: f32,
    samples: u32,
}

impl Median {
    /// As good as one sample of 0.
    pub(super) const ZERO: Median = Median {
        value: 0.0,
        samples: 1,
    };

    fn add(&mut self, sample: f32) {
        self.samples = self.samples.saturating_add(1);
        if self.samples == 1 {
            self.value = sample;
            return;
        }
        let step = STEP.max(1.0 / self.samples as f32);
        self.value += (sample - self.value).clamp(-step, step);
    }
}

/// How long the slowest answers of late took, from the dial to the head: a maximum that
/// each faster answer draws a little towards itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slowest {
    secs: f32,
    answers: u32,
}

impl Slowest {
    /// An answer took this long.
    pub(super) fn add(&mut self, took: Duration) {
        let secs = took.as_secs_f32();
        self.answers = self.answers.saturating_add(1);
        self.secs = secs.max(self.secs + (secs - self.secs) * FORGETS);
    }

    /// `None` before the first answer.
    pub(super) fn get(self) -> Option<Duration> {
        (self.answers > 0).then(|| Duration::from_secs_f32(self.secs))
    }

    /// Enough answers to speak for origins that have not answered yet.
    pub(super) fn speaks_for_others(self) -> bool {
        self.answers >= ENOUGH
    }
}

/// Learns from an answer and says how slow its exit now is: 1 as usual, 2 twice that.
///
/// `exit` starts as [`Median::ZERO`]: as usual. What counts is how far the time lies from the origin's usual one, so an exit that happens
/// to serve slow origins does not look slow.
pub(super) fn slowness(
    exit: &mut Median,
    origin: &mut Median,
    pool: &mut Median,
    first_byte: Duration,
) -> f32 {
    let sample = first_byte.as_secs_f32().max(1e-6).ln();
    let usual = match origin.samples {
        0..ENOUGH if pool.samples > 0 => pool.value,
        0 => sample,
        _ => origin.value,
    };
    exit.add(sample - usual);
    origin.add(sample);
    pool.add(sample);
    exit.value.exp().clamp(SLOWNESS.0, SLOWNESS.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_that_takes_three_times_as_long_is_found_whatever_the_origins() {
        let mut exits = [Median::ZERO; 10];
        let mut origins = [Median::default(); 3];
        let mut pool = Median::default();
        let mut slow = [0.0; 10];
        for round in 0..300 {
            let (exit, origin) = (round % 10, round % 3);
            let usual = [20, 200, 2000][origin];
            let times = if exit == 4 { 3 } else { 1 };
            slow[exit] = slowness(
                &mut exits[exit],
                &mut origins[origin],
                &mut pool,
                Duration::from_millis(usual * times),
            );
        }
        for (exit, slow) in slow.into_iter().enumerate() {
            let expected = if exit == 4 { 2.0..=4.0 } else { 0.5..=1.5 };
            assert!(expected.contains(&slow), "{exit}: {slow}");
        }
    }

    #[test]
    fn the_slowest_answer_counts_at_once_and_is_forgotten_over_many() {
        let mut slowest = Slowest::default();
        assert_eq!(slowest.get(), None);
        slowest.add(Duration::from_millis(100));
        slowest.add(Duration::from_secs(10));
        assert_eq!(slowest.get(), Some(Duration::from_secs(10)));
        assert!(!slowest.speaks_for_others());
        (0..500).for_each(|_| slowest.add(Duration::from_millis(100)));
        let left = slowest.get().expect("it has answered");
        assert!(left < Duration::from_millis(110), "{left:?}");
        assert!(slowest.speaks_for_others());
    }

    #[test]
    fn one_stall_hardly_moves_it() {
        let (mut origin, mut pool) = Default::default();
        let mut exit = Median::ZERO;
        let mut last = 0.0;
        for round in 0..40 {
            let millis = if round == 39 { 30_000 } else { 100 };
            last = slowness(
                &mut exit,
                &mut origin,
                &mut pool,
                Duration::from_millis(millis),
            );
        }
        assert!(last < 1.1, "{last}");
    }
}
