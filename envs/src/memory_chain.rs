//! The memory chain: a cue at the beginning of an episode is the right answer at its end.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, "memory length", with one bit to remember.

use crate::environment::{Environment, TimeStep};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Remember a cue that is seen in the first step only. `length` steps later the action is the answer: the episode is
/// terminated, and pays 1 if the action names the cue and -1 otherwise. An agent without memory gets 0 on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryChain {
    /// Steps from the cue to the answer.
    #[schemars(range(min = 1))]
    pub length: usize,
}

/// A length of ten steps.
impl Default for MemoryChain {
    fn default() -> Self {
        MemoryChain { length: 10 }
    }
}

/// The cue and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The right answer, 0 or 1. `i32[]`
    pub cue: Tensor,
    /// Steps since the cue was seen. `i32[]`
    pub time: Tensor,
}

impl Environment for MemoryChain {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        State { cue: key.randint([], 0..2), time: scalar(0) }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let terminated = state.time.ge(self.length as i32);
        let answer = select(action.eq(state.cue), 1.0, -1.0);
        let reward = select(terminated, answer, 0.0);
        let state = State { time: state.time + 1, ..state };
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The fraction of time that is left, and the cue: -1 or 1 in the first step, 0 later. `f32[2]`
    fn observe(&self, state: State) -> Tensor {
        let left = 1.0 - state.time.astype(F32) / self.length as f64;
        let cue = select(state.time.eq(0), (2 * state.cue - 1).astype(F32), 0.0);
        stack(&[left, cue], 0)
    }

    fn observation_space(&self) -> Space {
        let beyond = -1.0 / self.length as f64;
        Space::bounded([2], [beyond, -1.0], [1.0, 1.0]).described("time left, cue")
    }

    /// The answer, 0 or 1; ignored before the last step.
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }

    fn truncates(&self) -> bool {
        false
    }
}
