//! Minesweeper: open all cells without a mine.

use crate::environment::{Environment, TimeStep};
use crate::render::{Align, Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Minesweeper: cells of a board are opened one after another, and each shows the number of mines
/// in the eight cells around it.
///
/// A cell without a mine pays 1. The episode is terminated by a mine, by a cell that is already
/// open, and when all cells without a mine are open.
///
/// The rules follow jumanji 1.1.2's Minesweeper-v0, except that jumanji's actions are a row and a
/// column. Mines are drawn with other random numbers: each set of `mines` cells is equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Minesweeper {
    /// Rows of cells.
    #[schemars(range(min = 2, max = 50))]
    pub rows: usize,
    /// Columns of cells.
    #[schemars(range(min = 2, max = 50))]
    pub columns: usize,
    /// Number of mines, less than the number of cells.
    #[schemars(range(min = 1, max = 2499))]
    pub mines: usize,
}

/// 10 mines on 10 by 10 cells, as in jumanji.
impl Default for Minesweeper {
    fn default() -> Self {
        Minesweeper { rows: 10, columns: 10, mines: 10 }
    }
}

/// The mines and the open cells.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// True for each cell with a mine. `bool[rows, columns]`
    pub mines: Tensor,
    /// The number of mines in the eight cells around each. `i32[rows, columns]`
    pub counts: Tensor,
    /// True for each cell that is open. `bool[rows, columns]`
    pub open: Tensor,
}

impl Minesweeper {
    /// The initial state of an episode with these mines, `bool[rows, columns]`.
    #[track_caller]
    pub fn at(&self, mines: Tensor) -> State {
        State { mines, counts: self.counts(mines), open: full([self.rows, self.columns], false) }
    }

    /// The number of mines in the eight cells around each. `i32[rows, columns]`
    #[track_caller]
    fn counts(&self, mines: Tensor) -> Tensor {
        let mines = mines.astype(I32);
        // Sums of three along both axes, minus the cell itself.
        let around = mines.pad(&[(1, 1), (1, 1)], 0);
        let part = |x: Tensor, axis: isize, extent: usize| {
            (0..3).map(|from| x.slice_axis(axis, from..from + extent)).reduce(|sum, x| sum + x)
        };
        let rows = part(around, 0, self.rows).expect("three parts");
        part(rows, 1, self.columns).expect("three parts") - mines
    }

    /// The cell of an action. `bool[rows, columns]`
    #[track_caller]
    fn cell(&self, action: Tensor) -> Tensor {
        arange(self.rows * self.columns).eq(action).reshape([self.rows, self.columns])
    }

    /// True if the number of open cells equals the number of cells without a mine. `bool[]`
    #[track_caller]
    fn solved(&self, state: &State) -> Tensor {
        state.open.astype(I32).sum().eq((self.rows * self.columns - self.mines) as i32)
    }
}

impl Environment for Minesweeper {
    type State = State;
    type Observation = Tensor;

    /// Checks that at least one cell has no mine.
    fn check_settings(&self) -> Result<(), String> {
        let cells = self.rows * self.columns;
        if self.mines < cells {
            return Ok(());
        }
        Err(format!("environment.mines is {} and must be less than {cells}, the cells", self.mines))
    }

    fn initial_state(&self, key: Key) -> State {
        // Each cell gets a mine with the probability of mines left over cells left: faster than
        // sorting all cells.
        let cells = self.rows * self.columns;
        let given = (key.uniform([cells]), arange(cells));
        let (_, mines) = scan(self.mines as i32, given, |mines, (draw, cell)| {
            let cells = cells as i32 - cell;
            let has = (draw * cells.astype(F32)).lt(mines.astype(F32)) | mines.eq(cells);
            (mines - has.astype(I32), has)
        });
        self.at(mines.reshape([self.rows, self.columns]))
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let cell = self.cell(action);
        let new = !(cell & state.open).any();
        let mine = (cell & state.mines).any();
        let state = State { open: state.open | cell, ..state };
        let reward = (new & !mine).astype(F32);
        let terminated = !new | mine | self.solved(&state);
        let observation = self.observe(state);
        (state, TimeStep { observation, reward, terminated, truncated: constant(false) })
    }

    /// Planes of the closed cells, and of the open cells by the number of mines around them.
    /// `f32[rows, columns, 10]`
    fn observe(&self, state: State) -> Tensor {
        let number = select(state.open, state.counts + 1, 0);
        number.one_hot(10)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.rows, self.columns, 10], 0.0, 1.0).described(
            "1 at cells that are not open, and by the number of mines around at those that are",
        )
    }

    /// The cell to open, row by row.
    fn action_space(&self) -> Space {
        Space::discrete(self.rows * self.columns)
    }

    /// The closed cells.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        Some((!state.open).flatten())
    }

    /// 1 if all cells without a mine are open, otherwise 0.
    fn success(&self, state: &State) -> Option<Tensor> {
        Some((self.solved(state) & !(state.open & state.mines).any()).astype(F32))
    }

    /// Raised closed cells, open cells with the number of mines around them, and opened mines on red.
    fn render(&self, state: &State) -> Option<Tensor> {
        let canvas = Canvas::board(self.rows, self.columns, Colour::LINE);
        let cell = Shape::rectangle(0.5, 0.5, 0.94, 0.94);
        let open = canvas.tile(Colour::LINE).fill(&cell, Colour::BOARD);
        let numbered = COLOURS.iter().enumerate().map(|(number, &colour)| match number {
            0 => open,
            _ => open.text(&number.to_string(), (0.5, 0.5), 0.5, Align::Center, colour),
        });
        let mine = Shape::disc(0.5, 0.5, 0.22)
            .union(Shape::line((0.2, 0.5), (0.8, 0.5), 0.07))
            .union(Shape::line((0.5, 0.2), (0.5, 0.8), 0.07))
            .union(Shape::line((0.3, 0.3), (0.7, 0.7), 0.07))
            .union(Shape::line((0.3, 0.7), (0.7, 0.3), 0.07));
        let mine = open
            .fill(&cell, Colour::RED)
            .fill(&mine, Colour::BLACK)
            .fill(&Shape::disc(0.43, 0.43, 0.06), Colour::WHITE);
        let grey = Colour::GREY.light(0.3);
        let closed = open
            .fill(&cell, grey.dark(0.35))
            .fill(&Shape::polygon(&[(0.03, 0.03), (0.97, 0.03), (0.03, 0.97)]), grey.light(0.6))
            .fill(&Shape::rectangle(0.5, 0.5, 0.76, 0.76), grey);
        let tiles: Vec<Canvas> = numbered.chain([mine, closed]).collect();
        let (mine, closed) = (COLOURS.len() as i32, COLOURS.len() as i32 + 1);
        let which = select(state.open, select(state.mines, mine, state.counts), closed);
        Some(canvas.tiles(which, &tiles).finish())
    }
}

/// Colours of the numbers of mines around a cell.
const COLOURS: [Colour; 9] = [
    Colour::BOARD,
    Colour::BLUE,
    Colour([14, 110, 80]),
    Colour::RED,
    Colour([30, 50, 120]),
    Colour([130, 50, 30]),
    Colour([30, 120, 130]),
    Colour::TEXT,
    Colour::GREY,
];
