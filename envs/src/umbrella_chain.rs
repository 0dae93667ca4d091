//! The umbrella chain: the first action determines the last reward, and noise in between hides the
//! connection.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, "umbrella". Keys and
//! values equal those in gymnax's `UmbrellaChain-bsuite`.

use crate::environment::{Environment, TimeStep};
use crate::render::{Colour, Pixels};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A chain with a first action that takes an umbrella or not; later actions change nothing. The
/// step after which `length` steps are taken pays 1 if the umbrella is taken exactly when it is
/// needed, and -1 otherwise, and terminates the episode. The steps before pay 1 or -1 at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UmbrellaChain {
    /// Steps of an episode.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub length: usize,
    /// Number of elements of the observation that are drawn in each step and are meaningless.
    #[schemars(range(max = 65_536))]
    pub distractors: usize,
}

/// Ten steps, no distractors.
impl Default for UmbrellaChain {
    fn default() -> Self {
        UmbrellaChain { length: 10, distractors: 0 }
    }
}

/// The forecast, the umbrella, and the distractors.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// 1 if the umbrella is needed, 0 otherwise. `i32[]`
    pub need: Tensor,
    /// 1 if the umbrella was taken, 0 otherwise. `i32[]`
    pub has: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
    /// Random elements of the observation. bool `[distractors]`
    pub distractors: Tensor,
}

impl Environment for UmbrellaChain {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let [need, has, distractors] = key.split_into();
        State {
            need: need.bernoulli([], 0.5).astype(I32),
            has: has.bernoulli([], 0.5).astype(I32),
            time: scalar(0),
            distractors: distractors.bernoulli([self.distractors], 0.5),
        }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let (noise, distractors) = key.split();
        let has = select(state.time.eq(0), action, state.has);
        let time = state.time + 1;
        let terminated = time.ge(self.length);
        let at_end = select(has.eq(state.need), 1.0, -1.0);
        let on_the_way = select(noise.bernoulli([], 0.5), 1.0, -1.0);
        let reward = select(terminated, at_end, on_the_way);
        let distractors = distractors.bernoulli([self.distractors], 0.5);
        let state = State { has, time, distractors, ..state };
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// Need, umbrella, the remaining fraction of time, and the distractors. `f32[3 + distractors]`
    fn observe(&self, state: State) -> Tensor {
        let left = 1.0 - state.time.astype(F32) / self.length as f64;
        let known = stack(&[state.need.astype(F32), state.has.astype(F32), left], 0);
        match self.distractors {
            0 => known,
            _ => concatenate(&[known, state.distractors.astype(F32)], 0),
        }
    }

    fn observation_space(&self) -> Space {
        Space::bounded([3 + self.distractors], 0.0, 1.0)
            .described("umbrella needed, umbrella taken, time left, distractors")
    }

    /// 1 takes the umbrella, 0 leaves it; only in the first step.
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }

    fn truncates(&self) -> bool {
        false
    }

    /// The path with the walker on it; above it rain or sun, below it the umbrella.
    fn render(&self, state: &State) -> Option<Tensor> {
        let canvas = Pixels::board(3, self.length + 1);
        let above = canvas.rows().lt(1.0);
        let below = canvas.rows().gt(2.0);
        let ground = !above & !below;
        Some(
            canvas
                .paint(above & state.need.eq(1), Colour::BLUE)
                .paint(above & state.need.eq(0), Colour::YELLOW)
                .paint(ground, Colour::GROUND)
                .paint(below & state.has.eq(1), Colour::MAGENTA)
                .cell(1, state.time, Colour::WHITE)
                .finish(),
        )
    }
}
