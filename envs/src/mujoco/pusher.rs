//! Pusher: an arm that pushes an object to a goal.

use std::sync::LazyLock;

use podracer_dsl::prelude::*;
use podracer_physics::{Forward, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::robot::{built_in, squares};
use super::{Camera, State, Step, Task};

/// Joints of the arm.
const ARM: usize = 7;
/// Farthest first place of the object from its origin along y, in metres; it is negative.
const FARTHEST: f64 = 0.3;
/// Farthest first place of the object from its origin along x, in metres, to both sides.
const ASIDE: f64 = 0.2;
/// Least first distance of the object from the goal, in metres.
const APART: f64 = 0.17;
/// Draws of the object's first place. All of them are too near the goal once in 10^13 episodes.
const DRAWS: usize = 32;
/// Scale of the noise of first velocities.
const VELOCITIES: f64 = 5e-3;

/// Pusher: an arm with seven joints pushes a cylinder to a goal on a table. A step costs the distances in metres from the
/// object to the fingertips and to the goal, and the squared action. The episode never terminates. As `Pusher-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pusher {
    /// Factor of the distance between the fingertips and the object in the reward.
    pub reward_near_weight: f64,
    /// Factor of the distance between the object and the goal in the reward.
    pub reward_dist_weight: f64,
    /// Factor of the squared action in the reward.
    pub reward_control_weight: f64,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for Pusher {
    fn default() -> Self {
        Pusher {
            reward_near_weight: 0.5,
            reward_dist_weight: 1.0,
            reward_control_weight: 0.1,
            time_limit: 100,
        }
    }
}

impl Task for Pusher {
    /// The places of the fingertips, the object and the goal, f32 `[3, 3]`.
    type Derived = Tensor;

    fn model(&self) -> &Model {
        static MODEL: LazyLock<Model> =
            LazyLock::new(|| built_in(include_str!("models/pusher.xml")));
        &MODEL
    }

    fn limit(&self) -> usize {
        self.time_limit
    }

    /// The object is uniform in a rectangle, except near the goal: the first of many draws that is not near.
    fn first(&self, key: Key) -> [Tensor; 2] {
        let [places, velocities] = key.split_into();
        let drawn = places.uniform([DRAWS, 2]);
        let low = constant([-FARTHEST as f32, -ASIDE as f32]);
        let size = constant([FARTHEST as f32, 2.0 * ASIDE as f32]);
        let places = low + size * drawn;
        let apart = places.square().sum_axis(1).sqrt().gt(APART);
        let object = places.at(apart.astype(I32).argmax(0));
        let arm = self.model().data(F32).qpos.slice(0..ARM);
        let qvel = velocities.uniform_range([ARM], -VELOCITIES, VELOCITIES);
        let rest = zeros(F32, [2]);
        [concatenate(&[arm, object, rest], 0), concatenate(&[qvel, rest, rest], 0)]
    }

    fn derived(&self, forward: &Forward, _first: bool) -> Tensor {
        let places = forward.xpos();
        let place = |name: &str| {
            let body = self.model().body(name).expect("the model has the body");
            places.index(body)
        };
        stack(&["tips_arm", "object", "goal"].map(place), 0)
    }

    fn observed(&self) -> usize {
        2 * ARM + 9
    }

    fn parts(&self) -> &'static str {
        "angles, angular velocities, places of the fingertips, the object and the goal"
    }

    fn observation(&self, state: &State<Tensor>) -> Tensor {
        let arm = [state.qpos, state.qvel].map(|x| x.slice(0..ARM));
        concatenate(&[arm[0], arm[1], state.derived.flatten()], 0)
    }

    fn outcome(&self, step: &Step<Tensor>) -> (Tensor, Tensor) {
        let [tips, object, goal] = [0, 1, 2].map(|i| step.after.derived.index(i));
        let distance = |from: Tensor| squares(object - from).sqrt();
        let near = self.reward_near_weight * distance(tips);
        let cost = self.reward_control_weight * squares(step.action);
        (-(near + self.reward_dist_weight * distance(goal)) - cost, constant(false))
    }

    fn camera(&self) -> Camera {
        Camera::above(1.4).about([0.4, -0.3, 0.0])
    }
}
