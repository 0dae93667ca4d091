//! Functions of repeated elements, and operands whose order does not matter.

use super::super::graph::{Node, Term, View};
use super::{ALL, Group, NUMBERS, Rule, is};
use crate::ops::{
    Add, And, BroadcastInDim, Compare, Direction, Maximum, Minimum, Multiply, OpRef, Or, Xor,
};
use egg::Id;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "a function of elements repeated or moved alike is the function, repeated or moved",
        group: Group::Sink,
        root: |op| op.pointwise(),
        apply: sink,
        dtypes: ALL,
        example: |b, x, y, _| {
            let [x, y] = [x, y].map(|x| {
                let x = b.slice(x, &[0, 0], &[2, 1], &[1, 1]);
                let x = b.reshape(x, &[2]);
                b.broadcast_in_dim(x, &[2, 5], &[0])
            });
            b.compare(Direction::Lt, x, y)
        },
    },
    Rule {
        name: "x + y is y + x, where that is there; x * y, max, min, &, |, ^, ==, != too",
        group: Group::Commute,
        root: commutes,
        apply: |view, id, op, x, out| {
            let children = vec![x[1], x[0]];
            if let Some(symbol) = view.0.analysis.symbol(op)
                && let Some(other) = view.0.lookup(Node { symbol, children })
                && !view.same(other, id)
            {
                out.push(other.into());
            }
        },
        dtypes: NUMBERS,
        example: |b, x, y, _| {
            let (sum, other) = (b.add(x, y), b.add(y, x));
            b.sub(sum, other)
        },
    },
];

fn commutes(op: &OpRef) -> bool {
    let symmetric = |compare: &Compare| matches!(compare.direction, Direction::Eq | Direction::Ne);
    is::<Add>(op)
        || is::<Multiply>(op)
        || is::<Maximum>(op)
        || is::<Minimum>(op)
        || is::<And>(op)
        || is::<Or>(op)
        || is::<Xor>(op)
        || op.downcast().is_some_and(symmetric)
}

/// Where every operand is a constant, a scalar, or moved in one and the same way, the moving comes last.
fn sink(view: View, id: Id, op: &OpRef, x: &[Id], out: &mut Vec<Term>) {
    let result = view.ty(id);
    if result.rank() == 0 {
        return;
    }
    let is_scalar = |id: Id| view.ty(id).rank() == 0;
    let sunk = |movement: &OpRef, shape: &[usize]| {
        let operand = |&id: &Id| {
            if is_scalar(id) {
                return Some(Term::from(id));
            }
            if let Some(value) = view.splat(id) {
                return Some(Term::Splat(view.ty(id).with_shape(shape), value));
            }
            let alike =
                |(inner, y): &(&OpRef, &[Id])| *inner == movement && view.ty(y[0]).shape == shape;
            view.ops(id).find(alike).map(|(_, y)| Term::from(y[0]))
        };
        let operands: Option<Vec<Term>> = x.iter().map(operand).collect();
        Some(Term::Op(
            movement.clone(),
            vec![Term::Op(op.clone(), operands?)],
        ))
    };
    // The first operand that is moved says how; if none is, all are constants or scalars.
    let Some(&first) = (x.iter()).find(|&&id| !is_scalar(id) && view.splat(id).is_none()) else {
        if view.splat(id).is_none() && result.elements() > 1 {
            let broadcast = BroadcastInDim {
                shape: result.shape.clone(),
                broadcast_dimensions: Vec::new(),
            };
            out.extend(sunk(&OpRef::new(broadcast), &[]));
        }
        return;
    };
    for (movement, y) in view.ops(first) {
        // Another broadcast with as many elements would only change places with the function.
        if movement.recompute() && y.len() == 1 && view.ty(y[0]).elements() <= result.elements() {
            out.extend(sunk(movement, &view.ty(y[0]).shape));
        }
    }
}
