//! The rules of the e-graph, by family.
//!
//! # What a rule may do
//! - It is directional: it says of a node what cheaper or plainer term is equal. It makes no term that costs more for its own
//!   sake, in the hope of another rule; so graphs stay small.
//! - It is true to the bit, by the reference semantics, for all values: NaN, infinities and -0 too. `x + 0.0` is *not* `x`
//!   (it turns -0 into 0), but `x + -0.0` is, and so is `x - 0.0`. `x * 0.0` is not `0.0` (NaN, infinities, the sign).
//!   `x - x` is not `0.0`. `-(x - y)` is not `y - x` (the sign of zero). All of that holds for integers, which wrap.
//! - It never reassociates floats: `(x + 1.0) + 2.0` stays.
//! - It never changes the order of a sum in a product or a reduction.
//! - It has a name, which says what becomes what, and an example on which it applies, in every dtype that it is for: the
//!   tests run each rule alone on its examples and compare all bits, at the edges of the dtypes and at random values.
//! - An op says what it is (`pointwise`, `recompute`, `exact`) where that is enough; a rule that knows single ops is an
//!   identity *between* them and stands here, in the family of what it matches.

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
    /// The group by which it is switched on and off.
    pub group: Group,
    /// True for the ops whose nodes it looks at.
    pub(super) root: fn(&OpRef) -> bool,
    /// Adds the terms that are equal to a node: its class, its op, its operands.
    pub(super) apply: fn(View, Id, &OpRef, &[Id], &mut Vec<Term>),
    /// The dtypes of the example.
    pub dtypes: &'static [DType],
    /// A value to which it applies, of two tensors of a dtype and one of bools, all of shape [2, 3].
    pub example: fn(&mut Builder, Var, Var, Var) -> Var,
}

/// The rules of all families.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    let families: [&'static [Rule]; 5] =
        [algebra::RULES, bits::RULES, select::RULES, shape::RULES, sink::RULES];
    families.into_iter().flatten()
}

/// The rules that are switched on.
pub(super) fn enabled(options: &Options) -> Vec<&'static Rule> {
    all().filter(|rule| options.has(rule.group)).collect()
}

/// True if an op is a `T`.
fn is<T: Op>(op: &OpRef) -> bool {
    op.downcast::<T>().is_some()
}

/// The op at which a rule for `T` was applied.
fn root<T: Op>(op: &OpRef) -> &T {
    op.downcast().expect("the rule is applied to nodes of its op alone")
}

const NUMBERS: &[DType] =
    &[DType::F32, DType::F64, DType::BF16, DType::I32, DType::U32, DType::I8, DType::U64];
const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::BF16];
const INTEGERS: &[DType] = &[DType::I32, DType::U32, DType::I8, DType::U64];
const BITS: &[DType] = &[DType::Bool, DType::I32, DType::U32, DType::U8];
const ALL: &[DType] = &[DType::F32, DType::I32, DType::U8, DType::Bool, DType::BF16];
