//! The built-in agents, one line each, and what is known of an agent by its name.

use toml::Table;

use super::{Configuration, Registry, parse};
use crate::settings::{Impala, Online, Ppo, Schema};

/// Registers the built-in agents.
pub(super) fn register(registry: &mut Registry) {
    let ppo = AgentEntry::new::<Ppo>("ppo");
    registry.add_agent(ppo.map(|entry| AgentEntry { check_rollout: minibatches, ..entry }));
    registry.add_agent(AgentEntry::new::<Online>("online"));
    registry.add_agent(AgentEntry::new::<Impala>("impala"));
}

/// An agent of the registry.
#[derive(Clone, Debug)]
pub struct AgentEntry {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    check: fn(&Table) -> Result<(), String>,
    check_rollout: fn(&Table, usize, usize) -> Result<(), String>,
}

impl AgentEntry {
    pub(crate) fn new<A: Configuration>(name: &str) -> Result<Self, String> {
        Ok(AgentEntry {
            name: name.to_owned(),
            schema: Schema::of::<A>().map_err(|mistake| format!("agent `{name}`: {mistake}"))?,
            check: |table| parse::<A>(table, "agent").map(|_| ()),
            check_rollout: |_, _, _| Ok(()),
        })
    }

    /// Its name: the value of `agent.kind`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its settings.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// That settings of valid types and ranges fit together.
    pub(crate) fn check(&self, table: &Table) -> Result<(), String> {
        (self.check)(table)
    }

    /// That the agent can learn from `steps` steps of so many lanes of a device.
    pub(crate) fn check_rollout(
        &self,
        table: &Table,
        lanes: usize,
        steps: usize,
    ) -> Result<(), String> {
        (self.check_rollout)(table, lanes, steps)
    }
}

fn minibatches(table: &Table, lanes: usize, steps: usize) -> Result<(), String> {
    let ppo: Ppo = parse(table, "agent")?;
    let (minibatches, lstm, batch) = (ppo.minibatches, ppo.lstm, lanes * steps);
    if lstm > 0 && !lanes.is_multiple_of(minibatches) {
        return Err(format!(
            "{lanes} environments per device do not divide into agent.minibatches = {minibatches}: with agent.lstm = {lstm} each \
             minibatch has whole trajectories"
        ));
    }
    if !batch.is_multiple_of(minibatches) {
        return Err(format!(
            "a batch of {batch} steps per device ({lanes} environments, unroll {steps}) does not divide into \
             agent.minibatches = {minibatches}"
        ));
    }
    Ok(())
}
