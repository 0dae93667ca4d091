//! `podracer-plugins install NAME | list [--verify] | environments NAME`: the command that
//! `make setup` and continuous integration run before the tests.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use podracer_plugins::{PLUGINS, PluginError, check, find, install, package_set, verify};

const USAGE: &str = "usage: podracer-plugins install NAME | list [--verify] | environments NAME";

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<ExitCode, Box<dyn Error>> {
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["install", name] => {
            let plugin = install(name)?;
            writeln!(io::stdout(), "{} {}", plugin.spec.name, plugin.library.display())?;
            Ok(ExitCode::SUCCESS)
        }
        ["environments", name] => {
            let python = package_set(name)?.install()?;
            writeln!(io::stdout(), "{name} {}", python.display())?;
            Ok(ExitCode::SUCCESS)
        }
        ["list"] => list(false),
        ["list", "--verify"] => list(true),
        _ => Err(USAGE.into()),
    }
}

/// Prints each plugin's state; fails if one is corrupt.
fn list(by_hash: bool) -> Result<ExitCode, Box<dyn Error>> {
    let mut code = ExitCode::SUCCESS;
    for spec in &PLUGINS {
        let state = match find(spec.name) {
            Ok(plugin) => match if by_hash { verify(&plugin) } else { check(&plugin) } {
                Ok(()) => plugin.library.display().to_string(),
                Err(error) => {
                    code = ExitCode::FAILURE;
                    error.to_string()
                }
            },
            Err(PluginError::NotInstalled { .. }) => "not installed".to_owned(),
            Err(error) => return Err(error.into()),
        };
        writeln!(io::stdout(), "{:<7} {} {:<9} {state}", spec.name, spec.package, spec.version)?;
    }
    Ok(code)
}
