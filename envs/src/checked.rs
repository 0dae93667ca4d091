//! Calls of an environment's functions with their result types checked while tracing, so that a mistake names the line in
//! the environment and not one in a wrapper or loop.

use crate::environment::{Environment, TimeStep};
use crate::space::Space;
use crate::space_tree::spec_of;

use podracer_dsl::prelude::*;
use podracer_dsl::{Loc, fail, report_at};

/// A step of an environment. Results of other types than the environment's spaces and state are errors.
#[track_caller]
pub(crate) fn checked_step<E: Environment>(
    environment: &E,
    state: E::State,
    action: Tensor,
    key: Key,
) -> (E::State, TimeStep<E::Observation>) {
    let before = state.spec();
    let (state, timestep) = environment.step(state, action, key);
    let state = expect_types("step(..).state", state, &before);
    let observed = environment.observe(state.clone());
    let spaces = spec_of::<E::Observation>(&environment.observation_space());
    let _ = expect_types("observe(..)", observed.clone(), &spaces);
    let timestep = TimeStep {
        observation: expect_types("step(..).observation", timestep.observation, &observed.spec()),
        reward: expect_types("step(..).reward", timestep.reward, &f32([])),
        terminated: expect_types("step(..).terminated", timestep.terminated, &bool([])),
        truncated: expect_types("step(..).truncated", timestep.truncated, &bool([])),
    };
    (state, timestep)
}

/// The mask of legal actions in a state: `None`, or bool `[n]` for a discrete action space of `n` values; for a
/// multi-discrete one, of `n` values of all elements together.
#[track_caller]
pub(crate) fn checked_legal_actions<E: Environment>(
    environment: &E,
    state: &E::State,
) -> Option<Tensor> {
    let mask = environment.legal_actions(state)?;
    match environment.action_space() {
        Space::Discrete { n, .. } => Some(expect_types("legal_actions(..)", mask, &bool([n]))),
        Space::MultiDiscrete { counts, .. } => {
            let values = counts.iter().sum::<usize>();
            Some(expect_types("legal_actions(..)", mask, &bool([values])))
        }
        _ => {
            let message = "must be `None`, as the actions are not discrete";
            Some(fail("legal_actions", message, &[mask], mask.ty()))
        }
    }
}

/// Checks the types of the optional results of an environment in a state: the legal actions, the picture and the success.
pub(crate) fn check_optional<E: Environment>(environment: &E, state: &E::State) {
    let _ = checked_legal_actions(environment, state);
    check_render(environment, state);
    let _ = checked_success(environment, state);
}

/// Checks that the picture of a state, if the environment draws one, is u8 `[height, width, 3]`.
fn check_render<E: Environment>(environment: &E, state: &E::State) {
    let Some(picture) = environment.render(state) else { return };
    let shape = picture.shape();
    if picture.dtype() != U8 || shape.len() != 3 || shape[2] != 3 || picture.elements() == 0 {
        let message = format!("the picture must be u8[height,width,3], got {}", picture.ty());
        report_at(Loc::NONE, "render", message, &[picture]);
    }
}

/// The share of the task that is done in a state. Another type than f32 `[]` is an error.
#[track_caller]
pub(crate) fn checked_success<E: Environment>(environment: &E, state: &E::State) -> Option<Tensor> {
    let success = environment.success(state)?;
    Some(expect_types("success(..)", success, &f32([])))
}

/// The first state of the episode after `finished`. Other types than those of `finished` are errors.
#[track_caller]
pub(crate) fn checked_next_episode<E: Environment>(
    environment: &E,
    finished: E::State,
    key: Key,
) -> E::State {
    let before = finished.spec();
    let first = environment.next_episode(finished, key);
    expect_types("next_episode(..)", first, &before)
}
