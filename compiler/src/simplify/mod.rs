//! Rewrites a function to fewer and cheaper equations with bit-identical results.
//!
//! First, common subexpressions and dead code are removed from a function, and its all-reduces are
//! merged if possible. Then every region (the function, each body) becomes its own e-graph. Named
//! rules find equal terms in it, and the cheapest terms are extracted. Then loops become slimmer: a
//! carry that never changes becomes a constant of its loop, a constant moves into the body. This
//! repeats until nothing changes.
//!
//! The e-graph and its rules are the feature `egraph`. No group is on by default: on the training
//! loops of `benches/simplify` the rules remove 11 to 18 of 100 equations, but no gain in compile
//! time or run time could be measured.
//!
//! # Invariants
//! - Results are bit-identical by the reference semantics, including NaN, infinities and -0.
//! - The result never costs more than the input, and simplifying it again changes nothing, unless a
//!   limit was reached.
//! - Limits are numbers of rounds and nodes, never times. The result is a function of the program
//!   and the options.
//! - Work is proportional to the number of a region's nodes, which is limited by the number of its
//!   equations.

#[cfg(feature = "egraph")]
mod cost;
#[cfg(feature = "egraph")]
mod extract;
#[cfg(feature = "egraph")]
mod graph;
mod group;
#[cfg(feature = "egraph")]
mod region;
#[cfg(feature = "egraph")]
pub mod rules;
#[cfg(all(test, feature = "egraph"))]
mod tests;

use crate::array::Array;
use crate::ir::{Builder, Func, Var};
use crate::ops::{Constant, OpRef, Scan, While};
use crate::scalar::Scalar;
use crate::transform::{cse, dce, join, launch_less, map_bodies, settle_launched};

pub use group::Group;

/// The groups of rewrites and the limits of [`simplify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The enabled groups.
    groups: Vec<Group>,
    /// The most runs of the rules over a region's e-graph.
    pub iterations: usize,
    /// The most nodes of a region's e-graph, per equation of the region, before the rules stop.
    pub nodes_per_equation: usize,
    /// The most repetitions of the whole process.
    pub rounds: usize,
    /// True for a platform that launches every kernel. On it, loops with fewer kernels
    /// ([`launch_less`]) are faster although they are longer. These rewrites run after all groups.
    /// [`Launched`](crate::ops::Launched) has this value.
    pub launches: bool,
    /// True for a program that is compiled with XLA's option to compile a loop of any size to one
    /// kernel ([`ModuleSpec::whole_loops`](crate::stablehlo::ModuleSpec::whole_loops)).
    pub whole_loops: bool,
}

impl Default for Options {
    /// The options without any group: common subexpressions and dead code only.
    fn default() -> Self {
        Options {
            groups: Vec::new(),
            iterations: 8,
            nodes_per_equation: 8,
            rounds: 8,
            launches: false,
            whole_loops: false,
        }
    }
}

impl Options {
    /// The options with all groups.
    pub fn all() -> Self {
        Options { groups: Group::ALL.to_vec(), ..Options::default() }
    }

    /// The options with exactly the groups in a list such as `algebra,fold`. The error is the word
    /// that names no group.
    pub fn parse(list: &str) -> Result<Self, String> {
        list.split(',').try_fold(Options::default(), |options, word| {
            let group = Group::ALL.iter().find(|group| group.word() == word);
            group.map(|&group| options.with(group)).ok_or_else(|| word.to_owned())
        })
    }

    /// These options with one more group.
    #[must_use]
    pub fn with(mut self, group: Group) -> Self {
        if !self.has(group) {
            self.groups.push(group);
        }
        self
    }

    /// These options without one group.
    #[must_use]
    pub fn without(mut self, group: Group) -> Self {
        self.groups.retain(|&other| other != group);
        self
    }

    /// True if a group is enabled.
    pub fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }
}

/// The function that gives the same results with fewer or cheaper equations, including its bodies.
/// Parameters stay.
pub fn simplify(func: &Func, options: &Options) -> Func {
    let mut func = tidy(&settle_launched(func, options.launches));
    let rounds = if options.groups.is_empty() { 0 } else { options.rounds };
    for _ in 0..rounds {
        let next = tidy(&pass(&func, options));
        if next == func {
            break;
        }
        func = next;
    }
    if options.launches { tidy(&launch_less(&func)) } else { func }
}

fn tidy(func: &Func) -> Func {
    join(&dce(&cse(&dce(func))))
}

/// Simplifies the bodies of a region's ops and then the region, once.
fn pass(func: &Func, options: &Options) -> Func {
    let func = rewrite_loops(func, options);
    #[cfg(feature = "egraph")]
    let func = region::simplify(&func, options);
    func
}

/// Rewrites each loop of a region separately, and simplifies the bodies of its ops.
fn rewrite_loops(func: &Func, options: &Options) -> Func {
    let mut known: Vec<Option<Scalar>> = vec![None; func.types.len()];
    func.rebuilt(|b, eqn, inputs| {
        let values: Vec<Option<Scalar>> = eqn.inputs.iter().map(|var| known[var.index()]).collect();
        if let ([output], Some(value)) = (&eqn.outputs[..], constant(&eqn.op, &values)) {
            known[output.index()] = Some(value);
        }
        let op = map_bodies(&eqn.op, |body| pass(body, options));
        let slimmer = options.has(Group::Loops).then(|| slimmer(&op, b, inputs, &values)).flatten();
        slimmer.unwrap_or_else(|| b.emit_ref(op, inputs))
    })
}

/// Emits the equations of a loop with bit-identical results and fewer operands; `None` if there are
/// none. `known` has the value of each operand that is a constant with all elements equal.
fn slimmer(
    op: &OpRef,
    b: &mut Builder,
    inputs: &[Var],
    known: &[Option<Scalar>],
) -> Option<Vec<Var>> {
    match op.downcast::<Scan>() {
        Some(scan) => scan.slimmer(b, inputs, known),
        None => op.downcast::<While>()?.slimmer(b, inputs),
    }
}

/// The common value of an op's result's elements, if the op is a constant or repeats a constant.
fn constant(op: &OpRef, inputs: &[Option<Scalar>]) -> Option<Scalar> {
    match (op.downcast::<Constant>(), inputs) {
        (Some(constant), _) => constant.value.splat_value(),
        (None, &[value]) if op.recompute() => value,
        _ => None,
    }
}

impl Builder {
    /// A constant of this type with one scalar everywhere.
    pub(crate) fn splat(&mut self, ty: &crate::TensorType, value: Scalar) -> Var {
        // A large constant would be stored element by element.
        if ty.elements() <= LARGEST_CONSTANT {
            return self.constant(Array::splat(ty.clone(), value));
        }
        let value = self.constant(Array::single(ty.dtype, value));
        self.broadcast_in_dim(value, &ty.shape, &[])
    }
}

/// The number of elements of the largest tensor that is stored element by element although its
/// elements are equal.
const LARGEST_CONSTANT: usize = 1024;

/// The op of a constant.
#[cfg(feature = "egraph")]
fn constant_op(value: Array) -> OpRef {
    OpRef::new(Constant { value: std::sync::Arc::new(value) })
}
