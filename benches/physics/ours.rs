//! Ours: random-policy stepping of one built-in environment, in a process of its own.

use std::path::Path;
use std::process;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use podracer_envs::{AnyEnvironment, builtin_environments};
use podracer_runtime::{ExecutableCache, ProgramOptions};
use podracer_sampler::Sampler;
use serde_json::json;

use crate::Options;
use crate::stepping::{Shape, Stepping};
use crate::support::{open, say};

/// The built-in environment `mujoco-NAME`, with default settings.
fn builtin(name: &str) -> Result<AnyEnvironment> {
    macro_rules! named {
        ($($environment:ty, $name:literal $package:literal $licence:literal;)*) => {
            match format!("mujoco-{name}").as_str() {
                $($name => Ok(AnyEnvironment::new(<$environment>::default())),)*
                other => bail!("no environment `{other}`"),
            }
        };
    }
    builtin_environments!(named)
}

/// Compiles with podracer's default options, or loads the executable, and makes the runs. Prints their line of JSON.
pub fn measure(options: &Options, executables: &Path) -> Result<()> {
    let (Some(name), Some(&environments)) = (options.envs.first(), options.environments.first())
    else {
        bail!("an environment and a number of environments");
    };
    let client = open("cpu", Some(options.devices))?;
    let process = Sampler::new(process::id())?;
    let cpu_seconds = || anyhow::Ok(process.cpu_time()?.as_secs_f64());
    let spent = cpu_seconds()?;
    let shape = Shape { environments, steps: options.steps };
    // No other program has this folder.
    let cached = executables.exists();
    let cache = ExecutableCache::at(executables, u64::MAX);
    let of_program = ProgramOptions { cache, ..ProgramOptions::default() };
    let ours = Stepping::compile_with(&client, builtin(name)?, shape, of_program)?;
    let compile_cpu_seconds = cpu_seconds()? - spent;
    if options.turns.hlo {
        eprintln!("{}", ours.hlo()?);
    }
    // The first run touches its memory for the first time.
    ours.run(options.seed)?;
    let (mut run_seconds, mut run_cpu_seconds) = (Vec::new(), Vec::new());
    for repeat in 0..options.turns.repeats as u64 {
        let (start, spent) = (Instant::now(), cpu_seconds()?);
        ours.run(options.seed + repeat)?;
        run_seconds.push(start.elapsed().as_secs_f64());
        run_cpu_seconds.push(cpu_seconds()? - spent);
    }
    say(&json!({
        "bench": "physics", "env": name, "num_envs": environments, "devices": ours.devices(),
        "env_steps": ours.env_steps(), "run_seconds": run_seconds, "run_cpu_seconds": run_cpu_seconds,
        "compile_seconds": ours.compile_seconds(), "compile_cpu_seconds": compile_cpu_seconds,
        "cached": cached, "peak_bytes": peak_memory()?,
    }));
    Ok(())
}

/// The greatest memory that the process has used, in bytes.
fn peak_memory() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(number.context("no peak of the memory in /proc/self/status")? * 1024)
}
