//! What the host knows of the lanes of an inference device: whose they are, and how far their unrolls and episodes are.

use std::collections::BTreeMap;
use std::ops::Range;

use podracer_envs::host::{WorkerId, WorkerStep};

use crate::sebulba::Episode;

/// The lanes of an inference device.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    workers: BTreeMap<WorkerId, Held>,
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
    /// Number of different ones.
    pub(super) count: u64,
    last: u64,
}

/// The lanes of a worker.
struct Held {
    lanes: Range<usize>,
    /// Number of its next step.
    next: u64,
    /// True if its last step is answered.
    answered: bool,
}

impl Lanes {
    /// Lanes that nobody has. `used` is true for those of a run that goes on from a checkpoint.
    pub(super) fn new(lanes: usize, used: bool) -> Self {
        let lanes = vec![Lane { used, ..Lane::default() }; lanes];
        Lanes { lanes, workers: BTreeMap::new() }
    }

    /// Gives a worker the first lanes that are free and contiguous, and says if one of them was used before. `None` if there are no
    /// such lanes.
    pub(super) fn admit(&mut self, worker: WorkerId, n: usize) -> Option<(Range<usize>, bool)> {
        if n == 0 || self.workers.contains_key(&worker) {
            return None;
        }
        let free = |range: &Range<usize>| self.lanes[range.clone()].iter().all(|lane| !lane.taken);
        let range =
            (0..=self.lanes.len().checked_sub(n)?).map(|first| first..first + n).find(free)?;
        let used = self.lanes[range.clone()].iter().any(|lane| lane.used);
        self.lanes[range.clone()].fill(Lane { taken: true, used: true, ..Lane::default() });
        let held = Held { lanes: range.clone(), next: 0, answered: true };
        self.workers.insert(worker, held);
        Some((range, used))
    }

    /// Frees the lanes of a worker; `None` if it has none. Gives the number of its unfinished unrolls.
    pub(super) fn free(&mut self, worker: WorkerId) -> Option<usize> {
        let Held { lanes, .. } = self.workers.remove(&worker)?;
        let freed = &mut self.lanes[lanes];
        freed.iter_mut().for_each(|lane| lane.taken = false);
        Some(freed.iter().filter(|lane| lane.time > 0).count())
    }

    /// The lanes of a worker.
    pub(super) fn lanes_of(&self, worker: WorkerId) -> Option<Range<usize>> {
        self.workers.get(&worker).map(|held| held.lanes.clone())
    }

    /// Takes note of a step of a worker.
    ///
    /// # Errors
    /// What the worker did wrong, as a sentence.
    pub(super) fn stepped(&mut self, worker: WorkerId, sequence: u64) -> Result<usize, String> {
        let Some(held) = self.workers.get_mut(&worker) else {
            return Err("it stepped before it was admitted".to_owned());
        };
        if !held.answered || sequence != held.next {
            return Err(format!(
                "its step {sequence} came where step {} was expected{}",
                held.next,
                if held.answered { "" } else { ", and an earlier one is not answered yet" }
            ));
        }
        (held.next, held.answered) = (sequence + 1, false);
        Ok(held.lanes.len())
    }

    /// Takes note of an answer to a worker.
    pub(super) fn answered(&mut self, worker: WorkerId) {
        if let Some(held) = self.workers.get_mut(&worker) {
            held.answered = true;
        }
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

    /// Most environments that a further worker can have: its lanes are contiguous.
    pub(super) fn widest_gap(&self) -> usize {
        let gaps = self.lanes.split(|lane| lane.taken).map(<[Lane]>::len);
        gaps.max().unwrap_or(0)
    }

    pub(super) fn get(&self, lane: usize) -> &Lane {
        &self.lanes[lane]
    }

    /// Counts the outcomes of a worker's step into the episodes of its lanes, and moves those that ended to `ended`.
    pub(super) fn count_episodes(
        &mut self,
        lanes: Range<usize>,
        step: &WorkerStep,
        ended: &mut Vec<Episode>,
    ) {
        let rewards = step.reward.as_chunks::<4>().0;
        for (i, lane) in self.lanes[lanes].iter_mut().enumerate() {
            let (terminated, truncated) = (step.terminated[i] != 0, step.truncated[i] != 0);
            // Before its first step there is no outcome, and a reset-only step belongs to no episode.
            if lane.time == 0 || (terminated && truncated) {
                continue;
            }
            lane.running.episode_return += f32::from_le_bytes(rewards[i]);
            lane.running.length += 1;
            if terminated || truncated {
                ended.push(Episode { step: lane.time - 1, ..std::mem::take(&mut lane.running) });
            }
        }
    }

    /// The versions of a lane's unroll that was taken out. The next begins.
    pub(super) fn taken_out(&mut self, lane: usize) -> Versions {
        let lane = &mut self.lanes[lane];
        lane.time = 0;
        std::mem::take(&mut lane.versions)
    }

    /// Takes note of a step that a lane acts with the parameters of a version.
    pub(super) fn acted(&mut self, lane: usize, version: u64) {
        let lane = &mut self.lanes[lane];
        lane.time += 1;
        let versions = &mut lane.versions;
        versions.count += u64::from(versions.count == 0 || versions.last != version);
        versions.sum += version;
        versions.last = version;
    }
}
