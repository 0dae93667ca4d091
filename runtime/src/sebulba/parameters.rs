//! The parameters that actors act with: published by the learner, numbered by how many updates made them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::Buffer;

/// The parameters after `number` updates.
pub(super) struct Version {
    pub(super) number: u64,
    /// The leaves, on each actor device.
    pub(super) leaves: Vec<Vec<Buffer>>,
}

/// The latest versions. A version's memory is freed when the last actor that acts with it has another.
pub(super) struct Parameters {
    versions: Mutex<Versions>,
    changed: Condvar,
    /// How many are kept.
    kept: usize,
}

struct Versions {
    latest: VecDeque<Arc<Version>>,
    closed: bool,
}

impl Parameters {
    /// These, the latest at the end, and of all that are published so many.
    pub(super) fn new(versions: impl IntoIterator<Item = Version>, kept: usize) -> Self {
        Parameters {
            versions: Mutex::new(Versions {
                latest: versions.into_iter().map(Arc::new).collect(),
                closed: false,
            }),
            changed: Condvar::new(),
            kept,
        }
    }

    pub(super) fn publish(&self, version: Version) {
        let mut versions = self.lock();
        versions.latest.push_back(Arc::new(version));
        let surplus = versions.latest.len().saturating_sub(self.kept);
        let old: Vec<_> = versions.latest.drain(..surplus).collect();
        drop(versions);
        self.changed.notify_all();
        // Freed outside of the lock.
        drop(old);
    }

    /// The latest version; none after [`Parameters::close`].
    pub(super) fn latest(&self) -> Option<Arc<Version>> {
        let versions = self.lock();
        let latest = versions.latest.back().filter(|_| !versions.closed);
        latest.cloned()
    }

    /// The version of a number, waited for; none after [`Parameters::close`]. Versions that are asked for are kept by the
    /// schedule: an actor is at most as far behind as versions are kept.
    pub(super) fn exactly(&self, number: u64) -> Option<Arc<Version>> {
        let mut versions = self.lock();
        loop {
            if versions.closed {
                return None;
            }
            let found = versions.latest.iter().find(|one| one.number == number);
            if let Some(version) = found {
                return Some(Arc::clone(version));
            }
            let waited = self.changed.wait(versions);
            versions = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The last version published, closed or not.
    pub(super) fn last(&self) -> Option<Arc<Version>> {
        self.lock().latest.back().cloned()
    }

    /// All that are kept, the latest at the end.
    pub(super) fn all(&self) -> Vec<Arc<Version>> {
        self.lock().latest.iter().cloned().collect()
    }

    /// Ends all waiting.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
