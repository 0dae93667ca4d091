//! Central inference: lanes that come and go, and whose rollouts end at moments of their own. What acts and learns is
//! [`crate::sebulba`]; here is how a lane begins anew, and how complete rollouts are taken out of an [`ActorState`].
//!
//! # Invariants
//! - A lane that begins anew acts as one at the start of a run: nothing of what was there before is read.
//! - A rollout is taken out before the next inference of its lane, which writes over it.

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
    /// The masks of the actions that are legal next, of environments that have some. bool `[R, n]`
    pub last_legal_actions: Option<Tensor>,
    /// The steps of the rollouts. `[R, T, ..]`
    pub steps: Steps<X>,
}

/// Rollouts of single lanes.
pub type UnrollsFor<A> = Unrolls<<A as Agent>::Memory, <A as Agent>::Extras>;

impl<A: Learn<Observation = Tensor>> ActorLearner<A> {
    /// Puts the lanes of a mask, bool `[N]`, back to the start of a run with this key; `first` is the global index of the first
    /// lane, i32 `[]`. Nothing that they act from now on depends on what they did before.
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
            // A rollout is taken out after its last step: by then all of its steps are its own.
            steps: state.steps,
        }
    }

    /// Memory for one rollout of each of `N` lanes, whose order is that of taking them out.
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

    /// Takes the rollouts of `B` lanes, i32 `[B]`, whose last steps had these outcomes, and puts them into `rows`, i32 `[B]`. A row
    /// of `N` or more is padding.
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

    /// Divides rollouts that were taken out over the learner devices: a shard each.
    #[track_caller]
    pub fn shards(&self, unrolls: UnrollsFor<A>) -> Vec<ShardFor<A>> {
        let Unrolls { start, last_observation, last_legal_actions, steps } = unrolls;
        let steps = tree_map(&steps, |leaf| leaf.swap_axes(0, 1));
        self.divided(&TrajectoryShard { start, last_observation, last_legal_actions, steps })
    }
}

/// A shape with its first two axes swapped.
fn swapped(shape: Vec<usize>) -> Vec<usize> {
    [&[shape[1], shape[0]], &shape[2..]].concat()
}
