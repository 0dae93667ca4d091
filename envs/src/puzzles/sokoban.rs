//! Sokoban: push boxes onto targets.

use super::levels::Levels;
use crate::cells::{along, draw_cell, only};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sokoban: the player walks in a warehouse and pushes boxes onto targets. A box that is pushed
/// moves to a free cell; it cannot be pulled.
///
/// Each step pays -0.1, a box that reaches a target 1, a box that leaves a target -1, and all boxes
/// on targets 10. The episode is terminated when all boxes are on targets, and truncated after
/// `time_limit` steps.
///
/// The rules follow jumanji 1.1.2's Sokoban-v0. jumanji's levels come from Boxoban (Guez et al.,
/// "An Investigation of Model-Free Planning", 2019), and `levels` reads a file of Boxoban. Without
/// a file, levels are drawn: rooms by a walk, boxes on their targets, and a player who pulls them
/// away at random. Each level that is drawn can therefore be solved. On average one of four boxes
/// is still on a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sokoban {
    /// Rows and columns of the warehouse, the wall around it included.
    #[schemars(range(min = 5, max = 50))]
    pub size: usize,
    /// Boxes, and as many targets.
    #[schemars(range(min = 1, max = 20))]
    pub boxes: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
    /// Levels in place of random levels: the path of a file in Boxoban's format, or a list with one
    /// string per line. Levels are separated by lines that begin with `;`. `#` is a wall, `$` a
    /// box, `.` a target, `@` the player.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub levels: Option<Levels>,
}

/// Four boxes in a warehouse of 10 by 10 cells, and 120 steps, as in jumanji.
impl Default for Sokoban {
    fn default() -> Self {
        Sokoban { size: 10, boxes: 4, time_limit: 120, levels: None }
    }
}

/// Reward for a step.
const STEP: f64 = -0.1;
/// Reward for all boxes on targets.
const SOLVED: f64 = 10.0;
/// Probability per step that the walk that makes rooms turns.
const TURN: f64 = 0.35;
/// Probability that the player pulls a box that it can pull.
const PULL: f64 = 0.7;

/// The warehouse and its contents.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// True for walls. `bool[size, size]`
    pub walls: Tensor,
    /// True for targets. `bool[size, size]`
    pub targets: Tensor,
    /// True for cells with a box. `bool[size, size]`
    pub boxes: Tensor,
    /// Row of the player. `i32[]`
    pub row: Tensor,
    /// Column of the player. `i32[]`
    pub column: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// A row and a column, `i32[]` each.
type Cell = (Tensor, Tensor);

/// Boxes that are being pulled away from their targets.
#[derive(Tree, Clone, Copy)]
struct Pulled {
    /// The player's cell. `i32[]`
    player: Tensor,
    /// The boxes' cells. `i32[boxes]`
    boxes: Tensor,
}

impl Sokoban {
    fn cells(&self) -> usize {
        self.size * self.size
    }

    /// A mask of one cell. `bool[size, size]`
    #[track_caller]
    fn only(&self, place: Cell) -> Tensor {
        only([self.size, self.size], place)
    }

    /// Some cells, by their numbers, `i32[n]`. `bool[size, size]`
    #[track_caller]
    fn all(&self, numbers: Tensor) -> Tensor {
        let cell = arange(self.cells()).expand_dims(1);
        cell.eq(numbers.expand_dims(0)).any_axis(1).reshape([self.size, self.size])
    }

    /// True if one of the cells in a mask is at a place. `bool[]`
    #[track_caller]
    fn has(&self, cells: Tensor, place: Cell) -> Tensor {
        (cells & self.only(place)).any()
    }

    /// The number of boxes on targets. `i32[]`
    #[track_caller]
    fn stored(&self, state: &State) -> Tensor {
        (state.boxes & state.targets).astype(I32).sum()
    }

    /// Rooms: squares of two by two cells along a walk. True for walls. `bool[size, size]`
    #[track_caller]
    fn rooms(&self, key: Key) -> Tensor {
        let steps = 3 * self.size;
        // Walks keep to cells with squares inside the wall.
        let inner = self.size as i32 - 3;
        let [start, walk] = key.split_into();
        let start = (start.uniform([2]) * inner as f64).astype(I32);
        let first = (start.index(0) + 1, start.index(1) + 1, (0, false));
        let (_, places) = scan(first, walk.uniform([steps, 2]), |(row, column, last), draws| {
            let (way, stuck) = last;
            let turns = stuck | draws.index(0).lt(TURN);
            let way = select(turns, (draws.index(1) * 4.0).astype(I32), way);
            let (down, right) = along(way);
            let inside = |i: Tensor| i.clamp(1, inner);
            let to = (inside(row + down), inside(column + right));
            let stuck = to.0.eq(row) & to.1.eq(column);
            ((to.0, to.1, (way, stuck)), to.0 * self.size as i32 + to.1)
        });
        let corners = self.all(places);
        let moved = |x: Tensor, axis: isize| x.roll(1, axis) | x;
        !moved(moved(corners, 0), 1)
    }

    /// A level with at least one box off its target: if a player cannot pull any box away, another
    /// level is drawn.
    #[track_caller]
    fn drawn(&self, key: Key) -> State {
        let none = full([self.size, self.size], false);
        let empty = State {
            walls: none,
            targets: none,
            boxes: none,
            row: scalar(0),
            column: scalar(0),
            time: scalar(0),
        };
        let (level, ..) = while_loop(
            (empty, 0, 0),
            |(_, score, _)| score.eq(0),
            |(_, _, tried)| {
                let (level, score) = self.level(key.fold_in(tried));
                (level, score, tried + 1)
            },
        );
        level
    }

    /// A level: rooms with boxes on targets, after the player has pulled the boxes away at random,
    /// at the greatest distance reached; and that distance.
    #[track_caller]
    fn level(&self, key: Key) -> (State, Tensor) {
        let [rooms, things, pulls] = key.split_into();
        let walls = self.rooms(rooms);
        let things = things.uniform([self.boxes + 1]);
        let size = self.size as i32;
        let mut free = !walls;
        let mut place = |thing: usize| {
            let (row, column) = draw_cell(free, things.index(thing));
            free = free & !self.only((row, column));
            row * size + column
        };
        let targets: Vec<Tensor> = (0..self.boxes).map(&mut place).collect();
        let targets = stack(&targets, 0);
        let first = Pulled { player: place(self.boxes), boxes: targets };
        let floor = (!walls).flatten();
        // The number of boxes off targets counts first, and then the boxes' distance from their
        // starts; 0 if all are on targets.
        let far = |boxes: Tensor| {
            let rows = (boxes / size - targets / size).abs();
            let columns = (boxes.rem(size) - targets.rem(size)).abs();
            let off = !boxes.expand_dims(1).eq(targets.expand_dims(0)).any_axis(1);
            let score = (rows + columns + off.astype(I32) * (2 * size * self.boxes as i32)).sum();
            select(off.any(), score, 0)
        };
        let draws = pulls.uniform([60 * self.size, 2]);
        let ((_, best, score), ()) = scan((first, first, 0), draws, |(now, best, score), draws| {
            let way = (draws.index(0) * 4.0).astype(I32);
            let (down, right) = along(way);
            let step = down * size + right;
            let (to, behind) = (now.player + step, now.player - step);
            let goes = floor.take(to, 0) & !now.boxes.eq(to).any();
            let pulls = now.boxes.eq(behind) & goes & draws.index(1).lt(PULL);
            let now = Pulled {
                player: select(goes, to, now.player),
                boxes: select(pulls, now.player, now.boxes),
            };
            let farther = far(now.boxes);
            let better = farther.gt(score);
            let best = Pulled {
                player: select(better, now.player, best.player),
                boxes: select(better, now.boxes, best.boxes),
            };
            ((now, best, select(better, farther, score)), ())
        });
        let level = State {
            walls,
            targets: self.all(targets),
            boxes: self.all(best.boxes),
            row: best.player / size,
            column: best.player.rem(size),
            time: scalar(0),
        };
        (level, score)
    }

    /// The initial state of an episode in a level: its cells, row by row, as characters of
    /// [`Levels`]. `u8[size * size]`
    #[track_caller]
    pub fn at(&self, level: Tensor) -> State {
        let cells = level.reshape([self.size, self.size]);
        let is = |character: u8| cells.eq(character);
        let player = select(is(b'@').flatten(), arange(self.cells()), 0).sum();
        let size = self.size as i32;
        State {
            walls: is(b'#'),
            targets: is(b'.'),
            boxes: is(b'$'),
            row: player / size,
            column: player.rem(size),
            time: scalar(0),
        }
    }
}

impl Environment for Sokoban {
    type State = State;
    type Observation = Tensor;

    /// Checks that things fit into the warehouse, and that levels have its size.
    fn check_settings(&self) -> Result<(), String> {
        let (size, boxes) = (self.size, self.boxes);
        match &self.levels {
            Some(levels) => levels.check(size, boxes),
            // Random rooms usually cover a third of the cells.
            None if boxes > size / 2 => Err(format!(
                "environment.boxes is {boxes} and must be at most {}, half of environment.size, for rooms that are drawn to have place for them",
                size / 2
            )),
            None => Ok(()),
        }
    }

    fn initial_state(&self, key: Key) -> State {
        let Some(levels) = &self.levels else { return self.drawn(key) };
        let drawn = key.randint([], 0..levels.len() as i32);
        let cells = constant(levels.cells()).reshape([levels.len(), self.cells()]);
        self.at(cells.take(drawn, 0))
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let (down, right) = along(action);
        let to = (state.row + down, state.column + right);
        let beyond = (to.0 + down, to.1 + right);
        let pushes = self.has(state.boxes, to);
        let blocked = state.walls | state.boxes;
        let goes = !self.has(state.walls, to) & !(pushes & self.has(blocked, beyond));
        let moves = pushes & goes;
        let boxes = (state.boxes & !(self.only(to) & moves)) | (self.only(beyond) & moves);
        let before = self.stored(&state);
        let state = State {
            boxes,
            row: select(goes, to.0, state.row),
            column: select(goes, to.1, state.column),
            time: state.time + 1,
            ..state
        };
        let stored = self.stored(&state);
        let terminated = stored.eq(self.boxes as i32);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = (stored - before).astype(F32) + select(terminated, SOLVED, 0.0) + STEP;
        let observation = self.observe(state);
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    /// Planes with 1 at walls, targets, boxes and the player, and the elapsed share of the time
    /// limit. `f32[size, size, 5]`
    fn observe(&self, state: State) -> Tensor {
        let time = state.time.astype(F32) / self.time_limit as f64;
        let player = self.only((state.row, state.column));
        let cells =
            [state.walls, state.targets, state.boxes, player].map(|cells| cells.astype(F32));
        let [walls, targets, boxes, player] = cells;
        stack(&[walls, targets, boxes, player, time.broadcast_to([self.size, self.size])], 2)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.size, self.size, 5], 0.0, 1.0)
            .described("walls, targets, boxes, the player, time")
    }

    /// Go up, right, down and left.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["up", "right", "down", "left"])
    }

    /// The share of the boxes that are on targets.
    fn success(&self, state: &State) -> Option<Tensor> {
        Some(self.stored(state).astype(F32) / self.boxes as f64)
    }

    /// Walls, red marks at the targets, wooden boxes, which are green on targets, and the player in blue.
    fn render(&self, state: &State) -> Option<Tensor> {
        let canvas = Canvas::board(self.size, self.size, Colour::BOARD);
        let floor = scenery::floor(&canvas);
        let target = floor
            .fill(&Shape::ring(0.5, 0.5, 0.28, 0.09), Colour::RED)
            .fill(&Shape::disc(0.5, 0.5, 0.1), Colour::RED);
        let box_of = |colour: Colour| {
            let planks = Shape::line((0.26, 0.26), (0.74, 0.74), 0.1)
                .union(Shape::line((0.26, 0.74), (0.74, 0.26), 0.1))
                .union(
                    Shape::rounded(0.5, 0.5, 0.82, 0.82, 0.06)
                        .minus(Shape::rectangle(0.5, 0.5, 0.6, 0.6)),
                );
            floor
                .fill(&Shape::rounded(0.5, 0.5, 0.86, 0.86, 0.07), colour.dark(0.35))
                .fill(&planks, colour)
        };
        let tiles =
            [floor, scenery::wall(&canvas), target, box_of(Colour::WOOD), box_of(Colour::GREEN)];
        let boxes = select(state.targets, 4, 3);
        let free = select(state.walls, 1, select(state.targets, 2, 0));
        Some(
            canvas
                .tiles(select(state.boxes, boxes, free), &tiles)
                .fill_cell(state.row, state.column, &scenery::walker(), Colour::BLUE)
                .finish(),
        )
    }
}
