//! DynamicObstacles: moving balls on the way to the goal.

use super::cell::{self, colour, kind};
use super::{Common, Frame, Grid, Level, Taken, Verdict, World, action};
use crate::cells::draw_cell;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's DynamicObstacles: an agent in a square room goes to the goal in the lower right
/// corner, among balls that move to a neighbouring free cell in each step. A step forward into a
/// ball or a wall that was in front ends the episode with the reward -1. The actions are to turn
/// left, to turn right, and to go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DynamicObstacles {
    /// Rows and columns of the grid, walls included: 5, 6, 8 or 16 in the package.
    #[schemars(range(min = 5, max = 100), extend("x-reason" = "balls need room"))]
    pub size: usize,
    /// Number of balls: 2, 3, 4 and 8 in the package, for its sizes. More than `size / 2 + 1` are
    /// reduced to `size / 2`.
    #[schemars(range(min = 1, max = 100))]
    pub obstacles: usize,
    /// True if the agent begins in any free cell, in any direction, instead of the upper left
    /// corner.
    pub random: bool,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// A room of 8 by 8 cells with four balls.
impl Default for DynamicObstacles {
    fn default() -> Self {
        DynamicObstacles { size: 8, obstacles: 4, random: false, common: Common::default() }
    }
}

/// Code of a ball.
const BALL: i32 = cell::code(kind::BALL, colour::BLUE);

/// Positions of the balls.
#[derive(Tree, Clone, Copy)]
pub struct Balls {
    /// Numbers of their cells, row by row. `i32[balls]`
    pub cells: Tensor,
}

impl Balls {
    /// Cells with a code at the balls. `u8[cells]`
    #[track_caller]
    fn put(&self, cells: Tensor, code: i32) -> Tensor {
        let number = arange(cells.len());
        let here = self.cells.unstack().into_iter().map(|ball| number.eq(ball));
        select(here.reduce(|any, here| any | here).expect("a ball"), code, cells)
    }
}

impl DynamicObstacles {
    /// The number of balls.
    pub fn balls(&self) -> usize {
        if 2 * self.obstacles <= self.size + 2 { self.obstacles } else { self.size / 2 }
    }
}

impl Level for DynamicObstacles {
    type Task = Balls;
    const SEES_THROUGH_WALLS: bool = true;
    const ACTIONS: usize = 3;
    const FAILURE: f64 = -1.0;

    fn frame(&self) -> Frame {
        self.common.frame((self.size, self.size), 4 * self.size * self.size)
    }

    fn drawn(&self, key: Key) -> (World, Balls) {
        let [agent, balls] = key.split_into();
        let mut grid = Grid::walled(self.frame().extents).with_goal();
        let world = grid.entered(self.random, agent);
        let own = grid.only((world.row, world.column));
        let draws = balls.uniform([self.balls()]);
        let cells = draws.unstack().into_iter().map(|draw| {
            let (row, column) = grid.spot(!own, draw);
            grid = grid.put((row, column), BALL);
            row * self.size as i32 + column
        });
        let balls = Balls { cells: stack(&cells.collect::<Vec<_>>(), 0) };
        (grid.world((world.row, world.column), world.direction), balls)
    }

    /// Each ball moves to one of the free cells around it, if there is one.
    fn stirred(&self, world: World, balls: Balls, key: Key) -> (World, Balls) {
        let draws = key.uniform([self.balls()]);
        let size = self.size as i32;
        let agent = world.row * size + world.column;
        let number = arange(self.balls());
        // A loop, so that a ball's move is not computed again for the balls after it.
        let (cells, ()) = scan(balls.cells, (number, draws), |cells, (ball, draw)| {
            let here = number.eq(ball);
            let corner = select(here, cells, 0).sum() - (size + 1);
            let around = corner + iota(I32, [3, 3], 0) * size + iota(I32, [3, 3], 1);
            let codes = world.cells.take(around, 0).astype(I32);
            // Other balls, or none, may by now be at the initial positions.
            let by = |all: Tensor| around.expand_dims(2).eq(all.expand_dims(0).expand_dims(0));
            let taken = by(cells).any_axis(2) | around.eq(agent);
            let open = (codes.eq(cell::EMPTY) | codes.eq(BALL)) & !taken;
            let (down, right) = draw_cell(open, draw);
            let to = corner + down * size + right;
            (select(here & open.any(), to, cells), ())
        });
        let moved = Balls { cells };
        (World { cells: moved.put(balls.put(world.cells, cell::EMPTY), BALL), ..world }, moved)
    }

    fn verdict(&self, _: &Balls, before: &World, taken: &Taken) -> Verdict {
        let forward = taken.action.eq(action::FORWARD);
        let front = before.code(before.front(self.size)) & 15;
        let hit = forward & front.ne(kind::EMPTY) & front.ne(kind::GOAL);
        (forward & taken.front.eq(kind::GOAL), hit)
    }
}
