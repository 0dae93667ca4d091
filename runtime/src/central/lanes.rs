//! The host's record of the lanes of an inference device: their workers, and the progress of their
//! unrolls and episodes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use podracer_envs::host::{WorkerId, WorkerStep};

use super::newcomers::{Newcomers, is_new};
use super::pace::{Expected, FIRST, Pace, Turn};
use crate::learning::Episode;

/// The lanes of an inference device.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    workers: BTreeMap<WorkerId, Held>,
    expected: Expected,
    newcomers: Newcomers,
    /// Workers that are late.
    late: usize,
}

/// The host's record of a lane.
#[derive(Clone, Default)]
pub(super) struct Lane {
    /// True if a worker has the lane.
    taken: bool,
    /// True if a worker has ever had the lane, or may have had before a checkpoint.
    used: bool,
    /// Steps acted in the present unroll, as [`the device`](super) counts them: from 0 to `T`.
    pub(super) time: usize,
    /// The episode under way.
    running: Episode,
    /// Versions of the parameters in the present unroll.
    pub(super) versions: Versions,
}

impl Lane {
    /// True if a worker has the lane.
    pub(super) fn is_taken(&self) -> bool {
        self.taken
    }
}

/// The versions of the parameters that an unroll was acted with.
#[derive(Clone, Copy, Default)]
pub(super) struct Versions {
    /// Sum over the steps.
    pub(super) sum: u64,
    /// Number of different versions.
    pub(super) count: u64,
    last: u64,
}

/// The lanes of a worker.
struct Held {
    lanes: Range<usize>,
    /// Number of its next step.
    next: u64,
    turn: Turn,
    /// The time when it joined, was last answered, or last stepped.
    since: Instant,
    pace: Pace,
    /// Address that it comes from; `None` for a worker of this process.
    origin: Option<Arc<str>>,
    /// True if it was late while it was new.
    failed: bool,
    /// True if it was reported as missing.
    missed: bool,
}

/// A step taken by a worker.
pub(super) struct Stepped {
    /// Environments of the worker.
    pub(super) environments: usize,
    /// Time since the previous answer; `None` for a worker's first step.
    pub(super) took: Option<Duration>,
    /// True if the worker was reported as missing.
    pub(super) missed: bool,
}

impl Lanes {
    /// Lanes without workers. `used` is true in a run that resumes from a checkpoint.
    pub(super) fn new(lanes: usize, used: bool) -> Self {
        let lanes = vec![Lane { used, ..Lane::default() }; lanes];
        Lanes {
            lanes,
            workers: BTreeMap::new(),
            expected: Expected::default(),
            newcomers: Newcomers::default(),
            late: 0,
        }
    }

    /// Gives a worker the first free contiguous lanes, with true if one of them was used before.
    /// `None` if there are no such lanes.
    pub(super) fn admit(
        &mut self,
        worker: WorkerId,
        n: usize,
        origin: Option<Arc<str>>,
        now: Instant,
    ) -> Option<(Range<usize>, bool)> {
        if n == 0 || self.workers.contains_key(&worker) {
            return None;
        }
        let free = |range: &Range<usize>| self.lanes[range.clone()].iter().all(|lane| !lane.taken);
        let range =
            (0..=self.lanes.len().checked_sub(n)?).map(|first| first..first + n).find(free)?;
        let used = self.lanes[range.clone()].iter().any(|lane| lane.used);
        self.lanes[range.clone()].fill(Lane { taken: true, used: true, ..Lane::default() });
        let patience = self.newcomers.patience(origin.as_ref(), FIRST);
        let held = Held {
            lanes: range.clone(),
            next: 0,
            turn: self.expected.expect(worker, now + patience),
            since: now,
            pace: Pace::default(),
            origin,
            failed: false,
            missed: false,
        };
        self.workers.insert(worker, held);
        Some((range, used))
    }

    /// Frees the lanes of a worker; `None` if it has none. Returns the number of its unfinished
    /// unrolls.
    pub(super) fn free(&mut self, worker: WorkerId) -> Option<usize> {
        let Held { lanes, turn, next, origin, failed, .. } = self.workers.remove(&worker)?;
        if is_new(next) && !failed {
            self.newcomers.failed(origin.as_ref());
        }
        self.expected.forget(worker, turn);
        self.late -= usize::from(turn == Turn::Late);
        let freed = &mut self.lanes[lanes];
        freed.iter_mut().for_each(|lane| lane.taken = false);
        Some(freed.iter().filter(|lane| lane.time > 0).count())
    }

    /// The lanes of a worker.
    pub(super) fn lanes_of(&self, worker: WorkerId) -> Option<Range<usize>> {
        self.workers.get(&worker).map(|held| held.lanes.clone())
    }

    /// Records a step of a worker.
    ///
    /// # Errors
    /// A sentence that describes the worker's mistake.
    pub(super) fn stepped(
        &mut self,
        worker: WorkerId,
        sequence: u64,
        now: Instant,
    ) -> Result<Stepped, String> {
        let Some(held) = self.workers.get_mut(&worker) else {
            return Err("it stepped before it was admitted".to_owned());
        };
        let waits = held.turn == Turn::Stepped;
        if waits || sequence != held.next {
            return Err(format!(
                "its step {sequence} came where step {} was expected{}",
                held.next,
                if waits { ", and an earlier one is not answered yet" } else { "" }
            ));
        }
        let took = (sequence > 0).then(|| now.saturating_duration_since(held.since));
        took.into_iter().for_each(|took| held.pace.add(took));
        self.expected.forget(worker, held.turn);
        self.late -= usize::from(held.turn == Turn::Late);
        let missed = std::mem::take(&mut held.missed);
        (held.next, held.turn, held.since) = (sequence + 1, Turn::Stepped, now);
        self.newcomers.stepped(held.origin.as_ref(), held.next);
        Ok(Stepped { environments: held.lanes.len(), took, missed })
    }

    /// Records an answer to a worker.
    pub(super) fn answered(&mut self, worker: WorkerId, now: Instant) {
        if let Some(held) = self.workers.get_mut(&worker) {
            let patience = match held.pace.patience() {
                usual if is_new(held.next) => self.newcomers.patience(held.origin.as_ref(), usual),
                usual => usual,
            };
            (held.turn, held.since) = (self.expected.expect(worker, now + patience), now);
        }
    }

    /// Records the workers that are late by now, and returns their number.
    pub(super) fn note_late(&mut self, now: Instant) -> usize {
        let before = self.late;
        while let Some(worker) = self.expected.pop_late(now) {
            let held = self.workers.get_mut(&worker).expect("who is expected is there");
            held.turn = Turn::Late;
            self.late += 1;
            if is_new(held.next) && !std::mem::replace(&mut held.failed, true) {
                self.newcomers.failed(held.origin.as_ref());
            }
        }
        self.late - before
    }

    /// Returns the addresses that were given up since the last call: batches no longer wait for
    /// their new workers.
    pub(super) fn take_given_up(&mut self) -> Vec<Arc<str>> {
        self.newcomers.take_given_up()
    }

    /// The latest time for an expected step; `None` if no step is expected.
    pub(super) fn expected_until(&self) -> Option<Instant> {
        self.expected.last()
    }

    /// Number of workers that are late.
    pub(super) fn late(&self) -> usize {
        self.late
    }

    /// Workers that have been silent for at least `after` and have not been reported yet, with
    /// their numbers of environments and the duration.
    pub(super) fn newly_missed(
        &mut self,
        now: Instant,
        after: Duration,
    ) -> Vec<(WorkerId, usize, Duration)> {
        let missed = self.workers.iter_mut().filter_map(|(worker, held)| {
            let silent = held.turn == Turn::Late && !held.missed;
            let silence = now.saturating_duration_since(held.since);
            (silent && silence >= after).then(|| {
                held.missed = true;
                (*worker, held.lanes.len(), silence)
            })
        });
        missed.collect()
    }

    /// The worker that has a lane, if it is late.
    pub(super) fn late_of(&self, lane: usize) -> Option<WorkerId> {
        let of_lane = |held: &Held| held.lanes.contains(&lane) && held.turn == Turn::Late;
        self.workers.iter().find(|(_, held)| of_lane(held)).map(|(worker, _)| *worker)
    }

    /// Number of workers.
    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Number of lanes that workers have.
    pub(super) fn taken(&self) -> usize {
        self.workers.values().map(|held| held.lanes.len()).sum()
    }

    /// Number of lanes.
    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Most environments for a further worker: its lanes are contiguous.
    pub(super) fn widest_gap(&self) -> usize {
        let gaps = self.lanes.split(|lane| lane.taken).map(<[Lane]>::len);
        gaps.max().unwrap_or(0)
    }

    pub(super) fn get(&self, lane: usize) -> &Lane {
        &self.lanes[lane]
    }

    /// Adds the outcomes of a worker's step to the episodes of its lanes, and moves the ended
    /// episodes to `ended`.
    pub(super) fn count_episodes(
        &mut self,
        lanes: Range<usize>,
        step: &WorkerStep,
        finished: &mut Vec<Episode>,
    ) {
        for (i, lane) in self.lanes[lanes].iter_mut().enumerate() {
            // Before its first step there is no outcome.
            if lane.time > 0 {
                finished.extend(lane.running.add(step.result(i), lane.time - 1));
            }
        }
    }

    /// The versions of a lane's unroll that was taken out. The next unroll begins.
    pub(super) fn taken_out(&mut self, lane: usize) -> Versions {
        let lane = &mut self.lanes[lane];
        lane.time = 0;
        std::mem::take(&mut lane.versions)
    }

    /// Records that a lane acts a step with the parameters of a version.
    pub(super) fn acted(&mut self, lane: usize, version: u64) {
        let lane = &mut self.lanes[lane];
        lane.time += 1;
        let versions = &mut lane.versions;
        versions.count += u64::from(versions.count == 0 || versions.last != version);
        versions.sum += version;
        versions.last = version;
    }
}
