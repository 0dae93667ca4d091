//! The check of an environment against its spaces and its state's types.

use crate::checked::{check_optional, checked_next_episode, checked_step};
use crate::environment::Environment;
use crate::space::{Space, SpaceError};
use crate::space_tree::leaf_spaces;
use podracer_dsl::prelude::*;

/// Mistakes of an environment that [`check_environment`] finds.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A malformed space.
    #[error("`{space}` of the environment: {error}")]
    Space {
        /// The method with the space, `observation_space` or `action_space`, with the leaf's key
        /// path in a tree: `observation_space.position`.
        space: String,
        /// The mistake in the space.
        error: SpaceError,
    },
    /// Mistakes in the other methods: results with wrong types, and mistakes found by tracing.
    #[error("the environment has mistakes:\n{0}")]
    Trace(TraceErrors),
}

/// Checks that an environment's spaces are well formed, that its methods trace, and that their
/// results have the types of its spaces and its initial state. Nothing runs.
///
/// # Errors
/// [`EnvironmentError::Space`] for the first malformed space, [`EnvironmentError::Trace`] with all other mistakes.
pub fn check_environment<E: Environment>(env: &E) -> Result<(), EnvironmentError> {
    let actions = env.action_space();
    let observations = leaf_spaces::<E::Observation>(&env.observation_space());
    let named = observations.iter().map(|(path, space)| (path.under("observation_space"), space));
    for (space, value) in named {
        value.validate().map_err(|error| EnvironmentError::Space { space, error })?;
    }
    let space = || "action_space".to_owned();
    actions.validate_action().map_err(|error| EnvironmentError::Space { space: space(), error })?;
    for (path, space) in &observations {
        if matches!(space, Space::Dict { .. }) {
            let space = path.under("observation_space");
            return Err(EnvironmentError::Space { space, error: SpaceError::Observed });
        }
    }
    let checked = eval_shape((key(), key(), key(), actions.ty()), |(first, step, next, action)| {
        let state = env.initial_state(first);
        check_optional(env, &state);
        let (state, _) = checked_step(env, state, action, step);
        checked_next_episode(env, state, next)
    });
    checked.map(drop).map_err(EnvironmentError::Trace)
}
