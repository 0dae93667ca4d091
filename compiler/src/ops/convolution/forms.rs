//! Other forms of a convolution, for cases that XLA's CPU backend computes slowly or wrongly.
//!
//! **In phases**: a convolution over a dilated input becomes a convolution over the original input,
//! which multiplies none of the inserted zeros. XLA's routine for dilated inputs is
//! single-threaded, and several times slower. Let elements be `d` apart. Then the positions
//! `d q + r` of the result, for one phase `r`, use only every `d`-th element of the kernel. So each
//! phase is a convolution of the input with a part of the kernel. All phases together are one
//! convolution with `d` times the output features, and its positions are interleaved afterwards.
//! The input gradient of a strided convolution is such a convolution. If the strides do not divide
//! the kernel, some of its parts end in zeros, and an infinite element times zero is NaN.
//!
//! **Padded before**: if the front of the input is cropped and its back is padded, XLA computes
//! different numbers.

use super::{Convolution, FIRST};
use crate::ir::{Builder, Func, Loc, Var};
use crate::types::TensorType;

/// A spatial axis of a convolution that is computed in phases.
struct PhasedAxis {
    /// The number of phases: the distance of the input's elements.
    phases: usize,
    /// Zeros in front of the kernel and behind it, so that its length is divisible by the phases.
    front: usize,
    back: usize,
    /// The extent of each phase's part of the kernel.
    window: usize,
    /// The extent of each phase's part of the result.
    places: usize,
    /// Zeros in front of the input and behind it.
    low: i64,
    high: i64,
}

impl PhasedAxis {
    /// The axis with these extents of the input, the kernel and the result. Phase `r` applies the
    /// kernel's element `d t - r - (d L - low)` to the input's element `q + t - L`, where `L` is
    /// the padding in front.
    fn new([input, kernel, result]: [usize; 3], phases: usize, low: i64) -> PhasedAxis {
        let d = phases as i64;
        let front = phases - 1 - low.rem_euclid(d) as usize;
        let low = low.div_euclid(d);
        let window = (front + kernel).div_ceil(phases);
        let places = result.div_ceil(phases);
        PhasedAxis {
            phases,
            front,
            back: phases * window - front - kernel,
            window,
            places,
            low,
            high: (places + window) as i64 - 1 - input as i64 - low,
        }
    }
}

impl Convolution {
    /// The equivalent function in a faster form; `None` if there is none. The axes are in the usual
    /// order.
    pub(super) fn other_form(&self, lhs: &TensorType, rhs: &TensorType, loc: Loc) -> Option<Func> {
        let one = |steps: &[usize]| steps.iter().all(|&step| step == 1);
        let mut b = Builder::new();
        b.set_loc(loc);
        let (x, kernel) = (b.param(lhs.clone()), b.param(rhs.clone()));
        let result = self.result(lhs, rhs).ok()?;
        let y = if [lhs, rhs, &result].iter().any(|ty| ty.elements() == 0) {
            return None;
        } else if !one(&self.lhs_dilation) && one(&self.strides) && one(&self.rhs_dilation) {
            self.in_phases(&mut b, x, kernel, &result)
        } else if self.low.iter().any(|&low| low < 0) {
            self.padded_before(&mut b, x, kernel)
        } else {
            return None;
        };
        Some(b.finish("form", vec![y]))
    }

    fn padded_before(&self, b: &mut Builder, x: Var, kernel: Var) -> Var {
        let around = |amounts: &[i64]| [&[0], amounts, &[0]].concat();
        let between: Vec<i64> = self.lhs_dilation.iter().map(|&by| by as i64 - 1).collect();
        let zero = b.zeros(&TensorType::scalar(b.ty(x).dtype));
        let (low, high) = (around(&self.low), around(&self.high));
        let x = b.pad(x, zero, &low, &high, &around(&between));
        let spatial = self.strides.len();
        let op = Convolution {
            low: vec![0; spatial],
            high: vec![0; spatial],
            lhs_dilation: vec![1; spatial],
            ..self.clone()
        };
        b.convolution(x, kernel, op)
    }

    fn in_phases(&self, b: &mut Builder, x: Var, kernel: Var, result: &TensorType) -> Var {
        let axes: Vec<PhasedAxis> = (0..self.strides.len())
            .map(|i| {
                let extents = [b.ty(x).shape[1 + i], b.ty(kernel).shape[i], result.shape[1 + i]];
                PhasedAxis::new(extents, self.lhs_dilation[i], self.low[i])
            })
            .collect();
        let kernel = self.kernel_of_phases(b, kernel, &axes);
        let op = Convolution {
            low: axes.iter().map(|axis| axis.low).collect(),
            high: axes.iter().map(|axis| axis.high).collect(),
            lhs_dilation: vec![1; axes.len()],
            ..self.clone()
        };
        let y = b.convolution(x, kernel, op);
        self.between_each_other(b, y, &axes, result)
    }

    /// The kernel with each phase's part of it as output features: `[window.., input, (group, phase.., output)]`.
    fn kernel_of_phases(&self, b: &mut Builder, kernel: Var, axes: &[PhasedAxis]) -> Var {
        let ty = b.ty(kernel).clone();
        let (spatial, groups) = (axes.len(), self.groups());
        let [inputs, outputs] = [ty.shape[spatial], ty.shape[spatial + 1]];
        let amounts = |of: fn(&PhasedAxis) -> usize| -> Vec<i64> {
            axes.iter().map(|axis| of(axis) as i64).chain([0, 0]).collect()
        };
        let zero = b.zeros(&TensorType::scalar(ty.dtype));
        let (front, back) = (amounts(|axis| axis.front), amounts(|axis| axis.back));
        let kernel = b.pad(kernel, zero, &front, &back, &vec![0; ty.rank()]);
        let parts = axes.iter().flat_map(|axis| [axis.window, axis.phases]);
        let split = parts.chain([inputs, groups, outputs / groups]);
        let kernel = b.reshape(kernel, &split.collect::<Vec<_>>());
        let windows: Vec<usize> = (0..spatial).map(|i| 2 * i).collect();
        let phases: Vec<usize> = windows.iter().map(|&axis| axis + 1).collect();
        let kernel = b.reverse(kernel, &phases);
        let [input, group, output] = [0, 1, 2].map(|i| 2 * spatial + i);
        let order = [&windows[..], &[input, group], &phases, &[output]].concat();
        let kernel = b.permute(kernel, &order);
        let outputs = outputs * axes.iter().map(|axis| axis.phases).product::<usize>();
        let merged = axes.iter().map(|axis| axis.window).chain([inputs, outputs]);
        b.reshape(kernel, &merged.collect::<Vec<_>>())
    }

    /// The result `[batch, place.., (group, phase.., output)]` with the phases' positions
    /// interleaved.
    fn between_each_other(
        &self,
        b: &mut Builder,
        y: Var,
        axes: &[PhasedAxis],
        result: &TensorType,
    ) -> Var {
        let (spatial, groups) = (axes.len(), self.groups());
        let [batch, outputs] = [result.shape[FIRST], result.shape[spatial + 1]];
        let each = |of: fn(&PhasedAxis) -> usize| -> Vec<usize> { axes.iter().map(of).collect() };
        let (places, phases) = (each(|axis| axis.places), each(|axis| axis.phases));
        let split = [&[batch], &places[..], &[groups], &phases, &[outputs / groups]].concat();
        let y = b.reshape(y, &split);
        let pairs: Vec<usize> = (1..=spatial).flat_map(|i| [i, spatial + 1 + i]).collect();
        let order = [&[0], &pairs[..], &[spatial + 1, 2 * spatial + 2]].concat();
        let y = b.permute(y, &order);
        let whole = each(|axis| axis.places * axis.phases);
        let y = b.reshape(y, &[&[batch], &whole[..], &[outputs]].concat());
        let rank = result.rank();
        b.slice(y, &vec![0; rank], &result.shape, &vec![1; rank])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::ops::samples::ramp;
    use crate::types::DType;

    #[test]
    fn the_other_form_gives_the_same() {
        for dilation in 1..=4 {
            for (window, low, high) in (1..=5).flat_map(|window| {
                (-3..=4).flat_map(move |low| (-2..=3).map(move |high| (window, low, high)))
            }) {
                let op = Convolution {
                    low: vec![low],
                    high: vec![high],
                    lhs_dilation: vec![dilation],
                    feature_group_count: 2,
                    ..Convolution::new(1)
                };
                let inputs = [ramp(DType::I32, [2, 3, 2]), ramp(DType::I32, [window, 1, 4])];
                let Ok(result) = op.result(inputs[0].ty(), inputs[1].ty()) else {
                    continue;
                };
                let form = op.other_form(inputs[0].ty(), inputs[1].ty(), Loc::NONE);
                let has_one = result.elements() > 0 && (dilation > 1 || low < 0);
                assert_eq!(form.is_some(), has_one);
                let Some(form) = form else { continue };
                assert_eq!(form.eval(&inputs), op.eval(&inputs), "{op:?} by {window}");
            }
        }
    }
}
