//! Transforms from function to function. They match on rules, never on op names, and compose in any order.

mod context;
mod cse;
mod dce;
mod differentiate;
mod inline;
mod join;
mod launches;
pub mod passes;
mod transpose;
mod vmap;

pub use context::{Mode, TransformError, VmapContext};
pub use cse::cse;
pub(crate) use cse::map_bodies;
pub use dce::dce;
pub(crate) use dce::needed;
pub use differentiate::{Linearized, Vjp, jvp, jvp_with, linearize, linearize_with, vjp};
pub(crate) use differentiate::{deal, given, instantiate, with_given};
pub use inline::{inline_calls, runs, settle};
pub use join::join;
pub use launches::{launch_less, settle_launched};
pub use transpose::transpose;
pub use vmap::vmap;

#[cfg(test)]
mod tests;
