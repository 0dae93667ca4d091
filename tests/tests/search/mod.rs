//! Searches on XLA: equal to mctx's, node by node, and under transforms.

mod alphazero;
mod blocks;
mod chance;
mod golden;
mod memory;
mod models;
mod transforms;
mod trees;

use podracer_compiler::Func;
use podracer_compiler::simplify::{Options, simplify};

/// The function with the ways of a search by loops or (`launches`) without.
fn with_ways(func: &Func, launches: bool) -> Func {
    let mut options = Options::default();
    options.launches = launches;
    simplify(func, &options)
}
