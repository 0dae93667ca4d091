//! MultiRoom: a goal behind several doors.

use super::cell::{self, colour, kind};
use super::{Common, Frame, Grid, Level, World, between, painted};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's MultiRoom: an agent begins in the first of several rooms, each joined to the next by
/// a closed door, and goes to the goal in the last. Rooms are added one after another at random
/// places of a wall of the last room. After eight attempts that do not fit, all rooms are drawn
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MultiRoom {
    /// Number of rooms: 2, 4 or 6 in the package.
    #[schemars(range(min = 1, max = 8), extend("x-reason" = "more find no place"))]
    pub rooms: usize,
    /// Greatest number of rows and columns of a room, walls included; the least number is 4. It is
    /// 4, 5 and 10 in the package.
    #[schemars(range(min = 4, max = 10))]
    pub room_size: usize,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// Six rooms of up to 10 by 10 cells.
impl Default for MultiRoom {
    fn default() -> Self {
        MultiRoom { rooms: 6, room_size: 10, common: Common::default() }
    }
}

/// Rows and columns of the grid.
const SIZE: i32 = 25;
/// Least number of rows and columns of a room.
const LEAST: i32 = 4;
/// Number of attempts to add a room.
const TRIES: i32 = 8;
/// Sides of a room, in the order of directions. The first room is entered from the left.
const RIGHT: i32 = 0;
const DOWN: i32 = 1;
const LEFT: i32 = 2;

/// Several rooms, or a single room. `i32[rooms]` each, or `i32[]`
#[derive(Tree, Clone, Copy)]
struct Room {
    row: Tensor,
    column: Tensor,
    rows: Tensor,
    columns: Tensor,
    /// Cell of the door to the room before it.
    door_row: Tensor,
    door_column: Tensor,
    /// Side of that door.
    side: Tensor,
}

impl Room {
    #[track_caller]
    fn extent(&self) -> ((Tensor, Tensor), (Tensor, Tensor)) {
        ((self.row, self.row + self.rows - 1), (self.column, self.column + self.columns - 1))
    }

    /// The cell of a door in one of the other three sides: row, column, and the side of the next
    /// room.
    #[track_caller]
    fn exit(&self, side: Tensor, along: Tensor) -> (Tensor, Tensor, Tensor) {
        let out = between(side, 0, 3);
        let out = select(out.ge(self.side), out + 1, out);
        let sideways = out.eq(RIGHT) | out.eq(LEFT);
        let extent = select(sideways, self.rows, self.columns);
        let along = between(along, 1, extent - 1);
        let ((top, bottom), (left, right)) = self.extent();
        let row = select(sideways, top + along, select(out.eq(DOWN), bottom, top));
        let column = select(sideways, select(out.eq(RIGHT), right, left), left + along);
        (row, column, (out + 2) & 3)
    }
}

impl MultiRoom {
    /// A room behind a door, with draws `f32[3]` for its extents and position.
    #[track_caller]
    fn behind(
        &self,
        (door_row, door_column, side): (Tensor, Tensor, Tensor),
        first: Tensor,
        draws: Tensor,
    ) -> Room {
        let extent = |draw: usize| between(draws.index(draw), LEAST, self.room_size as i32 + 1);
        let (columns, rows) = (extent(0), extent(1));
        // The door is anywhere along the side except at a corner.
        let place = |door: Tensor, extent: Tensor| between(draws.index(2), door - extent + 2, door);
        let upright = side.eq(RIGHT) | side.eq(LEFT);
        let far =
            |door: Tensor, extent: Tensor, here: Tensor| select(here, door - extent + 1, door);
        let row = select(upright, place(door_row, rows), far(door_row, rows, side.eq(DOWN)));
        let column =
            select(upright, far(door_column, columns, side.eq(RIGHT)), place(door_column, columns));
        let row = select(first, door_row, row);
        let column = select(first, door_column, column);
        Room { row, column, rows, columns, door_row, door_column, side }
    }

    /// True if a room lies in the grid and does not touch the first `count` rooms except the last.
    #[track_caller]
    fn fits(&self, room: &Room, rooms: &Room, count: Tensor) -> Tensor {
        let inside = room.row.ge(0) & room.column.ge(0);
        let inside = inside & (room.column + room.columns).le(SIZE);
        let inside = inside & (room.row + room.rows).lt(SIZE);
        let apart = (room.column + room.columns).lt(rooms.column)
            | (rooms.column + rooms.columns).le(room.column)
            | (room.row + room.rows).lt(rooms.row)
            | (rooms.row + rooms.rows).le(room.row);
        inside & (apart | arange(self.rooms).ge(count - 1)).all()
    }

    /// The rooms, one after another.
    #[track_caller]
    fn rooms(&self, key: &Key) -> Room {
        let none = zeros(I32, [self.rooms]);
        let rooms = Room {
            row: none,
            column: none,
            rows: none,
            columns: none,
            door_row: none,
            door_column: none,
            side: none,
        };
        let (.., rooms) = while_loop(
            (0, 0, 0, rooms),
            |(_, count, ..)| count.lt(self.rooms as i32),
            |(round, count, tries, rooms)| {
                let draws = key.fold_in(round).uniform([7]);
                let first = count.eq(0);
                let last = arange(self.rooms).eq(count - 1);
                let last = tree_map(&rooms, |all| select(last, all, 0).sum());
                let corner = |draw: usize| between(draws.index(draw), 0, SIZE - 2);
                let (row, column, side) = last.exit(draws.index(2), draws.index(3));
                let door = (
                    select(first, corner(0), row),
                    select(first, corner(1), column),
                    select(first, LEFT, side),
                );
                let room = self.behind(door, first, draws.slice(4..7));
                let fits = self.fits(&room, &rooms, count);
                let here = arange(self.rooms).eq(count) & fits;
                let rooms = rooms.zip_with(&room, |all, one| select(here, one, all));
                let tries = select(fits, 0, tries + 1);
                let anew = !fits & (first | tries.ge(TRIES));
                let count = select(anew, 0, count + fits.astype(I32));
                (round + 1, count, select(anew, 0, tries), rooms)
            },
        );
        rooms
    }
}

impl Level for MultiRoom {
    type Task = ();

    fn frame(&self) -> Frame {
        self.common.frame((SIZE as usize, SIZE as usize), 20 * self.rooms)
    }

    fn drawn(&self, key: Key) -> (World, ()) {
        let [rooms, draws, colours] = key.split_into();
        let rooms = self.rooms(&rooms);
        let (draws, colours) = (draws.uniform([3]), colours.uniform([self.rooms]));
        let of = |room: usize| tree_map(&rooms, |all| all.index(room));
        let mut grid = Grid::new(self.frame().extents);
        let mut before: Option<Tensor> = None;
        for number in 0..self.rooms {
            let room = of(number);
            let ((top, bottom), (left, right)) = room.extent();
            let inside = grid.within((top + 1, bottom - 1), (left + 1, right - 1));
            let walls = grid.within((top, bottom), (left, right)) & !inside;
            grid = grid.with(walls, cell::WALL);
            if number > 0 {
                // A colour other than the previous door's.
                let others = colour::COUNT as i32 - i32::from(before.is_some());
                let drawn = between(colours.index(number), 0, others);
                let drawn =
                    before.map_or(drawn, |before| select(drawn.ge(before), drawn + 1, drawn));
                let door = (room.door_row, room.door_column);
                grid = grid.put(door, painted(kind::CLOSED_DOOR, drawn));
                before = Some(drawn);
            }
        }
        let all = |room: Room| {
            let (rows, columns) = room.extent();
            grid.within(rows, columns)
        };
        let agent = grid.spot(all(of(0)), draws.index(0));
        let goal = grid.spot(all(of(self.rooms - 1)) & !grid.only(agent), draws.index(1));
        (grid.put(goal, cell::GOAL).world(agent, between(draws.index(2), 0, 4)), ())
    }
}
