//! The memory chain: a context at the beginning of an episode contains the answer to the query at
//! its end.
//!
//! Osband et al., "Behaviour Suite for Reinforcement Learning", ICLR 2020, "memory length" and
//! "memory size". Keys and values equal those in gymnax's `MemoryChain-bsuite`, where the first
//! observation is also seen twice: by the first action and by the second.

use crate::environment::{Environment, TimeStep};
use crate::render::{Align, Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Remember a context of bits that is shown only in the beginning. At the end a query selects one
/// of the bits, and the action is the answer. The episode is terminated after `length + 1` steps,
/// and pays 1 if the last action names the bit and -1 otherwise. An agent without memory gets 0 on
/// average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryChain {
    /// Number of steps before the step that answers.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub length: usize,
    /// Bits of the context.
    #[schemars(range(min = 1, max = 10_000))]
    pub bits: usize,
}

/// A length of ten steps and one bit.
impl Default for MemoryChain {
    fn default() -> Self {
        MemoryChain { length: 10, bits: 1 }
    }
}

/// The context, the query and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The answers, each 0 or 1. `i32[bits]`
    pub context: Tensor,
    /// The queried bit, in `0..bits`. `i32[]`
    pub query: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl Environment for MemoryChain {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let (context, query) = key.split();
        State {
            context: context.bernoulli([self.bits], 0.5).astype(I32),
            query: query.randint([], 0..self.bits),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let terminated = state.time.ge(self.length);
        let asked = arange(self.bits).eq(state.query);
        let answer = (asked & state.context.eq(action)).any();
        let reward = select(terminated, select(answer, 1.0, -1.0), 0.0);
        let state = State { time: state.time + 1, ..state };
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The remaining fraction of time; the query, or 0 before it is shown; and the context, -1 or 1
    /// for each bit at first and 0 later. `f32[2 + bits]`
    fn observe(&self, state: State) -> Tensor {
        let time = (state.time - 1).maximum(0);
        let left = 1.0 - time.astype(F32) / self.length as f64;
        let query = select(time.eq(self.length - 1), state.query, 0).astype(F32);
        let context = select(time.eq(0), 2 * state.context - 1, 0).astype(F32);
        concatenate(&[stack(&[left, query], 0), context], 0)
    }

    fn observation_space(&self) -> Space {
        let (mut low, mut high) = (vec![0.0, 0.0], vec![1.0, self.bits as f64 - 1.0]);
        low.resize(2 + self.bits, -1.0);
        high.resize(2 + self.bits, 1.0);
        Space::bounded([2 + self.bits], low, high).described("time left, query, context")
    }

    /// The answer, 0 or 1; ignored before the last step.
    fn action_space(&self) -> Space {
        Space::discrete(2)
    }

    fn truncates(&self) -> bool {
        false
    }

    /// The path with the walker on it. Above its start are cards with the context's bits, one below the other, and above its end a question
    /// mark next to the queried bit, as soon as it is queried.
    fn render(&self, state: &State) -> Option<Tensor> {
        let (rows, columns) = (self.bits + 1, self.length + 2);
        let shape = [rows, columns];
        let (row, column) = (iota(I32, shape, 0), iota(I32, shape, 1));
        let canvas = Canvas::board(rows, columns, Colour::BOARD);
        let air = canvas.tile(Colour::BOARD);
        let place = Shape::rounded(0.5, 0.5, 0.88, 0.88, 0.14);
        let card = |text: &str, colour: Colour| {
            air.fill(&place, colour).text(text, (0.5, 0.5), 0.5, Align::Center, Colour::WHITE)
        };
        let bit = |value: i32| {
            let bits = concatenate(&[state.context, constant([-1])], 0).eq(value);
            bits.expand_dims(-1) & column.eq(0)
        };
        let asked = state.time.ge(self.length as i32) & row.eq(state.query);
        let things = [
            (bit(0), card("0", Colour::BLUE)),
            (bit(1), card("1", Colour::ORANGE)),
            (asked & column.eq(self.length as i32 + 1), card("?", Colour::TEXT)),
            (row.eq(self.bits as i32), air.fill(&place, Colour::CELL.dark(0.08))),
        ];
        let walker = scenery::walker();
        Some(
            canvas
                .layers(air, &things)
                .fill_cell(self.bits, state.time, &walker, Colour::BLUE)
                .finish(),
        )
    }
}
