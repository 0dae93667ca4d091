//! The supply between actors and learner: waiting trajectories, and the data of iterations.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded, select_biased};

use super::error::ThreadFailure;
use super::thread_status::{Activity, ThreadStatus};
use super::trajectory::{Batch, Data, Handles, Trajectory};
use crate::reports;
use crate::{Checkpoint, CheckpointError};

/// Takes trajectories from actors, and gives the learner the data of its next iteration.
///
/// # Invariants
/// - [`Supply::close`] ends every wait permanently: no thread waits in a supply for a thread that
///   has ended.
/// - A thread's status names the reason why the thread waits.
pub(crate) trait Supply: Send + Sync {
    /// Adds a trajectory of an actor thread, as soon as there is room. Returns `Break` once the supply is closed.
    fn put(
        &self,
        thread: usize,
        trajectory: Trajectory,
        status: &ThreadStatus,
    ) -> Result<ControlFlow<()>, ThreadFailure>;

    /// The data of the next iteration, as soon as it is available. `None` once the supply is
    /// closed.
    fn take(&self, status: &ThreadStatus) -> Result<Option<Batch>, ThreadFailure>;

    /// Returns an iteration's results about its [`Batch::items`] (priorities): the learner
    /// program's results after state and metrics, on each learner device, `[learner][leaf]`. Called
    /// after every iteration.
    fn feedback(&self, items: &[u64], results: Handles) -> Result<(), ThreadFailure>;

    /// Works for the supply on its own thread, until the supply is closed; returns at once if the
    /// supply needs no thread.
    fn work(&self, status: &ThreadStatus) -> Result<(), ThreadFailure> {
        let _ = status;
        Ok(())
    }

    /// Adds the contents of the supply to a checkpoint, between two iterations and while actors
    /// continue.
    fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) -> Result<(), CheckpointError>;

    /// Restores the data from [`Supply::save`], before any thread begins.
    fn restore(&self, checkpoint: &Checkpoint<'_>) -> Result<(), CheckpointError>;

    /// Ends the waiting for trajectories. An iteration without its trajectories does not happen any
    /// more. An iteration that has them runs to its end, and the supply can be saved.
    fn recall(&self) {
        self.close();
    }

    /// Ends every wait. Data that waits in the supply is dropped.
    fn close(&self);
}

/// Queues of handles. An iteration learns from one trajectory of every thread, in their order, or
/// from equally many of any threads; each trajectory is learnt from once.
pub(crate) struct TrajectoryQueues(Queues<Handles>);

impl TrajectoryQueues {
    /// Queues for `threads` actor threads, each with room for `room` trajectories.
    pub(crate) fn new(threads: usize, room: usize) -> Self {
        TrajectoryQueues(Queues::new(threads, room))
    }

    /// One queue for all threads, with room for `room` trajectories: an iteration learns from the
    /// oldest trajectories; their number is the number of threads.
    pub(crate) fn in_order(threads: usize, room: usize) -> Self {
        let Queues { open, closed, .. } = Queues::<Handles>::new(0, 0);
        TrajectoryQueues(Queues { queues: vec![bounded(room)], takes: threads, open, closed })
    }
}

impl Supply for TrajectoryQueues {
    fn put(
        &self,
        thread: usize,
        trajectory: Trajectory,
        status: &ThreadStatus,
    ) -> Result<ControlFlow<()>, ThreadFailure> {
        Ok(self.0.put(thread, trajectory, status))
    }

    fn take(&self, status: &ThreadStatus) -> Result<Option<Batch>, ThreadFailure> {
        let Some((mut batch, trajectories)) = self.0.take(status) else { return Ok(None) };
        let mut shards: Handles = Vec::new();
        for trajectory in trajectories {
            shards.resize_with(trajectory.len(), Vec::new);
            for (all, shard) in shards.iter_mut().zip(trajectory) {
                all.extend(shard);
            }
        }
        batch.data = Data::Given(shards);
        Ok(Some(batch))
    }

    /// A trajectory is dropped after it was learnt from.
    fn feedback(&self, _: &[u64], _: Handles) -> Result<(), ThreadFailure> {
        Ok(())
    }

    /// Nothing to add: waiting trajectories are acted again, from the boundary of each actor
    /// thread.
    fn save<'a>(&'a self, _: &mut Checkpoint<'a>) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn restore(&self, _: &Checkpoint<'_>) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn close(&self) {
        self.0.close();
    }
}

/// The two ends of an actor thread's queue.
type Queue<S> = (Sender<Trajectory<S>>, Receiver<Trajectory<S>>);

/// A bounded queue of trajectories for each actor thread, or one queue for all; `S` is the type of
/// the shards.
pub(crate) struct Queues<S> {
    queues: Vec<Queue<S>>,
    /// Number of trajectories in an iteration.
    takes: usize,
    /// Dropped to close the queues.
    open: Mutex<Option<Sender<Infallible>>>,
    closed: Receiver<Infallible>,
}

impl<S> Queues<S> {
    /// Queues for `threads` actor threads, each with room for `room` trajectories.
    pub(crate) fn new(threads: usize, room: usize) -> Self {
        let (open, closed) = bounded(0);
        let queues = (0..threads).map(|_| bounded(room)).collect();
        Queues { queues, takes: threads, open: Mutex::new(Some(open)), closed }
    }

    /// Adds a trajectory, as soon as there is room. Returns `Break` once the queues are closed.
    pub(crate) fn put(
        &self,
        thread: usize,
        trajectory: Trajectory<S>,
        status: &ThreadStatus,
    ) -> ControlFlow<()> {
        status.begin(Activity::WaitingForRoom, 0);
        select_biased! {
            recv(self.closed) -> _ => ControlFlow::Break(()),
            send(self.queues[thread % self.queues.len()].0, trajectory) -> _ => ControlFlow::Continue(()),
        }
    }

    /// One trajectory of every thread, in their order: the merged counters of the host, and the
    /// shards of each. `None` once the queues are closed.
    pub(crate) fn take(&self, status: &ThreadStatus) -> Option<(Batch, Vec<S>)> {
        let waiting: usize = self.queues.iter().map(|(_, queue)| queue.len()).sum();
        let queued = waiting.saturating_sub(self.takes);
        let mut batch = Batch { queued, ..Batch::default() };
        let mut shards = Vec::with_capacity(self.takes);
        let queues = self.queues.iter().cycle().take(self.takes);
        for (thread, (_, queue)) in queues.enumerate() {
            status.begin(Activity::WaitingForTrajectory, thread as u64);
            let taken = select_biased! {
                recv(self.closed) -> _ => return None,
                recv(queue) -> taken => taken,
            };
            let trajectory = taken.ok()?;
            batch.steps += trajectory.steps;
            batch.versions += trajectory.versions;
            batch.episodes.extend(trajectory.episodes);
            reports::add(&mut batch.reports, trajectory.reports, &[thread]);
            shards.push(trajectory.shards);
        }
        batch.episodes.sort_by_key(|episode| episode.step);
        Some((batch, shards))
    }

    /// Ends every wait. Trajectories in the queues are dropped.
    pub(crate) fn close(&self) {
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
    use crate::learning::trajectory::Episode;

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
        assert_eq!(
            (batch.steps, batch.versions, batch.queued, batch.data.handles().len()),
            (10, 21, 1, 2)
        );
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
