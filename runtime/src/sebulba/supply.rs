//! Between actors and learner: where trajectories wait, and what an iteration learns from.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select_biased};

use super::error::ThreadFailure;
use super::thread_status::{Activity, ThreadStatus};
use super::trajectory::{Batch, Trajectory};
use crate::reports;
use crate::{Buffer, Checkpoint, CheckpointError};

/// Takes trajectories from actors, and gives the learner the data of its next iteration.
///
/// # Invariants
/// - [`Supply::close`] ends all waiting, for good: no thread waits in a supply for one that has ended.
/// - A thread's status says what the thread waits for.
pub(super) trait Supply: Send + Sync {
    /// Adds a trajectory of an actor thread, as soon as there is room. Returns `Break` once the supply is closed.
    fn put(
        &self,
        thread: usize,
        trajectory: Trajectory,
        status: &ThreadStatus,
    ) -> Result<ControlFlow<()>, ThreadFailure>;

    /// The data of the next iteration, as soon as it is there. `None` once the supply is closed.
    fn take(&self, status: &ThreadStatus) -> Result<Option<Batch>, ThreadFailure>;

    /// Gives back what an iteration says about its [`Batch::items`] (priorities): the learner program's results after state and
    /// metrics, on each learner device, `[learner][leaf]`. Called after every iteration.
    fn feedback(&self, items: &[u64], results: Vec<Vec<Buffer>>) -> Result<(), ThreadFailure>;

    /// Adds what the supply holds to a checkpoint, between two iterations and while actors go on.
    fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) -> Result<(), CheckpointError>;

    /// Takes back what [`Supply::save`] added, before any thread begins.
    fn restore(&self, checkpoint: &Checkpoint<'_>) -> Result<(), CheckpointError>;

    /// Ends all waiting. What waits in the supply is dropped.
    fn close(&self);
}

/// A bounded queue of handles for each actor thread. An iteration learns from one trajectory of every thread, in their order,
/// and each trajectory is learnt from once.
pub(super) struct TrajectoryQueues {
    queues: Vec<(Sender<Trajectory>, Receiver<Trajectory>)>,
    /// Dropped to close the supply.
    open: Mutex<Option<Sender<Infallible>>>,
    closed: Receiver<Infallible>,
}

impl TrajectoryQueues {
    /// Queues for so many actor threads, each with room for `room` trajectories.
    pub(super) fn new(threads: usize, room: usize) -> Self {
        let (open, closed) = bounded(0);
        let queues = (0..threads).map(|_| bounded(room)).collect();
        TrajectoryQueues { queues, open: Mutex::new(Some(open)), closed }
    }
}

impl Supply for TrajectoryQueues {
    fn put(
        &self,
        thread: usize,
        trajectory: Trajectory,
        status: &ThreadStatus,
    ) -> Result<ControlFlow<()>, ThreadFailure> {
        status.begin(Activity::WaitingForRoom, 0);
        select_biased! {
            recv(self.closed) -> _ => Ok(ControlFlow::Break(())),
            send(self.queues[thread].0, trajectory) -> _ => Ok(ControlFlow::Continue(())),
        }
    }

    fn take(&self, status: &ThreadStatus) -> Result<Option<Batch>, ThreadFailure> {
        let waiting: usize = self.queues.iter().map(|(_, queue)| queue.len()).sum();
        let queued = waiting.saturating_sub(self.queues.len());
        let mut batch = Batch { queued, ..Batch::default() };
        for (thread, (_, queue)) in self.queues.iter().enumerate() {
            status.begin(Activity::WaitingForTrajectory, thread as u64);
            let taken = select_biased! {
                recv(self.closed) -> _ => return Ok(None),
                recv(queue) -> taken => taken,
            };
            let Ok(trajectory) = taken else { return Ok(None) };
            batch.steps += trajectory.steps;
            batch.versions += trajectory.versions;
            batch.episodes.extend(trajectory.episodes);
            reports::add(&mut batch.reports, trajectory.reports, &[thread]);
            batch.shards.resize_with(trajectory.shards.len(), Vec::new);
            for (all, shard) in batch.shards.iter_mut().zip(trajectory.shards) {
                all.extend(shard);
            }
        }
        batch.episodes.sort_by_key(|episode| episode.step);
        Ok(Some(batch))
    }

    /// A trajectory is gone once it was learnt from.
    fn feedback(&self, _: &[u64], _: Vec<Vec<Buffer>>) -> Result<(), ThreadFailure> {
        Ok(())
    }

    /// Nothing to add: trajectories that wait are acted again, from the boundary of each actor thread.
    fn save<'a>(&'a self, _: &mut Checkpoint<'a>) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn restore(&self, _: &Checkpoint<'_>) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn close(&self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        for (_, queue) in &self.queues {
            queue.try_iter().for_each(drop);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::sebulba::trajectory::Episode;

    fn trajectory(versions: u64, ended: &[usize]) -> Trajectory {
        let episodes = ended.iter().map(|&step| Episode { step, ..Episode::default() }).collect();
        Trajectory {
            shards: vec![vec![], vec![]],
            steps: 5,
            versions,
            episodes,
            reports: Vec::new(),
        }
    }

    fn status() -> ThreadStatus {
        ThreadStatus::new("a thread".to_owned())
    }

    #[test]
    fn an_update_learns_from_one_trajectory_of_every_thread() {
        let supply = TrajectoryQueues::new(2, 2);
        for (thread, versions, ended) in [(1, 20, [1, 3]), (0, 1, [0, 3]), (1, 50, [2, 2])] {
            let put = supply.put(thread, trajectory(versions, &ended), &status()).unwrap();
            assert!(put.is_continue());
        }
        let batch = supply.take(&status()).unwrap().expect("two trajectories are there");
        assert_eq!((batch.steps, batch.versions, batch.queued, batch.shards.len()), (10, 21, 1, 2));
        let ended: Vec<usize> = batch.episodes.iter().map(|episode| episode.step).collect();
        assert_eq!(ended, [0, 1, 3, 3]);
        supply.feedback(&batch.items, vec![vec![], vec![]]).unwrap();
    }

    /// Closes the supply as soon as the thread of this status waits for something.
    fn close_while_waiting(supply: &TrajectoryQueues, status: &ThreadStatus) {
        while status.doing().is_none_or(|(_, doing)| !doing.contains(" waits for ")) {
            thread::yield_now();
        }
        supply.close();
    }

    #[test]
    fn an_actor_that_waits_for_room_ends() {
        let (supply, status) = (TrajectoryQueues::new(1, 1), status());
        assert!(supply.put(0, trajectory(0, &[]), &self::status()).unwrap().is_continue());
        thread::scope(|scope| {
            scope.spawn(|| close_while_waiting(&supply, &status));
            assert!(supply.put(0, trajectory(0, &[]), &status).unwrap().is_break());
        });
        assert!(supply.put(0, trajectory(0, &[]), &status).unwrap().is_break());
    }

    #[test]
    fn a_learner_that_waits_for_a_trajectory_ends() {
        let (supply, status) = (TrajectoryQueues::new(2, 1), status());
        assert!(supply.put(0, trajectory(0, &[]), &status).unwrap().is_continue());
        let waits = self::status();
        thread::scope(|scope| {
            scope.spawn(|| close_while_waiting(&supply, &waits));
            assert!(supply.take(&waits).unwrap().is_none());
        });
        assert!(supply.take(&waits).unwrap().is_none());
    }
}
