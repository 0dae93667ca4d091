//! Collectives: values combined over a named axis, of a `vmap` or of the replicas of the program. A
//! whole tree is combined in one op, because most of a collective's cost is waiting.

use crate::control::body::emit_at;
use crate::tensor::{Tensor, create, poison, report};
use crate::trace::state;
use crate::tree::{IntoTree, Tree};
use podracer_compiler::ops::{
    AllGather, AllReduce, AxisIndex, CollectivePermute, Combination, REPLICAS,
};
use podracer_compiler::{DType, Loc, OpRef, TensorType};

/// The axis of the replicas: the devices that run the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas;

/// Names an axis: [`Replicas`], or the name given to [`vmap_named`](crate::vmap_named).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not name an axis",
    label = "expected `Replicas` or the name of a `vmap_named`"
)]
pub trait AxisName {
    /// The axis's name in the IR.
    fn axis_name(&self) -> &str;
}

impl AxisName for Replicas {
    fn axis_name(&self) -> &str {
        REPLICAS
    }
}

impl AxisName for &str {
    fn axis_name(&self) -> &str {
        self
    }
}

/// The sum over all members of an axis, leaf by leaf. Every member gets the result.
/// `jax.lax.psum`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let shares = vmap_named("batch", x, |x| x / psum(x, "batch"));
/// # shares
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn psum<T: IntoTree>(tree: T, axis: impl AxisName) -> T::Tree {
    reduce("psum", tree.into_tree(), axis.axis_name(), Combination::Sum)
}

/// The greatest over all members of an axis, element by element.
/// `jax.lax.pmax`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let gaps = vmap_named("batch", x, |x| pmax(x, "batch") - x);
/// # gaps
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn pmax<T: IntoTree>(tree: T, axis: impl AxisName) -> T::Tree {
    reduce("pmax", tree.into_tree(), axis.axis_name(), Combination::Max)
}

/// The least over all members of an axis, element by element.
/// `jax.lax.pmin`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let gaps = vmap_named("batch", x, |x| x - pmin(x, "batch"));
/// # gaps
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn pmin<T: IntoTree>(tree: T, axis: impl AxisName) -> T::Tree {
    reduce("pmin", tree.into_tree(), axis.axis_name(), Combination::Min)
}

/// The mean over all members of an axis, leaf by leaf. The leaves are floats.
/// `jax.lax.pmean`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let mean = pmean(x, Replicas);
/// # mean
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn pmean<T: IntoTree>(tree: T, axis: impl AxisName) -> T::Tree {
    let tree = tree.into_tree();
    let leaves = tree.leaves();
    let loc = Loc::caller();
    for (path, &leaf) in tree.paths().iter().zip(&leaves) {
        if !leaf.dtype().is_float() {
            report(
                "pmean",
                format!(
                    "`{}` is {}: only floats have a mean; cast with `.astype(F32)`",
                    path.under("argument"),
                    leaf.ty()
                ),
                &[leaf],
            );
            return tree;
        }
    }
    let Some(members) = check_axis("pmean", axis.axis_name()) else {
        return tree;
    };
    let mut operands = leaves.clone();
    if members.is_none() {
        // The number of replicas is known when the program is compiled: the replicas count
        // themselves in the same op.
        operands.push(create::scalar(1.0f32));
    }
    let sums = all_reduce(loc, &operands, axis.axis_name(), Combination::Sum);
    let mut means = Vec::with_capacity(leaves.len());
    for &sum in &sums[..leaves.len()] {
        means.push(match members {
            Some(members) => sum / members as f64,
            None => sum / sums[leaves.len()].astype(sum.dtype()),
        });
    }
    tree.with_leaves(&means)
}

/// Gathers the values from all members of an axis, leaf by leaf, stacked along a new leading axis.
/// Over [`Replicas`] the number of replicas must be known: see
/// [`trace_replicated`](crate::trace::trace_replicated). `jax.lax.all_gather`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let ranks = vmap_named("batch", x, |x| all_gather(x, "batch").lt(x).astype(I32).sum());
/// # ranks
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn all_gather<T: IntoTree>(tree: T, axis: impl AxisName) -> T::Tree {
    let (tree, name) = (tree.into_tree(), axis.axis_name());
    let loc = Loc::caller();
    let members = check_axis("all_gather", name);
    if members == Some(None) {
        report(
            "all_gather",
            "the number of replicas is not known here: trace with `trace_replicated`",
            &tree.leaves(),
        );
    }
    let Some(size) = members.flatten() else {
        // What follows reads the new axis.
        let guesses: Vec<Tensor> =
            tree.leaves().iter().map(|leaf| poison(leaf.ty().stacked(1))).collect();
        return tree.with_leaves(&guesses);
    };
    let mut gathered = Vec::new();
    for leaf in tree.leaves() {
        let op = AllGather { axis: name.to_string(), dimension: 0, size };
        gathered.extend(emit_at(loc, OpRef::new(op), &[leaf], &[leaf.ty().stacked(size)]));
    }
    tree.with_leaves(&gathered)
}

/// Sends values between members of an axis, leaf by leaf: for each `(source, target)`, member
/// `target` gets the values of member `source`. A member that is no target gets zeros. Each member
/// is at most once a source and at most once a target. `jax.lax.ppermute`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([3]), |x| {
/// let from_the_left = vmap_named("ring", x, |x| ppermute(x, "ring", &[(0, 1), (1, 2), (2, 0)]));
/// # from_the_left })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn ppermute<T: IntoTree>(tree: T, axis: impl AxisName, pairs: &[(usize, usize)]) -> T::Tree {
    let (tree, name) = (tree.into_tree(), axis.axis_name());
    let loc = Loc::caller();
    let Some(members) = check_axis("ppermute", name) else {
        return tree;
    };
    let named = pairs.iter().flat_map(|&(source, target)| [source, target]);
    if let (Some(members), Some(last)) = (members, named.max())
        && last >= members
    {
        let message = format!("there is no member {last}: the axis `{name}` has {members}");
        report("ppermute", message, &tree.leaves());
        return tree;
    }
    let (sources, targets): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
    let mut sent = Vec::new();
    for leaf in tree.leaves() {
        let op = CollectivePermute {
            axis: name.to_string(),
            sources: sources.clone(),
            targets: targets.clone(),
        };
        sent.extend(emit_at(loc, OpRef::new(op), &[leaf], &[leaf.ty()]));
    }
    tree.with_leaves(&sent)
}

/// The index of this member along an axis, from 0. i32 `[]`
/// `jax.lax.axis_index`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([4]), |x| {
/// let numbered = vmap_named("batch", x, |x| (axis_index("batch"), x));
/// # numbered
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn axis_index(axis: impl AxisName) -> Tensor {
    let name = axis.axis_name();
    let ty = TensorType::scalar(DType::I32);
    if check_axis("axis_index", name).is_none() {
        return poison(ty);
    }
    match emit_at(Loc::caller(), OpRef::new(AxisIndex { axis: name.to_string() }), &[], &[ty])[..] {
        [index] => index,
        _ => Tensor::dead(Loc::caller()),
    }
}

#[track_caller]
fn reduce<T: Tree>(op: &str, tree: T, axis: &str, computation: Combination) -> T {
    if check_axis(op, axis).is_none() {
        return tree;
    }
    let results = all_reduce(Loc::caller(), &tree.leaves(), axis, computation);
    tree.with_leaves(&results)
}

fn all_reduce(loc: Loc, operands: &[Tensor], axis: &str, computation: Combination) -> Vec<Tensor> {
    if operands.is_empty() {
        return Vec::new();
    }
    let guess: Vec<TensorType> = operands.iter().map(|operand| operand.ty()).collect();
    emit_at(loc, OpRef::new(AllReduce { axis: axis.to_string(), computation }), operands, &guess)
}

/// The extent of an axis: `Some(None)` for replicas, if their number is not known yet; `None`, with
/// an error, if the axis does not exist.
#[track_caller]
fn check_axis(op: &str, axis: &str) -> Option<Option<usize>> {
    let size = state::with(|trace| trace.axis_size(axis)).flatten();
    if size.is_none() && axis != REPLICAS {
        let around = state::with(|trace| trace.axis_names()).unwrap_or_default();
        let around = match around.is_empty() {
            true => String::new(),
            false => format!(", only `{}`", around.join("`, `")),
        };
        let advice = format!("name one with `vmap_named(\"{axis}\", ..)`");
        report(op, format!("there is no axis `{axis}` around{around}: {advice}"), &[]);
        return None;
    }
    Some(size)
}
