//! The settings of [`AlphaZero`], and the agent made from them.

use super::AlphaZero;
use crate::Number;
use crate::agents::PlanningSettings;
use crate::agents::planning::searched_actions;
use crate::learn::{AgentSettings, AnyAgent, RolloutShape, Task, Window};
use crate::net::Networks;
use crate::nn::Activation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// AlphaZero (Silver et al. 2018): search with the environment itself as the model, by self-play in
/// games of two players. It learns once from each rollout, or from a replay. It needs environments
/// with states that can be recovered from an observation.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct AlphaZeroSettings {
    /// Discount of the value after a step. In games of two players it is negated, because the next
    /// value is the other player's.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub discount: Number,
    /// Number of steps of a return. If a game has at most `n_step` steps, the target of a value is
    /// the game's outcome. For a game that continues beyond the end of a rollout, the target is the
    /// search's value at that end.
    #[schemars(range(min = 1, max = 5_000))]
    pub n_step: usize,
    /// Weight of the squared error of the value.
    #[schemars(range(min = 0.0))]
    pub value_cost: Number,
    /// Optimizer, search, and source of learning: windows of a replay have `n_step + 1` steps.
    #[serde(flatten)]
    pub planning: PlanningSettings,
    /// The torso, and the hidden layers of policy and value.
    #[serde(flatten)]
    pub networks: Networks,
}

impl Default for AlphaZeroSettings {
    fn default() -> Self {
        AlphaZeroSettings {
            discount: 1.0.into(),
            n_step: 1000,
            value_cost: 1.0.into(),
            planning: PlanningSettings::default(),
            networks: Networks {
                hidden: vec![128, 128],
                activation: Activation::Relu,
                ..Networks::default()
            },
        }
    }
}

impl AlphaZeroSettings {
    /// The windows of the replay: the step to learn from, and the steps of its return.
    #[must_use]
    pub fn window(&self) -> Window {
        Window { length: self.n_step + 1, period: 1, learnt: 1 }
    }
}

impl AgentSettings for AlphaZeroSettings {
    const SEARCHES: bool = true;

    fn agent(&self, task: &Task) -> Result<AnyAgent, String> {
        self.networks.check(&task.observation)?;
        let actions = searched_actions("AlphaZero", task)?;
        let Some(model) = task.model.clone() else {
            return Err(
                "AlphaZero searches with the environment as its model: expected an environment that is written in the DSL, and this environment steps on the host; `muzero` learns a model"
                    .to_owned(),
            );
        };
        let agent = AlphaZero::new(model, actions, task.iterations, self.clone())?;
        self.planning.learning(agent, self.window().length, task)
    }

    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        self.planning.check_rollout(self.window(), rollout, devices)
    }
}
