//! A bandit with deterministic rewards.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, "bandit". For a seed,
//! the arms equal those that gymnax's `SimpleBandit-bsuite` draws from its key. gymnax draws them
//! anew for each episode; here all episodes share them, as in bsuite.

use crate::environment::{Environment, TimeStep};
use crate::render::{Align, Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Arms that pay `0, 1 / (arms - 1), .., 1`, in an order that is drawn once. Each step is an
/// episode, and terminates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SimpleBandit {
    /// Number of arms.
    #[schemars(range(min = 2, max = 10_000))]
    pub arms: usize,
    /// Seed of the arms' order.
    #[schemars(range(max = u32::MAX))]
    pub mapping_seed: u32,
}

/// Eleven arms, with seed 0.
impl Default for SimpleBandit {
    fn default() -> Self {
        SimpleBandit { arms: 11, mapping_seed: 0 }
    }
}

/// The arm that was pulled.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The arm, -1 before the step. `i32[]`
    pub pulled: Tensor,
}

impl SimpleBandit {
    /// The reward of each arm, `f32[arms]`.
    #[track_caller]
    pub fn rewards(&self) -> Tensor {
        let order = Key::new(self.mapping_seed).permutation(self.arms);
        order.astype(F32) / (self.arms - 1) as f64
    }
}

impl Environment for SimpleBandit {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        State { pulled: scalar(-1) }
    }

    fn step(&self, _state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let reward = select(arange(self.arms).eq(action), self.rewards(), 0.0).sum();
        let state = State { pulled: action };
        (state, TimeStep::new(self.observe(state), reward, constant(true)))
    }

    /// A constant 1, because there is nothing to observe. `f32[1, 1]`
    fn observe(&self, _state: State) -> Tensor {
        ones(F32, [1, 1])
    }

    fn observation_space(&self) -> Space {
        Space::bounded([1, 1], 1.0, 1.0).described("always 1")
    }

    /// The number of the arm to pull.
    fn action_space(&self) -> Space {
        Space::discrete(self.arms)
    }

    fn truncates(&self) -> bool {
        false
    }

    /// A bar for each arm with its reward as height; the bar of the pulled arm is orange.
    fn render(&self, state: &State) -> Option<Tensor> {
        let pulled = arange(self.arms).eq(state.pulled);
        let widths = full([self.arms], 0.8f32);
        let bars =
            |shown: Tensor| scenery::bars([self.rewards(), widths, shown], (0.1, 2.3), (3.8, 2.1));
        let canvas = Canvas::new(2.7, 4.0, Colour::BOARD)
            .fill(&bars(!pulled), Colour::BLUE)
            .fill(&bars(pulled), Colour::ORANGE)
            .fill(&Shape::rectangle(2.0, 2.32, 3.8, 0.04), Colour::TEXT);
        // Numbers that fit below the bars.
        let numbers = if self.arms <= 20 { 0..self.arms } else { 0..0 };
        let written = numbers.fold(canvas, |canvas, arm| {
            let x = 0.1 + (arm as f64 + 0.5) * 3.8 / self.arms as f64;
            canvas.text(&arm.to_string(), (x, 2.52), 0.13, Align::Center, Colour::TEXT)
        });
        Some(written.finish())
    }
}
