//! KeyCorridor: a ball behind a locked door, and its key behind other doors.

use super::cell::{self, kind};
use super::rooms::{Rooms, drawn_colour};
use super::{Common, Frame, Grid, Level, Taken, Verdict, World, action, between, painted};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MiniGrid's KeyCorridor: an agent begins in the corridor between two columns of rooms. It finds
/// the key in a room to the left, unlocks the room to the right with the ball, and picks up the
/// ball. Doors of any colours join the rooms. They are added in random order until all rooms can be
/// reached.
///
/// The ball's colour in the task is part of the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KeyCorridor {
    /// Rows and columns of a room, walls included: 3 to 6 in the package.
    #[schemars(range(min = 3, max = 30), extend("x-reason" = "a room has a cell"))]
    pub size: usize,
    /// Rooms per column: 1 to 3 in the package, the smaller numbers for rooms of 3.
    #[schemars(range(min = 1, max = 10))]
    pub rows: usize,
    /// Settings of every level.
    #[serde(flatten)]
    pub common: Common,
}

/// Three rows of rooms of 3 by 3 cells.
impl Default for KeyCorridor {
    fn default() -> Self {
        KeyCorridor { size: 3, rows: 3, common: Common::default() }
    }
}

/// The ball to pick up.
#[derive(Tree, Clone, Copy)]
pub struct NamedBall {
    /// The number of its colour. `i32[]`
    pub colour: Tensor,
}

const COLUMNS: usize = 3;

/// A wall between two rooms, by their numbers row by row.
#[derive(Clone, Copy)]
struct Wall {
    rooms: (usize, usize),
    /// True if the rooms are side by side.
    upright: bool,
}

impl Wall {
    /// Row and column of the left or upper room.
    fn first(self) -> (usize, usize) {
        (self.rooms.0 / COLUMNS, self.rooms.0 % COLUMNS)
    }

    /// True if no door is ever drawn here: the corridor has no doors.
    fn open(self) -> bool {
        !self.upright && self.first().1 == 1
    }
}

impl KeyCorridor {
    fn rooms(&self) -> Rooms {
        Rooms { rows: self.rows, columns: COLUMNS, size: self.size }
    }

    fn walls(&self) -> Vec<Wall> {
        let rooms = 0..self.rows * COLUMNS;
        let beside = rooms.clone().filter(|room| room % COLUMNS + 1 < COLUMNS);
        let beside = beside.map(|room| Wall { rooms: (room, room + 1), upright: true });
        let below = rooms.filter(|room| room + COLUMNS < self.rows * COLUMNS);
        let below = below.map(|room| Wall { rooms: (room, room + COLUMNS), upright: false });
        beside.chain(below).collect()
    }

    /// The cell of a wall's door.
    #[track_caller]
    fn door(&self, wall: Wall, draw: Tensor) -> (Tensor, Tensor) {
        let pitch = self.rooms().pitch();
        let at = |room: usize| room as i32 * pitch;
        let along = |room: usize| between(draw, at(room) + 1, at(room + 1));
        let (row, column) = wall.first();
        match wall.upright {
            true => (along(row), scalar(at(column + 1))),
            false => (scalar(at(row + 1)), along(column)),
        }
    }

    /// The walls that get doors in addition to the locked door into the room at `row` to the right.
    /// They are walls in random order that do not touch that room, until all rooms are connected.
    /// `bool[walls]`
    #[track_caller]
    fn joined(&self, walls: &[Wall], row: Tensor, key: Key) -> Tensor {
        let number = |pick: fn(&Wall) -> usize| {
            let numbers: Vec<i32> = walls.iter().map(|wall| pick(wall) as i32).collect();
            constant(&numbers[..])
        };
        let (one, other) = (number(|wall| wall.rooms.0), number(|wall| wall.rooms.1));
        let open: Vec<bool> = walls.iter().map(|wall| wall.open()).collect();
        let locked = row * COLUMNS as i32 + (COLUMNS as i32 - 1);
        let usable = one.ne(locked) & other.ne(locked) & !constant(&open[..]);
        // Connected rooms share a label, like the corridor's rooms; the locked room has its own.
        let room = arange(self.rows * COLUMNS);
        let labels = select((room % COLUMNS as i32).eq(1) | room.eq(locked), 1, room);
        let order = select(usable, key.uniform([walls.len()]), -1.0);
        let none = full([walls.len()], false);
        let ((_, _, doors), ()) = scan((order, labels, none), arange(walls.len()), |state, _| {
            let (order, labels, doors) = state;
            let next = order.argmax(0);
            let more = labels.ne(labels.index(0)).any() & order.take(next, 0).ge(0.0);
            let here = arange(walls.len()).eq(next);
            let label = |of: Tensor| labels.take(of.take(next, 0), 0);
            let merged = select(labels.eq(label(other)), label(one), labels);
            let state =
                (select(here, -1.0, order), select(more, merged, labels), doors | (here & more));
            (state, ())
        });
        doors
    }

    /// The rooms with the corridor.
    #[track_caller]
    fn grid(&self) -> Grid {
        let pitch = self.rooms().pitch();
        let grid = self.rooms().grid();
        let (row, column) = grid.places();
        let between_rooms = row.gt(0) & row.lt(pitch * self.rows as i32);
        let corridor = column.gt(pitch) & column.lt(2 * pitch);
        grid.with(between_rooms & corridor & (row % pitch).eq(0), cell::EMPTY)
    }
}

impl Level for KeyCorridor {
    type Task = NamedBall;
    const NAMES_COLOUR: bool = true;

    fn frame(&self) -> Frame {
        self.common.frame(self.rooms().extents(), 30 * self.size * self.size)
    }

    fn drawn(&self, key: Key) -> (World, NamedBall) {
        let [choices, order, doors] = key.split_into();
        let (rooms, walls) = (self.rooms(), self.walls());
        let draws = choices.uniform([7]);
        let a_row = |draw: usize| between(draws.index(draw), 0, self.rows as i32);
        let [row, key_row] = [0, 1].map(a_row);
        let [colour, ball_colour] = [2, 3].map(|draw| drawn_colour(draws.index(draw)));
        let doors = doors.uniform([2, walls.len()]);
        let places: Vec<_> = (walls.iter().enumerate())
            .map(|(i, &wall)| self.door(wall, doors.index(0).index(i)))
            .collect();
        let mut grid = self.grid();
        for (wall, &place) in walls.iter().zip(&places) {
            let (of, column) = wall.first();
            if wall.upright && column == 1 {
                let locked = grid.only(place) & row.eq(of as i32);
                grid = grid.with(locked, painted(kind::LOCKED_DOOR, colour));
            }
        }
        let ball = rooms.spot(&grid, (row, COLUMNS as i32 - 1), draws.index(4));
        let grid = grid.put(ball, painted(kind::BALL, ball_colour));
        let place = rooms.spot(&grid, (key_row, 0), draws.index(5));
        let grid = grid.put(place, painted(kind::KEY, colour));
        let world = rooms.entered(grid, (self.rows / 2, 1), draws.index(6));
        let joined = self.joined(&walls, row, order);
        let mut grid = grid;
        for (i, &place) in places.iter().enumerate() {
            let door = painted(kind::CLOSED_DOOR, drawn_colour(doors.index(1).index(i)));
            grid = grid.with(grid.only(place) & joined.index(i), door);
        }
        let world = grid.world((world.row, world.column), world.direction);
        (world, NamedBall { colour: ball_colour })
    }

    fn verdict(&self, _: &NamedBall, _: &World, taken: &Taken) -> Verdict {
        let picked = taken.action.eq(action::PICK_UP);
        (picked & (taken.world.carried & 15).eq(kind::BALL), constant(false))
    }

    fn colour(&self, ball: &NamedBall) -> Option<Tensor> {
        Some(ball.colour)
    }
}
