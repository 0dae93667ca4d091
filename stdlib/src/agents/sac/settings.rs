//! The settings of SAC.

use super::{Sac, SacActions, SacOptimizer, SacOptimizers};
use crate::Number;
use crate::agents::OffPolicySettings;
use crate::learn::{AgentSettings, AnyAgent, RolloutShape, Task};
use crate::optim::{adam, flatten};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Soft actor-critic (Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications";
/// defaults of its table 1) for bounded continuous actions, and for discrete actions (Christodoulou
/// 2019).
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct SacSettings {
    /// Settings that SAC shares with TD3. The target critics are updated in each gradient step.
    #[serde(flatten)]
    pub off_policy: OffPolicySettings,
    /// Adam's step size for the temperature.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub temperature_learning_rate: Number,
    /// Period of the actor's and the temperature's gradient steps, in gradient steps of the
    /// critics. They then take as many steps at once; 1 in the paper, 2 in CleanRL.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub policy_period: usize,
    /// Initial temperature.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub temperature: Number,
    /// If true, the temperature is learnt, so that the policy's entropy approaches the target.
    pub learn_temperature: bool,
    /// Target entropy of a continuous action, in nats per element.
    pub target_entropy: Number,
    /// Target entropy of a discrete action, as a share of the greatest entropy, `log n` for `n`
    /// actions.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discrete_target_entropy: Number,
}

impl Default for SacSettings {
    fn default() -> Self {
        SacSettings {
            off_policy: OffPolicySettings::default(),
            temperature_learning_rate: 3e-4.into(),
            policy_period: 1,
            temperature: 1.0.into(),
            learn_temperature: true,
            target_entropy: (-1.0).into(),
            discrete_target_entropy: 0.98.into(),
        }
    }
}

impl AgentSettings for SacSettings {
    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        let agent = Sac {
            observation: task.observation.clone(),
            actions: SacActions::new(&task.action)
                .map_err(|problem| format!("agent.kind = sac: {problem}"))?,
            optimizers: self.optimizers(),
            settings: self.clone(),
        };
        self.off_policy.replayed(agent, task)
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        self.off_policy.check_rollout(rollout, devices)
    }
}

impl SacSettings {
    /// Adam with the learning rates of the settings.
    pub fn optimizers(&self) -> SacOptimizers<SacOptimizer> {
        let [actor, critics] = self.off_policy.optimizers();
        let temperature = flatten(adam(self.temperature_learning_rate));
        SacOptimizers { actor, critics, temperature }
    }
}
