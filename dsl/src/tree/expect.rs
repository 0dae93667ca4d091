//! Checks of the trees that a user's functions return to a library.

use super::{Spec, Tree, Types, choice_difference, typed_paths};
use crate::tensor::poison;
use crate::trace::{TraceError, state};
use podracer_compiler::Loc;

/// Checks the types of a tree that a user's function returned. A leaf of another type is an error
/// at the line that made the leaf, named by its path under `root`. The returned tree always has the
/// expected types, so that no further errors follow.
///
/// ```
/// use podracer_dsl::prelude::*;
///
/// let mistakes = trace(f32([2]), |x| expect_types("reward", x.sum().reshape([1]), &f32([])));
/// let message = mistakes.err().map(|mistakes| mistakes.errors[0].message.clone());
/// assert_eq!(message.as_deref(), Some("`reward` must be f32[], got f32[1]"));
/// ```
#[track_caller]
pub fn expect_types<T: Tree>(root: &str, tree: T, expected: &Spec<T>) -> T {
    let (leaves, got, wanted) = (tree.leaves(), typed_paths(&tree), expected.leaves());
    let other_choice = choice_difference(&expected.skeleton(), &tree);
    if got == wanted && other_choice.is_none() {
        return tree;
    }
    let complain = |message: String, loc: Loc| {
        state::with(|trace| trace.error(TraceError::new("", message, loc)));
    };
    if let Some((path, wanted, got)) = other_choice {
        let message = format!("`{}` must be `{wanted}`, got `{got}`", path.under(root));
        complain(message, Loc::caller());
        return T::from_kind::<Types>(&expected.0, &mut |ty| poison(ty.clone()));
    }
    if got.len() != wanted.len() || got.iter().zip(&wanted).any(|(got, wanted)| got.0 != wanted.0) {
        let message = format!("`{root}` must be {expected}, got {}", tree.spec());
        complain(message, Loc::caller());
        return T::from_kind::<Types>(&expected.0, &mut |ty| poison(ty.clone()));
    }
    let mut right = Vec::with_capacity(leaves.len());
    for ((leaf, (path, got)), (_, wanted)) in leaves.into_iter().zip(got).zip(wanted) {
        if got == wanted {
            right.push(leaf);
            continue;
        }
        // A leaf that is already an error has only a guessed type.
        if state::with(|trace| trace.is_poison(leaf)) == Some(false) {
            let message = format!("`{}` must be {wanted}, got {got}", path.under(root));
            complain(message, leaf.made());
        }
        right.push(poison(wanted));
    }
    tree.with_leaves(&right)
}
