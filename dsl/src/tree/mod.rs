//! Trees: structs, tuples, arrays and `Vec`s of tensors, with one form for each place where their leaves may live.
//!
//! # Invariants
//! - Every method visits the leaves in the same order: fields as declared, elements by index.
//! - A tree's structure (the lengths of its `Vec`s, its fixed fields) comes from a value of it in some kind. Converting
//!   between kinds keeps it.

mod expect;
mod impls;
mod kind;
mod over;
mod path;
mod spec;

pub use expect::expect_types;
pub use kind::{Kind, Types};
pub use over::{
    Axis, Items, Over, Rev, Sources, Whole, axis, out_axis, rev, tree_item, tree_sources, whole,
};
pub use path::{Path, Step};
pub use spec::{ArgumentSpec, Spec, dtype_specs, key};

use crate::tensor::Tensor;
use podracer_compiler::TensorType;

/// A tree of tensors. Derive it:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # #[derive(Tree, Clone)] struct Layer { weight: Tensor }
/// #[derive(Tree, Clone)]
/// struct State { velocity: Tensor, layers: Vec<Layer>, #[tree(fixed)] width: usize }
/// ```
///
/// A field is a tree itself, or marked `#[tree(fixed)]`: then it is part of the structure, the same in all forms.
/// The derive also makes `StateOf<K>`, the form in the kind `K`, whose fields are `K::View<Tensor>` and so on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors",
    label = "expected `Tensor`, `Key`, a tuple, array or `Vec` of trees, or a struct with `#[derive(Tree)]`",
    note = "add `#[derive(Tree, Clone)]` to the struct, or mark a field that holds no tensor with `#[tree(fixed)]`",
    note = "a number becomes a tensor with `scalar(..)`"
)]
pub trait Tree: Clone + 'static + Over<Item = Self> + IntoTree<Tree = Self> {
    /// The same tree with its leaves elsewhere: types on paper, buffers on a device, arrays on the host.
    type Of<K: Kind>: 'static;

    /// Visits the leaves with their paths, which begin with `path`.
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor));

    /// The same structure with other leaves.
    fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> Self;

    /// The tree in a kind, its leaves made of tensors.
    fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> Self::Of<K>;

    /// The traced tree of a tree in a kind.
    fn from_kind<K: Kind>(of: &Self::Of<K>, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> Self;

    /// From one kind into another.
    fn convert<J: Kind, K: Kind>(
        of: &Self::Of<J>,
        f: &mut dyn FnMut(&J::Leaf) -> K::Leaf,
    ) -> Self::Of<K>;

    /// Visits the leaves of a tree in a kind with their paths, which begin with `path`.
    fn visit_kind<'a, K: Kind>(
        of: &'a Self::Of<K>,
        path: &mut Path,
        f: &mut dyn FnMut(&Path, &'a K::Leaf),
    );

    /// Takes the leaves out of a tree in a kind.
    fn into_leaves<K: Kind>(of: Self::Of<K>, leaves: &mut Vec<K::Leaf>);

    /// The leaves in order.
    fn leaves(&self) -> Vec<Tensor> {
        let mut leaves = Vec::new();
        self.visit(&mut Path::root(), &mut |_, leaf| leaves.push(leaf));
        leaves
    }

    /// The paths of the leaves in order.
    fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.visit(&mut Path::root(), &mut |path, _| paths.push(path.clone()));
        paths
    }

    /// The types of the leaves, as a tree.
    fn spec(&self) -> Spec<Self>
    where
        Self: Sized,
    {
        Spec(self.to_kind::<Types>(&mut |leaf| leaf.ty()))
    }

    /// The same structure with these leaves, one for each of [`Tree::leaves`]; a missing one stays.
    fn with_leaves(&self, leaves: &[Tensor]) -> Self
    where
        Self: Sized,
    {
        let mut next = leaves.iter();
        self.map(&mut |old| next.next().copied().unwrap_or(old))
    }

    /// Combines the leaves of two trees pairwise. Where the second has fewer leaves, the first one's stay.
    fn zip_with(&self, other: &Self, mut f: impl FnMut(Tensor, Tensor) -> Tensor) -> Self
    where
        Self: Sized,
    {
        let others = other.leaves();
        let mut next = others.iter();
        self.map(&mut |leaf| next.next().map_or(leaf, |&other| f(leaf, other)))
    }
}

/// What becomes a tree: trees, and numbers where a tensor is meant. A carry may be written `(0.0, state)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors",
    label = "expected a tree, a number, or a tuple of them",
    note = "add `#[derive(Tree, Clone)]` to the struct"
)]
pub trait IntoTree {
    /// The tree.
    type Tree: Tree;

    /// Makes it; literals become f32, i32 or bool.
    #[track_caller]
    fn into_tree(self) -> Self::Tree;
}

/// Leaf by leaf, a function of tensors over a whole tree.
#[track_caller]
pub fn tree_map<T: Tree>(tree: &T, mut f: impl FnMut(Tensor) -> Tensor) -> T {
    tree.map(&mut f)
}

/// `select` leaf by leaf: the tree `a` where `p` is true, else `b`. `p` is a bool scalar, or broadcasts to every leaf.
#[track_caller]
pub fn tree_select<T: Tree>(p: Tensor, a: &T, b: &T) -> T {
    let (others, mut results) = (b.leaves(), Vec::new());
    for (i, leaf) in a.leaves().into_iter().enumerate() {
        match others.get(i) {
            Some(&other) => results.push(crate::tensor::select(p, leaf, other)),
            None => {
                crate::tensor::report("tree_select", "the two trees have different structures", &[])
            }
        }
    }
    a.with_leaves(&results)
}

/// Where two trees differ in structure or type: path and both types, `None` if they are alike. The paths begin with
/// `root`.
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

/// Paths and types of the leaves.
pub(crate) fn typed_paths<T: Tree>(tree: &T) -> Vec<(Path, TensorType)> {
    tree.paths().into_iter().zip(tree.leaves()).map(|(path, leaf)| (path, leaf.ty())).collect()
}
