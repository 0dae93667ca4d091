//! Knapsack: pack the most valuable items into a bag with limited capacity.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Knapsack: items with weights and values, each drawn uniformly from 0 to 1, are packed one after
/// another into a bag that carries the weight `budget`.
///
/// An item pays its value. The episode is terminated when no item fits any more, and by an item
/// that is already packed or does not fit, which pays nothing.
///
/// The rules follow jumanji 1.1.2's Knapsack-v1, with its dense reward. Items are drawn with other
/// random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Knapsack {
    /// Items to choose from.
    #[schemars(range(min = 1, max = 1000))]
    pub items: usize,
    /// The weight that the bag carries.
    #[schemars(range(min = 1.0), extend("x-reason" = "every item fits into an empty bag"))]
    pub budget: f64,
}

/// 50 items and a budget of 12.5, as in jumanji.
impl Default for Knapsack {
    fn default() -> Self {
        Knapsack { items: 50, budget: 12.5 }
    }
}

/// The items and the bag.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The weight of each item. `f32[items]`
    pub weights: Tensor,
    /// The value of each item. `f32[items]`
    pub values: Tensor,
    /// True for the items in the bag. `bool[items]`
    pub packed: Tensor,
    /// The remaining capacity of the bag. `f32[]`
    pub room: Tensor,
}

impl Knapsack {
    /// True for the items that can be packed next. `bool[items]`
    #[track_caller]
    fn fitting(&self, state: &State) -> Tensor {
        !state.packed & state.weights.le(state.room)
    }

    /// The initial state of an episode with items of these weights and values, `f32[items]` each.
    #[track_caller]
    pub fn at(&self, weights: Tensor, values: Tensor) -> State {
        let packed = full([self.items], false);
        State { weights, values, packed, room: scalar(self.budget as f32) }
    }
}

impl Environment for Knapsack {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let drawn = key.uniform([2, self.items]);
        self.at(drawn.index(0), drawn.index(1))
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let item = arange(self.items).eq(action) & self.fitting(&state);
        let of = |of_each: Tensor| select(item, of_each, 0.0).sum();
        let (weight, reward) = (of(state.weights), of(state.values));
        let state = State { packed: state.packed | item, room: state.room - weight, ..state };
        let terminated = !item.any() | !self.fitting(&state).any();
        let observation = self.observe(state);
        (state, TimeStep { observation, reward, terminated, truncated: constant(false) })
    }

    /// A row for each item: its weight, its value, whether it is packed, and whether it can be packed next. `f32[items, 4]`
    fn observe(&self, state: State) -> Tensor {
        let flags = [state.packed, self.fitting(&state)].map(|flag| flag.astype(F32));
        stack(&[state.weights, state.values, flags[0], flags[1]], 1)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.items, 4], 0.0, 1.0).described("weight, value, packed, fits")
    }

    /// The item to pack.
    fn action_space(&self) -> Space {
        Space::discrete(self.items)
    }

    /// The items that are not packed and fit; all items if there is none.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        let fitting = self.fitting(state);
        Some(fitting | !fitting.any())
    }

    /// A bar for each item, with its value as height and its weight as width, and below the bars the weight in the bag as a share of
    /// the budget.
    fn render(&self, state: &State) -> Option<Tensor> {
        let bars = |shown: Tensor| {
            let widths = state.weights * 0.8 + 0.2;
            scenery::bars([state.values, widths, shown], (0.1, 2.2), (3.8, 2.0))
        };
        let (packed, fitting) = (state.packed, self.fitting(state));
        let share = 1.0 - state.room * (1.0 / self.budget);
        let canvas = Canvas::new(3.0, 4.0, Colour::BOARD)
            .fill(&Shape::rectangle(2.0, 2.22, 3.8, 0.03), Colour::TEXT)
            .fill(&bars(!packed & !fitting), Colour::LINE)
            .fill(&bars(fitting), Colour::BLUE)
            .fill(&bars(packed), Colour::GREEN)
            .fill(&Shape::rounded(2.0, 2.48, 3.8, 0.2, 0.1), Colour::CELL.dark(0.1))
            .fill(
                &Shape::rounded(2.0, 2.48, 3.8, 0.2, 0.1).intersection(Shape::rectangle(
                    0.0,
                    2.48,
                    share * 7.6 + 0.2,
                    1.0,
                )),
                Colour::GREEN,
            );
        let names =
            [("in the bag", Colour::GREEN), ("fits", Colour::BLUE), ("too heavy", Colour::LINE)];
        Some(scenery::legend(canvas, &names, (0.2, 2.8), 0.12, 1.3).finish())
    }
}
