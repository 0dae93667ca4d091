//! Environments in servers, which are processes of Python packages.

use std::time::Duration;

use anyhow::Result;
use podracer_envs::host::server::{
    Atari, EnvPool, Gymnasium, Preset, ServerOptions, ServerSettings, Servers,
};
use podracer_envs::host::{HostEnvironment, HostSpec};
use serde::Deserialize;
use toml::{Table, Value};

use super::batches::Batches;
use super::{Configuration, EnvironmentEntry, Registry, parse};
use crate::play::{Pictures, of_servers};
use crate::settings::UsageError;

/// Registers the built-in environments in servers.
pub(super) fn register(registry: &mut Registry) {
    registry.add_environment(EnvironmentEntry::served::<Gymnasium>("gymnasium"));
    registry.add_environment(EnvironmentEntry::served::<EnvPool>("envpool"));
    registry.add_environment(EnvironmentEntry::served::<Atari>("atari").map(|atari| {
        let preset =
            |name: Value| Table::try_from(Preset::deserialize(name).ok()?.processing()).ok();
        EnvironmentEntry { preset, ..atari }
    }));
}

/// Settings of an environment in servers.
pub(super) trait Served: Configuration {
    /// The set of packages that serves it, named as in `podracer envs install`.
    fn packages(&self) -> &'static str;
    /// Settings of its servers.
    fn server(&self) -> &ServerSettings;
    /// Number of a game's frames per step.
    fn frames_per_step(&self) -> usize {
        1
    }
}

impl Served for Gymnasium {
    fn packages(&self) -> &'static str {
        self.packages.name()
    }
    fn server(&self) -> &ServerSettings {
        &self.server
    }
}

impl Served for EnvPool {
    fn packages(&self) -> &'static str {
        "envpool"
    }
    fn server(&self) -> &ServerSettings {
        &self.server
    }
}

impl Served for Atari {
    fn packages(&self) -> &'static str {
        "atari"
    }
    fn server(&self) -> &ServerSettings {
        &self.server
    }
    fn frames_per_step(&self) -> usize {
        self.processing.action_repeat
    }
}

/// Batches of the environments of `[environment]`, with an interpreter that has the packages. A
/// server with one environment reports the spaces.
pub(super) fn batches<E: Served>(table: &Table, lanes: usize) -> Result<Batches> {
    let (environment, options) = options::<E>(table)?;
    let one = Servers::start(&options, 1)?;
    tracing::info!("environments: {}", one.about().collect::<Vec<_>>().join(", "));
    let spec = HostSpec { environments: lanes, ..one.spec().clone() };
    let options = options.servers(environment.server().servers);
    Ok(Batches::new(spec, move || Ok(Servers::start(&options, lanes)?)))
}

/// One environment of `[environment]`, with pictures.
pub(super) fn stage<E: Served>(table: &Table) -> Result<(Box<dyn HostEnvironment>, Pictures)> {
    let (_, options) = options::<E>(table)?;
    of_servers(Servers::start(&options.pictures(), 1)?)
}

/// The settings `[environment]`, and the options of its servers.
fn options<E: Served>(table: &Table) -> Result<(E, ServerOptions)> {
    let environment: E = parse(table, "environment").map_err(UsageError::new)?;
    let server = environment.server();
    let python = match &server.python {
        None => podracer_plugins::package_set(environment.packages())?.find()?,
        Some(python) => python.clone(),
    };
    let seconds = |seconds: usize| Duration::from_secs(seconds as u64);
    // With the defaults, which the table may lack.
    let mut configuration = serde_json::to_value(&environment)?;
    configuration["name"] = serde_json::to_value(table.get("name"))?;
    let options = ServerOptions::new(python, &configuration)?
        .restarts(server.restarts)
        .start_timeout(seconds(server.start_seconds))
        .step_timeout(seconds(server.step_seconds));
    Ok((environment, options))
}
