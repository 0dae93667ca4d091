//! Parts of a state that a function selects.

use podracer_dsl::prelude::{Spec, TraceErrors, Tree, trace};

/// The reason that a function is no projection of a state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// The mistakes of the function, with the user's lines.
    #[error(transparent)]
    Trace(#[from] TraceErrors),
    /// A leaf that is not in the state.
    #[error("`{function}` must give leaves of the state as they are, and `{leaf}` is computed")]
    Computed {
        /// The function's name.
        function: &'static str,
        /// Path of the leaf in the function's result.
        leaf: String,
    },
}

/// The unchanged leaves of a state that `pick` returns: the position of each in the state, and its
/// path in the result of `pick`. `function` is its name in errors.
///
/// # Errors
/// [`ProjectionError::Computed`] if `pick` computes a leaf.
#[track_caller]
pub fn projection<S: Tree, P: Tree>(
    function: &'static str,
    state: &Spec<S>,
    pick: impl FnOnce(S) -> P,
) -> Result<Vec<(usize, String)>, ProjectionError> {
    let picked = trace((state,), |(state,)| pick(state))?;
    let func = picked.func();
    let mut leaves = Vec::new();
    for (result, path) in func.results.iter().zip(picked.result_paths()) {
        let path = path.to_string();
        match func.params.iter().position(|param| param == result) {
            Some(leaf) => leaves.push((leaf, path)),
            None => return Err(ProjectionError::Computed { function, leaf: path }),
        }
    }
    Ok(leaves)
}
