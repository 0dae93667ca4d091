//! An actor thread: a batch of environments, and inference on its actor device.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use podracer_compiler::{DType, TensorType};
use podracer_dsl::Report;
use podracer_envs::host::{HostEnvironment, StepMemory};

use crate::learning::boundary::Boundary;
use crate::learning::compile::ActorPrograms;
use crate::learning::error::ThreadFailure;
use crate::learning::parameters::Version;
use crate::learning::shape::SebulbaShape;
use crate::learning::shared::Shared;
use crate::learning::thread_status::{Activity, ThreadStatus};
use crate::learning::trajectory::{Episode, Trajectory};
use crate::outcome;
use crate::pjrt::Device;
use crate::reports::{self, read_log};
use crate::{Argument, Array, Buffer};

/// An actor thread.
pub(super) struct Actor {
    pub(super) shared: Arc<Shared>,
    pub(super) programs: Arc<ActorPrograms>,
    pub(super) environment: Box<dyn HostEnvironment>,
    /// The thread's number in its process.
    pub(super) index: usize,
    /// The thread's number, counted over all processes.
    pub(super) number: usize,
    /// Index of the thread's device among the actor devices.
    pub(super) device: usize,
    pub(super) learners: Arc<[Device]>,
    /// True if trajectories go to the host, and not to the learner devices.
    pub(super) keeps_on_host: bool,
    pub(super) shape: SebulbaShape,
    pub(super) lag: Option<usize>,
    pub(super) seed: u64,
    /// The boundary of a checkpoint to resume from.
    pub(super) from: Option<Boundary>,
}

/// An actor between two steps.
struct Acting {
    memory: StepMemory,
    /// The last step, on the device.
    outcome: Vec<Arc<Buffer>>,
    /// The actor's state, on the device.
    state: Vec<Buffer>,
    running: Vec<Episode>,
    /// Reports of agent and environments in the present trajectory.
    reports: Vec<Report>,
}

impl Actor {
    /// Acts until the run is over.
    pub(super) fn run(mut self) -> Result<(), ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let status = &shared.statuses[self.index];
        let (first, mut acting) = self.begin(status)?;
        // Ends with the run: then there are no parameters, or the supply is closed.
        for number in first.. {
            status.begin(Activity::Host, 0);
            shared.boundaries.add(self.index, self.boundary(number, &acting)?);
            let Some(trajectory) = self.trajectory(status, number, &mut acting)? else {
                break;
            };
            if shared.supply.put(self.index, trajectory, status)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The number of the first trajectory, and the actor before its first step.
    fn begin(&mut self, status: &ThreadStatus) -> Result<(u64, Acting), ThreadFailure> {
        let environments = self.environment.spec().environments;
        let first = self.number * environments;
        let start = &self.programs.start;
        let key = start.upload(0, 0, &Array::key(self.seed))?;
        let index = start.upload(0, 1, &Array::scalar(first as i32))?;
        // A free-running thread had acted further by the time of the checkpoint: those steps are
        // lost.
        let continues =
            self.lag.is_some() && self.from.as_ref().is_some_and(|from| from.environment.is_some());
        let continues = start.upload(0, 2, &Array::scalar(continues))?;
        let mut state =
            only(start.execute(vec![vec![key.into(), index.into(), continues.into()]])?);
        let mut memory = StepMemory::try_new(self.environment.spec())?;
        let mut running = vec![Episode::default(); environments];
        let mut number = 0;
        status.begin(Activity::Environment, 0);
        match self.from.take() {
            None => self.environment.reset(self.seed, first, &mut memory.step())?,
            Some(from) => {
                number = from.number;
                for (&leaf, array) in self.programs.carried.iter().zip(&from.carried) {
                    state[leaf] = Buffer::from_host(array, state[leaf].device())?;
                }
                if let Some(snapshot) = &from.environment {
                    self.environment.restore(snapshot.bytes())?;
                    memory = from.memory;
                    running = from.running;
                } else {
                    // Episodes that differ from the run's first episodes; all running episodes end
                    // before them.
                    let seed = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    self.environment.reset(seed, first, &mut memory.step())?;
                    memory.step().terminated.fill(1);
                }
            }
        }
        status.begin(Activity::Inference, 0);
        let outcome = self.upload(&mut memory)?;
        let acting = Acting { outcome, memory, state, running, reports: Vec::new() };
        Ok((number, acting))
    }

    /// Everything that the trajectory with this number depends on, before its first step.
    fn boundary(&self, number: u64, acting: &Acting) -> Result<Boundary, ThreadFailure> {
        let carried = self.programs.carried.iter().map(|&leaf| acting.state[leaf].to_host());
        let array =
            |bytes: Vec<u8>| Array::from_bytes(TensorType::new(DType::U8, [bytes.len()]), bytes);
        Ok(Boundary {
            number,
            carried: carried.collect::<Result<_, _>>()?,
            memory: acting.memory.clone(),
            running: acting.running.clone(),
            environment: self.environment.snapshot()?.map(array).transpose()?,
        })
    }

    /// Acts one trajectory; `None` once the run is over.
    fn trajectory(
        &mut self,
        status: &ThreadStatus,
        number: u64,
        acting: &mut Acting,
    ) -> Result<Option<Trajectory>, ThreadFailure> {
        let mut nets = None;
        if let Some(lag) = self.lag {
            let wanted = number.saturating_sub(lag as u64);
            status.begin(Activity::WaitingForParameters, wanted);
            nets = self.shared.parameters.exactly(wanted);
        }
        let (mut versions, mut episodes) = (0, Vec::new());
        for step in 0..self.shape.unroll {
            if self.lag.is_none() {
                nets = self.shared.parameters.latest();
            }
            let Some(nets) = nets.as_deref().filter(|_| !self.shared.is_closed()) else {
                return Ok(None);
            };
            versions += nets.number;
            status.begin(Activity::Inference, 0);
            let actions = self.act(nets, acting, step)?;
            status.begin(Activity::Environment, 0);
            self.environment.step(actions.bytes(), &mut acting.memory.step())?;
            reports::add(&mut acting.reports, self.environment.reports(), &[step]);
            status.begin(Activity::Inference, 0);
            acting.outcome = self.upload(&mut acting.memory)?;
            status.begin(Activity::Host, 0);
            count_episodes(&acting.memory, step, &mut acting.running, &mut episodes);
        }
        status.begin(Activity::Sending, 0);
        self.shared.restarts[self.index].store(self.environment.restarts(), Ordering::Relaxed);
        let shards = self.send(acting)?;
        let (steps, reports) = (self.shape.unroll, std::mem::take(&mut acting.reports));
        Ok(Some(Trajectory { shards, steps, versions, episodes, reports }))
    }

    /// One inference: the actions, on the host.
    fn act(
        &self,
        nets: &Version,
        acting: &mut Acting,
        step: usize,
    ) -> Result<Array, ThreadFailure> {
        let kept = nets.leaves[self.device].iter().map(Argument::Kept);
        let state = std::mem::take(&mut acting.state);
        let leaves = state.len();
        let arguments = kept
            .chain(state.into_iter().map(Argument::Donated))
            .chain(acting.outcome.iter().map(Arc::as_ref).map(Argument::Kept));
        let mut results = only(self.programs.act.execute(vec![arguments.collect()])?).into_iter();
        let actions = results.next().expect("`act` gives actions and a state");
        acting.state = results.by_ref().take(leaves).collect();
        let actions = actions.to_host()?;
        let said = read_log(&self.programs.log, results.as_slice())?;
        reports::add(&mut acting.reports, said, &[step]);
        Ok(actions)
    }

    /// Splits the trajectory and copies each part to its learner. A trajectory for the host stays
    /// on this device until then.
    fn send(&self, acting: &Acting) -> Result<Vec<Vec<Buffer>>, ThreadFailure> {
        let outcome = acting.outcome.iter().map(Arc::as_ref);
        let arguments = acting.state.iter().chain(outcome).map(Argument::Kept).collect();
        let mut leaves = only(self.programs.finish.execute(vec![arguments])?);
        let leaves_of_shard = leaves.len() / self.learners.len();
        if self.keeps_on_host {
            let shards = self.learners.iter().map(|_| leaves.drain(..leaves_of_shard).collect());
            return Ok(shards.collect());
        }
        let copies = |(part, learner): (&[Buffer], &Device)| {
            Ok(part.iter().map(|leaf| leaf.copy_to(learner)).collect::<Result<_, _>>()?)
        };
        leaves.chunks(leaves_of_shard).zip(self.learners.iter()).map(copies).collect()
    }

    /// Puts the last step on the device: the last arguments of `act`.
    fn upload(&self, memory: &mut StepMemory) -> Result<Vec<Arc<Buffer>>, ThreadFailure> {
        // After the networks and the state.
        let first = self.programs.nets + self.programs.start.results().len();
        let leaves: Vec<&[u8]> = memory.leaves().collect();
        let shape = (leaves.len(), self.environment.spec().truncates);
        Ok(outcome::upload(&self.programs.act, first, shape, |leaf| leaves[leaf].into())?)
    }
}

/// The results of the only replica.
fn only(results: Vec<Vec<Buffer>>) -> Vec<Buffer> {
    results.into_iter().next().unwrap_or_default()
}

/// Adds a step to the running episodes, and moves the ended episodes to `ended`.
fn count_episodes(
    memory: &StepMemory,
    step: usize,
    running: &mut [Episode],
    finished: &mut Vec<Episode>,
) {
    let episodes = running.iter_mut().enumerate();
    finished.extend(episodes.filter_map(|(i, episode)| episode.add(memory.result(i), step)));
}
