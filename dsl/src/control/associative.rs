//! `associative_scan`: all prefixes of an associative operation, in a number of steps that is
//! logarithmic in the length.

use super::body::{Param, chain, inline_at, known_length, trace_body};
use super::vectorize::vmap_func;
use crate::tensor::{Tensor, concatenate, stack};
use crate::trace::TraceError;
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Path, Sources, Tree, changed_choice, difference};
use podracer_compiler::transform::VmapContext;
use podracer_compiler::{Func, Loc, TensorType};

/// Combines each element with all elements before it: `x0, f(x0, x1), f(f(x0, x1), x2), ..`. `f`
/// combines two elements and must be associative; it need not be commutative. The elements lie
/// along the leading axis of the leaves. `jax.lax.associative_scan`, except that its function takes
/// many elements at once; here, as in `vmap`, `f` takes single elements.
///
/// `f` runs about `2 n` times, in `2 log2(n)` steps. Each step runs many combinations at once.
/// [`scan`](crate::scan) takes `n` steps.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace((f32([8]), f32([8])), |(decay, reward)| {
/// // y[t] = decay[t] y[t - 1] + reward[t]
/// let (_, y) = associative_scan((decay, reward), |(a, b), (c, d)| (a * c, b * c + d));
/// # y })?;
/// # Ok::<(), TraceErrors>(())
/// ```
///
/// Errors: a combination with another structure or type than an element; leaves of different
/// extents, or without an axis.
#[track_caller]
pub fn associative_scan<X: Tree, Y: IntoTree<Tree = X>>(
    elements: X,
    f: impl FnOnce(X, X) -> Y,
) -> X {
    prefixes("associative_scan", elements, false, f)
}

/// [`associative_scan`] from the last element: for each `i`, the combination
/// `f(f(x[n - 1], ..), x[i])` of the elements from the last to `i`.
/// `jax.lax.associative_scan(.., reverse=True)`.
#[track_caller]
pub fn associative_scan_reverse<X: Tree, Y: IntoTree<Tree = X>>(
    elements: X,
    f: impl FnOnce(X, X) -> Y,
) -> X {
    prefixes("associative_scan", elements, true, f)
}

#[track_caller]
fn prefixes<X: Tree, Y: IntoTree<Tree = X>>(
    op: &'static str,
    elements: X,
    reverse: bool,
    f: impl FnOnce(X, X) -> Y,
) -> X {
    let loc = Loc::caller();
    let leaves = elements.leaves();
    let length = known_length(op, Sources::of(&elements).length(), &leaves);
    let slices = leaves.iter().map(|&leaf| Param::slice(leaf));
    let params: Vec<Param> = slices.clone().chain(slices).collect();
    let before: Vec<(Path, TensorType)> =
        elements.paths().into_iter().zip(params.iter().map(|param| param.ty.clone())).collect();
    let body = trace_body("combine", FrameKind::Repeats(op), None, params, |items| {
        let (first, second) = items.split_at(leaves.len());
        f(elements.with_leaves(first), elements.with_leaves(second))
    })
    .without_log();
    let other_choice = changed_choice("element", &elements, &body.tree);
    let differs = other_choice.or_else(|| difference("element", &before, &body.typed()));
    if let Some((leaf, message)) = &differs
        && !body.broken
    {
        let made = body.results.get(*leaf).map_or(loc, |leaf| leaf.made);
        let error = TraceError::new(op, message.clone(), made).note(format!("`{op}` at"), loc);
        state::with(|trace| trace.error(error));
    }
    let results = match length {
        Some(length) if differs.is_none() && !body.broken => {
            let combine = Combine { func: body.func, captures: body.captures, loc };
            let turn = |leaves: &[Tensor]| {
                leaves.iter().map(|&leaf| flip(leaf, reverse)).collect::<Vec<_>>()
            };
            turn(&combine.prefixes(&turn(&leaves), length))
        }
        _ => body.poisoned(leaves.iter().map(|leaf| leaf.ty())),
    };
    elements.with_leaves(&results)
}

#[track_caller]
fn flip(leaf: Tensor, reverse: bool) -> Tensor {
    if reverse { leaf.reverse(0) } else { leaf }
}

/// The user's function and its captures.
struct Combine {
    func: Func,
    captures: Vec<Tensor>,
    loc: Loc,
}

impl Combine {
    /// Combines `count` pairs at once.
    fn pairs(&self, count: usize, first: &[Tensor], second: &[Tensor]) -> Vec<Tensor> {
        let elements = chain(first, second);
        let func = vmap_func(&self.func, &VmapContext::new(count), elements.len());
        inline_at(self.loc, &func, &chain(&elements, &self.captures))
    }

    /// All prefixes (Blelloch 1990): the prefixes of the pairs are every second result, and one
    /// more combination gives the results between them.
    #[track_caller]
    fn prefixes(&self, leaves: &[Tensor], length: usize) -> Vec<Tensor> {
        if length < 2 {
            return leaves.to_vec();
        }
        let (pairs, between) = (length / 2, (length - 1) / 2);
        let each = |f: &dyn Fn(Tensor) -> Tensor, leaves: &[Tensor]| {
            leaves.iter().map(|&leaf| f(leaf)).collect::<Vec<_>>()
        };
        // Element `place` of each pair of neighbours, from `start` on.
        let of_pairs = |leaf: Tensor, start: usize, count: usize, place: usize| {
            let mut shape = leaf.shape();
            shape.splice(0..1, [count, 2]);
            let rows = leaf.slice_axis(0, start..start + 2 * count);
            rows.reshape(shape).index_axis(1, place as isize)
        };
        let first = each(&|leaf| of_pairs(leaf, 0, pairs, 0), leaves);
        let second = each(&|leaf| of_pairs(leaf, 0, pairs, 1), leaves);
        let odd = self.prefixes(&self.pairs(pairs, &first, &second), pairs);
        let mut even = each(&|leaf| leaf.slice_axis(0, 0..1), leaves);
        if between > 0 {
            let earlier = each(&|leaf| leaf.slice_axis(0, 0..between), &odd);
            let next = each(&|leaf| of_pairs(leaf, 1, between, 1), leaves);
            let combined = self.pairs(between, &earlier, &next);
            for (even, rest) in even.iter_mut().zip(combined) {
                *even = concatenate(&[*even, rest], 0);
            }
        }
        let woven = even.into_iter().zip(odd).map(|(even, odd)| {
            let mut shape = odd.shape();
            shape[0] = 2 * pairs;
            let both = stack(&[even.slice_axis(0, 0..pairs), odd], 1).reshape(shape);
            if length.is_multiple_of(2) {
                both
            } else {
                concatenate(&[both, even.slice_axis(0, pairs..)], 0)
            }
        });
        woven.collect()
    }
}
