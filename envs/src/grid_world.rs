//! Grid world: find the way to the goal among walls, from any cell.
//!
//! The four-rooms task of Sutton, Precup and Singh, "Between MDPs and semi-MDPs", 1999, without its noise; other maps
//! are read from text.

use crate::environment::{Environment, TimeStep};
use crate::grid_map::{GridMap, MapError};
use crate::render::{Canvas, Colour, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Four rooms with narrow doors and the goal in a far corner.
const FOUR_ROOMS: &str = "
    .....#.....
    .....#.....
    ...........
    .....#.....
    .....#.....
    #.####.....
    .....###.##
    .....#.....
    .....#.....
    ...........
    .....#....G
";

/// Find a goal among the walls of a [`GridMap`]. Actions 0 to 3 go up, right, down, left; the
/// walker stays if a wall or the edge is in the way.
///
/// An episode starts on a free cell, drawn uniformly. A step costs `1 / time_limit`, and reaching a
/// goal pays 1 and terminates. The undiscounted return is therefore `1 - steps / time_limit`, or -1
/// for an episode truncated after `time_limit` steps. The shortest path is the best path under
/// every discount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GridWorld {
    /// Map of the world, one string for each row: `#` is a wall, `G` a goal, `.` a free cell.
    #[schemars(with = "Vec<String>")]
    pub layout: GridMap,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// Four rooms of 11 by 11 cells in total, and 100 steps.
impl Default for GridWorld {
    fn default() -> Self {
        GridWorld::new(FOUR_ROOMS).expect("the built-in map is a map")
    }
}

/// Position of the walker, and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the walker, in `0..rows`. `i32[]`
    pub row: Tensor,
    /// Column of the walker, in `0..columns`. `i32[]`
    pub column: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl GridWorld {
    /// Reads the map from text, see [`GridMap::parse`]. Episodes are truncated after 100 steps, or after four times the
    /// greatest distance to a goal if that is more.
    ///
    /// # Errors
    /// [`MapError`] if the text is not a map.
    pub fn new(text: &str) -> Result<GridWorld, MapError> {
        let layout = GridMap::parse(text)?;
        let time_limit = (4 * layout.greatest_distance()).max(100);
        Ok(GridWorld { layout, time_limit })
    }

    /// The mean return of the shortest paths from all starts, an upper bound of every agent's mean
    /// return.
    pub fn optimal_return(&self) -> f64 {
        1.0 - self.layout.mean_distance() / self.time_limit as f64
    }

    /// True if `cell` is in the set, which is known while tracing. A small set compares with each
    /// member; a large set uses words of 32 cells, with a select for each and a shift. Neither
    /// needs a gather. `bool[]`
    #[track_caller]
    fn is_in(&self, cell: Tensor, set: impl Fn(usize) -> bool) -> Tensor {
        let members: Vec<usize> = (0..self.layout.cells()).filter(|&cell| set(cell)).collect();
        if members.len() <= 4 {
            let equal = members.iter().map(|&member| cell.eq(member));
            return equal.reduce(|a, b| a | b).unwrap_or_else(|| constant(false));
        }
        let mut words = vec![0u32; self.layout.cells().div_ceil(32)];
        for member in members {
            words[member / 32] |= 1 << (member % 32);
        }
        let index = cell >> 5;
        let mut bits = scalar(words[0]);
        for (word, &value) in words.iter().enumerate().skip(1) {
            bits = select(index.eq(word), value, bits);
        }
        ((bits >> (cell & 31).astype(U32)) & 1).ne(0)
    }
}

impl Environment for GridWorld {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let starts = self.layout.starts();
        let chosen = key.randint([], 0..starts.len() as i32);
        // The k-th start is k plus the number of other cells before it. The j-th other cell comes
        // before the k-th start if it has at most k starts before itself: a comparison with
        // constants instead of a table.
        let others: Vec<i32> = (0..self.layout.cells())
            .filter(|cell| !starts.contains(cell))
            .map(|cell| starts.partition_point(|&start| start < cell) as i32)
            .collect();
        let before = chosen.ge(others).astype(I32).sum();
        let cell = chosen + before;
        State {
            row: cell / self.layout.columns(),
            column: cell % self.layout.columns(),
            time: zeros(I32, []),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let (rows, columns) = (self.layout.rows() as i32, self.layout.columns() as i32);
        let down = action.eq(2).astype(I32) - action.eq(0).astype(I32);
        let right = action.eq(1).astype(I32) - action.eq(3).astype(I32);
        let row = (state.row + down).clamp(0, rows - 1);
        let column = (state.column + right).clamp(0, columns - 1);
        let blocked = self.is_in(row * columns + column, |cell| self.layout.is_wall(cell));
        let state = State {
            row: select(blocked, state.row, row),
            column: select(blocked, state.column, column),
            time: state.time + 1,
        };
        let cell = state.row * columns + state.column;
        let terminated = self.is_in(cell, |cell| self.layout.is_goal(cell));
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let cost = 1.0 / self.time_limit as f64;
        let reward = select(terminated, 1.0 - cost, -cost);
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// The map, `f32[rows, columns]`: 1 at the walker, 0 elsewhere.
    fn observe(&self, state: State) -> Tensor {
        let cell = state.row * self.layout.columns() + state.column;
        arange(self.layout.cells())
            .eq(cell)
            .astype(F32)
            .reshape([self.layout.rows(), self.layout.columns()])
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.layout.rows(), self.layout.columns()], 0.0, 1.0)
            .described("1 at the walker")
    }

    /// Actions 0 to 3: up, right, down, left.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["up", "right", "down", "left"])
    }

    /// Walls, flags at the goals, and the walker in blue.
    fn render(&self, state: &State) -> Option<Tensor> {
        let (rows, columns) = (self.layout.rows(), self.layout.columns());
        let number = |cell: usize| match () {
            () if self.layout.is_wall(cell) => 1,
            () if self.layout.is_goal(cell) => 2,
            () => 0,
        };
        let cells: Vec<i32> = (0..self.layout.cells()).map(number).collect();
        let canvas = Canvas::board(rows, columns, Colour::BOARD);
        let floor = scenery::floor(&canvas);
        let tiles = [floor, scenery::wall(&canvas), scenery::flag(floor, Colour::GREEN)];
        Some(
            canvas
                .tiles(constant(cells).reshape([rows, columns]), &tiles)
                .fill_cell(state.row, state.column, &scenery::walker(), Colour::BLUE)
                .finish(),
        )
    }
}
