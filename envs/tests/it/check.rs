//! `check_environment` reports environments that break the contract of the trait.

use crate::run::{keys, run};
use podracer_dsl::Loc;
use podracer_dsl::prelude::*;
use podracer_envs::boards::Snake;
use podracer_envs::minatar::{Asterix, Breakout, Seaquest, SpaceInvaders};
use podracer_envs::{
    Catch, DeepSea, Environment, EnvironmentError, MemoryChain, Space, TimeStep, UmbrellaChain,
    check_environment,
};

#[test]
fn every_environment_and_wrapper_keeps_its_word() {
    fn check<E: Environment<Observation = Tensor>>(env: E) {
        check_environment(&env).unwrap_or_else(|error| panic!("{error}"));
        let wrapped = env.clone().time_limit(7).with_statistics().auto_reset();
        check_environment(&wrapped).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(wrapped.observation_space(), env.observation_space());
        assert_eq!(wrapped.action_space(), env.action_space());
        assert!(wrapped.truncates());
    }
    every_environment!(check);
    check(Catch { rows: 2, columns: 1 });
    check(MemoryChain { length: 1, bits: 2 });
    check(DeepSea { size: 2, deterministic: false, ..DeepSea::default() });
    check(UmbrellaChain { length: 1, distractors: 20 });
    check(Asterix { ramping: false, ..Asterix::default() });
    check(Breakout { trail: false, ..Breakout::default() });
    check(Seaquest { ramping: false, ..Seaquest::default() });
    check(SpaceInvaders { ramping: false, ..SpaceInvaders::default() });
    check(Snake { rows: 2, columns: 100, time_limit: 1 });
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
    fn render(&self, state: &State) -> Option<Tensor> {
        match self.fault {
            "picture" => Some(state.position),
            _ => None,
        }
    }
    fn success(&self, state: &State) -> Option<Tensor> {
        (self.fault == "success").then_some(state.position)
    }
    fn truncates(&self) -> bool {
        false
    }
}

#[track_caller]
fn told(fault: &'static str, expected: &str) {
    let environment = Faulty { fault };
    let checked = match fault {
        "time limit" => check_environment(&environment.time_limit(0)),
        "resets" => check_environment(&environment.auto_reset().with_statistics().auto_reset()),
        _ => check_environment(&environment),
    };
    let error =
        match checked.expect_err("it is faulty") {
            EnvironmentError::Trace(errors) => {
                assert!(
                    errors.errors.iter().all(|error| error.loc == Loc::NONE
                        || error.loc.to_string().contains("envs/tests")),
                    "{errors}"
                );
                // The mistakes are a part of the message, not behind it.
                let whole = EnvironmentError::Trace(errors.clone()).to_string();
                assert_eq!(whole, format!("the environment has mistakes:\n{errors}"));
                errors.to_string()
            }
            error => error.to_string(),
        };
    assert!(error.contains(expected), "{error}");
}

#[test]
fn mistakes_of_an_environment_are_reported() {
    check_environment(&Faulty { fault: "none" }).expect("it is right");
    told("state", "`step(..).state.position` must be f32[2], got f32[]");
    told("reward", "`step(..).reward` must be f32[], got f32[2]");
    told("terminated", "`step(..).terminated` must be bool[], got i32[]");
    told("space", "`observe(..)` must be f32[3], got f32[2]");
    told("action", "`action_space` of the environment: a discrete space needs at least one value");
    told("mask size", "`legal_actions(..)` must be bool[2], got bool[1]");
    told("mask type", "`legal_actions(..)` must be bool[2], got f32[2]");
    told("picture", "render: the picture must be u8[height,width,3], got f32[2]");
    told("success", "`success(..)` must be f32[], got f32[2]");
    for fault in ["mask trace", "trace"] {
        told(fault, "f32[2] and f32[3] do not broadcast");
    }
    told("time limit", "an episode has at least one step, got a limit of 0");
    told("resets", "the environment begins the next episode itself");
}

/// Two states with balls in different directions look alike without the trail; everything else is
/// shown.
#[test]
fn breakout_hides_where_the_ball_was() {
    let all = Breakout::default();
    let part = Breakout { trail: false, ..all };
    let results = run(key(), &[keys(1).index_leading(0)], |key| {
        let [begin, step] = key.split_into();
        let (state, _) = all.step(all.initial_state(begin), scalar(0), step);
        let shown = all.observe(state);
        let kept = concatenate(&[shown.slice_axis(2, ..2), shown.slice_axis(2, 3..)], 2);
        (part.observe(state), kept, shown.slice_axis(2, 2..3).sum())
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[2].to_f64(), [1.0]);
}
