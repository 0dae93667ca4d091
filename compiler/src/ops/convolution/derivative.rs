//! Batching and transposition of a convolution: both are convolutions again.
//!
//! A batch is merged into an axis that exists already. The cotangent of the input is the cotangent
//! of the result, dilated by the strides, under the reversed kernel with its features exchanged.
//! The cotangent of the kernel is the input under the result's cotangent as a kernel. That kernel
//! is dilated by the strides, and features and batches are exchanged. The paddings restore the
//! operands' extents.

use super::{Convolution, FIRST, SECOND, dilated};
use crate::ir::{Builder, Var};
use crate::transform::VmapContext;
use crate::types::TensorType;

impl Convolution {
    /// The convolutions of a batch; the result has the batch as its leading axis.
    pub(super) fn batch(
        &self,
        b: &mut Builder,
        cx: &VmapContext,
        inputs: &[Var],
        batched: &[bool],
    ) -> Var {
        if cx.size == 0 {
            let example = |i: usize| match batched[i] {
                true => b.ty(inputs[i]).unstacked(),
                false => b.ty(inputs[i]).clone(),
            };
            let result = self
                .result(&example(0), &example(1))
                .expect("a batch of well-typed operands is well-typed");
            return b.zeros(&result.stacked(0));
        }
        let batches = self.batch_group_count;
        let [lhs_batch, lhs_feature] = [self.lhs_axes[FIRST], self.lhs_axes[SECOND]];
        let [out_batch, out_feature] = [self.out_axes[FIRST], self.out_axes[SECOND]];
        let outputs = self.rhs_axes[FIRST];
        let mut op = self.clone();
        match (batched[0], batched[1]) {
            // Examples extend the batch.
            (true, false) => {
                let lhs = fold(b, inputs[0], lhs_batch, batches);
                let y = b.convolution(lhs, inputs[1], op);
                unfold(b, y, out_batch, 1, cx.size)
            }
            // Kernels are additional output features, each next to its own group.
            (false, true) => {
                let rhs = fold(b, inputs[1], outputs, self.groups());
                let y = b.convolution(inputs[0], rhs, op);
                unfold(b, y, out_feature, self.groups(), cx.size)
            }
            // Each example has its own kernel: the examples are groups.
            _ => {
                let lhs = if batches > 1 {
                    op.batch_group_count *= cx.size;
                    fold(b, inputs[0], lhs_batch, 1)
                } else {
                    op.feature_group_count *= cx.size;
                    fold(b, inputs[0], lhs_feature, 1)
                };
                let rhs = fold(b, inputs[1], outputs, 1);
                let y = b.convolution(lhs, rhs, op);
                unfold(b, y, out_feature, 1, cx.size)
            }
        }
    }

    /// The cotangent of the input, of type `lhs`.
    pub(super) fn lhs_cotangent(
        &self,
        b: &mut Builder,
        lhs: &TensorType,
        rhs: Var,
        ct: Var,
    ) -> Var {
        let kernel = b.ty(rhs).clone();
        if [lhs, &kernel, b.ty(ct)].iter().any(|ty| ty.elements() == 0) {
            return b.zeros(lhs);
        }
        let groups = self.groups();
        let [outputs, inputs] = [self.rhs_axes[FIRST], self.rhs_axes[SECOND]];
        let reversed = b.reverse(rhs, &self.rhs_axes[2..]);
        let reversed = regroup(b, reversed, outputs, inputs, groups);
        let [extents, windows, places] = self.extents(lhs, &kernel, b.ty(ct));
        let low: Vec<i64> = (0..windows.len()).map(|i| windows[i] - 1 - self.low[i]).collect();
        let op = Convolution {
            strides: self.lhs_dilation.clone(),
            high: (0..windows.len())
                .map(|i| extents[i] + windows[i] - 1 - places[i] - low[i])
                .collect(),
            low,
            lhs_dilation: self.strides.clone(),
            rhs_dilation: self.rhs_dilation.clone(),
            lhs_axes: self.out_axes.clone(),
            rhs_axes: exchanged(&self.rhs_axes),
            out_axes: self.lhs_axes.clone(),
            feature_group_count: groups,
            batch_group_count: 1,
        };
        let cotangent = b.convolution(ct, reversed, op);
        let [batch, feature] = [self.lhs_axes[FIRST], self.lhs_axes[SECOND]];
        regroup(b, cotangent, feature, batch, self.batch_group_count)
    }

    /// The cotangent of the kernel, of type `rhs`.
    pub(super) fn rhs_cotangent(
        &self,
        b: &mut Builder,
        lhs: Var,
        rhs: &TensorType,
        ct: Var,
    ) -> Var {
        let input = b.ty(lhs).clone();
        if [&input, rhs, b.ty(ct)].iter().any(|ty| ty.elements() == 0) {
            return b.zeros(rhs);
        }
        let [extents, windows, places] = self.extents(&input, rhs, b.ty(ct));
        let op = Convolution {
            strides: self.rhs_dilation.clone(),
            low: self.low.clone(),
            high: (0..windows.len())
                .map(|i| places[i] - extents[i] + windows[i] - 1 - self.low[i])
                .collect(),
            lhs_dilation: self.lhs_dilation.clone(),
            rhs_dilation: self.strides.clone(),
            lhs_axes: exchanged(&self.lhs_axes),
            rhs_axes: exchanged(&self.out_axes),
            out_axes: exchanged(&self.rhs_axes),
            feature_group_count: self.batch_group_count,
            batch_group_count: self.feature_group_count,
        };
        b.convolution(lhs, ct, op)
    }

    /// The dilated extents of the spatial axes: of the input and the kernel, and of the result
    /// dilated by the strides.
    fn extents(&self, lhs: &TensorType, rhs: &TensorType, out: &TensorType) -> [Vec<i64>; 3] {
        [
            (lhs, &self.lhs_axes, &self.lhs_dilation),
            (rhs, &self.rhs_axes, &self.rhs_dilation),
            (out, &self.out_axes, &self.strides),
        ]
        .map(|(ty, axes, dilation)| {
            Self::spatial(ty, axes)
                .iter()
                .zip(dilation)
                .map(|(&extent, &by)| dilated(extent, by))
                .collect()
        })
    }
}

/// A list of axes with the first two exchanged.
fn exchanged(axes: &[usize]) -> Vec<usize> {
    let mut axes = axes.to_vec();
    axes.swap(FIRST, SECOND);
    axes
}

/// Merges the leading axis, of extent `v`, into the axis `axis` of the remaining shape, of extent
/// `groups * n`. The result's axis has the extent `groups * v * n`.
fn fold(b: &mut Builder, x: Var, axis: usize, groups: usize) -> Var {
    let shape = b.ty(x).shape.clone();
    let (v, example) = (shape[0], &shape[1..]);
    let mut split = shape.to_vec();
    split.splice(axis + 1..=axis + 1, [groups, example[axis] / groups]);
    let x = b.reshape(x, &split);
    let x = b.move_axis(x, 0, axis + 1);
    let mut merged = example.to_vec();
    merged[axis] *= v;
    b.reshape(x, &merged)
}

/// The inverse of [`fold`]: takes a leading axis of extent `v` out of the axis `axis`, of extent `groups * v * n`.
fn unfold(b: &mut Builder, x: Var, axis: usize, groups: usize, v: usize) -> Var {
    let shape = b.ty(x).shape.clone();
    let n = shape[axis] / (groups * v);
    let mut split = shape.to_vec();
    split.splice(axis..=axis, [groups, v, n]);
    let x = b.reshape(x, &split);
    let x = b.move_axis(x, axis + 1, 0);
    let mut example = shape;
    example[axis] = groups * n;
    let stacked = [&[v], &example[..]].concat();
    b.reshape(x, &stacked)
}

/// Moves groups, which are outermost in the axis `from`, to be outermost in the axis `to`.
fn regroup(b: &mut Builder, x: Var, from: usize, to: usize, groups: usize) -> Var {
    if groups == 1 {
        return x;
    }
    let x = unfold(b, x, from, 1, groups);
    fold(b, x, to, 1)
}
