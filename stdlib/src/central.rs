//! Central inference: lanes that come and go, with rollouts that end at different times.
//! [`crate::sebulba`] acts and learns. This module restarts lanes, and takes complete rollouts out
//! of an [`ActorState`].
//!
//! # Invariants
//! - A restarted lane acts like a lane at the start of a run: nothing from before the restart is
//!   read.
//! - A rollout is taken out before the next inference of its lane, which overwrites it.

use crate::learn::{Agent, Learn};
use crate::sebulba::{
    ActorFor, ActorLearner, ActorState, RolloutStart, ShardFor, Steps, TrajectoryShard, close,
};
use podracer_dsl::prelude::*;
use podracer_envs::host::StepOutcome;

/// Rollouts of single lanes, one after another: `R` rows of `T` steps.
#[derive(Tree, Clone)]
pub struct Unrolls<M: Tree, X: Tree> {
    /// The starts of the rollouts. `[R, ..]`
    pub start: RolloutStart<M>,
    /// The observations to act on next. `[R, ..]`
    pub last_observation: Tensor,
    /// The masks of the actions that are legal next, for environments that have masks. bool `[R,
    /// n]`
    pub last_legal_actions: Option<Tensor>,
    /// The steps of the rollouts. `[R, T, ..]`
    pub steps: Steps<X>,
}

/// Rollouts of single lanes.
pub type UnrollsFor<A> = Unrolls<<A as Agent>::Memory, <A as Agent>::Extras>;

impl<A: Learn<Observation = Tensor>> ActorLearner<A> {
    /// Resets the lanes of a mask, bool `[N]`, to the start of a run with this key. `first` is the
    /// global index of the first lane, i32 `[]`. Later actions of these lanes do not depend on
    /// their earlier steps.
    #[track_caller]
    pub fn restart(
        &self,
        key: Key,
        first: Tensor,
        state: ActorFor<A>,
        lanes: Tensor,
    ) -> ActorFor<A> {
        let fresh = self.start(key, first, constant(false));
        let pick = |old: Tensor, new: Tensor| {
            let shape = [&[self.lanes()], &vec![1; new.rank() - 1][..]].concat();
            select(lanes.reshape(shape).broadcast_to(new.shape()), new, old)
        };
        ActorState {
            carry: state.carry.zip_with(&fresh.carry, pick),
            taken_over: Tree::zip_with(&state.taken_over, &fresh.taken_over, pick),
            start: state.start.zip_with(&fresh.start, pick),
            // A rollout is taken out after its last step. By then all of its steps are from after
            // the restart.
            steps: state.steps,
        }
    }

    /// Memory for one rollout of each of `N` lanes, in the order of their removal.
    #[track_caller]
    pub fn unrolls(&self) -> UnrollsFor<A> {
        let outcome = self.environments.outcome().zeros();
        let state = self.start(Key::from_words(zeros(U32, [2])), scalar(0), constant(false));
        Unrolls {
            start: tree_map(&state.start, |leaf| leaf.zeros_like()),
            last_observation: outcome.observation,
            last_legal_actions: outcome.legal_actions,
            steps: tree_map(&state.steps, |leaf| zeros(leaf.dtype(), swapped(leaf.shape()))),
        }
    }

    /// Copies the rollouts of `B` lanes, i32 `[B]`, into `rows`, i32 `[B]`. The lanes' last steps
    /// had these outcomes. A row of `N` or more is padding.
    #[track_caller]
    pub fn take_out(
        &self,
        state: &ActorFor<A>,
        outcome: StepOutcome,
        lanes: Tensor,
        rows: Tensor,
        unrolls: UnrollsFor<A>,
    ) -> UnrollsFor<A> {
        let into_rows = |all: Tensor, some: Tensor| all.set(rows, some);
        let start = tree_map(&state.start, |leaf| leaf.take(lanes, 0));
        let steps = tree_map(&state.steps, |leaf| leaf.take(lanes, 1));
        let last = full([lanes.len()], self.unroll as i32 - 1);
        let steps = close(steps, last, &outcome, None);
        Unrolls {
            start: unrolls.start.zip_with(&start, into_rows),
            last_observation: into_rows(unrolls.last_observation, outcome.observation),
            last_legal_actions: Tree::zip_with(
                &unrolls.last_legal_actions,
                &outcome.legal_actions,
                into_rows,
            ),
            steps: unrolls.steps.zip_with(&steps, |all, some| into_rows(all, some.swap_axes(0, 1))),
        }
    }

    /// Divides rollouts that were taken out into one shard per learner device.
    #[track_caller]
    pub fn shards(&self, unrolls: UnrollsFor<A>) -> Vec<ShardFor<A>> {
        let Unrolls { start, last_observation, last_legal_actions, steps } = unrolls;
        let steps = tree_map(&steps, |leaf| leaf.swap_axes(0, 1));
        self.divided(&TrajectoryShard { start, last_observation, last_legal_actions, steps })
    }
}

/// A shape with the first two axes swapped.
fn swapped(shape: Vec<usize>) -> Vec<usize> {
    [&[shape[1], shape[0]], &shape[2..]].concat()
}
