//! Tracing: a Rust function of tensors runs once and produces a program.

pub(crate) mod entry;
mod error;
mod scope;
pub(crate) mod state;
mod traced;

pub use error::{Note, TraceError, TraceErrors, Warning};
pub(crate) use scope::called_opaquely;
pub use scope::{Called, Helper, Part, Scope, called, called_from, helper, part, scope};
pub use traced::{EvalError, Traced, eval_shape, trace, trace_replicated};
