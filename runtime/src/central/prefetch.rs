//! The prefetch thread: complete unrolls go from inference devices to learner devices, or to the replay.

use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::compile::DevicePrograms;
use super::unrolls::Complete;
use crate::Argument;
use crate::learning::Activity;
use crate::learning::error::ThreadFailure;
use crate::learning::shared::Shared;
use crate::learning::trajectory::Trajectory;
use crate::pjrt::Device;

/// The prefetch thread.
pub(super) struct Prefetch {
    pub(super) shared: Arc<Shared>,
    /// Index of its status.
    pub(super) index: usize,
    /// The programs of each inference device.
    pub(super) programs: Vec<Arc<DevicePrograms>>,
    pub(super) learners: Vec<Device>,
    /// True if unrolls go to the host, and not to the learner devices.
    pub(super) keeps_on_host: bool,
    /// Disconnected once the inference threads have ended.
    pub(super) complete: Receiver<Complete>,
}

impl Prefetch {
    /// Brings unrolls to the learner until the run is over.
    pub(super) fn run(self) -> Result<(), ThreadFailure> {
        let shared = Arc::clone(&self.shared);
        let status = &shared.statuses[self.index];
        loop {
            status.begin(Activity::WaitingForUnrolls, 0);
            let Ok(complete) = self.complete.recv() else { return Ok(()) };
            status.begin(Activity::Sending, 0);
            let thread = complete.thread;
            let trajectory = self.trajectory(complete)?;
            if shared.supply.put(thread, trajectory, status)?.is_break() {
                return Ok(());
            }
        }
    }

    fn trajectory(&self, complete: Complete) -> Result<Trajectory, ThreadFailure> {
        let Complete { thread, buffers, steps, versions, episodes, reports } = complete;
        let arguments = buffers.iter().map(Argument::Kept).collect();
        let results = self.programs[thread].shards.execute(vec![arguments])?;
        let mut leaves = results.into_iter().next().unwrap_or_default();
        let leaves_of_shard = leaves.len() / self.learners.len();
        let mut shards = Vec::new();
        for learner in &self.learners {
            let shard: Vec<_> = leaves.drain(..leaves_of_shard).collect();
            shards.push(match self.keeps_on_host {
                true => shard,
                false => {
                    shard.iter().map(|leaf| leaf.copy_to(learner)).collect::<Result<_, _>>()?
                }
            });
        }
        Ok(Trajectory { shards, steps, versions, episodes, reports })
    }
}
