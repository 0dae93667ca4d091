//! Sebulba: the overlap of acting and learning, and whole runs compared with Cleanba's schedule in
//! JAX and with their parts alone: `cargo bench --bench sebulba`.

mod atari;
mod beside;
mod experiment;
mod learners;
mod overlap;
mod pixels;
#[path = "../support/mod.rs"]
mod support;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use support::{machine, say};

/// Times Sebulba.
#[derive(Parser)]
struct Options {
    /// Parts to measure; all of them by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Number of times that everything is measured.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    overlap: overlap::OverlapOptions,
    #[command(flatten)]
    beside: beside::BesideOptions,
    #[command(flatten)]
    learners: learners::LearnersOptions,
    #[command(flatten)]
    pixels: pixels::PixelOptions,
    #[command(flatten)]
    atari: atari::AtariOptions,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// More threads on an actor device, in environments as slow as inference.
    Overlap,
    /// One to six learner devices; the learner's waiting as actors are added.
    Learners,
    /// PPO on Gymnasium's CartPole, compared with JAX.
    Beside,
    /// V-trace on pixel Catch, compared with JAX.
    Pixels,
    /// PPO on Pong, compared with its parts.
    Atari,
}

fn main() -> Result<()> {
    let options = Options::parse();
    say(&machine());
    let rounds = options.rounds;
    let all = Part::value_variants();
    let parts = if options.only.is_empty() { all } else { &options.only };
    for part in parts {
        match part {
            Part::Overlap => overlap::run(&options.overlap, rounds)?,
            Part::Learners => learners::run(&options.learners, rounds)?,
            Part::Beside => beside::run(&options.beside, rounds)?,
            Part::Pixels => pixels::run(&options.pixels, rounds)?,
            Part::Atari => atari::run(&options.atari, rounds)?,
        }
    }
    Ok(())
}
