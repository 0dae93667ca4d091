//! Tic-tac-toe: three in a row win.

use super::{Moved, Stones, cell_names, on, two_planes};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tic-tac-toe of two players; [`boards`](crate::boards) describes turns and rewards. It has no
/// settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TicTacToe {}

/// Rows and columns of the board. Bit `3 * row + column` is a cell.
const SIZE: usize = 3;
/// The bits of the cells.
pub(super) const CELLS: [u32; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
/// The word of bits in which every cell has a stone.
pub(super) const FULL: u32 = 0o777;
/// The winning rows, columns and diagonals. An octal digit is a row.
pub(super) const LINES: [u32; 8] = [0o007, 0o070, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124];

impl Environment for TicTacToe {
    type State = Stones;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> Stones {
        Stones::first(scalar(0u32), scalar(0u32))
    }

    fn step(&self, state: Stones, action: Tensor, _key: Key) -> (Stones, TimeStep) {
        let (state, reward, terminated) = state.after(|| {
            let stone = scalar(1u32) << action.astype(U32);
            let (own, other) = (state.own | stone, state.other & !stone);
            let lines = LINES.map(|line| (own & line).eq(line)).into_iter();
            let won = lines.reduce(|some, line| some | line).expect("there are lines");
            let full = (own | other).eq(FULL);
            let legal = (state.filled() & stone).eq(0u32);
            Moved { legal, own, other, done: won | full, reward: won.astype(F32) }
        });
        (state, TimeStep::new(self.observe(state), reward, terminated))
    }

    /// The stones of the player to move, and of the other player. `f32[3, 3, 2]`
    fn observe(&self, state: Stones) -> Tensor {
        state.observation(SIZE, SIZE, &CELLS)
    }

    fn observation_space(&self) -> Space {
        two_planes(SIZE, SIZE)
    }

    /// The cell `3 * row + column` to put a stone in.
    fn action_space(&self) -> Space {
        Space::discrete(SIZE * SIZE).named(cell_names(SIZE, SIZE))
    }

    fn legal_actions(&self, state: &Stones) -> Option<Tensor> {
        Some(!on(state.filled(), &CELLS) | state.over)
    }

    fn state_of(&self, observation: Tensor) -> Option<Stones> {
        Some(Stones::seen(observation, &CELLS, U32))
    }

    fn truncates(&self) -> bool {
        false
    }

    fn players(&self) -> usize {
        2
    }

    fn text(&self, state: &Stones) -> Option<Tensor> {
        Some(state.text(SIZE, SIZE, &CELLS))
    }

    /// The board with blue crosses for the player who began, and red circles for the other player.
    fn render(&self, state: &Stones) -> Option<Tensor> {
        let canvas = Canvas::board(SIZE, SIZE, Colour::BOARD);
        let empty = canvas.tile(Colour::BOARD);
        let cross = Shape::line((0.26, 0.26), (0.74, 0.74), 0.14).union(Shape::line(
            (0.26, 0.74),
            (0.74, 0.26),
            0.14,
        ));
        let tiles = [
            empty,
            empty.fill(&cross, Colour::BLUE),
            empty.fill(&Shape::ring(0.5, 0.5, 0.25, 0.14), Colour::RED),
        ];
        let lines = [1.0, 2.0].map(|at| {
            Shape::line((at, 0.12), (at, 2.88), 0.05).union(Shape::line(
                (0.12, at),
                (2.88, at),
                0.05,
            ))
        });
        let canvas = canvas.tiles(state.players(SIZE, SIZE, &CELLS), &tiles);
        Some(lines.iter().fold(canvas, |canvas, line| canvas.fill(line, Colour::LINE)).finish())
    }
}
