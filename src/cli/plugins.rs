//! `podracer plugins list|install`: the PJRT plugins.

use anyhow::Result;
use clap::Subcommand;
use podracer_plugins::{PLUGINS, PluginError, check, find, spec};

use super::console::Console;
use super::program::FAILURE;
use crate::settings::UsageError;

#[derive(Debug, Subcommand)]
pub(super) enum PluginsCommand {
    /// Print the path of each plugin
    List,
    /// Download a plugin's pinned wheel with pip, check it and unpack it
    Install {
        /// cpu, cuda13 or tpu
        name: String,
    },
}

pub(super) fn list(console: &mut Console<'_>) -> Result<u8> {
    let mut code = 0;
    let mut text = String::new();
    for spec in &PLUGINS {
        let state = match find(spec.name) {
            Ok(plugin) => match check(&plugin) {
                Ok(()) => plugin.library.display().to_string(),
                Err(error) => {
                    code = FAILURE;
                    error.to_string()
                }
            },
            Err(PluginError::NotInstalled { .. }) => "not installed".to_owned(),
            Err(error) => return Err(error.into()),
        };
        text += &format!("{:<7} {:<15} {:<9} {state}\n", spec.name, spec.package, spec.version);
    }
    console.print(&text)?;
    Ok(code)
}

pub(super) fn install(name: &str, console: &mut Console<'_>) -> Result<u8> {
    let spec = spec(name).map_err(|error| UsageError::new(error.to_string()))?;
    let missing = matches!(find(name), Err(PluginError::NotInstalled { .. }));
    if missing {
        console.say(&format!("installing {} {} with pip", spec.package, spec.version));
    }
    let plugin = podracer_plugins::install(name)?;
    console.print(&format!("{name} {}\n", plugin.library.display()))?;
    Ok(0)
}
