//! Full matrices of derivatives, by a vmap over directions.

use super::auxiliary::{linearize_with_aux, vjp_with_aux};
use super::check_floats;
use super::reverse::differentiate;
use crate::control::vmap;
use crate::tensor::{Tensor, create};
use crate::tree::{IntoTree, Kind, Tree, typed_paths};
use podracer_compiler::Loc;
use std::marker::PhantomData;
use std::ops::Deref;

/// The kind of leaves that are derivatives by a tree `P`. Each leaf is a tree like `P`; its leaves
/// have the shape of the value's leaf followed by their own shape.
#[derive(Debug)]
pub struct By<P>(PhantomData<P>);

/// The type of the Jacobian of a value `Y` by `X`: a tree like `Y` of trees like `X`; a tensor if both are tensors.
pub type Jacobian<Y, X> = <<Y as IntoTree>::Tree as Tree>::Of<By<<X as IntoTree>::Tree>>;

/// The derivatives of the leaves of `Y` by the leaves of `P`: a tree like `Y` of trees like `P`. It
/// derefs to this tree, so that `hessian.weight.bias` is the block of `weight` by `bias`.
///
/// If a closure returns it, it becomes a list: the derivatives of each leaf of `Y`, in order.
pub struct Derivatives<Y: Tree, P: Tree> {
    of: Y::Of<By<P>>,
}

impl<P: Tree> Kind for By<P> {
    type Leaf = P;
    type View<Y: Tree> = Derivatives<Y, P>;

    fn wrap<Y: Tree>(of: Y::Of<Self>) -> Derivatives<Y, P> {
        Derivatives { of }
    }
    fn unwrap<Y: Tree>(view: Derivatives<Y, P>) -> Y::Of<Self> {
        view.of
    }
    fn peek<Y: Tree>(view: &Derivatives<Y, P>) -> &Y::Of<Self> {
        &view.of
    }
}

impl<Y: Tree, P: Tree> Deref for Derivatives<Y, P> {
    type Target = Y::Of<By<P>>;
    fn deref(&self) -> &Y::Of<By<P>> {
        &self.of
    }
}

impl<Y: Tree, P: Tree> IntoTree for Derivatives<Y, P> {
    type Tree = Vec<P>;
    fn into_tree(self) -> Vec<P> {
        let mut each = Vec::new();
        Y::into_leaves::<By<P>>(self.of, &mut each);
        each
    }
}

/// All directions of a tree, stacked: leaves `[n] ++ shape`, with a single 1 in each direction; `n`
/// is the number of elements of the whole tree.
#[track_caller]
fn basis<T: Tree>(tree: &T) -> T {
    let leaves = tree.leaves();
    let total = leaves.iter().map(|leaf| leaf.ty().elements()).sum();
    let mut offset = 0;
    let mut directions = Vec::new();
    for leaf in leaves {
        let ty = leaf.ty();
        let all = create::eye(ty.dtype, total);
        let own = part(all, 1, offset, ty.elements());
        directions.push(own.reshape([&[total], &ty.shape[..]].concat()));
        offset += ty.elements();
    }
    tree.with_leaves(&directions)
}

/// The slice of `count` positions along an axis, from an offset on.
#[track_caller]
fn part(x: Tensor, axis: usize, offset: usize, count: usize) -> Tensor {
    if count == x.shape()[axis] {
        return x;
    }
    x.slice_axis(axis as isize, offset as isize..(offset + count) as isize)
}

/// The Jacobian of `f` at `x`, by forward mode: one forward pass for each element of `x`, all at
/// once. It is a tree like the value of `f`, of trees like `x`; the leaves have the shapes
/// `y ++ x`. For a tensor by a tensor it is a tensor. `jax.jacfwd`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let matrix = trace(f32([3]), |x| jacfwd(x, |x| stack(&[x.sum(), x.prod()], 0)))?;
/// assert_eq!(matrix.results().to_string(), "f32[2,3]");
/// let (by_w, by_b) = (f32([4, 3]), f32([4]));
/// let layer = trace((by_w, by_b), |layer| jacfwd(layer, |(w, b)| (w.sum_axis(1) * b).tanh()))?;
/// assert_eq!(layer.results().to_string(), "{0: f32[4,4,3], 1: f32[4,4]}");
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// Errors: leaves of `x` that are no floats.
#[track_caller]
pub fn jacfwd<X: IntoTree, Y: IntoTree>(x: X, f: impl FnOnce(X::Tree) -> Y) -> Jacobian<Y, X> {
    jacfwd_with_aux(x, |x| (f(x), ())).0
}

/// [`jacfwd`] of a function with an auxiliary result: `(jacobian, auxiliary)`. `jax.jacfwd(f, has_aux=True)`.
#[track_caller]
pub fn jacfwd_with_aux<X: IntoTree, Y: IntoTree, A: IntoTree>(
    x: X,
    f: impl FnOnce(X::Tree) -> (Y, A),
) -> (Jacobian<Y, X>, A::Tree) {
    let x = x.into_tree();
    check_floats("jacfwd", &typed_paths(&x), &x.leaves(), Loc::caller());
    forward(x, f)
}

#[track_caller]
fn forward<X: Tree, Y: IntoTree, A: IntoTree>(
    x: X,
    f: impl FnOnce(X) -> (Y, A),
) -> (Jacobian<Y, X>, A::Tree) {
    let (y, derivative, aux) = linearize_with_aux(x.clone(), f);
    let mut columns = vmap(basis(&x), derivative).leaves().into_iter();
    let jacobian = y.to_kind::<By<X>>(&mut |y| {
        let columns = columns.next().expect("a value has as many leaves as its derivative");
        let columns = columns.move_axis(0, -1);
        let mut offset = 0;
        x.map(&mut |x| {
            let (y, x) = (y.ty(), x.ty());
            let own = part(columns, y.rank(), offset, x.elements());
            offset += x.elements();
            own.reshape([&y.shape[..], &x.shape[..]].concat())
        })
    });
    (jacobian, aux)
}

/// The Jacobian of `f` at `x`, by reverse mode: one backward pass for each element of the value,
/// all at once. It is a tree like the value of `f`, of trees like `x`; the leaves have the shapes
/// `y ++ x`. For a tensor by a tensor it is a tensor. `jax.jacrev`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let matrix = trace(f32([3]), |x| jacrev(x, |x| stack(&[x.sum(), x.prod()], 0)))?;
/// assert_eq!(matrix.results().to_string(), "f32[2,3]");
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// Errors: leaves of `x` that are no floats.
#[track_caller]
pub fn jacrev<X: IntoTree, Y: IntoTree>(x: X, f: impl FnOnce(X::Tree) -> Y) -> Jacobian<Y, X> {
    jacrev_with_aux(x, |x| (f(x), ())).0
}

/// [`jacrev`] of a function with an auxiliary result: `(jacobian, auxiliary)`. `jax.jacrev(f, has_aux=True)`.
#[track_caller]
pub fn jacrev_with_aux<X: IntoTree, Y: IntoTree, A: IntoTree>(
    x: X,
    f: impl FnOnce(X::Tree) -> (Y, A),
) -> (Jacobian<Y, X>, A::Tree) {
    let x = x.into_tree();
    check_floats("jacrev", &typed_paths(&x), &x.leaves(), Loc::caller());
    let (y, pullback, aux) = vjp_with_aux(x.clone(), f);
    let rows = vmap(basis(&y), pullback);
    let mut offset = 0;
    let jacobian = y.to_kind::<By<X::Tree>>(&mut |y| {
        let y = y.ty();
        let own = rows.zip_with(&x, |rows, x| {
            let own = part(rows, 0, offset, y.elements());
            own.reshape([&y.shape[..], &x.shape()].concat())
        });
        offset += y.elements();
        own
    });
    (jacobian, aux)
}

/// The Hessian of a scalar function at `x`, forward over reverse: a tree like `x` of trees like
/// `x`. The leaves have the shapes of both. For a tensor it is a tensor. `jax.hessian`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let matrix = trace(f32([3]), |x| hessian(x, |x| x.prod()))?;
/// assert_eq!(matrix.results().to_string(), "f32[3,3]");
/// # #[derive(Tree, Clone)] struct Line { slope: Tensor, offset: Tensor }
/// let mixed = trace((f32([2]), f32([])), |(slope, offset)| {
///     let second = hessian(Line { slope, offset }, |line| (line.slope * line.offset).sum());
///     second.slope.offset
/// })?;
/// assert_eq!(mixed.results().to_string(), "f32[2]");
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// Errors: leaves of `x` that are no floats.
#[track_caller]
pub fn hessian<X: IntoTree>(x: X, f: impl FnOnce(X::Tree) -> Tensor) -> Jacobian<X, X> {
    hessian_with_aux(x, |x| (f(x), ())).0
}

/// [`hessian`] of a function with an auxiliary result: `(hessian, auxiliary)`. `jax.hessian(f, has_aux=True)`.
#[track_caller]
pub fn hessian_with_aux<X: IntoTree, A: Tree>(
    x: X,
    f: impl FnOnce(X::Tree) -> (Tensor, A),
) -> (Jacobian<X, X>, A) {
    let loc = Loc::caller();
    let slope = |x| {
        let ((_, aux), slope) = differentiate("hessian", loc, x, f);
        (slope, aux)
    };
    forward(x.into_tree(), slope)
}
