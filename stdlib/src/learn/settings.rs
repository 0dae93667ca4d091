//! Settings of agents: the structs for an experiment's `[agent]` table.

use super::{AnyAgent, RolloutShape};
use podracer_envs::{AnyEnvironment, Space};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An agent's task: spaces, and the length of the run.
#[derive(Clone)]
pub struct Task {
    /// The environment's observations.
    pub observation: Space,
    /// The environment's actions.
    pub action: Space,
    /// Number of iterations of the run, over which schedules extend.
    pub iterations: usize,
    /// The environment itself, for agents that search with it; `None` if it steps on the host.
    pub model: Option<AnyEnvironment>,
}

impl Task {
    /// Checks that an i32, the counter of optimizers and schedules, can count all gradient steps of
    /// the run.
    ///
    /// # Errors
    /// Returns a sentence that names the setting if there are more gradient steps.
    pub fn check_gradient_steps(&self, per_iteration: usize) -> Result<(), String> {
        let most = i32::MAX as usize;
        match self.iterations.checked_mul(per_iteration) {
            Some(steps) if steps <= most => Ok(()),
            _ => Err(format!(
                "train.steps makes {} iterations of {per_iteration} gradient steps each: a run counts at most {most} gradient steps, which are {} iterations",
                self.iterations,
                most / per_iteration.max(1)
            )),
        }
    }
}

/// The settings of an agent: one struct. Its fields, with their documentation, defaults and ranges,
/// are the settings of an experiment. Everything that reads settings (files, `--set`, checks,
/// `podracer describe`, resumed runs) reads this struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the settings of an agent",
    note = "derive `Clone, Default, Serialize, Deserialize, JsonSchema` for the struct, and implement `AgentSettings`"
)]
pub trait AgentSettings:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + 'static
{
    /// True for an agent that searches a tree. On a CPU its program is compiled for a search's many
    /// small loops.
    const SEARCHES: bool = false;

    /// The agent for a task.
    ///
    /// # Errors
    /// Returns a sentence that names the settings that do not fit the task or each other.
    fn agent(&self, task: &Task) -> Result<AnyAgent, String>;

    /// Checks that the agent can learn from rollouts of the shape `rollout` on each of `devices`
    /// devices.
    ///
    /// # Errors
    /// Returns a sentence that names the settings if numbers do not divide, or if a replay is too
    /// small for the lanes.
    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        let _ = (rollout, devices);
        Ok(())
    }
}
