//! The loss of [`Dqn`] on windows of its replay.

use super::{Dqn, DqnSettings};
use crate::agents::RewardClipping;
use crate::learn::{Step, Transition, Window, Windows, of_legal};
use crate::losses::{
    categorical_double_q_learning, double_q_learning, huber_loss, l2_loss, quantile_q_learning,
};
use crate::net::{ActionValues, QNetwork};
use crate::replay::stack_frames;
use podracer_dsl::prelude::*;

/// The loss of a batch of windows.
#[derive(Tree, Clone, Copy)]
pub struct DqnLoss {
    /// The mean over the windows, each times its weight. f32 `[]`
    pub loss: Tensor,
    /// The priority of each window: the absolute error for expected values, and the loss for
    /// distributions, as in Rainbow. f32 `[B]`
    pub priorities: Tensor,
    /// Mean value of the actions that were taken. f32 `[]`
    pub value: Tensor,
}

/// Roles of the online network in a loss; each role has its own noise.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    /// The values that are learnt.
    Learns = 0,
    /// The choice of the next action.
    Chooses = 2,
}

impl Dqn {
    /// The windows that transitions are made from: the frames of the first observation come before
    /// the steps of the return.
    pub(super) fn window_of(&self, steps: &Spec<Step>) -> Window {
        let window = Step::window(steps, self.settings.n_step);
        Window { length: self.settings.frames - 1 + window.length, ..window }
    }

    /// The steps of a window `[frames - 1 + L, ..]` without its first `frames - 1`, with
    /// observations of `frames` frames each. `[L, ..]`
    #[track_caller]
    fn stacked(&self, window: Step) -> Step {
        let frames = self.settings.frames;
        if frames == 1 {
            return window;
        }
        let done = match window.truncated {
            Some(truncated) => window.terminated | truncated,
            None => window.terminated,
        };
        // The end of an episode before the window's first step is irrelevant.
        let first = concatenate(&[full([1], false), done.slice_axis(0, 0..done.len() - 1)], 0);
        let observation = stack_frames(window.observation, first, frames);
        let rest = tree_map(&window, |leaf| leaf.slice_axis(0, frames - 1..));
        let next_observation = rest
            .next_observation
            .map(|next| concatenate(&[observation.slice_axis(1, 1..), next.expand_dims(1)], 1));
        Step { observation, next_observation, ..rest }
    }

    /// The transition of a window of one lane.
    #[track_caller]
    fn transition(&self, window: Step) -> Transition {
        let &DqnSettings { n_step, discount, reward_clipping, .. } = &self.settings;
        let step = self.stacked(window);
        let reward = match reward_clipping {
            RewardClipping::None => step.reward,
            RewardClipping::AbsOne => step.reward.clamp(-1.0, 1.0),
        };
        Step { reward, ..step }.transition(n_step, discount)
    }

    /// The loss of a batch of windows, with the noise of `key`.
    #[track_caller]
    pub fn loss(
        &self,
        online: &QNetwork,
        target: &QNetwork,
        windows: &Windows<Step>,
        key: &Key,
    ) -> DqnLoss {
        let noise = |network: i32| self.settings.noisy.then(|| key.fold_in(network));
        let online = |seen, use_: Use| online.apply(seen, noise(use_ as i32));
        let target = |seen| target.apply(seen, noise(1));
        self.loss_of(online, target, windows)
    }

    /// The loss of a batch of windows, for networks given as functions of stacked observations.
    #[track_caller]
    pub(super) fn loss_of(
        &self,
        online: impl Fn(Tensor, Use) -> Tensor,
        target: impl Fn(Tensor) -> Tensor,
        windows: &Windows<Step>,
    ) -> DqnLoss {
        let _scope = scope("Dqn::loss");
        let values = self.settings.action_values();
        let steps = tree_map(&windows.steps, |leaf| leaf.swap_axes(0, 1));
        let (losses, priorities, values) = vmap(steps, |window| {
            let seen = self.transition(window);
            let q_tm1 = online(seen.observation, Use::Learns);
            let q_t = target(seen.next_observation);
            let chooser = match self.settings.double {
                true => online(seen.next_observation, Use::Chooses),
                false => q_t,
            };
            let (loss, priority) = self.error(q_tm1, &seen, q_t, stop_gradient(chooser));
            let value = values.mean(q_tm1).at(seen.action);
            let counted = |number: Tensor| select(seen.counts, number, 0.0);
            (counted(loss), counted(priority), value)
        });
        DqnLoss {
            loss: (losses * windows.weights).mean(),
            priorities: stop_gradient(priorities),
            value: stop_gradient(values).mean(),
        }
    }

    /// The loss of one transition, and its priority. f32 `[]`
    #[track_caller]
    fn error(
        &self,
        q_tm1: Tensor,
        seen: &Transition,
        q_t: Tensor,
        chooser: Tensor,
    ) -> (Tensor, Tensor) {
        let &DqnSettings { huber, kappa, .. } = &self.settings;
        let values = self.settings.action_values();
        let (a, r, discount) = (seen.action, seen.reward, seen.discount);
        let selector = of_legal(values.mean(chooser), seen.next_legal_actions);
        let z = values.points();
        match values {
            ActionValues::Expected => {
                let error = double_q_learning(q_tm1, a, r, discount, q_t, selector);
                let loss = huber.map_or_else(|| l2_loss(error), |huber| huber_loss(error, huber));
                (loss, error.abs())
            }
            ActionValues::Categorical { .. } => {
                let loss =
                    categorical_double_q_learning(z, q_tm1, a, r, discount, z, q_t, selector);
                (loss, loss)
            }
            ActionValues::Quantile { .. } => {
                let [q_tm1, q_t] = [q_tm1, q_t].map(|q| q.swap_axes(0, 1));
                // Means choose the action, so the selector has one quantile per action.
                let selector = selector.expand_dims(0);
                let loss = quantile_q_learning(q_tm1, z, a, r, discount, selector, q_t, kappa);
                (loss, loss)
            }
        }
    }
}
