//! The learner thread: one update program on all learner devices.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use super::actor::Trajectory;
use super::board::Activity;
use super::parameters::Version;
use super::run::Shared;
use super::{SebulbaShape, ThreadFailure};
use crate::pjrt::Device;
use crate::{Argument, Buffer, Executable, Placement, RuntimeError};

/// An episode that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Episode {
    /// The step of its trajectory at which it ended.
    pub step: usize,
    /// The sum of its rewards.
    pub episode_return: f32,
    /// Its number of steps.
    pub length: u32,
}

/// What came of an update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpdateReport {
    /// Its number, from 0.
    pub update: u64,
    /// Names and values of the metrics.
    pub metrics: Vec<f32>,
    /// The episodes that ended in its trajectories, in the order of their steps, then of the threads.
    pub episodes: Vec<Episode>,
    /// How many updates older than the learner's the parameters were that its trajectories were acted with: the mean.
    pub lag: f64,
    /// How many trajectories more were waiting when it began.
    pub queued: usize,
}

/// The leaves of the learner's state, on each learner device.
pub(super) type LearnerState = Vec<Vec<Buffer>>;

/// A request of the run to its learner thread.
pub(super) enum LearnerCommand {
    /// Do so many updates.
    Update(u64),
    /// Lend the state, until the next command.
    Lend(Sender<Arc<LearnerState>>),
}

/// What the learner thread is made of.
pub(super) struct Learner {
    pub(super) shared: Arc<Shared>,
    pub(super) program: Arc<Executable>,
    /// Lent to the run between two updates, and then donated to the next one.
    pub(super) state: Arc<LearnerState>,
    /// How the leaves are placed; the metrics come after them.
    pub(super) placements: Vec<Placement>,
    /// Which of the leaves are published.
    pub(super) nets: Vec<usize>,
    pub(super) actors: Vec<Device>,
    pub(super) shape: SebulbaShape,
    /// One for each actor thread.
    pub(super) queues: Vec<Receiver<Trajectory>>,
    /// The updates that made its state.
    pub(super) updates: u64,
    pub(super) commands: Receiver<LearnerCommand>,
    pub(super) reports: Sender<UpdateReport>,
}

impl Learner {
    /// Follows commands until the run or a thread ends.
    pub(super) fn run(mut self) -> Result<(), ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let seat = &shared.seats[self.shape.threads];
        loop {
            seat.begin(Activity::Idle, 0);
            let updates = match self.commands.recv() {
                Ok(LearnerCommand::Update(updates)) => updates,
                Ok(LearnerCommand::Lend(to)) => {
                    // The run may have given up waiting.
                    let _ = to.send(Arc::clone(&self.state));
                    continue;
                }
                Err(_) => return Ok(()),
            };
            for _ in 0..updates {
                if shared.is_closed() {
                    return Ok(());
                }
                let Some(mut report) = self.update(self.updates)? else {
                    return Ok(());
                };
                report.update = self.updates;
                self.updates += 1;
                if self.reports.send(report).is_err() {
                    return Ok(());
                }
            }
        }
    }

    /// One update, with one trajectory of every actor thread; none where one of them has ended.
    fn update(&mut self, update: u64) -> Result<Option<UpdateReport>, ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let seat = &shared.seats[self.shape.threads];
        let queued: usize = self.queues.iter().map(Receiver::len).sum();
        let mut trajectories = Vec::with_capacity(self.queues.len());
        for (thread, queue) in self.queues.iter().enumerate() {
            seat.begin(Activity::WaitingForTrajectory, thread as u64);
            match queue.recv() {
                Ok(trajectory) => trajectories.push(trajectory),
                Err(_) => return Ok(None),
            }
        }
        seat.begin(Activity::Update, update);
        let mut report = UpdateReport {
            queued: queued.saturating_sub(trajectories.len()),
            ..UpdateReport::default()
        };
        let state = Arc::into_inner(std::mem::take(&mut self.state))
            .expect("the run gives the state back before it asks for updates");
        let mut arguments: Vec<Vec<Argument<'_>>> = state
            .into_iter()
            .map(|leaves| leaves.into_iter().map(Argument::Donated).collect())
            .collect();
        let mut versions = 0;
        for trajectory in trajectories {
            versions += trajectory.versions;
            report.episodes.extend(trajectory.episodes);
            for (list, packet) in arguments.iter_mut().zip(trajectory.packets) {
                list.extend(packet.into_iter().map(Argument::Donated));
            }
        }
        report.episodes.sort_by_key(|episode| episode.step);
        let steps = (self.shape.threads * self.shape.unroll) as f64;
        report.lag = update as f64 - versions as f64 / steps;

        let mut results = self.program.execute(arguments)?;
        let metrics: Vec<Vec<Buffer>> =
            results.iter_mut().map(|leaves| leaves.split_off(self.placements.len())).collect();
        self.state = Arc::new(results);
        for leaf in &metrics[0] {
            report.metrics.push(leaf.to_host()?.item::<f32>()?);
        }
        // The other devices' results are there when any of them is.
        for leaves in self.state.iter() {
            leaves.first().map_or(Ok(()), |leaf| leaf.ready()?.wait())?;
        }
        seat.begin(Activity::Publishing, update + 1);
        let version = published(&self.state[0], &self.nets, &self.actors, update + 1)?;
        self.shared.parameters.publish(version);
        seat.begin(Activity::Host, 0);
        Ok(Some(report))
    }
}

/// Copies what is published to the actor devices, and waits for the copies: the learner's own will be donated.
pub(super) fn published(
    state: &[Buffer],
    nets: &[usize],
    actors: &[Device],
    number: u64,
) -> Result<Version, RuntimeError> {
    let copy = |device: &Device| {
        let copies = nets.iter().map(|&leaf| state[leaf].copy_to(device));
        copies.collect::<Result<Vec<_>, _>>()
    };
    let leaves = actors.iter().map(copy).collect::<Result<Vec<_>, _>>()?;
    for leaf in leaves.iter().flatten() {
        leaf.ready()?.wait()?;
    }
    Ok(Version { number, leaves })
}
