//! From the source to StableHLO: how long each stage takes, and how many equations it leaves: `cargo bench --bench tracing`.
//!
//! PPO on CartPole as in `podracer train cartpole-ppo`; then chains of up to 100,000 equations and
//! their transforms, with a time per equation that must not grow, compared with JAX's. No device is
//! involved.

#[path = "../support/mod.rs"]
mod support;

use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use podracer_compiler::Func;
use podracer_compiler::simplify::{Options as Simplify, simplify};
use podracer_compiler::transform;
use podracer_dsl::prelude::{
    Key, Save, Tensor, TraceErrors, checkpoint, f32, grad, scan, trace, u32, vmap,
};
use podracer_envs::{CartPole, Environment};
use podracer_rl::agents::Ppo;
use podracer_rl::anakin::AgentLoop;
use podracer_runtime::AnakinLoop;
use serde_json::{Value, json};

use support::{Figures, Peer, Table, machine, say, time};

/// Times tracing, transforming and lowering of the training loop.
#[derive(Parser)]
struct Options {
    /// Environments of a device.
    #[arg(long, default_value_t = 64)]
    environments: usize,
    /// Number of times that everything is measured.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Equations of the chains.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000])]
    sizes: Vec<usize>,
    /// Without the peer.
    #[arg(long)]
    alone: bool,
    /// Number of devices.
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
        let position = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
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
    let mut stages = Stages { names: Vec::new(), times: Vec::new(), equations: Vec::new() };
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
            "trace an iteration, its gradient included",
            || Ok(trace((state,), |(state,)| agent_loop.iterate(state))?),
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
                    |state| agent_loop.iterate(state),
                )?)
            },
            |whole| equations(whole.traced().func()),
        )?;
        let func = whole.traced().func();
        let live = stages.time("dead code", || Ok(transform::dce(func)), equations)?;
        stages.time("common subexpressions", || Ok(transform::cse(&live)), equations)?;
        stages.time("all passes", || Ok(simplify(func, &Simplify::default())), equations)?;
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
    for ((name, times), equations) in stages.names.iter().zip(&stages.times).zip(&stages.equations)
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
    sizes(&options)
}

/// A chain of operations and its transforms, with growing numbers of equations: the time per
/// equation, compared with JAX's.
fn sizes(options: &Options) -> Result<()> {
    let sizes = &options.sizes;
    let mut ours: Vec<(&str, Vec<f64>)> = Vec::new();
    for &n in sizes {
        let chain = |x: Tensor| {
            (0..n).fold(x, |y, i| match i % 4 {
                0 => y.sin(),
                1 => y * x,
                2 => y + 0.5,
                _ => y.tanh(),
            })
        };
        let looped = |x: Tensor| scan(x, 0..4, |x, _| (chain(x), ())).0.sum();
        let recomputed = |x: Tensor| checkpoint(Save::Nothing, x, chain).sum();
        let one = |f: &dyn Fn(Tensor) -> Tensor| {
            trace(f32([3]), f).map(|traced| traced.func().eqn_count())
        };
        let many = |f: &dyn Fn(Tensor) -> Tensor| {
            trace(f32([8, 3]), f).map(|traced| traced.func().eqn_count())
        };
        type Program<'a> = &'a dyn Fn() -> Result<usize, TraceErrors>;
        let programs: [(&str, Program<'_>); 6] = [
            ("trace", &|| one(&chain)),
            ("vmap", &|| many(&|x| vmap(x, chain))),
            ("gradient", &|| one(&|x| grad(x, |x| chain(x).sum()))),
            ("gradient of a vmap", &|| many(&|x| grad(x, |x| vmap(x, chain).sum()))),
            ("gradient of a scan", &|| one(&|x| grad(x, looped))),
            ("gradient of a checkpoint", &|| one(&|x| grad(x, recomputed))),
        ];
        for (position, (name, program)) in programs.into_iter().enumerate() {
            let mut times = Figures::default();
            // The largest take seconds.
            for _ in 0..if n < 100_000 { 3 } else { 1 } {
                let start = Instant::now();
                let equations = program()?;
                times.extend([start.elapsed().as_secs_f64()]);
                ensure!(equations >= n, "{name}: {equations} equations of {n}");
            }
            if ours.len() == position {
                ours.push((name, Vec::new()));
            }
            ours[position].1.push(times.least() / n as f64);
        }
    }
    let theirs = match options.alone {
        true => None,
        false => {
            let sizes = sizes.iter().map(usize::to_string);
            let arguments: Vec<String> =
                std::iter::once("--sizes".to_owned()).chain(sizes).collect();
            Some(Peer::prepare("cpu")?.run("tracing.py", &arguments)?)
        }
    };
    let mut table = Table::new(&["program", "whose", "by equations", "last to first"]);
    for (name, ours) in ours {
        let mut row = |whose: &str, each: &[f64]| {
            let figures: Vec<String> = (sizes.iter().zip(each))
                .map(|(n, seconds)| format!("{n}: {:.1} us", seconds * 1e6))
                .collect();
            let growth = each[each.len() - 1] / each[0];
            table.row([
                name.to_owned(),
                whose.to_owned(),
                figures.join(", "),
                format!("{growth:.2}"),
            ]);
        };
        say(
            &json!({ "bench": "tracing", "program": name, "sizes": sizes, "seconds_per_equation": ours }),
        );
        row("podracer", &ours);
        if let Some(theirs) = &theirs {
            let each = theirs["seconds_per_equation"][name].as_array();
            let each: Vec<f64> = each.into_iter().flatten().filter_map(Value::as_f64).collect();
            ensure!(each.len() == sizes.len(), "no figures of `{name}` in {theirs}");
            row("JAX", &each);
        }
    }
    table.print("Tracing and transforms, for one equation");
    Ok(())
}
