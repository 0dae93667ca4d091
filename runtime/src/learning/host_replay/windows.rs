//! Windows, gathered from the log.

use super::HostReplay;
use super::layout::Layout;
use super::log::RolloutLog;
use crate::learning::error::ReplayError;

/// The windows of an iteration, drawn by the learner devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// Number of rollouts at the time of the draw.
    pub(super) rollouts: u64,
    /// Gradient steps that need windows.
    pub(super) count: usize,
    /// Windows for every gradient step, for one learner device after another.
    pub(super) indices: Vec<i32>,
}

/// Maps windows to their positions in the log and in the arrays.
pub(super) struct Windows {
    pub(super) replay: HostReplay,
    pub(super) layout: Layout,
}

impl Windows {
    /// Reads the windows of a learner device. `arrays` are the bytes of its arrays' leaves.
    pub(super) fn gather(
        &self,
        log: &RolloutLog,
        request: &Request,
        learner: usize,
        arrays: &mut [Vec<u8>],
    ) -> Result<(), ReplayError> {
        let HostReplay { length, batch, .. } = self.replay;
        let per_learner = request.indices.len() / self.layout.learners;
        let indices = &request.indices[learner * per_learner..(learner + 1) * per_learner];
        if log.announces {
            let drawn = indices.iter().take(request.count * batch);
            for (lane, time) in drawn.map(|&index| self.window(index, request.rollouts)) {
                for (rollout, offset, steps) in self.layout.pieces(lane, time, length) {
                    log.announce(rollout, offset, steps * self.layout.step_bytes());
                }
            }
        }
        let mut bytes = vec![0; self.layout.unroll.min(length) * self.layout.step_bytes()];
        for (step, windows) in indices.chunks(batch).take(request.count).enumerate() {
            for (place, &index) in windows.iter().enumerate() {
                let (lane, time) = self.window(index, request.rollouts);
                let mut row = step * length;
                for (rollout, offset, steps) in self.layout.pieces(lane, time, length) {
                    let piece = &mut bytes[..steps * self.layout.step_bytes()];
                    log.read(rollout, offset, piece)?;
                    self.layout.place_steps(piece, row * batch + place, batch, arrays);
                    row += steps;
                }
                let (rollout, at, size) = self.layout.start_piece(lane, time);
                if size > 0 {
                    let mut start = vec![0; size];
                    log.read(rollout, at, &mut start)?;
                    self.layout.place_start(&start, step * batch + place, arrays);
                }
            }
        }
        Ok(())
    }

    /// The lane of a window that was drawn after `rollouts` rollouts, and the time of its first
    /// step since the start of the run.
    fn window(&self, index: i32, rollouts: u64) -> (usize, u64) {
        let HostReplay { steps, period, .. } = self.replay;
        let Layout { lanes, learners, unroll, .. } = self.layout;
        let (lanes_of_learner, rows) = (lanes / learners, steps / period);
        let index = index.max(0) as usize;
        let (learner, index) =
            (index / (rows * lanes_of_learner), index % (rows * lanes_of_learner));
        let (place, lane) = (index / lanes_of_learner * period, index % lanes_of_learner);
        let (steps, now) = (steps as u64, rollouts * unroll as u64);
        let age = (now + steps - 1 - place as u64) % steps + 1;
        (learner * lanes_of_learner + lane, now.saturating_sub(age))
    }
}
