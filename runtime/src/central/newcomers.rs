//! The time that batches wait for new workers, by the address of the workers.
//!
//! A new worker may take a moment for its first step, and batches wait for it. Workers that use up
//! that moment and leave, again and again, would delay all others. So each new worker that is late,
//! or that leaves, halves the time that batches wait for the next new worker from its address. A
//! worker that has proved steady doubles that time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Number of steps after which a worker is no longer new.
const STEADY: u64 = 100;
/// After this number of failures of an address, batches do not wait for its new workers.
const MOST_FAILURES: u32 = 6;
/// Most remembered addresses: further addresses share their failures.
const MOST_ORIGINS: usize = 1024;

/// The failures of new workers, by address.
#[derive(Default)]
pub(super) struct Newcomers {
    failures: BTreeMap<Arc<str>, u32>,
    /// Failures of the addresses that are not remembered.
    others: u32,
    /// Addresses that batches have just stopped waiting for.
    given_up: Vec<Arc<str>>,
}

/// True for a worker that has not proved steady after `steps` steps.
pub(super) fn is_new(steps: u64) -> bool {
    steps < STEADY
}

impl Newcomers {
    /// The fraction of `usual` that a batch waits for a new worker from an address. `None` stands
    /// for this process, which always has all of it.
    pub(super) fn patience(&self, origin: Option<&Arc<str>>, usual: Duration) -> Duration {
        let known = |origin| self.failures.get(origin).copied().unwrap_or(self.others);
        match origin.map_or(0, known) {
            failures if failures < MOST_FAILURES => usual / (1 << failures),
            _ => Duration::ZERO,
        }
    }

    /// Records that a new worker from an address was late, or left.
    pub(super) fn failed(&mut self, origin: Option<&Arc<str>>) {
        let Some(origin) = origin else { return };
        let has_room = self.failures.len() < MOST_ORIGINS;
        let failures = match self.failures.get_mut(origin) {
            Some(failures) => failures,
            None if has_room => self.failures.entry(Arc::clone(origin)).or_default(),
            None => &mut self.others,
        };
        if *failures < MOST_FAILURES {
            *failures += 1;
            if *failures == MOST_FAILURES {
                self.given_up.push(Arc::clone(origin));
            }
        }
    }

    /// Records the number of steps of a worker. A worker that has just proved steady takes back a
    /// failure of its address.
    pub(super) fn stepped(&mut self, origin: Option<&Arc<str>>, steps: u64) {
        let Some(origin) = origin.filter(|_| steps == STEADY) else { return };
        if let Some(failures) = self.failures.get_mut(origin) {
            *failures -= 1;
            if *failures == 0 {
                self.failures.remove(origin);
            }
        }
    }

    /// The addresses that batches have stopped waiting for since the last call.
    pub(super) fn take_given_up(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.given_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_come_and_go_use_up_the_patience_with_their_address() {
        let (mut newcomers, usual) = (Newcomers::default(), Duration::from_secs(1));
        let [bad, good] = ["10.0.0.1", "10.0.0.2"].map(Arc::from);
        let mut waited = Duration::ZERO;
        for _ in 0..1000 {
            waited += newcomers.patience(Some(&bad), usual);
            newcomers.failed(Some(&bad));
        }
        assert!(waited < Duration::from_secs(2), "{waited:?}");
        assert_eq!(newcomers.take_given_up(), [Arc::clone(&bad)]);
        assert_eq!(newcomers.take_given_up(), []);
        assert_eq!(newcomers.patience(Some(&good), usual), usual);
        newcomers.failed(None);
        assert_eq!(newcomers.patience(None, usual), usual);
        // A worker that stays compensates for a worker that did not.
        newcomers.stepped(Some(&bad), STEADY - 1);
        assert_eq!(newcomers.patience(Some(&bad), usual), Duration::ZERO);
        for _ in 0..MOST_FAILURES {
            newcomers.stepped(Some(&bad), STEADY);
        }
        assert_eq!(newcomers.patience(Some(&bad), usual), usual);
        newcomers.stepped(Some(&bad), STEADY);
    }

    #[test]
    fn addresses_without_end_are_remembered_together() {
        let mut newcomers = Newcomers::default();
        for address in 0..3 * MOST_ORIGINS {
            newcomers.failed(Some(&Arc::from(address.to_string())));
        }
        assert_eq!(newcomers.failures.len(), MOST_ORIGINS);
        assert_eq!(
            newcomers.patience(Some(&Arc::from("new")), Duration::from_secs(1)),
            Duration::ZERO
        );
    }
}
