//! An entry of the log, which a frame keeps until its closure has ended. What is done with it is in
//! [`debug`](crate::debug).

use crate::tensor::handle::Tensor;
use podracer_compiler::Loc;
use podracer_derive::Tree;

/// What one `check` or `debug_print` logged.
#[derive(Tree, Clone)]
pub(crate) struct Entry {
    #[tree(fixed)]
    pub site: Site,
    /// How often a check failed, or something was printed: i32 `[]`. For a print also one for each round, along its
    /// leading axes.
    pub count: Tensor,
    /// The rounds in which a check failed first, in the loops and batches around, the outermost first. i32 `[]` each
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
