//! Central inference: its results, the owners of its lanes, and its end.

mod changes;
mod equality;
mod faults;
mod lanes;
mod late;

use podracer::central::CentralInference;
use podracer_dsl::Tensor;
use podracer_rl::learn::Learn;
use podracer_runtime::setters::*;
use podracer_runtime::{ExecutableCache, XlaOptions};

/// Quickly compiled, and nothing cached.
fn quick<A: Learn<Observation = Tensor>>(seed: CentralInference<A>) -> CentralInference<A> {
    seed.xla(XlaOptions::unoptimized().to_vec()).cache(ExecutableCache::disabled()).patience(60)
}
