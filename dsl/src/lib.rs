//! The language for user programs: tensors, trees of tensors, and combinators. Running a Rust
//! function of tensors once produces a program in the compiler's IR; see [`trace()`].
//!
//! ```
//! use podracer_dsl::prelude::*;
//!
//! let step = trace((f32([3]), key()), |(x, key)| {
//!     let noise = key.normal([3]);
//!     let (loss, slope) = value_and_grad(x, |x| (x + 0.1 * noise).square().mean());
//!     (x - 0.5 * slope, loss)
//! })?;
//! println!("{step}");
//! # Ok::<(), TraceErrors>(())
//! ```
//!
//! # Invariants
//! - Everything happens while tracing: no value is known, and nothing here touches a device.
//! - A user's mistake is an error with the user's line, never a panic: an invalid op returns a
//!   poisoned handle, and [`trace()`] returns all errors.
//! - Tracing is deterministic: the same closure and the same types give the same program.
#![forbid(unsafe_code)]

// The derive names this crate; its own tests use the derive too.
extern crate self as podracer_dsl;

pub mod collective;
pub mod control;
pub mod debug;
pub mod diff;
pub mod dtype;
pub mod key;
mod placed;
pub mod prelude;
pub mod tensor;
pub mod trace;
pub mod tree;

pub use collective::{Replicas, all_gather, axis_index, pmax, pmean, pmin, ppermute, psum};
pub use control::{
    any_example, associative_scan, associative_scan_reverse, cond, fence, fori_loop, if_launched,
    kernel, map, map_batched, scan, scan_reverse, subroutine, switch, tile, vmap, vmap_named,
    while_loop,
};
pub use debug::{Log, Report, check, collect, debug_print};
pub use diff::{
    checkpoint, checkpoint_name, custom_jvp, custom_vjp, grad, grad_with_aux, hessian,
    hessian_with_aux, jacfwd, jacfwd_with_aux, jacrev, jacrev_with_aux, jvp, jvp_with_aux,
    linearize, linearize_with_aux, stop_gradient, value_and_grad, vjp, vjp_with_aux,
};
pub use key::{Key, Keys};
pub use placed::Placed;
pub use podracer_compiler::Loc;
pub use podracer_derive::Tree;
pub use tensor::{Tensor, fail, report_at};
pub use trace::{
    Traced, called, called_from, eval_shape, helper, part, scope, trace, trace_replicated,
};
pub use tree::{Kind, Spec, Tree};
