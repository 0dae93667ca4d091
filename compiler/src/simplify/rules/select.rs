//! Rules for `select` and `compare`.

use super::super::graph::Term;
use super::{ALL, Group, INTEGERS, Rule, is, root};
use crate::ops::{Compare, Convert, Direction, Not, Select};
use crate::scalar::Scalar;
use crate::types::DType;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "select(true, x, y) = x; select(false, x, y) = y",
        group: Group::Select,
        root: is::<Select>,
        apply: |view, _, _, x, out| {
            if let Some(Scalar::Bool(holds)) = view.splat(x[0]) {
                out.push(x[if holds { 1 } else { 2 }].into());
            }
        },
        dtypes: ALL,
        example: |b, x, y, p| {
            let no = b.full_like(p, 0.0);
            b.select(no, x, y)
        },
    },
    Rule {
        name: "select(p, x, x) = x",
        group: Group::Select,
        root: is::<Select>,
        apply: |view, _, _, x, out| {
            if view.same(x[1], x[2]) {
                out.push(x[1].into());
            }
        },
        dtypes: ALL,
        example: |b, x, _, p| b.select(p, x, x),
    },
    Rule {
        name: "select(!p, x, y) = select(p, y, x)",
        group: Group::Select,
        root: is::<Select>,
        apply: |view, _, op, x, out| {
            for (_, p) in view.all::<Not>(x[0]) {
                out.push(Term::Op(op.clone(), vec![p[0].into(), x[2].into(), x[1].into()]));
            }
        },
        dtypes: ALL,
        example: |b, x, y, p| {
            let not = b.not(p);
            b.select(not, x, y)
        },
    },
    Rule {
        name: "select(p, select(p, x, y), z) = select(p, x, z); in the other branch too",
        group: Group::Select,
        root: is::<Select>,
        apply: |view, _, op, x, out| {
            for (_, y) in view.all::<Select>(x[1]).filter(|(_, y)| view.same(y[0], x[0])) {
                out.push(Term::Op(op.clone(), vec![x[0].into(), y[1].into(), x[2].into()]));
            }
            for (_, y) in view.all::<Select>(x[2]).filter(|(_, y)| view.same(y[0], x[0])) {
                out.push(Term::Op(op.clone(), vec![x[0].into(), x[1].into(), y[2].into()]));
            }
        },
        dtypes: ALL,
        example: |b, x, y, p| {
            let inner = b.select(p, x, y);
            b.select(p, y, inner)
        },
    },
    Rule {
        name: "select(p, true, false) = p; select(p, false, true) = !p",
        group: Group::Select,
        root: is::<Select>,
        apply: |view, _, _, x, out| {
            if view.ty(x[0]) != view.ty(x[1]) {
                return;
            }
            match (view.splat(x[1]), view.splat(x[2])) {
                (Some(Scalar::Bool(true)), Some(Scalar::Bool(false))) => out.push(x[0].into()),
                (Some(Scalar::Bool(false)), Some(Scalar::Bool(true))) => {
                    out.push(Term::new(Not {}, [x[0].into()]));
                }
                _ => {}
            }
        },
        dtypes: &[DType::Bool],
        example: |b, _, _, p| {
            let (yes, no) = (b.full_like(p, 1.0), b.full_like(p, 0.0));
            b.select(p, yes, no)
        },
    },
    Rule {
        name: "no NaN: x == x is true, x < x is false",
        group: Group::Select,
        root: is::<Compare>,
        apply: |view, id, op, x, out| {
            let compare: &Compare = root(op);
            if view.same(x[0], x[1]) && !view.ty(x[0]).dtype.is_float() {
                let holds =
                    matches!(compare.direction, Direction::Eq | Direction::Le | Direction::Ge);
                out.push(Term::Splat(view.ty(id).clone(), Scalar::Bool(holds)));
            }
        },
        dtypes: INTEGERS,
        example: |b, x, _, _| b.compare(Direction::Le, x, x),
    },
    Rule {
        name: "number(p) != 0 is p, for a truth value p",
        group: Group::Select,
        root: is::<Compare>,
        apply: |view, _, op, x, out| {
            let compare: &Compare = root(op);
            for (_, y) in
                view.all::<Convert>(x[0]).filter(|(_, y)| view.ty(y[0]).dtype == DType::Bool)
            {
                match (compare.direction, view.is_number(x[1], 0), view.is_number(x[1], 1)) {
                    (Direction::Ne, true, _) | (Direction::Eq, _, true) => out.push(y[0].into()),
                    (Direction::Eq, true, _) | (Direction::Ne, _, true) => {
                        out.push(Term::new(Not {}, [y[0].into()]));
                    }
                    _ => {}
                }
            }
        },
        dtypes: super::NUMBERS,
        example: |b, x, _, p| {
            let number = b.convert(p, b.ty(x).dtype);
            let zero = b.full_like(x, 0.0);
            b.compare(Direction::Ne, number, zero)
        },
    },
];
