//! The table `[meta]`: the loop that trains an update rule.

use podracer_rl::Number;
use podracer_rl::meta::MetaSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The loop that trains an update rule, LPG of Oh et al. 2020, through the updates of agents. Each
/// agent has its own task.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct MetaLoopSettings {
    /// Agents that learn at the same time, over all devices.
    #[schemars(range(min = 1, max = i32::MAX))]
    pub agents: usize,
    /// Number of lanes of an agent.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub environments: usize,
    /// Number of steps of each lane per update of an agent.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub unroll: usize,
    /// Number of updates of the rule in one call of the compiled program.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub iterations_per_call: usize,
    /// Adam's step size for the rule.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub learning_rate: Number,
    /// Greatest global norm of the rule's gradients; greater gradients are scaled down to it.
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub max_gradient_norm: Number,
    /// The rule, the lives of agents, and the rule's loss.
    #[serde(flatten)]
    pub meta: MetaSettings,
}

/// A size for a laptop, with the rates of Jackson et al. 2023.
impl Default for MetaLoopSettings {
    fn default() -> Self {
        MetaLoopSettings {
            agents: 64,
            environments: 64,
            unroll: 20,
            iterations_per_call: 10,
            learning_rate: 1e-4.into(),
            max_gradient_norm: 0.5.into(),
            meta: MetaSettings::default(),
        }
    }
}
