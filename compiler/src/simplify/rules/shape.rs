//! Ops that move or repeat elements: ops that undo or follow one another become one op, or none.

use super::super::graph::Term;
use super::{ALL, Group, Rule, is, root};
use crate::ops::{BroadcastInDim, Concatenate, OpRef, Pad, Reshape, Reverse, Slice, Transpose};
use egg::Id;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "a reshape to the same shape is nothing",
        group: Group::Shape,
        root: is::<Reshape>,
        apply: |view, id, _, x, out| {
            if view.ty(x[0]) == view.ty(id) {
                out.push(x[0].into());
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| b.emit1(Reshape { shape: vec![2, 3] }, &[x]),
    },
    Rule {
        name: "a reshape of a reshape is one",
        group: Group::Shape,
        root: is::<Reshape>,
        apply: |view, _, op, x, out| {
            for (_, y) in view.all::<Reshape>(x[0]) {
                out.push(Term::Op(op.clone(), vec![y[0].into()]));
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let flat = b.reshape(x, &[6]);
            b.reshape(flat, &[3, 2])
        },
    },
    Rule {
        name: "a transpose that moves axes of extent 1 only is a reshape; one that moves none is nothing",
        group: Group::Shape,
        root: is::<Transpose>,
        apply: |view, id, op, x, out| {
            let Transpose { permutation } = root(op);
            if permutation.is_sorted() {
                out.push(x[0].into());
            } else {
                let shape = &view.ty(x[0]).shape;
                if permutation.iter().filter(|&&axis| shape[axis] != 1).is_sorted() {
                    out.push(reshaped(x[0], &view.ty(id).shape));
                }
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.reshape(x, &[2, 1, 3]);
            b.permute(x, &[1, 0, 2])
        },
    },
    Rule {
        name: "a transpose of a transpose is one",
        group: Group::Shape,
        root: is::<Transpose>,
        apply: |view, _, op, x, out| {
            let outer: &Transpose = root(op);
            for (inner, y) in view.all::<Transpose>(x[0]) {
                let permutation =
                    outer.permutation.iter().map(|&axis| inner.permutation[axis]).collect();
                out.push(Term::new(Transpose { permutation }, [y[0].into()]));
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let turned = b.permute(x, &[1, 0]);
            b.permute(turned, &[1, 0])
        },
    },
    Rule {
        name: "a broadcast that repeats nothing is a reshape, or nothing",
        group: Group::Shape,
        root: is::<BroadcastInDim>,
        apply: |view, id, op, x, out| {
            let broadcast: &BroadcastInDim = root(op);
            let (from, to) = (view.ty(x[0]), view.ty(id));
            let kept = (broadcast.broadcast_dimensions.iter().zip(&from.shape))
                .filter(|(_, extent)| **extent != 1)
                .map(|(dim, _)| dim);
            if from.elements() == to.elements() && kept.is_sorted() {
                out.push(if from == to { x[0].into() } else { reshaped(x[0], &to.shape) });
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.broadcast_in_dim(x, &[2, 1, 3], &[0, 2]);
            b.reshape(x, &[3, 2])
        },
    },
    Rule {
        name: "a broadcast of a broadcast is one",
        group: Group::Shape,
        root: is::<BroadcastInDim>,
        apply: |view, _, op, x, out| {
            let outer: &BroadcastInDim = root(op);
            for (inner, y) in view.all::<BroadcastInDim>(x[0]) {
                let dims = inner
                    .broadcast_dimensions
                    .iter()
                    .map(|&dim| outer.broadcast_dimensions[dim])
                    .collect();
                out.push(broadcast(y[0].into(), &outer.shape, dims));
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let taller = b.broadcast_in_dim(x, &[4, 2, 3], &[1, 2]);
            b.broadcast_in_dim(taller, &[2, 4, 2, 3], &[1, 2, 3])
        },
    },
    Rule {
        name: "a broadcast of a reshape that adds axes of extent 1 is one broadcast",
        group: Group::Shape,
        root: is::<BroadcastInDim>,
        apply: |view, _, op, x, out| {
            let outer: &BroadcastInDim = root(op);
            for (_, y) in view.all::<Reshape>(x[0]) {
                if let Some(axes) = unit_axes_apart(&view.ty(y[0]).shape, &view.ty(x[0]).shape) {
                    let axes = axes.into_iter().map(|axis| Some(outer.broadcast_dimensions[axis?]));
                    if let Some(dims) = axes.collect() {
                        out.push(broadcast(y[0].into(), &outer.shape, dims));
                    }
                }
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.reshape(x, &[2, 1, 3]);
            b.broadcast_in_dim(x, &[2, 4, 3], &[0, 1, 2])
        },
    },
    Rule {
        name: "a reshape of a broadcast that adds or removes axes of extent 1 is a broadcast",
        group: Group::Shape,
        root: is::<Reshape>,
        apply: |view, id, _, x, out| {
            let shape = &view.ty(id).shape;
            for (inner, y) in view.all::<BroadcastInDim>(x[0]) {
                if inner.broadcast_dimensions.is_empty() {
                    out.push(broadcast(y[0].into(), shape, Vec::new()));
                } else if let Some(axes) = unit_axes_apart(&inner.shape, shape) {
                    let dims = inner.broadcast_dimensions.iter().map(|&dim| axes[dim]);
                    if let Some(dims) = dims.collect() {
                        out.push(broadcast(y[0].into(), shape, dims));
                    }
                }
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.broadcast_in_dim(x, &[4, 2, 3], &[1, 2]);
            b.reshape(x, &[4, 2, 1, 3])
        },
    },
    Rule {
        name: "a transpose of a broadcast is a broadcast to other axes",
        group: Group::Shape,
        root: is::<Transpose>,
        apply: |view, id, op, x, out| {
            let Transpose { permutation } = root(op);
            for (inner, y) in view.all::<BroadcastInDim>(x[0]) {
                let place = |dim: &usize| permutation.iter().position(|axis| axis == dim);
                let dims: Option<Vec<usize>> =
                    inner.broadcast_dimensions.iter().map(place).collect();
                // Axes in another order would require a transpose again.
                if let Some(dims) = dims.filter(|dims| dims.is_sorted()) {
                    out.push(broadcast(y[0].into(), &view.ty(id).shape, dims));
                }
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.broadcast_in_dim(x, &[4, 2, 3], &[1, 2]);
            b.permute(x, &[1, 0, 2])
        },
    },
    Rule {
        name: "a slice of all is nothing",
        group: Group::Shape,
        root: is::<Slice>,
        apply: |view, id, op, x, out| {
            let forward = |slice: &Slice| slice.start.iter().all(|&start| start == 0);
            if view.ty(id) == view.ty(x[0]) && op.downcast().is_some_and(forward) {
                out.push(x[0].into());
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let all = Slice { start: vec![0, 0], limit: vec![2, 3], strides: vec![1, 1] };
            b.emit1(all, &[x])
        },
    },
    Rule {
        name: "a slice of a slice is one",
        group: Group::Shape,
        root: is::<Slice>,
        apply: |view, id, op, x, out| {
            let outer: &Slice = root(op);
            let shape = &view.ty(id).shape;
            for (inner, y) in view.all::<Slice>(x[0]).filter(|_| !shape.contains(&0)) {
                let axes = 0..shape.len();
                let start: Vec<usize> = (axes.clone())
                    .map(|axis| inner.start[axis] + outer.start[axis] * inner.strides[axis])
                    .collect();
                // Unused steps may have any size, and the product of two may overflow.
                let strides: Vec<usize> = (axes.clone())
                    .map(|axis| match shape[axis] {
                        1 => 1,
                        _ => inner.strides[axis] * outer.strides[axis],
                    })
                    .collect();
                let limit =
                    axes.map(|axis| start[axis] + (shape[axis] - 1) * strides[axis] + 1).collect();
                out.push(Term::new(Slice { start, limit, strides }, [y[0].into()]));
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.slice(x, &[0, 1], &[2, 3], &[1, 1]);
            b.slice(x, &[1, 0], &[2, 2], &[1, 1])
        },
    },
    Rule {
        name: "a slice of a broadcast is a broadcast of less, to less",
        group: Group::Shape,
        root: is::<Slice>,
        apply: |view, id, op, x, out| {
            let outer: &Slice = root(op);
            let shape = &view.ty(id).shape;
            for (inner, y) in view.all::<BroadcastInDim>(x[0]).filter(|_| !shape.contains(&0)) {
                let extents = &view.ty(y[0]).shape;
                let mut part = Slice {
                    start: vec![0; extents.len()],
                    limit: extents.to_vec(),
                    strides: vec![1; extents.len()],
                };
                for (axis, &dim) in inner.broadcast_dimensions.iter().enumerate() {
                    if extents[axis] == inner.shape[dim] {
                        part.start[axis] = outer.start[dim];
                        part.limit[axis] = outer.limit[dim];
                        part.strides[axis] = outer.strides[dim];
                    }
                }
                let part = Term::new(part, [y[0].into()]);
                out.push(broadcast(part, shape, inner.broadcast_dimensions.clone()));
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let x = b.broadcast_in_dim(x, &[4, 2, 3], &[1, 2]);
            b.slice(x, &[1, 0, 0], &[4, 1, 3], &[1, 1, 1])
        },
    },
    Rule {
        name: "a slice of joined parts that lies in one part is a slice of it",
        group: Group::Shape,
        root: is::<Slice>,
        apply: |view, _, op, x, out| {
            let outer: &Slice = root(op);
            for (&Concatenate { dimension }, parts) in view.all::<Concatenate>(x[0]) {
                let (start, limit) = (outer.start[dimension], outer.limit[dimension]);
                let mut offset = 0;
                for &part in parts {
                    let end = offset + view.ty(part).shape[dimension];
                    if offset <= start && start < limit && limit <= end {
                        let mut slice = outer.clone();
                        slice.start[dimension] = start - offset;
                        slice.limit[dimension] = limit - offset;
                        out.push(Term::new(slice, [part.into()]));
                    }
                    offset = end;
                }
            }
        },
        dtypes: ALL,
        example: |b, x, y, _| {
            let both = b.concatenate(&[x, y], 0);
            b.slice(both, &[2, 1], &[4, 3], &[1, 1])
        },
    },
    Rule {
        name: "parts that are slices side by side are one slice",
        group: Group::Shape,
        root: is::<Concatenate>,
        apply: |view, _, op, x, out| {
            let &Concatenate { dimension } = root(op);
            if let [only] = x {
                out.push((*only).into());
                return;
            }
            for (first, y) in view.all::<Slice>(x[0]) {
                let mut all = first.clone();
                let follows = |&part: &Id| {
                    let next = view.all::<Slice>(part).find(|(next, z)| {
                        let mut expected = all.clone();
                        expected.start[dimension] = all.limit[dimension];
                        expected.limit[dimension] = next.limit[dimension];
                        view.same(z[0], y[0])
                            && (&expected.start, &expected.limit, &expected.strides)
                                == (&next.start, &next.limit, &next.strides)
                    });
                    next.map(|(next, _)| all.limit[dimension] = next.limit[dimension]).is_some()
                };
                if first.strides[dimension] == 1 && x[1..].iter().all(follows) {
                    out.push(Term::new(all, [y[0].into()]));
                }
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let left = b.slice(x, &[0, 0], &[2, 1], &[1, 1]);
            let right = b.slice(x, &[0, 1], &[2, 3], &[1, 1]);
            b.concatenate(&[left, right], 1)
        },
    },
    Rule {
        name: "a pad by nothing is nothing",
        group: Group::Shape,
        root: is::<Pad>,
        apply: |_, _, op, x, out| {
            let nothing = |pad: &Pad| {
                [&pad.low, &pad.high, &pad.interior].into_iter().flatten().all(|&n| n == 0)
            };
            if op.downcast().is_some_and(nothing) {
                out.push(x[0].into());
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let scalar = b.ty(x).with_shape([]);
            let value = b.zeros(&scalar);
            b.emit1(Pad { low: vec![0, 0], high: vec![0, 0], interior: vec![0, 0] }, &[x, value])
        },
    },
    Rule {
        name: "reversed twice is nothing",
        group: Group::Shape,
        root: is::<Reverse>,
        apply: |view, _, op, x, out| {
            for (inner, y) in view.ops(x[0]) {
                if inner == op {
                    out.push(y[0].into());
                }
            }
        },
        dtypes: ALL,
        example: |b, x, _, _| {
            let turned = b.emit1(Reverse { dimensions: vec![1] }, &[x]);
            b.emit1(Reverse { dimensions: vec![1] }, &[turned])
        },
    },
];

/// The reshape of a term.
fn reshaped(x: Id, shape: &[usize]) -> Term {
    Term::new(Reshape { shape: shape.to_vec() }, [x.into()])
}

/// The broadcast of a term.
fn broadcast(x: Term, shape: &[usize], broadcast_dimensions: Vec<usize>) -> Term {
    let shape = shape.to_vec();
    Term::Op(OpRef::new(BroadcastInDim { shape, broadcast_dimensions }), vec![x])
}

/// For two shapes that differ only in axes of extent 1: the axis of `to` for each axis of `from`,
/// if there is one.
fn unit_axes_apart(from: &[usize], to: &[usize]) -> Option<Vec<Option<usize>>> {
    let mut axes = Vec::with_capacity(from.len());
    let mut next = 0;
    for &extent in from {
        // Additional axes in `to` are skipped; axes missing in `to` have no counterpart.
        while extent != 1 && to.get(next) == Some(&1) {
            next += 1;
        }
        if to.get(next) == Some(&extent) {
            axes.push(Some(next));
            next += 1;
        } else if extent == 1 {
            axes.push(None);
        } else {
            return None;
        }
    }
    to[next..].iter().all(|&extent| extent == 1).then_some(axes)
}
