//! Boundaries: the state of every actor thread before each of its last trajectories, for resuming.
//!
//! An actor is ahead of the learner by an amount that depends on timing. So each thread records the
//! inputs of a trajectory before it acts it, and a checkpoint contains the boundary of the
//! trajectory for the learner's next iteration. Later steps are acted again, with the same
//! parameters, keys and environments.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use podracer_dsl::prelude::{DType, Path, TensorType};
use podracer_envs::host::{HostSpec, StepMemory};

use super::trajectory::Episode;
use crate::{Array, ArraySource, Checkpoint, CheckpointError, RuntimeError};

/// An actor thread between two trajectories.
pub(crate) struct Boundary {
    /// Number of the trajectory that begins.
    pub(crate) number: u64,
    /// Leaves of the actor state that are carried from trajectory to trajectory.
    pub(crate) carried: Vec<Array>,
    /// Outcome of the last step.
    pub(crate) memory: StepMemory,
    /// The episodes under way.
    pub(crate) running: Vec<Episode>,
    /// The snapshot of the environments, if they have any. u8 `[bytes]`
    pub(crate) environment: Option<Array>,
}

/// The last boundaries of every actor thread.
pub(crate) struct Boundaries {
    threads: Vec<Mutex<VecDeque<Arc<Boundary>>>>,
    kept: usize,
}

impl Boundaries {
    pub(crate) fn new(threads: usize, kept: usize) -> Self {
        let threads = (0..threads).map(|_| Mutex::default()).collect();
        Boundaries { threads, kept }
    }

    pub(crate) fn add(&self, thread: usize, boundary: Boundary) {
        let mut kept = self.threads[thread].lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Arc::new(boundary));
        let surplus = kept.len().saturating_sub(self.kept);
        kept.drain(..surplus);
    }

    /// The boundary before the trajectory with this number, or the last boundary if `number` is
    /// `None`; `None` if the thread has not reached it.
    pub(crate) fn get(&self, thread: usize, number: Option<u64>) -> Option<Arc<Boundary>> {
        let kept = self.threads[thread].lock().unwrap_or_else(PoisonError::into_inner);
        match number {
            None => kept.back().cloned(),
            Some(number) => kept.iter().find(|one| one.number == number).cloned(),
        }
    }
}

/// Names in a checkpoint: the running episodes' returns so far and lengths, and the environments' snapshot.
const RETURNS: &str = "returns";
const LENGTHS: &str = "lengths";
const ENVIRONMENT: &str = "environment";

/// The name of a part of an actor thread in a checkpoint.
pub(crate) fn part(thread: usize, what: &str) -> String {
    format!("actors[{thread}].{what}")
}

impl Boundary {
    /// Adds the boundary to a checkpoint. `carried` are paths and types of the leaves that are carried.
    pub(crate) fn save<'a>(
        &'a self,
        thread: usize,
        carried: &[(String, TensorType)],
        spec: &HostSpec,
        checkpoint: &mut Checkpoint<'a>,
    ) -> Result<(), RuntimeError> {
        let paths = carried.iter().map(|(path, _)| path.clone());
        checkpoint.insert(&part(thread, "carried."), paths.zip(&self.carried));
        let Some(environment) = &self.environment else {
            return Ok(());
        };
        let mut memory = self.memory.clone();
        let mut arrived = Vec::new();
        for (bytes, (path, ty)) in memory.leaves().zip(outcome(spec)) {
            arrived.push((path, Array::from_bytes(ty, bytes.to_vec())?));
        }
        checkpoint.insert(&part(thread, "outcome."), arrived);
        let returns: Vec<f32> = self.running.iter().map(|one| one.episode_return).collect();
        let lengths: Vec<u32> = self.running.iter().map(|one| one.length).collect();
        for (what, leaf) in [
            (RETURNS, ArraySource::from(Array::from_slice([returns.len()], &returns)?)),
            (LENGTHS, Array::from_slice([lengths.len()], &lengths)?.into()),
            (ENVIRONMENT, environment.into()),
        ] {
            checkpoint.insert("", [(part(thread, what), leaf)]);
        }
        Ok(())
    }

    /// Reads from a checkpoint the boundary before the trajectory of the next iteration.
    pub(crate) fn read(
        checkpoint: &Checkpoint<'_>,
        thread: usize,
        carried: &[(String, TensorType)],
        spec: &HostSpec,
    ) -> Result<Self, CheckpointError> {
        let carried = checkpoint.part(&part(thread, "carried."), carried)?;
        let mut boundary = Boundary {
            number: checkpoint.iterations,
            carried: carried.into_iter().map(ArraySource::to_host).collect::<Result<_, _>>()?,
            memory: StepMemory::new(spec),
            running: Vec::new(),
            environment: None,
        };
        let Some(environment) = checkpoint.arrays.get(&part(thread, ENVIRONMENT)) else {
            return Ok(boundary);
        };
        boundary.environment = Some(environment.to_host()?);
        let arrived = checkpoint.part(&part(thread, "outcome."), &outcome(spec))?;
        let arrived: Vec<_> =
            arrived.into_iter().map(ArraySource::to_host).collect::<Result<_, _>>()?;
        boundary.memory.fill(arrived.iter().map(|array| array.bytes()));
        let array_of = |what, dtype| {
            let ty = TensorType::new(dtype, [spec.environments]);
            checkpoint.part(&part(thread, what), &[(String::new(), ty)])?[0].to_host()
        };
        let returns = array_of(RETURNS, DType::F32)?.to_vec()?;
        let lengths = array_of(LENGTHS, DType::U32)?.to_vec()?;
        let episode =
            |(episode_return, length)| Episode { episode_return, length, ..Episode::default() };
        boundary.running = returns.into_iter().zip(lengths).map(episode).collect();
        Ok(boundary)
    }
}

/// Paths and types of a step's outcome.
fn outcome(spec: &HostSpec) -> Vec<(String, TensorType)> {
    let leaf = |(path, ty): (Path, TensorType)| (path.to_string(), ty);
    spec.outcome().leaves().into_iter().map(leaf).collect()
}
