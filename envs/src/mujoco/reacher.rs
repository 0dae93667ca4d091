//! Reacher: an arm with two links.

use std::f64::consts::PI;
use std::sync::LazyLock;

use podracer_dsl::prelude::*;
use podracer_physics::{Forward, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::robot::{Spread, built_in, near_initial, squares};
use super::{Camera, State, Step, Task};

/// Greatest distance of the target from the centre, in metres.
const FARTHEST: f64 = 0.2;
/// Scale of the noise of first angles.
const ANGLES: f64 = 0.1;
/// Scale of the noise of first velocities.
const VELOCITIES: f64 = 5e-3;

/// Reacher: an arm with two links in a plane moves its fingertip to a target. A step costs the distance between them in
/// metres and the squared action, and the episode never terminates. As `Reacher-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Reacher {
    /// Factor of the distance in the reward.
    pub reward_dist_weight: f64,
    /// Factor of the squared action in the reward.
    pub reward_control_weight: f64,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Reacher {
    fn default() -> Self {
        Reacher { reward_dist_weight: 1.0, reward_control_weight: 1.0, time_limit: 50 }
    }
}

impl Task for Reacher {
    /// The fingertip's place relative to the target, f32 `[2]`.
    type Derived = Tensor;

    fn model(&self) -> &Model {
        static MODEL: LazyLock<Model> =
            LazyLock::new(|| built_in(include_str!("models/reacher.xml")));
        &MODEL
    }

    fn frame_skip(&self) -> usize {
        2
    }

    fn limit(&self) -> usize {
        self.time_limit
    }

    /// The target is uniform in a disc: the square of its distance is uniform.
    fn first(&self, key: Key) -> [Tensor; 2] {
        let [angles, target, velocities] = key.split_into();
        let [qpos, _] = near_initial(self.model(), angles, ANGLES, Spread::Uniform);
        let drawn = target.uniform([2]);
        let (distance, angle) = (FARTHEST * drawn.index(0).sqrt(), 2.0 * PI * drawn.index(1));
        let target = stack(&[distance * angle.cos(), distance * angle.sin()], 0);
        let qvel = velocities.uniform_range([2], -VELOCITIES, VELOCITIES);
        let joined = |arm: Tensor, target: Tensor| concatenate(&[arm, target], 0);
        [joined(qpos.slice(0..2), target), joined(qvel, zeros(F32, [2]))]
    }

    fn derived(&self, forward: &Forward, _first: bool) -> Tensor {
        let places = forward.xpos();
        let place = |name: &str| {
            let body = self.model().body(name).expect("the model has the body");
            places.index(body).slice(0..2)
        };
        place("fingertip") - place("target")
    }

    fn observed(&self) -> usize {
        10
    }

    fn parts(&self) -> &'static str {
        "cosines and sines of the angles, target, angular velocities, fingertip relative to the target"
    }

    fn observation(&self, state: &State<Tensor>) -> Tensor {
        let (angles, target) = (state.qpos.slice(0..2), state.qpos.slice(2..4));
        let velocities = state.qvel.slice(0..2);
        concatenate(&[angles.cos(), angles.sin(), target, velocities, state.derived], 0)
    }

    fn outcome(&self, step: &Step<Tensor>) -> (Tensor, Tensor) {
        let distance = squares(step.after.derived).sqrt();
        let cost = self.reward_control_weight * squares(step.action);
        (-(self.reward_dist_weight * distance) - cost, constant(false))
    }

    fn camera(&self) -> Camera {
        Camera::above(0.7)
    }
}
