//! Memory: at the end of a hallway, find the thing that was at its beginning.

use super::cell::{self, colour, kind};
use super::{Common, Frame, Grid, Level, Taken, Verdict, World, action, between};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's Memory: a key or a ball is in the room at the beginning of a hallway. At its end are
/// a key and a ball, to the left and to the right. An agent that walks to the cell next to the
/// object from the room has done the task. At the cell next to the other object the episode ends
/// without a reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Memory {
    /// Rows and columns of the grid, an odd number: 7, 9, 11, 13 or 17 in the package.
    #[schemars(range(min = 7, max = 99), extend("x-reason" = "room for the hallway"))]
    pub size: usize,
    /// True if the hallway has any length that fits.
    pub random_length: bool,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// A grid of 7 by 7 cells.
impl Default for Memory {
    fn default() -> Self {
        Memory { size: 7, random_length: false, common: Common::default() }
    }
}

/// Cells that end the episode.
#[derive(Tree, Clone, Copy)]
pub struct Ends {
    /// Column of both. `i32[]`
    pub column: Tensor,
    /// Row of the cell next to the thing that was in the room. `i32[]`
    pub right_row: Tensor,
    /// Row of the other cell. `i32[]`
    pub wrong_row: Tensor,
}

impl Level for Memory {
    type Task = Ends;

    fn frame(&self) -> Frame {
        self.common.frame((self.size, self.size), 5 * self.size * self.size)
    }

    /// Checks that the hallway is in the middle.
    fn check_settings(&self) -> Result<(), String> {
        if self.size % 2 == 1 {
            return Ok(());
        }
        Err(format!(
            "environment.size is {} and must be odd: the hallway is in the middle",
            self.size
        ))
    }

    fn drawn(&self, key: Key) -> (World, Ends) {
        let draws = key.uniform([4]);
        let (size, middle) = (self.size as i32, self.size as i32 / 2);
        let end = match self.random_length {
            true => between(draws.index(0), 4, size - 2),
            false => scalar(size - 3),
        };
        let grid = Grid::walled(self.frame().extents);
        let (row, column) = grid.places();
        let apart = (row - middle).abs();
        // The room, its exit, the hallway, and the crossing at its end.
        let walls = (apart.eq(2) & column.ge(1) & column.le(4))
            | (apart.eq(1) & column.eq(4))
            | (apart.eq(1) & column.ge(5) & column.lt(end))
            | (apart.ne(0) & column.eq(end))
            | column.eq(end + 2);
        let grid = grid.with(walls, cell::WALL);
        let agent = (scalar(middle), between(draws.index(1), 1, end + 1));
        let [key_code, ball_code] =
            [kind::KEY, kind::BALL].map(|kind| cell::code(kind, colour::GREEN));
        let thing = |is_key: Tensor| select(is_key, key_code, ball_code);
        let [room, above] = [2, 3].map(|draw| draws.index(draw).lt(0.5));
        let grid = grid.put((scalar(middle - 1), scalar(1)), thing(room));
        let grid = grid.put((scalar(middle - 2), end + 1), thing(above));
        let grid = grid.put((scalar(middle + 2), end + 1), thing(!above));
        let upwards = room.eq(above);
        let row = |up: Tensor| select(up, middle - 1, middle + 1);
        let ends = Ends { column: end + 1, right_row: row(upwards), wrong_row: row(!upwards) };
        (grid.world(agent, scalar(0)), ends)
    }

    /// Things stay in place: picking up is toggling.
    fn meant(&self, action: Tensor) -> Tensor {
        select(action.eq(action::PICK_UP), action::TOGGLE, action)
    }

    fn verdict(&self, ends: &Ends, _: &World, taken: &Taken) -> Verdict {
        let here = |row: Tensor| taken.world.row.eq(row) & taken.world.column.eq(ends.column);
        (here(ends.right_row), here(ends.wrong_row))
    }
}
