//! Stacks of an agent's last observations: its memory keeps the frames before the present one, so that a replay need keep
//! each frame once.

use crate::replay::stack_frames;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The `frames - 1` observations before the present one, oldest first, in an agent's memory of one lane. `None` where
/// nothing is stacked. `[frames - 1, ..]` of the observations' type.
pub type FrameMemory = Option<Tensor>;

/// The frames of a lane that has seen nothing: zeros, which the first step of the first episode does not show.
pub fn no_frames(observation: &Space, frames: usize) -> FrameMemory {
    let ty = observation.ty();
    let shape = [&[frames.saturating_sub(1)], &ty.shape[..]].concat();
    (frames > 1).then(|| zeros(ty.dtype, shape))
}

/// The present observation joined with the ones before it, the newest last, and the memory for the next step. An episode
/// begins with copies of its first observation, where `first` (bool `[]`) is true.
///
/// The stack is that of the environments' wrapper `FrameStack`: images `[height, width, channels]` are joined in their
/// channels, other observations get a leading axis `[frames, ..]`. Without frames to stack, it is the observation.
#[track_caller]
pub fn stack_frame(
    before: FrameMemory,
    observation: Tensor,
    first: Tensor,
) -> (Tensor, FrameMemory) {
    let Some(before) = before else {
        return (observation, None);
    };
    let frames = before.len() + 1;
    let newest = observation.expand_dims(0);
    let all = concatenate(&[before, newest], 0);
    let begun = newest.broadcast_to(all.shape());
    let all = select(first, begun, all);
    let stacked = stack_frames(all, zeros(BOOL, [frames]), frames).index(0);
    (stacked, Some(all.slice(1..)))
}

/// The stacks of all steps of a window of one lane, `[L, ..]` as [`stack_frame`] gives them: `before` is the memory at the
/// window's start, `observation` `[L, ..]` its observations, and `first`, bool `[L]`, true where an episode begins.
#[track_caller]
pub fn stack_window(before: FrameMemory, observation: Tensor, first: Tensor) -> Tensor {
    let Some(before) = before else {
        return observation;
    };
    let frames = before.len() + 1;
    // The memory has copies already where an episode began within it.
    let first = concatenate(&[zeros(BOOL, [frames - 1]), first], 0);
    stack_frames(concatenate(&[before, observation], 0), first, frames)
}

/// The space of stacked observations.
pub fn stacked_space(observation: &Space, frames: usize) -> Space {
    if frames <= 1 {
        return observation.clone();
    }
    let mut shape = observation.shape();
    match shape.len() {
        3 => shape[2] *= frames,
        _ => shape.insert(0, frames),
    }
    match observation {
        Space::Pixels { .. } => Space::Pixels { shape },
        // Networks read no bounds.
        _ => Space::unbounded(shape),
    }
}
