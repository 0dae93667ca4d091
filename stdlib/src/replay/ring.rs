//! The ring of a store: the positions of steps, and the windows that are whole.

use super::windows::{Replay, Stored, StoredPriorities};
use podracer_dsl::prelude::*;

/// The ring of a store: the positions of steps and windows.
pub(super) struct Ring {
    /// Number of steps of each lane.
    pub(super) steps: usize,
    pub(super) lanes: usize,
    pub(super) length: usize,
    pub(super) period: usize,
    /// The position of the next step. i32 `[]`
    pub(super) position: Tensor,
    /// Number of steps kept of each lane. i32 `[]`
    pub(super) size: Tensor,
}

impl Ring {
    #[track_caller]
    pub(super) fn of<I: Tree, S: Tree>(replay: &Replay, state: &Stored<I, S>) -> Ring {
        // Without leaves, or with settings that `init` rejected, an error is already recorded, so
        // any ring will do.
        let leaves = state.steps.leaves();
        let (steps, lanes) = leaves.first().map_or((1, 1), |leaf| (leaf.dim(0), leaf.dim(1)));
        Ring {
            steps,
            lanes,
            length: replay.length.min(steps).max(1),
            period: replay.period.min(steps).max(1),
            position: state.position.index(0),
            size: state.size.index(0),
        }
    }

    /// The number of leaves for priorities: one for every window in a full store.
    pub(super) fn leaves(&self) -> usize {
        self.steps / self.period * self.lanes
    }

    /// The oldest position where a window may begin, and the number of steps from the oldest step
    /// to it. i32 `[]` each
    #[track_caller]
    fn oldest(&self) -> (Tensor, Tensor) {
        let oldest = (self.position - self.size).modulo(self.steps as i32);
        let skipped = (-oldest).modulo(self.period as i32);
        (oldest + skipped, skipped)
    }

    /// Number of whole windows of one lane. i32 `[]`
    #[track_caller]
    pub(super) fn rows(&self) -> Tensor {
        let spare = self.size - self.oldest().1 - self.length as i32;
        select(spare.ge(0), spare / self.period as i32 + 1, 0)
    }

    /// The indices of the windows with these numbers among all whole windows. i32 `[B]` each
    #[track_caller]
    pub(super) fn index(&self, number: Tensor) -> Tensor {
        let (row, lane) = (number / self.lanes as i32, number.rem(self.lanes as i32));
        let place = (self.oldest().0 + row * self.period as i32).rem(self.steps as i32);
        place / self.period as i32 * self.lanes as i32 + lane
    }

    /// The positions of the first steps of windows. i32 `[B]`
    #[track_caller]
    pub(super) fn first(&self, indices: Tensor) -> Tensor {
        indices / self.lanes as i32 * self.period as i32
    }

    /// The number of steps of a lane since the steps at these positions, inclusive. i32, of the
    /// shape of `places`
    #[track_caller]
    pub(super) fn ages(&self, places: Tensor) -> Tensor {
        (self.position - 1 - places).modulo(self.steps as i32) + 1
    }

    /// The steps `[L, B, ..]` and starts `[B, ..]` of windows.
    #[track_caller]
    pub(super) fn windows<I: Tree, S: Tree>(
        &self,
        state: &Stored<I, S>,
        indices: Tensor,
    ) -> (I, S) {
        let lanes = self.lanes as i32;
        let steps = self.first(indices).expand_dims(0) + arange(self.length).expand_dims(1);
        let places = steps.rem(self.steps as i32) * lanes + indices.rem(lanes);
        let flat =
            |all: Tensor| all.reshape([&[all.dim(0) * all.dim(1)], &all.shape()[2..]].concat());
        let steps = tree_map(&state.steps, |all| flat(all).take(places, 0));
        (steps, tree_map(&state.starts, |all| flat(all).take(indices, 0)))
    }

    /// Priorities after `unroll` steps were written at `position`: zero for windows that lost
    /// steps, the greatest for new windows.
    #[track_caller]
    pub(super) fn refreshed(
        &self,
        old: StoredPriorities,
        position: Tensor,
        unroll: usize,
    ) -> StoredPriorities {
        let (steps, length) = (self.steps as i32, self.length as i32);
        let chunk = unroll.max(self.period);
        let (rows, chunk_steps) = (chunk / self.period, chunk as i32);
        // Windows that began in the overwritten steps are gone. Windows that the new steps complete
        // begin one length earlier.
        let mut offsets = vec![0, 1 - length, unroll as i32 - length];
        if chunk == unroll {
            // The rollout is a chunk: offsets within the same chunk are duplicates.
            offsets =
                offsets.iter().map(|offset| offset.div_euclid(chunk_steps) * chunk_steps).collect();
            offsets.sort_unstable();
            offsets.dedup();
        }
        let chunks: Vec<Tensor> =
            offsets.iter().map(|&offset| (position + offset).modulo(steps) / chunk_steps).collect();
        let count = rows * self.lanes;
        let starts: Vec<Tensor> = chunks.iter().map(|&chunk| chunk * count as i32).collect();
        let StoredPriorities { tree, greatest } = old;
        let tree = tree.change_ranges(&starts, count, |range, before| {
            let first = chunks[range] * chunk_steps + arange(rows) * self.period as i32;
            let age = self.ages(first);
            let whole = age.ge(length) & age.le(self.size);
            let new = age.lt(length + unroll as i32);
            let of_lanes =
                |row: Tensor| row.expand_dims(1).broadcast_to([rows, self.lanes]).flatten();
            let now = select(of_lanes(new), greatest.index(0), before);
            select(of_lanes(whole), now, 0.0)
        });
        StoredPriorities { tree, greatest }
    }
}
