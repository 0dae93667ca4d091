//! Sorting: `sort` by keys, `top_k`.

mod top_k;

pub use top_k::TopK;

use super::gather::Gather;
use super::samples::ramp;
use super::{Op, OpRef, Rule, Sample, TypeError};
use crate::array::{Array, for_each_index};
use crate::ir::{Batched, Builder, Slope, Slopes, Var};
use crate::lower::{
    Hlo, HloAttribute, HloOp, HloResults, HloValue, hlo_compare, hlo_op, hlo_select, hlo_splat,
};
use crate::op_struct;
use crate::ops::rules::no_transpose;
use crate::scalar::Scalar;
use crate::transform::{Mode, VmapContext};
use crate::types::{DType, TensorType};
use std::cmp::Ordering;

op_struct! {
    /// Sorts several tensors of one shape together along an axis. The first `num_keys` of them are
    /// the keys, compared one after the other; the least comes first. `false` is less than `true`,
    /// -0 equals 0, and NaN is greater than everything else and equal to itself.
    Sort = "sort" {
        /// The axis along which elements move.
        dimension: usize,
        /// True if elements with equal keys keep their order.
        stable: bool,
        /// The number of operands that are keys, at least 1; the keys come first.
        num_keys: usize,
    }
}

impl Sort {
    /// Examples for the generic tests.
    pub fn samples() -> Vec<Sample> {
        let f32s = |shape: &[usize], values: &[f64]| Array::floats(DType::F32, shape, values);
        let sort = |dimension, stable, num_keys, inputs: Vec<Array>| {
            Sample::new(Sort { dimension, stable, num_keys }, inputs)
        };
        let distinct = f32s(&[2, 3], &[3.5, -1.0, 2.0, 0.25, 7.0, -6.0]);
        let peculiar = f32s(
            &[8],
            &[f64::NAN, 0.0, f64::INFINITY, -0.0, -1.0, f64::NAN, f64::NEG_INFINITY, 0.0],
        );
        let count = Array::ints(DType::I32, [8], &[0, 1, 2, 3, 4, 5, 6, 7]);
        let ties = Array::ints(DType::I32, [8], &[1, 0, 1, 2, 0, 2, 1, 0]);
        vec![
            sort(0, false, 1, vec![distinct.clone()]),
            sort(
                1,
                true,
                1,
                vec![distinct.clone(), ramp(DType::F32, [2, 3]), ramp(DType::I32, [2, 3])],
            ),
            sort(1, false, 1, vec![ramp(DType::F64, [2, 3, 2])]),
            sort(0, true, 1, vec![peculiar.clone(), count.clone()]).not_differentiable(),
            sort(0, true, 2, vec![ties.clone(), peculiar, count.clone()]).not_differentiable(),
            sort(
                0,
                true,
                2,
                vec![
                    ties.clone(),
                    f32s(&[8], &[4.0, 1.0, 2.0, 3.0, 0.0, -5.0, 7.0, 6.0]),
                    ramp(DType::F32, [8]),
                ],
            ),
            sort(0, true, 1, vec![ties, count]),
            sort(0, true, 1, vec![ramp(DType::Bool, [5]), ramp(DType::U8, [5])]),
            sort(0, true, 1, vec![Array::ints(DType::U32, [4], &[0xffff_ffff, 0, 0x8000_0000, 7])]),
            sort(0, true, 1, vec![ramp(DType::BF16, [3])]).not_differentiable(),
            sort(0, true, 1, vec![f32s(&[0], &[])]).not_differentiable(),
        ]
    }

    fn compare_keys(&self, inputs: &[Array], x: &[usize], y: &[usize]) -> Ordering {
        inputs[..self.num_keys]
            .iter()
            .map(|key| order(key.at(x), key.at(y)))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    /// The sort with the elements' original positions as an additional operand and result.
    fn with_positions(&self, b: &mut Builder, inputs: &[Var]) -> (Vec<Var>, Var) {
        let shape = b.ty(inputs[0]).shape.clone();
        let positions = b.iota(DType::I32, &shape, self.dimension);
        let mut results = b.emit(self.clone(), &[inputs, &[positions]].concat());
        let positions = results.pop().expect("one result per operand");
        (results, positions)
    }

    fn tangents(&self, b: &mut Builder, positions: Var, tangents: &[Slope]) -> Slopes {
        tangents.iter().map(|t| t.map(|t| take_along(b, t, positions, self.dimension))).collect()
    }
}

impl Op for Sort {
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, TypeError> {
        let Some(first) = inputs.first() else {
            refuse!("expected at least one operand, got none");
        };
        if let Some(other) = inputs.iter().find(|input| input.shape != first.shape) {
            refuse!("operands must have one shape, got {first} and {other}");
        }
        if self.dimension >= first.rank() {
            refuse!("dimension {} is not an axis of {first}", self.dimension);
        }
        if self.num_keys == 0 || self.num_keys > inputs.len() {
            refuse!(
                "expected between 1 and {} keys, as there are operands, got {}",
                inputs.len(),
                self.num_keys
            );
        }
        Ok(inputs.to_vec())
    }

    fn eval(&self, inputs: &[Array]) -> Vec<Array> {
        let mut results = inputs.to_vec();
        for_each_line(&inputs[0].ty().shape, self.dimension, |line| {
            let mut sorted = line.to_vec();
            sorted.sort_by(|x, y| self.compare_keys(inputs, x, y));
            for (result, input) in results.iter_mut().zip(inputs) {
                line.iter().zip(&sorted).for_each(|(to, from)| result.set(to, input.at(from)));
            }
        });
        results
    }

    fn vmap(&self, b: &mut Builder, cx: &VmapContext, inputs: &[Var], batched: &[bool]) -> Batched {
        let inputs = cx.batch_all(b, inputs, batched);
        let op = Sort { dimension: self.dimension + 1, ..self.clone() };
        b.emit(op, &inputs).into_iter().map(|var| (var, true)).collect()
    }

    fn jvp(&self, b: &mut Builder, inputs: &[Var], _: &[Var], tangents: &[Slope]) -> Rule<Slopes> {
        let (_, positions) = self.with_positions(b, inputs);
        Rule::Some(self.tangents(b, positions, tangents))
    }

    /// Sorts once, values and positions together; the default would sort twice.
    fn differentiate(
        &self,
        _: &OpRef,
        b: &mut Builder,
        _: Mode,
        inputs: &[Var],
        tangents: &[Slope],
    ) -> Rule<(Vec<Var>, Slopes)> {
        let (results, positions) = self.with_positions(b, inputs);
        let tangents = self.tangents(b, positions, tangents);
        Rule::Some((results, tangents))
    }

    no_transpose! { "it is not linear in its operands" }

    fn reads_many(&self) -> bool {
        true
    }

    fn lower(&self, hlo: &mut dyn Hlo, inputs: &[HloValue], results: &[TensorType]) -> HloResults {
        let scalars: Vec<TensorType> = results
            .iter()
            .flat_map(|ty| [TensorType::scalar(ty.dtype), TensorType::scalar(ty.dtype)])
            .collect();
        let arguments = hlo.begin_region(&scalars);
        // Lexicographic order, from the last key to the first: less, or equal and less in the
        // following keys.
        let mut less = None;
        for key in (0..self.num_keys).rev() {
            let [x, y] = [0, 1].map(|side| canonical(hlo, arguments[2 * key + side]));
            let before = compare_total(hlo, "LT", x, y);
            less = Some(match less {
                None => before,
                Some(less) => {
                    let flag = TensorType::scalar(DType::Bool);
                    let tie = compare_total(hlo, "EQ", x, y);
                    let later = hlo_op(hlo, "stablehlo.and", &[tie, less], Vec::new(), &flag);
                    hlo_op(hlo, "stablehlo.or", &[before, later], Vec::new(), &flag)
                }
            });
        }
        let region = hlo.end_region(&[less.expect("there is at least one key")]);
        hlo.op(HloOp::new("stablehlo.sort", inputs, results)
            .attributes(vec![
                ("dimension", HloAttribute::I64(self.dimension as i64)),
                ("is_stable", HloAttribute::Bool(self.stable)),
            ])
            .regions(vec![region]))
    }
}

impl Builder {
    /// Emits [`Sort`].
    #[track_caller]
    pub fn sort(
        &mut self,
        operands: &[Var],
        dimension: usize,
        stable: bool,
        num_keys: usize,
    ) -> Vec<Var> {
        self.emit(Sort { dimension, stable, num_keys }, operands)
    }
}

/// The elements of `x` at `positions` along `axis`; both have the same shape, except along that
/// axis.
fn take_along(b: &mut Builder, x: Var, positions: Var, axis: usize) -> Var {
    if b.ty(positions).elements() == 0 {
        // No window fits into an axis of extent 0.
        let ty = b.ty(positions).with_dtype(b.ty(x).dtype);
        return b.zeros(&ty);
    }
    let rank = b.ty(x).rank();
    let others = super::reduce::other_axes(rank, &[axis]);
    let op = Gather {
        offset_dims: Vec::new(),
        collapsed_slice_dims: vec![axis],
        operand_batching_dims: others.clone(),
        start_indices_batching_dims: others,
        start_index_map: vec![axis],
        index_vector_dim: rank,
        slice_sizes: vec![1; rank],
    };
    b.gather(x, positions, op)
}

/// Calls `f` with the indices of every line along `axis`.
fn for_each_line(shape: &[usize], axis: usize, mut f: impl FnMut(&[Vec<usize>])) {
    let mut starts = shape.to_vec();
    starts[axis] = starts[axis].min(1);
    for_each_index(&starts, |start| {
        let line: Vec<Vec<usize>> = (0..shape[axis])
            .map(|i| {
                let mut index = start.to_vec();
                index[axis] = i;
                index
            })
            .collect();
        f(&line);
    });
}

/// The order of [`Sort`]'s keys.
fn order(x: Scalar, y: Scalar) -> Ordering {
    match (x, y) {
        (Scalar::Float(x), Scalar::Float(y)) => {
            x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
        }
        (x, y) => x.int().cmp(&y.int()),
    }
}

/// A float key with a single zero and a single NaN, so that the total order compares them as equal.
fn canonical(hlo: &mut dyn Hlo, x: HloValue) -> HloValue {
    let ty = hlo.ty(x);
    if !ty.dtype.is_float() {
        return x;
    }
    let zero = hlo_splat(hlo, &ty, Scalar::zero(ty.dtype));
    let is_zero = hlo_compare(hlo, "EQ", x, zero);
    let x = hlo_select(hlo, is_zero, zero, x);
    one_nan(hlo, x)
}

/// Numbers with a single NaN, which is positive.
fn one_nan(hlo: &mut dyn Hlo, x: HloValue) -> HloValue {
    let ty = hlo.ty(x);
    if !ty.dtype.is_float() {
        return x;
    }
    let nan = hlo_splat(hlo, &ty, Scalar::Float(f64::NAN));
    let is_nan = hlo_compare(hlo, "NE", x, x);
    hlo_select(hlo, is_nan, nan, x)
}

/// `stablehlo.compare`, with floats in IEEE 754's total order.
fn compare_total(hlo: &mut dyn Hlo, direction: &'static str, x: HloValue, y: HloValue) -> HloValue {
    if !hlo.ty(x).dtype.is_float() {
        return hlo_compare(hlo, direction, x, y);
    }
    let attributes = vec![
        ("comparison_direction", HloAttribute::Enum("comparison_direction", direction)),
        ("compare_type", HloAttribute::Enum("comparison_type", "TOTALORDER")),
    ];
    hlo_op(hlo, "stablehlo.compare", &[x, y], attributes, &TensorType::scalar(DType::Bool))
}
