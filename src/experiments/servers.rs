//! Environments that servers have, as what an agent learns in.

use std::time::Duration;

use anyhow::Result;
use podracer_envs::host::server::{ServerOptions, Servers};
use podracer_envs::host::{HostEnvironment, HostSpec};

use super::on_host;
use super::sebulba::Hosts;
use crate::settings::{ServerSettings, Settings};

/// The batches of `[environment]`, by an interpreter that has these packages. A server of one environment is asked what it
/// shows and takes.
pub fn hosts(settings: &Settings, packages: &str, server: &ServerSettings) -> Result<Hosts> {
    let python = match &server.python[..] {
        "" => podracer_plugins::package_set(packages)?.find()?,
        python => python.into(),
    };
    let shape = on_host(settings)?;
    let environments = shape.environments;
    let seconds = |seconds: usize| Duration::from_secs(seconds as u64);
    let options = ServerOptions::new(python, &settings.environment)?
        .restarts(server.restarts)
        .start_timeout(seconds(server.start_seconds))
        .step_timeout(seconds(server.step_seconds));
    let one = Servers::start(&options, 1)?;
    tracing::info!("environments: {}", one.about().collect::<Vec<_>>().join(", "));
    let spec = HostSpec { environments, ..one.spec().clone() };
    let options = options.servers(server.servers);
    Ok(Hosts::new(shape, spec, move || Ok(Servers::start(&options, environments)?)))
}
