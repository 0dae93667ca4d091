//! Connector: route the wires of a circuit board, all at once, without crossing one another.

mod board;
mod view;

use board::Pin;
pub use board::{Board, BoardError};
pub use view::View;

use crate::cells::{WAYS, along, draw_cell, draw_way};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Connector: each wire has a head, which moves by a cell in a step or stays, and leaves the wire
/// behind it. The wire is connected when the head reaches the wire's target. A cell can be taken
/// only once. If two heads move to the same cell, the wire with the higher number gets it.
///
/// The reward is the sum over the wires: 1 in the step that connects a wire, and -0.03 in each step
/// that it begins unconnected. The episode is terminated when each wire is connected or cannot
/// move, and truncated after `time_limit` steps.
///
/// Every board can be solved: its targets are the ends of random walks from the heads that lead
/// away from their starts.
///
/// The rules and the boards follow jumanji 1.1.2's Connector-v3 (Bonnet et al., "Jumanji: a Diverse
/// Suite of Scalable Reinforcement Learning Environments in JAX", 2024), which gives each wire its
/// own reward. Boards are drawn with other random numbers.
///
/// With a user-defined `board`, each episode routes that board. A trained agent needs no further
/// training for this: obstacles look to it like parts of the first wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Connector {
    /// Rows and columns of the board.
    #[schemars(range(min = 2, max = 50), extend("x-reason" = "a wire needs two cells, and the board is an array of cells"))]
    pub size: usize,
    /// Number of wires. Each wire needs two neighbouring free cells at the start.
    #[schemars(range(min = 1, max = 100))]
    pub wires: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
    /// Temperature of the random walks that make boards: below 1 they are straighter.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub temperature: f64,
    /// The view for agents: the whole `board`, or for each of the `wires` the surroundings of its
    /// head.
    #[serde(skip_serializing_if = "View::is_board")]
    pub view: View,
    /// A user-defined board in place of random boards: the path of a text file, or a list with one
    /// string per row. `.` is a free cell, `#` an obstacle, and each letter from `A` to `Z` stands
    /// for the two pins of a wire. A board smaller than `size` lies in the upper left corner. It
    /// may have fewer wires than `wires`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub board: Option<Board>,
}

/// A board of 10 by 10 cells with 10 wires, and 50 steps, as in jumanji.
impl Default for Connector {
    fn default() -> Self {
        Connector {
            size: 10,
            wires: 10,
            time_limit: 50,
            temperature: 1.0,
            view: View::Board,
            board: None,
        }
    }
}

/// Actions of a wire: staying, and [`WAYS`].
const ACTIONS: usize = 5;
/// Numbers of a free cell, and of wire `i` and its head and target minus `3 * i`.
const FREE: i32 = 0;
const PATH: i32 = 1;
const HEAD: i32 = 2;
const TARGET: i32 = 3;
/// Reward for a step that a wire begins unconnected.
const UNCONNECTED: f64 = -0.03;

/// The board and its wires.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The number of each cell, row by row: 0 for a free cell. Wire `i`, counted from 0, has `3 * i
    /// + 1` for the wire behind its head, `3 * i + 2` for the head, and `3 * i + 3` for the target.
    /// An obstacle has `3 * wires + 1`. `i32[size * size]`
    pub board: Tensor,
    /// Rows of the heads. `i32[wires]`
    pub rows: Tensor,
    /// Columns of the heads. `i32[wires]`
    pub columns: Tensor,
    /// Cells of the targets, `size * row + column`. `i32[wires]`
    pub targets: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// Random walks that make a board.
#[derive(Tree, Clone, Copy)]
struct Walks {
    /// Occupied cells: a word per row, with a bit per column. `u64[size]`
    taken: Tensor,
    /// Rows of the heads. `i32[wires]`
    rows: Tensor,
    /// Columns of the heads. `i32[wires]`
    columns: Tensor,
}

impl Connector {
    /// The number of an obstacle's cell, which follows the wires' numbers.
    fn obstacle(&self) -> i32 {
        3 * self.wires as i32 + PATH
    }

    /// The initial state of an episode on a user-defined board. A wire that the board lacks is
    /// nowhere, and so is its target.
    #[track_caller]
    fn on(&self, board: &Board) -> State {
        let pins = board.pins();
        let numbers = |end: usize, axis: fn(Pin) -> usize| {
            let of = |wire: usize| pins.get(wire).map_or(-1, |ends| axis(ends[end]) as i32);
            constant((0..self.wires).map(of).collect::<Vec<i32>>())
        };
        let row: fn(Pin) -> usize = |pin| pin.0;
        let column: fn(Pin) -> usize = |pin| pin.1;
        let targets = self.cell(numbers(1, row), numbers(1, column));
        let state = self.at(numbers(0, row), numbers(0, column), targets);
        let size = self.size;
        let taken = (0..self.cells()).map(|cell| board.is_obstacle(cell / size, cell % size));
        let obstacles = select(constant(taken.collect::<Vec<bool>>()), self.obstacle(), 0);
        State { board: state.board + obstacles, ..state }
    }

    fn cells(&self) -> usize {
        self.size * self.size
    }

    /// Greatest number of steps of a walk, including the first.
    fn longest(&self) -> usize {
        self.size * 3 / 2
    }

    /// The cells of heads. `i32[wires]`
    #[track_caller]
    fn cell(&self, rows: Tensor, columns: Tensor) -> Tensor {
        rows * self.size as i32 + columns
    }

    /// The numbers of a part of each wire, such as [`HEAD`]. `i32[wires]`
    #[track_caller]
    fn numbers(&self, part: i32) -> Tensor {
        arange(self.wires) * 3 + part
    }

    /// The neighbours of heads: rows and columns, `i32[n, 4]`, and whether they are on the board.
    #[track_caller]
    fn beside(&self, rows: Tensor, columns: Tensor) -> (Tensor, Tensor, Tensor) {
        let to = |head: Tensor, way: fn((i32, i32)) -> i32| {
            head.expand_dims(1) + constant(WAYS.map(way)).expand_dims(0)
        };
        let (rows, columns) = (to(rows, |way| way.0), to(columns, |way| way.1));
        (rows, columns, self.inside(rows, columns))
    }

    /// True for positions on the board. `bool` of their shape
    #[track_caller]
    fn inside(&self, rows: Tensor, columns: Tensor) -> Tensor {
        let size = self.size as i32;
        rows.ge(0) & rows.lt(size) & columns.ge(0) & columns.lt(size)
    }

    /// The numbers of the board at positions; positions that are not `inside` get the number of the
    /// first cell. `i32` of their shape
    #[track_caller]
    fn there(&self, state: &State, rows: Tensor, columns: Tensor, inside: Tensor) -> Tensor {
        state.board.take(select(inside, self.cell(rows, columns), 0), 0)
    }

    /// The results of moves, `i32[n]` 0 to 4, which must all be possible: rows, columns, and
    /// whether the head moves. A head does not move if a later head moves to the same cell.
    #[track_caller]
    fn moved(&self, rows: Tensor, columns: Tensor, action: Tensor) -> (Tensor, Tensor, Tensor) {
        let (down, right) = along(action - 1);
        let (to_rows, to_columns) = (rows + down, columns + right);
        let square = [rows.len(), rows.len()];
        let later = iota(I32, square, 1).gt(iota(I32, square, 0));
        let cell = self.cell(to_rows, to_columns);
        let taken = (cell.expand_dims(1).eq(cell.expand_dims(0)) & later).any_axis(1);
        let moves = action.gt(0) & !taken;
        (select(moves, to_rows, rows), select(moves, to_columns, columns), moves)
    }

    /// The initial state of an episode with these heads, by row and column, and targets, by cell.
    #[track_caller]
    pub fn at(&self, rows: Tensor, columns: Tensor, targets: Tensor) -> State {
        let cells = arange(self.cells()).expand_dims(1);
        let put = |cell: Tensor, part: i32| {
            select(cells.eq(cell.expand_dims(0)), self.numbers(part).expand_dims(0), 0).sum_axis(1)
        };
        let board = put(self.cell(rows, columns), HEAD) + put(targets, TARGET);
        State { board, rows, columns, targets, time: scalar(0) }
    }

    /// Wires of two cells, placed one after another at free positions, and their starts, by row and
    /// column.
    #[track_caller]
    fn begun(&self, key: Key) -> (Walks, (Tensor, Tensor)) {
        let taken = zeros(U64, [self.size]);
        let (taken, places) = scan(taken, key.uniform([self.wires, 2]), |taken, draws| {
            let (start, first) = (draws.index(0), draws.slice(1..));
            let free = !taken & (word(scalar(self.size as i32)) - 1);
            // A free cell with a free neighbour.
            let edge = zeros(U64, [1]);
            let above = concatenate(&[edge, free.slice_axis(0, ..self.size - 1)], 0);
            let below = concatenate(&[free.slice_axis(0, 1..), edge], 0);
            let open = free & ((free << 1) | (free >> 1) | above | below);
            let (row, column) = draw_bit(open, start);
            let one = |x: Tensor| x.reshape([1]);
            let taken = take_cells(taken, &[(row, column, constant(true))]);
            let ways = self.free_ways(taken, one(row), one(column)).astype(F32);
            let way = draw_way(ways, first) + 1;
            let (head_rows, head_columns, _) = self.moved(one(row), one(column), way);
            let (head_row, head_column) = (head_rows.index(0), head_columns.index(0));
            let taken = take_cells(taken, &[(head_row, head_column, constant(true))]);
            (taken, (row, column, head_row, head_column))
        });
        let (start_rows, start_columns, rows, columns) = places;
        (Walks { taken, rows, columns }, (start_rows, start_columns))
    }

    /// True for each direction to a free cell. `bool[n, 4]`
    #[track_caller]
    fn free_ways(&self, taken: Tensor, rows: Tensor, columns: Tensor) -> Tensor {
        let (rows, columns, inside) = self.beside(rows, columns);
        let words = taken.take(select(inside, rows, 0), 0);
        inside & (words & word(select(inside, columns, 0))).eq(0)
    }

    /// A step of each walk, by uniform draws, `f32[wires]`: to a free cell, with a probability that
    /// increases with its distance from the wire's start.
    fn walked(&self, walks: Walks, (rows, columns): (Tensor, Tensor), draws: Tensor) -> Walks {
        let Walks { taken, .. } = walks;
        let ways = self.free_ways(taken, walks.rows, walks.columns);
        let (down, right) = (walks.rows - rows, walks.columns - columns);
        let away = stack(&[-down, right, down, -right], 1).astype(F32) / self.temperature;
        // The best open direction has the weight 1, at any temperature.
        let most = select(ways, away, -1e9).max_axis(keepdims(-1));
        let action = draw_way(select(ways, (away - most).exp(), 0.0), draws) + 1;
        let (rows, columns, moves) = self.moved(walks.rows, walks.columns, action);
        let cell = |wire: i32| (rows.index(wire), columns.index(wire), moves.index(wire));
        let cells: Vec<_> = (0..self.wires as i32).map(cell).collect();
        Walks { taken: take_cells(taken, &cells), rows, columns }
    }

    /// True for the wires with their heads at their targets. `bool[wires]`
    #[track_caller]
    fn connected(&self, state: &State) -> Tensor {
        self.cell(state.rows, state.columns).eq(state.targets)
    }

    /// True for each open direction of an unconnected wire's head: to a free cell, or to the
    /// target. `bool[wires, 4]`
    #[track_caller]
    fn open(&self, state: &State) -> Tensor {
        let (rows, columns, inside) = self.beside(state.rows, state.columns);
        let there = self.there(state, rows, columns, inside);
        let target = self.numbers(TARGET).expand_dims(1);
        inside & (there.eq(FREE) | there.eq(target)) & !self.connected(state).expand_dims(1)
    }

    /// The board after the heads with true `moves` moved between cells, by wire.
    #[track_caller]
    fn written(&self, board: Tensor, old: Tensor, new: Tensor, moves: Tensor) -> Tensor {
        let cells = arange(self.cells());
        // One after another: a loop over cells that uses the machine's vectors.
        (0..self.wires as i32).fold(board, |board, wire| {
            let moves = moves.index(wire);
            let at = |cell: Tensor| cells.eq(select(moves, cell.index(wire), -1));
            select(at(old), 3 * wire + PATH, select(at(new), 3 * wire + HEAD, board))
        })
    }
}

/// The word with a bit set at a column, `i32` of any shape. `u64`
#[track_caller]
fn word(column: Tensor) -> Tensor {
    scalar(1u64) << column.astype(U64)
}

/// Rows of bits, `u64[size]`, with cells marked as occupied: row, column, and a condition for each.
#[track_caller]
fn take_cells(taken: Tensor, cells: &[(Tensor, Tensor, Tensor)]) -> Tensor {
    let rows = arange(taken.len());
    cells.iter().fold(taken, |taken, &(row, column, is_taken)| {
        taken | select(rows.eq(row) & is_taken, word(column), 0u64)
    })
}

/// One of the set bits in rows of bits, by a uniform draw: row and column, `i32[]` each.
#[track_caller]
fn draw_bit(rows: Tensor, draw: Tensor) -> (Tensor, Tensor) {
    let bits = (rows.expand_dims(1) & word(arange(rows.len())).expand_dims(0)).ne(0);
    draw_cell(bits, draw)
}

impl Environment for Connector {
    type State = State;
    type Observation = Tensor;

    /// Checks that wires always find room on a board, where each takes two neighbouring cells at
    /// its start. Suppose that no two neighbouring cells are free. Then each free cell, except the
    /// corners, has at least three occupied neighbours, and of the six cells around a wire of two
    /// cells at most four are free. So there are more wires than a quarter of the cells.
    fn check_settings(&self) -> Result<(), String> {
        let (size, wires, most) = (self.size, self.wires, self.cells() / 4);
        if wires > most {
            return Err(format!(
                "environment.wires is {wires} and must be at most {most}, a quarter of the cells of a board of {size} by {size}"
            ));
        }
        match &self.board {
            Some(board) if board.rows().max(board.columns()) > size || board.wires() > wires => {
                Err(format!(
                    "environment.board has {} by {} cells and {} wires: environment.size, {size}, and environment.wires, {wires}, must be as great; \
                     an agent routes boards up to the size and the wires that it was trained with",
                    board.rows(),
                    board.columns(),
                    board.wires()
                ))
            }
            _ => Ok(()),
        }
    }

    /// A new board: random walks from the heads end at the targets.
    fn initial_state(&self, key: Key) -> State {
        if let Some(board) = &self.board {
            return self.on(board);
        }
        let [begin, walk] = key.split_into();
        let (walks, starts) = self.begun(begin);
        let steps = self.longest() - 1;
        // Drawn before the walks: XLA would draw a number again for each pair of wires that depends
        // on it.
        let draws = walk.uniform([steps, self.wires]);
        let (end, _) = scan(walks, draws, |walks, draws| (self.walked(walks, starts, draws), ()));
        let (start_rows, start_columns) = starts;
        let targets = self.cell(end.rows, end.columns);
        self.at(start_rows, start_columns, targets)
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let connected = self.connected(&state);
        let open = self.open(&state);
        // A direction that is not open means to stay.
        let way = arange(4).expand_dims(0) + 1;
        let goes = (open & way.eq(action.expand_dims(1))).any_axis(1);
        let (rows, columns, moves) = self.moved(state.rows, state.columns, select(goes, action, 0));
        let old = self.cell(state.rows, state.columns);
        let board = self.written(state.board, old, self.cell(rows, columns), moves);
        let state = State { board, rows, columns, time: state.time + 1, ..state };
        let now_connected = self.connected(&state);
        let connects = now_connected & !connected;
        let reward = connects.astype(F32) + select(connected, 0.0, UNCONNECTED);
        let over = now_connected | !self.open(&state).any_axis(1);
        let terminated = over.all();
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let observation = self.observe(state);
        (state, TimeStep { observation, reward: reward.sum(), terminated, truncated })
    }

    /// The observation for [`Connector::view`].
    fn observe(&self, state: State) -> Tensor {
        match self.view {
            View::Board => self.seen_board(&state),
            View::Wires => self.seen_by_wires(&state),
        }
    }

    fn observation_space(&self) -> Space {
        let (shape, low, description) = match self.view {
            View::Board => (
                vec![self.size, self.size, 3 * self.wires + 1],
                0.0,
                "path, head and target of each wire, time",
            ),
            View::Wires => (
                vec![self.wires, view::ROW],
                -1.0,
                "of each wire the cells around its head, the way to its target, its place, whether it is connected, time",
            ),
        };
        Space::bounded(shape, low, 1.0).described(description)
    }

    /// One action for each wire: 0 stays, 1 to 4 go up, right, down and left.
    fn action_space(&self) -> Space {
        Space::multi_discrete(vec![ACTIONS; self.wires])
    }

    /// Staying, and the directions to a free cell or to the wire's target.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        let stay = full([self.wires, 1], true);
        Some(concatenate(&[stay, self.open(state)], 1).reshape([self.wires * ACTIONS]))
    }

    /// The share of the wires that are connected.
    fn success(&self, state: &State) -> Option<Tensor> {
        let connected = self.connected(state).astype(F32);
        match &self.board {
            Some(board) => Some(connected.slice(..board.wires()).mean()),
            None => Some(connected.mean()),
        }
    }

    /// Letters of the board's format: a wire's cells have its letter, in lower case except for its
    /// pins. On a random board the head and the target are the pins, and wires are named from `A`
    /// on. `None` for more than 26 wires.
    fn text(&self, state: &State) -> Option<Tensor> {
        let letters: Vec<u8> = match &self.board {
            Some(board) => board.letters(),
            None => (b'A'..=b'Z').take(self.wires).collect(),
        };
        if self.board.is_none() && letters.len() < self.wires {
            return None;
        }
        // Wires that a board lacks have no cells.
        let letters = letters.into_iter().chain(std::iter::repeat(b'?')).take(self.wires);
        let wires = letters.flat_map(|letter| [letter.to_ascii_lowercase(), letter, letter]);
        let table: Vec<u8> = [b'.'].into_iter().chain(wires).chain([b'#']).collect();
        let size = self.size;
        let text = constant(table).take(state.board, 0).reshape([size, size]);
        let Some(board) = &self.board else { return Some(text) };
        // The pins where the wires began.
        let mut pins = vec![0u8; size * size];
        for (letter, ends) in board.letters().into_iter().zip(board.pins()) {
            ends.into_iter().for_each(|(row, column)| pins[row * size + column] = letter);
        }
        let pins = constant(pins).reshape([size, size]);
        let text = select(pins.gt(0u8), pins, text);
        Some(text.slice_axis(0, ..board.rows()).slice_axis(1, ..board.columns()))
    }

    /// A colour for each wire: a line for its path, a large dot for its head, and a ring around its target. Obstacles are grey.
    fn render(&self, state: &State) -> Option<Tensor> {
        let size = self.size;
        let board = state.board.reshape([size, size]);
        let wire = (board - 1).floor_div(3);
        let is_wire = board.gt(0) & board.lt(self.obstacle());
        let part = (board - 1).modulo(3) + 1;
        let (is_head, is_target) = (is_wire & part.eq(HEAD), is_wire & part.eq(TARGET));
        let is_path = is_wire & !is_target;
        let colours = (0..self.wires).map(|wire| Colour::SEVERAL[wire % Colour::SEVERAL.len()]);
        let table: Vec<f32> = colours.flat_map(|Colour(rgb)| rgb.map(f32::from)).collect();
        let table = constant(table).reshape([self.wires, 3]);
        let colour = table.take(wire.clamp(0, self.wires as i32 - 1), 0);
        let light = colour * 0.6 + 255.0 * 0.4;
        let canvas = Canvas::board(size, size, Colour::BOARD);
        let obstacle = canvas.tile(Colour::GREY);
        let canvas = canvas
            .tiles(board.eq(self.obstacle()).astype(I32), &[scenery::floor(&canvas), obstacle]);
        // Neighbours of one wire are joined.
        let around = select(is_path, wire, -1).pad(&[(1, 1), (1, 1)], -1);
        let joined = WAYS.iter().fold(canvas, |canvas, &(down, right)| {
            let (top, left) = ((1 + down) as usize, (1 + right) as usize);
            let next = around.slice_axis(0, top..top + size).slice_axis(1, left..left + size);
            let end = (0.5 + f64::from(right), 0.5 + f64::from(down));
            let half = Shape::line((0.5, 0.5), end, 0.3);
            canvas.fill_cells(is_path & next.eq(wire), &half, light)
        });
        Some(
            joined
                .fill_cells(is_head, &Shape::disc(0.5, 0.5, 0.34), colour)
                .fill_cells(is_target, &Shape::ring(0.5, 0.5, 0.3, 0.12), colour)
                .fill_cells(is_target, &Shape::disc(0.5, 0.5, 0.1), colour)
                .finish(),
        )
    }
}
