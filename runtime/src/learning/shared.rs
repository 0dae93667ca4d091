//! State that is shared by all threads of a run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::boundary::Boundaries;
use super::error::SebulbaError;
use super::parameters::Parameters;
use super::supply::Supply;
use super::thread_status::ThreadStatus;

/// State that all threads of a run share.
pub(crate) struct Shared {
    /// Statuses of every actor thread, and then of the learner.
    pub(crate) statuses: Vec<ThreadStatus>,
    pub(crate) parameters: Parameters,
    pub(crate) supply: Box<dyn Supply>,
    pub(crate) boundaries: Boundaries,
    /// Restarts of each actor thread's environments.
    pub(crate) restarts: Vec<AtomicUsize>,
    closed: AtomicBool,
    /// True if the run is over without a failure, and the learner's state is still needed.
    recalled: AtomicBool,
    /// The first failure.
    failure: Mutex<Option<SebulbaError>>,
}

impl Shared {
    pub(crate) fn new(
        statuses: Vec<ThreadStatus>,
        parameters: Parameters,
        supply: Box<dyn Supply>,
        boundaries: Boundaries,
    ) -> Self {
        Shared {
            restarts: statuses.iter().map(|_| AtomicUsize::new(0)).collect(),
            statuses,
            parameters,
            supply,
            boundaries,
            closed: AtomicBool::new(false),
            recalled: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(crate) fn is_recalled(&self) -> bool {
        self.recalled.load(Ordering::Relaxed)
    }

    /// Ends every thread except the learner and the thread of a replay. The learner learns no more
    /// and still lends its state, and the replay can still be saved.
    pub(crate) fn recall(&self) {
        self.recalled.store(true, Ordering::Relaxed);
        self.closed.store(true, Ordering::Relaxed);
        self.parameters.close();
        self.supply.recall();
    }

    /// Ends all threads: at their next check, or at once if they wait for each other.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.parameters.close();
        self.supply.close();
    }

    /// Keeps the failure if it is the first.
    pub(crate) fn fail(&self, error: SebulbaError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }

    pub(crate) fn take_failure(&self) -> Option<SebulbaError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
