//! Poles on a cart: InvertedPendulum and InvertedDoublePendulum.

use std::sync::LazyLock;

use podracer_dsl::prelude::*;
use podracer_physics::{Forward, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::robot::{Spread, built_in, from, near_initial};
use super::{Camera, State, Step, Task};

/// Angle beyond which a single pole has fallen, in radians.
const FALLEN: f64 = 0.2;
/// Height of the tip when two poles have fallen, in metres.
const LOW: f64 = 1.0;
/// Greatest magnitude of observed velocities and forces of two poles.
const MOST: f64 = 10.0;

/// InvertedPendulum: a cart balances a pole. A step pays 1 until the pole leans by more than 0.2 rad, which terminates the
/// episode. As `InvertedPendulum-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InvertedPendulum {
    /// Scale of the uniform noise of first states.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for InvertedPendulum {
    fn default() -> Self {
        InvertedPendulum { reset_noise_scale: 0.01, time_limit: 1000 }
    }
}

impl Task for InvertedPendulum {
    type Derived = ();

    fn model(&self) -> &Model {
        static MODEL: LazyLock<Model> =
            LazyLock::new(|| built_in(include_str!("models/inverted_pendulum.xml")));
        &MODEL
    }

    fn frame_skip(&self) -> usize {
        2
    }

    fn limit(&self) -> usize {
        self.time_limit
    }

    fn first(&self, key: Key) -> [Tensor; 2] {
        near_initial(self.model(), key, self.reset_noise_scale, Spread::Uniform)
    }

    fn derived(&self, _forward: &Forward, _first: bool) {}

    fn observed(&self) -> usize {
        4
    }

    fn parts(&self) -> &'static str {
        "position of the cart, angle of the pole, their velocities"
    }

    fn observation(&self, state: &State) -> Tensor {
        concatenate(&[state.qpos, state.qvel], 0)
    }

    fn outcome(&self, step: &Step) -> (Tensor, Tensor) {
        let state = &step.after;
        let stands =
            self.observation(state).is_finite().all() & state.qpos.index(1).abs().le(FALLEN);
        (stands.astype(F32), !stands)
    }

    fn camera(&self) -> Camera {
        Camera::fixed(2.4, 1.2, 0.3)
    }
}

/// InvertedDoublePendulum: a cart balances two poles, one on top of the other. A step pays `healthy_reward`, less a
/// penalty for the distance of the tip from its highest place and for velocities. The episode terminates if the tip is at
/// most 1 m high. As `InvertedDoublePendulum-v5` of Gymnasium.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InvertedDoublePendulum {
    /// Reward of a step that does not terminate the episode.
    pub healthy_reward: f64,
    /// Scale of the noise of first states: positions are uniform, velocities normal.
    #[schemars(range(min = 0))]
    pub reset_noise_scale: f64,
    /// Steps after which an episode is truncated.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub time_limit: usize,
}

impl Default for InvertedDoublePendulum {
    fn default() -> Self {
        InvertedDoublePendulum { healthy_reward: 10.0, reset_noise_scale: 0.1, time_limit: 1000 }
    }
}

/// The tip of two poles, and the force that keeps the cart on its rail.
#[derive(Tree, Clone, Copy)]
pub struct Tip {
    /// Place along the rail, in metres, f32 `[]`.
    pub x: Tensor,
    /// Height, in metres, f32 `[]`.
    pub z: Tensor,
    /// Force of the rail's ends on the cart, in newtons, f32 `[]`.
    pub force: Tensor,
}

impl Task for InvertedDoublePendulum {
    type Derived = Tip;

    fn model(&self) -> &Model {
        static MODEL: LazyLock<Model> =
            LazyLock::new(|| built_in(include_str!("models/inverted_double_pendulum.xml")));
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

    fn derived(&self, forward: &Forward, _first: bool) -> Tip {
        let tip = forward.site_xpos().index(0);
        Tip { x: tip.index(0), z: tip.index(2), force: forward.qfrc_constraint().index(0) }
    }

    fn observed(&self) -> usize {
        9
    }

    fn parts(&self) -> &'static str {
        "position of the cart, sines and cosines of the angles, velocities, force of the rail's ends"
    }

    fn observation(&self, state: &State<Tip>) -> Tensor {
        let (cart, angles) = (state.qpos.slice(0..1), from(state.qpos, 1));
        let others = concatenate(&[state.qvel, state.derived.force.reshape([1])], 0);
        concatenate(&[cart, angles.sin(), angles.cos(), others.clamp(-MOST, MOST)], 0)
    }

    fn outcome(&self, step: &Step<Tip>) -> (Tensor, Tensor) {
        let State { qvel, derived: Tip { x, z, .. }, .. } = &step.after;
        let fallen = z.le(LOW);
        let distance = 0.01 * x.square() + (*z - 2.0).square();
        let velocity = 1e-3 * qvel.index(1).square() + 5e-3 * qvel.index(2).square();
        (select(fallen, 0.0, self.healthy_reward) - distance - velocity, fallen)
    }

    fn camera(&self) -> Camera {
        Camera::fixed(2.6, 1.8, 0.55)
    }
}
