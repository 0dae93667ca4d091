//! `pad`: inserts a value around and between the elements, or, with a negative amount, crops
//! elements at the edges.

use super::prepended;
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{Hlo, HloAttribute, HloResults, HloValue, hlo_op};
use crate::op_struct;
use crate::ops::rules::linear_jvp;
use crate::ops::samples::ramp;
use crate::ops::{Op, Operand, Rule, Sample, TypeError};
use crate::scalar::Scalar;
use crate::transform::VmapContext;
use crate::types::{DType, TensorType};

op_struct! {
    /// Inserts `interior[i]` copies of a value between neighbours along axis `i`, then `low[i]` in
    /// front and `high[i]` behind; negative `low` and `high` crop that many elements.
    ///
    /// Operands: `x`, and the scalar padding value with its dtype. For an extent `n` of `x`, axis
    /// `i` of the result has extent `low[i] + n + max(n - 1, 0) * interior[i] + high[i]`, which
    /// must not be negative.
    Pad = "pad" {
        /// The amount in front of each axis.
        low: Vec<i64>,
        /// The amount behind each axis.
        high: Vec<i64>,
        /// The amount between neighbours along each axis; not negative.
        interior: Vec<i64>,
    }
}

impl Pad {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let sample = |x: Array, low: &[i64], high: &[i64], interior: &[i64]| {
            let value =
                Array::splat(TensorType::scalar(x.ty().dtype), Scalar::number(x.ty().dtype, 9));
            let op = Pad { low: low.to_vec(), high: high.to_vec(), interior: interior.to_vec() };
            Sample::new(op, vec![x, value])
        };
        vec![
            sample(ramp(DType::F32, [3]), &[1], &[2], &[0]),
            sample(ramp(DType::F32, [2, 3]), &[1, 0], &[0, 2], &[2, 1]),
            sample(ramp(DType::F32, [4, 3]), &[-1, 2], &[1, -1], &[1, 0]),
            sample(ramp(DType::F32, [5]), &[-2], &[-1], &[1]),
            sample(ramp(DType::F32, [0]), &[1], &[2], &[3]),
            sample(ramp(DType::F32, []), &[], &[], &[]),
            sample(ramp(DType::I32, [2]), &[1], &[1], &[0]),
            sample(ramp(DType::Bool, [2]), &[0], &[1], &[1]),
        ]
    }

    /// The result's extent along `axis` for an operand's extent of `n`; it saturates.
    fn extent(&self, axis: usize, n: usize) -> i64 {
        let [low, high, interior] =
            [&self.low, &self.high, &self.interior].map(|amounts| i128::from(amounts[axis]));
        let n = n as i128;
        let extent = low + n + (n - 1).max(0) * interior + high;
        extent.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// A bool tensor of the result's shape: true at the elements of the operand.
    fn mask(&self, b: &mut Builder, x: &TensorType) -> Var {
        let ones = b.full(&x.with_dtype(DType::Bool), 1.0);
        let zero = b.zeros(&TensorType::scalar(DType::Bool));
        b.emit1(self.clone(), &[ones, zero])
    }
}

impl Op for Pad {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        TypeError::check_arity(inputs, 2)?;
        let (x, value) = (&inputs[0], &inputs[1]);
        if *value != TensorType::scalar(x.dtype) {
            refuse!("the padding value of {x} must be {}[], got {value}", x.dtype);
        }
        for (name, amounts) in
            [("low", &self.low), ("high", &self.high), ("interior", &self.interior)]
        {
            if amounts.len() != x.rank() {
                refuse!("{name} must have one amount for each axis of {x}, got {amounts:?}");
            }
        }
        if self.interior.iter().any(|&amount| amount < 0) {
            refuse!("interior amounts must not be negative, got {:?}", self.interior);
        }
        let extents = (0..x.rank()).map(|axis| {
            usize::try_from(self.extent(axis, x.shape[axis])).map_err(|_| {
                TypeError::new(format!(
                    "low {} and high {} cut more off axis {axis} of {x} than it has",
                    self.low[axis], self.high[axis]
                ))
            })
        });
        Ok(vec![x.with_shape(extents.collect::<Result<Vec<_>, _>>()?)])
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let (x, value) = (&inputs[0], inputs[1].get(0));
        let shape: Vec<usize> =
            (0..x.ty().rank()).map(|axis| self.extent(axis, x.ty().shape[axis]) as usize).collect();
        let mut result = Array::splat(x.ty().with_shape(&shape), value);
        let mut target = vec![0; shape.len()];
        for_each_index(&x.ty().shape, |index| {
            for (axis, &i) in index.iter().enumerate() {
                let position = self.low[axis] + i as i64 * (self.interior[axis] + 1);
                if position < 0 || position >= shape[axis] as i64 {
                    return;
                }
                target[axis] = position as usize;
            }
            result.set(&target, x.at(index));
        });
        vec![result]
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let wide = Pad {
            low: prepended(0, &self.low),
            high: prepended(0, &self.high),
            interior: prepended(0, &self.interior),
        };
        let x = cx.batch(b, inputs[0], batched[0]);
        if !batched[1] {
            return vec![(b.emit1(wide, &[x, inputs[1]]), true)];
        }
        // Each example has its own value: pad with any value, then replace the padding.
        let dtype = b.ty(x).dtype;
        let zero = b.zeros(&TensorType::scalar(dtype));
        let padded = b.emit1(wide, &[x, zero]);
        let example = b.ty(x).unstacked();
        let mask = self.mask(b, &example);
        let mask = b.broadcast_leading(mask, cx.size);
        let shape = b.ty(padded).shape.clone();
        let values = b.broadcast_in_dim(inputs[1], &shape, &[0]);
        vec![(b.select(mask, padded, values), true)]
    }

    linear_jvp! { all }

    fn transpose(&self, b: &mut Builder, inputs: &[Operand], cotangents: &[Slope]) -> Rule<Slopes> {
        let Some(ct) = cotangents[0] else {
            return Rule::Some(vec![None, None]);
        };
        let x = inputs[0].ty(b).clone();
        let zero = b.zeros(&TensorType::scalar(x.dtype));
        let of_x = inputs[0].is_linear().then(|| {
            // Undo the edges first: cropped elements come back as zeros, and every element is at a
            // multiple of the stride.
            let low: Vec<i64> = self.low.iter().map(|amount| -amount).collect();
            let high: Vec<i64> = self.high.iter().map(|amount| -amount).collect();
            let spread = b.pad(ct, zero, &low, &high, &vec![0; low.len()]);
            let limit = b.ty(spread).shape.clone();
            let strides: Vec<usize> =
                self.interior.iter().map(|&amount| amount as usize + 1).collect();
            b.slice(spread, &vec![0; limit.len()], &limit, &strides)
        });
        let of_value = inputs[1].is_linear().then(|| {
            // Summing only the padding, not everything minus the elements, separates an infinite
            // cotangent of one part from the other.
            let mask = self.mask(b, &x);
            let zeros = b.full_like(ct, 0.0);
            let padding = b.select(mask, zeros, ct);
            let axes: Vec<usize> = (0..x.rank()).collect();
            if axes.is_empty() { padding } else { b.reduce_sum(padding, &axes) }
        });
        Rule::Some(vec![of_x, of_value])
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let attributes = vec![
            ("edge_padding_low", HloAttribute::I64Array(self.low.clone())),
            ("edge_padding_high", HloAttribute::I64Array(self.high.clone())),
            ("interior_padding", HloAttribute::I64Array(self.interior.clone())),
        ];
        vec![hlo_op(hlo, "stablehlo.pad", inputs, attributes, &results[0])]
    }
}

impl Builder {
    /// `value` around and between the elements of `x`, see [`Pad`]. Returns the same variable if
    /// every amount is zero.
    #[track_caller]
    pub fn pad(&mut self, x: Var, value: Var, low: &[i64], high: &[i64], interior: &[i64]) -> Var {
        if low.iter().chain(high).chain(interior).all(|&amount| amount == 0) {
            return x;
        }
        self.emit1(
            Pad { low: low.to_vec(), high: high.to_vec(), interior: interior.to_vec() },
            &[x, value],
        )
    }
}
