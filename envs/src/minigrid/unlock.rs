//! Unlock: a key opens a door.

use super::cell::kind;
use super::rooms::{Rooms, drawn_colour};
use super::{Common, Frame, Level, Taken, Verdict, World, action, between, painted};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's Unlock: an agent in the left of two rooms picks up a key and unlocks the door to the
/// other room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unlock {
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

const ROOMS: Rooms = Rooms { rows: 1, columns: 2, size: 6 };

impl Level for Unlock {
    type Task = ();

    fn frame(&self) -> Frame {
        self.common.frame(ROOMS.extents(), 8 * ROOMS.size * ROOMS.size)
    }

    fn drawn(&self, key: Key) -> (World, ()) {
        let draws = key.uniform([4]);
        let colour = drawn_colour(draws.index(0));
        let door = (between(draws.index(1), 1, ROOMS.pitch()), scalar(ROOMS.pitch()));
        let grid = ROOMS.grid().put(door, painted(kind::LOCKED_DOOR, colour));
        let place = ROOMS.spot(&grid, (0, 0), draws.index(2));
        let grid = grid.put(place, painted(kind::KEY, colour));
        (ROOMS.entered(grid, (0, 0), draws.index(3)), ())
    }

    fn verdict(&self, _: &(), before: &World, taken: &Taken) -> Verdict {
        let front = taken.world.code(before.front(self.frame().extents.1)) & 15;
        let opened = taken.action.eq(action::TOGGLE) & front.eq(kind::OPEN_DOOR);
        (opened, constant(false))
    }
}
