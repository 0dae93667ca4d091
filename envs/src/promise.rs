//! What an environment promises, checked where it is traced: a wrapper's or a loop's own mistake is far from the line that a
//! user has to mend.

use crate::environment::{Environment, TimeStep};
use podracer_dsl::prelude::*;

/// A step of an environment. What it gives must have the types that it promises: a mistake names the line that made it.
#[track_caller]
pub(crate) fn promised_step<E: Environment>(
    environment: &E,
    state: E::State,
    action: Tensor,
    key: Key,
) -> (E::State, TimeStep<E::Observation>) {
    let before = state.spec();
    let (state, timestep) = environment.step(state, action, key);
    let state = expect_types("step(..).state", state, &before);
    let observed = environment.observe(state.clone());
    if let Some(&first) = observed.leaves().first() {
        let space = Spec::<Tensor>(environment.observation_space().ty());
        let _ = expect_types("observe(..)", first, &space);
    }
    let timestep = TimeStep {
        observation: expect_types("step(..).observation", timestep.observation, &observed.spec()),
        reward: expect_types("step(..).reward", timestep.reward, &f32([])),
        terminated: expect_types("step(..).terminated", timestep.terminated, &bool([])),
        truncated: expect_types("step(..).truncated", timestep.truncated, &bool([])),
    };
    (state, timestep)
}

/// The first state of the episode after `finished`, of the same types.
#[track_caller]
pub(crate) fn promised_episode<E: Environment>(
    environment: &E,
    finished: E::State,
    key: Key,
) -> E::State {
    let before = finished.spec();
    let first = environment.next_episode(finished, key);
    expect_types("next_episode(..)", first, &before)
}
