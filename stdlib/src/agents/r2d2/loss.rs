//! R2D2's loss and priorities for one window.

use super::R2d2Settings;
use super::network::RecurrentQ;
use crate::learn::{FrameMemory, Input, of_legal, stack_window, weighted};
use crate::losses::transformed_n_step_q_learning;
use crate::nn::LstmState;
use podracer_dsl::prelude::*;

/// One step of one lane in the replay.
#[derive(Tree, Clone)]
pub struct R2d2Step {
    /// The input that the agent acted on, with a single frame.
    pub input: Input,
    /// The action. i32 `[]`
    pub action: Tensor,
    /// The action's reward. f32 `[]`
    pub reward: Tensor,
    /// True if the step ended its episode in a terminal state. bool `[]`
    pub terminated: Tensor,
    /// True if the step's episode was cut off. bool `[]`
    pub truncated: Tensor,
    /// True for a reset-only step. bool `[]`; `None` if the environment has no such steps.
    pub skipped: Option<Tensor>,
}

/// The memory of acting at the start of a window, which the replay keeps.
#[derive(Tree, Clone)]
pub struct R2d2Start {
    /// State of the LSTM before the window's first step.
    pub core: LstmState,
    /// Frames before the window's first frame.
    pub frames: FrameMemory,
}

/// Terms of one window: loss, priority and errors.
#[derive(Tree, Clone, Copy)]
pub struct R2d2Terms {
    /// Half of the sum of the squared errors. f32 `[]`
    pub loss: Tensor,
    /// The window's priority. f32 `[]`
    pub priority: Tensor,
    /// Temporal-difference errors of the trained steps, 0 if a step does not count. f32 `[trained]`
    pub errors: Tensor,
    /// Action values of the trained steps' actions, as the network outputs them, f32 `[trained]`
    pub values: Tensor,
}

impl R2d2Settings {
    /// Loss and priority of one window of one lane, `[burn_in + trained + 1, ..]`. The first
    /// `burn_in` steps only update the cores of both networks, and the last step only provides
    /// values to bootstrap from.
    ///
    /// The targets are double Q-learning returns over up to `n_step` steps: they use the target
    /// network's value of the action that the online network prefers. A return has fewer steps if
    /// the window ends before. A step does not count if it is reset-only, or if its return would
    /// extend beyond a cut, because the observation at the cut is not kept.
    #[track_caller]
    pub fn terms(
        &self,
        online: &RecurrentQ,
        target: &RecurrentQ,
        steps: R2d2Step,
        start: R2d2Start,
    ) -> R2d2Terms {
        let _scope = scope("R2d2::terms");
        let stacked = stack_window(start.frames, steps.input.observation, steps.input.first);
        let inputs = Input { observation: stacked, ..steps.input.clone() };
        let (q_online, q_target) =
            (self.values(online, start.core, &inputs), self.values(target, start.core, &inputs));
        let last = self.burn_in + self.trained();
        let trained = |leaf: Tensor| leaf.slice_axis(0, self.burn_in..last);
        let legal = inputs.legal_actions.map(|legal| legal.slice_axis(0, self.burn_in + 1..));
        let q_t = of_legal(q_online.slice(1..), legal);
        let (action, q_tm1) = (trained(steps.action), q_online.slice(..-1));
        let (terminated, truncated) = (trained(steps.terminated), trained(steps.truncated));
        let discount = self.discount.into_tensor().broadcast_to(terminated.shape());
        let errors = transformed_n_step_q_learning(
            q_tm1,
            action,
            q_target.slice(1..),
            stop_gradient(q_t).argmax(-1),
            trained(steps.reward),
            select(terminated, 0.0, discount),
            self.n_step,
            self.value_rescaling,
        );
        let counts = !goes_beyond_a_cut(terminated, truncated, self.n_step);
        let counts = match steps.skipped {
            Some(skipped) => counts & !trained(skipped),
            None => counts,
        };
        let counts = counts.astype(F32);
        let errors = weighted(errors, Some(counts));
        let sizes = errors.abs();
        let mean = sizes.sum() / counts.sum().maximum(1.0);
        let share = self.priority_of_greatest;
        let priority = share * sizes.max() + (1.0 - share) * mean;
        R2d2Terms {
            loss: 0.5 * errors.square().sum(),
            priority: stop_gradient(priority),
            errors,
            values: crate::losses::pick(q_tm1, action),
        }
    }

    /// Action values of the trained steps and of the step after them, f32 `[trained + 1, A]`. No
    /// gradient flows through the burn-in.
    #[track_caller]
    fn values(&self, net: &RecurrentQ, core: LstmState, inputs: &Input) -> Tensor {
        let part = |from: usize, to: usize| tree_map(inputs, |leaf| leaf.slice_axis(0, from..to));
        let (burn_in, all) = (self.burn_in, inputs.first.len());
        let core = match burn_in {
            0 => core,
            _ => {
                let states = stop_gradient(net.clone()).remember(core, part(0, burn_in));
                tree_map(&states, |leaf| leaf.index(-1))
            }
        };
        let states = net.remember(core, part(burn_in, all));
        vmap(states.h, |h| net.head.apply(h))
    }
}

/// True for steps with a cut within the next `n` steps, unless the episode ends in a terminal state
/// before. bool `[T]`
#[track_caller]
fn goes_beyond_a_cut(terminated: Tensor, truncated: Tensor, n: usize) -> Tensor {
    let none = zeros(BOOL, [1]);
    (1..n).fold(truncated, |beyond, _| {
        let next = concatenate(&[beyond.slice(1..), none], 0);
        truncated | (!terminated & next)
    })
}
