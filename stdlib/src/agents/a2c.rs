//! Advantage actor-critic: Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning",
//! 2016, section 4.4, with actors that step together instead of asynchronously. Each iteration is
//! one gradient step on the whole rollout:
//!
//! ```text
//! mean_t(-log pi(a_t) A_t + value_cost (A_t + v_t - v(s_t))^2 - entropy_cost entropy_t)
//! ```
//!
//! `A_t` is the generalized advantage. With lambda 1 it is the paper's advantage: the rewards up to
//! the end of the rollout or episode, plus the value at that end, minus the value of the step. No
//! gradient flows into advantages and targets.

use crate::Number;
use crate::agents::{
    Acted, ActorCriticAgent, ActorCriticLoss, ActorCriticRollout, ActorCriticSettings, Evaluated,
    LaneSteps, of_each_lane,
};
use crate::learn::{
    AgentSettings, AnyAgent, Axes, ChosenOptimizer, Clipped, OptimizerDefaults, OptimizerKind,
    OptimizerSettings, Staleness, Task, step_weights, weighted,
};
use crate::net::{ActorCritic, ActorCriticShape, Core, Networks};
use crate::nn::Initializer;
use crate::returns::gae_with_ends;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Synchronous advantage actor-critic (Mnih et al. 2016). The defaults equal those in
/// Stable-Baselines3's A2C, except for the entropy bonus, which is the paper's.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct A2cSettings {
    /// The optimizer.
    #[serde(flatten)]
    pub optimizer: OptimizerSettings<A2cSettings>,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of generalized advantage estimation; 1 sums all rewards up to the rollout's end.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the value loss, which is the squared error, without a factor of one half.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// The memory of the networks, and the sharing of networks by several agents.
    #[serde(flatten)]
    pub core: Core,
    /// The networks of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for A2cSettings {
    fn default() -> Self {
        A2cSettings {
            optimizer: OptimizerSettings::default(),
            discount: 0.99.into(),
            lambda: 1.0.into(),
            entropy_cost: 0.01.into(),
            value_cost: 0.5.into(),
            core: Core::default(),
            networks: Networks::default(),
        }
    }
}

impl OptimizerDefaults for A2cSettings {
    const EPSILON_IN_ROOT: bool = false;

    fn optimizer() -> OptimizerSettings<Self> {
        OptimizerSettings {
            optimizer: OptimizerKind::Rmsprop,
            learning_rate: 7e-4.into(),
            anneal_learning_rate: false,
            epsilon: 1e-5.into(),
            rmsprop_decay: 0.99.into(),
            max_gradient_norm: 0.5.into(),
            agent: PhantomData,
        }
    }
}

impl ActorCriticSettings for A2cSettings {
    type Optimizer = OptimizerSettings<A2cSettings>;

    fn optimizer(&self) -> &OptimizerSettings<A2cSettings> {
        &self.optimizer
    }

    fn shape(&self) -> ActorCriticShape {
        self.networks.shape(Initializer::orthogonal(2f64.sqrt()), self.core, false)
    }
}

impl AgentSettings for A2cSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Ok(AnyAgent::new(ActorCriticAgent::for_task(self, task)?))
    }
}

/// The agent of [`A2cSettings`].
pub type A2c<O = Clipped<ChosenOptimizer>> = ActorCriticAgent<A2cSettings, O>;

/// Metrics of an iteration: means over its steps.
#[derive(Tree, Clone, Copy)]
pub struct A2cMetrics {
    /// The policy loss plus the weighted value loss minus the weighted entropy.
    pub loss: Tensor,
    /// The policy gradient's objective, negated.
    pub policy_loss: Tensor,
    /// The squared error of the value.
    pub value_loss: Tensor,
    /// The policy's entropy, in nats.
    pub entropy: Tensor,
}

/// Terms of the loss for each step, f32 `[T]`.
#[derive(Tree, Clone, Copy)]
struct Terms {
    policy_loss: Tensor,
    value_loss: Tensor,
    entropy: Tensor,
}

impl A2cSettings {
    /// Terms of the loss of one lane's rollout.
    fn terms(&self, steps: &LaneSteps, evaluated: Evaluated) -> Terms {
        let &A2cSettings { discount, lambda, .. } = self;
        let Evaluated { log_prob, entropy, v_tm1, v_t } = evaluated;
        let (discount_t, done) = (steps.discounts(discount), steps.done());
        let old = stop_gradient(v_tm1);
        let advantage = gae_with_ends(steps.reward, discount_t, old, v_t, done, lambda);
        Terms {
            policy_loss: -log_prob * advantage,
            value_loss: (advantage + old - v_tm1).square(),
            entropy,
        }
    }
}

impl ActorCriticLoss for A2cSettings {
    type Extras = ();
    type Metrics = A2cMetrics;

    fn extras(&self, _: &Acted) {}

    #[track_caller]
    fn loss(
        &self,
        params: ActorCritic,
        rollout: &ActorCriticRollout<()>,
        axes: &Axes,
    ) -> (Tensor, A2cMetrics) {
        let _scope = scope("A2c::loss");
        let weights = rollout.skipped.map(|skipped| step_weights(!skipped, axes));
        let weights = weights.map(|weights| weights.swap_axes(0, 1));
        let terms =
            of_each_lane(&params, rollout, |steps, evaluated, ()| self.terms(steps, evaluated));
        let Terms { policy_loss, value_loss, entropy } =
            tree_map(&terms, |term| weighted(term, weights).mean());
        let &A2cSettings { value_cost, entropy_cost, .. } = self;
        let loss = policy_loss + value_cost * value_loss - entropy_cost * entropy;
        (loss, A2cMetrics { loss, policy_loss, value_loss, entropy })
    }

    /// Off-policy steps are not corrected for.
    fn staleness(&self) -> Staleness {
        Staleness::Refused
    }
}
