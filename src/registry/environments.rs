//! The built-in environments, one line each, and what is known of an environment by its name.

use toml::{Table, Value};

use super::{Configuration, Registry, parse};
use crate::settings::{
    Atari, AtariProcessing, CartPole, Catch, EnvPool, GridWorld, Gymnasium, MemoryChain, Nothing,
    Pendulum, Schema, ServerSettings,
};

/// Registers the built-in environments.
pub(super) fn register(registry: &mut Registry) {
    let atari = EnvironmentEntry::new::<Atari>("atari").map(|entry| EnvironmentEntry {
        preset: |name| Table::try_from(AtariProcessing::preset(name)?).ok(),
        server: |table| parse(table, "environment").ok(),
        ..entry
    });
    registry.add_environment(atari);
    registry.add_environment(EnvironmentEntry::new::<CartPole>("cartpole"));
    registry.add_environment(EnvironmentEntry::new::<Catch>("catch"));
    let server = |entry| EnvironmentEntry { server: |table| parse(table, "environment").ok(), ..entry };
    registry.add_environment(EnvironmentEntry::new::<EnvPool>("envpool").map(server));
    registry.add_environment(EnvironmentEntry::new::<GridWorld>("gridworld"));
    registry.add_environment(EnvironmentEntry::new::<Gymnasium>("gymnasium").map(server));
    registry.add_environment(EnvironmentEntry::new::<MemoryChain>("memory-chain"));
    registry.add_environment(EnvironmentEntry::new::<Pendulum>("pendulum"));
    registry.add_environment(EnvironmentEntry::new::<Nothing>("pixel-breakout"));
    registry.add_environment(EnvironmentEntry::new::<Nothing>("pixel-catch"));
}

/// An environment of the registry.
#[derive(Clone, Debug)]
pub struct EnvironmentEntry {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    check: fn(&Table) -> Result<(), String>,
    preset: fn(&str) -> Option<Table>,
    server: fn(&Table) -> Option<ServerSettings>,
}

impl EnvironmentEntry {
    pub(crate) fn new<E: Configuration>(name: &str) -> Result<Self, String> {
        Ok(EnvironmentEntry {
            name: name.to_owned(),
            schema: Schema::of::<E>()
                .map_err(|mistake| format!("environment `{name}`: {mistake}"))?,
            check: |table| parse::<E>(table, "environment").map(|_| ()),
            preset: |_| None,
            server: |_| None,
        })
    }

    /// Its name: the value of `environment.name`.
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

    /// The defaults that a value of its setting `preset` changes.
    pub(crate) fn preset(&self, preset: &Value) -> Option<Table> {
        (self.preset)(preset.as_str()?)
    }

    /// The settings of its servers, if it has any.
    pub(crate) fn server(&self, table: &Table) -> Option<ServerSettings> {
        (self.server)(table)
    }
}
