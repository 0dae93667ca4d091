//! A robot with two legs and two arms: Humanoid walks, and HumanoidStandup stands up.

use std::sync::LazyLock;

use podracer_dsl::prelude::*;
use podracer_physics::{Forward, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interval::{Interval, clipped, inside, interval};
use super::robot::{Spread, built_in, from, near_initial, squares};
use super::{Camera, State, Step, Task};

/// Humanoid: a robot with two legs and two arms walks to the right and must not fall. A step pays the velocity of its
/// centre of mass and `healthy_reward`, less the costs of controls and of contact forces. The episode terminates if the
/// robot is not healthy. As `Humanoid-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Humanoid {
    /// Factor of the velocity in the reward.
    pub forward_reward_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Factor of the squared contact forces in the reward.
    pub contact_cost_weight: f64,
    /// Range of the cost of contact forces: it is clipped.
    pub contact_cost_range: Interval,
    /// Reward of a step after which the robot is healthy.
    pub healthy_reward: f64,
    /// True if an episode terminates when the robot is not healthy.
    pub terminate_when_unhealthy: bool,
    /// Healthy heights, in metres.
    pub healthy_z_range: Interval,
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x and y.
    pub exclude_current_positions_from_observation: bool,
    /// True if the observation has the inertias of the bodies.
    pub include_cinert_in_observation: bool,
    /// True if the observation has the velocities of the bodies.
    pub include_cvel_in_observation: bool,
    /// True if the observation has the forces of the actuators.
    pub include_qfrc_actuator_in_observation: bool,
    /// True if the observation has the contact forces.
    pub include_cfrc_ext_in_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Humanoid {
    fn default() -> Self {
        Humanoid {
            forward_reward_weight: 1.25,
            ctrl_cost_weight: 0.1,
            contact_cost_weight: 5e-7,
            contact_cost_range: interval(f64::NEG_INFINITY, 10.0),
            healthy_reward: 5.0,
            terminate_when_unhealthy: true,
            healthy_z_range: interval(1.0, 2.0),
            reset_noise_scale: 0.01,
            exclude_current_positions_from_observation: true,
            include_cinert_in_observation: true,
            include_cvel_in_observation: true,
            include_qfrc_actuator_in_observation: true,
            include_cfrc_ext_in_observation: true,
            time_limit: 1000,
        }
    }
}

/// HumanoidStandup: the robot of `mujoco-humanoid` lies on the floor and stands up. A step pays the height of the torso, divided
/// by the 3 ms of a step of the simulation, less the costs of controls and of contact forces. The episode never
/// terminates. As `HumanoidStandup-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HumanoidStandup {
    /// Weight without effect, as in Gymnasium.
    pub uph_cost_weight: f64,
    /// Factor of the squared action in the reward.
    pub ctrl_cost_weight: f64,
    /// Factor of the squared contact forces in the reward.
    pub impact_cost_weight: f64,
    /// Range of the cost of contact forces: it is clipped.
    pub impact_cost_range: Interval,
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// True if the observation has no x and y.
    pub exclude_current_positions_from_observation: bool,
    /// True if the observation has the inertias of the bodies.
    pub include_cinert_in_observation: bool,
    /// True if the observation has the velocities of the bodies.
    pub include_cvel_in_observation: bool,
    /// True if the observation has the forces of the actuators.
    pub include_qfrc_actuator_in_observation: bool,
    /// True if the observation has the contact forces.
    pub include_cfrc_ext_in_observation: bool,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for HumanoidStandup {
    fn default() -> Self {
        HumanoidStandup {
            uph_cost_weight: 1.0,
            ctrl_cost_weight: 0.1,
            impact_cost_weight: 5e-7,
            impact_cost_range: interval(f64::NEG_INFINITY, 10.0),
            reset_noise_scale: 0.01,
            exclude_current_positions_from_observation: true,
            include_cinert_in_observation: true,
            include_cvel_in_observation: true,
            include_qfrc_actuator_in_observation: true,
            include_cfrc_ext_in_observation: true,
            time_limit: 1000,
        }
    }
}

/// Quantities of the last evaluation that a humanoid observes or rewards.
#[derive(Tree, Clone, Copy)]
pub struct HumanoidQuantities {
    /// Place of the centre of mass along x, in metres, f32 `[]`.
    pub x: Tensor,
    /// Inertias of the bodies, f32 `[130]`.
    pub cinert: Tensor,
    /// Velocities of the bodies, f32 `[78]`.
    pub cvel: Tensor,
    /// Forces of the actuators on the joints, f32 `[17]`.
    pub qfrc_actuator: Tensor,
    /// Torques and forces of contacts on the bodies, f32 `[78]`.
    pub cfrc_ext: Tensor,
}

impl HumanoidQuantities {
    #[track_caller]
    fn new(model: &Model, forward: &Forward, first: bool) -> Self {
        let bodies = |rows: Tensor| from(rows, 1).flatten();
        HumanoidQuantities {
            x: forward.subtree_com().index(1).index(0),
            cinert: bodies(forward.cinert()),
            cvel: bodies(forward.cvel()),
            qfrc_actuator: from(forward.qfrc_actuator(), 6),
            cfrc_ext: match first {
                true => zeros(F32, [6 * (model.nbody - 1)]),
                false => bodies(forward.cfrc_ext()),
            },
        }
    }

    /// The cost of contact forces.
    #[track_caller]
    fn contact_cost(&self, weight: f64, range: Interval) -> Tensor {
        clipped(weight * squares(self.cfrc_ext), range)
    }
}

/// The parts that both tasks share: their settings have the same names.
macro_rules! humanoid {
    ($task:ident, $model:literal, $camera:expr, $outcome:expr) => {
        impl Task for $task {
            type Derived = HumanoidQuantities;

            fn model(&self) -> &Model {
                static MODEL: LazyLock<Model> =
                    LazyLock::new(|| built_in(include_str!($model)));
                &MODEL
            }

            fn frame_skip(&self) -> usize {
                5
            }

            fn limit(&self) -> usize {
                self.time_limit
            }

            fn first(&self, key: Key) -> [Tensor; 2] {
                near_initial(self.model(), key, self.reset_noise_scale, Spread::Uniform)
            }

            fn derived(&self, forward: &Forward, first: bool) -> HumanoidQuantities {
                HumanoidQuantities::new(self.model(), forward, first)
            }

            fn observed(&self) -> usize {
                let model = self.model();
                let bodies = model.nbody - 1;
                let parts = [
                    (self.include_cinert_in_observation, 10 * bodies),
                    (self.include_cvel_in_observation, 6 * bodies),
                    (self.include_qfrc_actuator_in_observation, model.nv - 6),
                    (self.include_cfrc_ext_in_observation, 6 * bodies),
                ];
                let included = parts.iter().filter(|(included, _)| *included);
                let elements: usize = included.map(|(_, elements)| elements).sum();
                model.nq - self.hidden() + model.nv + elements
            }

            fn parts(&self) -> &'static str {
                "positions, velocities, inertias and velocities of the bodies, forces of actuators, torques and forces of contacts"
            }

            fn observation(&self, state: &State<HumanoidQuantities>) -> Tensor {
                let quantities = &state.derived;
                let optional = [
                    (self.include_cinert_in_observation, quantities.cinert),
                    (self.include_cvel_in_observation, quantities.cvel),
                    (self.include_qfrc_actuator_in_observation, quantities.qfrc_actuator),
                    (self.include_cfrc_ext_in_observation, quantities.cfrc_ext),
                ];
                let mut parts = vec![from(state.qpos, self.hidden()), state.qvel];
                let included = optional.iter().filter(|(included, _)| *included);
                parts.extend(included.map(|(_, part)| *part));
                concatenate(&parts, 0)
            }

            fn outcome(&self, step: &Step<HumanoidQuantities>) -> (Tensor, Tensor) {
                let outcome: fn(&Self, &Step<HumanoidQuantities>) -> (Tensor, Tensor) = $outcome;
                outcome(self, step)
            }

            fn camera(&self) -> Camera {
                $camera
            }
        }

        impl $task {
            fn hidden(&self) -> usize {
                if self.exclude_current_positions_from_observation { 2 } else { 0 }
            }
        }
    };
}

humanoid! {
    Humanoid, "models/humanoid.xml", Camera::oblique(2.2, 0.9),
    |task, step| {
        let healthy = inside(step.after.qpos.index(2), task.healthy_z_range);
        let velocity = step.velocity(|state| state.derived.x);
        let reward = task.forward_reward_weight * velocity
            + select(healthy, task.healthy_reward, 0.0)
            - task.ctrl_cost_weight * squares(step.action)
            - step.after.derived.contact_cost(task.contact_cost_weight, task.contact_cost_range);
        (reward, !healthy & task.terminate_when_unhealthy)
    }
}

humanoid! {
    HumanoidStandup, "models/humanoid_standup.xml", Camera::oblique(2.2, 0.4),
    |task, step| {
        let after = &step.after;
        let reward = after.qpos.index(2) / task.model().opt.timestep
            - task.ctrl_cost_weight * squares(step.action)
            - after.derived.contact_cost(task.impact_cost_weight, task.impact_cost_range)
            + 1.0;
        (reward, constant(false))
    }
}
