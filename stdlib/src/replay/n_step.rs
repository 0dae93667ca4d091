//! Conversion of windows of steps into the inputs of losses.

use crate::number::Number;
use podracer_dsl::prelude::*;

/// One transition over several steps.
#[derive(Tree, Clone, Copy)]
pub struct NStep {
    /// The discounted sum of rewards up to the transition's last step. f32 `[]`
    pub reward: Tensor,
    /// The factor of the value after the last step: `discount` to the power of the number of steps,
    /// or 0 if the last step terminated. f32 `[]`
    pub discount: Tensor,
    /// The index of the last step: the first step that ends its episode, or `n - 1`. i32 `[]`
    pub last: Tensor,
}

/// The `n`-step transition from the first of `n` steps of one lane. It ends after them, or with the
/// episode.
///
/// `reward` is f32 `[n]`, `terminated` and `truncated` are bool `[n]`. The return is `r_0 +
/// discount r_1 + .. + discount^last r_last` (Sutton 1988, "Learning to predict by the methods of
/// temporal differences"). Bootstrap from the value of the observation after the step `last`.
#[track_caller]
pub fn n_step(
    reward: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    discount: impl Into<Number>,
) -> NStep {
    let discount = discount.into();
    let done = (terminated | truncated).astype(I32);
    // Number of ends before a step: a step counts if it is 0.
    let counts = (done.cumsum(0) - done).eq(0);
    let steps = arange(reward.len()).astype(F32);
    let weights = select(counts, pow(discount, steps), 0.0);
    let last = counts.astype(I32).sum() - 1;
    let follows = !terminated.at(last);
    NStep {
        reward: (weights * reward).sum(),
        discount: select(follows, pow(discount, last.astype(F32) + 1.0), 0.0),
        last,
    }
}

/// Joins every observation of a window with the `frames - 1` observations before it, the newest
/// last.
///
/// `observation` is `[frames - 1 + L, ..]`; `first`, bool `[frames - 1 + L]`, is true where an
/// episode begins. The result equals the stack from the environments' wrapper `FrameStack`: `[L,
/// frames, ..]`, or `[L, height, width, frames * channels]` for images. Copies of an episode's
/// first observation take the place of observations before it.
#[track_caller]
pub fn stack_frames(observation: Tensor, first: Tensor, frames: usize) -> Tensor {
    let length = observation.len() + 1 - frames.max(1);
    let image = observation.rank() == 4;
    let mut shown = observation.slice_axis(0, frames - 1..);
    let mut stacked = vec![shown];
    // The step of the next newer frame began an episode: earlier frames are copies of that frame.
    let mut over = first.slice_axis(0, frames - 1..);
    for age in 1..frames {
        let from = frames - 1 - age;
        let earlier = observation.slice_axis(0, from..from + length);
        let mask = over.reshape([&[length], &vec![1; observation.rank() - 1][..]].concat());
        shown = select(mask.broadcast_to(shown.shape()), shown, earlier);
        stacked.push(shown);
        over = over | first.slice_axis(0, from..from + length);
    }
    stacked.reverse();
    if image { concatenate(&stacked, -1) } else { stack(&stacked, 1) }
}
