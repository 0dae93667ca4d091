//! Tracing: a Rust function of tensors runs once and leaves a program.

pub(crate) mod entry;
mod error;
mod scope;
pub(crate) mod state;
mod traced;

pub use error::{Note, TraceError, TraceErrors, Warning};
pub use scope::{Helper, Part, Scope, called_from, helper, part, scope};
pub use traced::{EvalError, Traced, eval_shape, trace, trace_replicated};
