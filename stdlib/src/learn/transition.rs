//! Single steps in the replays of agents without memory, and the transitions that these agents
//! learn from.

use super::{RolloutOf, Window};
use crate::Number;
use crate::replay::{NStep, n_step};
use podracer_dsl::prelude::*;

/// One step of a lane in a replay.
#[derive(Tree, Clone)]
pub struct Step {
    /// The observation on which the agent acted.
    pub observation: Tensor,
    /// Mask of the allowed actions, bool `[A]`; `None` if the environment always allows all.
    pub legal_actions: Option<Tensor>,
    /// The action taken.
    pub action: Tensor,
    /// The reward. f32 `[]`
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state. bool `[]`
    pub terminated: Tensor,
    /// True if the step's episode was cut off; `None` if the environment never truncates. bool `[]`
    pub truncated: Option<Tensor>,
    /// True for a reset-only step; `None` if the environment has no such steps. bool `[]`
    pub skipped: Option<Tensor>,
    /// The observation after the step, including an episode's last observation. `None` if the next
    /// step's observation takes its place: because the environment never truncates, because the
    /// observation would take too much memory (images), or because it is not known well enough
    /// (masks of legal actions).
    pub next_observation: Option<Tensor>,
}

/// A transition over `n` steps of a lane: a step, and the reward and state after it.
#[derive(Tree, Clone)]
pub struct Transition {
    /// The observation on which the agent acted.
    pub observation: Tensor,
    /// Mask of the allowed actions, bool `[A]`.
    pub legal_actions: Option<Tensor>,
    /// The action taken.
    pub action: Tensor,
    /// The discounted sum of rewards. f32 `[]`
    pub reward: Tensor,
    /// The factor of the next state's value: 0 after a terminal state. f32 `[]`
    pub discount: Tensor,
    /// The observation after the `n` steps.
    pub next_observation: Tensor,
    /// Mask of the actions that are allowed after the `n` steps, bool `[A]`.
    pub next_legal_actions: Option<Tensor>,
    /// False for a step that does not count: a reset-only step, or a step before a cut if the
    /// observation at the cut was not kept. bool `[]`
    pub counts: Tensor,
}

impl Step {
    /// The steps of a rollout. `[T, N, ..]`
    #[track_caller]
    pub fn of<M: Tree, X: Tree>(rollout: RolloutOf<Tensor, M, X>) -> Step {
        let legal_actions = rollout.input.legal_actions;
        let truncates = rollout.next_observation.is_some() || rollout.skipped.is_some();
        // The rank without time and lanes.
        let image = rollout.input.observation.rank() - 2 >= 2;
        let kept = !image && legal_actions.is_none();
        Step {
            observation: rollout.input.observation,
            legal_actions,
            action: rollout.action,
            reward: rollout.reward,
            terminated: rollout.terminated,
            truncated: truncates.then_some(rollout.truncated),
            skipped: rollout.skipped,
            next_observation: rollout.next_observation.filter(|_| kept),
        }
    }

    /// The windows that transitions over `n` steps are made from, for steps of these types.
    pub fn window(steps: &Spec<Step>, n: usize) -> Window {
        let next = usize::from(steps.next_observation.is_none());
        Window { length: n + next, period: 1, learnt: 1 }
    }

    /// The transition over `n` steps from the first step of a window `[L, ..]`.
    #[track_caller]
    pub fn transition(&self, n: usize, discount: impl Into<Number>) -> Transition {
        let first = |all: Tensor| all.slice_axis(0, 0..n);
        let never = || zeros(BOOL, self.terminated.shape());
        let truncated = self.truncated.unwrap_or_else(never);
        let rewards = first(self.reward);
        let NStep { reward, discount, last } =
            n_step(rewards, first(self.terminated), first(truncated), discount);
        // One step needs no gather.
        let at_step = |all: Tensor, i: usize| match n {
            1 => all.index(i as isize),
            _ => all.take((last + i as i32).reshape([1]), 0).index(0),
        };
        let (done, cut) = (at_step(self.terminated, 0), at_step(truncated, 0));
        let (next_observation, known) = match self.next_observation {
            Some(next) => (at_step(next, 0), constant(true)),
            None => (at_step(self.observation, 1), !cut | done),
        };
        let skipped = self.skipped.map_or(constant(false), |skipped| skipped.index(0));
        Transition {
            observation: self.observation.index(0),
            legal_actions: self.legal_actions.map(|legal| legal.index(0)),
            action: self.action.index(0),
            reward,
            discount,
            next_observation,
            next_legal_actions: self.legal_actions.map(|legal| at_step(legal, 1)),
            counts: known & !skipped,
        }
    }
}
