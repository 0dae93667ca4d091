//! Snake: eat fruit to grow, and do not collide.

use crate::cells::{WAYS, along, draw_cell};
use crate::environment::{Environment, TimeStep};
use crate::minatar::drawn_if;
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Snake: a fruit pays 1 and makes the snake longer by a cell. The episode is terminated by an
/// illegal action, which leaves the board or hits the body, and when the snake fills the board. It
/// is truncated after `time_limit` steps.
///
/// The rules and the observations follow jumanji 1.1.2 (Bonnet et al., "Jumanji: a Diverse Suite of
/// Scalable Reinforcement Learning Environments in JAX", 2024). In jumanji the time limit is an end
/// without value. Fruit is drawn with other random numbers, uniformly from the free cells as in
/// jumanji.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Snake {
    /// Rows of the board.
    #[schemars(range(min = 2, max = 100), extend("x-reason" = "a snake needs room to move, and the board is an array of cells"))]
    pub rows: usize,
    /// Columns of the board.
    #[schemars(range(min = 2, max = 100), extend("x-reason" = "a snake needs room to move, and the board is an array of cells"))]
    pub columns: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// A board of 12 by 12 cells, and 4000 steps, as in jumanji.
impl Default for Snake {
    fn default() -> Self {
        Snake { rows: 12, columns: 12, time_limit: 4000 }
    }
}

/// The snake and the fruit.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Steps until each cell is free again: the length at the head, 1 at the tail, 0 outside the
    /// snake. `i32[rows * columns]`
    pub body: Tensor,
    /// Row of the head. `i32[]`
    pub row: Tensor,
    /// Column of the head. `i32[]`
    pub column: Tensor,
    /// Cell of the fruit, `columns * row + column`. `i32[]`
    pub fruit: Tensor,
    /// Number of cells of the snake. `i32[]`
    pub length: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl Snake {
    fn cells(&self) -> usize {
        self.rows * self.columns
    }

    /// True at a cell, `bool[cells]`; true nowhere if the cell is outside the board.
    #[track_caller]
    fn cell_mask(&self, row: Tensor, column: Tensor) -> Tensor {
        let cell = row * self.columns as i32 + column;
        let inside =
            row.ge(0) & row.lt(self.rows as i32) & column.ge(0) & column.lt(self.columns as i32);
        arange(self.cells()).eq(select(inside, cell, -1))
    }

    /// True at the head's cell, `bool[cells]`. A head that left the board, which ends the episode,
    /// appears on the other side, as in jax's indexing, or nowhere.
    #[track_caller]
    fn head(&self, row: Tensor, column: Tensor) -> Tensor {
        let wrapped = |x: Tensor, extent: usize| select(x.lt(0), x + extent as i32, x);
        self.cell_mask(wrapped(row, self.rows), wrapped(column, self.columns))
    }

    /// True if the head may move to the cell: on the board, and not occupied by the body after the
    /// move. `bool[]`
    #[track_caller]
    fn free(&self, body: Tensor, row: Tensor, column: Tensor) -> Tensor {
        // The tail moves away.
        (self.cell_mask(row, column) & body.le(1)).any()
    }

    /// A random free cell, `i32[]`; the first cell if there is none.
    #[track_caller]
    pub fn draw_fruit(&self, body: Tensor, key: Key) -> Tensor {
        let free = body.eq(0).reshape([self.rows, self.columns]);
        let (row, column) = draw_cell(free, key.uniform([]));
        row * self.columns as i32 + column
    }

    /// A step with a new fruit chosen by the caller, if this fruit is eaten. The choice gets
    /// whether it is eaten, and the body.
    #[track_caller]
    pub fn step_by(
        &self,
        state: State,
        action: Tensor,
        fruit: impl FnOnce(Tensor, Tensor) -> Tensor,
    ) -> (State, TimeStep) {
        let (down, right) = along(action);
        let (row, column) = (state.row + down, state.column + right);
        let legal = self.free(state.body, row, column);
        let head = self.head(row, column);
        let eaten = legal & (row * self.columns as i32 + column).eq(state.fruit);
        let grown = state.length + eaten.astype(I32);
        let body = (state.body - select(eaten, 0, 1)).maximum(0);
        let body = select(head, grown, body);
        let fruit = select(eaten, fruit(eaten, body), state.fruit);
        // A head that left the board is not a cell of the snake.
        let length = select(head.any(), grown, grown - 1);
        let time = state.time + 1;
        let complete = body.gt(0).all();
        let terminated = !legal | complete;
        let truncated = time.ge(self.time_limit) & !terminated;
        let state = State { body, row, column, fruit, length, time };
        let reward = eaten.astype(F32);
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// The state with a snake of one cell, and a fruit in another cell.
    #[track_caller]
    pub fn first_at(&self, row: Tensor, column: Tensor, fruit: Tensor) -> State {
        let body = self.cell_mask(row, column).astype(I32);
        State { body, row, column, fruit, length: scalar(1), time: scalar(0) }
    }
}

impl Environment for Snake {
    type State = State;
    type Observation = Tensor;

    /// A snake of one cell, and a fruit, at random cells.
    fn initial_state(&self, key: Key) -> State {
        let [row, column, fruit] = key.split_into();
        let row = row.randint([], 0..self.rows as i32);
        let column = column.randint([], 0..self.columns as i32);
        let body = self.cell_mask(row, column).astype(I32);
        self.first_at(row, column, self.draw_fruit(body, fruit))
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        self.step_by(state, action, |eaten, body| {
            drawn_if(eaten, key, state.fruit, |key| self.draw_fruit(body, key))
        })
    }

    /// 1 at the body, the head, the tail and the fruit, and each cell's relative position in the
    /// snake, counted from the tail. `f32[rows, columns, 5]`
    fn observe(&self, state: State) -> Tensor {
        let State { body, row, column, fruit, length, .. } = state;
        let part = body.astype(F32) / length.maximum(1).astype(F32);
        let fruit = arange(self.cells()).eq(fruit);
        let planes = [body.gt(0), self.head(row, column), body.eq(1), fruit];
        let planes = planes.map(|plane| plane.astype(F32));
        stack(&[planes[0], planes[1], planes[2], planes[3], part], 1).reshape([
            self.rows,
            self.columns,
            5,
        ])
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.rows, self.columns, 5], 0.0, 1.0)
            .described("body, head, tail, fruit, part of the snake up to the cell")
    }

    /// Actions 0 to 3: up, right, down, left.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["up", "right", "down", "left"])
    }

    /// The moves that do not end the episode, or all four if every move ends it.
    fn legal_actions(&self, state: &State) -> Option<Tensor> {
        let free = WAYS
            .map(|(rows, columns)| self.free(state.body, state.row + rows, state.column + columns));
        let free = stack(&free, 0);
        Some(free | !free.any())
    }

    /// The snake in green with eyes on its head, and a red fruit.
    fn render(&self, state: &State) -> Option<Tensor> {
        let shape = [self.rows, self.columns];
        let board = |cells: Tensor| cells.reshape(shape);
        let body = board(state.body);
        let canvas = Canvas::board(self.rows, self.columns, Colour::BOARD);
        let empty = scenery::floor(&canvas);
        // Each part of the body touches the parts before and after it: a bit for each of `WAYS`.
        let around = body.pad(&[(1, 1), (1, 1)], 0);
        let touches = (0..4).fold(full(shape, 0), |sum, way| {
            let (down, right) = WAYS[way];
            let (top, left) = ((1 + down) as usize, (1 + right) as usize);
            let next =
                around.slice_axis(0, top..top + self.rows).slice_axis(1, left..left + self.columns);
            let touch = next.gt(0) & (next - body).abs().eq(1);
            sum + select(touch, 1 << way, 0)
        });
        let part = |touches: usize| {
            let touching = (0..4).filter(|way| touches & (1 << way) != 0);
            let part = touching.fold(Shape::disc(0.5, 0.5, 0.4), |part, way| {
                let (down, right) = WAYS[way];
                let end = (0.5 + f64::from(right), 0.5 + f64::from(down));
                part.union(Shape::line((0.5, 0.5), end, 0.8))
            });
            empty.fill(&part, Colour::GREEN)
        };
        let fruit = empty
            .fill(&Shape::line((0.5, 0.3), (0.58, 0.12), 0.08), Colour::WOOD)
            .fill(&Shape::disc(0.5, 0.54, 0.32), Colour::RED)
            .fill(&Shape::disc(0.4, 0.44, 0.07), Colour::RED.light(0.6));
        let tiles: Vec<Canvas> = [empty, fruit].into_iter().chain((0..16).map(part)).collect();
        let is_fruit = board(arange(self.cells()).eq(state.fruit)).astype(I32);
        let canvas = canvas.tiles(select(body.gt(0), touches + 2, is_fruit), &tiles);
        // The head looks away from the neck, and to the right if there is none.
        let head = board(self.head(state.row, state.column));
        let neck = select(head, touches, 0).sum();
        let way = |bit: usize| select(neck.eq(1 << bit), 1.0, 0.0);
        let right = select(neck.eq(0), 1.0, way(3) - way(1));
        let (down, mut canvas) = (way(0) - way(2), canvas);
        for side in [-0.2, 0.2] {
            let (x, y) = (0.5 + right * 0.12 - down * side, 0.5 + down * 0.12 + right * side);
            let pupil = Shape::disc(x + right * 0.04, y + down * 0.04, 0.06);
            canvas = canvas.fill_cells(head, &Shape::disc(x, y, 0.11), Colour::WHITE).fill_cells(
                head,
                &pupil,
                Colour::BLACK,
            );
        }
        Some(canvas.finish())
    }
}
