//! Views of a circuit board for agents.

use super::{Connector, FREE, HEAD, PATH, State, TARGET};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Views of a circuit board for agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// The whole board, `f32[size, size, 3 * wires + 1]`: for each wire in order, its cells, its
    /// head and its target, each as a plane with 1 in its cells. The last plane is the elapsed
    /// share of the time limit.
    #[default]
    Board,
    /// A row for each wire, `f32[wires, 202]`, for a network that the wires share. For each cell of
    /// 7 by 7 around the wire's head, row by row: whether it cannot be taken, is the head of
    /// another wire, is the target of another wire, is the wire's own target. Then, divided by the
    /// size of the board: rows and columns from the head to the target, and the head's row and
    /// column. Then whether the wire is connected, and the elapsed share of the time limit.
    Wires,
}

impl View {
    /// True for the default view.
    pub(super) fn is_board(&self) -> bool {
        *self == View::Board
    }
}

/// Cells that a wire sees on each side of its head.
const SIGHT: i32 = 3;
/// Rows, and columns, of the cells that a wire sees.
const SIDE: usize = 2 * SIGHT as usize + 1;
/// Number of values per cell in a wire's view, and per wire in addition to the cells.
const OF_CELL: usize = 4;
const OF_WIRE: usize = 6;
/// Number of values in a wire's row.
pub(super) const ROW: usize = OF_CELL * SIDE * SIDE + OF_WIRE;

impl Connector {
    /// The observation of [`View::Board`].
    #[track_caller]
    pub(super) fn seen_board(&self, state: &State) -> Tensor {
        let (size, planes) = (self.size, 3 * self.wires);
        let board = match &self.board {
            Some(_) => select(state.board.eq(self.obstacle()), PATH, state.board),
            None => state.board,
        };
        let parts = board.expand_dims(1).eq((arange(planes) + 1).expand_dims(0));
        let time = self.passed(state).broadcast_to([self.cells(), 1]);
        concatenate(&[parts.astype(F32), time], 1).reshape([size, size, planes + 1])
    }

    /// The observation of [`View::Wires`].
    #[track_caller]
    pub(super) fn seen_by_wires(&self, state: &State) -> Tensor {
        let (size, wires) = (self.size as i32, self.wires);
        // Cells around the heads, `[wires, SIDE * SIDE]`.
        let shape = [wires, SIDE, SIDE];
        let around = |heads: Tensor, axis: isize| {
            let places = heads.reshape([wires, 1, 1]) + iota(I32, shape, axis) - SIGHT;
            places.reshape([wires, SIDE * SIDE])
        };
        let (rows, columns) = (around(state.rows, 1), around(state.columns, 2));
        let inside = self.inside(rows, columns);
        let number = self.there(state, rows, columns, inside);
        let of_wire = inside & number.ne(FREE) & number.ne(self.obstacle());
        let own = of_wire & ((number - PATH) / 3).eq(arange(wires).expand_dims(1));
        let is = |part: i32| (number - PATH).rem(3).eq(part - PATH);
        let goal = own & is(TARGET);
        let other = |part: i32| of_wire & !own & is(part);
        let taken = !goal & (!inside | number.ne(FREE));
        let cells = stack(&[taken, other(HEAD), other(TARGET), goal], 2).astype(F32);

        let share = |numbers: Tensor| numbers.astype(F32) / f64::from(size);
        let numbers = [
            share(state.targets / size - state.rows),
            share(state.targets.rem(size) - state.columns),
            share(state.rows),
            share(state.columns),
            self.connected(state).astype(F32),
            self.passed(state).broadcast_to([wires]),
        ];
        let cells = cells.reshape([wires, OF_CELL * SIDE * SIDE]);
        concatenate(&[cells, stack(&numbers, 1)], 1)
    }

    /// The elapsed share of the time limit. `f32[]`
    #[track_caller]
    fn passed(&self, state: &State) -> Tensor {
        state.time.astype(F32) / self.time_limit as f64
    }
}
