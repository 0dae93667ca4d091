//! Fewer and cheaper equations for the same results, to the bit.
//!
//! A function is first cleared of common subexpressions and dead code, and its all-reduces wait together where they can. Then every region (the function, each body) becomes
//! an e-graph of its own. Named rules find equal terms there, and the cheapest terms are taken out again. Then loops become
//! slimmer: a carry that never changes becomes a constant of its loop, a constant enters the body. This repeats until nothing changes.
//!
//! The e-graph and its rules are the feature `egraph`. No group is on by default: on the training loops of `benches/simplify` 11 to 18 of 100 equations go, and yet no
//! gain in compiling or running could be measured.
//!
//! # Invariants
//! - Results are the same to the bit, by the reference semantics: also for NaN, infinities and -0.
//! - What comes out never costs more than what went in, and simplifying it again changes nothing, unless a limit was met.
//! - Limits are numbers of rounds and nodes, never times. The result is a function of the program and the options.
//! - Work grows with the size of a region as its nodes do, and their number is limited by the number of its equations.

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
    /// The groups that are switched on.
    groups: Vec<Group>,
    /// The most runs of the rules over a region's e-graph.
    pub iterations: usize,
    /// The most nodes of a region's e-graph for each equation of the region, before the rules stop.
    pub nodes_per_equation: usize,
    /// The most repetitions of the whole.
    pub rounds: usize,
    /// True for a platform that launches every kernel, where loops of fewer of them ([`launch_less`]) are faster though they are longer. They
    /// come after all groups. [`Launched`](crate::ops::Launched) is this.
    pub launches: bool,
    /// True for a program that is compiled with XLA's option that makes one kernel of a loop of any size
    /// ([`ModuleSpec::whole_loops`](crate::stablehlo::ModuleSpec::whole_loops)).
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

    /// The options with the groups in a list such as `algebra,fold`, and no others. The error is the word that is no group.
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

    /// True if a group is switched on.
    pub fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }
}

/// The function that gives the same results with fewer or cheaper equations, its bodies too. Parameters stay.
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

/// Rewrites each loop of a region by itself, and simplifies the bodies of its ops.
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

/// Emits the equations of a loop with bit-identical results and fewer operands; `None` if there are none. `known` has the value of
/// each operand that is a constant with all elements the same.
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

/// The value of all elements of an op's result, if it is a constant or repeats one.
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
        // A large constant would be kept element by element.
        if ty.elements() <= LARGEST_CONSTANT {
            return self.constant(Array::splat(ty.clone(), value));
        }
        let value = self.constant(Array::single(ty.dtype, value));
        self.broadcast_in_dim(value, &ty.shape, &[])
    }
}

/// The elements of the largest tensor that is kept element by element though all of them are the same.
const LARGEST_CONSTANT: usize = 1024;

/// The op that gives a constant.
#[cfg(feature = "egraph")]
fn constant_op(value: Array) -> OpRef {
    OpRef::new(Constant { value: std::sync::Arc::new(value) })
}
