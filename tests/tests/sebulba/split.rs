//! Gradient steps on a split batch in the learner equal gradient steps on its parts, one after
//! another.

use podracer_dsl::prelude::*;
use podracer_envs::{CartPole, Environment};
use podracer_rl::agents::{MuZero, PlanExtras};
use podracer_rl::learn::{
    Act, Agent, Axes, Cx, Input, LaneId, Learn, LearnFromReplay, Mode, Rollout, Split, Windows,
    scan_mean,
};
use podracer_runtime::Array;
use podracer_tests::compare::difference;

use super::equality::sebulba;
use crate::loops::{self, Size};

/// Gradient steps of an iteration, each of one lane.
const STEPS: usize = 4;
const SIZE: Size = Size { replicas: 1, environments: STEPS, unroll: 6, iterations: 3 };

/// MuZero that takes a gradient step from one lane after another, each taken by its number.
#[derive(Clone)]
struct OneByOne {
    agent: MuZero,
    /// The lanes, in the order of learning.
    lanes: [usize; STEPS],
}

impl Agent for OneByOne {
    type Observation = Tensor;
    type Params = <MuZero as Agent>::Params;
    type Memory = <MuZero as Agent>::Memory;
    type Extras = PlanExtras;

    fn init_memory(&self, lane: LaneId) -> Self::Memory {
        self.agent.init_memory(lane)
    }

    fn begin_episode(&self, memory: Self::Memory) -> Self::Memory {
        self.agent.begin_episode(memory)
    }

    fn act(
        &self,
        params: &Self::Params,
        memory: Self::Memory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<Self::Memory, PlanExtras> {
        self.agent.act(params, memory, input, mode, key)
    }
}

impl Learn for OneByOne {
    type State = <MuZero as LearnFromReplay>::State;
    type Store = ();
    type Metrics = <MuZero as LearnFromReplay>::Metrics;

    fn init(&self, key: Key) -> Self::State {
        LearnFromReplay::init(&self.agent, key)
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> Self::Params {
        LearnFromReplay::params(&self.agent, state)
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), Self::Metrics) {
        let (steps, ()) = self.agent.keep(rollout);
        let order = self.lanes.map(|lane| lane as i32);
        let (state, metrics) = scan_mean(state, STEPS, |state, group| {
            let lane = constant(order).at(group);
            let steps = tree_map(&steps, |leaf| leaf.take(lane, 1).expand_dims(1));
            let windows = Windows { steps, starts: (), weights: ones(F32, [1]) };
            let cx = Cx { key: cx.key.fold_in(group), ..cx.clone() };
            let (state, _, metrics) = self.agent.gradient_step(state, windows, &cx);
            (state, metrics)
        });
        (state, (), metrics)
    }
}

/// Two actor threads have half of the lanes each.
#[test]
fn gradient_steps_on_a_split_batch_are_steps_on_its_lanes_to_the_bit() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = MuZero {
        observation: environment.observation_space(),
        actions: 2,
        players: 1,
        iterations: 3,
        settings: loops::muzero_settings(STEPS),
    };
    let split = Split { agent: agent.clone(), gradient_steps: STEPS };
    let (split, _) = sebulba(&environment, &split, SIZE, 2);
    let one_by_one = |lanes| {
        let agent = OneByOne { agent: agent.clone(), lanes };
        sebulba(&environment, &agent, SIZE, 2).0
    };
    let far = |other: &[(String, Array)]| -> Vec<String> {
        let pairs = split.iter().zip(other);
        pairs
            .filter_map(|((path, a), (_, b))| Some(format!("{path}: {}", difference(a, b, 0.0)?)))
            .collect()
    };
    assert_eq!(far(&one_by_one([0, 1, 2, 3])), Vec::<String>::new());
    // Another order of the steps gives other parameters.
    assert!(!far(&one_by_one([3, 1, 2, 0])).is_empty());
}
