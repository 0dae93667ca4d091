//! Erased environments: programs through them equal the concrete environments' programs.

use podracer_dsl::prelude::*;
use podracer_envs::{AnyEnvironment, Environment, Space, TimeStep, check_environment};

/// A batch of rollouts that uses every function of an environment, as text: its operations, arguments and results.
fn program<E: Environment<Observation = Tensor>>(env: &E) -> String {
    let actions = env.action_space();
    let traced = trace((key(), bool([])), |(key, flag)| {
        vmap(key.split_n(3), |key| {
            let (reset, steps) = key.split();
            let first = env.initial_state(reset);
            scan(first, steps.split_n(5), |state, key| {
                let (action_key, key) = key.split();
                let (step_key, next_key) = key.split();
                let action = actions.sample(action_key);
                let legal = env.legal_actions(&state);
                let seen = env.observe(state.clone());
                let (state, timestep) = env.step(state, action, step_key);
                let next = env.next_episode(state.clone(), next_key);
                (tree_select(flag, &next, &state), (timestep, seen, legal))
            })
        })
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    format!("{traced}\n{:?}\n{:?}", traced.arguments(), traced.results())
}

fn check<E: Environment<Observation = Tensor>>(env: E) {
    let any = AnyEnvironment::new(env.clone());
    check_environment(&any).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(any.truncates(), env.truncates());
    assert_eq!(program(&any), program(&env));
    let wrapped = env.time_limit(7).with_statistics().auto_reset();
    let expected = program(&wrapped);
    assert_eq!(program(&AnyEnvironment::new(wrapped)), expected);
    let wrapped = any.time_limit(7).with_statistics().auto_reset();
    check_environment(&wrapped).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(program(&wrapped), expected);
}

#[test]
fn programs_are_those_of_the_concrete_environments() {
    every_environment!(check);
    check(Masked);
}

/// Allows each action once, in any order; ends when none is left.
#[derive(Clone)]
struct Masked;

impl Environment for Masked {
    type State = Tensor;
    type Observation = Tensor;

    fn initial_state(&self, _: Key) -> Tensor {
        full([4], true)
    }
    fn step(&self, left: Tensor, action: Tensor, _: Key) -> (Tensor, TimeStep) {
        let left = left & arange(4).ne(action);
        let ended = !left.astype(I32).sum().gt(0);
        (left, TimeStep::new(self.observe(left), scalar(1.0), ended))
    }
    fn observe(&self, left: Tensor) -> Tensor {
        left.astype(F32)
    }
    fn observation_space(&self) -> Space {
        Space::bounded([4], 0.0, 1.0)
    }
    fn action_space(&self) -> Space {
        Space::discrete(4)
    }
    fn legal_actions(&self, left: &Tensor) -> Option<Tensor> {
        Some(*left)
    }
    fn truncates(&self) -> bool {
        false
    }
}
