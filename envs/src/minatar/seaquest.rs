//! Seaquest: a submarine that shoots, and brings divers to the surface before its oxygen runs out.

mod crowd;

use super::{
    DOWN, FIRE, LEFT, NOTHING, RIGHT, SIZE, UP, cell, cells, contains, moved, observation, one_of,
    plane,
};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape, scenery};
use crate::space::Space;
use crowd::{Bullets, Divers, Enemies, hit};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Steps of oxygen after surfacing.
const OXYGEN: i32 = 200;
/// Number of steps between shots of the submarine.
const SHOT_INTERVAL: i32 = 5;
/// Number of steps between divers.
const DIVER_SPAWN_SPEED: i32 = 30;
/// Initial number of steps between enemies.
const SPAWN_SPEED: i32 = 20;
/// Initial number of steps that an enemy waits before each move.
const MOVE_SPEED: i32 = 5;
/// Least number of steps that an enemy waits.
const LEAST_MOVE_SPEED: i32 = 2;
/// Greatest number of divers on board.
const SEATS: i32 = 6;

/// Seaquest of MinAtar: an enemy that is shot pays 1. Surfacing with six divers pays 1 for each
/// tenth of oxygen that is left; surfacing with fewer divers gives up one of them. The episode is
/// terminated when an enemy or its bullet meets the front of the submarine, when the submarine
/// surfaces without a diver, and when the oxygen is used up. It is truncated after `time_limit`
/// steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Seaquest {
    /// True if enemies appear more often after each surfacing, and move faster after every second
    /// surfacing.
    pub ramping: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// Harder over time, 1000 steps.
impl Default for Seaquest {
    fn default() -> Self {
        Seaquest { ramping: true, time_limit: 1000 }
    }
}

/// The submarine and its surroundings. Sets of cells have one word per row; bit `c` is column `c`.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Row of the submarine, 0 at the surface to 8. `i32[]`
    pub row: Tensor,
    /// Column of its front. `i32[]`
    pub column: Tensor,
    /// True if it heads to the right. `bool[]`
    pub right: Tensor,
    /// Remaining steps of oxygen. `i32[]`
    pub oxygen: Tensor,
    /// Divers on board; -1 after six divers were brought to the surface. `i32[]`
    pub rescued: Tensor,
    /// True while the submarine is at the surface. `bool[]`
    pub surfaced: Tensor,
    /// Bullets of the submarine.
    pub bullets: Bullets,
    /// Fish and submarines.
    pub enemies: Enemies,
    /// Cells with a bullet of an enemy that flies to the right. `u32[10]`
    pub right_shots: Tensor,
    /// Cells with a bullet of an enemy that flies to the left. `u32[10]`
    pub left_shots: Tensor,
    /// Divers in the water.
    pub divers: Divers,
    /// Number of steps between enemies. `i32[]`
    pub spawn_speed: Tensor,
    /// Steps until the next enemy comes. `i32[]`
    pub spawn_timer: Tensor,
    /// Steps until the next diver comes. `i32[]`
    pub diver_timer: Tensor,
    /// Steps that an enemy waits before each move. `i32[]`
    pub move_speed: Tensor,
    /// Number of times that the game became harder. `i32[]`
    pub ramp_index: Tensor,
    /// Steps until the submarine can shoot. `i32[]`
    pub shot_timer: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl State {
    /// Adds an enemy and a diver if they are due.
    #[track_caller]
    fn spawned(self, key: Key) -> State {
        let (enemy, diver) = key.split();
        let (kind, row) = enemy.split();
        let draws = kind.uniform([2]);
        let right = draws.index(0).lt(0.5);
        let shoots = draws.index(1).lt(1.0 / 3.0);
        let now = self.spawn_timer.eq(0);
        let row = row.randint([], 1..9);
        let enemies = self.enemies.joined(now, row, right, shoots, self.move_speed, self.time);
        let (direction, diver_row) = diver.split();
        let diver_now = self.diver_timer.eq(0);
        let (diver_row, diver_right) = (diver_row.randint([], 1..9), direction.bernoulli([], 0.5));
        State {
            enemies,
            divers: self.divers.joined(diver_now, diver_row, diver_right),
            spawn_timer: select(now, self.spawn_speed, self.spawn_timer),
            diver_timer: select(diver_now, DIVER_SPAWN_SPEED, self.diver_timer),
            ..self
        }
    }

    /// The submarine after its move, with a new bullet if it fires.
    #[track_caller]
    fn steered(self, action: Tensor) -> State {
        let column = moved(self.column, action, [LEFT, RIGHT], [0, 9]);
        let row = moved(self.row, action, [UP, DOWN], [0, 8]);
        let right = (self.right & action.ne(LEFT)) | action.eq(RIGHT);
        let fires = action.eq(FIRE) & self.shot_timer.eq(0);
        State {
            row,
            column,
            right,
            bullets: self.bullets.joined(fires, row, column, right),
            shot_timer: select(fires, SHOT_INTERVAL, self.shot_timer),
            ..self
        }
    }

    /// Removes bullets and the enemies of one kind that they hit, and returns the number of these
    /// enemies. `i32[]`
    #[track_caller]
    fn shot(self, submarines: bool) -> (State, Tensor) {
        let (bullets, enemies, count) = hit(self.bullets, self.enemies, submarines);
        (State { bullets, enemies, ..self }, count)
    }

    /// Takes divers at the submarine's front on board, the oldest first, as long as there are
    /// seats.
    #[track_caller]
    fn boarded(self) -> State {
        let (divers, count) = self.divers.boarding(self.row, self.column, SEATS - self.rescued);
        State { divers, rescued: (self.rescued + count).minimum(SEATS), ..self }
    }

    /// The enemies of one kind after their move; and true if one of them meets the front before or
    /// after it. `bool[]`
    #[track_caller]
    fn attacked(self, submarines: bool) -> (State, Tensor) {
        let met = |enemies: &Enemies| {
            let kind = enemies.of_kind(submarines);
            (kind & enemies.row.eq(self.row) & enemies.column.eq(self.column)).any()
        };
        let enemies = self.enemies.advanced(submarines, self.move_speed);
        (State { enemies, ..self }, met(&self.enemies) | met(&enemies))
    }

    /// The enemies' bullets after their shots and their move; and true if one of them meets the
    /// front before or after it. `bool[]`
    #[track_caller]
    fn fired_at(self) -> (State, Tensor) {
        let met = |right: Tensor, left: Tensor| contains(right | left, self.row, self.column);
        let (enemies, right, left) = self.enemies.shooting();
        let (right, left) = (self.right_shots | right, self.left_shots | left);
        let before = met(right, left);
        let (right_shots, left_shots) = ((right << 1u32) & 0x3ffu32, left >> 1u32);
        let state = State { enemies, right_shots, left_shots, ..self };
        (state, before | met(right_shots, left_shots))
    }

    /// Timers and oxygen after the step, the reward for surfacing, and true if the episode ends by
    /// it. `f32[]`, `bool[]`
    #[track_caller]
    fn ticked(self, ramping: bool) -> (State, Tensor, Tensor) {
        let less = |timer: Tensor| (timer - 1).maximum(0);
        let underwater = self.row.gt(0);
        let surfaces = !underwater & !self.surfaced;
        let full = self.rescued.eq(SEATS);
        let reward = select(surfaces & full, self.oxygen * 10 / OXYGEN, 0).astype(F32);
        let over = self.oxygen.le(0) | (surfaces & self.rescued.eq(0));
        let left = select(full, -1, self.rescued - 1);
        let spawns_faster = self.spawn_speed.gt(1);
        let moves_faster = self.move_speed.gt(LEAST_MOVE_SPEED);
        let harder = match ramping {
            true => surfaces & (spawns_faster | moves_faster),
            false => constant(false),
        };
        let odd = (self.ramp_index & 1).ne(0);
        let state = State {
            oxygen: select(surfaces, OXYGEN, self.oxygen - underwater.astype(I32)),
            rescued: select(surfaces, left, self.rescued),
            surfaced: !underwater,
            spawn_timer: less(self.spawn_timer),
            diver_timer: less(self.diver_timer),
            shot_timer: less(self.shot_timer),
            spawn_speed: self.spawn_speed - (harder & spawns_faster).astype(I32),
            move_speed: self.move_speed - (harder & moves_faster & odd).astype(I32),
            ramp_index: self.ramp_index + harder.astype(I32),
            time: self.time + 1,
            ..self
        };
        (state, reward, over)
    }

    /// The cell behind the submarine's front. At the left edge it is the other end of the row; at
    /// the right edge there is none.
    #[track_caller]
    fn rear_cell(&self) -> Tensor {
        let column = self.column + select(self.right, -1, 1);
        cell(self.row, select(column.lt(0), 9, column))
    }
}

impl Environment for Seaquest {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        State {
            row: scalar(0),
            column: scalar(5),
            right: constant(false),
            oxygen: scalar(OXYGEN),
            rescued: scalar(0),
            surfaced: constant(true),
            bullets: Bullets::none(),
            enemies: Enemies::none(),
            right_shots: zeros(U32, [SIZE]),
            left_shots: zeros(U32, [SIZE]),
            divers: Divers::none(),
            spawn_speed: scalar(SPAWN_SPEED),
            spawn_timer: scalar(SPAWN_SPEED),
            diver_timer: scalar(DIVER_SPAWN_SPEED),
            move_speed: scalar(MOVE_SPEED),
            ramp_index: scalar(0),
            shot_timer: scalar(0),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, key: Key) -> (State, TimeStep) {
        let action = one_of(&[NOTHING, LEFT, UP, RIGHT, DOWN, FIRE], action);
        let state = state.spawned(key).steered(action);
        let state = State { bullets: state.bullets.advanced(), ..state };
        let (state, fish) = state.shot(false);
        let (state, submarines) = state.shot(true);
        let state = state.boarded();
        let state = State { divers: state.divers.advanced(), ..state }.boarded();
        let (state, by_submarine) = state.attacked(true);
        let (state, more_submarines) = state.shot(true);
        let (state, by_shot) = state.fired_at();
        let (state, by_fish) = state.attacked(false);
        let (state, more_fish) = state.shot(false);
        let (state, surfacing, over) = state.ticked(self.ramping);
        let terminated = by_submarine | by_shot | by_fish | over;
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let shot = fish + submarines + more_submarines + more_fish;
        let reward = shot.astype(F32) + surfacing;
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// 1 at the submarine's front and back, its bullets, behind swimming objects, at the enemies'
    /// bullets, the fish, and the enemies' submarines. In the last row are bars for the oxygen and
    /// for the divers on board. The last channel has the divers. `f32[10, 10, 10]`
    fn observe(&self, state: State) -> Tensor {
        let State { enemies, divers, bullets, .. } = state;
        let (fish, submarines) = (enemies.of_kind(false), enemies.of_kind(true));
        let column = arange(SIZE);
        let last_row = |there: Tensor| {
            let word = select(there, constant(1u32) << iota(U32, [SIZE], 0), 0u32).any();
            select(column.eq(9), word.broadcast_to([SIZE]), 0u32)
        };
        let trail = enemies.trail() | divers.trail();
        let oxygen = column.lt(state.oxygen.maximum(0) * 10 / OXYGEN);
        let rescued = column.ge(9 - state.rescued) & column.lt(9);
        observation(&[
            cell(state.row, state.column),
            state.rear_cell(),
            cells(bullets.row, bullets.column, bullets.present),
            trail,
            state.right_shots | state.left_shots,
            cells(enemies.row, enemies.column, fish),
            cells(enemies.row, enemies.column, submarines),
            last_row(oxygen),
            last_row(rescued),
            cells(divers.row, divers.column, divers.present),
        ])
    }

    fn observation_space(&self) -> Space {
        super::observation_space(&[
            "front",
            "back",
            "bullet",
            "trail",
            "enemy bullet",
            "fish",
            "enemy submarine",
            "oxygen",
            "rescued",
            "diver",
        ])
    }

    /// Actions 0 to 5: nothing, left, up, right, down, fire.
    fn action_space(&self) -> Space {
        Space::discrete(6).named(["nothing", "left", "up", "right", "down", "fire"])
    }

    /// The submarine in yellow, fish in green, enemy submarines in red, and divers in magenta. The lowest row shows the oxygen in light blue,
    /// and the divers on board.
    fn render(&self, state: &State) -> Option<Tensor> {
        let State { enemies, divers, bullets, .. } = *state;
        let (row, column) = (iota(I32, [SIZE, SIZE], 0), iota(I32, [SIZE, SIZE], 1));
        let oxygen = row.eq(9) & column.lt(state.oxygen.maximum(0) * 10 / OXYGEN);
        let rescued = row.eq(9) & column.ge(9 - state.rescued) & column.lt(9);
        let these = |kind: Tensor| plane(cells(enemies.row, enemies.column, kind));
        let (right, left) = (state.right, !state.right);
        let water = Colour::CYAN.mixed(Colour::BLUE, 0.55);
        let canvas = Canvas::board(SIZE, SIZE, water);
        let sea = canvas.tile(water);
        let gauge = canvas.tile(Colour::TEXT);
        let waves = Shape::disc(0.25, 0.78, 0.27).union(Shape::disc(0.75, 0.78, 0.27));
        let surface = canvas
            .tile(Colour::SKY)
            .fill(&waves.union(Shape::rectangle(0.5, 0.9, 1.2, 0.3)), water);
        let person = |tile: Canvas| tile.fill(&scenery::walker(), Colour::MAGENTA);
        let fish = |side: f64| {
            let body = Shape::disc(0.5, 0.28, 0.36).intersection(Shape::disc(0.5, 0.72, 0.36));
            let at = |x: f64| 0.5 + side * x;
            let tail = Shape::polygon(&[(at(-0.2), 0.5), (at(-0.42), 0.3), (at(-0.42), 0.7)]);
            sea.fill(&tail.union(body), Colour::GREEN.light(0.3))
                .fill(&Shape::disc(at(0.12), 0.46, 0.04), Colour::BLACK)
        };
        let enemy = Shape::rounded(0.5, 0.58, 0.84, 0.4, 0.2)
            .union(Shape::rounded(0.5, 0.32, 0.26, 0.3, 0.06));
        let shot = |colour: Colour| sea.fill(&Shape::line((0.3, 0.5), (0.7, 0.5), 0.13), colour);
        let (front, rear) = (plane(cell(state.row, state.column)), plane(state.rear_cell()));
        let hull = |side: f64| {
            let hull = Shape::rounded(0.5 - side * 0.3, 0.58, 1.2, 0.6, 0.3);
            let window = Shape::disc(0.5 + side * 0.1, 0.56, 0.13);
            (hull, window)
        };
        let [(nose, window), (nose_left, window_left)] = [1.0, -1.0].map(hull);
        let tower = |side: f64| {
            Shape::rounded(0.5 + side * 0.12, 0.24, 0.4, 0.36, 0.08).union(Shape::rounded(
                0.5 + side * 0.25,
                0.58,
                1.3,
                0.6,
                0.2,
            ))
        };
        let things = [
            (row.eq(0), surface),
            (row.eq(9), gauge),
            (oxygen, gauge.fill(&Shape::rectangle(0.5, 0.5, 1.0, 0.6), Colour::CYAN)),
            (rescued, person(gauge)),
            (rescued & oxygen, {
                person(gauge.fill(&Shape::rectangle(0.5, 0.5, 1.0, 0.6), Colour::CYAN))
            }),
            (plane(cells(divers.row, divers.column, divers.present)), person(sea)),
            (these(enemies.of_kind(false) & enemies.right), fish(1.0)),
            (these(enemies.of_kind(false) & !enemies.right), fish(-1.0)),
            (these(enemies.of_kind(true)), {
                sea.fill(&enemy, Colour::RED).fill(&Shape::disc(0.5, 0.58, 0.1), Colour::WHITE)
            }),
            (plane(state.right_shots | state.left_shots), shot(Colour::RED)),
            (plane(cells(bullets.row, bullets.column, bullets.present)), shot(Colour::WHITE)),
        ];
        let (yellow, glass) = (Colour::YELLOW, Colour::TEXT);
        Some(
            canvas
                .layers(sea, &things)
                .fill_cells(rear & right, &tower(1.0), yellow)
                .fill_cells(rear & left, &tower(-1.0), yellow)
                .fill_cells(front & right, &nose, yellow)
                .fill_cells(front & left, &nose_left, yellow)
                .fill_cells(front & right, &window, glass)
                .fill_cells(front & left, &window_left, glass)
                .finish(),
        )
    }
}
