//! The settings of SAC.

use super::{Sac, SacActions, SacOptimizer, SacOptimizers};
use crate::Number;
use crate::agents::{AgentSettings, AnyAgent, Networks, ReplaySettings, Replayed, Task};
use crate::nn::Activation;
use crate::optim::{adam, flatten};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Soft actor-critic (Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"; defaults of its table 1), for bounded
/// continuous actions, and for discrete ones (Christodoulou 2019).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct SacSettings {
    /// Adam's step size for the actor.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub actor_learning_rate: Number,
    /// Adam's step size for the critics.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub critic_learning_rate: Number,
    /// Adam's step size for the temperature.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub temperature_learning_rate: Number,
    /// Discount of future rewards.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Part of the way that the target critics move to the critics in each gradient step.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub polyak: Number,
    /// Steps of the returns that the critics' targets begin with.
    #[schemars(range(min = 1, max = 1_000))]
    pub n_step: usize,
    /// Gradient steps of the critics for one turn of actor and temperature, which then take as many steps; 1 in the paper, 2 in
    /// CleanRL.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub policy_period: usize,
    /// Temperature at the start of a run.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub temperature: Number,
    /// If true, the temperature is learnt, so that the policy's entropy comes to the target.
    pub learn_temperature: bool,
    /// Target entropy of a continuous action, in nats for each of its elements.
    pub target_entropy: Number,
    /// Target entropy of a discrete action, as a part of the greatest entropy, `log n` for `n` actions.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discrete_target_entropy: Number,
    /// The networks of actor and critics, each with a torso of its own.
    #[serde(flatten)]
    pub networks: Networks,
    /// The replay. Before it has its minimum, actions are drawn uniformly.
    #[serde(flatten)]
    pub replay: ReplaySettings,
}

impl Default for SacSettings {
    fn default() -> Self {
        SacSettings {
            actor_learning_rate: 3e-4.into(),
            critic_learning_rate: 3e-4.into(),
            temperature_learning_rate: 3e-4.into(),
            discount: 0.99.into(),
            polyak: 0.005.into(),
            n_step: 1,
            policy_period: 1,
            temperature: 1.0.into(),
            learn_temperature: true,
            target_entropy: (-1.0).into(),
            discrete_target_entropy: 0.98.into(),
            networks: Networks {
                hidden: vec![256, 256],
                activation: Activation::Relu,
                ..Networks::default()
            },
            replay: ReplaySettings {
                minimum: 5_000,
                batch: 256,
                // A gradient step for each step of an environment.
                replay_ratio: 256.0,
                ..ReplaySettings::default()
            },
        }
    }
}

impl AgentSettings for SacSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        self.networks.check(&task.observation)?;
        self.replay.check(self.n_step + 1)?;
        let agent = Sac {
            observation: task.observation.clone(),
            actions: SacActions::new(&task.action)
                .map_err(|problem| format!("agent.kind = sac: {problem}"))?,
            optimizers: self.optimizers(),
            settings: self.clone(),
        };
        Ok(AnyAgent::new(Replayed::for_task(agent, &self.replay, task)))
    }
}

impl SacSettings {
    /// Adam with the learning rates of the settings.
    pub fn optimizers(&self) -> SacOptimizers<SacOptimizer> {
        SacOptimizers {
            actor: flatten(adam(self.actor_learning_rate)),
            critics: flatten(adam(self.critic_learning_rate)),
            temperature: flatten(adam(self.temperature_learning_rate)),
        }
    }
}
