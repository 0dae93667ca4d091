//! Rubik's cube: turn the layers until each face has one colour.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// RubiksCube: a layer of the cube is turned in each step, until each face has stickers of one colour.
///
/// The reward is 1 for the step that solves the cube, and 0 for others. That step terminates the
/// episode, which is truncated after `time_limit` steps. A cube is scrambled by random turns.
///
/// The rules equal jumanji 1.1.2's RubiksCube-v0, with three differences: in jumanji an
/// action is a face, a depth and a turn; in jumanji the time limit is an end without value; turns
/// are drawn with other random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RubiksCube {
    /// Stickers along an edge.
    #[schemars(range(min = 2, max = 10))]
    pub size: usize,
    /// Random turns of a solved cube at the start.
    #[schemars(range(min = 0, max = 1000))]
    pub scrambles: usize,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// A cube with 3 by 3 stickers per face, 100 random turns and 200 steps, as in jumanji.
impl Default for RubiksCube {
    fn default() -> Self {
        RubiksCube { size: 3, scrambles: 100, time_limit: 200 }
    }
}

/// The stickers of a cube, and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// The colour of each sticker, from 0: up, front, right, back, left and down, each row by row. `i32[6 * size * size]`
    pub stickers: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

const FACES: usize = 6;
const UP: usize = 0;
const FRONT: usize = 1;
const RIGHT: usize = 2;
const BACK: usize = 3;
const LEFT: usize = 4;
const DOWN: usize = 5;
/// Number of clockwise quarters in each of a layer's three turns.
const TURNS: [usize; 3] = [1, 3, 2];

/// Stickers of a face along a layer: a row or a column at some distance from either side, forwards
/// or backwards.
#[derive(Clone, Copy)]
enum Strip {
    Row { near: bool, forwards: bool },
    Column { near: bool, forwards: bool },
}

/// A strip of each face around `face`, in the order in which a clockwise turn moves them.
fn around(face: usize) -> [(usize, Strip); 4] {
    let row = |near, forwards| Strip::Row { near, forwards };
    let column = |near, forwards| Strip::Column { near, forwards };
    match face {
        UP => [FRONT, LEFT, BACK, RIGHT].map(|of| (of, row(true, true))),
        DOWN => [FRONT, RIGHT, BACK, LEFT].map(|of| (of, row(false, true))),
        FRONT => [
            (UP, row(false, true)),
            (RIGHT, column(true, true)),
            (DOWN, row(true, false)),
            (LEFT, column(false, false)),
        ],
        BACK => [
            (UP, row(true, false)),
            (LEFT, column(true, true)),
            (DOWN, row(false, true)),
            (RIGHT, column(false, false)),
        ],
        RIGHT => [
            (UP, column(false, false)),
            (BACK, column(true, true)),
            (DOWN, column(false, false)),
            (FRONT, column(false, false)),
        ],
        _ => [
            (UP, column(true, true)),
            (FRONT, column(true, true)),
            (DOWN, column(true, true)),
            (BACK, column(false, false)),
        ],
    }
}

impl RubiksCube {
    /// The number of a sticker.
    fn sticker(&self, face: usize, row: usize, column: usize) -> usize {
        (face * self.size + row) * self.size + column
    }

    /// The sticker that a clockwise quarter of a layer moves to each position.
    fn quarter(&self, face: usize, depth: usize) -> Vec<usize> {
        let (size, last) = (self.size, self.size - 1);
        let mut from: Vec<usize> = (0..FACES * size * size).collect();
        if depth == 0 {
            for (row, column) in
                (0..size).flat_map(|row| (0..size).map(move |column| (row, column)))
            {
                from[self.sticker(face, row, column)] = self.sticker(face, last - column, row);
            }
        }
        let along = around(face).into_iter().flat_map(|(of, strip)| {
            (0..size).map(move |i| {
                let line = |near| if near { depth } else { last - depth };
                let at = |forwards| if forwards { i } else { last - i };
                match strip {
                    Strip::Row { near, forwards } => self.sticker(of, line(near), at(forwards)),
                    Strip::Column { near, forwards } => self.sticker(of, at(forwards), line(near)),
                }
            })
        });
        let along: Vec<usize> = along.collect();
        for (i, &place) in along.iter().enumerate() {
            from[place] = along[(i + 3 * size) % along.len()];
        }
        from
    }

    /// The sticker that each action moves to each position, with the actions in order of faces,
    /// depths and turns. `i32[actions, stickers]`
    #[track_caller]
    fn turns(&self) -> Tensor {
        let mut all = Vec::new();
        for (face, depth) in
            (0..FACES).flat_map(|f| (0..self.size / 2).map(move |depth| (f, depth)))
        {
            let quarter = self.quarter(face, depth);
            for quarters in TURNS {
                let whole = (0..quarter.len() as i32).collect::<Vec<i32>>();
                let turned = (0..quarters)
                    .fold(whole, |before, _| quarter.iter().map(|&from| before[from]).collect());
                all.extend(turned);
            }
        }
        constant(&all[..]).reshape([self.actions(), FACES * self.size * self.size])
    }

    fn actions(&self) -> usize {
        FACES * (self.size / 2) * TURNS.len()
    }

    /// The stickers after an action. `i32[6 * size * size]`
    #[track_caller]
    fn turned(&self, stickers: Tensor, action: Tensor) -> Tensor {
        stickers.take(self.turns().take(action, 0), 0)
    }

    /// The initial state of an episode with these stickers, `i32[6 * size * size]`.
    #[track_caller]
    pub fn at(&self, stickers: Tensor) -> State {
        State { stickers, time: scalar(0) }
    }

    /// True if each face has one colour. `bool[]`
    #[track_caller]
    fn solved(&self, stickers: Tensor) -> Tensor {
        let faces = stickers.reshape([FACES, self.size * self.size]);
        faces.eq(faces.slice_axis(1, ..1)).all()
    }
}

impl Environment for RubiksCube {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        let stickers = arange(FACES * self.size * self.size) / (self.size * self.size) as i32;
        let actions = key.randint([self.scrambles], 0..self.actions() as i32);
        let (stickers, ()) =
            scan(stickers, actions, |stickers, action| (self.turned(stickers, action), ()));
        self.at(stickers)
    }

    fn step(&self, state: State, action: Tensor, _: Key) -> (State, TimeStep) {
        let stickers = self.turned(state.stickers, action);
        let state = State { stickers, time: state.time + 1 };
        let terminated = self.solved(stickers);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let (observation, reward) = (self.observe(state), terminated.astype(F32));
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    /// The colour of each sticker, one-hot. `f32[6, size, size, 6]`
    fn observe(&self, state: State) -> Tensor {
        state.stickers.one_hot(FACES).reshape([FACES, self.size, self.size, FACES])
    }

    fn observation_space(&self) -> Space {
        Space::bounded([FACES, self.size, self.size, FACES], 0.0, 1.0).described(
            "1 at the colour of each sticker; faces are up, front, right, back, left, down",
        )
    }

    /// The turn: `(face * (size / 2) + depth) * 3`, plus 0 for a clockwise quarter, 1 for a
    /// counterclockwise quarter, 2 for a half.
    fn action_space(&self) -> Space {
        Space::discrete(self.actions())
    }

    /// 1 if the cube is solved, otherwise 0.
    fn success(&self, state: &State) -> Option<Tensor> {
        Some(self.solved(state.stickers).astype(F32))
    }

    /// The faces unfolded: up and down above and below the front, and left, front, right and back side by side.
    fn render(&self, state: &State) -> Option<Tensor> {
        let size = self.size;
        let faces = state.stickers.reshape([FACES, size, size]) + 1;
        let none = zeros(I32, [size, size]);
        let face = |of: usize| faces.index(of);
        let rows = [
            [none, face(UP), none, none],
            [face(LEFT), face(FRONT), face(RIGHT), face(BACK)],
            [none, face(DOWN), none, none],
        ];
        let rows = rows.map(|row| concatenate(&row, 1));
        let colours = [
            Colour::WHITE,
            Colour([20, 150, 80]),
            Colour([200, 40, 40]),
            Colour::BLUE,
            Colour([245, 150, 30]),
            Colour::YELLOW,
        ];
        let canvas = Canvas::board(3 * size, 4 * size, Colour::BOARD);
        let plastic = canvas.tile(Colour::BLACK);
        let sticker = Shape::rounded(0.5, 0.5, 0.88, 0.88, 0.14);
        let stickers = colours.map(|colour| plastic.fill(&sticker, colour));
        let tiles: Vec<Canvas> = [canvas.tile(Colour::BOARD)].into_iter().chain(stickers).collect();
        Some(canvas.tiles(concatenate(&rows, 0), &tiles).finish())
    }
}
