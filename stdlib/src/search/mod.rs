//! Monte Carlo tree search in the DSL: MuZero and related searches, with the names, arguments,
//! defaults and values of mctx.
//!
//! A search explores `B` roots side by side. Its model is a closure, `recurrent_fn`: a step of a
//! learned model, or of an environment itself. The trees have fixed extents, one node per
//! simulation, and a search is an ordinary loop of a program. It works under `vmap`, in `scan`, in
//! Anakin and in Sebulba.
//!
//! ```
//! use podracer_dsl::prelude::*;
//! use podracer_rl::search::*;
//!
//! let spec = (key(), f32([8, 4]), f32([8]), f32([8, 16]));
//! let program = trace(spec, |(key, prior_logits, value, embedding)| {
//!     let root = RootFnOutput { prior_logits, value, embedding };
//!     let model = |_key, action: Tensor, embedding: Tensor| {
//!         let embedding = (embedding + action.astype(F32).expand_dims(1)).tanh();
//!         let output = RecurrentFnOutput {
//!             reward: embedding.index_axis(1, 0),
//!             discount: full([8], 0.99),
//!             prior_logits: embedding.slice((.., ..4)),
//!             value: embedding.mean_axis(1),
//!         };
//!         (output, embedding)
//!     };
//!     let output = muzero_policy(key, root, model, 16, None, &MuZeroOptions::default());
//!     (output.action, output.search_tree.summary().value)
//! })?;
//! # assert_eq!(program.results().to_string(), "{0: i32[8], 1: f32[8]}");
//! # Ok::<(), TraceErrors>(())
//! ```
//!
//! # Invariants
//! - With mctx's keys a search visits the same nodes as mctx, with the same values except for
//!   rounding.
//! - A simulation copies no data with a size that grows with the number of simulations.

mod alphazero;
mod base;
mod custom;
mod dense;
mod drawing;
mod fold;
mod icicle;
mod levels;
mod mistakes;
mod node;
mod noise;
mod plain;
mod policies;
mod qtransform;
mod reuse;
mod rows;
mod selection;
mod seq_halving;
mod simulate;
mod stochastic;
mod tree;

pub use alphazero::{EnvironmentState, SearchOptions, alphazero_policy};
pub use base::{PolicyOutput, RecurrentFnOutput, RootFnOutput};
pub use custom::{
    gumbel_muzero_interior_action_selection, gumbel_muzero_root_action_selection,
    muzero_action_selection, search,
};
pub use drawing::TreePicture;
pub use node::Node;
pub use plain::PlainMcts;
pub use policies::{
    GumbelMuZeroOptions, MuZeroOptions, gumbel_muzero_policy, muzero_policy, muzero_policy_from,
};
pub use qtransform::{
    QTransform, qtransform_by_min_max, qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
};
pub use simulate::{LoopBody, SearchState};
pub use stochastic::{
    ChanceRecurrentFnOutput, DecisionRecurrentFnOutput, StochasticRecurrentState,
    stochastic_muzero_policy,
};
pub use tree::{SearchSummary, SearchTree};
