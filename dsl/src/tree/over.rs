//! `Over`: the values that `vmap`, `scan` and `map` go over: trees along their leaves' leading
//! axis, ranges, keys, other axes.

use super::{IntoTree, Path, Step, Tree};
use crate::tensor::{Tensor, create};
use podracer_compiler::{DType, Loc};
use std::ops::Range;

/// A value with one item for each round. Trees give their slices along the leading axis; `0..n` gives i32 scalars;
/// [`Keys`](crate::Keys) give keys; [`axis`] picks another axis; [`whole`] gives the same value in every round. Tuples
/// of these give tuples.
#[diagnostic::on_unimplemented(
    message = "cannot go over `{Self}` element by element",
    label = "expected a tree, a range `0..n`, `Keys`, `axis(tree, 1)`, `whole(value)`, or a tuple of them",
    note = "a value that is the same in every round can also be captured by the closure"
)]
pub trait Over: Sized {
    /// The argument of the closure in one round.
    type Item;

    /// Names the tensors to go over, outside of the closure.
    #[track_caller]
    fn sources(&self, sources: &mut Sources);

    /// Makes the closure's argument of the items, which come in the order of [`Over::sources`].
    fn item(self, items: &mut Items<'_>) -> Self::Item;
}

/// The tensors that a combinator goes over, along their leading axes.
#[derive(Debug, Default)]
pub struct Sources {
    path: Path,
    found: Vec<(Path, Tensor)>,
    reverse: bool,
}

impl Sources {
    /// All tensors that `xs` goes over.
    #[track_caller]
    pub(crate) fn of(xs: &impl Over) -> Sources {
        let mut sources = Sources::default();
        xs.sources(&mut sources);
        sources
    }

    /// Adds a tensor to go over along its leading axis.
    pub fn push(&mut self, tensor: Tensor) {
        self.found.push((self.path.clone(), tensor));
    }

    /// Adds a step to the path, which errors show.
    pub fn enter(&mut self, step: Step) {
        self.path.0.push(step);
    }

    /// Removes the last step of the path.
    pub fn leave(&mut self) {
        self.path.0.pop();
    }

    /// Asks a scan to begin with the last item.
    pub fn reverse(&mut self) {
        self.reverse = true;
    }

    pub(crate) fn is_reversed(&self) -> bool {
        self.reverse
    }

    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        self.found.iter().map(|(_, tensor)| *tensor).collect()
    }

    /// The common extent of the leading axes, or a message that describes the mismatch.
    pub(crate) fn length(&self) -> Result<usize, String> {
        let mut first: Option<(&Path, usize)> = None;
        for (path, tensor) in &self.found {
            let ty = tensor.ty();
            let name = path.under("xs");
            let Some(&extent) = ty.shape.first() else {
                return Err(format!(
                    "`{name}` is a scalar, {ty}: it has no axis to go over (use `whole(..)` or capture it)"
                ));
            };
            match first {
                None => first = Some((path, extent)),
                Some((other, length)) if length != extent => {
                    return Err(format!(
                        "lengths differ: `{}` has {length}, `{name}` has {extent} ({ty})",
                        other.under("xs")
                    ));
                }
                Some(_) => {}
            }
        }
        first.map(|(_, length)| length).ok_or_else(|| {
            "there is nothing to go over: no argument has an axis for it".to_string()
        })
    }
}

/// The slices of [`Sources`] in one round, which the closure gets.
#[derive(Debug)]
pub struct Items<'a>(std::slice::Iter<'a, Tensor>);

impl<'a> Items<'a> {
    pub(crate) fn new(items: &'a [Tensor]) -> Self {
        Items(items.iter())
    }

    /// The next item. If an `Over` takes more items than it named sources, a handle that no trace
    /// accepts.
    pub fn take(&mut self) -> Tensor {
        self.0.next().copied().unwrap_or(Tensor::dead(Loc::NONE))
    }
}

/// [`Over::sources`] of a tree, for `#[derive(Tree)]`.
#[doc(hidden)]
pub fn tree_sources<T: Tree>(tree: &T, sources: &mut Sources) {
    let mut path = sources.path.clone();
    tree.visit(&mut path, &mut |path, leaf| sources.found.push((path.clone(), leaf)));
}

/// [`Over::item`] of a tree, for `#[derive(Tree)]`.
#[doc(hidden)]
pub fn tree_item<T: Tree>(tree: &T, items: &mut Items<'_>) -> T {
    tree.map(&mut |_| items.take())
}

/// The argument of [`whole`]: a value that is the same in every round.
#[derive(Clone, Copy, Debug)]
pub struct Whole<T>(T);

/// Gives the closure the whole value in every round. Capturing it does the same.
pub fn whole<T: IntoTree>(value: T) -> Whole<T> {
    Whole(value)
}

impl<T: IntoTree> Over for Whole<T> {
    type Item = T::Tree;
    fn sources(&self, _: &mut Sources) {}
    fn item(self, _: &mut Items<'_>) -> T::Tree {
        self.0.into_tree()
    }
}

/// A tree that is gone over along another axis than the leading one; see [`axis`].
#[derive(Clone, Copy, Debug)]
pub struct Axis<T> {
    tree: T,
    axis: isize,
}

/// Goes over a tree along an axis of its leaves; a negative axis counts from the back.
pub fn axis<T: Tree>(tree: T, axis: isize) -> Axis<T> {
    Axis { tree, axis }
}

impl Tensor {
    /// Goes over this tensor along an axis: `vmap(x.axis(1), ..)`.
    pub fn axis(self, axis: isize) -> Axis<Tensor> {
        Axis { tree: self, axis }
    }
}

impl<T: Tree> Over for Axis<T> {
    type Item = T;
    fn sources(&self, sources: &mut Sources) {
        let mut path = sources.path.clone();
        let mut leaves = Vec::new();
        self.tree.visit(&mut path, &mut |path, leaf| leaves.push((path.clone(), leaf)));
        for (path, leaf) in leaves {
            sources.found.push((path, leaf.move_axis(self.axis, 0)));
        }
    }
    fn item(self, items: &mut Items<'_>) -> T {
        tree_item(&self.tree, items)
    }
}

/// The tree with the leading axis of every leaf moved to `axis`: `vmap`'s results along another
/// axis. jax's `out_axes`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// let columns = trace(f32([4, 3]), |x| out_axis(vmap(x, |row| row.exp()), 1))?;
/// assert_eq!(columns.results().to_string(), "f32[3,4]");
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn out_axis<T: Tree>(tree: T, axis: isize) -> T {
    let mut moved = Vec::new();
    for leaf in tree.leaves() {
        moved.push(leaf.move_axis(0, axis));
    }
    tree.with_leaves(&moved)
}

/// A value that is gone over from the last item to the first; see [`rev`].
#[derive(Clone, Copy, Debug)]
pub struct Rev<X>(X);

/// Lets a scan begin with the last item and end with the first. Stacked outputs keep their places:
/// the output of item `i` is at `i`. It reverses the whole scan: wrap everything that is gone over
/// in it.
pub fn rev<X: Over>(xs: X) -> Rev<X> {
    Rev(xs)
}

impl<X: Over> Over for Rev<X> {
    type Item = X::Item;
    fn sources(&self, sources: &mut Sources) {
        sources.reverse();
        self.0.sources(sources);
    }
    fn item(self, items: &mut Items<'_>) -> X::Item {
        self.0.item(items)
    }
}

/// Goes over the numbers of the range, as i32 scalars. Only ranges of `usize`: with a second
/// integer type, rustc could not infer the type of `0..4` before it checks the closure.
impl Over for Range<usize> {
    type Item = Tensor;
    #[track_caller]
    fn sources(&self, sources: &mut Sources) {
        let numbers = create::iota(DType::I32, [self.end.saturating_sub(self.start)], 0);
        sources.push(if self.start == 0 { numbers } else { numbers + self.start });
    }
    fn item(self, items: &mut Items<'_>) -> Tensor {
        items.take()
    }
}
