//! Freeway: lead a chicken over a road with eight lanes.

use super::{DOWN, NOTHING, SIZE, UP, bit, cell, drawn_if, observation, one_of, plane};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of lanes of the road, in rows 1 to 8, with one car each.
const LANES: usize = 8;
/// Column of the chicken.
const COLUMN: i32 = 4;

/// Freeway of MinAtar: reaching the other side of the road pays 1, sends the chicken back and gives
/// the cars other speeds. A car that hits the chicken only sends it back. Episodes never terminate;
/// they are truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Freeway {
    /// Number of steps between moves of the chicken.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub player_speed: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// A move every three steps, 2500 steps.
impl Default for Freeway {
    fn default() -> Self {
        Freeway { player_speed: 3, time_limit: 2500 }
    }
}

/// The chicken and the cars.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the chicken: 9 at the start, 0 at the goal. `i32[]`
    pub row: Tensor,
    /// Steps until the chicken may move. `i32[]`
    pub move_timer: Tensor,
    /// Columns of the cars; the i-th car is in row `i + 1`. `i32[8]`
    pub cars: Tensor,
    /// Steps until each car moves. `i32[8]`
    pub timers: Tensor,
    /// Number of steps between moves, 1 to 5; negative for a car to the left. `i32[8]`
    pub speeds: Tensor,
    /// True at an episode's start, when speeds and timers are not drawn yet. `bool[]`
    pub undrawn: Tensor,
    /// Key of the episode's first speeds. `u32[2]`
    pub key: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// The speeds drawn from a key. `i32[8]`
#[track_caller]
fn draw_speeds(key: Key) -> Tensor {
    let (speed, direction) = key.split();
    speed.randint([LANES], 1..6) * (2 * direction.randint([LANES], 0..2) - 1)
}

impl State {
    /// The state with its first speeds drawn. Episodes begin without them, because the loop around
    /// the environment computes an initial state in every step, and needs few of them.
    #[track_caller]
    fn drawn(self) -> State {
        let speeds = drawn_if(self.undrawn, Key::from_words(self.key), self.speeds, draw_speeds);
        let timers = select(self.undrawn, speeds.abs(), self.timers);
        State { speeds, timers, undrawn: constant(false), ..self }
    }

    /// The observation of a state with drawn speeds.
    #[track_caller]
    fn seen(self) -> Tensor {
        let behind = bit(around(self.cars - select(self.speeds.gt(0), 1, -1)));
        let of_speed = |speed: i32| in_rows(select(self.speeds.abs().eq(speed), behind, 0u32));
        observation(&[
            cell(self.row, scalar(COLUMN)),
            in_rows(bit(self.cars)),
            of_speed(1),
            of_speed(2),
            of_speed(3),
            of_speed(4),
            of_speed(5),
        ])
    }
}

/// A word for each car, in its row. `u32[10]`
#[track_caller]
fn in_rows(words: Tensor) -> Tensor {
    words.pad(&[(1, 1)], 0u32)
}

/// Columns on the road, which is a ring.
#[track_caller]
fn around(columns: Tensor) -> Tensor {
    select(columns.lt(0), 9, select(columns.gt(9), 0, columns))
}

impl Environment for Freeway {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        State {
            row: scalar(9),
            move_timer: scalar(self.player_speed as i32),
            cars: zeros(I32, [LANES]),
            timers: zeros(I32, [LANES]),
            speeds: zeros(I32, [LANES]),
            undrawn: constant(true),
            key: key.words(),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let action = one_of(&[NOTHING, UP, DOWN], action);
        let state = state.drawn();
        let ready = state.move_timer.eq(0);
        let (up, down) = (ready & action.eq(UP), ready & action.eq(DOWN));
        let row = state.row + down.astype(I32) - up.astype(I32);
        let row = row.clamp(0, 9);
        let move_timer = select(up | down, self.player_speed as i32, state.move_timer);
        let arrived = row.eq(0);
        let row = select(arrived, 9, row);

        let speeds = drawn_if(arrived, key, state.speeds, draw_speeds);
        let timers = select(arrived, speeds.abs(), state.timers);
        let moves = timers.eq(0);
        let forward = select(speeds.gt(0), 1, -1);
        let cars = select(moves, around(state.cars + forward), state.cars);
        let hits = state.cars.eq(COLUMN) | cars.eq(COLUMN);
        let hit = (hits & (arange(LANES) + 1).eq(row)).any();
        let state = State {
            row: select(hit, 9, row),
            move_timer: (move_timer - 1).maximum(0),
            cars,
            timers: select(moves, speeds.abs(), timers - 1),
            speeds,
            time: state.time + 1,
            ..state
        };
        let truncated = state.time.ge(self.time_limit);
        let (reward, terminated) = (arrived.astype(F32), constant(false));
        (state, TimeStep { observation: state.seen(), reward, terminated, truncated })
    }

    /// 1 at the chicken, at the cars, and behind each car in the channel of its speed. `f32[10, 10, 7]`
    fn observe(&self, state: State) -> Tensor {
        state.drawn().seen()
    }

    fn observation_space(&self) -> Space {
        super::observation_space(&[
            "chicken", "car", "speed 1", "speed 2", "speed 3", "speed 4", "speed 5",
        ])
    }

    /// Actions 0 to 2: nothing, up, down.
    fn action_space(&self) -> Space {
        Space::discrete(3).named(["nothing", "up", "down"])
    }

    /// The chicken on its way up between the cars: blue cars go to the right, and red cars to the left.
    fn render(&self, state: &State) -> Option<Tensor> {
        let state = state.drawn();
        let cars = |to_the_right: bool| {
            let these = state.speeds.gt(0).eq(to_the_right);
            plane(in_rows(select(these, bit(state.cars), 0u32)))
        };
        let row = iota(I32, [SIZE, SIZE], 0);
        let grass = row.eq(0) | row.eq(9);
        let asphalt = Colour::GREY.dark(0.45);
        let canvas = Canvas::board(SIZE, SIZE, asphalt);
        let marks =
            Shape::rectangle(0.5, 0.0, 0.5, 0.06).union(Shape::rectangle(0.5, 1.0, 0.5, 0.06));
        let road = canvas.tile(asphalt).fill(&marks, Colour::BOARD.dark(0.2));
        let car = |colour: Colour, side: f64| {
            let part = |x: f64, width: f64, height: f64| {
                Shape::rounded(0.5 + side * x, 0.5, width, height, 0.07)
            };
            let lights = Shape::disc(0.5 + side * 0.4, 0.35, 0.05).union(Shape::disc(
                0.5 + side * 0.4,
                0.65,
                0.05,
            ));
            road.fill(&part(0.0, 0.86, 0.5), colour)
                .fill(&part(0.13, 0.14, 0.38), Colour::TEXT)
                .fill(&part(-0.25, 0.1, 0.38), Colour::TEXT)
                .fill(&part(-0.07, 0.2, 0.4), colour.light(0.25))
                .fill(&lights, Colour::YELLOW)
        };
        let meadow = canvas.tile(Colour::GROUND);
        let things = [
            (grass, meadow),
            (cars(true), car(Colour::BLUE, 1.0)),
            (cars(false), car(Colour::RED, -1.0)),
        ];
        let chicken = plane(cell(state.row, scalar(COLUMN)));
        let comb = Shape::disc(0.44, 0.17, 0.06).union(Shape::disc(0.53, 0.16, 0.07));
        let body = Shape::disc(0.5, 0.6, 0.27).union(Shape::disc(0.5, 0.34, 0.17));
        let beak = Shape::polygon(&[(0.64, 0.28), (0.84, 0.36), (0.64, 0.43)]);
        Some(
            canvas
                .layers(road, &things)
                .fill_cells(chicken, &comb, Colour::RED)
                .fill_cells(chicken, &beak, Colour::ORANGE)
                .fill_cells(chicken, &body, Colour::WHITE)
                .fill_cells(chicken, &Shape::disc(0.56, 0.3, 0.045), Colour::BLACK)
                .finish(),
        )
    }
}
