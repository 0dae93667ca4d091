//! Checks of an environment against its spaces and its state's types.

use crate::environment::Environment;
use crate::space::{Space, SpaceError};
use podracer_dsl::prelude::*;

/// Mistakes of an environment that [`check_environment`] finds.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// A function of the environment does not trace.
    #[error("`{function}` does not trace:\n{errors}")]
    Trace {
        /// Name of the function.
        function: &'static str,
        /// Mistakes that tracing found.
        errors: TraceErrors,
    },
    /// A space is malformed, or does not fit.
    #[error("`{what}`: {error}")]
    Space {
        /// Name of the space, or of the value that does not fit it.
        what: &'static str,
        /// Mistake in the space, or in the value.
        error: SpaceError,
    },
    /// A value has another type than the environment promises.
    #[error("`{what}`: expected {expected}, got {got}")]
    Type {
        /// Name of the value, with its path in a tree.
        what: String,
        /// Type that the value should have.
        expected: String,
        /// Type that the value has.
        got: String,
    },
}

fn same<T: Tree>(what: &str, expected: &Spec<T>, got: &Spec<T>) -> Result<(), EnvironmentError> {
    if expected == got {
        return Ok(());
    }
    let (expected, got) = (expected.leaves(), got.leaves());
    // Name the first leaf that differs; with other structures, the whole.
    match expected.iter().zip(&got).find(|(a, b)| a != b) {
        Some(((path, expected), (_, got))) => Err(wrong(path.under(what), expected, got)),
        None => Err(EnvironmentError::Type {
            what: what.to_string(),
            expected: format!("{} leaves", expected.len()),
            got: format!("{} leaves", got.len()),
        }),
    }
}

fn wrong(what: impl Into<String>, expected: &TensorType, got: &TensorType) -> EnvironmentError {
    EnvironmentError::Type {
        what: what.into(),
        expected: expected.to_string(),
        got: got.to_string(),
    }
}

/// Checks that an environment's functions trace, that `step` gives back the type of state that it got, that observation,
/// reward, `terminated`, `truncated` and the mask of legal actions have the types that they should, and that the spaces
/// are well formed. Traces only: nothing runs.
///
/// # Errors
/// The first mistake that it finds.
pub fn check_environment<E: Environment>(env: &E) -> Result<(), EnvironmentError> {
    let (observations, actions) = (env.observation_space(), env.action_space());
    for (what, space) in [("observation_space", &observations), ("action_space", &actions)] {
        space.validate().map_err(|error| EnvironmentError::Space { what, error })?;
    }
    let traced = |function| move |errors| EnvironmentError::Trace { function, errors };
    let state = eval_shape(key(), |key| env.initial_state(key)).map_err(traced("initial_state"))?;
    let observation = eval_shape(&state, |state| env.observe(state)).map_err(traced("observe"))?;
    let stepped = eval_shape((&state, actions.ty(), key()), |(state, action, key)| {
        let (state, timestep) = env.step(state, action, key);
        (state, (timestep.observation, timestep.reward), (timestep.terminated, timestep.truncated))
    });
    let stepped = stepped.map_err(traced("step"))?;
    let next = eval_shape((&state, key()), |(state, key)| env.next_episode(state, key))
        .map_err(traced("next_episode"))?;
    same("next_episode", &state, &next)?;
    let (next, shown, ends) = &*stepped;
    let ((shown, reward), (terminated, truncated)) = (&**shown, &**ends);
    same("state after step", &state, next)?;
    same("timestep.observation", &observation, shown)?;
    for (what, expected, got) in
        [("reward", F32, reward), ("terminated", BOOL, terminated), ("truncated", BOOL, truncated)]
    {
        let expected = TensorType::scalar(expected);
        if **got != expected {
            return Err(wrong(format!("timestep.{what}"), &expected, got));
        }
    }
    let mask =
        eval_shape(&state, |state| env.legal_actions(&state)).map_err(traced("legal_actions"))?;
    check_legal_actions(&actions, &mask)?;
    check_observation(&observations, &observation)
}

fn check_legal_actions(space: &Space, mask: &Spec<Option<Tensor>>) -> Result<(), EnvironmentError> {
    let Some((_, got)) = mask.leaves().into_iter().next() else { return Ok(()) };
    match space {
        Space::Discrete { n } => {
            let expected = TensorType::new(BOOL, [*n]);
            if got == expected { Ok(()) } else { Err(wrong("legal_actions", &expected, &got)) }
        }
        _ => Err(EnvironmentError::Type {
            what: "legal_actions".to_owned(),
            expected: "None, as the actions are not discrete".to_owned(),
            got: got.to_string(),
        }),
    }
}

fn check_observation<O: Tree>(
    space: &Space,
    observation: &Spec<O>,
) -> Result<(), EnvironmentError> {
    match observation.leaves().first() {
        Some((_, ty)) => space.check_type(ty).map_err(|error| EnvironmentError::Space {
            what: "observation beside observation_space",
            error,
        }),
        None => Ok(()),
    }
}
