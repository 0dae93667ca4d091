//! Sebulba: how acting and learning overlap, and how fast a whole run is beside Cleanba's schedule in JAX:
//! `cargo bench --bench sebulba`.

mod beside;
mod overlap;
#[path = "../support/mod.rs"]
mod support;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use support::{machine, say};

/// Times Sebulba.
#[derive(Parser)]
struct Options {
    /// What to measure; both by default.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// How often everything is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    overlap: overlap::OverlapOptions,
    #[command(flatten)]
    beside: beside::BesideOptions,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// More threads on an actor device, in environments as slow as inference.
    Overlap,
    /// PPO on Gymnasium's CartPole, beside JAX.
    Beside,
}

fn main() -> Result<()> {
    let options = Options::parse();
    say(&machine());
    let wanted = |part| options.only.is_none_or(|only| only == part);
    if wanted(Part::Overlap) {
        overlap::run(&options.overlap, options.rounds)?;
    }
    if wanted(Part::Beside) {
        beside::run(&options.beside, options.rounds)?;
    }
    Ok(())
}
