//! The umbrella chain: the first action determines the last reward, and noise in between hides the
//! connection.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, "umbrella". Keys and
//! values equal those in gymnax's `UmbrellaChain-bsuite`.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

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

    /// The path with the walker on it, the weather at its end, and the umbrella above the walker who has it.
    fn render(&self, state: &State) -> Option<Tensor> {
        let shape = [3, self.length + 1];
        let (row, column) = (iota(I32, shape, 0), iota(I32, shape, 1));
        let canvas = Canvas::board(3, self.length + 1, Colour::SKY);
        let sky = canvas.tile(Colour::SKY);
        let cloud = Shape::disc(0.3, 0.42, 0.18)
            .union(Shape::disc(0.55, 0.32, 0.22))
            .union(Shape::disc(0.75, 0.45, 0.16))
            .union(Shape::rounded(0.52, 0.5, 0.66, 0.2, 0.1));
        let drop = |x: f64| Shape::line((x, 0.72), (x - 0.06, 0.9), 0.06);
        let drops =
            [0.3, 0.5, 0.7].map(drop).into_iter().reduce(Shape::union).expect("three drops");
        let rays = (0..8).map(|i| {
            let (sin, cos) = (f64::from(i) * PI / 4.0).sin_cos();
            let at = |far: f64| (0.5 + far * cos, 0.5 + far * sin);
            Shape::line(at(0.32), at(0.43), 0.06)
        });
        let rays = rays.reduce(Shape::union).expect("eight rays");
        let rain = sky.fill(&cloud, Colour::GREY).fill(&drops, Colour::BLUE);
        let sun = sky.fill(&Shape::disc(0.5, 0.5, 0.24).union(rays), Colour::ORANGE);
        let end = row.eq(0) & column.eq(self.length as i32);
        let things = [
            (row.eq(2), canvas.tile(Colour::GROUND)),
            (end & state.need.eq(1), rain),
            (end & state.need.eq(0), sun),
        ];
        let umbrella = row.eq(0) & column.eq(state.time) & state.has.eq(1);
        let handle = row.eq(1) & column.eq(state.time) & state.has.eq(1);
        let dome = Shape::disc(0.5, 1.05, 0.48).intersection(Shape::rectangle(0.5, 0.5, 2.0, 1.0));
        let stick = Shape::rectangle(0.84, 0.4, 0.05, 0.84);
        Some(
            canvas
                .layers(sky, &things)
                .fill_cells(umbrella, &dome, Colour::MAGENTA)
                .fill_cells(handle, &stick, Colour::TEXT)
                .fill_cell(1, state.time, &scenery::walker(), Colour::BLUE)
                .finish(),
        )
    }
}
