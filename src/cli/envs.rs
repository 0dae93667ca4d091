//! `podracer envs list|install`: the Python packages of environments.

use anyhow::Result;
use clap::Subcommand;
use podracer_plugins::{PACKAGE_SETS, PluginError, package_set};

use super::console::Console;
use crate::settings::UsageError;

#[derive(Debug, Subcommand)]
pub(super) enum EnvsCommand {
    /// Print the path of each set of packages
    List,
    /// Install a set of packages, in pinned versions, with pip
    Install {
        /// gymnasium, atari, box2d, mujoco or envpool
        name: String,
    },
}

pub(super) fn list(console: &mut Console<'_>) -> Result<u8> {
    let mut text = String::new();
    for set in &PACKAGE_SETS {
        let state = match set.find() {
            Ok(python) => python.display().to_string(),
            Err(PluginError::PackagesMissing { problem, .. }) => problem.to_owned(),
            Err(error @ PluginError::OthersCanWrite { .. }) => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        text += &format!("{:<9} {:<36} {state}\n", set.name, set.about);
    }
    console.print(&text)?;
    Ok(0)
}

pub(super) fn install(name: &str, console: &mut Console<'_>) -> Result<u8> {
    let set = package_set(name).map_err(|error| UsageError::new(error.to_string()))?;
    if set.find().is_err() {
        let packages = set.packages.join(" ");
        console.say(&format!("installing {packages} with pip"));
    }
    let python = set.install()?;
    console.print(&format!("{name} {}\n", python.display()))?;
    Ok(0)
}
