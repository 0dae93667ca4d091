//! The learner thread: one iteration program on all learner devices.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};
use podracer_dsl::Report;
use podracer_dsl::prelude::{Log, Spec};

use super::error::ThreadFailure;
use super::parameters::Version;
use super::shape::{LearnerState, SebulbaShape};
use super::shared::Shared;
use super::thread_status::Activity;
use super::trajectory::{Data, Episode};
use crate::pjrt::Device;
use crate::reports::{self, read_log};
use crate::{Argument, Array, Buffer, Executable, Placement, RuntimeError};

/// Counters and metrics of one iteration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IterationReport {
    /// The iteration's number, from 0.
    pub iteration: u64,
    /// Values of the metrics, in the order of [`SebulbaRun::metric_names`](crate::SebulbaRun::metric_names).
    pub metrics: Vec<f32>,
    /// Episodes that ended in its trajectories, in the order of their steps, then of the threads.
    pub episodes: Vec<Episode>,
    /// Mean age of the parameters over the steps of its trajectories, in iterations.
    pub lag: f64,
    /// Number of further trajectories that were waiting when it began.
    pub queued: usize,
    /// Reports of `check` and `debug_print` in agent and environments. The places of reports from
    /// acting and environments begin with the thread and the step. Reports from learning begin with
    /// the learner device, if there are several.
    pub reports: Vec<Report>,
    /// The arguments of `learn` on each learner device, if
    /// [`SebulbaRun::keep_arguments`](crate::SebulbaRun::keep_arguments) was called.
    pub arguments: Option<Vec<Vec<Array>>>,
}

/// A request of the run to its learner thread.
pub(crate) enum LearnerCommand {
    /// Run this number of iterations.
    Iteration(u64),
    /// Copy the arguments of every iteration to the host, from now on.
    KeepArguments,
    /// Lend the state, until the next command.
    Lend(Sender<Arc<LearnerState>>),
}

/// The learner thread.
pub(crate) struct Learner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) program: Arc<Executable>,
    /// Lent to the run between two iterations, and then donated to the next iteration.
    pub(crate) state: Arc<LearnerState>,
    /// Placement of the leaves; the metrics come after them.
    pub(crate) placements: Vec<Placement>,
    /// Number of metrics.
    pub(crate) metrics: usize,
    /// Types of the reports from `learn`: its results after state and metrics.
    pub(crate) log: Spec<Log>,
    /// True if the arguments of every iteration are copied to the host.
    pub(crate) keeps_arguments: bool,
    /// Indices of the leaves that are published.
    pub(crate) nets: Vec<usize>,
    pub(crate) actors: Vec<Device>,
    pub(crate) shape: SebulbaShape,
    /// Number of iterations that made its state.
    pub(crate) iterations: u64,
    pub(crate) commands: Receiver<LearnerCommand>,
    pub(crate) reports: Sender<IterationReport>,
}

impl Learner {
    /// Follows commands until the run or a thread ends.
    pub(crate) fn run(mut self) -> Result<(), ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let status = &shared.statuses[self.shape.threads];
        loop {
            status.begin(Activity::Idle, 0);
            let iterations = match self.commands.recv() {
                Ok(LearnerCommand::Iteration(iterations)) => iterations,
                Ok(LearnerCommand::KeepArguments) => {
                    self.keeps_arguments = true;
                    continue;
                }
                Ok(LearnerCommand::Lend(to)) => {
                    // The run may have given up waiting.
                    let _ = to.send(Arc::clone(&self.state));
                    continue;
                }
                Err(_) => return Ok(()),
            };
            for _ in 0..iterations {
                let report = match shared.is_closed() {
                    true => None,
                    false => self.iterate(self.iterations)?,
                };
                let Some(report) = report else {
                    if shared.is_recalled() {
                        break;
                    }
                    return Ok(());
                };
                self.iterations += 1;
                if self.reports.send(report).is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// Runs one iteration with the data of the supply; `None` once the supply is closed.
    fn iterate(&mut self, iteration: u64) -> Result<Option<IterationReport>, ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let status = &shared.statuses[self.shape.threads];
        let Some(batch) = shared.supply.take(status)? else {
            return Ok(None);
        };
        status.begin(Activity::Iteration, iteration);
        let state = Arc::into_inner(std::mem::take(&mut self.state))
            .expect("the run gives the state back before it asks for iterations");
        let kept = self.keeps_arguments.then(|| on_host(&state, batch.data.handles()));
        let kept = kept.transpose()?;
        let mut arguments: Vec<Vec<Argument<'_>>> = (state.into_iter())
            .map(|leaves| leaves.into_iter().map(Argument::Donated).collect())
            .collect();
        let lent = match batch.data {
            Data::Lent(handles) => handles,
            Data::Given(handles) => {
                for (list, leaves) in arguments.iter_mut().zip(handles) {
                    list.extend(leaves.into_iter().map(Argument::Donated));
                }
                Arc::default()
            }
        };
        for (list, leaves) in arguments.iter_mut().zip(lent.iter()) {
            list.extend(leaves.iter().map(Argument::Kept));
        }
        let mut results = self.program.execute(arguments)?;
        let (mut metrics, mut feedback) = (Vec::new(), Vec::new());
        let (mut reports, log, several) =
            (batch.reports, self.log.leaves().len(), results.len() > 1);
        for (device, leaves) in results.iter_mut().enumerate() {
            let mut rest = leaves.split_off(self.placements.len());
            let mut said = rest.split_off(self.metrics);
            feedback.push(said.split_off(log));
            metrics.push(rest);
            let place = [device];
            let place = if several { &place[..] } else { &[] };
            reports::add(&mut reports, read_log(&self.log, &said)?, place);
        }
        self.state = Arc::new(results);
        let values = metrics[0].iter().map(|leaf| Ok(leaf.to_host()?.item::<f32>()?));
        let metrics = values.collect::<Result<_, RuntimeError>>()?;
        // The other devices' results are ready when one device's results are.
        for leaves in self.state.iter() {
            leaves.first().map_or(Ok(()), |leaf| leaf.ready()?.wait())?;
        }
        shared.supply.feedback(&batch.items, feedback)?;
        status.begin(Activity::Publishing, iteration + 1);
        let version = Version::copied(&self.state[0], &self.nets, &self.actors, iteration + 1)?;
        shared.parameters.publish(version);
        status.begin(Activity::Host, 0);
        Ok(Some(IterationReport {
            iteration,
            metrics,
            episodes: batch.episodes,
            lag: iteration as f64 - batch.versions as f64 / batch.steps as f64,
            queued: batch.queued,
            reports,
            arguments: kept,
        }))
    }
}

/// Copies of the arguments of each device: the state and the iteration's data.
fn on_host(state: &[Vec<Buffer>], data: &[Vec<Buffer>]) -> Result<Vec<Vec<Array>>, RuntimeError> {
    let lists = state.iter().zip(data);
    lists.map(|(state, data)| state.iter().chain(data).map(Buffer::to_host).collect()).collect()
}
