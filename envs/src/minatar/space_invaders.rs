//! SpaceInvaders: shoot the aliens before they come down.
//!
//! gymnax 0.0.9 differs from version 1.0.1, which this game follows: its first wave has a seventh
//! column, and a bullet hits the cannon at its position before the step.

use super::{
    FIRE, LEFT, NOTHING, RIGHT, SIZE, bit, cell, contains, down, known, moved, observation, one_of,
    plane, up,
};
use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of steps between shots of the cannon.
const SHOT_INTERVAL: i32 = 5;
/// Number of steps between shots of the aliens.
const ALIEN_SHOT_INTERVAL: i32 = 10;
/// Number of steps between moves of the aliens in the first wave. Few aliens move faster: with `n`
/// aliens, every `n` steps.
const MOVE_INTERVAL: i32 = 12;
/// Least initial interval of a wave.
const LEAST_MOVE_INTERVAL: i32 = 6;
/// The first column, as a bit of a row.
const FIRST_COLUMN: u32 = 1;
/// The last column, as a bit of a row.
const LAST_COLUMN: u32 = 1 << (SIZE - 1);

/// SpaceInvaders of MinAtar: an alien that is shot pays 1. A bullet or an alien that meets the
/// cannon terminates the episode. It is truncated after `time_limit` steps. After the last alien
/// the next wave appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpaceInvaders {
    /// True if each wave moves faster than the previous wave.
    pub ramping: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// Faster over time, 1000 steps.
impl Default for SpaceInvaders {
    fn default() -> Self {
        SpaceInvaders { ramping: true, time_limit: 1000 }
    }
}

/// The cannon, the bullets and the aliens. Sets of cells have one word per row; bit `c` is column
/// `c`.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Column of the cannon, which is in the last row. `i32[]`
    pub cannon: Tensor,
    /// Cells with a bullet of the cannon. `u32[10]`
    pub bullets: Tensor,
    /// Cells with a bullet of the aliens. `u32[10]`
    pub alien_bullets: Tensor,
    /// Cells with an alien. `u32[10]`
    pub aliens: Tensor,
    /// True if the aliens move to the right. `bool[]`
    pub right: Tensor,
    /// Greatest number of steps between moves of this wave. `i32[]`
    pub move_interval: Tensor,
    /// Steps until the aliens move. `i32[]`
    pub move_timer: Tensor,
    /// Steps until the aliens shoot. `i32[]`
    pub alien_shot_timer: Tensor,
    /// Steps until the cannon can shoot. `i32[]`
    pub shot_timer: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// A wave of aliens: columns 2 to 7 of the first four rows.
#[track_caller]
fn wave() -> Tensor {
    known(|row| if row < 4 { 0b00_1111_1100 } else { 0 })
}

/// Number of cells in a set. `i32[]`
#[track_caller]
fn count(words: Tensor) -> Tensor {
    words.popcount().astype(I32).sum()
}

/// The cell of the alien that shoots: the lowest alien in the column nearest to the cannon, or in
/// the left of two such columns. Empty without aliens. `u32[10]`
#[track_caller]
fn shooter(aliens: Tensor, cannon: Tensor) -> Tensor {
    let column = arange(SIZE);
    let taken = ((aliens.any().broadcast_to([SIZE]) >> iota(U32, [SIZE], 0)) & 1u32).ne(0u32);
    // Ordered by distance, then by column.
    let order = (column - cannon).abs() * SIZE + column;
    let nearest = select(taken, order, (SIZE * SIZE) as i32).min();
    let word = bit(nearest % SIZE as i32).broadcast_to([SIZE]);
    let row = select((aliens & word).ne(0u32), arange(SIZE), -1).max();
    select(arange(SIZE).eq(row), word, 0u32)
}

impl State {
    /// The aliens after their move, if it is due: sideways, or down and in the other direction at
    /// an edge. Also true if an alien meets the cannon or leaves the board. `bool[]`
    #[track_caller]
    fn marched(self) -> (State, Tensor) {
        let State { aliens, right, .. } = self;
        let met_before = contains(aliens, scalar(9), self.cannon);
        let moves = self.move_timer.eq(0);
        let columns = aliens.any();
        let edge = select(right, LAST_COLUMN, FIRST_COLUMN);
        let turns = moves & (columns & edge).ne(0u32);
        let last_row = aliens.index(SIZE - 1);
        let landed = turns & last_row.ne(0u32);
        // Aliens below the last row would reappear in the first, but the episode ends then.
        let lower = concatenate(
            &[aliens.slice_axis(0, SIZE - 1..SIZE), aliens.slice_axis(0, 0..SIZE - 1)],
            0,
        );
        let aside = select(right, aliens << 1u32, aliens >> 1u32);
        let next = select(turns, lower, aside);
        let aliens = select(moves, next, aliens);
        let interval = count(self.aliens).minimum(self.move_interval);
        let met = moves & contains(aliens, scalar(9), self.cannon);
        let state = State {
            aliens,
            right: right ^ turns,
            move_timer: select(moves, interval, self.move_timer),
            ..self
        };
        (state, met_before | landed | met)
    }
}

impl Environment for SpaceInvaders {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, _key: Key) -> State {
        State {
            cannon: scalar(5),
            bullets: zeros(U32, [SIZE]),
            alien_bullets: zeros(U32, [SIZE]),
            aliens: wave(),
            right: constant(false),
            move_interval: scalar(MOVE_INTERVAL),
            move_timer: scalar(MOVE_INTERVAL),
            alien_shot_timer: scalar(ALIEN_SHOT_INTERVAL),
            shot_timer: scalar(0),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let action = one_of(&[NOTHING, LEFT, RIGHT, FIRE], action);
        let fires = action.eq(FIRE) & state.shot_timer.eq(0);
        let shot = select(fires, cell(scalar(9), state.cannon), 0u32);
        let cannon = moved(state.cannon, action, [LEFT, RIGHT], [0, 9]);
        let alien_bullets = down(state.alien_bullets);
        let hit = contains(alien_bullets, scalar(9), cannon);
        let shot_timer = select(fires, SHOT_INTERVAL, state.shot_timer);
        let bullets = up(state.bullets | shot);
        let (state, met) = State { cannon, bullets, alien_bullets, shot_timer, ..state }.marched();

        let shoots = state.alien_shot_timer.eq(0);
        let shot = select(shoots, shooter(state.aliens, cannon), 0u32);
        let killed = state.aliens & bullets;
        let aliens = state.aliens ^ killed;
        let cleared = aliens.any().eq(0u32);
        let faster = cleared & state.move_interval.gt(LEAST_MOVE_INTERVAL);
        let faster = if self.ramping { faster.astype(I32) } else { scalar(0) };
        let state = State {
            bullets: bullets ^ killed,
            alien_bullets: alien_bullets | shot,
            aliens: select(cleared, wave(), aliens),
            move_interval: state.move_interval - faster,
            move_timer: state.move_timer - 1,
            alien_shot_timer: select(shoots, ALIEN_SHOT_INTERVAL, state.alien_shot_timer) - 1,
            shot_timer: (state.shot_timer - 1).maximum(0),
            time: state.time + 1,
            ..state
        };
        let terminated = hit | met;
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = count(killed).astype(F32);
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// 1 at the cannon, the aliens, the aliens that move to the left, the aliens that move to the
    /// right, the cannon's bullets, and the aliens' bullets. `f32[10, 10, 6]`
    fn observe(&self, state: State) -> Tensor {
        observation(&[
            cell(scalar(9), state.cannon),
            state.aliens,
            select(state.right, 0u32, state.aliens),
            select(state.right, state.aliens, 0u32),
            state.bullets,
            state.alien_bullets,
        ])
    }

    fn observation_space(&self) -> Space {
        super::observation_space(&[
            "cannon",
            "alien",
            "alien to the left",
            "alien to the right",
            "bullet",
            "alien bullet",
        ])
    }

    /// Actions 0 to 3: nothing, left, right, fire.
    fn action_space(&self) -> Space {
        Space::discrete(4).named(["nothing", "left", "right", "fire"])
    }

    /// The aliens in green, the cannon in blue, and their bullets: dark from the cannon, red from the aliens.
    fn render(&self, state: &State) -> Option<Tensor> {
        let canvas = Canvas::board(SIZE, SIZE, Colour::BOARD);
        let space = canvas.tile(Colour::BOARD);
        let bullet =
            |colour: Colour| space.fill(&Shape::line((0.5, 0.3), (0.5, 0.7), 0.14), colour);
        let things = [
            (plane(state.aliens), space.sprite(&ALIEN, '#', Colour::GREEN.dark(0.1))),
            (plane(state.bullets), bullet(Colour::TEXT)),
            (plane(state.alien_bullets), bullet(Colour::RED)),
            (plane(cell(scalar(9), state.cannon)), space.sprite(&CANNON, '#', Colour::BLUE)),
        ];
        Some(canvas.layers(space, &things).finish())
    }
}

/// Small pictures of an alien and of the cannon.
const ALIEN: [&str; 12] = [
    "............",
    "...#....#...",
    "....#..#....",
    "...######...",
    "..##.##.##..",
    ".##########.",
    ".#.######.#.",
    ".#.#....#.#.",
    "....#..#....",
    "...#....#...",
    "............",
    "............",
];
const CANNON: [&str; 12] = [
    "............",
    "............",
    "............",
    ".....##.....",
    ".....##.....",
    "....####....",
    "..########..",
    ".##########.",
    ".##########.",
    ".##########.",
    ".##########.",
    "............",
];
