//! Arithmetic: neutral elements, inverses, signs, and combinations of integer constants.

use super::super::graph::{Term, View};
use super::{FLOATS, Group, INTEGERS, NUMBERS, Rule, is};
use crate::array::Array;
use crate::ops::{
    Abs, Add, Divide, Maximum, Minimum, Multiply, Negate, Op, OpRef, StopGradient, Subtract,
};
use crate::scalar::Scalar;
use egg::Id;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "x + -0.0 = x; integers: x + 0 = x",
        group: Group::Algebra,
        root: is::<Add>,
        apply: |view, _, _, x, out| {
            let zero = |id: Id| match view.splat(id) {
                Some(Scalar::Float(zero)) => zero == 0.0 && zero.is_sign_negative(),
                value => value == Some(Scalar::Int(0)),
            };
            neutral(x, zero, out);
        },
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let zero = if b.ty(x).dtype.is_float() { -0.0 } else { 0.0 };
            let zero = b.full_like(x, zero);
            b.add(zero, x)
        },
    },
    Rule {
        name: "x - 0 = x",
        group: Group::Algebra,
        root: is::<Subtract>,
        apply: right_neutral::<0>,
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let zero = b.full_like(x, 0.0);
            b.sub(x, zero)
        },
    },
    Rule {
        name: "x * 1 = x",
        group: Group::Algebra,
        root: is::<Multiply>,
        apply: |view, _, _, x, out| neutral(x, |id| view.is_number(id, 1), out),
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let one = b.full_like(x, 1.0);
            b.mul(x, one)
        },
    },
    Rule {
        name: "x / 1 = x",
        group: Group::Algebra,
        root: is::<Divide>,
        apply: right_neutral::<1>,
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let one = b.full_like(x, 1.0);
            b.div(x, one)
        },
    },
    Rule {
        name: "integers: x * 0 = 0",
        group: Group::Algebra,
        root: is::<Multiply>,
        apply: |view, _, _, x, out| {
            for &id in x {
                if view.splat(id) == Some(Scalar::Int(0)) {
                    out.push(id.into());
                }
            }
        },
        dtypes: INTEGERS,
        example: |b, x, _, _| {
            let zero = b.full_like(x, 0.0);
            b.mul(x, zero)
        },
    },
    Rule {
        name: "integers: x - x = 0",
        group: Group::Algebra,
        root: is::<Subtract>,
        apply: |view, id, _, x, out| {
            let ty = view.ty(id);
            if view.same(x[0], x[1]) && ty.dtype.is_integer() {
                out.push(Term::Splat(ty.clone(), Scalar::Int(0)));
            }
        },
        dtypes: INTEGERS,
        example: |b, x, _, _| b.sub(x, x),
    },
    Rule {
        name: "-(-x) = x",
        group: Group::Algebra,
        root: is::<Negate>,
        apply: involution::<Negate>,
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let minus = b.neg(x);
            b.neg(minus)
        },
    },
    Rule {
        name: "x + -y = x - y",
        group: Group::Algebra,
        root: is::<Add>,
        apply: |view, _, _, x, out| {
            for (kept, negated) in both_ways(x) {
                for (_, y) in view.all::<Negate>(negated) {
                    out.push(Term::new(Subtract {}, [kept.into(), y[0].into()]));
                }
            }
        },
        dtypes: NUMBERS,
        example: |b, x, y, _| {
            let minus = b.neg(y);
            b.add(minus, x)
        },
    },
    Rule {
        name: "x - -y = x + y",
        group: Group::Algebra,
        root: is::<Subtract>,
        apply: |view, _, _, x, out| {
            for (_, y) in view.all::<Negate>(x[1]) {
                out.push(Term::new(Add {}, [x[0].into(), y[0].into()]));
            }
        },
        dtypes: NUMBERS,
        example: |b, x, y, _| {
            let minus = b.neg(y);
            b.sub(x, minus)
        },
    },
    Rule {
        name: "-x * c = x * -c for a constant c",
        group: Group::Algebra,
        root: is::<Multiply>,
        apply: |view, _, op, x, out| {
            for (constant, negated) in both_ways(x) {
                let Some(minus) = view.splat(constant).and_then(negative) else {
                    continue;
                };
                for (_, y) in view.all::<Negate>(negated) {
                    let minus = Term::Splat(view.ty(constant).clone(), minus);
                    out.push(Term::Op(op.clone(), vec![y[0].into(), minus]));
                }
            }
        },
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let (two, minus) = (b.full_like(x, 2.0), b.neg(x));
            b.mul(two, minus)
        },
    },
    Rule {
        name: "-(x * c) = x * -c for a constant c",
        group: Group::Algebra,
        root: is::<Negate>,
        apply: |view, _, _, x, out| {
            for (_, y) in view.all::<Multiply>(x[0]) {
                for (constant, kept) in both_ways(y) {
                    if let Some(minus) = view.splat(constant).and_then(negative) {
                        let minus = Term::Splat(view.ty(constant).clone(), minus);
                        out.push(Term::new(Multiply {}, [kept.into(), minus]));
                    }
                }
            }
        },
        dtypes: NUMBERS,
        example: |b, x, _, _| {
            let two = b.full_like(x, 2.0);
            let product = b.mul(two, x);
            b.neg(product)
        },
    },
    Rule {
        name: "max(x, x) = x; min(x, x) = x",
        group: Group::Algebra,
        root: |op| is::<Maximum>(op) || is::<Minimum>(op),
        apply: of_itself,
        dtypes: NUMBERS,
        example: |b, x, _, _| b.maximum(x, x),
    },
    Rule {
        name: "|-x| = |x|; ||x|| = |x|",
        group: Group::Algebra,
        root: is::<Abs>,
        apply: |view, _, op, x, out| {
            let inner = view.all::<Negate>(x[0]).map(|(_, y)| y);
            for y in inner.chain(view.all::<Abs>(x[0]).map(|(_, y)| y)) {
                out.push(Term::Op(op.clone(), vec![y[0].into()]));
            }
        },
        dtypes: FLOATS,
        example: |b, x, _, _| {
            let minus = b.neg(x);
            b.abs(minus)
        },
    },
    Rule {
        name: "integers: (x + c) + d = x + (c + d) for constants c, d; products too",
        group: Group::Algebra,
        root: |op| is::<Add>(op) || is::<Multiply>(op),
        apply: |view, id, op, x, out| {
            if view.ty(id).dtype.is_integer() {
                regroup(view, op, x, out);
            }
        },
        dtypes: INTEGERS,
        example: |b, x, _, _| {
            let (two, three) = (b.full_like(x, 2.0), b.full_like(x, 3.0));
            let sum = b.add(two, x);
            b.add(sum, three)
        },
    },
    Rule {
        name: "stop_gradient(x) = x",
        group: Group::Algebra,
        root: is::<StopGradient>,
        apply: |_, _, _, x, out| out.push(x[0].into()),
        dtypes: FLOATS,
        example: |b, x, _, _| b.emit1(StopGradient {}, &[x]),
    },
];

/// Two operands in both orders.
fn both_ways(x: &[Id]) -> [(Id, Id); 2] {
    [(x[0], x[1]), (x[1], x[0])]
}

/// The rule `x op N = x`, for any op.
pub(super) fn right_neutral<const N: i64>(
    view: View,
    _: Id,
    _: &OpRef,
    x: &[Id],
    out: &mut Vec<Term>,
) {
    if view.is_number(x[1], N) {
        out.push(x[0].into());
    }
}

/// The rule `x op x = x`, for any op.
pub(super) fn of_itself(view: View, _: Id, _: &OpRef, x: &[Id], out: &mut Vec<Term>) {
    if view.same(x[0], x[1]) {
        out.push(x[0].into());
    }
}

/// The rule `T(T(x)) = x`.
pub(super) fn involution<T: Op>(view: View, _: Id, _: &OpRef, x: &[Id], out: &mut Vec<Term>) {
    out.extend(view.all::<T>(x[0]).map(|(_, y)| y[0].into()));
}

/// The other of two operands, if one is neutral.
pub(super) fn neutral(x: &[Id], is_neutral: impl Fn(Id) -> bool, out: &mut Vec<Term>) {
    for (kept, other) in both_ways(x) {
        if is_neutral(other) {
            out.push(kept.into());
        }
    }
}

/// `-c`, if the negation loses nothing that is known about the constant.
fn negative(value: Scalar) -> Option<Scalar> {
    match value {
        Scalar::Float(value) => Some(Scalar::Float(-value)),
        Scalar::Int(value) => Some(Scalar::Int(-value)),
        Scalar::Bool(_) => None,
    }
}

/// `(x op c) op d` as `x op (c op d)`, for an associative and commutative op.
pub(super) fn regroup(view: View, op: &OpRef, x: &[Id], out: &mut Vec<Term>) {
    for (constant, other) in both_ways(x) {
        let ty = view.ty(constant);
        for (inner, y) in view.ops(other).filter(|(inner, _)| *inner == op) {
            for (kept, second) in both_ways(y) {
                let (Some(c), Some(d), None) =
                    (view.splat(constant), view.splat(second), view.splat(kept))
                else {
                    continue;
                };
                let scalars = [c, d].map(|value| Array::single(ty.dtype, value));
                let both = Term::Splat(ty.clone(), inner.eval(&scalars)[0].get(0));
                out.push(Term::Op(op.clone(), vec![kept.into(), both]));
            }
        }
    }
}
