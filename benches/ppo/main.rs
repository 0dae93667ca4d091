//! `cargo bench --bench ppo`, or `make bench`.

#[path = "mod.rs"]
mod ppo;
#[path = "../support/mod.rs"]
mod support;

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    ppo::run(&ppo::Options::parse())
}
