//! Trees: structs, enums, tuples, arrays, `Vec`s and `Option`s of tensors, with one form for each place where their
//! leaves may live.
//!
//! # Invariants
//! - Every method visits the leaves in the same order: fields as declared, elements by index.
//! - A tree's structure (the lengths of its `Vec`s, the variants of its enums, its fixed fields)
//!   comes from a value of the tree in some kind. Converting between kinds keeps it.

mod any;
mod expect;
mod impls;
pub(crate) use impls::leaf_tree;
mod kind;
mod over;
mod path;
mod spec;
mod structure;

pub use any::{AnyTree, AnyTreeOf};
pub use expect::expect_types;
pub use kind::Kind;
pub use over::{
    Axis, Items, Over, Rev, Sources, Whole, axis, out_axis, rev, tree_item, tree_sources, whole,
};
pub use path::{Path, Step};
pub use spec::{ArgumentSpec, Spec, Types, dtype_specs};
pub use structure::Choice;

pub(crate) use structure::{changed_choice, choice_difference, difference, typed_paths};

use crate::tensor::{Tensor, poison, select};
use structure::{check_count, check_structures};

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
///
/// The variant of an enum is structure too: known while tracing, unchanged by a round of a loop,
/// and the same in all branches of a `cond`. For a choice that is known only when the program runs,
/// use an integer tensor with `switch` or `select`. The variant is no step of a key path, its
/// fields are:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// #[derive(Tree, Clone)]
/// enum Statistics { Nothing, Momentum(Tensor), Moments { mu: Tensor, nu: Tensor } }
///
/// let spec = eval_shape(f32([2]), |x| (Statistics::Moments { mu: x, nu: x }, Statistics::Momentum(x), Statistics::Nothing))?;
/// assert_eq!(spec.to_string(), "{0.mu: f32[2], 0.nu: f32[2], 1.0: f32[2]}");
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// `Option<T>` is a tree. Like the length of a `Vec`, its variant is structure and known while
/// tracing. The leaves inside `Some` have the key path `field[0]`, as in a `Vec` with one element.
/// So a file that names parameters by their paths can still be read after a `Vec` that meant "one
/// or none" became an `Option`.
///
/// The derive also makes `StateOf<K>`, the struct or enum in the kind `K`, with fields
/// `K::View<Tensor>` and so on. An enum without a tree in any variant is the same in all kinds, and
/// gets no such type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors",
    label = "expected `Tensor`, `Key`, a tuple, array, `Vec` or `Option` of trees, or a struct or enum with `#[derive(Tree)]`",
    note = "add `#[derive(Tree, Clone)]` to the type, or mark a field that holds no tensor with `#[tree(fixed)]`",
    note = "a number becomes a tensor with `scalar(..)`"
)]
pub trait Tree: Clone + Send + Sync + 'static + Over<Item = Self> + IntoTree<Tree = Self> {
    /// The tree in the kind `K`, with leaves of type `K::Leaf`: types, buffers on a device, arrays on the host.
    type Of<K: Kind>: 'static;

    /// Visits the leaves with their paths, which begin with `path`.
    fn visit(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Tensor));

    /// Maps the leaves: a tree of the same structure with `f` applied to each leaf, in order.
    fn map(&self, f: &mut dyn FnMut(Tensor) -> Tensor) -> Self;

    /// Visits the [`Choice`]s of the structure with their paths, which begin with `path`. The default visits none.
    fn choices(&self, path: &mut Path, f: &mut dyn FnMut(&Path, Choice)) {
        let _ = (path, f);
    }

    /// Converts to a kind; `f` makes its leaves of the tensors, in order.
    fn to_kind<K: Kind>(&self, f: &mut dyn FnMut(Tensor) -> K::Leaf) -> Self::Of<K>;

    /// Converts from a kind; `f` makes the tensors of its leaves, in order.
    fn from_kind<K: Kind>(of: &Self::Of<K>, f: &mut dyn FnMut(&K::Leaf) -> Tensor) -> Self;

    /// Converts from the kind `J` to the kind `K`; `f` makes the leaves, in order.
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

    /// Appends the leaves of a tree in a kind to a list, in order.
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

    /// Replaces the leaves, in the order of [`Tree::leaves`]. A different number of leaves is an
    /// error.
    #[track_caller]
    fn with_leaves(&self, leaves: &[Tensor]) -> Self
    where
        Self: Sized,
    {
        let (mut next, mut count) = (leaves.iter(), 0);
        let tree = self.map(&mut |old| {
            count += 1;
            next.next().copied().unwrap_or(old)
        });
        check_count(count, leaves.len());
        tree
    }

    /// Combines the leaves of two trees of one structure pairwise. Different structures are an
    /// error that names the path.
    #[track_caller]
    fn zip_with(&self, other: &Self, mut f: impl FnMut(Tensor, Tensor) -> Tensor) -> Self
    where
        Self: Sized,
    {
        zip("zip_with", self, &[other], |leaves| f(leaves[0], leaves[1]))
    }

    /// Combines the leaves of several trees of one structure. `f` gets the leaves at one path:
    /// first this tree's leaf and then the leaves of `others`, in order. Different structures are
    /// an error that names the path.
    ///
    /// ```
    /// # use podracer_dsl::prelude::*;
    /// # trace([(f32([2]), i32([3])), (f32([4]), i32([1]))], |shards| {
    /// let [first, second] = &shards;
    /// let joined = first.zip_all([second], |leaves| concatenate(leaves, 0));
    /// # joined })?;
    /// # Ok::<(), TraceErrors>(())
    /// ```
    #[track_caller]
    fn zip_all<'a>(
        &'a self,
        others: impl IntoIterator<Item = &'a Self>,
        f: impl FnMut(&[Tensor]) -> Tensor,
    ) -> Self
    where
        Self: Sized,
    {
        let others: Vec<&Self> = others.into_iter().collect();
        zip("zip_all", self, &others, f)
    }
}

/// A tree with the first tree's structure; each leaf is `f` of the leaves at its path in every
/// tree.
#[track_caller]
fn zip<T: Tree>(op: &str, first: &T, others: &[&T], mut f: impl FnMut(&[Tensor]) -> Tensor) -> T {
    if !check_structures(op, first, others) {
        return T::from_kind::<Types>(&first.spec().0, &mut |ty| poison(ty.clone()));
    }
    let others: Vec<Vec<Tensor>> = others.iter().map(|other| other.leaves()).collect();
    let mut at = 0;
    first.map(&mut |leaf| {
        let leaves: Vec<Tensor> =
            std::iter::once(leaf).chain(others.iter().map(|other| other[at])).collect();
        at += 1;
        f(&leaves)
    })
}

/// A value that becomes a tree: a tree itself, or a number in place of a tensor, as in the carry
/// `(0.0, state)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tree of tensors",
    label = "expected a tree, a number, or a tuple of them",
    note = "add `#[derive(Tree, Clone)]` to the type"
)]
pub trait IntoTree {
    /// The type of the tree.
    type Tree: Tree;

    /// Makes the tree; literals become f32, i32 or bool.
    #[track_caller]
    fn into_tree(self) -> Self::Tree;
}

/// Maps a function over the leaves of a tree.
#[track_caller]
pub fn tree_map<T: Tree>(tree: &T, mut f: impl FnMut(Tensor) -> Tensor) -> T {
    tree.map(&mut f)
}

/// Selects leaf by leaf: the tree `a` where `p` is true, otherwise `b`. `p` is a bool scalar, or
/// broadcasts to every leaf. Different structures are an error that names the path.
#[track_caller]
pub fn tree_select<T: Tree>(p: Tensor, a: &T, b: &T) -> T {
    let mut results = Vec::new();
    if check_structures("tree_select", a, &[b]) {
        for (leaf, other) in a.leaves().into_iter().zip(b.leaves()) {
            results.push(select(p, leaf, other));
        }
    }
    a.with_leaves(&results)
}
