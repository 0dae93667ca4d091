//! Frame stacks: observations that show the last few steps.

use crate::checked::checked_step;
use crate::environment::{Environment, TimeStep};
use crate::forward;
use crate::space::{Bounds, Space};
use crate::space_tree::{InSpace, Spaces, leaf_spaces};
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

    /// For each leaf of an observation: true if it is an image, whose frames are joined in the last axis.
    fn images(&self) -> impl Iterator<Item = bool> + use<E> {
        let spaces = leaf_spaces::<E::Observation>(&self.environment.observation_space());
        spaces
            .into_iter()
            .map(|(_, space)| matches!(space, Space::Pixels { shape } if shape.len() == 3))
    }

    fn first(&self, environment: E::State) -> FrameStackState<E::State, E::Observation> {
        let observation = self.environment.observe(environment.clone());
        let mut images = self.images();
        let frames = tree_map(&observation, |leaf| {
            let ty = leaf.ty();
            if images.next() == Some(true) {
                return leaf.tile(self.frames, -1);
            }
            leaf.expand_dims(0).broadcast_to([&[self.frames], &ty.shape[..]].concat())
        });
        FrameStackState { environment, frames }
    }

    /// The frames without the oldest, and the new observation behind them.
    fn pushed(&self, frames: &E::Observation, observation: &E::Observation) -> E::Observation {
        let mut new = observation.leaves().into_iter().zip(self.images());
        tree_map(frames, |old| {
            let Some((leaf, image)) = new.next() else {
                return old;
            };
            if image {
                return concatenate(&[old.slice_axis(-1, leaf.shape()[2]..), leaf], -1);
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
        for (path, space) in leaf_spaces::<E::Observation>(&self.environment.observation_space()) {
            if matches!(space, Space::Discrete { .. } | Space::MultiDiscrete { .. }) {
                let name = path.under("observation");
                let message = format!(
                    "expected observations that are arrays of numbers, and `{name}` is discrete: make it `one_hot` first"
                );
                report_at(self.made, "frame_stack", message, &[]);
            }
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

    fn observation_space(&self) -> Spaces<E::Observation> {
        let repeated = |bounds: Bounds| match bounds {
            Bounds::Each(each) => Bounds::Each(each.repeat(self.frames)),
            shared => shared,
        };
        let mut stacked = |space: &Space| match space.clone() {
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
        };
        let spaces = self.environment.observation_space();
        E::Observation::convert::<InSpace, InSpace>(&spaces, &mut stacked)
    }

    forward!(environment, |state| &state.environment, except observation_space);

    fn next_episode(&self, finished: Self::State, key: Key) -> Self::State {
        self.first(self.environment.next_episode(finished.environment, key))
    }
}
