//! Functions of repeated elements.

use super::super::graph::{Term, View};
use super::{ALL, Group, Rule};
use crate::ops::{BroadcastInDim, Direction, OpRef};
use egg::Id;

pub(super) const RULES: &[Rule] = &[Rule {
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
}];

/// Moves a broadcast, reshape or similar op behind the op, if every operand is a constant, a
/// scalar, or moved in the same way.
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
            let alike = |(inner, y): &(&OpRef, &[Id])| {
                *inner == movement && view.ty(y[0]).shape[..] == *shape
            };
            view.ops(id).find(alike).map(|(_, y)| Term::from(y[0]))
        };
        let operands: Option<Vec<Term>> = x.iter().map(operand).collect();
        Some(Term::Op(movement.clone(), vec![Term::Op(op.clone(), operands?)]))
    };
    // The first moved operand decides how; if none is moved, all are constants or scalars.
    let Some(&first) = (x.iter()).find(|&&id| !is_scalar(id) && view.splat(id).is_none()) else {
        if view.splat(id).is_none() && result.elements() > 1 {
            let broadcast =
                BroadcastInDim { shape: result.shape.to_vec(), broadcast_dimensions: Vec::new() };
            out.extend(sunk(&OpRef::new(broadcast), &[]));
        }
        return;
    };
    for (movement, y) in view.ops(first) {
        // Another broadcast with equally many elements would only swap with the function.
        if movement.recompute() && y.len() == 1 && view.ty(y[0]).elements() <= result.elements() {
            out.extend(sunk(movement, &view.ty(y[0]).shape));
        }
    }
}
