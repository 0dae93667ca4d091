//! Parts of a state that a function picks out of it.

use podracer_dsl::prelude::{Spec, TraceErrors, Tree, trace};

/// The reason that a function is no projection of a state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectionError {
    /// The mistakes of the function, with the user's lines.
    #[error(transparent)]
    Trace(#[from] TraceErrors),
    /// A leaf that is not one of the state's.
    #[error("`{function}` must give leaves of the state as they are, and `{leaf}` is computed")]
    Computed {
        /// The function's name.
        function: &'static str,
        /// Path of the leaf in what it gives.
        leaf: String,
    },
}

/// The leaves of a state that `pick` gives, as they are: the position of each in the state, and its path in what `pick`
/// gives. `function` is its name in errors.
///
/// # Errors
/// [`ProjectionError::Computed`] where `pick` computes a leaf.
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
