//! Comparison of tree structures: how two trees of one Rust type may differ, apart from the values
//! of their leaves.

use super::{Path, Tree};
use crate::trace::{TraceError, state};
use podracer_compiler::{Loc, TensorType};
use std::any::TypeId;
use std::fmt;

/// A part of a tree's structure that the paths of its leaves do not show: trees of two variants may have leaves of the
/// same paths and types, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The variant of an `Option` or another enum.
    Variant(&'static str),
    /// The type of the tree in an [`AnyTree`](super::AnyTree), and its name.
    Type(TypeId, &'static str),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Variant(name) | Choice::Type(_, name) => f.write_str(name),
        }
    }
}

/// The choices of a tree's structure, with their paths.
pub(crate) fn choices<T: Tree>(tree: &T) -> Vec<(Path, Choice)> {
    let mut choices = Vec::new();
    tree.choices(&mut Path::root(), &mut |path, choice| choices.push((path.clone(), choice)));
    choices
}

/// The paths and types of the leaves, in order.
pub(crate) fn typed_paths<T: Tree>(tree: &T) -> Vec<(Path, TensorType)> {
    tree.paths().into_iter().zip(tree.leaves()).map(|(path, leaf)| (path, leaf.ty())).collect()
}

/// The first choice that differs between two trees: its path and both choices.
pub(crate) fn choice_difference<T: Tree>(a: &T, b: &T) -> Option<(Path, Choice, Choice)> {
    choices(a)
        .into_iter()
        .zip(choices(b))
        .take_while(|((path, _), (other, _))| path == other)
        .find(|((_, a), (_, b))| a != b)
        .map(|((path, a), (_, b))| (path, a, b))
}

/// [`choice_difference`] of the trees that go into a closure and come out, in the form of
/// [`difference`]; the number is `usize::MAX`, which is no leaf's number.
pub(crate) fn changed_choice<T: Tree>(
    root: &str,
    before: &T,
    after: &T,
) -> Option<(usize, String)> {
    let (path, old, new) = choice_difference(before, after)?;
    let place = path.under(root);
    let message = format!("changed structure at `{place}`: `{old}` going in, `{new}` coming out");
    Some((usize::MAX, message))
}

/// The first leaf that differs between two trees in structure or type: its number and a message.
/// The number is one past the last leaf if the trees have different numbers of leaves. The message
/// has the leaf's path under `root` and both types. `None` if the trees are alike.
pub(crate) fn difference(
    root: &str,
    before: &[(Path, TensorType)],
    after: &[(Path, TensorType)],
) -> Option<(usize, String)> {
    for (i, ((path, old), (new_path, new))) in before.iter().zip(after).enumerate() {
        if path != new_path {
            return Some((
                i,
                format!(
                    "changed structure: `{}` going in, `{}` coming out",
                    path.under(root),
                    new_path.under(root)
                ),
            ));
        }
        if old != new {
            return Some((
                i,
                format!("changed type at `{}`: {old} going in, {new} coming out", path.under(root)),
            ));
        }
    }
    if before.len() != after.len() {
        let i = before.len().min(after.len());
        return Some((
            i,
            format!(
                "changed structure: {} leaves going in, {} coming out",
                before.len(),
                after.len()
            ),
        ));
    }
    None
}

/// Records an error of `op` at the caller's line if the structure of one of `others` differs from
/// `first`. Types may differ.
#[track_caller]
pub(super) fn check_structures<T: Tree>(op: &str, first: &T, others: &[&T]) -> bool {
    let paths = first.paths();
    let differ = |(i, other): (usize, &&T)| {
        let with = |path: &Path, a: &dyn fmt::Display, b: &dyn fmt::Display| {
            let number =
                if others.len() == 1 { String::new() } else { format!(" number {}", i + 1) };
            let place = path.under("tree");
            format!("{a} at `{place}` in the first, {b} in the other{number}")
        };
        if let Some((path, a, b)) = choice_difference(first, *other) {
            return Some(with(&path, &format!("`{a}`"), &format!("`{b}`")));
        }
        let theirs = other.paths();
        let at = paths.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        match (paths.get(at), theirs.get(at)) {
            (None, None) => None,
            (Some(path), None) => Some(with(path, &"a leaf", &"none")),
            (None, Some(path)) => Some(with(path, &"no leaf", &"one")),
            (Some(path), Some(theirs)) => {
                let theirs = format!("one at `{}`", theirs.under("tree"));
                Some(with(path, &"a leaf", &theirs))
            }
        }
    };
    let Some(difference) = others.iter().enumerate().find_map(differ) else {
        return true;
    };
    let message = format!("the trees have different structures: {difference}");
    let error = TraceError::new(op, message, Loc::caller());
    state::with(|trace| trace.error(error));
    false
}

/// Records an error of `with_leaves` at the caller's line if a tree of `expected` leaves was given
/// `got`. In a trace that already has errors, the mismatch is a consequence of one of them, and
/// nothing is recorded.
#[track_caller]
pub(super) fn check_count(expected: usize, got: usize) {
    if expected != got {
        let message = format!("expected {expected} leaves, got {got}");
        let error = TraceError::new("with_leaves", message, Loc::caller());
        state::with(|trace| {
            if trace.error_count() == 0 {
                trace.error(error);
            }
        });
    }
}
