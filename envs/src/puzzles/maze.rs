//! Maze: find the way to a goal.

use crate::cells::{WAYS, along, draw_cell};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maze: an agent walks from cell to cell to a goal, between walls that are cells themselves. A
/// step into a wall or out of the maze does nothing.
///
/// The reward is 1 for the step that reaches the goal, and 0 for others. The episode is terminated
/// at the goal, and if no step is possible, and truncated after `time_limit` steps. Mazes are made
/// by recursive division: a wall with one opening divides the longer side of a chamber, and then
/// both halves are divided. There is therefore exactly one way between any two cells. Agent and
/// goal begin in two free cells, drawn uniformly.
///
/// The rules follow jumanji 1.1.2's Maze-v0. In jumanji the time limit is an end without value. Mazes
/// are drawn with other random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Maze {
    /// Rows of cells.
    #[schemars(range(min = 2, max = 100))]
    pub rows: usize,
    /// Columns of cells.
    #[schemars(range(min = 2, max = 100))]
    pub columns: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// A maze of 10 by 10 cells and 100 steps, as in jumanji.
impl Default for Maze {
    fn default() -> Self {
        Maze { rows: 10, columns: 10, time_limit: 100 }
    }
}

/// The maze, and the positions of the agent and its goal.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// True for each cell that is a wall. `bool[rows, columns]`
    pub walls: Tensor,
    /// Row of the agent. `i32[]`
    pub row: Tensor,
    /// Column of the agent. `i32[]`
    pub column: Tensor,
    /// Row of the goal. `i32[]`
    pub goal_row: Tensor,
    /// Column of the goal. `i32[]`
    pub goal_column: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// Part of a maze without walls so far. `i32[]` each, or `i32[n]` for several parts
#[derive(Tree, Clone, Copy)]
struct Chamber {
    row: Tensor,
    column: Tensor,
    rows: Tensor,
    columns: Tensor,
}

impl Maze {
    /// Numbers of each cell's row and column. `i32[rows, columns]` each
    #[track_caller]
    fn places(&self) -> (Tensor, Tensor) {
        let number = |axis| iota(I32, [self.rows, self.columns], axis);
        (number(0), number(1))
    }

    /// A mask of one cell. `bool[rows, columns]`
    #[track_caller]
    fn cell(&self, row: Tensor, column: Tensor) -> Tensor {
        let (rows, columns) = self.places();
        rows.eq(row) & columns.eq(column)
    }

    /// True for each direction with a free cell. `bool[4]`
    #[track_caller]
    fn open(&self, walls: Tensor, row: Tensor, column: Tensor) -> Tensor {
        let way =
            |(down, right): (i32, i32)| (self.cell(row + down, column + right) & !walls).any();
        stack(&WAYS.map(way), 0)
    }

    /// A maze by recursive division. `bool[rows, columns]`
    #[track_caller]
    fn drawn(&self, key: &Key) -> Tensor {
        // A chamber's halves wait while one of them is divided, and each is shorter by a wall:
        // there are never more halves than rows and columns.
        let most = self.rows + self.columns;
        let none = zeros(I32, [most]);
        let first = |whole: usize| select(arange(most).eq(0), whole as i32, 0);
        let (rows, columns) = (first(self.rows), first(self.columns));
        let waiting = Chamber { row: none, column: none, rows, columns };
        let begin = (0, 1, waiting, full([self.rows, self.columns], false));
        let (.., walls) = while_loop(
            begin,
            |(_, count, ..)| count.gt(0),
            |(round, count, waiting, walls)| {
                let last = arange(most).eq(count - 1);
                let chamber = tree_map(&waiting, |all| select(last, all, 0).sum());
                let draws = key.fold_in(round).uniform([2]);
                let (walls, halves) = self.divided(chamber, walls, draws);
                let mut state = (count - 1, waiting);
                for half in halves {
                    let (count, waiting) = state;
                    let divides = half.rows.gt(1) & half.columns.gt(1);
                    let place = arange(most).eq(count) & divides;
                    let waiting = waiting.zip_with(&half, |all, one| select(place, one, all));
                    state = (count + divides.astype(I32), waiting);
                }
                (round + 1, state.0, state.1, walls)
            },
        );
        walls
    }

    /// Divides a chamber by a wall with an opening, at positions from two draws, `f32[2]`. Returns
    /// the walls and both halves.
    #[track_caller]
    fn divided(&self, chamber: Chamber, walls: Tensor, draws: Tensor) -> (Tensor, [Chamber; 2]) {
        let Chamber { row, column, rows, columns } = chamber;
        // A wall between columns is drawn if a chamber is at least as wide as it is high.
        let upright = columns.ge(rows);
        let choose = |draw: Tensor, among: Tensor| (draw * among.astype(F32)).astype(I32);
        let (across, length) = (select(upright, columns, rows), select(upright, rows, columns));
        // Walls are at odd positions and openings at even positions, so that no wall closes an
        // opening.
        let wall = choose(draws.index(0), across / 2) * 2 + 1;
        let opening = choose(draws.index(1), (length + 1) / 2) * 2;
        let (at_row, at_column) = self.places();
        let (down, right) = (at_row - row, at_column - column);
        let inside = down.ge(0) & down.lt(rows) & right.ge(0) & right.lt(columns);
        let is_wall = select(upright, right, down).eq(wall);
        let is_open = select(upright, down, right).eq(opening);
        let walls = walls | (inside & is_wall & !is_open);
        let part = |extent: Tensor, along: bool, after: bool| {
            let here = if along { upright } else { !upright };
            select(here, if after { extent - wall - 1 } else { wall }, extent)
        };
        let before = Chamber {
            rows: part(rows, false, false),
            columns: part(columns, true, false),
            ..chamber
        };
        let behind = Chamber {
            row: select(upright, row, row + wall + 1),
            column: select(upright, column + wall + 1, column),
            rows: part(rows, false, true),
            columns: part(columns, true, true),
        };
        (walls, [before, behind])
    }

    /// The initial state of an episode in a maze, `bool[rows, columns]`, with the agent and its
    /// goal in two cells, row and column `i32[]` each.
    #[track_caller]
    pub fn at(&self, walls: Tensor, agent: (Tensor, Tensor), goal: (Tensor, Tensor)) -> State {
        let ((row, column), (goal_row, goal_column)) = (agent, goal);
        State { walls, row, column, goal_row, goal_column, time: scalar(0) }
    }
}

impl Environment for Maze {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let [maze_key, cells_key] = key.split_into();
        let walls = self.drawn(&maze_key);
        let draws = cells_key.uniform([2]);
        let agent = draw_cell(!walls, draws.index(0));
        let goal = draw_cell(!walls & !self.cell(agent.0, agent.1), draws.index(1));
        self.at(walls, agent, goal)
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let open = self.open(state.walls, state.row, state.column);
        let is_open = (arange(4).eq(action) & open).any();
        let (down, right) = along(select(is_open, action, -1));
        let (row, column) = (state.row + down, state.column + right);
        let state = State { row, column, time: state.time + 1, ..state };
        let reached = row.eq(state.goal_row) & column.eq(state.goal_column);
        let terminated = reached | !self.open(state.walls, row, column).any();
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = reached.astype(F32);
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// Planes of the walls, the agent and the goal, with 1 at their positions. `f32[rows, columns,
    /// 3]`
    fn observe(&self, state: State) -> Tensor {
        let agent = self.cell(state.row, state.column);
        let goal = self.cell(state.goal_row, state.goal_column);
        stack(&[state.walls, agent, goal], 2).astype(F32)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.rows, self.columns, 3], 0.0, 1.0)
            .described("1 at walls, 1 at the agent, 1 at the goal")
    }

    /// Directions of the agent: 0 to 3 are up, right, down, left.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["up", "right", "down", "left"])
    }

    /// The directions with free cells.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        Some(self.open(state.walls, state.row, state.column))
    }

    /// 1 at the goal, otherwise 0.
    fn success(&self, state: &State) -> Option<Tensor> {
        let reached = state.row.eq(state.goal_row) & state.column.eq(state.goal_column);
        Some(reached.astype(F32))
    }

    /// Walls, a flag at the goal, and the agent in blue.
    fn render(&self, state: &State) -> Option<Tensor> {
        let canvas = Canvas::board(self.rows, self.columns, Colour::BOARD);
        let floor = scenery::floor(&canvas);
        let tiles = [floor, scenery::wall(&canvas), scenery::flag(floor, Colour::GREEN)];
        let goal = self.cell(state.goal_row, state.goal_column);
        Some(
            canvas
                .tiles(select(goal, 2, state.walls.astype(I32)), &tiles)
                .fill_cell(state.row, state.column, &scenery::walker(), Colour::BLUE)
                .finish(),
        )
    }
}
