//! Acrobot: swing up two links by the torque of the joint between them.
//!
//! Sutton, "Generalization in Reinforcement Learning: Successful Examples Using Sparse Coarse
//! Coding", 1996. Dynamics and constants equal those in `Acrobot-v1` of Gymnasium and gymnax: the
//! equations of Sutton and Barto's book, with one Runge-Kutta step of fourth order per 0.2 s.

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Duration of a step, s.
const DT: f64 = 0.2;
/// Gravitational acceleration, m/s^2. Each link is 1 m long, has 1 kg, its center in its middle, and a moment of inertia of 1.
const GRAVITY: f64 = 9.8;
/// Greatest angular speed of the first link, rad/s.
const MAX_SPEED_1: f64 = 4.0 * PI;
/// Greatest angular speed of the second link, rad/s.
const MAX_SPEED_2: f64 = 9.0 * PI;

/// Acrobot: a step costs 1 until the tip is one link's length above the upper joint. The episode is
/// then terminated, and that step costs nothing. It is truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Acrobot {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// `Acrobot-v1`: 500 steps.
impl Default for Acrobot {
    fn default() -> Self {
        Acrobot { time_limit: 500 }
    }
}

/// Angles and speeds of the links, and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Angle of the first link, rad in [-pi, pi), 0 hanging down. `f32[]`
    pub angle_1: Tensor,
    /// Angle between the links, rad in [-pi, pi), 0 stretched. `f32[]`
    pub angle_2: Tensor,
    /// Angular speed of the first link, rad/s. `f32[]`
    pub speed_1: Tensor,
    /// Angular speed between the links, rad/s. `f32[]`
    pub speed_2: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

/// Angles and speeds, or their time derivatives.
type Motion = [Tensor; 4];

/// The derivatives of the motion under a torque.
#[track_caller]
fn derivatives([angle_1, angle_2, speed_1, speed_2]: Motion, torque: Tensor) -> Motion {
    let (sin, cos) = (angle_2.sin(), angle_2.cos());
    let d1 = 3.5 + cos;
    let d2 = 1.25 + 0.5 * cos;
    // cos(x - pi/2) is sin(x).
    let phi2 = (0.5 * GRAVITY) * (angle_1 + angle_2).sin();
    let phi1 =
        (1.5 * GRAVITY) * angle_1.sin() + phi2 - (0.5 * speed_2.square() + speed_2 * speed_1) * sin;
    let turn = torque + d2 / d1 * phi1 - 0.5 * speed_1.square() * sin - phi2;
    let acceleration_2 = turn / (1.25 - d2.square() / d1);
    let acceleration_1 = -(d2 * acceleration_2 + phi1) / d1;
    [speed_1, speed_2, acceleration_1, acceleration_2]
}

/// `motion + scale * slope`.
#[track_caller]
fn along(motion: Motion, scale: f64, slope: Motion) -> Motion {
    std::array::from_fn(|i| motion[i] + scale * slope[i])
}

/// The motion after a step.
#[track_caller]
fn runge_kutta(motion: Motion, torque: Tensor) -> Motion {
    let k1 = derivatives(motion, torque);
    let k2 = derivatives(along(motion, DT / 2.0, k1), torque);
    let k3 = derivatives(along(motion, DT / 2.0, k2), torque);
    let k4 = derivatives(along(motion, DT, k3), torque);
    std::array::from_fn(|i| motion[i] + (DT / 6.0) * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]))
}

/// The angle in [-pi, pi).
#[track_caller]
fn wrapped(angle: Tensor) -> Tensor {
    angle - (2.0 * PI) * ((angle + PI) * (0.5 / PI)).floor()
}

impl Environment for Acrobot {
    type State = State;
    type Observation = Tensor;

    /// Draws angles and speeds uniformly from [-0.1, 0.1).
    fn initial_state(&self, key: Key) -> State {
        let start = key.uniform_range([4], -0.1, 0.1);
        State {
            angle_1: start.index(0),
            angle_2: start.index(1),
            speed_1: start.index(2),
            speed_2: start.index(3),
            time: scalar(0),
        }
    }

    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let torque = (action - 1).astype(F32);
        let motion = [state.angle_1, state.angle_2, state.speed_1, state.speed_2];
        let [angle_1, angle_2, speed_1, speed_2] = runge_kutta(motion, torque);
        let state = State {
            angle_1: wrapped(angle_1),
            angle_2: wrapped(angle_2),
            speed_1: speed_1.clamp(-MAX_SPEED_1, MAX_SPEED_1),
            speed_2: speed_2.clamp(-MAX_SPEED_2, MAX_SPEED_2),
            time: state.time + 1,
        };
        let height = -state.angle_1.cos() - (state.angle_1 + state.angle_2).cos();
        let terminated = height.gt(1.0);
        let truncated = state.time.ge(self.time_limit) & !terminated;
        let reward = select(terminated, 0.0, -1.0);
        (state, TimeStep { observation: self.observe(state), reward, terminated, truncated })
    }

    /// Cosine and sine of both angles, and the speeds, `f32[6]`.
    fn observe(&self, state: State) -> Tensor {
        let State { angle_1, angle_2, speed_1, speed_2, .. } = state;
        stack(&[angle_1.cos(), angle_1.sin(), angle_2.cos(), angle_2.sin(), speed_1, speed_2], 0)
    }

    fn observation_space(&self) -> Space {
        let high = [1.0, 1.0, 1.0, 1.0, MAX_SPEED_1, MAX_SPEED_2];
        Space::bounded([6], high.map(|bound| -bound), high).described(
            "cos(angle_1), sin(angle_1), cos(angle_2), sin(angle_2), speed_1 (rad/s), speed_2 (rad/s)",
        )
    }

    /// Actions 0 to 2: a torque of -1, 0 or 1 N m.
    fn action_space(&self) -> Space {
        Space::discrete(3).named(["-1 N m", "0 N m", "1 N m"])
    }

    /// The two links, and the height that the tip must reach.
    fn render(&self, state: &State) -> Option<Tensor> {
        // Metres; the links are 1 m long, and the height is 1 m above the fixed joint.
        let (angle, sum) = (state.angle_1, state.angle_1 + state.angle_2);
        let (x, y) = (2.3, 2.3);
        let elbow = (x + angle.sin(), y + angle.cos());
        let tip = (elbow.0 + sum.sin(), elbow.1 + sum.cos());
        let dash = Shape::new(move |across, down| {
            let gap = (across * 5.0 - (across * 5.0).floor() - 0.5).abs() * 0.2 - 0.06;
            gap.maximum((down - (y - 1.0)).abs() - 0.015)
        });
        Some(
            Canvas::new(4.6, 4.6, Colour::BOARD)
                .fill(&dash, Colour::GREEN)
                .fill(&Shape::line((x, y), elbow, 0.2), Colour::BLUE)
                .fill(&Shape::line(elbow, tip, 0.17), Colour::CYAN)
                .fill(
                    &Shape::disc(x, y, 0.13).union(Shape::disc(elbow.0, elbow.1, 0.1)),
                    Colour::TEXT,
                )
                .fill(
                    &Shape::disc(x, y, 0.05).union(Shape::disc(elbow.0, elbow.1, 0.04)),
                    Colour::BOARD,
                )
                .fill(&Shape::disc(tip.0, tip.1, 0.1), Colour::ORANGE)
                .finish(),
        )
    }
}
