//! The online actor-critic of Podracer's minimal unit (Hessel et al. 2021, figure 2): agent and
//! environment step, and the objective is computed from these steps. The gradient flows back
//! through the whole loop, so the update reuses the forward pass of acting.

use crate::Number;
use crate::agents::{
    Acted, ActorCriticAgent, ActorCriticRollout, ActorCriticSettings, ActorCriticState,
    LearnActorCritic,
};
use crate::learn::{
    ActorCriticOptimizer, AdamSettings, AgentSettings, AnyAgent, Axes, Cx, Input, RolloutOf,
    Staleness, Task, step_weights, weighted,
};
use crate::net::{ActorCritic, ActorCriticShape, Core, Networks};
use crate::nn::Initializer;
use crate::optim::Optimizer;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The online actor-critic of Podracer's minimal unit (Hessel et al. 2021).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct OnlineSettings {
    /// The optimizer of all parameters.
    #[serde(flatten)]
    pub optimizer: AdamSettings,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Lambda of the lambda return.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lambda: Number,
    /// Weight of the entropy bonus.
    #[schemars(range(min = 0.0))]
    pub entropy_cost: Number,
    /// Weight of the value loss.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// The networks of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for OnlineSettings {
    fn default() -> Self {
        OnlineSettings {
            optimizer: AdamSettings::new(1e-3),
            discount: 0.99.into(),
            lambda: 0.95.into(),
            entropy_cost: 0.01.into(),
            value_cost: 0.5.into(),
            networks: Networks::default(),
        }
    }
}

impl ActorCriticSettings for OnlineSettings {
    type Optimizer = AdamSettings;

    fn optimizer(&self) -> &AdamSettings {
        &self.optimizer
    }

    fn shape(&self) -> ActorCriticShape {
        self.networks.shape(Initializer::lecun_normal(), Core::default(), false)
    }
}

impl AgentSettings for OnlineSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        Ok(AnyAgent::new(ActorCriticAgent::for_task(self, task)?))
    }
}

/// The agent of [`OnlineSettings`].
pub type OnlineActorCritic<O = ActorCriticOptimizer> = ActorCriticAgent<OnlineSettings, O>;

/// Data of a step of acting that the loss reads, and through which the gradient flows.
#[derive(Tree, Clone, Copy)]
pub struct OnlineExtras {
    /// The logarithm of the action's probability. f32 `[]`
    pub log_prob: Tensor,
    /// The policy's entropy, in nats. f32 `[]`
    pub entropy: Tensor,
    /// The value of the input. f32 `[]`
    pub value: Tensor,
}

/// Metrics of an iteration: means over its steps.
#[derive(Tree, Clone, Copy)]
pub struct OnlineMetrics {
    /// The policy loss plus the weighted value loss minus the weighted entropy.
    pub loss: Tensor,
    /// The policy gradient's objective, negated.
    pub policy_loss: Tensor,
    /// Half of the squared error against the lambda return.
    pub value_loss: Tensor,
    /// The policy's entropy, in nats.
    pub entropy: Tensor,
}

impl OnlineSettings {
    /// The loss of a rollout, with extras that these parameters computed: f32 `[]`, a mean over
    /// this device's steps.
    fn loss(
        &self,
        params: &ActorCritic,
        rollout: &ActorCriticRollout<OnlineExtras>,
        axes: &Axes,
    ) -> (Tensor, OnlineMetrics) {
        let _scope = scope("OnlineActorCritic::loss");
        let &OnlineSettings { discount, lambda, value_cost, entropy_cost, .. } = self;
        let OnlineExtras { log_prob, entropy, value } = rollout.extras;
        let value_after = |((), input)| stop_gradient(params.value(params.features(&input)));
        let held = stop_gradient(value);
        let advantage = stop_gradient(rollout.advantages(held, (), value_after, discount, lambda));
        let weights = rollout.skipped.map(|skipped| step_weights(!skipped, axes));
        let target = stop_gradient(value) + advantage;
        let mean = |numbers| weighted(numbers, weights).mean();
        let policy_loss = -mean(log_prob * advantage);
        let value_loss = 0.5 * mean((value - target).square());
        let entropy = mean(entropy);
        let loss = policy_loss + value_cost * value_loss - entropy_cost * entropy;
        (loss, OnlineMetrics { loss, policy_loss, value_loss, entropy })
    }
}

impl LearnActorCritic for OnlineSettings {
    type Extras = OnlineExtras;
    type Metrics = OnlineMetrics;

    fn extras(&self, acted: &Acted) -> OnlineExtras {
        OnlineExtras {
            log_prob: acted.policy.log_prob(acted.action),
            entropy: acted.policy.entropy(),
            value: acted.params.value(acted.features),
        }
    }

    /// Computes the rollout's extras again, so that the gradient flows through them.
    fn learn<O: Optimizer>(
        agent: &OnlineActorCritic<O>,
        state: ActorCriticState<O>,
        rollout: ActorCriticRollout<OnlineExtras>,
        cx: &Cx,
    ) -> (ActorCriticState<O>, OnlineMetrics) {
        state.gradient_step(&agent.optimizer, cx, |params| {
            let steps = (rollout.input.clone(), rollout.action);
            let extras = vmap(steps, |step| {
                vmap(step, |(input, action): (Input, Tensor)| {
                    let features = params.features(&input);
                    let policy = params.policy(features, input.legal_actions);
                    let (params, policy) = (&params, &policy);
                    agent.settings.extras(&Acted { params, features, policy, action, memory: None })
                })
            });
            agent.settings.loss(&params, &RolloutOf { extras, ..rollout }, cx)
        })
    }

    /// Uses acting itself as the forward pass of the gradient.
    fn iterate<O: Optimizer, W: Tree>(
        agent: &OnlineActorCritic<O>,
        state: ActorCriticState<O>,
        act: impl FnOnce(&ActorCritic) -> (ActorCriticRollout<OnlineExtras>, W),
        cx: &Cx,
    ) -> (ActorCriticState<O>, OnlineMetrics, W) {
        let (state, (metrics, with)) = state.gradient_step(&agent.optimizer, cx, |params| {
            let (rollout, with) = act(&params);
            let (loss, metrics) = agent.settings.loss(&params, &rollout, cx);
            (loss, (metrics, with))
        });
        (state, metrics, with)
    }

    fn staleness(&self) -> Staleness {
        Staleness::Refused
    }
}
