//! CartPole in plain Rust: the environment of [`crate::CartPole`], on the host.

use super::native::{discrete, take, write_floats};
use super::{HostError, NativeEnvironment, Outcome, Random};
use crate::cartpole::{
    FORCE, GRAVITY, LENGTH, MASS_POLE, POLE_MASS_LENGTH, TAU, THETA_LIMIT, TOTAL_MASS, X_LIMIT,
};
use crate::{CartPole, Environment, Space};

/// One CartPole. Observations, rewards and ends are those of [`CartPole`], in f32.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeCartPole {
    limit: usize,
    /// x (m), x_dot (m/s), theta (rad), theta_dot (rad/s).
    state: [f32; 4],
    time: usize,
}

impl NativeCartPole {
    /// With episodes of at most `limit` steps.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        NativeCartPole { limit, state: [0.0; 4], time: 0 }
    }

    /// The same environment in the DSL, which has the spaces.
    fn described(&self) -> CartPole {
        CartPole { limit: self.limit, ..CartPole::default() }
    }
}

impl NativeEnvironment for NativeCartPole {
    fn observation_space(&self) -> Space {
        self.described().observation_space()
    }

    fn action_space(&self) -> Space {
        self.described().action_space()
    }

    fn truncates(&self) -> bool {
        true
    }

    fn worth_a_thread(&self) -> usize {
        512
    }

    fn reset(&mut self, random: &mut Random) {
        self.state = std::array::from_fn(|_| random.range(-0.05, 0.05));
        self.time = 0;
    }

    fn step(&mut self, action: &[u8], _: &mut Random) -> Outcome {
        let [x, x_dot, theta, theta_dot] = self.state;
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
        self.state = [
            x + tau * x_dot,
            x_dot + tau * x_acceleration,
            theta + tau * theta_dot,
            theta_dot + tau * theta_acceleration,
        ];
        self.time += 1;
        let terminated =
            self.state[0].abs() > X_LIMIT as f32 || self.state[2].abs() > THETA_LIMIT as f32;
        Outcome { reward: 1.0, terminated, truncated: !terminated && self.time >= self.limit }
    }

    fn observe(&self, observation: &mut [u8]) {
        write_floats(observation, &self.state);
    }

    fn save(&self, bytes: &mut Vec<u8>) {
        self.state.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        bytes.extend((self.time as u64).to_le_bytes());
    }

    fn load(&mut self, bytes: &mut &[u8]) -> Result<(), HostError> {
        for value in &mut self.state {
            *value = f32::from_le_bytes(take(bytes)?);
        }
        self.time = u64::from_le_bytes(take(bytes)?) as usize;
        Ok(())
    }
}
