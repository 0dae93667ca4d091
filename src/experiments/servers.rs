//! Environments that servers have, as what an agent learns in.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, HostSpec};

use super::on_host;
use super::sebulba::Hosts;
use crate::settings::{ServerSettings, Settings};

/// Which packages a server has, by what `podracer envs install` calls them, and the interpreter.
pub fn python(packages: &str, server: &ServerSettings) -> Result<PathBuf> {
    if server.python.is_empty() {
        return Ok(podracer_plugins::package_set(packages)?.find()?);
    }
    Ok(server.python.clone().into())
}

/// The batches of `[environment]`. A server of one environment is asked what it shows and takes.
pub fn hosts(settings: &Settings, python: PathBuf, server: &ServerSettings) -> Result<Hosts> {
    let shape = on_host(settings)?;
    let environments = shape.environments;
    let seconds = |seconds: usize| Duration::from_secs(seconds as u64);
    let options = ServerOptions::new(python, &settings.environment)?
        .restarts(server.restarts)
        .start_timeout(seconds(server.start_seconds))
        .step_timeout(seconds(server.step_seconds));
    let one = Servers::start(&options, 1)?;
    tracing::info!(
        "environments: {}",
        one.about().collect::<Vec<_>>().join(", ")
    );
    let spec = HostSpec {
        environments,
        ..one.spec().clone()
    };
    let options = options.servers(server.servers);
    Ok(Hosts::new(shape, spec, move || {
        Ok(Servers::start(&options, environments)?)
    }))
}
