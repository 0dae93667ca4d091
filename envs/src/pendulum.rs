//! Pendulum: swing a pendulum up and keep it there with a weak motor.
//!
//! Dynamics and constants equal those in `Pendulum-v1` of Gymnasium and gymnax: semi-implicit Euler
//! steps of 0.05 s (angle from the new velocity).

use crate::environment::{Environment, TimeStep};
use crate::render::{Canvas, Colour, Shape};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// Greatest angular speed, rad/s.
const MAX_SPEED: f64 = 8.0;
/// Greatest torque, N m.
const MAX_TORQUE: f64 = 2.0;
/// Duration of a step, s.
const DT: f64 = 0.05;
/// Gravitational acceleration, m/s^2.
const GRAVITY: f64 = 10.0;
/// Mass of the pendulum, kg.
const MASS: f64 = 1.0;
/// Length of the pendulum, m.
const LENGTH: f64 = 1.0;

/// Pendulum. A step pays -(angle^2 + 0.1 speed^2 + 0.001 torque^2), between about -16.3 and 0. Episodes never
/// terminate; they are truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pendulum {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

/// `Pendulum-v1`: 200 steps.
impl Default for Pendulum {
    fn default() -> Self {
        Pendulum { time_limit: 200 }
    }
}

/// Angle and speed of the pendulum, and the time.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// Angle, rad, 0 upright; not wrapped. `f32[]`
    pub theta: Tensor,
    /// Angular speed, rad/s, in [-8, 8]. `f32[]`
    pub theta_dot: Tensor,
    /// Steps since the episode began. `i32[]`
    pub time: Tensor,
}

impl Environment for Pendulum {
    type State = State;
    type Observation = Tensor;

    /// Draws the angle uniformly from [-pi, pi) and the speed from [-1, 1).
    fn initial_state(&self, key: Key) -> State {
        let start = key.uniform_range([2], -1.0, 1.0);
        State { theta: start.index(0) * PI, theta_dot: start.index(1), time: zeros(I32, []) }
    }

    /// `action` is the torque in N m, `f32[1]` or `f32[]`, clipped to [-2, 2].
    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let torque = action.reshape([]).clamp(-MAX_TORQUE, MAX_TORQUE);
        let angle = (state.theta + PI).modulo(2.0 * PI) - PI;
        let reward = -(angle.square() + 0.1 * state.theta_dot.square() + 0.001 * torque.square());
        let acceleration = 3.0 * GRAVITY / (2.0 * LENGTH) * state.theta.sin()
            + 3.0 / (MASS * LENGTH * LENGTH) * torque;
        let theta_dot = (state.theta_dot + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
        let state = State { theta: state.theta + theta_dot * DT, theta_dot, time: state.time + 1 };
        let truncated = state.time.ge(self.time_limit);
        let (observation, terminated) = (self.observe(state), constant(false));
        (state, TimeStep { observation, reward, terminated, truncated })
    }

    /// The vector (cosine of the angle, its sine, speed), `f32[3]`.
    fn observe(&self, state: State) -> Tensor {
        stack(&[state.theta.cos(), state.theta.sin(), state.theta_dot], 0)
    }

    fn observation_space(&self) -> Space {
        let high = [1.0, 1.0, MAX_SPEED];
        Space::bounded([3], high.map(|bound| -bound), high)
            .described("cos(theta), sin(theta), theta_dot (rad/s)")
    }

    /// The torque, `f32[1]`.
    fn action_space(&self) -> Space {
        Space::bounded([1], -MAX_TORQUE, MAX_TORQUE).described("torque (N m)")
    }

    /// The rod with its pivot. The arc is the speed: longer if the rod turns faster.
    fn render(&self, state: &State) -> Option<Tensor> {
        // Metres. The angle is 0 upwards, and grows counterclockwise.
        let (x, y) = (1.3, 1.3);
        let up = -PI / 2.0 - state.theta;
        let turn = -state.theta_dot * (0.5 * PI / MAX_SPEED);
        let arc = Shape::arc((x, y), 1.13, up + turn.minimum(0.0), up + turn.maximum(0.0), 0.05);
        let rod = Shape::line((0.0, 0.0), (0.0, -LENGTH), 0.2).rotate(-state.theta);
        Some(
            Canvas::new(2.6, 2.6, Colour::BOARD)
                .fill(&Shape::ring(x, y, 1.13, 0.015), Colour::LINE)
                .fill(&Shape::line((x, 0.1), (x, 0.24), 0.04), Colour::GREEN)
                .fill(&arc, Colour::ORANGE)
                .fill(&rod.translate(x, y), Colour::RED)
                .fill(&Shape::disc(x, y, 0.07), Colour::TEXT)
                .fill(&Shape::disc(x, y, 0.025), Colour::BOARD)
                .finish(),
        )
    }
}
