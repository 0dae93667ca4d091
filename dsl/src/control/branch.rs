//! Branches: `cond` and `switch`.

use super::body::{Body, chain, emit_at, relog, share_captures, trace_once};
use crate::tensor::{Tensor, emit1, fail, report};
use crate::trace::TraceError;
use crate::trace::entry::Entry;
use crate::trace::state;
use crate::tree::{IntoTree, Path, Tree, choice_difference, difference};
use podracer_compiler::ops::{Cond, Launched};
use podracer_compiler::{Builder, DType, Func, Loc, OpRef, TensorType, Var};
use std::collections::BTreeMap;

/// A predicate of [`cond`]: a bool scalar, or one with [`Tensor::both`] or [`Tensor::rarely`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a predicate",
    label = "expected a bool `Tensor`"
)]
pub trait Predicate {
    /// The bool scalar, and the behaviour of a vmap that batches it.
    fn predicate(self) -> (Tensor, UnderVmap);
}

/// Behaviour of a vmap that batches the predicate of a [`cond`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnderVmap {
    /// Both branches run, with a warning.
    Warn,
    /// Both branches run.
    Both,
    /// The first branch runs only for the examples that take it, if that is faster.
    Rarely,
}

/// A predicate of [`cond`] with the behaviour of a vmap, made by [`Tensor::both`] and
/// [`Tensor::rarely`].
#[derive(Clone, Copy, Debug)]
pub struct Batching(Tensor, UnderVmap);

impl Predicate for Tensor {
    fn predicate(self) -> (Tensor, UnderVmap) {
        (self, UnderVmap::Warn)
    }
}

impl Predicate for Batching {
    fn predicate(self) -> (Tensor, UnderVmap) {
        (self.0, self.1)
    }
}

impl Tensor {
    /// Makes a predicate of [`cond`] that silences its warning: under vmap both branches run and
    /// the results are selected, on purpose.
    pub fn both(self) -> Batching {
        Batching(self, UnderVmap::Both)
    }

    /// Makes a predicate of [`cond`] that is true for few examples of a batch, such as the examples
    /// with an episode that has just ended. If the branch `yes` is expensive, vmap runs it only for
    /// the examples with a true predicate: they are gathered in blocks, and the blocks run one
    /// after the other. The results are the same; a predicate that is mostly true makes it slower.
    /// Cheap branches run for all examples, as with [`both`](Self::both).
    pub fn rarely(self) -> Batching {
        Batching(self, UnderVmap::Rarely)
    }
}

/// Runs `yes` where `p`, a bool scalar, is true, otherwise `no`. Both return the same types.
///
/// Under a vmap that batches `p`, both branches run and the results are selected. This records a
/// warning, unless [`p.both()`](Tensor::both) declares that it is intended. With
/// [`p.rarely()`](Tensor::rarely) the branch `yes` runs for few examples. `jax.lax.cond`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([]), |x| {
/// let y = cond(x.gt(0.0), || x.sqrt(), || -x);
/// # y
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn cond<A: IntoTree, B: IntoTree<Tree = A::Tree>>(
    p: impl Predicate,
    yes: impl FnOnce() -> A,
    no: impl FnOnce() -> B,
) -> A::Tree {
    let loc = Loc::caller();
    let (p, under_vmap) = p.predicate();
    if under_vmap == UnderVmap::Both {
        state::with(|trace| trace.allow_both(loc));
    }
    let consumed = state::with(|trace| trace.consumed()).unwrap_or_default();
    let yes = trace_once("yes", "cond", &(), |()| yes());
    let by_yes = state::with(|trace| trace.restore_consumed(consumed)).unwrap_or_default();
    let no = trace_once("no", "cond", &(), |()| no());
    state::with(|trace| trace.merge_consumed(by_yes));
    let (ty, flag) = (p.ty(), TensorType::scalar(DType::Bool));
    let p = if ty == flag {
        p
    } else {
        let message = format!(
            "the predicate must be bool[], got {ty} (for one choice per element use `select`)"
        );
        fail("cond", message, &[p], flag)
    };
    // `false` chooses the first branch.
    let rarely = under_vmap == UnderVmap::Rarely;
    finish("cond", p, vec![("false", no), ("true", yes)], rarely, loc)
}

/// Chooses between two ways to the same results: `launched`, with few large ops, and `otherwise`,
/// with many small ops. `launched` is for platforms that launch each kernel, if a launch takes
/// longer than the kernel's work, as on a GPU. The compiled program contains only the chosen way.
/// `jax.lax.platform_dependent`.
///
/// The setting `program.launches` chooses. The reference semantics take `otherwise`.
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(f32([64]), |x| {
/// // The sum of whole numbers, by six ops or in a loop.
/// let halves = || (0..6).fold(x, |x, _| x.slice(..x.len() / 2) + x.slice(x.len() / 2..)).index(0);
/// let sum = if_launched(halves, || fori_loop(0..64, 0.0, |i, sum| sum + x.at(i)));
/// # sum
/// # })?;
/// # Ok::<(), TraceErrors>(())
/// ```
#[track_caller]
pub fn if_launched<A: IntoTree, B: IntoTree<Tree = A::Tree>>(
    launched: impl FnOnce() -> A,
    otherwise: impl FnOnce() -> B,
) -> A::Tree {
    cond(emit1(Launched {}, &[], TensorType::scalar(DType::Bool)), launched, otherwise)
}

/// Runs the branch with the number `index`, an i32 scalar, which is clamped to `0..branches`.
/// `f(i)` is called once for each branch while tracing; all branches return the same types:
///
/// ```
/// # use podracer_dsl::prelude::*;
/// # trace(i32([]), |action| {
/// let force = switch(action, 3, |i| match i { 0 => scalar(-1.0), 1 => scalar(0.0), _ => scalar(1.0) });
/// # force }).unwrap();
/// ```
#[track_caller]
pub fn switch<A: IntoTree>(
    index: Tensor,
    branches: usize,
    mut f: impl FnMut(usize) -> A,
) -> A::Tree {
    let loc = Loc::caller();
    let before = state::with(|trace| trace.consumed()).unwrap_or_default();
    let mut all: BTreeMap<u32, Loc> = BTreeMap::new();
    let mut bodies = Vec::with_capacity(branches);
    if branches == 0 {
        report("switch", "expected at least one branch", &[]);
    }
    for i in 0..branches.max(1) {
        state::with(|trace| trace.restore_consumed(before.clone()));
        let body = trace_once("branch", "switch", &(), |()| f(i));
        all.extend(state::with(|trace| trace.consumed()).unwrap_or_default());
        bodies.push((BRANCH_NAMES.get(i).copied().unwrap_or("a later"), body));
    }
    state::with(|trace| trace.restore_consumed(all));
    let (ty, wanted) = (index.ty(), TensorType::scalar(DType::I32));
    let index = if ty == wanted {
        index
    } else {
        let message = format!("the index must be i32[], got {ty}: cast with `.astype(I32)`");
        fail("switch", message, &[index], wanted)
    };
    finish("switch", index, bodies, false, loc)
}

const BRANCH_NAMES: [&str; 8] = [
    "branch 0", "branch 1", "branch 2", "branch 3", "branch 4", "branch 5", "branch 6", "branch 7",
];

fn finish<Y: Tree>(
    op: &str,
    choice: Tensor,
    mut bodies: Vec<(&'static str, Body<Y>)>,
    rarely: bool,
    loc: Loc,
) -> Y {
    let mut broken = bodies.iter().any(|(_, body)| body.broken);
    let ((last, last_body), others) = bodies.split_last().expect("there is a branch");
    let expected = last_body.typed();
    for (name, body) in others {
        if let Some((path, wanted, got)) = choice_difference(&last_body.tree, &body.tree) {
            let path = path.under("result");
            let message = format!(
                "branches differ at `{path}`: `{last}` gives `{wanted}`, `{name}` gives `{got}`"
            );
            state::with(|trace| trace.error(TraceError::new(op, message, loc)));
            broken = true;
            continue;
        }
        if let Some((leaf, _)) = difference("result", &expected, &body.typed()) {
            let show = |leaves: &[(Path, TensorType)]| {
                leaves.get(leaf).map_or("nothing".to_string(), |(_, ty)| ty.to_string())
            };
            let path = expected
                .get(leaf)
                .map_or_else(|| "result".to_string(), |(path, _)| path.under("result"));
            let message = format!(
                "branches differ at `{path}`: `{last}` gives {}, `{name}` gives {}",
                show(&expected),
                show(&body.typed())
            );
            if !body.broken {
                let made = body.results.get(leaf).map_or(loc, |leaf| leaf.made);
                state::with(|trace| {
                    trace.error(
                        TraceError::new(op, message, loc)
                            .note(format!("`{name}` made it at"), made),
                    )
                });
            }
            broken = true;
        }
    }
    let mut guess: Vec<TensorType> = expected.into_iter().map(|(_, ty)| ty).collect();
    let count = guess.len();
    let log: Vec<Entry> = bodies.iter().flat_map(|(_, body)| body.log.clone()).collect();
    guess.extend(bodies.iter().flat_map(|(_, body)| body.log_types()));
    let results = if broken {
        bodies[0].1.poisoned(guess)
    } else {
        let log_types = &guess[count..];
        let mut at = 0;
        let functions: Vec<(Func, &[Tensor])> = bodies
            .iter()
            .map(|(_, body)| {
                let func = with_log_of_all(&body.func, count, log_types, at);
                at += body.func.results.len() - count;
                (func, &body.captures[..])
            })
            .collect();
        let functions: Vec<_> = functions.iter().map(|(func, own)| (func, *own)).collect();
        let (branches, captures) = share_captures(&functions);
        emit_at(loc, OpRef::new(Cond { branches, rarely }), &chain(&[choice], &captures), &guess)
    };
    let (results, leaves) = results.split_at(count.min(results.len()));
    relog(log.with_leaves(leaves));
    bodies.swap_remove(0).1.tree.with_leaves(results)
}

/// Returns a branch with the log of every branch among its results: its own log at `at`, and zeros
/// for the logs of the branches that did not run.
fn with_log_of_all(func: &Func, count: usize, types: &[TensorType], at: usize) -> Func {
    if types.is_empty() {
        return func.clone();
    }
    let mut b = Builder::new();
    let params: Vec<Var> = func.param_types().into_iter().map(|ty| b.param(ty)).collect();
    let mut results = b.inline(func, &params);
    let own = results.split_off(count);
    for (i, ty) in types.iter().enumerate() {
        let here = i.checked_sub(at).and_then(|i| own.get(i)).copied();
        results.push(here.unwrap_or_else(|| b.zeros(ty)));
    }
    b.finish(func.name.clone(), results)
}
