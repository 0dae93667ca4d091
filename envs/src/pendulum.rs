//! Pendulum: swing a pendulum up and keep it there with a weak motor.
//!
//! Dynamics and constants are those of `Pendulum-v1` in Gymnasium and gymnax: semi-implicit Euler steps of 0.05 s (angle
//! from the new velocity).

use crate::environment::{Environment, TimeStep};
use crate::space::Space;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// rad/s.
const MAX_SPEED: f64 = 8.0;
/// N m.
const MAX_TORQUE: f64 = 2.0;
/// s.
const DT: f64 = 0.05;
/// m/s^2.
const GRAVITY: f64 = 10.0;
/// kg.
const MASS: f64 = 1.0;
/// m.
const LENGTH: f64 = 1.0;

/// Pendulum. A step pays -(angle^2 + 0.1 speed^2 + 0.001 torque^2), between about -16.3 and 0. Episodes never
/// terminate; they are truncated after `time_limit` steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pendulum {
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1))]
    pub time_limit: usize,
}

/// `Pendulum-v1`: 200 steps.
impl Default for Pendulum {
    fn default() -> Self {
        Pendulum { time_limit: 200 }
    }
}

/// Where the pendulum is.
#[derive(Tree, Clone, Copy)]
pub struct State {
    /// `f32[]`, rad, 0 upright; not wrapped.
    pub theta: Tensor,
    /// `f32[]`, rad/s, in [-8, 8].
    pub theta_dot: Tensor,
    /// `i32[]`: steps since the episode began.
    pub time: Tensor,
}

impl Environment for Pendulum {
    type State = State;
    type Observation = Tensor;

    /// The angle uniform on [-pi, pi), the speed on [-1, 1).
    fn initial_state(&self, key: Key) -> State {
        let start = key.uniform_range([2], -1.0, 1.0);
        State { theta: start.index(0) * PI, theta_dot: start.index(1), time: zeros(I32, []) }
    }

    /// `action` is `f32[1]` or [], N m; beyond +-2 it counts as +-2.
    fn step(&self, state: State, action: Tensor, _key: Key) -> (State, TimeStep) {
        let torque = action.reshape([]).clamp(-MAX_TORQUE, MAX_TORQUE);
        let angle = (state.theta + PI).modulo(2.0 * PI) - PI;
        let reward = -(angle.square() + 0.1 * state.theta_dot.square() + 0.001 * torque.square());
        let acceleration = 3.0 * GRAVITY / (2.0 * LENGTH) * state.theta.sin()
            + 3.0 / (MASS * LENGTH * LENGTH) * torque;
        let theta_dot = (state.theta_dot + acceleration * DT).clamp(-MAX_SPEED, MAX_SPEED);
        let state = State { theta: state.theta + theta_dot * DT, theta_dot, time: state.time + 1 };
        let truncated = state.time.ge(self.time_limit);
        (
            state,
            TimeStep {
                observation: self.observe(state),
                reward,
                terminated: constant(false),
                truncated,
            },
        )
    }

    /// `f32[3]`: cosine and sine of the angle, and the speed.
    fn observe(&self, state: State) -> Tensor {
        stack(&[state.theta.cos(), state.theta.sin(), state.theta_dot], 0)
    }

    fn observation_space(&self) -> Space {
        let high = [1.0, 1.0, MAX_SPEED];
        Space::bounded([3], high.map(|bound| -bound), high)
            .described("cos(theta), sin(theta), theta_dot (rad/s)")
    }

    /// `f32[1]`, the torque.
    fn action_space(&self) -> Space {
        Space::bounded([1], -MAX_TORQUE, MAX_TORQUE).described("torque (N m)")
    }
}
