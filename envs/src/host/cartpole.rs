//! CartPole in plain Rust: the environment of [`crate::CartPole`], on the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::native::{discrete, write_floats};
use super::{NativeEnvironment, Outcome, Random};
use crate::cartpole::{
    FORCE, GRAVITY, LENGTH, MASS_POLE, POLE_MASS_LENGTH, TAU, THETA_LIMIT, TOTAL_MASS, X_LIMIT,
};
use crate::{CartPole, Environment, Space};

/// CartPole on the host, with the settings of [`CartPole`]. Observations, rewards and ends are those of the DSL's
/// environment, in f32; sine and cosine are the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct NativeCartPole(pub CartPole);

impl NativeCartPole {
    /// CartPole with episodes of at most `time_limit` steps.
    #[must_use]
    pub fn new(time_limit: usize) -> Self {
        NativeCartPole(CartPole { time_limit, ..CartPole::default() })
    }
}

/// The positions and speeds of cart and pole, and the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The observation: x (m), x_dot (m/s), theta (rad), theta_dot (rad/s).
    pub observation: [f32; 4],
    /// Steps since the episode began.
    pub time: usize,
}

impl NativeEnvironment for NativeCartPole {
    type State = State;

    fn observation_space(&self) -> Space {
        self.0.observation_space()
    }

    fn action_space(&self) -> Space {
        self.0.action_space()
    }

    fn truncates(&self) -> bool {
        true
    }

    fn min_per_thread(&self) -> usize {
        512
    }

    fn initial_state(&self, random: &mut Random) -> State {
        State { observation: std::array::from_fn(|_| random.range(-0.05, 0.05)), time: 0 }
    }

    fn step(&self, state: &mut State, action: &[u8], _: &mut Random) -> Outcome {
        let [x, x_dot, theta, theta_dot] = state.observation;
        let force = if discrete(action) == 1 { FORCE } else { -FORCE } as f32;
        let (sin, cos) = theta.sin_cos();
        let push = (force + POLE_MASS_LENGTH as f32 * theta_dot * theta_dot * sin)
            * (1.0 / TOTAL_MASS) as f32;
        let inertia =
            (LENGTH * 4.0 / 3.0) as f32 - (LENGTH * MASS_POLE / TOTAL_MASS) as f32 * cos * cos;
        let theta_acceleration = (GRAVITY as f32 * sin - cos * push) / inertia;
        let x_acceleration =
            push - (POLE_MASS_LENGTH / TOTAL_MASS) as f32 * theta_acceleration * cos;
        let tau = TAU as f32;
        let [x, theta] = [x + tau * x_dot, theta + tau * theta_dot];
        state.observation =
            [x, x_dot + tau * x_acceleration, theta, theta_dot + tau * theta_acceleration];
        state.time += 1;
        let terminated = x.abs() > X_LIMIT as f32 || theta.abs() > THETA_LIMIT as f32;
        Outcome {
            reward: 1.0,
            terminated,
            truncated: !terminated && state.time >= self.0.time_limit,
        }
    }

    fn observe(&self, state: &State, observation: &mut [u8]) {
        write_floats(observation, &state.observation);
    }
}
