//! Devices, schedule and limits of a run.

use std::path::PathBuf;
use std::time::Duration;

use podracer_envs::host::HostEnvironment;

use super::error::SebulbaError;
use super::programs::SebulbaLoop;
use crate::{ExecutableCache, OptionValue};

/// The rule by which trajectories get the parameters that they are acted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// Iteration `k` learns from trajectories that were acted wholly with the parameters after `k - lag` iterations (the first
    /// ones with the initial parameters). With lag 0 learning is on-policy and nothing overlaps; with lag 1 actors act
    /// while the learner learns. The same seed, devices and options give the same parameters, to the bit.
    Deterministic {
        /// Age of the parameters that are acted with, in iterations.
        lag: usize,
    },
    /// Actors take the latest parameters before each inference, within a trajectory too.
    FreeRunning,
}

/// Devices, schedule and limits of a run.
#[derive(Clone, Debug)]
pub struct SebulbaOptions {
    /// Indices of the actor devices; actor threads are dealt to them in turn.
    pub actors: Vec<usize>,
    /// Indices of the learner devices.
    pub learners: Vec<usize>,
    /// The rule by which trajectories get their parameters.
    pub schedule: Schedule,
    /// Trajectories of each actor thread that may wait for the learner, at least 1.
    pub queue: usize,
    /// Time without any activity after which the run is given up.
    pub patience: Duration,
    /// The folder whose disk has the replay, for programs with a replay on the host.
    pub replay_folder: Option<PathBuf>,
    /// Options for XLA, by name.
    pub xla: Vec<(String, OptionValue)>,
    /// The cache of compiled programs.
    pub cache: ExecutableCache,
}

impl SebulbaOptions {
    /// Checks that devices, queue and environments fit the programs.
    pub(crate) fn check(
        &self,
        programs: &SebulbaLoop,
        environments: &[Box<dyn HostEnvironment>],
    ) -> Result<(), SebulbaError> {
        let shape = programs.shape;
        let wrong = |problem: String| Err(SebulbaError::Options(problem));
        if self.actors.is_empty() {
            return wrong("a run needs at least one actor device".to_owned());
        }
        if self.learners.len() != shape.learners {
            return wrong(format!(
                "the programs are for {} learner device(s) and {} are named",
                shape.learners,
                self.learners.len()
            ));
        }
        if environments.len() != shape.threads {
            return wrong(format!(
                "the programs are for {} actor thread(s) and there are {} batches of environments",
                shape.threads,
                environments.len()
            ));
        }
        if self.queue == 0 {
            return wrong("a queue needs room for at least one trajectory".to_owned());
        }
        if programs.replay.is_some() && self.replay_folder.is_none() {
            return wrong("a replay on the host needs a folder for its files".to_owned());
        }
        let expected = &programs.environments;
        match environments.iter().position(|one| one.spec() != expected) {
            Some(thread) => wrong(format!(
                "the environments of actor thread {thread} are {:?} and the programs are for {expected:?}",
                environments[thread].spec()
            )),
            None => Ok(()),
        }
    }
}
