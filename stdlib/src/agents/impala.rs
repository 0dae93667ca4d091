//! IMPALA's V-trace actor-critic: Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with
//! Importance Weighted Actor-Learner Architectures", 2018. Acting may lag some updates behind
//! learning; importance weights correct for the lag.
//!
//! The loss is the paper's (section 4.2). As in the published code it is **summed** over the steps
//! of the whole batch on every device, so that the paper's learning rates, costs and gradient
//! clipping norm apply:
//!
//! ```text
//! sum_t(-log pi(a_t) A_t + value_cost (vs_t - v_t)^2 / 2 - entropy_cost entropy_t)
//! ```
//!
//! A recurrent core sees the last action (one-hot) and the last reward (clipped to [-1, 1]) in
//! addition to the features of the observation, as in the paper.

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
use crate::returns::{PgAdvantage, Vtrace, VtraceOutput};
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// Clipping of rewards before learning.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardClipping {
    /// Rewards stay as they are.
    #[default]
    None,
    /// Rewards are clipped to [-1, 1].
    AbsOne,
}

/// The V-trace actor-critic of IMPALA (Espeholt et al. 2018). The loss is summed over the batch, as
/// in the paper, and the defaults are the paper's for Atari (table G.1); rewards are not clipped.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct ImpalaSettings {
    /// The optimizer.
    #[serde(flatten)]
    pub optimizer: OptimizerSettings<ImpalaSettings>,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of V-trace.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Greatest importance weight in a temporal difference.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_rho: Number,
    /// Greatest importance weight in a trace.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_c: Number,
    /// Greatest importance weight in the policy gradient.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub clip_pg_rho: Number,
    /// Advantage of the policy gradient: `impala` (from the next target) or `rlax` (from targets and values, mixed by
    /// lambda).
    pub advantage: PgAdvantage,
    /// Clipping of rewards in learning: `none`, or `abs_one` to clip to [-1, 1].
    pub reward_clipping: RewardClipping,
    /// Weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the value loss.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// The memory of the networks, and the sharing of networks by several agents.
    #[serde(flatten)]
    pub core: Core,
    /// The networks of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for ImpalaSettings {
    fn default() -> Self {
        let Vtrace { lambda, clip_rho, clip_c, clip_pg_rho, advantage } = Vtrace::default();
        ImpalaSettings {
            optimizer: OptimizerSettings::default(),
            discount: 0.99.into(),
            lambda,
            clip_rho,
            clip_c,
            clip_pg_rho,
            advantage,
            reward_clipping: RewardClipping::None,
            entropy_cost: 0.01.into(),
            value_cost: 0.5.into(),
            core: Core::default(),
            networks: Networks::default(),
        }
    }
}

impl ImpalaSettings {
    /// V-trace with lambda, thresholds and advantage of these settings.
    #[must_use]
    pub fn vtrace(&self) -> Vtrace {
        let &ImpalaSettings { lambda, clip_rho, clip_c, clip_pg_rho, advantage, .. } = self;
        Vtrace { lambda, clip_rho, clip_c, clip_pg_rho, advantage }
    }
}

impl OptimizerDefaults for ImpalaSettings {
    const EPSILON_IN_ROOT: bool = true;

    fn optimizer() -> OptimizerSettings<Self> {
        OptimizerSettings {
            optimizer: OptimizerKind::Rmsprop,
            learning_rate: 6e-4.into(),
            anneal_learning_rate: true,
            epsilon: 0.01.into(),
            rmsprop_decay: 0.99.into(),
            max_gradient_norm: 40.0.into(),
            agent: PhantomData,
        }
    }
}

impl ActorCriticSettings for ImpalaSettings {
    type Optimizer = OptimizerSettings<ImpalaSettings>;

    fn optimizer(&self) -> &OptimizerSettings<ImpalaSettings> {
        &self.optimizer
    }

    fn shape(&self) -> ActorCriticShape {
        self.networks.shape(Initializer::lecun_normal(), self.core, true)
    }
}

impl AgentSettings for ImpalaSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Ok(AnyAgent::new(ActorCriticAgent::for_task(self, task)?))
    }
}

/// The agent of [`ImpalaSettings`].
pub type Impala<O = Clipped<ChosenOptimizer>> = ActorCriticAgent<ImpalaSettings, O>;

/// Metrics of an iteration: means over its steps.
#[derive(Tree, Clone, Copy)]
pub struct ImpalaMetrics {
    /// The policy loss plus the weighted value loss minus the weighted entropy.
    pub loss: Tensor,
    /// The policy gradient's objective, negated.
    pub policy_loss: Tensor,
    /// Half of the squared error against the V-trace target.
    pub value_loss: Tensor,
    /// The policy's entropy, in nats.
    pub entropy: Tensor,
    /// Ratio of the actions' probabilities under the learning and the acting policy: 1 if the
    /// policies are equal.
    pub importance: Tensor,
}

/// Terms of the loss for each step, f32 `[T]`.
#[derive(Tree, Clone, Copy)]
struct Terms {
    policy_loss: Tensor,
    value_loss: Tensor,
    entropy: Tensor,
    importance: Tensor,
}

impl ImpalaSettings {
    /// Terms of the loss of one lane's rollout. `acted` has the log-probabilities of its actions
    /// under the acting policy, f32 `[T]`.
    fn terms(&self, steps: &LaneSteps, evaluated: Evaluated, acted: Tensor) -> Terms {
        let Evaluated { log_prob, entropy, v_tm1, v_t } = evaluated;
        let reward = match self.reward_clipping {
            RewardClipping::AbsOne => steps.reward.clamp(-1.0, 1.0),
            RewardClipping::None => steps.reward,
        };
        let discount_t = steps.discounts(self.discount);
        let rho_tm1 = stop_gradient((log_prob - acted).exp());
        let VtraceOutput { errors, pg_advantage, .. } =
            self.vtrace().apply(v_tm1, v_t, reward, discount_t, rho_tm1, steps.done());
        Terms {
            policy_loss: -log_prob * stop_gradient(pg_advantage),
            value_loss: 0.5 * errors.square(),
            entropy,
            importance: rho_tm1,
        }
    }
}

impl ActorCriticLoss for ImpalaSettings {
    /// The logarithm of the action's probability. f32 `[]`
    type Extras = Tensor;
    type Metrics = ImpalaMetrics;

    fn extras(&self, acted: &Acted) -> Tensor {
        acted.policy.log_prob(acted.action)
    }

    /// The loss, f32 `[]`: this device's mean times the number of steps on all devices. Its mean
    /// over the devices is the sum over all steps.
    #[track_caller]
    fn loss(
        &self,
        params: ActorCritic,
        rollout: &ActorCriticRollout<Tensor>,
        axes: &Axes,
    ) -> (Tensor, ImpalaMetrics) {
        let _scope = scope("Impala::loss");
        let weights = rollout.skipped.map(|skipped| step_weights(!skipped, axes));
        let steps_of_all = axes.sum(rollout.steps_that_count());
        let terms = of_each_lane(&params, rollout, |steps, evaluated, acted| {
            self.terms(steps, evaluated, acted)
        });
        let weights = weights.map(|weights| weights.swap_axes(0, 1));
        let Terms { policy_loss, value_loss, entropy, importance } =
            tree_map(&terms, |term| weighted(term, weights).mean());
        let &ImpalaSettings { value_cost, entropy_cost, .. } = self;
        let loss = policy_loss + value_cost * value_loss - entropy_cost * entropy;
        let metrics = ImpalaMetrics { loss, policy_loss, value_loss, entropy, importance };
        (steps_of_all * loss, metrics)
    }

    fn staleness(&self) -> Staleness {
        Staleness::Corrected
    }
}
