//! Numbers of times, for percentiles.

use std::time::Duration;

/// Buckets of a [`Latencies`]: bucket `i` has times below `1.1^(i + 1)` microseconds, the last one all others (above 2 s).
const BUCKETS: usize = 153;
/// The ratio of the ends of a bucket.
const RATIO: f64 = 1.1;

/// Numbers of times, by their length: percentiles are right to a tenth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies([u64; BUCKETS]);

impl Default for Latencies {
    fn default() -> Self {
        Latencies([0; BUCKETS])
    }
}

impl Latencies {
    /// Counts a time.
    pub fn add(&mut self, time: Duration) {
        let micros = time.as_secs_f64() * 1e6;
        let bucket = (micros.max(1.0).ln() / RATIO.ln()) as usize;
        self.0[bucket.min(BUCKETS - 1)] += 1;
    }

    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The time that this share of all times is below, in seconds; `None` if there are none.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let wanted = ((self.count() as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.0.iter().position(|&count| {
            seen += count;
            seen >= wanted
        })?;
        Some(RATIO.powf(bucket as f64 + 0.5) * 1e-6)
    }

    /// Counts half of the times, as if every other one had not been.
    pub fn halve(&mut self) {
        self.0.iter_mut().for_each(|count| *count /= 2);
    }

    /// The times since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Latencies(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_tenth() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(0.5), None);
        for micros in 1..=1000 {
            latencies.add(Duration::from_micros(micros));
        }
        for (share, expected) in [(0.5, 500e-6), (0.99, 990e-6), (0.1, 100e-6)] {
            let got = latencies.percentile(share).unwrap();
            assert!((got / expected - 1.0).abs() < 0.1, "{share}: {got}");
        }
        let earlier = latencies.clone();
        latencies.add(Duration::from_secs(100));
        let since = latencies.since(&earlier);
        assert_eq!(since.count(), 1);
        assert!(since.percentile(0.5).unwrap() > 1.9);
    }
}
