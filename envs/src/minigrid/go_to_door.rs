//! GoToDoor: stop at the door with a given colour.

use super::cell::{self, colour, kind};
use super::{Common, Frame, Grid, Level, Taken, Verdict, World, action, between, painted};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's GoToDoor: each of the four walls of a room has a door of another colour. The agent
/// goes to the door of the colour that the task names, and takes the action "done" next to it.
/// Toggling, and the action "done" elsewhere, end the episode without a reward. Rooms have any
/// extents up to the grid's extents.
///
/// The colour is part of the features; the other views do not contain it, like the package's
/// images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GoToDoor {
    /// Rows and columns of the grid: 5, 6 or 8 in the package.
    #[schemars(range(min = 5, max = 100), extend("x-reason" = "as in the package"))]
    pub size: usize,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// A grid of 5 by 5 cells.
impl Default for GoToDoor {
    fn default() -> Self {
        GoToDoor { size: 5, common: Common::default() }
    }
}

/// The door to go to.
#[derive(Tree, Clone, Copy)]
pub struct NamedDoor {
    /// Its row. `i32[]`
    pub row: Tensor,
    /// Its column. `i32[]`
    pub column: Tensor,
    /// The number of its colour. `i32[]`
    pub colour: Tensor,
}

impl Level for GoToDoor {
    type Task = NamedDoor;
    const SEES_THROUGH_WALLS: bool = true;
    const NAMES_COLOUR: bool = true;

    fn frame(&self) -> Frame {
        self.common.frame((self.size, self.size), 4 * self.size * self.size)
    }

    fn drawn(&self, key: Key) -> (World, NamedDoor) {
        let [rooms, colours] = key.split_into();
        let draws = rooms.uniform([9]);
        let extent = |draw: usize| between(draws.index(draw), 5, self.size as i32 + 1);
        let (columns, rows) = (extent(0), extent(1));
        let grid = Grid::new(self.frame().extents);
        let (row, column) = grid.places();
        let (last_row, last_column) = (rows - 1, columns - 1);
        let room = row.le(last_row) & column.le(last_column);
        let edge = row.eq(0) | row.eq(last_row) | column.eq(0) | column.eq(last_column);
        let mut grid = grid.with(room & edge, cell::WALL);
        let along = |draw: usize, extent: Tensor| between(draws.index(draw), 2, extent - 2);
        let doors = [
            (scalar(0), along(2, columns)),
            (last_row, along(3, columns)),
            (along(4, rows), scalar(0)),
            (along(5, rows), last_column),
        ];
        // Four distinct colours.
        let colours = colours.choice_distinct(arange(colour::COUNT), 4);
        for (i, &door) in doors.iter().enumerate() {
            grid = grid.put(door, painted(kind::CLOSED_DOOR, colours.index(i)));
        }
        let agent = grid.spot(room, draws.index(6));
        let which = between(draws.index(7), 0, 4);
        let of = |each: [Tensor; 4]| stack(&each, 0).take(which, 0);
        let task = NamedDoor {
            row: of(doors.map(|door| door.0)),
            column: of(doors.map(|door| door.1)),
            colour: colours.take(which, 0),
        };
        (grid.world(agent, between(draws.index(8), 0, 4)), task)
    }

    fn verdict(&self, door: &NamedDoor, _: &World, taken: &Taken) -> Verdict {
        let away = (taken.world.row - door.row).abs() + (taken.world.column - door.column).abs();
        let done = taken.action.eq(action::DONE);
        let beside = done & away.eq(1);
        (beside, taken.action.eq(action::TOGGLE) | (done & !beside))
    }

    fn colour(&self, door: &NamedDoor) -> Option<Tensor> {
        Some(door.colour)
    }
}
