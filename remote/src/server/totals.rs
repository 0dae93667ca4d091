//! Counters of a server, and its complaints.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Most complaints that are printed per second: a peer that sends garbage in a loop does not fill
/// the disk.
const COMPLAINTS_PER_SECOND: u32 = 10;

/// Counters of a server.
#[derive(Debug, Default)]
pub struct Totals {
    pub(super) connections: AtomicUsize,
    pub(super) workers: AtomicUsize,
    pub(super) lanes: AtomicUsize,
    pub(super) refused: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) environment_steps: AtomicU64,
    complaints: Mutex<Option<(Instant, u32)>>,
}

/// The numbers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// Open connections.
    pub connections: usize,
    /// Workers that have said `Hello` and have not left.
    pub workers: usize,
    /// Their environments.
    pub lanes: usize,
    /// Workers and connections that were refused or sent nonsense, since the start.
    pub refused: u64,
    /// Bytes received, all layers above the socket included.
    pub received: u64,
    /// Bytes sent, all layers above the socket included.
    pub sent: u64,
    /// Steps received, each counted once for each environment.
    pub environment_steps: u64,
}

impl Totals {
    /// The numbers of now.
    #[must_use]
    pub fn status(&self) -> ServerStatus {
        ServerStatus {
            connections: self.connections.load(Ordering::Relaxed),
            workers: self.workers.load(Ordering::Relaxed),
            lanes: self.lanes.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
            environment_steps: self.environment_steps.load(Ordering::Relaxed),
        }
    }

    /// Prints a complaint about a worker, unless there are too many.
    pub(super) fn complain(&self, text: impl FnOnce() -> String) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = complaints.get_or_insert_with(|| (Instant::now(), 0));
        if since.elapsed().as_secs() >= 1 {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
        match *count {
            1..=COMPLAINTS_PER_SECOND => tracing::warn!("{}", text()),
            n if n == COMPLAINTS_PER_SECOND + 1 => {
                tracing::warn!("further complaints of this second are left out");
            }
            _ => {}
        }
    }
}
