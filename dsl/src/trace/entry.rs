//! The log of a frame, kept until its closure has ended. [`debug`](crate::debug) writes and reads
//! it.

use crate::tensor::handle::Tensor;
use podracer_compiler::Loc;
use podracer_derive::Tree;

/// The entry of one `check` or `debug_print` in the log.
#[derive(Tree, Clone)]
pub(crate) struct Entry {
    #[tree(fixed)]
    pub site: Site,
    /// The number of times that a check failed, or that something was printed. i32 `[]`; a print
    /// has one further axis for each enclosing loop and batch
    pub count: Tensor,
    /// The rounds of the first failure of a check, in the enclosing loops and batches, the
    /// outermost first. i32 `[]` each
    pub at: Vec<Tensor>,
    /// The values that its message shows.
    pub values: Vec<Tensor>,
}

/// The line of a `check` or `debug_print`, and its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub is_check: bool,
    pub message: &'static str,
    pub loc: Loc,
}
