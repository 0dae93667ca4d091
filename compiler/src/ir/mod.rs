//! The intermediate representation: functions of equations in static single assignment.
//!
//! # Invariants
//! - A `Var` is an index into its own function's type table and means nothing in another function.
//! - A variable is a parameter or the output of exactly one equation, and is defined before it is used.
//! - The types of an equation's outputs are the result of its op's `infer` on its inputs.

mod builder;
mod func;
mod loc;
mod verify;
mod watch;

pub use builder::Builder;
pub use func::{Batched, Eqn, Func, Slope, Slopes, Var, Vars};
pub use loc::{Call, Loc};
pub use verify::{VerifyError, verify};
pub use watch::{NotFinite, Source, Values, Watched, Watcher};
