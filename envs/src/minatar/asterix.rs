//! Asterix: pick up gold and avoid the enemies that come from both sides.

use super::{DOWN, LEFT, NOTHING, RIGHT, SIZE, UP, bit, cell, moved, observation, one_of, plane};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of lanes, in rows 1 to 8. Each has at most one object.
const LANES: usize = 8;

/// Asterix of MinAtar: gold pays 1, and an enemy terminates the episode. It is truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Asterix {
    /// True if objects appear and move faster over time.
    pub ramping: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// Faster over time, 1000 steps.
impl Default for Asterix {
    fn default() -> Self {
        Asterix { ramping: true, time_limit: 1000 }
    }
}

/// Initial number of steps between objects.
const SPAWN_SPEED: i32 = 10;
/// Initial number of steps between moves of the objects.
const MOVE_SPEED: i32 = 5;
/// Number of steps between increases of speed.
const RAMP_INTERVAL: i32 = 100;

/// The player, the objects in the lanes, and the speeds and timers.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the player, 1 to 8. `i32[]`
    pub row: Tensor,
    /// Column of the player. `i32[]`
    pub column: Tensor,
    /// True if there is an object in the lane; the i-th lane is row `i + 1`. `bool[8]`
    pub filled: Tensor,
    /// Columns of the objects. `i32[8]`
    pub columns: Tensor,
    /// True for an object that moves to the right. `bool[8]`
    pub right: Tensor,
    /// True for gold, false for an enemy. `bool[8]`
    pub gold: Tensor,
    /// Number of steps between objects. `i32[]`
    pub spawn_speed: Tensor,
    /// Number of steps until the next object. `i32[]`
    pub spawn_timer: Tensor,
    /// Number of steps between moves of the objects. `i32[]`
    pub move_speed: Tensor,
    /// Number of steps until the objects move. `i32[]`
    pub move_timer: Tensor,
    /// Number of steps until the next increase of speed. `i32[]`
    pub ramp_timer: Tensor,
    /// Number of increases of speed so far. `i32[]`
    pub ramp_index: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// The position of each lane in a random order, 0 to 7: the lane's index in [`Key::permutation`].
/// Comparisons are cheaper than sorting eight numbers. `i32[8]`
#[track_caller]
fn places(key: Key) -> Tensor {
    let words = key.split().1.bits(U32, [LANES]);
    let other = words.expand_dims(0).broadcast_to([LANES, LANES]);
    let own = words.expand_dims(1).broadcast_to([LANES, LANES]);
    let earlier = iota(I32, [LANES, LANES], 1).lt(iota(I32, [LANES, LANES], 0));
    (other.lt(own) | (other.eq(own) & earlier)).astype(I32).sum_axis(1)
}

impl State {
    /// Adds an object in a random free lane.
    #[track_caller]
    fn spawned(self, key: Key) -> State {
        let [direction, gold, lane] = key.split_into();
        let right = direction.randint([], 0..2).eq(0);
        let gold = (1.0 - gold.uniform([])).le(1.0 / 3.0);
        // The lane of the first position is never considered. If the others are full, the object in
        // the last lane is replaced.
        let places = places(lane);
        let free = !self.filled & places.gt(0);
        let first = select(free, places, LANES as i32).min();
        let full = first.eq(LANES);
        let chosen = places.eq(select(full, LANES as i32 - 1, first));
        let now = self.spawn_timer.eq(0);
        let here = chosen & now;
        State {
            filled: select(here, !full, self.filled),
            columns: select(here, select(right, 0, 9), self.columns),
            right: select(here, right, self.right),
            gold: select(here, gold, self.gold),
            spawn_timer: select(now, self.spawn_speed, self.spawn_timer),
            ..self
        }
    }

    /// True for the object that the player touches. `bool[8]`
    #[track_caller]
    fn touched(&self) -> Tensor {
        self.filled & self.columns.eq(self.column) & (arange(LANES) + 1).eq(self.row)
    }

    /// The objects after a move; objects that leave the board are removed.
    #[track_caller]
    fn advanced(self) -> State {
        let columns = self.columns + select(self.right, 1, -1);
        let inside = columns.ge(0) & columns.le(9);
        let now = self.move_timer.eq(0);
        State {
            columns: select(now & self.filled, columns, self.columns),
            filled: self.filled & (inside | !now),
            move_timer: select(now, self.move_speed, self.move_timer),
            ..self
        }
    }

    /// The timers after a step, with higher speeds if they are due.
    #[track_caller]
    fn ticked(self, ramping: bool) -> State {
        let state = State {
            spawn_timer: self.spawn_timer - 1,
            move_timer: self.move_timer - 1,
            time: self.time + 1,
            ..self
        };
        if !ramping {
            return state;
        }
        let ramping = self.spawn_speed.gt(1) | self.move_speed.gt(1);
        let waits = ramping & self.ramp_timer.ge(0);
        let now = ramping & !waits;
        let move_faster = now & self.move_speed.ne(0) & (self.ramp_index & 1).ne(0);
        let spawn_faster = now & self.spawn_speed.gt(1);
        State {
            ramp_timer: select(waits, self.ramp_timer - 1, RAMP_INTERVAL),
            move_speed: self.move_speed - move_faster.astype(I32),
            spawn_speed: self.spawn_speed - spawn_faster.astype(I32),
            ramp_index: self.ramp_index + now.astype(I32),
            ..state
        }
    }

    /// The set of the lanes' cells in these columns. `u32[10]`
    #[track_caller]
    fn cells_in(&self, present: Tensor, columns: Tensor) -> Tensor {
        select(present, bit(columns), 0u32).pad(&[(1, 1)], 0u32)
    }
}

impl Environment for Asterix {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        let none = constant(false).broadcast_to([LANES]);
        State {
            row: scalar(5),
            column: scalar(5),
            filled: none,
            columns: zeros(I32, [LANES]),
            right: none,
            gold: none,
            spawn_speed: scalar(SPAWN_SPEED),
            spawn_timer: scalar(SPAWN_SPEED),
            move_speed: scalar(MOVE_SPEED),
            move_timer: scalar(MOVE_SPEED),
            ramp_timer: scalar(RAMP_INTERVAL),
            ramp_index: scalar(0),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let action = one_of(&[NOTHING, LEFT, UP, RIGHT, DOWN], action);
        let state = state.spawned(key);
        let state = State {
            column: moved(state.column, action, [LEFT, RIGHT], [0, 9]),
            row: moved(state.row, action, [UP, DOWN], [1, 8]),
            ..state
        };
        // The player touches objects before and after they move.
        let before = state.touched();
        let moves = state.move_timer.eq(0);
        let state = State { filled: state.filled & !(before & state.gold), ..state }.advanced();
        let after = state.touched() & moves;
        let gold = (before | after) & state.gold;
        let terminated = ((before | after) & !state.gold).any();
        let state = State { filled: state.filled & !(after & state.gold), ..state };
        let state = state.ticked(self.ramping);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = gold.astype(F32).sum();
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// 1 at the player, the enemies, behind each object, and the gold. `f32[10, 10, 4]`
    fn observe(&self, state: State) -> Tensor {
        let State { filled, gold, columns, .. } = state;
        observation(&[
            cell(state.row, state.column),
            state.cells_in(filled & !gold, columns),
            state.cells_in(filled, columns - select(state.right, 1, -1)),
            state.cells_in(filled & gold, columns),
        ])
    }

    fn observation_space(&self) -> Space {
        super::observation_space(&["player", "enemy", "trail", "gold"])
    }

    /// Actions 0 to 4: nothing, left, up, right, down.
    fn action_space(&self) -> Space {
        Space::discrete(5).named(["nothing", "left", "up", "right", "down"])
    }

    /// The player in green, gold, and enemies as red blades. Dots trail behind what moves.
    fn render(&self, state: &State) -> Option<Tensor> {
        let State { filled, gold, columns, .. } = *state;
        let trail = state.cells_in(filled, columns - select(state.right, 1, -1));
        let canvas = Canvas::board(SIZE, SIZE, Colour::BOARD);
        let floor = scenery::floor(&canvas);
        let dots = Shape::disc(0.3, 0.5, 0.05).union(Shape::disc(0.7, 0.5, 0.05));
        let blade = |angle: f64| {
            let corners = [(-0.42, 0.0), (0.0, -0.1), (0.42, 0.0), (0.0, 0.1)];
            Shape::polygon(&corners).rotate(angle).translate(0.5, 0.5)
        };
        let enemy = (1..4).fold(blade(0.0), |all, i| all.union(blade(f64::from(i) * 0.785)));
        let enemy = floor
            .fill(&enemy, Colour::RED)
            .fill(&Shape::disc(0.5, 0.5, 0.2), Colour::RED)
            .fill(&Shape::disc(0.5, 0.5, 0.08), Colour::WHITE);
        let coin = floor
            .fill(&Shape::disc(0.5, 0.5, 0.34), Colour::YELLOW.dark(0.25))
            .fill(&Shape::disc(0.5, 0.5, 0.28), Colour::YELLOW)
            .fill(&Shape::rounded(0.5, 0.5, 0.09, 0.3, 0.04), Colour::YELLOW.dark(0.25));
        let things = [
            (plane(trail), floor.fill(&dots, Colour::LINE)),
            (plane(state.cells_in(filled & !gold, columns)), enemy),
            (plane(state.cells_in(filled & gold, columns)), coin),
            (plane(cell(state.row, state.column)), floor.fill(&scenery::walker(), Colour::GREEN)),
        ];
        Some(canvas.layers(floor, &things).finish())
    }
}
