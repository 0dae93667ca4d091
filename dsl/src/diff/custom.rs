//! Functions with a user-defined derivative.

use super::zeros_of;
use crate::control::body::{Leaf, Param, emit_at, share_captures, trace_body, trace_once};
use crate::tensor::Tensor;
use crate::trace::TraceError;
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Path, Tree, typed_paths};
use podracer_compiler::ops::{CustomJvp, CustomVjp};
use podracer_compiler::{Loc, OpRef, TensorType, Var};

/// Runs `f` on `arguments` and defines its derivative: `rule(arguments, tangents)` gives the value
/// and its tangent, linear in the tangents. It serves forward and reverse mode. `jax.custom_jvp`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// /// log(1 + exp(x)). The derivative that follows from the ops is NaN where exp(x) overflows.
/// fn log1pexp(x: Tensor) -> Tensor {
///     let f = |x: Tensor| x.exp().log1p();
///     custom_jvp(x, f, |x, dx| (f(x), x.sigmoid() * dx))
/// }
/// let slope = trace(f32([]), |x| grad(x, log1pexp))?;
/// # let at = Array::floats(F32, [], &[100.0]);
/// assert_eq!(slope.eval(&[at])?[0].to_f64(), [1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Captured tensors are constants. Leaves that are no floats have tangents of zero, and the
/// tangents that the rule gives for them are ignored.
///
/// Errors:
/// - a value or tangent with another structure or type than the result of `f`;
/// - a rule that is not linear in the tangents;
/// - a captured tensor that is differentiated after all (pass it among the arguments).
#[track_caller]
pub fn custom_jvp<A: IntoTree, Y: IntoTree, V, D>(
    arguments: A,
    f: impl FnOnce(A::Tree) -> Y,
    rule: impl FnOnce(A::Tree, A::Tree) -> (V, D),
) -> Y::Tree
where
    V: IntoTree<Tree = Y::Tree>,
    D: IntoTree<Tree = Y::Tree>,
{
    const OP: &str = "custom_jvp";
    let loc = Loc::caller();
    let arguments = arguments.into_tree();
    let leaves = arguments.leaves();
    // Only one of the two runs: both may use a captured key.
    let before = state::with(|trace| trace.consumed()).unwrap_or_default();
    let body = trace_once("f", OP, &arguments, f).without_log();
    let by_f = state::with(|trace| trace.restore_consumed(before)).unwrap_or_default();
    let with_slopes = (arguments, floats(&leaves));
    let rule = trace_once("rule", OP, &with_slopes, |(at, slopes)| {
        rule(at.clone(), with_floats(&at, &slopes))
    })
    .without_log();
    state::with(|trace| trace.merge_consumed(by_f));

    let (expected, guess) = (body.typed(), body.types());
    let values = rule.tree.0.paths();
    let (value, tangent) = rule.results.split_at(values.len());
    let fits = is_like(OP, "rule(..).0", &expected, values, value, loc)
        && is_like(OP, "rule(..).1", &expected, rule.tree.1.paths(), tangent, loc);
    let results = if body.broken || rule.broken || !fits {
        body.poisoned(guess)
    } else {
        let mut func = rule.func;
        func.results = float_results(&func.results, &guess, guess.len());
        let functions = [(&body.func, &body.captures[..]), (&func, &rule.captures)];
        let (mut functions, captures) = share_captures(&functions);
        let rule = functions.pop().expect("the second of two functions");
        let op = CustomJvp {
            body: functions.pop().expect("the first of two functions"),
            rule,
            captures: captures.len(),
        };
        emit_at(loc, OpRef::new(op), &[leaves, captures].concat(), &guess)
    };
    body.tree.with_leaves(&results)
}

/// Runs `forward` on `arguments`, which gives the value and residuals, and defines the backward
/// pass: `backward(residuals, cotangent)` gives the cotangent of the arguments. For reverse mode
/// only. `jax.custom_vjp`, with `f` as `forward` without the residuals: a program that does not
/// differentiate does not compute them.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// /// `x`, whose gradient is kept within a bound.
/// fn clip_gradient(x: Tensor, bound: f64) -> Tensor {
///     custom_vjp(x, |x| (x, ()), |(), ct| ct.clamp(-bound, bound))
/// }
/// let slope = trace(f32([]), |x| grad(x, |x| clip_gradient(x, 1.0).square()))?;
/// # let at = Array::floats(F32, [], &[3.0]);
/// assert_eq!(slope.eval(&[at])?[0].to_f64(), [1.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Captured tensors are constants. Leaves that are no floats have cotangents of zero, and the
/// cotangents that `backward` gives for them are ignored. Under `vmap` the cotangent of an argument
/// that is the same in every example is summed over the examples.
///
/// Errors: a cotangent with another structure or type than the arguments; a captured tensor that is
/// differentiated after all (pass it among the arguments); forward mode.
#[track_caller]
pub fn custom_vjp<A: IntoTree, Y: IntoTree, R: IntoTree, C>(
    arguments: A,
    forward: impl FnOnce(A::Tree) -> (Y, R),
    backward: impl FnOnce(R::Tree, Y::Tree) -> C,
) -> Y::Tree
where
    C: IntoTree<Tree = A::Tree>,
{
    const OP: &str = "custom_vjp";
    let loc = Loc::caller();
    let arguments = arguments.into_tree();
    let leaves = arguments.leaves();
    let forward = trace_once("forward", OP, &arguments, forward);
    let (value, residuals) = &forward.tree;
    let count = value.paths().len();
    let (values, kept) = forward.results.split_at(count);
    let param = |leaf: &Leaf| Param { ty: leaf.ty.clone(), poison: leaf.poison };
    let floats = values.iter().filter(|leaf| leaf.ty.dtype.is_float());
    let params = kept.iter().chain(floats).map(param).collect();
    let back = trace_body("backward", FrameKind::Once(OP), None, params, |items| {
        let (items, cotangents) = items.split_at(kept.len());
        let mut cotangents = cotangents.iter();
        let cotangents: Vec<Tensor> = values
            .iter()
            .map(|leaf| match leaf.ty.dtype.is_float() {
                true => cotangents.next().copied().unwrap_or(Tensor::dead(loc)),
                false => zeros_of(&leaf.ty),
            })
            .collect();
        backward(residuals.with_leaves(items), value.with_leaves(&cotangents))
    })
    .without_log();

    let expected = typed_paths(&arguments);
    let paths = back.tree.paths();
    let fits = is_like(OP, "backward(..)", &expected, paths, &back.results, loc);
    let guess: Vec<TensorType> = values.iter().map(|leaf| leaf.ty.clone()).collect();
    let results = if forward.broken || back.broken || !fits {
        forward.poisoned(guess)
    } else {
        let mut func = back.func;
        let types: Vec<TensorType> = expected.into_iter().map(|(_, ty)| ty).collect();
        func.results = float_results(&func.results, &types, 0);
        let functions = [(&forward.func, &forward.captures[..]), (&func, &back.captures)];
        let (mut functions, captures) = share_captures(&functions);
        let backward = functions.pop().expect("the second of two functions");
        let op = CustomVjp {
            forward: functions.pop().expect("the first of two functions"),
            backward,
            residuals: kept.len(),
            captures: captures.len(),
        };
        emit_at(loc, OpRef::new(op), &[leaves, captures].concat(), &guess)
    };
    value.with_leaves(&results)
}

fn floats(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().filter(|tensor| tensor.dtype().is_float()).copied().collect()
}

/// The tree with its floats replaced by `floats`, and its other leaves by zeros.
#[track_caller]
fn with_floats<T: Tree>(tree: &T, floats: &[Tensor]) -> T {
    let mut floats = floats.iter();
    let mut leaves = Vec::new();
    for leaf in tree.leaves() {
        let ty = leaf.ty();
        let float = if ty.dtype.is_float() { floats.next() } else { None };
        leaves.push(float.copied().unwrap_or_else(|| zeros_of(&ty)));
    }
    tree.with_leaves(&leaves)
}

/// The results, without non-float results at position `first` or later; `types` are the types of
/// the results from `first`.
fn float_results(results: &[Var], types: &[TensorType], first: usize) -> Vec<Var> {
    let is_float = |i: usize| i < first || types[i - first].dtype.is_float();
    (0..results.len()).filter(|&i| is_float(i)).map(|i| results[i]).collect()
}

/// True if the result of a user's rule has the expected paths, and the expected types of floats. If not, an error is
/// recorded at the line that made it.
fn is_like(
    op: &str,
    what: &str,
    expected: &[(Path, TensorType)],
    paths: Vec<Path>,
    got: &[Leaf],
    loc: Loc,
) -> bool {
    let types = got.iter().map(|leaf| leaf.ty.clone());
    let typed: Vec<(Path, TensorType)> = paths.into_iter().zip(types).collect();
    for (leaf, ((path, wanted), (_, ty))) in got.iter().zip(expected.iter().zip(&typed)) {
        if wanted.dtype.is_float() && wanted != ty {
            if !leaf.poison {
                let message = format!("`{}` must be {wanted}, got {ty}", path.under(what));
                state::with(|trace| {
                    let error = TraceError::new(op, message, leaf.made);
                    trace.error(error.note(format!("`{op}` at"), loc));
                });
            }
            return false;
        }
    }
    if typed.iter().map(|(path, _)| path).ne(expected.iter().map(|(path, _)| path)) {
        let message = format!("`{what}` must have {} leaves, got {}", expected.len(), got.len());
        state::with(|trace| trace.error(TraceError::new(op, message, loc)));
        return false;
    }
    true
}
