//! Parts of a state that a function picks out of it.

use podracer_dsl::prelude::{Spec, TraceErrors, Tree, trace};

/// Why a function is no projection of a state.
#[derive(Debug, thiserror::Error)]
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
    let leaves = func.results.iter().zip(picked.results().leaves());
    leaves
        .map(|(result, (path, _))| {
            let leaf = func.params.iter().position(|param| param == result);
            let computed = || ProjectionError::Computed { function, leaf: path.to_string() };
            Ok((leaf.ok_or_else(computed)?, path.to_string()))
        })
        .collect()
}
