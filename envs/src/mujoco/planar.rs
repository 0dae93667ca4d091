//! Robots in a plane: HalfCheetah, Hopper and Walker2d, which run along x, and Swimmer, which is seen from above.

use std::sync::LazyLock;

use podracer_dsl::prelude::*;
use podracer_physics::{Forward, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::{Interval, inside, interval};
use super::robot::{Spread, built_in, from, near_initial, squares};
use super::{Camera, State, Step, Task};

/// HalfCheetah: a robot with two legs runs to the right. A step pays the velocity in m/s, less the control cost, and the
/// episode never terminates. As `HalfCheetah-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HalfCheetah {
    /// Factor of the velocity in the reward.
    pub forward_reward_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Scale of the noise of first states: positions are uniform, velocities normal.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x.
    pub exclude_current_positions_from_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for HalfCheetah {
    fn default() -> Self {
        HalfCheetah {
            forward_reward_weight: 1.0,
            ctrl_cost_weight: 0.1,
            reset_noise_scale: 0.1,
            exclude_current_positions_from_observation: true,
            time_limit: 1000,
        }
    }
}

/// Hopper: a robot with one leg hops to the right and must not fall. A step pays the velocity in m/s and `healthy_reward`,
/// less the control cost. The episode terminates if the robot is not healthy. As `Hopper-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hopper {
    /// Factor of the velocity in the reward.
    pub forward_reward_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Reward of a step after which the robot is healthy.
    pub healthy_reward: f64,
    /// True if an episode terminates when the robot is not healthy.
    pub terminate_when_unhealthy: bool,
    /// Healthy angles, and velocities of the joints.
    pub healthy_state_range: Interval,
    /// Healthy heights, in metres.
    pub healthy_z_range: Interval,
    /// Healthy angles of the torso, in radians.
    pub healthy_angle_range: Interval,
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x.
    pub exclude_current_positions_from_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Hopper {
    fn default() -> Self {
        Hopper {
            forward_reward_weight: 1.0,
            ctrl_cost_weight: 1e-3,
            healthy_reward: 1.0,
            terminate_when_unhealthy: true,
            healthy_state_range: interval(-100.0, 100.0),
            healthy_z_range: interval(0.7, f64::INFINITY),
            healthy_angle_range: interval(-0.2, 0.2),
            reset_noise_scale: 5e-3,
            exclude_current_positions_from_observation: true,
            time_limit: 1000,
        }
    }
}

/// Walker2d: a robot with two legs walks to the right and must not fall. Rewards and ends are as in `mujoco-hopper`. As
/// `Walker2d-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Walker2d {
    /// Factor of the velocity in the reward.
    pub forward_reward_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Reward of a step after which the robot is healthy.
    pub healthy_reward: f64,
    /// True if an episode terminates when the robot is not healthy.
    pub terminate_when_unhealthy: bool,
    /// Healthy heights, in metres.
    pub healthy_z_range: Interval,
    /// Healthy angles of the torso, in radians.
    pub healthy_angle_range: Interval,
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x.
    pub exclude_current_positions_from_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Walker2d {
    fn default() -> Self {
        Walker2d {
            forward_reward_weight: 1.0,
            ctrl_cost_weight: 1e-3,
            healthy_reward: 1.0,
            terminate_when_unhealthy: true,
            healthy_z_range: interval(0.8, 2.0),
            healthy_angle_range: interval(-1.0, 1.0),
            reset_noise_scale: 5e-3,
            exclude_current_positions_from_observation: true,
            time_limit: 1000,
        }
    }
}

/// Swimmer: three links in a viscous fluid swim to the right. A step pays the velocity in m/s, less the control cost, and
/// the episode never terminates. As `Swimmer-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Swimmer {
    /// Factor of the velocity in the reward.
    pub forward_reward_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x and y.
    pub exclude_current_positions_from_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Swimmer {
    fn default() -> Self {
        Swimmer {
            forward_reward_weight: 1.0,
            ctrl_cost_weight: 1e-4,
            reset_noise_scale: 0.1,
            exclude_current_positions_from_observation: true,
            time_limit: 1000,
        }
    }
}

/// The reward of moving to the right, less the control cost.
#[track_caller]
fn forward_reward(step: &Step, forward_weight: f64, cost_weight: f64) -> Tensor {
    let velocity = step.velocity(|state| state.qpos.index(0));
    forward_weight * velocity - cost_weight * squares(step.action)
}

/// True if height and angle of a robot are within their ranges.
#[track_caller]
fn upright(state: &State, z_range: Interval, angle_range: Interval) -> Tensor {
    inside(state.qpos.index(1), z_range) & inside(state.qpos.index(2), angle_range)
}

/// A task of a robot in a plane. `$hidden` is the number of positions that are not observed by default, and `$most` is the
/// greatest magnitude of observed velocities.
macro_rules! planar {
    ($task:ident, $model:literal, $frame_skip:literal, $noise:expr, $hidden:literal, $most:expr, $camera:expr, $outcome:expr) => {
        impl Task for $task {
            type Derived = ();

            fn model(&self) -> &Model {
                static MODEL: LazyLock<Model> = LazyLock::new(|| built_in(include_str!($model)));
                &MODEL
            }

            fn frame_skip(&self) -> usize {
                $frame_skip
            }

            fn limit(&self) -> usize {
                self.time_limit
            }

            fn first(&self, key: Key) -> [Tensor; 2] {
                near_initial(self.model(), key, self.reset_noise_scale, $noise)
            }

            fn derived(&self, _forward: &Forward, _first: bool) {}

            fn observed(&self) -> usize {
                let model = self.model();
                model.nq + model.nv - self.hidden()
            }

            fn parts(&self) -> &'static str {
                "positions, velocities"
            }

            /// Positions and velocities.
            fn observation(&self, state: &State) -> Tensor {
                let most: Option<f64> = $most;
                let velocities = match most {
                    Some(most) => state.qvel.clamp(-most, most),
                    None => state.qvel,
                };
                concatenate(&[from(state.qpos, self.hidden()), velocities], 0)
            }

            fn outcome(&self, step: &Step) -> (Tensor, Tensor) {
                let outcome: fn(&Self, &Step) -> (Tensor, Tensor) = $outcome;
                outcome(self, step)
            }

            fn camera(&self) -> Camera {
                $camera
            }
        }

        impl $task {
            fn hidden(&self) -> usize {
                if self.exclude_current_positions_from_observation { $hidden } else { 0 }
            }

            #[track_caller]
            fn moved(&self, step: &Step) -> Tensor {
                let (forward, cost) = (self.forward_reward_weight, self.ctrl_cost_weight);
                forward_reward(step, forward, cost)
            }
        }
    };
}

planar! {
    HalfCheetah, "models/half_cheetah.xml", 5, Spread::Normal, 1, None, Camera::side(2.0, 0.6),
    |task, step| (task.moved(step), constant(false))
}

planar! {
    Swimmer, "models/swimmer.xml", 4, Spread::Uniform, 2, None, Camera::above(5.0).following(),
    |task, step| (task.moved(step), constant(false))
}

planar! {
    Hopper, "models/hopper.xml", 4, Spread::Uniform, 1, Some(10.0), Camera::side(2.2, 0.7),
    |task, step| {
        let state = &step.after;
        let others = concatenate(&[from(state.qpos, 2), state.qvel], 0);
        let healthy = upright(state, task.healthy_z_range, task.healthy_angle_range)
            & inside(others, task.healthy_state_range).all();
        let reward = task.moved(step) + select(healthy, task.healthy_reward, 0.0);
        (reward, !healthy & task.terminate_when_unhealthy)
    }
}

planar! {
    Walker2d, "models/walker2d.xml", 4, Spread::Uniform, 1, Some(10.0), Camera::side(2.2, 0.7),
    |task, step| {
        let healthy = upright(&step.after, task.healthy_z_range, task.healthy_angle_range);
        let reward = task.moved(step) + select(healthy, task.healthy_reward, 0.0);
        (reward, !healthy & task.terminate_when_unhealthy)
    }
}
