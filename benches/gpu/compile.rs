//! Training loops compiled for an H100 that is described to the plugin: what can be known of a GPU without one.

use std::time::Instant;

use anyhow::{Context, Result};
use podracer::experiments;
use podracer::loading::{Overrides, load};
use podracer_runtime::{CompileOptions, NamedValue, OptionValue, Plugin, Topology};
use serde_json::json;

use crate::support::{Table, bytes, say, time};
use crate::variants::VARIANTS;

/// An H100 as XLA describes it.
const H100: &str = include_str!("../../runtime/tests/h100.txt");

/// Experiment, environments in all and steps of a rollout.
const LOOPS: [(&str, usize, usize); 6] = [
    ("cartpole-ppo", 64, 128),
    ("cartpole-ppo", 4096, 128),
    ("cartpole-ppo", 65_536, 128),
    ("catch-online", 4096, 32),
    ("catch-ppo", 4096, 32),
    ("cartpole-muzero", 64, 1),
];

#[derive(clap::Args)]
pub struct Options {
    /// Folder of a CUDA toolkit, or of NVIDIA's wheels (`nvidia/cu13`): its assembler and library of device functions.
    #[arg(long)]
    cuda: String,
    /// The experiments with loops to compile; all by default.
    #[arg(long, value_delimiter = ',')]
    experiments: Vec<String>,
    /// More settings, as `podracer train --set`.
    #[arg(long, value_name = "TABLE.KEY=VALUE")]
    set: Vec<String>,
}

pub fn run(options: &Options) -> Result<()> {
    let text = |name: &str, value: &str| (name.to_owned(), NamedValue::String(value.to_owned()));
    let machine = [text("target_config", H100), text("topology", "1x1x1")];
    let topology = Topology::new(Plugin::load("cuda13")?, "h100", &machine)?;
    let mut table = Table::new(&[
        "loop",
        "environments",
        "options",
        "to compile",
        "kernels in a step of all environments, learning included",
        "loops; of unknown length",
        "bytes",
    ]);
    let wanted = |name: &str| {
        options.experiments.is_empty() || options.experiments.iter().any(|one| one == name)
    };
    for (experiment, environments, unroll) in LOOPS.into_iter().filter(|(name, ..)| wanted(name)) {
        let variants = if environments == 4096 && experiment == "cartpole-ppo" {
            &VARIANTS[..]
        } else {
            &VARIANTS[..1]
        };
        for (name, sets) in variants {
            let shaped = [
                format!("anakin.environments={environments}"),
                "anakin.iterations_per_call=1".to_owned(),
                "train.platform=cuda13".to_owned(),
            ];
            let sets = sets.iter().map(|&set| set.to_owned()).chain(options.set.iter().cloned());
            let set = shaped.into_iter().chain(sets).collect();
            let settings = load(experiment, &Overrides { set, ..Overrides::default() })?;
            let training = experiments::build(&settings)?;
            let module = training.modules(1)?.remove(0).module;
            let mut xla = settings.xla_options(training.xla_options("cuda"));
            let folder = OptionValue::String(options.cuda.clone());
            xla.push(("xla_gpu_cuda_data_dir".to_owned(), folder));
            let start = Instant::now();
            let compiled = topology
                .compile(&module, &CompileOptions { xla, ..CompileOptions::default() })
                .with_context(|| format!("compiling {experiment} with {name}"))?;
            let seconds = start.elapsed().as_secs_f64();
            let optimized = compiled.optimized()?;
            let kernels = optimized.kernels() as f64 / unroll as f64;
            let loops = optimized.loops();
            let unknown = loops.iter().filter(|one| one.iterations.is_none()).count();
            let bytes = bytes(&compiled)?;
            say(&json!({"compiled": {
                "experiment": experiment, "environments": environments, "options": name, "seconds": seconds,
                "kernels": kernels, "loops": loops.len(), "unknown": unknown, "bytes": bytes,
            }}));
            table.row([
                experiment.to_owned(),
                environments.to_string(),
                (*name).to_owned(),
                time(seconds),
                format!("{kernels:.1}"),
                format!("{}; {unknown}", loops.len()),
                bytes.to_string(),
            ]);
        }
    }
    table.print("Compiled for an H100 that is not there");
    Ok(())
}
