//! The discounting chain: the first action chooses the delay of a reward.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, "discounting chain".
//! Values equal those in gymnax's `DiscountingChain-bsuite`.

use crate::environment::{Environment, TimeStep};
use crate::render::{Align, Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The step of the reward for each choice of the first action.
const DELAYS: [usize; 5] = [1, 3, 10, 30, 100];
/// Steps of an episode.
const LENGTH: usize = 100;

/// The first action, 0 to 4, chooses one of five rewards: in step 1, 3, 10, 30 or 100. The reward
/// of the action `best` is 1.1, and the others are 1. The episode is terminated after 100 steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DiscountingChain {
    /// The choice that pays a tenth more, from 0 to 4.
    #[schemars(range(max = 4))]
    pub best: usize,
}

/// The choice and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The first action, -1 before it. `i32[]`
    pub choice: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl Environment for DiscountingChain {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        State { choice: scalar(-1), time: scalar(0) }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let choice = select(state.time.eq(0), action, state.choice);
        let state = State { choice, time: state.time + 1 };
        let reward = DELAYS.iter().enumerate().fold(scalar(0.0), |reward, (i, &delay)| {
            let pays = if i == self.best { 1.1 } else { 1.0 };
            select(choice.eq(i) & state.time.eq(delay), pays, reward)
        });
        let terminated = state.time.ge(LENGTH);
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The choice (-1 before it), and the elapsed fraction of time. `f32[2]`
    fn observe(&self, state: State) -> Tensor {
        stack(&[state.choice.astype(F32), state.time.astype(F32) / LENGTH as f64], 0)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([2], [-1.0, 0.0], [4.0, 1.0]).described("choice, time")
    }

    /// The choice, 0 to 4; ignored after the first step.
    fn action_space(&self) -> Space {
        Space::discrete(DELAYS.len())
    }

    fn truncates(&self) -> bool {
        false
    }

    /// A lane for each choice with its reward at its step, and the walker in the chosen lane. The greatest reward is larger.
    fn render(&self, state: &State) -> Option<Tensor> {
        // One unit is a step.
        let (left, lane) = (9.0, 12.0);
        let y = |row: usize| (row as f64 + 0.8) * lane;
        let mut canvas = Canvas::new(lane * (DELAYS.len() as f64 + 0.3), 112.0, Colour::BOARD);
        for (row, &delay) in DELAYS.iter().enumerate() {
            let (end, best) = (left + delay as f64, row == self.best);
            let (radius, colour) =
                if best { (3.6, Colour::GREEN) } else { (2.6, Colour::GREEN.light(0.45)) };
            canvas = canvas
                .fill(&Shape::line((left, y(row)), (end, y(row)), 0.9), Colour::LINE)
                .fill(&Shape::disc(end, y(row), radius), colour)
                .text(&row.to_string(), (3.5, y(row)), 4.0, Align::Center, Colour::TEXT);
            let above = (end.min(106.0), y(row) - 5.8);
            canvas = canvas.text(&delay.to_string(), above, 2.8, Align::Center, Colour::TEXT);
        }
        let place = (left + state.time.astype(F32), (state.choice.astype(F32) + 0.8) * lane);
        let walker = Shape::disc(place.0, place.1, 2.2).when(state.choice.ge(0));
        Some(canvas.fill(&walker, Colour::ORANGE).finish())
    }
}
