//! The parameters for actors: published by the learner, and numbered by the iterations that made
//! them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::pjrt::Device;
use crate::{Buffer, RuntimeError};

/// The parameters after `number` iterations.
pub(crate) struct Version {
    pub(crate) number: u64,
    /// The leaves, on each actor device.
    pub(crate) leaves: Vec<Vec<Buffer>>,
}

impl Version {
    /// Copies the parameters among the leaves of a learner's state to the actor devices, and waits
    /// for the copies, because the learner's own buffers will be donated.
    pub(crate) fn copied(
        state: &[Buffer],
        nets: &[usize],
        actors: &[Device],
        number: u64,
    ) -> Result<Self, RuntimeError> {
        let copy = |device: &Device| {
            let copies = nets.iter().map(|&leaf| state[leaf].copy_to(device));
            copies.collect::<Result<Vec<_>, _>>()
        };
        let leaves = actors.iter().map(copy).collect::<Result<Vec<_>, _>>()?;
        for leaf in leaves.iter().flatten() {
            leaf.ready()?.wait()?;
        }
        Ok(Version { number, leaves })
    }
}

/// The latest versions. A version's memory is freed when the last actor that uses it has taken
/// another version.
pub(crate) struct Parameters {
    versions: Mutex<Versions>,
    changed: Condvar,
    /// Number of versions that are kept.
    kept: usize,
}

struct Versions {
    latest: VecDeque<Arc<Version>>,
    closed: bool,
}

impl Parameters {
    /// Starts with these versions, the latest last; the last `kept` published versions are kept.
    pub(crate) fn new(versions: impl IntoIterator<Item = Version>, kept: usize) -> Self {
        Parameters {
            versions: Mutex::new(Versions {
                latest: versions.into_iter().map(Arc::new).collect(),
                closed: false,
            }),
            changed: Condvar::new(),
            kept,
        }
    }

    pub(crate) fn publish(&self, version: Version) {
        let mut versions = self.lock();
        versions.latest.push_back(Arc::new(version));
        let surplus = versions.latest.len().saturating_sub(self.kept);
        let old: Vec<_> = versions.latest.drain(..surplus).collect();
        drop(versions);
        self.changed.notify_all();
        // Freed outside of the lock.
        drop(old);
    }

    /// The latest version; `None` after [`Parameters::close`].
    pub(crate) fn latest(&self) -> Option<Arc<Version>> {
        let versions = self.lock();
        versions.latest.back().filter(|_| !versions.closed).cloned()
    }

    /// Waits for the version with this number; `None` after [`Parameters::close`]. A version is
    /// kept as long as the schedule lets an actor ask for it.
    pub(crate) fn exactly(&self, number: u64) -> Option<Arc<Version>> {
        let mut versions = self.lock();
        loop {
            if versions.closed {
                return None;
            }
            if let Some(version) = versions.latest.iter().find(|one| one.number == number) {
                return Some(Arc::clone(version));
            }
            versions = self.changed.wait(versions).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until at least the version with this number is published, and returns the latest;
    /// `None` after [`Parameters::close`].
    pub(crate) fn at_least(&self, number: u64) -> Option<Arc<Version>> {
        let mut versions = self.lock();
        loop {
            if versions.closed {
                return None;
            }
            if let Some(latest) = versions.latest.back().filter(|one| one.number >= number) {
                return Some(Arc::clone(latest));
            }
            versions = self.changed.wait(versions).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The last version published, closed or not.
    pub(crate) fn last(&self) -> Option<Arc<Version>> {
        self.lock().latest.back().cloned()
    }

    /// The versions that are kept, the latest last.
    pub(crate) fn all(&self) -> Vec<Arc<Version>> {
        self.lock().latest.iter().cloned().collect()
    }

    /// Ends every wait.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
