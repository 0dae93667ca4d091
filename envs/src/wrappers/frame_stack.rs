//! Frame stacks: observations that show the last few steps.

use crate::checked::checked_step;
use crate::environment::{Environment, TimeStep};
use crate::space::{Bounds, Space};
use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, report_at};

/// Shows the last `frames` observations as one, the newest last; an episode begins with copies of its first observation.
/// Arrays get a new first axis `[frames, ..]`, as in gymnasium's `FrameStackObservation`. Images `[height, width, channels]`
/// are joined in their channels, which networks read.
#[derive(Clone, Debug)]
pub struct FrameStack<E> {
    environment: E,
    frames: usize,
    /// The line that made the wrapper.
    made: Loc,
}

/// The state of a [`FrameStack`].
#[derive(Tree, Clone, Copy)]
pub struct FrameStackState<S: Tree, O: Tree> {
    /// State of the wrapped environment.
    pub environment: S,
    /// The last observations as one, the newest last.
    pub frames: O,
}

impl<E: Environment> FrameStack<E> {
    /// Wraps an environment.
    #[track_caller]
    pub fn new(environment: E, frames: usize) -> Self {
        FrameStack { environment, frames, made: Loc::caller() }
    }

    /// True if a leaf of an observation is an image, whose frames are joined in the last axis.
    fn is_image(&self, leaf: &TensorType) -> bool {
        let space = self.environment.observation_space();
        matches!(space, Space::Pixels { .. }) && leaf.dtype == U8 && leaf.rank() == 3
    }

    fn first(&self, environment: E::State) -> FrameStackState<E::State, E::Observation> {
        let observation = self.environment.observe(environment.clone());
        let frames = tree_map(&observation, |leaf| {
            let ty = leaf.ty();
            if self.is_image(&ty) {
                return leaf.tile(self.frames, -1);
            }
            leaf.expand_dims(0).broadcast_to([&[self.frames], &ty.shape[..]].concat())
        });
        FrameStackState { environment, frames }
    }

    /// The frames without the oldest, and the new observation behind them.
    fn pushed(&self, frames: &E::Observation, observation: &E::Observation) -> E::Observation {
        let mut new = observation.leaves().into_iter();
        tree_map(frames, |old| {
            let Some(leaf) = new.next() else {
                return old;
            };
            let ty = leaf.ty();
            if self.is_image(&ty) {
                return concatenate(&[old.slice_axis(-1, ty.shape[2]..), leaf], -1);
            }
            concatenate(&[old.slice_axis(0, 1..), leaf.expand_dims(0)], 0)
        })
    }
}

impl<E: Environment> Environment for FrameStack<E> {
    type State = FrameStackState<E::State, E::Observation>;
    type Observation = E::Observation;

    fn initial_state(&self, key: Key) -> Self::State {
        if self.frames == 0 {
            report_at(self.made, "frame_stack", "expected at least one frame, got 0", &[]);
        }
        if let Space::Discrete { n } = self.environment.observation_space() {
            let message = format!(
                "expected observations that are arrays, got one of {n} numbers: make them `one_hot` first"
            );
            report_at(self.made, "frame_stack", message, &[]);
        }
        self.first(self.environment.initial_state(key))
    }

    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<E::Observation>) {
        let (environment, timestep) =
            checked_step(&self.environment, state.environment, action, key);
        let frames = self.pushed(&state.frames, &timestep.observation);
        let timestep = TimeStep { observation: frames.clone(), ..timestep };
        (FrameStackState { environment, frames }, timestep)
    }

    fn observe(&self, state: Self::State) -> E::Observation {
        state.frames
    }

    fn observation_space(&self) -> Space {
        let repeated = |bounds: Bounds| match bounds {
            Bounds::Each(each) => Bounds::Each(each.repeat(self.frames)),
            shared => shared,
        };
        match self.environment.observation_space() {
            Space::Box { shape, low, high, description } => Space::Box {
                shape: [&[self.frames], &shape[..]].concat(),
                low: repeated(low),
                high: repeated(high),
                description,
            },
            Space::Pixels { mut shape } => {
                if let Some(channels) = shape.last_mut() {
                    *channels *= self.frames;
                }
                Space::Pixels { shape }
            }
            discrete => discrete,
        }
    }

    forward!(action_space, truncates, resets, legal_actions, render);

    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        self.first(self.environment.next_episode(finished.environment, key))
    }
}
