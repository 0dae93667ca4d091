//! MiniGrid: an agent that sees the cells in front of it, among walls, doors, keys and balls.
//!
//! Chevalier-Boisvert et al., "Minigrid & Miniworld: Modular & Customizable Reinforcement Learning
//! Environments for Goal-Oriented Tasks",
//! 2023. The rules, the levels and their sizes follow Farama's minigrid 3.2.0. Grids are drawn with
//! other random numbers, from the same distributions.
//!
//! A level defines how grids are drawn and when its task is done ([`Level`]). [`World`] has the
//! rules that all levels share, and [`view`] the agent's view.
//!
//! # Invariants
//! - A cell is a [code](cell) of eight bits: its content, with its state and colour. Carried things
//!   have the same codes.
//! - Positions are rows and columns, where the package has `x` to the right and `y` down.

mod door_key;
mod dynamic_obstacles;
mod empty;
mod four_rooms;
mod go_to_door;
mod grid;
mod key_corridor;
mod lava_gap;
mod memory;
mod multi_room;
mod picture;
mod rooms;
mod tiles;
mod unlock;
pub mod view;

pub use door_key::DoorKey;
pub use dynamic_obstacles::{Balls, DynamicObstacles};
pub use empty::Empty;
pub use four_rooms::FourRooms;
pub use go_to_door::{GoToDoor, NamedDoor};
pub use key_corridor::{KeyCorridor, NamedBall};
pub use lava_gap::LavaGap;
pub use memory::{Ends, Memory};
pub use multi_room::MultiRoom;
pub use unlock::Unlock;
pub use view::View;

use crate::environment::{Environment, TimeStep};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Codes of cells.
pub mod cell {
    /// Things that stand in cells. A door is open, closed or locked.
    #[allow(missing_docs, reason = "the names say it")]
    pub mod kind {
        pub const UNSEEN: i32 = 0;
        pub const EMPTY: i32 = 1;
        pub const WALL: i32 = 2;
        pub const FLOOR: i32 = 3;
        pub const OPEN_DOOR: i32 = 4;
        pub const KEY: i32 = 5;
        pub const BALL: i32 = 6;
        pub const BOX: i32 = 7;
        pub const GOAL: i32 = 8;
        pub const LAVA: i32 = 9;
        pub const CLOSED_DOOR: i32 = 11;
        pub const LOCKED_DOOR: i32 = 12;
    }

    /// Colours, by the numbers that observations have.
    #[allow(missing_docs, reason = "the names say it")]
    pub mod colour {
        pub const RED: i32 = 0;
        pub const GREEN: i32 = 1;
        pub const BLUE: i32 = 2;
        pub const PURPLE: i32 = 3;
        pub const YELLOW: i32 = 4;
        pub const GREY: i32 = 5;
        /// The number of colours.
        pub const COUNT: usize = 6;
    }

    /// The code of a thing of a colour.
    pub const fn code(kind: i32, colour: i32) -> i32 {
        kind + 16 * colour
    }

    /// Code of an empty cell.
    pub const EMPTY: i32 = code(kind::EMPTY, colour::RED);
    /// Code of a wall.
    pub const WALL: i32 = code(kind::WALL, colour::GREY);
    /// Code of the goal.
    pub const GOAL: i32 = code(kind::GOAL, colour::GREEN);
    /// Code of a cell of lava.
    pub const LAVA: i32 = code(kind::LAVA, colour::RED);
}

use cell::kind;
use grid::{Grid, between, painted};

/// The seven actions.
#[allow(missing_docs, reason = "the names say it")]
pub mod action {
    pub const LEFT: i32 = 0;
    pub const RIGHT: i32 = 1;
    pub const FORWARD: i32 = 2;
    pub const PICK_UP: i32 = 3;
    pub const DROP: i32 = 4;
    pub const TOGGLE: i32 = 5;
    pub const DONE: i32 = 6;
}

/// Settings of every level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Common {
    /// Form of the observations.
    pub view: View,
    /// Steps after which an episode is truncated; by default the package's limit for the level's
    /// size.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: Option<usize>,
}

/// Frame of a level: the part of its settings that holds for every episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Rows and columns of the grid.
    pub extents: (usize, usize),
    /// Steps after which an episode is truncated.
    pub limit: usize,
    /// Form of the observations.
    pub view: View,
}

impl Common {
    /// The frame of a grid of these extents, with this limit if the settings have none.
    pub fn frame(&self, extents: (usize, usize), limit: usize) -> Frame {
        Frame { extents, limit: self.time_limit.unwrap_or(limit), view: self.view }
    }
}

/// The grid, the agent, and what it carries.
#[derive(Tree, Clone, Copy)]
pub struct World {
    /// The [code](cell) of each cell, row by row. `u8[rows * columns]`
    pub cells: Tensor,
    /// Row of the agent. `i32[]`
    pub row: Tensor,
    /// Column of the agent. `i32[]`
    pub column: Tensor,
    /// Direction of the agent: 0 to 3 are right, down, left, up. `i32[]`
    pub direction: Tensor,
    /// The code of what the agent carries, 0 for nothing. `i32[]`
    pub carried: Tensor,
}

/// The world, the task in it, and the time.
#[derive(Tree, Clone, Copy)]
pub struct State<T: Tree> {
    /// The grid and the agent.
    pub world: World,
    /// The codes of the cells in the agent's view, see [`view`]. `u8[7, 7]`
    pub seen: Tensor,
    /// State of the level's task.
    pub task: T,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl<T: Tree> State<T> {
    /// The initial state of a level's episode in a world.
    #[track_caller]
    pub fn first<L: Level<Task = T>>(level: &L, world: World, task: T) -> State<T> {
        // The view is kept: many cells are needed to compute it, and several observations show it.
        let seen = view::seen(level.frame().extents, &world, L::SEES_THROUGH_WALLS).astype(U8);
        State { world, seen, task, time: scalar(0) }
    }

    /// The package's picture of the whole grid, with tiles of eight pixels. The agent's view is lighter. `level` has the grid's
    /// extents. `u8[8 * rows, 8 * columns, 3]`
    #[track_caller]
    pub fn package_picture<L: Level<Task = T>>(&self, level: &L) -> Tensor {
        view::package_picture(level.frame().extents, &self.world, self.seen.astype(I32))
    }
}

/// A step of the agent.
#[derive(Clone, Copy)]
pub struct Taken {
    /// The agent's action. `i32[]`
    pub action: Tensor,
    /// The kind of thing that was in front of the agent when it acted. `i32[]`
    pub front: Tensor,
    /// The world afterwards.
    pub world: World,
}

/// The end of an episode: true if the step did the task, and true if the step failed it. `bool[]`
/// each, at most one of them true
pub type Verdict = (Tensor, Tensor);

/// A level of MiniGrid, which is an [`Environment`].
///
/// The reward is `1 - 0.9 * steps / limit` for the step that does the task,
/// [`FAILURE`](Self::FAILURE) for a step that fails it, and 0 for other steps. The former two
/// terminate the episode.
pub trait Level: Clone + 'static {
    /// State of the task, in addition to the world.
    type Task: Tree;
    /// True if the agent sees through walls and closed doors.
    const SEES_THROUGH_WALLS: bool = false;
    /// Number of the level's actions, which are the first of the seven.
    const ACTIONS: usize = 7;
    /// True if the task names a colour, which is then part of the features.
    const NAMES_COLOUR: bool = false;
    /// Reward of a step that fails the task.
    const FAILURE: f64 = 0.0;

    /// The grid's extents, the limit of steps, and the view.
    fn frame(&self) -> Frame;

    /// Checks that settings fit together, see [`Environment::check_settings`].
    ///
    /// # Errors
    /// Returns a sentence that names the settings that do not fit.
    fn check_settings(&self) -> Result<(), String> {
        Ok(())
    }

    /// A grid, with the agent in it, and its task.
    fn drawn(&self, key: Key) -> (World, Self::Task);

    /// The world and the task before the agent acts, after things have moved by themselves.
    fn stirred(&self, world: World, task: Self::Task, key: Key) -> (World, Self::Task) {
        let _ = key;
        (world, task)
    }

    /// The agent's action in terms of the shared rules.
    fn meant(&self, action: Tensor) -> Tensor {
        action
    }

    /// Verdict on a step. By default a step onto the goal does the task, and a step into lava fails
    /// it. `before` is the world before anything moved.
    #[track_caller]
    fn verdict(&self, task: &Self::Task, before: &World, taken: &Taken) -> Verdict {
        let _ = (task, before);
        let onto = |kind: i32| taken.action.eq(action::FORWARD) & taken.front.eq(kind);
        (onto(kind::GOAL), onto(kind::LAVA))
    }

    /// The colour that the task names, `i32[]`, if [`NAMES_COLOUR`](Self::NAMES_COLOUR).
    fn colour(&self, task: &Self::Task) -> Option<Tensor> {
        let _ = task;
        None
    }
}

/// Row and column offsets of a step forward. `i32[]` each
#[track_caller]
pub(crate) fn forward(direction: Tensor) -> (Tensor, Tensor) {
    let by =
        |plus: i32, minus: i32| direction.eq(plus).astype(I32) - direction.eq(minus).astype(I32);
    (by(1, 3), by(0, 2))
}

impl World {
    /// The number of the cell in front of the agent. `i32[]`
    #[track_caller]
    pub(crate) fn front(&self, columns: usize) -> Tensor {
        let (down, right) = forward(self.direction);
        (self.row + down) * columns as i32 + self.column + right
    }

    /// The code of a cell. `i32[]`
    #[track_caller]
    pub(crate) fn code(&self, cell: Tensor) -> Tensor {
        self.cells.take(cell, 0).astype(I32)
    }

    /// The step for an action.
    #[track_caller]
    fn stepped(self, columns: usize, action: Tensor) -> Taken {
        let place = self.front(columns);
        let code = self.code(place);
        let (front, colour) = (code & 15, code / 16);
        let is =
            |kinds: &[i32]| kinds.iter().fold(constant(false), |any, &kind| any | front.eq(kind));
        let does = |which: i32| action.eq(which);
        let turn = does(action::RIGHT).astype(I32) - does(action::LEFT).astype(I32);
        let direction = (self.direction + turn) & 3;
        let free = [kind::EMPTY, kind::FLOOR, kind::OPEN_DOOR, kind::GOAL, kind::LAVA];
        let goes = does(action::FORWARD) & is(&free);
        let (down, right) = forward(self.direction);
        let row = select(goes, self.row + down, self.row);
        let column = select(goes, self.column + right, self.column);

        let things = is(&[kind::KEY, kind::BALL, kind::BOX]);
        let picks = does(action::PICK_UP) & things & self.carried.eq(0);
        let drops = does(action::DROP) & front.eq(kind::EMPTY) & self.carried.gt(0);
        let key = self.carried.eq(painted(kind::KEY, colour));
        let unlocks = front.eq(kind::LOCKED_DOOR) & key;
        let opens = does(action::TOGGLE) & (front.eq(kind::CLOSED_DOOR) | unlocks);
        let closes = does(action::TOGGLE) & front.eq(kind::OPEN_DOOR);
        // A box is empty.
        let breaks = does(action::TOGGLE) & front.eq(kind::BOX);
        let after = select(picks | breaks, cell::EMPTY, code);
        let after = select(drops, self.carried, after);
        let after = select(opens, painted(kind::OPEN_DOOR, colour), after);
        let after = select(closes, painted(kind::CLOSED_DOOR, colour), after);
        let carried = select(picks, code, select(drops, 0, self.carried));
        let here = arange(self.cells.len()).eq(place);
        let cells = select(here, after.astype(U8), self.cells);
        Taken { action, front, world: World { cells, row, column, direction, carried } }
    }
}

impl<L: Level> Environment for L {
    type State = State<L::Task>;
    type Observation = Tensor;

    fn check_settings(&self) -> Result<(), String> {
        Level::check_settings(self)
    }

    fn initial_state(&self, key: Key) -> Self::State {
        let (world, task) = self.drawn(key);
        State::first(self, world, task)
    }

    fn step(&self, state: Self::State, action: Tensor, key: Key) -> (Self::State, TimeStep) {
        let (before, Frame { extents, limit, .. }) = (state.world, self.frame());
        let (world, task) = self.stirred(before, state.task, key);
        let taken = world.stepped(extents.1, self.meant(action));
        let (done, failed) = self.verdict(&task, &before, &taken);
        let time = state.time + 1;
        let state = State { time, ..State::first(self, taken.world, task) };
        let terminated = done | failed;
        let truncated = state.time.ge(limit) & !terminated;
        let share = state.time.astype(F32) / limit as f64;
        let reward = select(done, 1.0 - 0.9 * share, select(failed, L::FAILURE, 0.0));
        let observation = self.observe(state.clone());
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    fn observe(&self, state: Self::State) -> Tensor {
        let colour = self.colour(&state.task);
        self.frame().view.of(state.seen.astype(I32), state.world.direction, colour)
    }

    fn observation_space(&self) -> Space {
        self.frame().view.space(L::NAMES_COLOUR)
    }

    /// Turn left, turn right, go forward, pick up, drop, toggle, and done.
    fn action_space(&self) -> Space {
        let names = ["left", "right", "forward", "pick up", "drop", "toggle", "done"];
        Space::discrete(L::ACTIONS).named(&names[..L::ACTIONS])
    }

    /// The whole grid with the agent as a red arrow. The cells in the agent's view are lighter.
    fn render(&self, state: &Self::State) -> Option<Tensor> {
        Some(picture::picture(self.frame().extents, &state.world, state.seen.astype(I32)))
    }
}
