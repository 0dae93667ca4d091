//! Empty: a room with a goal in the far corner.

use super::{Common, Frame, Grid, Level, World};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's Empty: an agent in a square room goes to the goal in the lower right corner. It
/// begins in the upper left corner and looks to the right, or begins anywhere with `random`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Empty {
    /// Rows and columns of the grid, walls included: 5, 6, 8 or 16 in the package.
    #[schemars(range(min = 4, max = 100), extend("x-reason" = "the agent does not begin at the goal"))]
    pub size: usize,
    /// True if the agent begins in any free cell, in any direction.
    pub random: bool,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// A room of 8 by 8 cells.
impl Default for Empty {
    fn default() -> Self {
        Empty { size: 8, random: false, common: Common::default() }
    }
}

impl Level for Empty {
    type Task = ();
    const SEES_THROUGH_WALLS: bool = true;

    fn frame(&self) -> Frame {
        self.common.frame((self.size, self.size), 4 * self.size * self.size)
    }

    fn drawn(&self, key: Key) -> (World, ()) {
        let grid = Grid::walled(self.frame().extents).with_goal();
        (grid.entered(self.random, key), ())
    }
}
