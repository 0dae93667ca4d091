//! Deep sea: dive to the right at every step, against a small cost, to reach the treasure.
//!
//! Osband et al., "Deep Exploration via Randomized Value Functions", JMLR 2019; bsuite's `deep_sea`
//! and `deep_sea_stochastic`. gymnax's `DeepSea-bsuite` has the same moves and keys. The rewards
//! are bsuite's, which differ from gymnax's: they have noise, and a dive to the right also has a
//! cost if the current stops it.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A grid of `size` by `size`. Each step leads one row down, and one column to the left or right;
/// after `size` steps the episode is terminated. A step to the right costs `0.01 / size`, and a
/// step to the right in the last column pays 1. The best return is 0.99, and a policy that acts at
/// random finds it with probability `2^-size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeepSea {
    /// Rows and columns of the grid.
    #[schemars(range(min = 2, max = 1_000))]
    pub size: usize,
    /// True if steps to the right always succeed and rewards have no noise. Otherwise a step to the
    /// right fails with probability `1 / size`, and rewards in the last row's first and last column
    /// have normal noise with standard deviation 1.
    pub deterministic: bool,
    /// True if each cell draws which of the two actions leads to the right. Otherwise it is always
    /// action 1.
    pub randomize_actions: bool,
    /// Seed of that draw, which all episodes share.
    #[schemars(range(max = u32::MAX))]
    pub mapping_seed: u32,
}

/// A deterministic grid of 20 by 20 with drawn actions.
impl Default for DeepSea {
    fn default() -> Self {
        DeepSea { size: 20, deterministic: true, randomize_actions: true, mapping_seed: 0 }
    }
}

/// The diver's position.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the diver, from 0 to `size`, which is below the grid. `i32[]`
    pub row: Tensor,
    /// Column of the diver, in `0..size`. `i32[]`
    pub column: Tensor,
}

impl DeepSea {
    /// True where action 1 leads to the right, bool `[size, size]`.
    #[track_caller]
    fn mapping(&self) -> Tensor {
        let shape = [self.size, self.size];
        match self.randomize_actions {
            true => Key::new(self.mapping_seed).bernoulli(shape, 0.5),
            false => constant(true).broadcast_to(shape),
        }
    }

    /// True at the diver, bool `[size, size]`.
    #[track_caller]
    fn diver(&self, state: State) -> Tensor {
        let shape = [self.size, self.size];
        iota(I32, shape, 0).eq(state.row) & iota(I32, shape, 1).eq(state.column)
    }

    /// True if the action leads to the right in this state. `bool[]`
    #[track_caller]
    fn leads_right(&self, state: State, action: Tensor) -> Tensor {
        let one = match self.randomize_actions {
            true => (self.diver(state) & self.mapping()).any(),
            false => constant(true),
        };
        action.eq(one.astype(I32))
    }
}

impl Environment for DeepSea {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        State { row: scalar(0), column: scalar(0) }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let last = self.size as i32 - 1;
        let right = self.leads_right(state, action);
        let treasure = right & state.column.eq(last);
        let cost = 0.01 / self.size as f64;
        let reward = select(treasure, 1.0, 0.0) - select(right, cost, 0.0);
        let (moves, reward) = match self.deterministic {
            true => (right, reward),
            false => {
                let (noise, current) = key.split();
                let at_end = state.row.eq(last) & (state.column.eq(0) | state.column.eq(last));
                let noisy = reward + select(at_end, noise.normal([]), 0.0);
                (right & current.uniform([]).gt(1.0 / self.size as f64), noisy)
            }
        };
        let held = right & !moves;
        let aside = select(moves, 1, select(held, 0, -1));
        let column = (state.column + aside).clamp(0, last);
        let state = State { row: state.row + 1, column };
        let terminated = state.row.ge(self.size);
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The grid, `f32[size, size]`: 1 at the diver; all 0 at the end.
    fn observe(&self, state: State) -> Tensor {
        self.diver(state).astype(F32)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.size, self.size], 0.0, 1.0).described("1 at the diver")
    }

    /// Actions 0 and 1: left and right, or right and left, according to the cell's draw.
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }

    fn truncates(&self) -> bool {
        false
    }

    /// The diver in orange, the chest in the last cell, and water that is darker in deeper rows. No dive reaches the grey cells.
    fn render(&self, state: &State) -> Option<Tensor> {
        let last = self.size as i32 - 1;
        let shape = [self.size, self.size];
        let deep = (iota(F32, shape, 0) / self.size as f64).expand_dims(2);
        let surface = Colour::CYAN.light(0.2).tensor();
        let water = surface + (Colour::BLUE.dark(0.5).tensor() - surface) * deep;
        let unreachable = iota(I32, shape, 1).gt(iota(I32, shape, 0));
        let chest = Shape::rounded(0.5, 0.56, 0.84, 0.64, 0.14);
        let band = Shape::rectangle(0.5, 0.5, 0.84, 0.1).union(Shape::disc(0.5, 0.56, 0.13));
        let row = state.row.minimum(last);
        Some(
            Canvas::board(self.size, self.size, Colour::BOARD)
                .paint(!unreachable, water)
                .paint(unreachable, Colour::CELL)
                .fill_cell(last, last, &chest, Colour::WOOD)
                .fill_cell(last, last, &band, Colour::YELLOW)
                .fill_cell(row, state.column, &scenery::walker(), Colour::ORANGE)
                .finish(),
        )
    }
}
