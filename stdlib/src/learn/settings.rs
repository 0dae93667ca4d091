//! Settings of agents: the structs that an experiment's `[agent]` table becomes.

use super::{AnyAgent, RolloutShape};
use podracer_envs::{AnyEnvironment, Space};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The task that an agent is made for: spaces, and the length of the run.
#[derive(Clone)]
pub struct Task {
    /// The environment's observations.
    pub observation: Space,
    /// The environment's actions.
    pub action: Space,
    /// Iterations of the run: what schedules count to.
    pub iterations: usize,
    /// The environment itself, for agents that search with it; `None` where it steps on the host.
    pub model: Option<AnyEnvironment>,
}

impl Task {
    /// Checks that an i32, as optimizers and schedules have it, counts all gradient steps of the run.
    ///
    /// # Errors
    /// More gradient steps, as a sentence that names the setting.
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

/// The settings of an agent: one struct whose fields, with their documentation, defaults and ranges, are what an experiment
/// may set. Everything that reads settings (files, `--set`, checks, `podracer describe`, resumed runs) reads this struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the settings of an agent",
    note = "derive `Clone, Default, Serialize, Deserialize, JsonSchema` for the struct, and implement `AgentSettings`"
)]
pub trait AgentSettings:
    Clone + Default + Serialize + DeserializeOwned + JsonSchema + 'static
{
    /// True for an agent that searches a tree. On a CPU its program is compiled for the many small loops of that.
    const SEARCHES: bool = false;

    /// The agent for a task.
    ///
    /// # Errors
    /// Settings that do not fit the task, or each other, as a sentence that names them.
    fn agent(&self, task: &Task) -> Result<AnyAgent, String>;

    /// Checks that the agent can learn from the rollouts of `devices` devices, each of the shape `rollout`.
    ///
    /// # Errors
    /// Numbers that do not divide, and a replay that is too small for the lanes, as a sentence that names the settings.
    fn check_rollout(&self, rollout: RolloutShape, devices: usize) -> Result<(), String> {
        let _ = (rollout, devices);
        Ok(())
    }
}
