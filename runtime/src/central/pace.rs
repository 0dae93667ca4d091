//! How fast workers step, and for which of them a batch waits.
//!
//! A batch waits for a worker as long as that worker's own steps usually take, and a few times that. Who takes longer (a process that
//! is stopped, a simulator that starts anew, a machine that is gone without a word) is late: the others go on without it, and its step
//! is taken up whenever it comes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use podracer_envs::host::{Latencies, WorkerId};

/// Least time that is waited for a worker: one that the system did not run at once is not late.
const LEAST: Duration = Duration::from_millis(50);
/// The time waited for a worker's first step: one of several that begin together is not left behind, and a simulator that takes long to
/// start keeps nobody waiting.
pub(super) const FIRST: Duration = Duration::from_secs(1);
/// The time waited for a worker, in times that nine of ten of its steps do not exceed. Its rare steps of another kind, such as resets,
/// do not count.
const STEPS: f64 = 4.0;
/// Steps after which the older ones count half, so that a worker that has become slower or faster is soon known as such.
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

    /// The time after an answer in which the next step is expected.
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

/// The workers whose steps are expected.
#[derive(Default)]
pub(super) struct Expected(BTreeSet<(Instant, WorkerId)>);

impl Expected {
    /// Expects the step of a worker until this time.
    pub(super) fn expect(&mut self, worker: WorkerId, until: Instant) -> Turn {
        self.0.insert((until, worker));
        Turn::Expected(until)
    }

    /// No longer expects a worker whose turn is this.
    pub(super) fn forget(&mut self, worker: WorkerId, turn: Turn) {
        if let Turn::Expected(until) = turn {
            self.0.remove(&(until, worker));
        }
    }

    /// The next worker that is late, which is not expected any more.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<WorkerId> {
        let &(until, worker) = self.0.first()?;
        (until <= now).then(|| {
            self.0.pop_first();
            worker
        })
    }

    /// The time at which nobody is expected any more; `None` if nobody is now.
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
