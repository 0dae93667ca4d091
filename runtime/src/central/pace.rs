//! The pace of workers, and which workers a batch waits for.
//!
//! A batch waits for a worker a few times longer than that worker's own steps usually take. A
//! worker that takes longer is late. It may be a process that is stopped, a simulator that
//! restarts, or a machine that is gone without a message. The other workers continue without it,
//! and its step is accepted whenever it comes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use podracer_envs::host::{Latencies, WorkerId};

/// Least time to wait for a worker: a worker that the system did not schedule at once is not late.
const LEAST: Duration = Duration::from_millis(50);
/// The time to wait for a worker's first step: workers that start together are not left behind, and
/// a simulator that takes long to start keeps no other worker waiting.
pub(super) const FIRST: Duration = Duration::from_secs(1);
/// The time to wait for a worker, as a multiple of its 90th percentile. Rare steps of another kind,
/// such as resets, are thereby excluded.
const STEPS: f64 = 4.0;
/// Number of steps after which older steps count half, so that a change of a worker's pace is
/// noticed soon.
const REMEMBERED: u64 = 1000;

/// The times of a worker's steps.
#[derive(Default)]
pub(super) struct Pace(Latencies);

impl Pace {
    pub(super) fn add(&mut self, step: Duration) {
        if self.0.count() >= REMEMBERED {
            self.0.halve();
        }
        self.0.add(step);
    }

    /// The time to wait after an answer for the next step.
    pub(super) fn patience(&self) -> Duration {
        let slow = self.0.percentile(0.9).unwrap_or(0.0);
        LEAST.max(Duration::from_secs_f64(STEPS * slow))
    }
}

/// A worker's part in the exchange of steps and answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Its step waits for an answer.
    Stepped,
    /// Its next step is expected until this time.
    Expected(Instant),
    /// Its next step is late.
    Late,
}

/// The workers with expected steps.
#[derive(Default)]
pub(super) struct Expected(BTreeSet<(Instant, WorkerId)>);

impl Expected {
    /// Expects the step of a worker until the time `until`.
    pub(super) fn expect(&mut self, worker: WorkerId, until: Instant) -> Turn {
        self.0.insert((until, worker));
        Turn::Expected(until)
    }

    /// Stops expecting a worker with this turn.
    pub(super) fn forget(&mut self, worker: WorkerId, turn: Turn) {
        if let Turn::Expected(until) = turn {
            self.0.remove(&(until, worker));
        }
    }

    /// The next worker that is late; it is no longer expected.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<WorkerId> {
        let &(until, worker) = self.0.first()?;
        (until <= now).then(|| {
            self.0.pop_first();
            worker
        })
    }

    /// The latest time for any expected step; `None` if no worker is expected.
    pub(super) fn last(&self) -> Option<Instant> {
        self.0.last().map(|(until, _)| *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_waited_for_as_long_as_its_own_steps_take() {
        let pace_of = |steps: &[u64]| {
            let mut pace = Pace::default();
            steps.iter().for_each(|&step| pace.add(Duration::from_millis(step)));
            pace.patience().as_millis()
        };
        assert_eq!(pace_of(&[]), 50);
        assert_eq!(pace_of(&[1; 100]), 50);
        let slow = pace_of(&[100; 100]);
        assert!((360..440).contains(&slow), "{slow}");
        // A reset of a minute in every fiftieth step.
        let mut resets = [100; 100];
        (resets[10], resets[60]) = (60_000, 60_000);
        assert_eq!(pace_of(&resets), slow);
        // It has become faster.
        assert_eq!(pace_of(&[[100; 1000], [1; 1000], [1; 1000], [1; 1000]].concat()), 50);
    }

    #[test]
    fn workers_are_late_in_the_order_of_their_times() {
        let (mut expected, now) = (Expected::default(), Instant::now());
        let mut slow = Pace::default();
        slow.add(Duration::from_secs(1));
        let turn = expected.expect(WorkerId(1), now + slow.patience());
        expected.expect(WorkerId(2), now + Pace::default().patience());
        assert_eq!(Turn::Expected(expected.last().expect("two are expected")), turn);
        assert_eq!(expected.pop_late(now), None);
        let later = now + LEAST;
        assert_eq!((expected.pop_late(later), expected.pop_late(later)), (Some(WorkerId(2)), None));
        expected.forget(WorkerId(1), turn);
        assert_eq!(expected.last(), None);
    }
}
