//! Named scopes: an error inside says `in gae called at ...`.

use super::state;
use podracer_compiler::Loc;

/// The guard of a named scope, which ends when the guard is dropped.
#[must_use = "the scope ends when the guard is dropped"]
#[derive(Debug)]
pub struct Scope {
    depth: Option<usize>,
}

/// Enters a scope until the guard is dropped. In a function that is `#[track_caller]`, errors inside name that
/// function's caller:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// #[track_caller]
/// pub fn gae(rewards: Tensor) -> Tensor {
///     let _scope = scope("gae");
///     scan_reverse(0.0, rewards, |sum, reward| (sum + reward, sum)).1
/// }
/// ```
#[track_caller]
pub fn scope(name: &str) -> Scope {
    called_from(name, Loc::caller())
}

/// [`scope`] with the caller's line given: for the inside of a closure, which `#[track_caller]` does not reach.
pub fn called_from(name: &str, loc: Loc) -> Scope {
    Scope { depth: state::with(|trace| trace.push_scope(name, loc)) }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some(depth) = self.depth {
            // A panic may drop this after its trace is gone.
            let _ = state::with(|trace| trace.pop_scope(depth));
        }
    }
}
