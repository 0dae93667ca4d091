//! State that all threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::boundary::Boundaries;
use super::error::SebulbaError;
use super::parameters::Parameters;
use super::supply::Supply;
use super::thread_status::ThreadStatus;

/// State that all threads of a run share.
pub(super) struct Shared {
    /// Statuses of every actor thread, and then of the learner.
    pub(super) statuses: Vec<ThreadStatus>,
    pub(super) parameters: Parameters,
    pub(super) supply: Box<dyn Supply>,
    pub(super) boundaries: Boundaries,
    /// Restarts of each actor thread's environments.
    pub(super) restarts: Vec<AtomicUsize>,
    closed: AtomicBool,
    /// The first failure.
    failure: Mutex<Option<SebulbaError>>,
}

impl Shared {
    pub(super) fn new(
        names: Vec<String>,
        parameters: Parameters,
        supply: Box<dyn Supply>,
        boundaries: Boundaries,
    ) -> Self {
        Shared {
            restarts: names.iter().map(|_| AtomicUsize::new(0)).collect(),
            statuses: names.into_iter().map(ThreadStatus::new).collect(),
            parameters,
            supply,
            boundaries,
            closed: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Ends all threads: as soon as they look, and at once where they wait for each other.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.parameters.close();
        self.supply.close();
    }

    /// Keeps the failure if it is the first.
    pub(super) fn fail(&self, error: SebulbaError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }

    pub(super) fn take_failure(&self) -> Option<SebulbaError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
