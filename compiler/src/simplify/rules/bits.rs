//! Bits and truth values.

use super::super::graph::Term;
use super::algebra::{involution, neutral, of_itself, regroup, right_neutral};
use super::{BITS, Group, INTEGERS, Rule, is};
use crate::ops::{
    And, Compare, Direction, Not, Or, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Xor,
};
use crate::scalar::Scalar;
use crate::types::DType;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "x & x = x; x | x = x",
        group: Group::Algebra,
        root: |op| is::<And>(op) || is::<Or>(op),
        apply: of_itself,
        dtypes: BITS,
        example: |b, x, _, _| b.and(x, x),
    },
    Rule {
        name: "x ^ x = 0",
        group: Group::Algebra,
        root: is::<Xor>,
        apply: |view, id, _, x, out| {
            if view.same(x[0], x[1]) {
                let ty = view.ty(id);
                out.push(Term::Splat(ty.clone(), Scalar::zero(ty.dtype)));
            }
        },
        dtypes: BITS,
        example: |b, x, _, _| b.xor(x, x),
    },
    Rule {
        name: "x | 0 = x; x ^ 0 = x; x & ones = x",
        group: Group::Algebra,
        root: |op| is::<Or>(op) || is::<Xor>(op) || is::<And>(op),
        apply: |view, id, op, x, out| {
            let dtype = view.ty(id).dtype;
            let value = if is::<And>(op) { ones(dtype) } else { Scalar::zero(dtype) };
            neutral(x, |id| view.splat(id) == Some(value), out);
        },
        dtypes: BITS,
        example: |b, x, _, _| {
            let zero = b.full_like(x, 0.0);
            b.xor(zero, x)
        },
    },
    Rule {
        name: "x & 0 = 0; x | ones = ones",
        group: Group::Algebra,
        root: |op| is::<And>(op) || is::<Or>(op),
        apply: |view, id, op, x, out| {
            let dtype = view.ty(id).dtype;
            let absorbing = if is::<And>(op) { Scalar::zero(dtype) } else { ones(dtype) };
            out.extend(
                x.iter().filter(|&&id| view.splat(id) == Some(absorbing)).map(|&id| Term::from(id)),
            );
        },
        dtypes: BITS,
        example: |b, x, _, _| {
            let zero = b.full_like(x, 0.0);
            b.and(x, zero)
        },
    },
    Rule {
        name: "!!x = x",
        group: Group::Algebra,
        root: is::<Not>,
        apply: involution::<Not>,
        dtypes: BITS,
        example: |b, x, _, _| {
            let not = b.not(x);
            b.not(not)
        },
    },
    Rule {
        name: "a shift by 0 is nothing",
        group: Group::Algebra,
        root: |op| {
            is::<ShiftLeft>(op) || is::<ShiftRightLogical>(op) || is::<ShiftRightArithmetic>(op)
        },
        apply: right_neutral::<0>,
        dtypes: INTEGERS,
        example: |b, x, _, _| {
            let zero = b.full_like(x, 0.0);
            b.emit1(ShiftLeft {}, &[x, zero])
        },
    },
    Rule {
        name: "(x ^ c) ^ d = x ^ (c ^ d) for constants c, d; & and | too",
        group: Group::Algebra,
        root: |op| is::<Xor>(op) || is::<And>(op) || is::<Or>(op),
        apply: |view, _, op, x, out| regroup(view, op, x, out),
        dtypes: INTEGERS,
        example: |b, x, _, _| {
            let (two, three) = (b.full_like(x, 2.0), b.full_like(x, 3.0));
            let xor = b.xor(two, x);
            b.xor(xor, three)
        },
    },
    Rule {
        name: "!(x == y) = x != y; where there is no NaN, !(x < y) = x >= y",
        group: Group::Select,
        root: is::<Not>,
        apply: |view, _, _, x, out| {
            for (compare, y) in view.all::<Compare>(x[0]) {
                let total = !view.ty(y[0]).dtype.is_float();
                let direction = match compare.direction {
                    Direction::Eq => Direction::Ne,
                    Direction::Ne => Direction::Eq,
                    Direction::Lt if total => Direction::Ge,
                    Direction::Ge if total => Direction::Lt,
                    Direction::Gt if total => Direction::Le,
                    Direction::Le if total => Direction::Gt,
                    _ => continue,
                };
                out.push(Term::new(Compare { direction }, [y[0].into(), y[1].into()]));
            }
        },
        dtypes: super::ALL,
        example: |b, x, y, _| {
            let equal = b.compare(Direction::Eq, x, y);
            b.not(equal)
        },
    },
];

/// The value of a dtype with all bits set; `true` for bool.
fn ones(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(true),
        dtype => Scalar::Int(-1).normalized(dtype),
    }
}
