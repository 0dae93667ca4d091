//! DoorKey: a key opens the door to the goal.

use super::cell::{self, colour, kind};
use super::{Common, Frame, Grid, Level, World, between};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's DoorKey: an agent in a square room with a dividing wall picks up a key, unlocks the
/// door in the wall, and goes to the goal in the lower right corner. Agent and key begin anywhere
/// to the left of the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DoorKey {
    /// Rows and columns of the grid, walls included: 5, 6, 8 or 16 in the package.
    #[schemars(range(min = 5, max = 100), extend("x-reason" = "two cells to the left of the wall and one to its right"))]
    pub size: usize,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// A room of 8 by 8 cells.
impl Default for DoorKey {
    fn default() -> Self {
        DoorKey { size: 8, common: Common::default() }
    }
}

impl Level for DoorKey {
    type Task = ();

    fn frame(&self) -> Frame {
        self.common.frame((self.size, self.size), 10 * self.size * self.size)
    }

    fn drawn(&self, key: Key) -> (World, ()) {
        let draws = key.uniform([5]);
        let last = self.size as i32 - 2;
        let wall = between(draws.index(0), 2, last);
        let door = (between(draws.index(1), 1, last), wall);
        let grid = Grid::walled(self.frame().extents).with_goal();
        let (_, column) = grid.places();
        let grid = grid.with(column.eq(wall), cell::WALL);
        let grid = grid.put(door, cell::code(kind::LOCKED_DOOR, colour::YELLOW));
        let left = column.lt(wall);
        let agent = grid.spot(left, draws.index(2));
        let place = grid.spot(left & !grid.only(agent), draws.index(3));
        let grid = grid.put(place, cell::code(kind::KEY, colour::YELLOW));
        (grid.world(agent, between(draws.index(4), 0, 4)), ())
    }
}
