//! `vmap`: a closure for one example runs on a batch.

use super::body::{Param, chain, inline_at, known_length, trace_body};
use crate::tensor::{Tensor, emit1, report};
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Items, Over, Sources, Tree};
use podracer_compiler::ops::{AnyExample, REPLICAS};
use podracer_compiler::transform::{self, VmapContext};
use podracer_compiler::{DType, Func, Loc, TensorType};

/// Runs `f` for every item of `xs` at once; every leaf of the result gets a new leading axis.
///
/// `xs` is a tree (its leaves' leading axes run together), a range, [`Keys`](crate::Keys), or a
/// tuple of these. `axis(tree, 1)` chooses another axis. `whole(tree)` passes the same value to
/// every example, as capturing does.
///
/// Errors: axes of different extent, leaves without an axis, nothing to go over.
/// `jax.vmap`; [`out_axis`](crate::tree::out_axis) is its `out_axes`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4, 3]), |x| {
/// let columns = vmap((x.axis(1), 0..3), |(column, i)| column.sum() * i.astype(F32));
/// # columns
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn vmap<X: Over, Y: IntoTree>(xs: X, f: impl FnOnce(X::Item) -> Y) -> Y::Tree {
    vectorize(None, xs, f)
}

/// [`vmap`] along an axis that collectives inside can name: `psum(x, "environments")`. It hides an outer axis of the
/// same name. `jax.vmap(.., axis_name=name)`.
///
/// Errors: all errors of [`vmap`]; the name of the replicas' axis.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let centred = vmap_named("batch", x, |x| x - pmean(x, "batch"));
/// # centred
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn vmap_named<X: Over, Y: IntoTree>(
    name: &str,
    xs: X,
    f: impl FnOnce(X::Item) -> Y,
) -> Y::Tree {
    if name == REPLICAS {
        let message = format!("`{name}` is the axis of the replicas: choose another name");
        report("vmap_named", message, &[]);
    }
    vectorize(Some(name), xs, f)
}

/// True if `holds`, bool `[]`, is true in any example of any enclosing batch: one value for all
/// examples. Without an enclosing [`vmap`] it is `holds` itself.
///
/// Use it for the condition of a [`while_loop`](crate::while_loop) with a large carry. Under `vmap`
/// such a loop selects the whole carry in each round. With `any_example(going)` the loop runs until
/// the last example has ended, and selects nothing. The body must then leave ended examples
/// unchanged; otherwise results depend on which examples share a batch.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # use podracer_dsl::any_example;
/// # trace(f32([8]), |xs| {
/// // The least power of two that is not below each number.
/// let powers = vmap(xs, |x| {
///     while_loop(1.0, |y| any_example(y.lt(x)), |y| select(y.lt(x), y * 2.0, y))
/// });
/// # powers
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn any_example(holds: Tensor) -> Tensor {
    emit1(AnyExample {}, &[holds], TensorType::scalar(DType::Bool))
}

#[track_caller]
fn vectorize<X: Over, Y: IntoTree>(
    name: Option<&str>,
    xs: X,
    f: impl FnOnce(X::Item) -> Y,
) -> Y::Tree {
    let loc = Loc::caller();
    let sources = Sources::of(&xs);
    let tensors = sources.tensors();
    let size = known_length("vmap", sources.length(), &tensors);
    let axis = name.map(|name| (name.to_string(), size.unwrap_or(1)));
    let params = tensors.iter().map(|&tensor| Param::slice(tensor)).collect();
    let body = trace_body("vmap_body", FrameKind::Repeats("vmap"), axis, params, |items| {
        f(xs.item(&mut Items::new(items)))
    });
    let extent = size.unwrap_or(1);
    let results = if body.broken || size.is_none() {
        let types = [body.types(), body.log_types()].concat();
        body.poisoned(types.iter().map(|ty| ty.stacked(extent)))
    } else {
        let cx = VmapContext { axis: name.map(str::to_string), ..VmapContext::new(extent) };
        let func = vmap_func(&body.func, &cx, tensors.len());
        inline_at(loc, &func, &chain(&tensors, &body.captures))
    };
    let (results, log) = results.split_at(body.results.len().min(results.len()));
    body.relog_rounds(log);
    body.tree.with_leaves(results)
}

/// The compiler's vmap over the first `explicit` parameters, with all results batched. Its warnings
/// go to the trace, unless [`Tensor::both`](crate::Tensor::both) was called at their line.
pub(crate) fn vmap_func(func: &Func, cx: &VmapContext, explicit: usize) -> Func {
    let batched: Vec<bool> = (0..func.params.len()).map(|i| i < explicit).collect();
    let (mapped, _) = transform::vmap(func, cx, &batched, &vec![true; func.results.len()]);
    state::with(|trace| {
        for &(loc, message) in cx.warnings.borrow().iter() {
            if !trace.allows_both(loc) {
                let over =
                    cx.axis.as_ref().map_or_else(String::new, |name| format!(" (over `{name}`)"));
                trace.warn("", format!("{message}{over}"), loc);
            }
        }
    });
    mapped
}
