//! From the source to StableHLO: how long each stage takes, and how many equations it leaves: `cargo bench --bench tracing`.
//!
//! PPO on CartPole as `podracer train cartpole-ppo` has it; then chains of up to 100,000 equations, whose time for each must
//! not grow. No device is involved.

#[path = "../support/mod.rs"]
mod support;

use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use podracer_compiler::Func;
use podracer_compiler::transform;
use podracer_dsl::prelude::{Key, Tensor, f32, grad, scan, trace, u32};
use podracer_envs::{CartPole, Environment};
use podracer_runtime::{AnakinLoop, simplify};
use podracer_stdlib::agents::Ppo;
use podracer_stdlib::anakin::AgentLoop;
use serde_json::json;

use support::{Figures, Table, machine, say, time};

/// Times tracing, transforming and lowering of the training loop.
#[derive(Parser)]
struct Options {
    /// Environments of a device.
    #[arg(long, default_value_t = 64)]
    environments: usize,
    /// How often.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Devices.
    #[arg(long, default_value_t = 1)]
    devices: usize,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

const UNROLL: usize = 128;
const UPDATES_PER_CALL: usize = 16;

/// The stages in order, with the time of each and the equations it leaves.
struct Stages {
    names: Vec<&'static str>,
    times: Vec<Figures>,
    equations: Vec<Option<usize>>,
}

impl Stages {
    /// Does a stage and notes how long it took.
    fn time<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<T>,
        equations: impl FnOnce(&T) -> Option<usize>,
    ) -> Result<T> {
        let start = Instant::now();
        let result = work()?;
        let seconds = start.elapsed().as_secs_f64();
        let position = self
            .names
            .iter()
            .position(|known| *known == name)
            .unwrap_or_else(|| {
                self.names.push(name);
                self.times.push(Figures::default());
                self.equations.push(equations(&result));
                self.names.len() - 1
            });
        self.times[position].extend([seconds]);
        Ok(result)
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    say(&machine());
    let environment = CartPole::default();
    let agent = Ppo::new(environment.observation_space(), environment.action_space());
    let agent_loop = AgentLoop::new(environment, agent, options.environments, UNROLL);
    let mut stages = Stages {
        names: Vec::new(),
        times: Vec::new(),
        equations: Vec::new(),
    };
    let equations = |func: &Func| Some(func.eqn_count());
    for _ in 0..options.rounds {
        let init = |key: Key| agent_loop.init(key);
        let traced = stages.time(
            "trace the first state",
            || Ok(trace((u32([2]),), |(bits,)| init(Key::from_words(bits)))?),
            |traced| equations(traced.func()),
        )?;
        let state = traced.results().clone();
        stages.time(
            "trace an update, its gradient included",
            || Ok(trace((state,), |(state,)| agent_loop.update(state))?),
            |traced| equations(traced.func()),
        )?;
        let whole = stages.time(
            "trace both, in the loop of a call",
            || {
                Ok(AnakinLoop::trace(
                    "cartpole_ppo",
                    options.devices,
                    UPDATES_PER_CALL,
                    init,
                    |state| agent_loop.update(state),
                )?)
            },
            |whole| equations(whole.traced().func()),
        )?;
        let func = whole.traced().func();
        let live = stages.time("dead code", || Ok(transform::dce(func)), equations)?;
        stages.time(
            "common subexpressions",
            || Ok(transform::cse(&live)),
            equations,
        )?;
        stages.time("all passes", || Ok(simplify(func)), equations)?;
        let lowered = stages.time(
            "all passes, and StableHLO with its texts",
            || Ok(whole.lower()?),
            |lowered| Some(lowered.module.key().matches("\"stablehlo.").count()),
        )?;
        let bytes = lowered.module.text.len();
        say(
            &json!({ "bench": "tracing", "environments": options.environments, "text_bytes": bytes }),
        );
    }
    let mut table = Table::new(&["stage", "best", "median", "equations or ops left"]);
    for ((name, times), equations) in stages
        .names
        .iter()
        .zip(&stages.times)
        .zip(&stages.equations)
    {
        say(
            &json!({ "bench": "tracing", "stage": name, "best_seconds": times.least(), "median_seconds": times.median(), "equations": equations }),
        );
        table.row([
            (*name).to_owned(),
            time(times.least()),
            time(times.median()),
            equations.map_or_else(String::new, |count| count.to_string()),
        ]);
    }
    table.print("From the source to StableHLO");
    sizes()
}

/// Programs of more and more equations: the time of each stage for one of them.
fn sizes() -> Result<()> {
    let mut table = Table::new(&[
        "equations",
        "trace",
        "vmap",
        "vjp",
        "gradient",
        "through a scan",
    ]);
    for n in [1_000, 10_000, 100_000] {
        let chain = |x: Tensor| {
            (0..n).fold(x, |y, i| match i % 4 {
                0 => y.sin(),
                1 => y * x,
                2 => y + 0.5,
                _ => y.tanh(),
            })
        };
        let mut row = vec![n.to_string()];
        let mut stage = |name: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let start = Instant::now();
            work()?;
            let each = start.elapsed().as_secs_f64() / f64::from(n);
            say(
                &json!({ "bench": "tracing", "equations": n, "stage": name, "seconds_per_equation": each }),
            );
            row.push(format!("{:.1} us", each * 1e6));
            Ok(())
        };
        let plain = trace(f32([3]), chain)?;
        stage("trace", &mut || {
            trace(f32([3]), chain)?;
            Ok(())
        })?;
        stage("vmap", &mut || {
            plain.vmap(8);
            Ok(())
        })?;
        stage("vjp", &mut || {
            transform::vjp(plain.func(), &[true])?;
            Ok(())
        })?;
        let loss = |x: Tensor| chain(x).sum();
        stage("gradient", &mut || {
            trace(f32([3]), |x| grad(x, loss))?;
            Ok(())
        })?;
        let looped = |x: Tensor| scan(x, 0..4, |x, _| (chain(x), ())).0.sum();
        stage("through a scan", &mut || {
            trace(f32([3]), |x| grad(x, looped))?;
            Ok(())
        })?;
        table.row(row);
    }
    table.print("Seconds for one equation, by the size of the program");
    Ok(())
}
