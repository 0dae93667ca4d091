//! The built-in agents, one line each, and the registry's entry of an agent.

use podracer_rl::agents::{
    A2cSettings, AlphaZeroSettings, BootstrappedSettings, DqnSettings, ImpalaSettings,
    MuZeroSettings, OnlineSettings, PpoSettings, PqnSettings, R2d2Settings, SacSettings,
    Td3Settings,
};
use podracer_rl::learn::{AgentSettings, AnyAgent, RolloutShape, Task};
use toml::Table;

use super::{Registry, parse};
use crate::disco::DiscoSettings;
use crate::learned::LearnedSettings;
use crate::schema::Schema;
use crate::settings::UsageError;

/// Registers the built-in agents.
pub(super) fn register(registry: &mut Registry) {
    registry.add_agent(AgentEntry::new::<PpoSettings>("ppo"));
    registry.add_agent(AgentEntry::new::<OnlineSettings>("online"));
    registry.add_agent(AgentEntry::new::<ImpalaSettings>("impala"));
    registry.add_agent(AgentEntry::new::<DqnSettings>("dqn"));
    registry.add_agent(AgentEntry::new::<BootstrappedSettings>("bootstrapped"));
    registry.add_agent(AgentEntry::new::<R2d2Settings>("r2d2"));
    registry.add_agent(AgentEntry::new::<SacSettings>("sac"));
    registry.add_agent(AgentEntry::new::<Td3Settings>("td3"));
    registry.add_agent(AgentEntry::new::<A2cSettings>("a2c"));
    registry.add_agent(AgentEntry::new::<PqnSettings>("pqn"));
    registry.add_agent(AgentEntry::new::<MuZeroSettings>("muzero"));
    registry.add_agent(AgentEntry::new::<AlphaZeroSettings>("alphazero"));
    registry.add_agent(AgentEntry::new::<LearnedSettings>("learned"));
    registry.add_agent(AgentEntry::new::<DiscoSettings>("disco"));
}

/// An agent of the registry. Its functions take the complete table `[agent]`.
#[derive(Clone, Debug)]
pub struct AgentEntry {
    /// Name of the agent: the value of `agent.kind`.
    pub name: String,
    /// True if it searches a tree.
    pub(crate) searches: bool,
    /// Schema of the agent's settings.
    pub schema: Schema,
    /// Checks that settings of valid types and ranges fit together.
    pub(crate) check: fn(&Table) -> Result<(), String>,
    /// Checks that the agent can learn from rollouts of this shape on each of the devices (their
    /// number is the last argument).
    pub(crate) check_rollout: fn(&Table, RolloutShape, usize) -> Result<(), String>,
    agent: fn(&Table, &Task) -> Result<AnyAgent, String>,
}

impl AgentEntry {
    pub(crate) fn new<A: AgentSettings>(name: &str) -> Result<Self, String> {
        Ok(AgentEntry {
            name: name.to_owned(),
            searches: A::SEARCHES,
            schema: Schema::of::<A>().map_err(|mistake| format!("agent `{name}`: {mistake}"))?,
            check: |table| parse::<A>(table, "agent").map(|_| ()),
            check_rollout: |table, rollout, devices| {
                parse::<A>(table, "agent")?.check_rollout(rollout, devices)
            },
            agent: |table, task| parse::<A>(table, "agent")?.agent(task),
        })
    }

    /// The agent for a task.
    ///
    /// # Errors
    /// Returns settings that do not fit the task.
    pub(crate) fn agent(&self, table: &Table, task: &Task) -> Result<AnyAgent, UsageError> {
        (self.agent)(table, task).map_err(UsageError::new)
    }
}
