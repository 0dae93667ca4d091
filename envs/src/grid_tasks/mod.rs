//! Grid worlds as data: walls, objects, rewards and lengths of episodes are numbers of a task, so
//! that thousands of different tasks step under one `vmap`.
//!
//! Oh et al., "Discovering Reinforcement Learning Algorithms", 2020, trains a learned update rule on such worlds. Its named worlds and the
//! random distributions of Jackson et al., "Discovering General Reinforcement Learning Algorithms with Adversarial Environment Design",
//! 2023, are [`Distribution`]s.

mod distributions;
mod recipe;

pub use distributions::Distribution;

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use crate::tasks::Tasks;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Worlds of a distribution.
///
/// A walker moves to one of the eight cells around it or stays, and collects the objects that it
/// meets. Each kind of object has a reward, a probability that collecting it terminates the
/// episode, and a probability that a collected object appears again in a step. In *tabular* worlds
/// objects appear where they were, and the observation is the number of the state. In *random*
/// worlds each episode and each appearance draws other cells, and the observation is a picture. An
/// episode is truncated after the task's time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GridTasks {
    /// Distribution of the tasks.
    pub distribution: Distribution,
    /// Seed of the task, which all episodes share. Equal seeds are equal tasks.
    #[schemars(range(max = u32::MAX))]
    pub task_seed: u32,
    /// True for nine actions, to all surrounding cells and to stay. False for five actions, without
    /// the diagonal moves.
    pub diagonal: bool,
}

/// The dense world, with task 0.
impl Default for GridTasks {
    fn default() -> Self {
        GridTasks { distribution: Distribution::Dense, task_seed: 0, diagonal: true }
    }
}

/// Upper bounds of a distribution's tasks, which determine the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskShape {
    /// Rows and columns.
    pub size: usize,
    /// Number of objects.
    pub objects: usize,
    /// Kinds of objects.
    pub kinds: usize,
    /// True for tabular worlds.
    pub tabular: bool,
}

impl TaskShape {
    fn cells(&self) -> usize {
        self.size * self.size
    }
}

/// A task: the numbers that differ between worlds of one distribution.
#[derive(Tree, Clone, Copy)]
pub struct GridTask {
    /// Rows and columns of the world. `i32[]`
    pub size: Tensor,
    /// Steps after which an episode is truncated. `i32[]`
    pub time_limit: Tensor,
    /// True for walls. `bool[cells]`
    pub walls: Tensor,
    /// The start cell of episodes. `i32[]`
    pub start: Tensor,
    /// True for the objects that the world has. `bool[objects]`
    pub used: Tensor,
    /// The kind of each object. `i32[objects]`
    pub kind: Tensor,
    /// The cell of each object in tabular worlds. `i32[objects]`
    pub cell: Tensor,
    /// The reward of each object. `f32[objects]`
    pub reward: Tensor,
    /// The probability that collecting an object terminates the episode. `f32[objects]`
    pub terminate: Tensor,
    /// The probability per step that a collected object appears again. `f32[objects]`
    pub respawn: Tensor,
}

/// A world with one task. The task is data: it may differ in each element of a batch.
#[derive(Clone, Copy, Debug)]
pub struct TaskWorld {
    task: GridTask,
    shape: TaskShape,
    diagonal: bool,
}

impl std::fmt::Debug for GridTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GridTask").finish_non_exhaustive()
    }
}

/// The state of an episode.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the walker. `i32[]`
    pub row: Tensor,
    /// Column of the walker. `i32[]`
    pub column: Tensor,
    /// The cell of each object. `i32[objects]`
    pub cell: Tensor,
    /// True for the objects that can be collected. `bool[objects]`
    pub there: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl GridTasks {
    /// The upper bounds of the distribution's tasks.
    #[must_use]
    pub fn shape(&self) -> TaskShape {
        self.distribution.recipe().shape()
    }

    fn own(&self) -> TaskWorld {
        self.world(self.draw(Key::new(self.task_seed)))
    }
}

impl Tasks for GridTasks {
    type Task = GridTask;
    type World = TaskWorld;

    fn draw(&self, key: Key) -> GridTask {
        let _scope = scope("GridTasks::draw");
        self.distribution.recipe().draw(key)
    }

    fn world(&self, task: GridTask) -> TaskWorld {
        TaskWorld { task, shape: self.shape(), diagonal: self.diagonal }
    }
}

/// The world of [`GridTasks::task_seed`], with the task as a constant of the program.
impl Environment for GridTasks {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        self.own().initial_state(key)
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        self.own().step(state, action, key)
    }

    fn observe(&self, state: State) -> Tensor {
        self.own().observe(state)
    }

    fn observation_space(&self) -> Space {
        self.shape().observation_space()
    }

    /// Actions 0 to 4: up, right, down, left, stay. 5 to 8: up right, down right, down left, up left.
    fn action_space(&self) -> Space {
        action_space(self.diagonal)
    }

    fn render(&self, state: &State) -> Option<Tensor> {
        self.own().render(state)
    }
}

fn action_space(diagonal: bool) -> Space {
    let names =
        ["up", "right", "down", "left", "stay", "up right", "down right", "down left", "up left"];
    let actions = if diagonal { names.len() } else { 5 };
    Space::discrete(actions).named(&names[..actions])
}

impl TaskShape {
    fn observation_space(&self) -> Space {
        match self.tabular {
            true => Space::discrete(self.cells() << self.objects)
                .described("the walker's cell, and which objects are there"),
            false => Space::bounded([self.size, self.size, 1 + self.kinds], 0.0, 1.0)
                .described("the walker, then the objects of each kind"),
        }
    }
}

/// A number of cells, drawn without replacement from the `free` cells (`bool[cells]`). `i32[count]`
#[track_caller]
fn draw_cells(key: Key, free: Tensor, count: usize) -> Tensor {
    let draws = select(free, key.uniform(free.shape()), -1.0);
    draws.top_k(count).1
}

impl TaskWorld {
    /// The number of the walker's cell. `i32[]`
    fn at(&self, state: &State) -> Tensor {
        state.row * self.shape.size as i32 + state.column
    }

    /// True at the cells without wall and walker. `bool[cells]`
    fn free(&self, walker: Tensor) -> Tensor {
        inside(self.shape.size, self.task.size)
            & !self.task.walls
            & arange(self.shape.cells()).ne(walker)
    }

    /// True at the cells of the present objects, by kind. `bool[kinds, cells]`
    fn objects(&self, state: &State) -> Tensor {
        let TaskShape { objects, kinds, .. } = self.shape;
        let cells = self.shape.cells();
        let at = state.cell.expand_dims(-1).eq(arange(cells)) & state.there.expand_dims(-1);
        let of = self.task.kind.expand_dims(-1).eq(arange(kinds));
        let at = at.reshape([objects, 1, cells]) & of.reshape([objects, kinds, 1]);
        at.any_axis(0)
    }
}

/// True at the cells of a world of `size` (`i32[]`) in the corner of a square with `rows` rows.
/// `bool[cells]`
#[track_caller]
fn inside(rows: usize, size: Tensor) -> Tensor {
    let cells = arange(rows * rows);
    (cells / rows as i32).lt(size) & (cells % rows as i32).lt(size)
}

impl Environment for TaskWorld {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let TaskWorld { task, shape, .. } = *self;
        let cell = match shape.tabular {
            true => task.cell,
            false => draw_cells(key, self.free(task.start), shape.objects),
        };
        let rows = shape.size as i32;
        let (row, column) = (task.start / rows, task.start % rows);
        State { row, column, cell, there: task.used, time: scalar(0) }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let TaskWorld { task, shape, .. } = *self;
        let keys = key.split_n(3);
        let any = |actions: &[i32]| {
            let taken = actions.iter().map(|&one| action.eq(one));
            taken.reduce(|a, b| a | b).expect("some actions").astype(I32)
        };
        let down = any(&[2, 6, 7]) - any(&[0, 5, 8]);
        let right = any(&[1, 5, 6]) - any(&[3, 7, 8]);
        let last = task.size - 1;
        let row = (state.row + down).maximum(0).minimum(last);
        let column = (state.column + right).maximum(0).minimum(last);
        let to = row * shape.size as i32 + column;
        let blocked = (task.walls & arange(shape.cells()).eq(to)).any();
        let row = select(blocked, state.row, row);
        let column = select(blocked, state.column, column);
        let walker = row * shape.size as i32 + column;

        let collected = state.there & state.cell.eq(walker);
        let reward = select(collected, task.reward, 0.0).sum();
        let ends = keys.at(0).bernoulli([shape.objects], task.terminate);
        let terminated = (collected & ends).any();
        let appears =
            keys.at(1).bernoulli([shape.objects], task.respawn) & task.used & !state.there;
        let cell = match shape.tabular {
            true => state.cell,
            false => {
                let at = state.cell.expand_dims(-1).eq(arange(shape.cells()));
                let taken = (at & state.there.expand_dims(-1)).any_axis(0);
                let drawn = draw_cells(keys.at(2), self.free(walker) & !taken, shape.objects);
                select(appears, drawn, state.cell)
            }
        };
        let there = (state.there & !collected) | appears;
        let state = State { row, column, cell, there, time: state.time + 1 };
        let truncated = state.time.ge(task.time_limit) & !terminated;
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// Tabular worlds show the number of the state, `i32[]`: the walker's cell, plus `cells` times
    /// the binary number of the present objects. Random worlds show `f32[size, size, 1 + kinds]`: 1
    /// at the walker, then at the objects of each kind.
    fn observe(&self, state: State) -> Tensor {
        let TaskShape { size, objects, tabular, .. } = self.shape;
        if tabular {
            let bits: Vec<i32> = (0..objects).map(|object| 1 << object).collect();
            let there = select(state.there, bits, 0).sum();
            return self.at(&state) + there * self.shape.cells() as i32;
        }
        let walker = arange(self.shape.cells()).eq(self.at(&state)).expand_dims(0);
        let planes = concatenate(&[walker, self.objects(&state)], 0).astype(F32);
        planes.transpose().reshape([size, size, 1 + self.shape.kinds])
    }

    fn observation_space(&self) -> Space {
        self.shape.observation_space()
    }

    /// As in [`GridTasks`].
    fn action_space(&self) -> Space {
        action_space(self.diagonal)
    }

    /// Walls, the walker in blue, and the objects with a colour and a form for each kind; a sign shows whether the reward is positive
    /// or negative.
    fn render(&self, state: &State) -> Option<Tensor> {
        let size = self.shape.size;
        let grid = |cells: Tensor| cells.reshape([size, size]);
        let outside = !inside(size, self.task.size);
        let objects = self.objects(state);
        let canvas = Canvas::board(size, size, Colour::BOARD);
        let floor = scenery::floor(&canvas);
        let turned = |shape: Shape| shape.rotate(std::f64::consts::FRAC_PI_4).translate(0.5, 0.5);
        let forms = [
            (Shape::disc(0.5, 0.5, 0.36), Colour::GREEN),
            (Shape::rounded(0.5, 0.5, 0.66, 0.66, 0.1), Colour::RED),
            (turned(Shape::rounded(0.0, 0.0, 0.56, 0.56, 0.06)), Colour::ORANGE),
            (Shape::polygon(&[(0.5, 0.1), (0.94, 0.84), (0.06, 0.84)]), Colour::MAGENTA),
            (Shape::rounded(0.5, 0.5, 0.5, 0.84, 0.25), Colour::TEXT),
        ];
        let mut tiles = vec![floor, scenery::wall(&canvas), canvas.tile(Colour::CELL.dark(0.2))];
        let mut which = select(outside, 2, self.task.walls.astype(I32));
        for (kind, (form, colour)) in forms.iter().enumerate().take(self.shape.kinds) {
            which = select(objects.index(kind), tiles.len() as i32, which);
            tiles.push(floor.fill(form, *colour));
        }
        let at = state.cell.expand_dims(-1).eq(arange(size * size)) & state.there.expand_dims(-1);
        let signed = |sign: f64| {
            let these = (self.task.reward * sign).gt(0.0).expand_dims(-1);
            grid((at & these).any_axis(0))
        };
        let minus = Shape::line((0.38, 0.52), (0.62, 0.52), 0.09);
        let plus = minus.clone().union(Shape::line((0.5, 0.4), (0.5, 0.64), 0.09));
        Some(
            canvas
                .tiles(grid(which), &tiles)
                .fill_cells(signed(1.0), &plus, Colour::WHITE)
                .fill_cells(signed(-1.0), &minus, Colour::WHITE)
                .fill_cell(state.row, state.column, &scenery::walker(), Colour::BLUE)
                .finish(),
        )
    }
}
