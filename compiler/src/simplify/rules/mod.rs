//! The rules of the e-graph, by family.
//!
//! # What a rule may do
//! - A rule is directional: for a node it gives an equal term that is cheaper or simpler. It makes
//!   no more expensive term in the hope of another rule; so graphs stay small.
//! - It is bit-exact by the reference semantics for all values, including NaN, infinities and -0.
//!   `x + 0.0` is *not* `x` (it turns -0 into 0), but `x + -0.0` is, and so is `x - 0.0`. `x * 0.0`
//!   is not `0.0` (NaN, infinities, the sign). `x - x` is not `0.0`. `-(x - y)` is not `y - x` (the
//!   sign of zero). All of these hold for integers, which wrap.
//! - It never reassociates floats: `(x + 1.0) + 2.0` stays.
//! - It never changes the order of a sum in a product or a reduction.
//! - It has a name, which states the rewrite, and an example that it rewrites, in every dtype that
//!   it supports. The tests run each rule alone on its examples and compare all bits, at the edges
//!   of the dtypes and at random values.
//! - If a property of an op (`pointwise`, `recompute`, `exact`) is enough, a rule uses it. A rule
//!   that names ops is an identity *between* them, and belongs to the family of the op that it
//!   matches.

mod algebra;
mod bits;
mod select;
mod shape;
mod sink;

use super::graph::{Term, View};
use super::{Group, Options};
use crate::ir::{Builder, Var};
use crate::ops::{Op, OpRef};
use crate::types::DType;
use egg::Id;

/// A rule of the e-graph, with its name and example.
pub struct Rule {
    /// The two terms that it equates, such as `x * 1 = x`.
    pub name: &'static str,
    /// The group that enables and disables it.
    pub group: Group,
    /// True for ops with nodes that the rule inspects.
    pub(super) root: fn(&OpRef) -> bool,
    /// Adds the terms that are equal to a node: its class, its op, its operands.
    pub(super) apply: fn(View, Id, &OpRef, &[Id], &mut Vec<Term>),
    /// The dtypes of the example.
    pub dtypes: &'static [DType],
    /// A value that it rewrites, built from two tensors of one dtype and one bool tensor, all with
    /// shape [2, 3].
    pub example: fn(&mut Builder, Var, Var, Var) -> Var,
}

/// The rules in every family.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let families: [&'static [Rule]; 5] =
        [algebra::RULES, bits::RULES, select::RULES, shape::RULES, sink::RULES];
    families.into_iter().flatten()
}

/// The rules that are enabled.
pub(super) fn enabled(options: &Options) -> Vec<&'static Rule> {
    all().filter(|rule| options.has(rule.group)).collect()
}

/// True if an op is a `T`.
fn is<T: Op>(op: &OpRef) -> bool {
    op.downcast::<T>().is_some()
}

/// The op of the node that a rule for `T` matched.
fn root<T: Op>(op: &OpRef) -> &T {
    op.downcast().expect("the rule is applied to nodes of its op alone")
}

const NUMBERS: &[DType] =
    &[DType::F32, DType::F64, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U64];
const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::BF16];
const INTEGERS: &[DType] = &[DType::I32, DType::U32, DType::I8, DType::U64];
const BITS: &[DType] = &[DType::Bool, DType::I32, DType::U32, DType::U8];
const ALL: &[DType] = &[DType::F32, DType::I32, DType::U8, DType::Bool, DType::BF16];
