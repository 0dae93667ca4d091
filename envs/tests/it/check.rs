//! Environments keep their word, and those that do not are told.

use podracer_dsl::prelude::*;
use podracer_envs::{
    CartPole, Catch, Environment, GridWorld, MemoryChain, Pendulum, Space, TimeStep,
    check_environment,
};

#[test]
fn every_environment_and_wrapper_keeps_its_word() {
    fn check<E: Environment>(env: E) {
        check_environment(&env).unwrap_or_else(|error| panic!("{error}"));
        let wrapped = env.clone().time_limit(7).with_statistics().auto_reset();
        check_environment(&wrapped).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(wrapped.observation_space(), env.observation_space());
        assert_eq!(wrapped.action_space(), env.action_space());
        assert!(wrapped.truncates());
    }
    check(CartPole::default());
    check(Catch::default());
    check(Catch { rows: 2, columns: 1 });
    check(Pendulum::default());
    check(GridWorld::default());
    check(MemoryChain::default());
    check(MemoryChain { length: 1 });
    assert!(!Catch::default().truncates());
    assert!(!Catch::default().with_statistics().auto_reset().truncates());
}

/// Wrong in one way, chosen by `fault`.
#[derive(Clone)]
struct Faulty {
    fault: &'static str,
}

#[derive(Tree, Clone, Copy)]
struct State {
    position: Tensor,
}

impl Environment for Faulty {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        State { position: zeros(F32, [2]) }
    }
    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let position = match self.fault {
            "state" => state.position.sum(),
            "trace" => state.position + zeros(F32, [3]),
            _ => state.position + action.astype(F32),
        };
        let reward = if self.fault == "reward" { state.position } else { state.position.sum() };
        let terminated = if self.fault == "terminated" { scalar(0) } else { constant(false) };
        (
            State { position },
            TimeStep {
                observation: self.observe(state),
                reward,
                terminated,
                truncated: constant(false),
            },
        )
    }
    fn observe(&self, state: State) -> Tensor {
        state.position
    }
    fn observation_space(&self) -> Space {
        if self.fault == "space" { Space::unbounded([3]) } else { Space::unbounded([2]) }
    }
    fn action_space(&self) -> Space {
        Space::discrete(if self.fault == "action" { 0 } else { 2 })
    }
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        match self.fault {
            "mask size" => Some(state.position.gt(0.0).index(0).reshape([1])),
            "mask type" => Some(state.position),
            "mask trace" => Some((state.position + zeros(F32, [3])).gt(0.0)),
            _ => Some(state.position.gt(0.0)),
        }
    }
    fn truncates(&self) -> bool {
        false
    }
}

#[track_caller]
fn told(fault: &'static str, expected: &str) {
    let error = check_environment(&Faulty { fault }).expect_err("it is faulty").to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_faulty_environment_is_told_what_is_wrong() {
    check_environment(&Faulty { fault: "none" }).expect("it is right");
    told("state", "`state after step.position`: expected f32[2], got f32[]");
    told("reward", "`timestep.reward`: expected f32[], got f32[2]");
    told("terminated", "`timestep.terminated`: expected bool[], got i32[]");
    told("space", "expected f32[3], got f32[2]");
    told("action", "`action_space`: a discrete space needs at least one value");
    told("mask size", "`legal_actions`: expected bool[2], got bool[1]");
    told("mask type", "`legal_actions`: expected bool[2], got f32[2]");
    told("mask trace", "`legal_actions` does not trace");
    told("trace", "`step` does not trace");
    told("trace", "f32[2] and f32[3] do not broadcast");
}
