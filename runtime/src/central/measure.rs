//! Counters of a run's threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

use podracer_envs::host::Latencies;

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
    /// Total room of the batches in environments: the number of batches times the capacity.
    pub room: u64,
    /// Time from the start of an inference to its actions on the host.
    pub inference: Latencies,
    /// Time from a step's arrival to its answer.
    pub answer: Latencies,
    /// Time from an answer to the worker's next step.
    pub step: Latencies,
    /// Steps that were late: batches continued without them.
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
    /// Workers that are present now.
    pub workers: u64,
    /// Lanes of the present workers.
    pub lanes: u64,
    /// Workers with a next step that is late now.
    pub workers_late: u64,
}

/// The measures of a run, which its inference threads write.
pub(super) struct Measured(Mutex<Counted>);

/// The counts behind the lock of [`Measured`].
#[derive(Default)]
pub(super) struct Counted {
    /// The counts over all threads.
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
