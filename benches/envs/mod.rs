//! Random-policy stepping with automatic resets, compared with gymnax; for boards with pgx and
//! jumanji, for MiniGrid with navix, and for Craftax-Classic with craftax.

mod stepping;

use anyhow::Result;
use clap::Parser;
use podracer_envs::{AnyEnvironment, Environment, builtin_environments};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{
    Figures, KIT, Peer, Table, Turns, bytes, compile_seconds, machine, number, open, say, si,
    speeds, time,
};
use stepping::{Shape, Stepping};

/// Least ratio of our speed to the peer's.
const TARGET: f64 = 10.0;

/// A built-in environment, and the package with its rules.
fn builtin(name: &str) -> Result<(AnyEnvironment, &'static str)> {
    macro_rules! named {
        ($($environment:ty, $name:literal $package:literal $licence:literal;)*) => {
            match name {
                $($name => Ok((as_the_peer::<$environment>($package)?, $package)),)*
                _ => anyhow::bail!("no environment `{name}`: there are {}", [$($name),*].join(", ")),
            }
        };
    }
    builtin_environments!(named)
}

/// An environment with the settings of the peer's: navix shows numbers, and its episodes have at most 100 steps.
fn as_the_peer<E>(package: &str) -> Result<AnyEnvironment>
where
    E: Environment<Observation = podracer_dsl::Tensor> + Default + Serialize + DeserializeOwned,
{
    let mut settings = serde_json::to_value(E::default())?;
    if package == "minigrid"
        && let Value::Object(settings) = &mut settings
    {
        settings.extend([("view".into(), json!("symbolic")), ("time_limit".into(), json!(100))]);
    }
    Ok(AnyEnvironment::new(serde_json::from_value::<E>(settings)?))
}

/// Packages with environments to compare.
struct Others {
    /// The name of their Python.
    python: &'static str,
    requirements: &'static str,
    script: &'static str,
}

/// The peer of the environments with the rules of a package.
fn others(package: &str) -> Others {
    match package {
        "pgx" | "jumanji" => Others {
            python: "golden-boards",
            requirements: "tests/golden/requirements-boards.txt",
            script: "random_boards.py",
        },
        "minigrid" => Others {
            python: "peer-minigrid",
            requirements: "benches/peer/requirements-minigrid.txt",
            script: "random_minigrid.py",
        },
        "craftax" => Others {
            python: "golden-craftax",
            requirements: "tests/golden/requirements-craftax.txt",
            script: "random_craftax.py",
        },
        _ => Others {
            python: "peer",
            requirements: "benches/peer/requirements.txt",
            script: "random_stepping.py",
        },
    }
}

/// Times random-policy stepping, compared with gymnax, pgx, jumanji, navix and craftax.
#[derive(Parser)]
pub struct Options {
    /// `cpu` or `cuda13`.
    #[arg(long, default_value = "cpu")]
    platform: String,
    /// Environments in all.
    #[arg(long, value_delimiter = ',', default_values_t = [1024, 4096])]
    environments: Vec<usize>,
    /// Names of built-in environments: `cartpole`, `minatar-breakout`, `minigrid-empty`.
    #[arg(long, value_delimiter = ',', default_values_t = ["cartpole".to_owned(), "catch".to_owned()])]
    envs: Vec<String>,
    /// Steps of every environment of ours in a run; the peer's do a tenth.
    #[arg(long, default_value_t = 20_480)]
    steps: usize,
    /// CPU devices; one per core by default.
    #[arg(long)]
    devices: Option<usize>,
    #[command(flatten)]
    turns: Turns,
}

pub fn run(options: &Options) -> Result<()> {
    say(&machine());
    let platform = options.platform.as_str();
    let client = open(platform, options.devices)?;
    let mut table = Table::new(&[
        "environment",
        "environments",
        "devices",
        "ours best / median",
        "peer best / median",
        "ratio of bests",
        "of medians",
        "compile ours / peer",
        "mean return ours / peer",
    ]);
    for name in &options.envs {
        let (environment, package) = builtin(name)?;
        let others = others(package);
        for &environments in &options.environments {
            let peer = match options.turns.alone {
                true => None,
                false => Some(Peer::with(platform, others.python, others.requirements)?),
            };
            let shape = Shape { environments, steps: options.steps };
            let ours = Stepping::compile(&client, environment.clone(), shape)?;
            if options.turns.hlo {
                eprintln!("{}", ours.hlo()?);
            }
            // The first run touches its memory for the first time.
            ours.run(0)?;
            let [mut speed, mut peers, mut peer_compile, mut returns, mut peer_returns] =
                std::array::from_fn(|_| Figures::default());
            let [mut peer_bytes, mut peer_kernels] = std::array::from_fn(|_| Figures::default());
            let run = |number| {
                let run = ours.run(number)?;
                let steps_per_second = ours.env_steps() as f64 / run.seconds;
                speed.extend([steps_per_second]);
                returns.extend([run.mean_return]);
                say(&json!({
                    "bench": "envs", "environment": name, "environments": environments, "devices": ours.devices(), "env_steps": ours.env_steps(),
                    "run_seconds": run.seconds, "steps_per_second": steps_per_second, "mean_return": run.mean_return,
                    "compile_seconds": ours.compile_seconds(),
                }));
                Ok(())
            };
            options.turns.take(run, || {
                let Some(peer) = &peer else { return Ok(()) };
                let steps = (options.steps / 10).max(1);
                let line = peer.run(
                    others.script,
                    &[
                        format!("--env={}", name.trim_start_matches("minatar-")),
                        format!("--num-envs={environments}"),
                        format!("--steps={steps}"),
                        format!("--repeats={}", options.turns.repeats),
                    ],
                )?;
                peers.extend(speeds(&line)?);
                peer_bytes.extend([number(&line, "bytes")?]);
                peer_kernels.extend([number(&line, "kernels")? / steps as f64]);
                peer_returns.extend([number(&line, "mean_return")?]);
                peer_compile.extend([compile_seconds(&line)?]);
                Ok(())
            })?;
            if KIT {
                let kernels = ours.hlo()?.kernels() as f64 / ours.steps() as f64;
                say(&json!({"row": {
                    "program": format!("random steps in {name}"), "environments": environments, "settings": "",
                    "ours": speed.greatest(), "peer": peers.greatest(), "ours_all": speed.all(), "peer_all": peers.all(),
                    "ours_compile": ours.compile_seconds(), "peer_compile": peer_compile.least(),
                    "ours_bytes": bytes(ours.compiled())?, "peer_bytes": peer_bytes.least(),
                    "ours_kernels": kernels, "peer_kernels": peer_kernels.least(),
                }}));
            }
            let shown = [name.clone(), environments.to_string(), ours.devices().to_string()];
            let rest = [
                format!("{} / {}", time(ours.compile_seconds()), time(peer_compile.least())),
                format!("{:.3} / {:.3}", returns.median(), peer_returns.median()),
            ];
            table.row(shown.into_iter().chain(speed.beside(&peers, TARGET, si)).chain(rest));
        }
    }
    table.print("Random-policy stepping, environment steps a second");
    Ok(())
}
