//! Advantage actor-critic: Mnih et al., "Asynchronous Methods for Deep Reinforcement Learning", 2016, section 4.4, with actors
//! that step together in place of asynchronous ones. Each iteration is one gradient step, from all of the rollout:
//!
//! ```text
//! mean_t(-log pi(a_t) A_t + value_cost (A_t + v_t - v(s_t))^2 - entropy_cost entropy_t)
//! ```
//!
//! `A_t` are generalized advantages. With lambda 1 they are the paper's: the rewards of all steps up to the rollout's end or
//! the episode's, and the value there, minus the value of the step. No gradient flows into them, nor into the targets.

use super::settings::{Clipped, clipped, clipped_adam};
use super::steps::weighted;
use super::trajectory::{Evaluated, Steps, of_each_lane};
use super::{
    Act, ActorCritic, ActorCriticAgent, ActorCriticSettings, ActorCriticShape, Agent,
    AgentSettings, AnyAgent, Axes, Cx, Input, LaneId, Learn, Memory, Mode, Networks, Optimized,
    OptimizerKind, Rollout, Staleness, Task, scan_mean, step_weights,
};
use crate::Number;
use crate::nn::Initializer;
use crate::optim::{Optimizer, RmsProp, Schedule, rmsprop};
use crate::returns::gae_with_ends;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Advantage actor-critic, synchronous (Mnih et al. 2016). The defaults are those of Stable-Baselines3's A2C, with the paper's
/// entropy bonus.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct A2cSettings {
    /// The optimizer: `rmsprop` or `adam`.
    pub optimizer: OptimizerKind,
    /// The optimizer's step size.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// If true, the learning rate falls linearly to zero over the run.
    pub anneal_learning_rate: bool,
    /// The optimizer's epsilon, outside of the root.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub epsilon: Number,
    /// Decay of RMSProp's mean.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub rmsprop_decay: Number,
    /// Gradients of a greater global norm are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of generalized advantage estimation; 1 for returns of all steps up to the rollout's end.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the value loss, which is the squared error and not half of it.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// Units of an LSTM between torso and hidden layers; 0 for none.
    #[schemars(range(max = 65_536))]
    pub lstm: usize,
    /// The networks of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for A2cSettings {
    fn default() -> Self {
        A2cSettings {
            optimizer: OptimizerKind::Rmsprop,
            learning_rate: 7e-4.into(),
            anneal_learning_rate: false,
            epsilon: 1e-5.into(),
            rmsprop_decay: 0.99.into(),
            max_gradient_norm: 0.5.into(),
            discount: 0.99.into(),
            lambda: 1.0.into(),
            entropy_cost: 0.01.into(),
            value_cost: 0.5.into(),
            lstm: 0,
            networks: Networks::default(),
        }
    }
}

impl ActorCriticSettings for A2cSettings {
    type Optimizer = A2cOptimizer;

    /// RMSProp, whatever [`A2cSettings::optimizer`] says.
    fn optimizer(&self, learning_rate: Schedule) -> A2cOptimizer {
        let rmsprop = rmsprop(learning_rate).decay(self.rmsprop_decay).eps(self.epsilon);
        clipped(self.max_gradient_norm, RmsProp { eps_in_sqrt: false, ..rmsprop })
    }

    fn learning_rate(&self) -> Number {
        self.learning_rate
    }

    fn shape(&self) -> ActorCriticShape {
        self.networks.shape(Initializer::orthogonal(2f64.sqrt()), self.lstm, false)
    }
}

impl AgentSettings for A2cSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        self.networks.check(&task.observation)?;
        let rate = task.learning_rate(self.learning_rate, self.anneal_learning_rate, 1);
        let adam = clipped_adam(rate.clone(), self.epsilon, self.max_gradient_norm);
        Ok(self.optimized_by(self.optimizer, task, rate, adam))
    }
}

/// RMSProp on gradients of a bounded norm, with all parameters as one vector.
pub type A2cOptimizer = Clipped<RmsProp>;

/// The agent of [`A2cSettings`].
pub type A2c<O = A2cOptimizer> = ActorCriticAgent<A2cSettings, O>;

/// Metrics of an iteration: means over all of its steps.
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

impl<O: Optimizer> A2c<O> {
    /// Terms of the loss of one lane's rollout.
    fn terms(&self, steps: &Steps, evaluated: Evaluated) -> Terms {
        let &A2cSettings { discount, lambda, .. } = &self.settings;
        let Evaluated { log_prob, entropy, v_tm1, v_t } = evaluated;
        let (discount_t, ended) = (steps.discounts(discount), steps.ended());
        let old = stop_gradient(v_tm1);
        let advantage = gae_with_ends(steps.reward, discount_t, old, v_t, ended, lambda);
        Terms {
            policy_loss: -log_prob * advantage,
            value_loss: (advantage + old - v_tm1).square(),
            entropy,
        }
    }

    /// The loss, f32 `[]`, a mean over this device's steps.
    #[track_caller]
    pub fn loss(
        &self,
        params: ActorCritic,
        rollout: &Rollout<Self>,
        axes: &Axes,
    ) -> (Tensor, A2cMetrics) {
        let _scope = scope("A2c::loss");
        let weights = rollout.skipped.map(|skipped| step_weights(!skipped, axes));
        let weights = weights.map(|weights| weights.swap_axes(0, 1));
        let terms =
            of_each_lane(&params, rollout, |steps, evaluated, ()| self.terms(steps, evaluated));
        let Terms { policy_loss, value_loss, entropy } =
            tree_map(&terms, |term| weighted(term, weights).mean());
        let &A2cSettings { value_cost, entropy_cost, .. } = &self.settings;
        let loss = policy_loss + value_cost * value_loss - entropy_cost * entropy;
        (loss, A2cMetrics { loss, policy_loss, value_loss, entropy })
    }
}

impl<O: Optimizer> Agent for A2c<O> {
    type Observation = Tensor;
    type Params = ActorCritic;
    type Memory = Memory;
    type Extras = ();

    fn init_memory(&self, _: LaneId) -> Memory {
        self.no_memory()
    }

    fn begin_episode(&self, _: Memory) -> Memory {
        self.no_memory()
    }

    fn act(
        &self,
        params: &ActorCritic,
        memory: Memory,
        input: Input,
        mode: Mode,
        key: Key,
    ) -> Act<Memory, ()> {
        let (memory, features) = params.see(memory, &input);
        let action = params.policy(features, input.legal_actions).choose(mode, key);
        Act { action, memory, extras: () }
    }
}

impl<O: Optimizer> Learn for A2c<O> {
    type State = Optimized<ActorCritic, O::State<ActorCritic>>;
    type Store = ();
    type Metrics = A2cMetrics;

    fn init(&self, key: Key) -> Self::State {
        self.init_state(key)
    }

    fn init_store(&self, _: &Spec<Rollout<Self>>, _: &Axes) {}

    fn params(&self, state: &Self::State) -> ActorCritic {
        state.params.clone()
    }

    fn learn(
        &self,
        state: Self::State,
        (): (),
        rollout: Rollout<Self>,
        cx: Cx,
    ) -> (Self::State, (), A2cMetrics) {
        let (state, metrics) = scan_mean(state, 1, |state, _| {
            state.gradient_step(&self.optimizer, &cx, |params| self.loss(params, &rollout, &cx))
        });
        (state, (), metrics)
    }

    /// Nothing corrects for actions of older parameters.
    fn staleness(&self) -> Staleness {
        Staleness::Refused
    }
}
