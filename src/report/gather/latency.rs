//! Times to first byte in buckets of equal ratio: 16 for each doubling, from 0.1 ms to an hour.
//!
//! A bucket is 4.4 % wide, so a percentile is off by half of that at most.

/// Buckets of a doubling.
const PER_DOUBLING: f64 = 16.0;
/// The first bucket begins here, in milliseconds.
const FIRST_MS: f64 = 0.1;
/// 26 doublings: 0.1 ms to 1.8 hours.
const BUCKETS: usize = 26 * PER_DOUBLING as usize;

/// See the module's text.
#[derive(Clone, Debug)]
pub(in crate::report) struct Latencies {
    buckets: Box<[u64]>,
    pub count: u64,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            buckets: vec![0; BUCKETS].into(),
            count: 0,
        }
    }
}

impl Latencies {
    /// Counts one; what is no time is left out.
    pub(super) fn add(&mut self, ms: f64) {
        if !ms.is_finite() || ms < 0.0 {
            return;
        }
        let bucket = ((ms / FIRST_MS).max(1.0).log2() * PER_DOUBLING) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.count += 1;
    }

    /// The time that a share `quantile` of all stays below, in milliseconds.
    pub(in crate::report) fn ms(&self, quantile: f64) -> Option<f64> {
        let wanted = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(FIRST_MS * ((bucket as f64 + 0.5) / PER_DOUBLING).exp2())
    }

    /// How many fall into each of `parts` pieces of equal ratio between `from` and `to`
    /// milliseconds; what is outside counts for the nearest.
    pub(in crate::report) fn spread(&self, from: f64, to: f64, parts: usize) -> Vec<u64> {
        let mut pieces = vec![0; parts];
        let (low, high) = (from.ln(), to.ln());
        for (bucket, count) in self.buckets.iter().enumerate() {
            let middle = FIRST_MS * ((bucket as f64 + 0.5) / PER_DOUBLING).exp2();
            let place = (middle.ln() - low) / (high - low) * parts as f64;
            pieces[(place.max(0.0) as usize).min(parts - 1)] += count;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_bucket_and_nonsense_is_left_out() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.ms(0.5), None);
        for ms in 1..=1000 {
            latencies.add(f64::from(ms));
        }
        for odd in [f64::NAN, f64::INFINITY, -1.0] {
            latencies.add(odd);
        }
        assert_eq!(latencies.count, 1000);
        let near = |quantile, wanted: f64| {
            let ms = latencies.ms(quantile).unwrap();
            assert!((ms / wanted - 1.0).abs() < 0.045, "{ms} for {wanted}");
        };
        near(0.5, 500.0);
        near(0.99, 990.0);
        let pieces = latencies.spread(1.0, 1000.0, 3);
        assert_eq!(pieces.iter().sum::<u64>(), 1000);
        assert!(pieces[0] < pieces[1] && pieces[1] < pieces[2], "{pieces:?}");
    }
}
