//! The mountain car: the engine is too weak for the slope, so the car must swing in the valley to
//! reach the top.
//!
//! Moore, "Efficient Memory-based Learning for Robot Control", 1990. Dynamics and constants equal
//! those in `MountainCar-v0` and `MountainCarContinuous-v0` of Gymnasium, where the car stops at
//! the left wall. gymnax's continuous car does not stop at it; otherwise it agrees.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The wall on the left.
const LEFT: f64 = -1.2;
/// The right end of the world, behind the goal.
const RIGHT: f64 = 0.6;
/// Greatest speed, per step.
const MAX_SPEED: f64 = 0.07;
/// Gravity: the decrease of speed per step at the steepest slope.
const GRAVITY: f64 = 0.0025;

/// MountainCar: each step costs 1 until the car reaches the goal on the hill to the right, which
/// terminates the episode. It is truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MountainCar {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// `MountainCar-v0`: 200 steps.
impl Default for MountainCar {
    fn default() -> Self {
        MountainCar { time_limit: 200 }
    }
}

/// MountainCarContinuous: the action is the force. The goal pays 100 and terminates; a step costs a tenth of the squared action.
/// The episode is truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MountainCarContinuous {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// `MountainCarContinuous-v0`: 999 steps.
impl Default for MountainCarContinuous {
    fn default() -> Self {
        MountainCarContinuous { time_limit: 999 }
    }
}

/// Position and speed of the car, and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Position, in [-1.2, 0.6]; the valley's bottom is at -pi/6. `f32[]`
    pub position: Tensor,
    /// Speed, in [-0.07, 0.07] per step. `f32[]`
    pub velocity: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl State {
    /// A car at rest in the valley, with a uniform position in [-0.6, -0.4).
    #[track_caller]
    fn begin(key: Key) -> State {
        State {
            position: key.uniform_range([], -0.6, -0.4),
            velocity: scalar(0.0),
            time: scalar(0),
        }
    }

    /// The car after a step, with this change of speed by the engine.
    #[track_caller]
    fn pushed(self, push: Tensor) -> State {
        let velocity = self.velocity + push - GRAVITY * (3.0 * self.position).cos();
        let velocity = velocity.clamp(-MAX_SPEED, MAX_SPEED);
        let position = (self.position + velocity).clamp(LEFT, RIGHT);
        let at_wall = position.le(LEFT) & velocity.lt(0.0);
        State { position, velocity: select(at_wall, 0.0, velocity), time: self.time + 1 }
    }

    #[track_caller]
    fn observed(self) -> Tensor {
        stack(&[self.position, self.velocity], 0)
    }

    /// The hills, the flag at `goal` and the car.
    #[track_caller]
    fn drawn(self, goal: f64) -> Tensor {
        // One unit is one of position, and the hills are as steep as in the package's picture.
        let (left, floor) = (LEFT - 0.1, 1.35);
        let height = |position: Tensor| 0.45 * (3.0 * position).sin() + 0.55;
        let ground = |deeper: f64| {
            Shape::new(move |x, y| {
                let position = x + left;
                let slope = 1.35 * (3.0 * position).cos();
                // The distance along the normal of the curve.
                (floor + deeper - height(position) - y) / (1.0 + slope.square()).sqrt()
            })
        };
        let top = floor - (0.45 * (3.0 * goal).sin() + 0.55);
        let at = goal - left;
        let cloth = Shape::polygon(&[(at, top - 0.3), (at + 0.14, top - 0.25), (at, top - 0.2)]);
        // The car points along the slope.
        let slope = (1.35 * (3.0 * self.position).cos()).atan();
        let (x, y) = (self.position - left, floor - height(self.position));
        let placed = |shape: Shape| shape.rotate(-slope).translate(x, y);
        let body = Shape::rounded(0.0, -0.065, 0.2, 0.06, 0.02)
            .union(Shape::rounded(-0.005, -0.1, 0.11, 0.06, 0.02));
        let wheels = Shape::disc(-0.055, -0.03, 0.03).union(Shape::disc(0.055, -0.03, 0.03));
        Canvas::new(1.5, RIGHT - left + 0.1, Colour::SKY)
            .fill(&Shape::line((at, top), (at, top - 0.3), 0.014), Colour::TEXT)
            .fill(&cloth, Colour::ORANGE)
            .fill(&ground(0.0), Colour::GROUND)
            .fill(&ground(0.025), Colour::GROUND.light(0.2))
            .fill(&placed(body), Colour::RED)
            .fill(&placed(wheels), Colour::TEXT)
            .finish()
    }
}

fn space() -> Space {
    Space::bounded([2], [LEFT, -MAX_SPEED], [RIGHT, MAX_SPEED]).described("position, velocity")
}

impl Environment for MountainCar {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        State::begin(key)
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let state = state.pushed(0.001 * (action - 1).astype(F32));
        let terminated = state.position.ge(0.5) & state.velocity.ge(0.0);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let (observation, reward) = (self.observe(state), scalar(-1.0));
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    /// The vector (position, velocity), `f32[2]`.
    fn observe(&self, state: State) -> Tensor {
        state.observed()
    }

    fn observation_space(&self) -> Space {
        space()
    }

    /// Actions 0 to 2: push to the left, roll, push to the right.
    fn action_space(&self) -> Space {
        Space::discrete(3).named(["left", "roll", "right"])
    }

    /// The car on the hills, and a flag at the goal.
    fn render(&self, state: &State) -> Option<Tensor> {
        Some(state.drawn(0.5))
    }
}

impl Environment for MountainCarContinuous {
    type State = State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> State {
        State::begin(key)
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let action = action.reshape([]);
        let state = state.pushed(0.0015 * action.clamp(-1.0, 1.0));
        let terminated = state.position.ge(0.45) & state.velocity.ge(0.0);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = select(terminated, 100.0, 0.0) - 0.1 * action.square();
        let observation = self.observe(state);
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    /// The vector (position, velocity), `f32[2]`.
    fn observe(&self, state: State) -> Tensor {
        state.observed()
    }

    fn observation_space(&self) -> Space {
        space()
    }

    /// The force, `f32[1]`. It is clipped to [-1, 1], but its cost is not.
    fn action_space(&self) -> Space {
        Space::bounded([1], -1.0, 1.0).described("force")
    }

    /// The car on the hills, and a flag at the goal.
    fn render(&self, state: &State) -> Option<Tensor> {
        Some(state.drawn(0.45))
    }
}
