//! `cargo bench --bench envs`, or `make bench-envs`.

#[path = "mod.rs"]
mod envs;
#[path = "../support/mod.rs"]
mod support;

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    envs::run(&envs::Options::parse())
}
