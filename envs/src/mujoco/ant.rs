//! Ant: a robot with four legs.

use std::sync::LazyLock;

use podracer_dsl::prelude::*;
use podracer_physics::{Forward, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::{Bound, Interval, clipped, interval};
use super::robot::{Spread, built_in, from, near_initial, squares};
use super::{Camera, State, Step, Task};

/// Ant: a robot with four legs walks to the right. A step pays the velocity in m/s and `healthy_reward`, less the costs of
/// controls and of contact forces. The episode terminates if the robot is not healthy. As `Ant-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ant {
    /// Factor of the velocity in the reward.
    pub forward_reward_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Factor of the squared contact forces in the reward.
    pub contact_cost_weight: f64,
    /// Reward of a step after which the robot is healthy.
    pub healthy_reward: f64,
    /// Index of the body with the velocity that pays: 1 is the torso.
    #[schemars(range(min = 1, max = 13))]
    pub main_body: usize,
    /// True if an episode terminates when the robot is not healthy.
    pub terminate_when_unhealthy: bool,
    /// Healthy heights with both ends, in metres.
    pub healthy_z_range: Interval,
    /// Range of contact forces in the observation and in the reward: they are clipped.
    pub contact_force_range: Interval,
    /// Scale of the noise of first states: positions are uniform, velocities normal.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x and y.
    pub exclude_current_positions_from_observation: bool,
    /// True if the observation has the contact forces.
    pub include_cfrc_ext_in_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Ant {
    fn default() -> Self {
        Ant {
            forward_reward_weight: 1.0,
            ctrl_cost_weight: 0.5,
            contact_cost_weight: 5e-4,
            healthy_reward: 1.0,
            main_body: 1,
            terminate_when_unhealthy: true,
            healthy_z_range: interval(0.2, 1.0),
            contact_force_range: interval(-1.0, 1.0),
            reset_noise_scale: 0.1,
            exclude_current_positions_from_observation: true,
            include_cfrc_ext_in_observation: true,
            time_limit: 1000,
        }
    }
}

/// Quantities of the last evaluation that Ant observes or rewards.
#[derive(Tree, Clone, Copy)]
pub struct AntQuantities {
    /// Place of the main body along x, in metres, f32 `[]`.
    pub x: Tensor,
    /// Torques and forces of contacts on the bodies, clipped, f32 `[78]`.
    pub cfrc_ext: Tensor,
}

impl Ant {
    fn hidden(&self) -> usize {
        if self.exclude_current_positions_from_observation { 2 } else { 0 }
    }

    fn forces(&self) -> usize {
        6 * (self.model().nbody - 1)
    }
}

impl Task for Ant {
    type Derived = AntQuantities;

    fn model(&self) -> &Model {
        static MODEL: LazyLock<Model> = LazyLock::new(|| built_in(include_str!("models/ant.xml")));
        &MODEL
    }

    fn frame_skip(&self) -> usize {
        5
    }

    fn limit(&self) -> usize {
        self.time_limit
    }

    fn first(&self, key: Key) -> [Tensor; 2] {
        near_initial(self.model(), key, self.reset_noise_scale, Spread::Normal)
    }

    fn derived(&self, forward: &Forward, first: bool) -> AntQuantities {
        let forces = match first {
            true => zeros(F32, [self.forces()]),
            false => from(forward.cfrc_ext(), 1).flatten(),
        };
        AntQuantities {
            x: forward.xpos().index(self.main_body).index(0),
            cfrc_ext: clipped(forces, self.contact_force_range),
        }
    }

    fn observed(&self) -> usize {
        let model = self.model();
        let forces = if self.include_cfrc_ext_in_observation { self.forces() } else { 0 };
        model.nq - self.hidden() + model.nv + forces
    }

    fn parts(&self) -> &'static str {
        "positions, velocities, torques and forces of contacts"
    }

    fn observation(&self, state: &State<AntQuantities>) -> Tensor {
        let mut parts = vec![from(state.qpos, self.hidden()), state.qvel];
        if self.include_cfrc_ext_in_observation {
            parts.push(state.derived.cfrc_ext);
        }
        concatenate(&parts, 0)
    }

    fn outcome(&self, step: &Step<AntQuantities>) -> (Tensor, Tensor) {
        let after = &step.after;
        let [low, high] = self.healthy_z_range.map(Bound::value);
        let z = after.qpos.index(2);
        let finite = after.qpos.is_finite().all() & after.qvel.is_finite().all();
        let healthy = finite & z.ge(low) & z.le(high);
        let velocity = step.velocity(|state| state.derived.x);
        let reward = self.forward_reward_weight * velocity
            + select(healthy, self.healthy_reward, 0.0)
            - self.ctrl_cost_weight * squares(step.action)
            - self.contact_cost_weight * squares(after.derived.cfrc_ext);
        (reward, !healthy & self.terminate_when_unhealthy)
    }

    fn camera(&self) -> Camera {
        Camera::oblique(3.0, 0.4)
    }
}
