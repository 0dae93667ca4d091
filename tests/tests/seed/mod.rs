//! Central inference: what it computes, whose lanes are whose, and how it ends.

mod changes;
mod equality;
mod faults;
mod lanes;

use std::time::Duration;

use podracer::seed::SeedRl;
use podracer_dsl::Tensor;
use podracer_runtime::{ExecutableCache, XlaOptions};
use podracer_stdlib::agents::Learn;

/// Quickly compiled, and nothing cached.
fn quick<A: Learn<Observation = Tensor>>(seed: SeedRl<A>) -> SeedRl<A> {
    seed.xla(XlaOptions::unoptimized().to_vec())
        .cache(ExecutableCache::disabled())
        .patience(Duration::from_secs(60))
}
