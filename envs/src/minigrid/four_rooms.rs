//! FourRooms: a goal in one of four rooms.

use super::{Common, Frame, Grid, Level, World, between, cell};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's FourRooms: an agent begins anywhere in four rooms of 19 by 19 cells in total, and
/// goes to a goal that is anywhere else. A gap in each wall joins the rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FourRooms {
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

const SIZE: i32 = 19;
/// Row and column of the walls between the rooms.
const WALL: i32 = SIZE / 2;

impl Level for FourRooms {
    type Task = ();

    fn frame(&self) -> Frame {
        self.common.frame((SIZE as usize, SIZE as usize), 100)
    }

    fn drawn(&self, key: Key) -> (World, ()) {
        let draws = key.uniform([7]);
        let mut draws = (0..7).map(|i| draws.index(i));
        let mut draw = || draws.next().expect("a draw for each choice");
        let grid = Grid::walled(self.frame().extents);
        let (row, column) = grid.places();
        let mut grid = grid.with(row.eq(WALL) | column.eq(WALL), cell::WALL);
        for (low, high) in [(1, WALL), (WALL + 1, SIZE - 1)] {
            grid = grid.put((between(draw(), low, high), scalar(WALL)), cell::EMPTY);
            grid = grid.put((scalar(WALL), between(draw(), low, high)), cell::EMPTY);
        }
        let anywhere = constant(true).broadcast_to([SIZE as usize; 2]);
        let agent = grid.spot(anywhere, draw());
        let goal = grid.spot(!grid.only(agent), draw());
        (grid.put(goal, cell::GOAL).world(agent, between(draw(), 0, 4)), ())
    }
}
