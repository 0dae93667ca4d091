//! Turns closures into functions: one frame for each closure, closed together with its captures.

use crate::tensor::{Tensor, report};
use crate::trace::entry::Entry;
use crate::trace::state::{self, FrameKind};
use crate::tree::{IntoTree, Path, Tree, typed_paths};
use podracer_compiler::{Builder, Func, Loc, OpRef, TensorType, Var};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A closure that has been traced.
pub(crate) struct Body<Y> {
    /// Explicit parameters, then one for each capture.
    pub func: Func,
    /// The captured tensors, of the frames around.
    pub captures: Vec<Tensor>,
    /// The closure's result: handles of the closed frame, good only for their structure.
    pub tree: Y,
    /// Paths, types and places of the results.
    pub results: Vec<Leaf>,
    /// The log of the closure: handles of the closed frame. Its leaves are further results of the function.
    pub log: Vec<Entry>,
    /// True if the function is invalid: there was an error inside, or an operand is poisoned.
    pub broken: bool,
}

/// A leaf of a closure's result.
pub(crate) struct Leaf {
    pub path: Path,
    pub ty: TensorType,
    pub made: Loc,
    pub poison: bool,
}

impl<Y: Tree> Body<Y> {
    /// The body of a closure that ran for its structure only.
    fn without_function(name: &str, results: Vec<Leaf>, tree: Y) -> Self {
        let func = Builder::new().finish(name, Vec::new());
        Body { func, captures: Vec::new(), tree, results, log: Vec::new(), broken: true }
    }

    /// Paths and types of the results.
    pub fn typed(&self) -> Vec<(Path, TensorType)> {
        self.results.iter().map(|leaf| (leaf.path.clone(), leaf.ty.clone())).collect()
    }

    /// The types of the results.
    pub fn types(&self) -> Vec<TensorType> {
        self.results.iter().map(|leaf| leaf.ty.clone()).collect()
    }

    /// The types of the log's leaves.
    pub fn log_types(&self) -> Vec<TensorType> {
        let types = self.func.result_types();
        types[self.results.len().min(types.len())..].to_vec()
    }

    /// Runs `primal` on `arguments`. `primal` is a function of a derivative: its results are the
    /// closure's results, the leaves of the closure's log, and further results. Returns the
    /// closure's results and the further results; the log goes to the current frame.
    pub fn run_primal(
        &self,
        loc: Loc,
        primal: &Func,
        arguments: &[Tensor],
    ) -> (Vec<Tensor>, Vec<Tensor>) {
        let mut values = inline_at(loc, primal, arguments);
        let mut log = values.split_off(self.results.len().min(values.len()));
        let further = log.split_off(self.log_types().len().min(log.len()));
        self.relog(&log);
        (values, further)
    }

    /// Drops the log of the closure.
    pub fn without_log(mut self) -> Self {
        self.func.results.truncate(self.results.len());
        self.log = Vec::new();
        self
    }

    /// Adds the closure's log to the log of the current frame; `leaves` are the log's leaves in
    /// that frame.
    pub fn relog(&self, leaves: &[Tensor]) {
        relog(self.log.with_leaves(leaves));
    }

    /// [`Body::relog`] for leaves that are stacked over the rounds of a loop.
    #[track_caller]
    pub fn relog_rounds(&self, leaves: &[Tensor]) {
        let mut entries = Vec::new();
        for entry in self.log.with_leaves(leaves) {
            entries.extend(entry.over_rounds());
        }
        relog(entries);
    }

    /// Poisoned stand-ins for the results, of these types.
    #[track_caller]
    pub fn poisoned(&self, types: impl IntoIterator<Item = TensorType>) -> Vec<Tensor> {
        let loc = Loc::caller();
        types.into_iter().map(|ty| poison_at(ty, loc)).collect()
    }
}

/// Adds entries to the log of the current frame.
pub(crate) fn relog(entries: Vec<Entry>) {
    state::with(|trace| trace.log(entries));
}

fn poison_at(ty: TensorType, loc: Loc) -> Tensor {
    state::with(|trace| trace.poison(ty, loc)).unwrap_or(Tensor::dead(loc))
}

/// A parameter of a body before its frame is open: its type, and whether the operand for it is poisoned.
pub(crate) struct Param {
    pub ty: TensorType,
    pub poison: bool,
}

impl Param {
    /// A parameter of the type of `tensor`.
    pub fn like(tensor: Tensor) -> Param {
        Param { ty: tensor.ty(), poison: is_poison(tensor) }
    }

    /// A parameter that takes one slice of `tensor`.
    pub fn slice(tensor: Tensor) -> Param {
        let ty = tensor.ty();
        Param { ty: if ty.rank() == 0 { ty } else { ty.unstacked() }, poison: is_poison(tensor) }
    }
}

pub(crate) fn is_poison(tensor: Tensor) -> bool {
    state::with(|trace| trace.is_poison(tensor)).unwrap_or(true)
}

/// The number of items that `op` goes over; `None`, with an error about `tensors`, where it is not known.
#[track_caller]
pub(super) fn known_length(
    op: &str,
    length: Result<usize, String>,
    tensors: &[Tensor],
) -> Option<usize> {
    match length {
        Ok(length) => Some(length),
        Err(message) => {
            report(op, message, tensors);
            None
        }
    }
}

/// Runs a closure in a frame of its own.
#[track_caller]
pub(crate) fn trace_body<Y: IntoTree>(
    name: &str,
    kind: FrameKind,
    axis: Option<(String, usize)>,
    params: Vec<Param>,
    f: impl FnOnce(&[Tensor]) -> Y,
) -> Body<Y::Tree> {
    let loc = Loc::caller();
    let mut broken = params.iter().any(|param| param.poison);
    let opened = state::with(|trace| {
        trace.open(kind, axis);
        let handles: Vec<Tensor> =
            params.iter().map(|param| trace.param(param.ty.clone(), param.poison, loc)).collect();
        (handles, trace.error_count())
    });
    let Some((handles, errors)) = opened else {
        // Outside of a trace the closure runs for its structure only.
        let handles: Vec<Tensor> = params.iter().map(|_| Tensor::dead(loc)).collect();
        let tree = f(&handles).into_tree();
        return Body::without_function(name, leaves_of(&tree), tree);
    };
    let tree = f(&handles).into_tree();
    let (results, leaves) = (leaves_of(&tree), tree.leaves());
    let closed = state::with(|trace| {
        broken |= leaves.iter().any(|&leaf| trace.is_poison(leaf));
        let log = trace.take_log();
        let closed = trace.close(name, &chain(&leaves, &log.leaves()));
        broken |= trace.error_count() > errors
            || closed.captures.iter().any(|&capture| trace.is_poison(capture));
        (closed, log)
    });
    match closed {
        Some((closed, log)) => {
            Body { func: closed.func, captures: closed.captures, tree, results, log, broken }
        }
        None => Body::without_function(name, results, tree),
    }
}

fn leaves_of<Y: Tree>(tree: &Y) -> Vec<Leaf> {
    typed_paths(tree)
        .into_iter()
        .zip(tree.leaves())
        .map(|((path, ty), leaf)| Leaf { path, ty, made: leaf.made(), poison: is_poison(leaf) })
        .collect()
}

/// Emits a region op at a place.
pub(crate) fn emit_at(loc: Loc, op: OpRef, inputs: &[Tensor], guess: &[TensorType]) -> Vec<Tensor> {
    state::with(|trace| trace.emit(loc, op, inputs, guess))
        .unwrap_or_else(|| vec![Tensor::dead(loc); guess.len()])
}

/// [`trace_body`] of a closure that runs once, for `op`: explicit parameters for the leaves of `arguments`.
#[track_caller]
pub(crate) fn trace_once<A: Tree, Y: IntoTree>(
    name: &str,
    op: &'static str,
    arguments: &A,
    f: impl FnOnce(A) -> Y,
) -> Body<Y::Tree> {
    let params = arguments.leaves().into_iter().map(Param::like).collect();
    trace_body(name, FrameKind::Once(op), None, params, |items| f(arguments.with_leaves(items)))
}

/// Traces a closure that runs once on the arguments, and emits `op` around it.
#[track_caller]
pub(crate) fn run_once<A: IntoTree, Y: IntoTree>(
    name: &str,
    kind: &'static str,
    arguments: A,
    f: impl FnOnce(A::Tree) -> Y,
    op: impl FnOnce(Arc<Func>) -> OpRef,
) -> Y::Tree {
    let loc = Loc::caller();
    let arguments = arguments.into_tree();
    let body = trace_once(name, kind, &arguments, f);
    let guess = [body.types(), body.log_types()].concat();
    let results = if body.broken {
        body.poisoned(guess)
    } else {
        let op = op(Arc::new(body.func.clone()));
        emit_at(loc, op, &chain(&arguments.leaves(), &body.captures), &guess)
    };
    let (results, log) = results.split_at(body.results.len());
    body.relog(log);
    body.tree.with_leaves(results)
}

/// Copies a function's equations into the current frame.
pub(crate) fn inline_at(loc: Loc, func: &Func, arguments: &[Tensor]) -> Vec<Tensor> {
    state::with(|trace| trace.inline(loc, func, arguments))
        .unwrap_or_else(|| vec![Tensor::dead(loc); func.results.len()])
}

/// The concatenation of two lists.
pub(crate) fn chain(first: &[Tensor], second: &[Tensor]) -> Vec<Tensor> {
    first.iter().chain(second).copied().collect()
}

/// The function with its captures, which stand last, moved to the front.
pub(crate) fn captures_first(mut func: Func, captures: usize) -> Func {
    func.params.rotate_right(captures);
    func
}

/// Gives the functions the same captures. Each function's last parameters are its own captures;
/// they are replaced by the captures of every function, which are returned too.
pub(crate) fn share_captures(functions: &[(&Func, &[Tensor])]) -> (Vec<Arc<Func>>, Vec<Tensor>) {
    let mut captures: Vec<Tensor> = Vec::new();
    let mut positions: BTreeMap<u32, usize> = BTreeMap::new();
    for &capture in functions.iter().flat_map(|(_, captures)| *captures) {
        positions.entry(capture.slot()).or_insert_with(|| {
            captures.push(capture);
            captures.len() - 1
        });
    }
    let types: Vec<TensorType> = captures.iter().map(|capture| capture.ty()).collect();
    let shared = functions.iter().map(|(func, own)| {
        let mut b = Builder::new();
        let mut param = |ty: &TensorType| b.param(ty.clone());
        let explicit = &func.param_types()[..func.params.len() - own.len()];
        let mut arguments: Vec<Var> = explicit.iter().map(&mut param).collect();
        let params: Vec<Var> = types.iter().map(&mut param).collect();
        arguments.extend(own.iter().map(|capture| params[positions[&capture.slot()]]));
        let results = b.inline(func, &arguments);
        Arc::new(b.finish(func.name.clone(), results))
    });
    (shared.collect(), captures)
}
