//! Stacks of an agent's last observations: its memory keeps the previous frames, so that a replay
//! keeps each frame only once.

use crate::replay::stack_frames;
use podracer_dsl::prelude::*;
use podracer_envs::Space;

/// The `frames - 1` observations before the present one, oldest first, in an agent's memory of one
/// lane. `None` without stacking. `[frames - 1, ..]` of the observations' type.
pub type FrameMemory = Option<Tensor>;

/// The frames of a lane before its first step: zeros, which the first step of the first episode
/// does not show.
pub fn no_frames(observation: &Space, frames: usize) -> FrameMemory {
    let ty = observation.ty();
    let shape = [&[frames.saturating_sub(1)], &ty.shape[..]].concat();
    (frames > 1).then(|| zeros(ty.dtype, shape))
}

/// The present observation joined with the frames before it, the newest last, and the memory for
/// the next step. If `first` (bool `[]`) is true, the stack consists of copies of the observation,
/// which is the first of its episode.
///
/// The environments' wrapper `FrameStack` makes the same stack. Images `[height, width, channels]`
/// are concatenated along their channels, other observations get a leading axis `[frames, ..]`.
/// Without frames to stack, the result is the observation.
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

/// The stacks for every step of a window of one lane, `[L, ..]`, as from [`stack_frame`]. `before`
/// is the memory at the window's start, `observation` `[L, ..]` has its observations, and `first`,
/// bool `[L]`, is true where an episode begins.
#[track_caller]
pub fn stack_window(before: FrameMemory, observation: Tensor, first: Tensor) -> Tensor {
    let Some(before) = before else {
        return observation;
    };
    let frames = before.len() + 1;
    // If an episode began within the memory's frames, the memory already holds copies.
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
        // Networks do not read the bounds.
        _ => Space::unbounded(shape),
    }
}
