//! LavaGap: a gap in a strip of lava.

use super::{Common, Frame, Grid, Level, World, between, cell};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's LavaGap: an agent in the upper left corner of a square room goes through the gap in a
/// strip of lava to the goal in the lower right corner. A step into lava ends the episode without a
/// reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LavaGap {
    /// Rows and columns of the grid, walls included: 5, 6 or 7 in the package.
    #[schemars(range(min = 5, max = 100), extend("x-reason" = "a cell on each side of the lava"))]
    pub size: usize,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// A room of 7 by 7 cells.
impl Default for LavaGap {
    fn default() -> Self {
        LavaGap { size: 7, common: Common::default() }
    }
}

impl Level for LavaGap {
    type Task = ();

    fn frame(&self) -> Frame {
        self.common.frame((self.size, self.size), 4 * self.size * self.size)
    }

    fn drawn(&self, key: Key) -> (World, ()) {
        let draws = key.uniform([2]);
        let last = self.size as i32 - 1;
        let strip = between(draws.index(0), 2, last - 1);
        let gap = between(draws.index(1), 1, last);
        let grid = Grid::walled(self.frame().extents).with_goal();
        let (row, column) = grid.places();
        let lava = column.eq(strip) & row.ge(1) & row.lt(last) & row.ne(gap);
        (grid.with(lava, cell::LAVA).world((scalar(1), scalar(1)), scalar(0)), ())
    }
}
