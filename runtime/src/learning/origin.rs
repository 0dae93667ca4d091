//! The start of a run: from a seed, or from a checkpoint.

use std::sync::Arc;

use podracer_dsl::prelude::TensorType;

use super::boundary::{Boundary, part};
use super::error::SebulbaError;
use super::parameters::Version;
use super::programs::SebulbaLoop;
use super::shape::LearnerState;
use crate::tree::Placement;
use crate::{
    Array, ArraySource, Buffer, Checkpoint, CheckpointError, Executable, RuntimeError, World,
    from_safetensors, pjrt, to_safetensors,
};

/// The part of a checkpoint with the learner's state.
const STATE: &str = "state.";
/// The run's seed. Environments without a snapshot start anew with it.
const SEED: &str = "seed";

/// The part of a checkpoint with the parameters after `number` iterations.
fn version(number: u64) -> String {
    format!("published[{number}].")
}

/// The data that the threads of a run begin with.
pub(crate) struct Restored {
    pub(crate) seed: u64,
    /// Number of iterations that were done.
    pub(crate) iterations: u64,
    /// Leaves of the learner's state on each learner device.
    pub(crate) state: Vec<Vec<Buffer>>,
    /// Older parameters that actors still need for the schedule, the oldest first.
    pub(crate) versions: Vec<Version>,
    /// The boundary of each actor thread.
    pub(crate) boundaries: Vec<Option<Boundary>>,
}

impl Restored {
    pub(crate) fn first(
        programs: &SebulbaLoop,
        init: Option<&Executable>,
        seed: u64,
    ) -> Result<Self, RuntimeError> {
        let init = init.expect("a run that begins with a seed has the program for it");
        let key = Array::key(seed);
        let keys = (0..programs.shape.learners)
            .map(|replica| Ok(vec![init.upload(replica, 0, &key)?.into()]));
        Ok(Restored {
            seed,
            iterations: 0,
            state: init.execute(keys.collect::<Result<Vec<_>, RuntimeError>>()?)?,
            versions: Vec::new(),
            boundaries: (0..programs.shape.threads).map(|_| None).collect(),
        })
    }

    /// Reads the learner's state, and the parameters of the preceding iterations that the schedule
    /// needs.
    pub(crate) fn read(
        programs: &SebulbaLoop,
        lag: usize,
        checkpoint: &Checkpoint<'_>,
        (actors, learners): (&[pjrt::Device], &[pjrt::Device]),
        world: Option<World>,
    ) -> Result<Self, SebulbaError> {
        let members = programs.shape.all_learners();
        let whole = programs
            .state
            .iter()
            .map(|(path, ty, placement)| (path.clone(), placement.global(ty.clone(), members)));
        let arrays = checkpoint.part(STATE, &whole.collect::<Vec<_>>())?;
        let leaves = arrays.into_iter().zip(&programs.state);
        let leaves = leaves.map(|(array, (_, ty, placement))| (array, ty, *placement));
        let state = uploaded(leaves, (learners, world))?;
        let iterations = checkpoint.iterations;
        let oldest = iterations.saturating_sub(lag as u64);
        let nets: Vec<(String, TensorType)> = (programs.nets.iter())
            .map(|(leaf, path)| (path.clone(), programs.state[*leaf].1.clone()))
            .collect();
        let versions = (oldest..iterations).map(|number| {
            let arrays = checkpoint.part(&version(number), &nets)?;
            let leaves = arrays.into_iter().map(|array| (array, array.ty(), Placement::Replicated));
            Ok(Version { number, leaves: uploaded(leaves, (actors, None))? })
        });
        Ok(Restored {
            seed: checkpoint.array(SEED)?.item()?,
            iterations,
            state,
            versions: versions.collect::<Result<_, CheckpointError>>()?,
            boundaries: Vec::new(),
        })
    }

    /// Also reads the boundary of every actor thread.
    pub(crate) fn with_boundaries(
        mut self,
        programs: &SebulbaLoop,
        checkpoint: &Checkpoint<'_>,
        world: Option<World>,
    ) -> Result<Self, SebulbaError> {
        let threads = programs.shape.threads;
        let all = threads * world.map_or(1, World::size);
        let beyond = part(all, "");
        if checkpoint.arrays.keys().any(|name| name.starts_with(&beyond)) {
            let problem = format!("it has the environments of more than {all} actor thread(s)");
            return Err(CheckpointError::Misfit(problem).into());
        }
        let carried = programs.carried_types();
        let first = first_thread(threads, world);
        let boundaries = (first..first + threads).map(|thread| {
            Boundary::read(checkpoint, thread, &carried, &programs.environments).map(Some)
        });
        self.boundaries = boundaries.collect::<Result<_, _>>()?;
        Ok(self)
    }
}

/// The number of a process's first actor thread, counted over all processes.
pub(crate) fn first_thread(threads: usize, world: Option<World>) -> usize {
    threads * world.map_or(0, World::rank)
}

/// A run between two iterations: handles of everything that [`Restored::read`] reads.
pub(crate) struct Snapshot {
    pub(crate) state: Arc<LearnerState>,
    /// The published parameters that are kept, the latest last.
    pub(crate) versions: Vec<Arc<Version>>,
    /// The boundary of each actor thread.
    pub(crate) boundaries: Vec<Arc<Boundary>>,
}

impl Snapshot {
    pub(crate) fn checkpoint(
        &self,
        programs: &SebulbaLoop,
        (seed, iterations): (u64, u64),
        world: Option<World>,
    ) -> Result<Checkpoint<'_>, CheckpointError> {
        let mut checkpoint = Checkpoint { iterations, ..Checkpoint::default() };
        checkpoint.insert("", [(SEED.to_owned(), Array::scalar(seed))]);
        let state = programs.state.iter().enumerate().map(|(leaf, (path, _, placement))| {
            let buffers = self.state.iter().map(|leaves| &leaves[leaf]);
            (path.clone(), ArraySource::of_devices(buffers, *placement, world))
        });
        checkpoint.insert(STATE, state);
        // The last version equals the learner's parameters.
        for old in self.versions.iter().filter(|old| old.number < iterations) {
            let leaves = programs.nets.iter().zip(&old.leaves[0]).map(|((_, path), leaf)| {
                let source =
                    ArraySource::of_devices([leaf].into_iter(), Placement::Replicated, None);
                (path.clone(), source)
            });
            checkpoint.insert(&version(old.number), leaves);
        }
        let carried = programs.carried_types();
        let first = first_thread(programs.shape.threads, world);
        let mut actors = Checkpoint::default();
        for (thread, boundary) in self.boundaries.iter().enumerate() {
            boundary.save(first + thread, &carried, &programs.environments, &mut actors)?;
        }
        if let Some(world) = world {
            // Every process has every thread's data, so that each array is in the checkpoint of
            // every process.
            let own = to_safetensors(&actors.to_host()?).map_err(CheckpointError::Array)?;
            for bytes in world.gather(&own).map_err(RuntimeError::from)? {
                let threads = from_safetensors(&bytes).map_err(CheckpointError::Array)?;
                checkpoint.insert("", threads);
            }
        } else {
            checkpoint.arrays.append(&mut actors.arrays);
        }
        Ok(checkpoint)
    }
}

/// Buffers on the host, by the names of their leaves.
pub(crate) fn named(
    names: &[(usize, String)],
    leaves: &[Buffer],
) -> Result<Vec<(String, Array)>, RuntimeError> {
    let named = names.iter().zip(leaves);
    named.map(|((_, name), leaf)| Ok((name.clone(), leaf.to_host()?))).collect()
}

/// The leaves (with their types and placements) on some devices of some processes, for each device
/// of this process.
fn uploaded<'a>(
    leaves: impl Iterator<Item = (&'a ArraySource<'a>, &'a TensorType, Placement)>,
    devices: (&[pjrt::Device], Option<World>),
) -> Result<Vec<Vec<Buffer>>, CheckpointError> {
    let mut lists: Vec<Vec<Buffer>> = devices.0.iter().map(|_| Vec::new()).collect();
    for (array, ty, placement) in leaves {
        let leaf = array.upload(ty, placement, devices)?;
        lists.iter_mut().zip(leaf.buffers).for_each(|(list, buffer)| list.push(buffer));
    }
    Ok(lists)
}
