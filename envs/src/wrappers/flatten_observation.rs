//! Observations of several leaves as one vector.

use crate::checked::checked_step;
use crate::environment::{Environment, TimeStep};
use crate::forward;
use crate::space::{Bounds, Space};
use crate::space_tree::{InSpace, Spaces, leaf_spaces};
use podracer_dsl::prelude::*;
use std::any::Any;
use std::fmt::Display;

/// Shows an observation of several leaves as one vector f32 `[n]`, which the built-in networks read: the leaves one behind
/// the other, in the tree's order. A box is flattened, a discrete value is one-hot, so is each element of a multi-discrete one,
/// and an image is scaled to `[0, 1]`. Gymnasium's `FlattenObservation`, which leaves images unscaled.
///
/// An observation that is a single tensor stays as it is.
#[derive(Clone, Debug)]
pub struct FlattenObservation<E> {
    environment: E,
}

impl<E: Environment> FlattenObservation<E> {
    /// Wraps an environment.
    pub fn new(environment: E) -> Self {
        FlattenObservation { environment }
    }

    fn spaces(&self) -> Vec<(Path, Space)> {
        leaf_spaces::<E::Observation>(&self.environment.observation_space())
    }

    #[track_caller]
    fn flat(&self, observation: &E::Observation) -> Tensor {
        let (spaces, leaves) = (self.spaces(), observation.leaves());
        if is_tensor(&spaces) {
            return leaves[0];
        }
        let flat = leaves.into_iter().zip(&spaces).map(|(leaf, (_, space))| space.flatten(leaf));
        concatenate(&flat.collect::<Vec<_>>(), 0)
    }
}

/// True for the spaces of an observation that is a single tensor.
fn is_tensor(spaces: &[(Path, Space)]) -> bool {
    matches!(spaces, [(path, _)] if path.0.is_empty())
}

/// The tree of which [`FlattenObservation`] makes the vector `flat`, f32 `[n]`: discrete values as i32 again, boxes in their shapes, images
/// as u8. An observation that is a single tensor stays as it is.
///
/// # Errors
/// Reported to the trace: a vector of another length.
#[track_caller]
pub fn unflatten<O: Tree>(flat: Tensor, spaces: &Spaces<O>) -> O {
    let leaves = leaf_spaces::<O>(spaces);
    if is_tensor(&leaves) {
        return O::from_kind::<InSpace>(spaces, &mut |_| flat);
    }
    let width = leaves.iter().map(|(_, space)| space.flatdim()).sum::<usize>();
    let flat = expect_types("unflatten(..)", flat, &f32([width]));
    let mut begin = 0;
    O::from_kind::<InSpace>(spaces, &mut |space| {
        let part = begin..begin + space.flatdim();
        begin = part.end;
        space.unflatten(flat.slice_axis(0, part))
    })
}

/// The space of the vector that leaves of these spaces make, by their key paths. Its description says which elements are whose:
/// `position 0..2, holds 2..5`.
pub fn flat_space<P: Display>(leaves: &[(P, Space)]) -> Space {
    let (mut low, mut high, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (name, space) in leaves {
        let begin = low.len();
        match space {
            Space::Box { .. } => {
                let (least, greatest) = space.all_bounds();
                low.extend(least);
                high.extend(greatest);
            }
            unit => {
                low.resize(begin + unit.flatdim(), 0.0);
                high.resize(begin + unit.flatdim(), 1.0);
            }
        }
        // An observation that is a single leaf has no name.
        parts.push(format!("{name} {begin}..{}", low.len()).trim_start().to_owned());
    }
    Space::Box {
        shape: vec![low.len()],
        low: Bounds::Each(low),
        high: Bounds::Each(high),
        description: parts.join(", "),
    }
}

impl<E: Environment> Environment for FlattenObservation<E> {
    type State = E::State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> E::State {
        self.environment.initial_state(key)
    }

    fn step(&self, state: E::State, action: Tensor, key: Key) -> (E::State, TimeStep) {
        let (state, timestep) = checked_step(&self.environment, state, action, key);
        let TimeStep { reward, terminated, truncated, .. } = timestep;
        let observation = self.flat(&timestep.observation);
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    fn observe(&self, state: E::State) -> Tensor {
        self.flat(&self.environment.observe(state))
    }

    fn observation_space(&self) -> Space {
        let mut spaces = self.spaces();
        if is_tensor(&spaces) {
            return spaces.remove(0).1;
        }
        flat_space(&spaces)
    }

    forward!(environment, |state| state, except observation_space);

    fn state_of(&self, observation: Tensor) -> Option<E::State> {
        // An observation that is a single tensor is the environment's own.
        let own = (&observation as &dyn Any).downcast_ref::<E::Observation>()?;
        self.environment.state_of(own.clone())
    }

    fn next_episode(&self, finished: E::State, key: Key) -> E::State {
        self.environment.next_episode(finished, key)
    }
}
