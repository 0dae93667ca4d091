//! `cargo bench --bench search`.

#[path = "mod.rs"]
mod search;
#[path = "../support/mod.rs"]
mod support;

use anyhow::Result;
use clap::Parser;

fn main() -> Result<()> {
    search::run(&search::Options::parse())
}
