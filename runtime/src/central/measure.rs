//! What the threads of a run count.

use std::sync::{Mutex, MutexGuard, PoisonError};
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
    pub(super) fn halve(&mut self) {
        self.0.iter_mut().for_each(|count| *count /= 2);
    }

    /// The times since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Latencies(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }
}

/// Counts since the start of a run, over all inference threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CentralMeasures {
    /// Batches that were inferred.
    pub batches: u64,
    /// Batches that closed by the timeout.
    pub by_timeout: u64,
    /// Observations that were answered.
    pub observations: u64,
    /// Lanes of the batches' programs, padding included.
    pub padded: u64,
    /// Environments that batches had room for: their number times the capacity.
    pub room: u64,
    /// Time from the start of an inference to its actions on the host.
    pub inference: Latencies,
    /// Time from a step's arrival to its answer.
    pub answer: Latencies,
    /// Time from an answer to the worker's next step.
    pub step: Latencies,
    /// Steps that were late: batches went on without them.
    pub late: u64,
    /// Unrolls that were complete.
    pub unrolls: u64,
    /// Unrolls that were lost with workers that left.
    pub lost: u64,
    /// Sum over the unrolls of the versions of the parameters in each.
    pub versions: u64,
    /// Most versions in one unroll.
    pub most_versions: u64,
    /// Workers that joined.
    pub joined: u64,
    /// Workers that left, or were sent away.
    pub left: u64,
    /// Workers that are there now.
    pub workers: u64,
    /// Lanes that they have.
    pub lanes: u64,
    /// Workers whose next step is late now.
    pub workers_late: u64,
}

/// The measures of a run, which its inference threads write.
pub(super) struct Measured(Mutex<Counted>);

/// The counts behind the lock of [`Measured`].
#[derive(Default)]
pub(super) struct Counted {
    /// The counts of all threads together.
    pub(super) all: CentralMeasures,
    /// Workers, lanes, and workers that are late, of each inference thread.
    pub(super) there: Vec<[u64; 3]>,
}

impl Measured {
    pub(super) fn new(threads: usize) -> Self {
        Measured(Mutex::new(Counted { there: vec![[0; 3]; threads], ..Counted::default() }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self) -> CentralMeasures {
        let counted = self.lock();
        let mut all = counted.all.clone();
        let sum = |of: usize| counted.there.iter().map(|there| there[of]).sum();
        (all.workers, all.lanes, all.workers_late) = (sum(0), sum(1), sum(2));
        all
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
