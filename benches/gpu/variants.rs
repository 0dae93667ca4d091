//! XLA's options for GPUs, each on and off: PPO on CartPole, without a peer.

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;

use crate::ppo;
use crate::support::say;

/// Contents of command buffers (CUDA graphs): the default contents, and loops and branches too.
const BUFFERS: &str = "xla.xla_gpu_enable_command_buffer=\"FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION,CONDITIONAL,WHILE\"";

/// Names, and the settings that make the difference.
pub const VARIANTS: [(&str, &[&str]); 6] = [
    ("XLA's defaults", &[]),
    ("no command buffers", &["xla.xla_gpu_enable_command_buffer=\"\""]),
    ("loops and branches in command buffers", &[BUFFERS]),
    (
        "the same, with loops unrolled there",
        &[BUFFERS, "xla.xla_gpu_command_buffer_unroll_loops=true"],
    ),
    ("loop bodies twice", &["xla.xla_gpu_enable_while_loop_double_buffering=true"]),
    (
        "short loops unrolled",
        &["xla.xla_gpu_enable_while_loop_unrolling=\"WHILE_LOOP_UNROLLING_AUTO_UNROLL\""],
    ),
];

#[derive(clap::Args)]
pub struct Options {
    #[arg(long, default_value = "cuda13")]
    platform: String,
    /// Its number in the list.
    #[arg(long)]
    number: usize,
    /// Environments in all.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 4096])]
    environments: Vec<usize>,
}

pub fn run(options: &Options) -> Result<()> {
    let (name, sets) =
        VARIANTS.get(options.number).with_context(|| format!("0 to {}", VARIANTS.len() - 1))?;
    // A share of the memory that is taken at once is a variant too.
    let share = std::env::var("PODRACER_GPU_MEMORY").unwrap_or_default();
    say(&json!({"variant": {"name": name, "settings": sets.join(" "), "memory_at_once": share}}));
    let list: Vec<String> = options.environments.iter().map(ToString::to_string).collect();
    let mut arguments = vec!["ppo".to_owned(), "--alone".to_owned(), "--rounds=1".to_owned()];
    arguments.push(format!("--platform={}", options.platform));
    arguments.push(format!("--environments={}", list.join(",")));
    arguments.extend(sets.iter().map(|set| format!("--set={set}")));
    ppo::run(&Ppo::try_parse_from(arguments)?.options)
}

#[derive(Parser)]
struct Ppo {
    #[command(flatten)]
    options: ppo::Options,
}
