//! Pictures of states.

use podracer_dsl::prelude::*;
use podracer_envs::{AnyEnvironment, Environment};

use crate::run::run;

/// The picture after some actions from the first state of key 0.
fn after<E: Environment<Observation = Tensor>>(env: E, actions: &[i32]) -> Array {
    let mut results = run((), &[], |()| {
        let first = env.initial_state(Key::new(0u32));
        let state = actions.iter().enumerate().fold(first, |state, (step, &action)| {
            let action = match &env.action_space().shape()[..] {
                [] => scalar(action),
                shape => full(shape.to_vec(), action as f32).astype(env.action_space().ty().dtype),
            };
            env.step(state, action, Key::new(step as u32 + 1)).0
        });
        env.render(&state).expect("it draws")
    });
    results.remove(0)
}

#[test]
fn every_environment_draws_what_any_environment_draws() {
    fn check<E: Environment<Observation = Tensor>>(env: E) {
        assert_eq!(after(AnyEnvironment::new(env.clone()), &[1, 0]), after(env.clone(), &[1, 0]));
        let wrapped = env.clone().time_limit(9).scale_reward(2.0).with_statistics().auto_reset();
        let pictures = [after(env, &[]), after(wrapped, &[])];
        assert_eq!(pictures[0], pictures[1]);
    }
    every_environment!(check);
}
