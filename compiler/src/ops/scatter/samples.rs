//! Examples of scatter for the generic tests.

use super::{Combiner, Scatter};
use crate::array::Array;
use crate::ops::Sample;
use crate::ops::samples::ramp;
use crate::types::DType;

/// Every combiner with unique, overlapping and dropped updates; windows; batching dimensions.
pub(super) fn samples() -> Vec<Sample> {
    let ints = |shape: &[usize], values: &[i128]| Array::ints(DType::I32, shape, values);
    let f32s = |shape: &[usize]| ramp(DType::F32, shape);
    let sample = |op: &Scatter, x: &Array, indices: &Array, updates: &Array| {
        Sample::new(op.clone(), vec![x.clone(), indices.clone(), updates.clone()])
    };
    let updates = Array::floats(DType::F32, [4], &[5.0, -3.0, 2.5, 0.75]);
    let mut samples = Vec::new();
    for &combiner in Combiner::ALL {
        let op = Scatter::at(1, 1, 0, combiner);
        let unique = Scatter { unique_indices: true, ..op.clone() };
        samples.push(sample(&unique, &f32s(&[5]), &ints(&[4], &[3, 0, 9, 1]), &updates));
        samples.push(sample(
            &op,
            &ramp(DType::I32, [3]),
            &ints(&[2], &[2, 2]),
            &ramp(DType::I32, [2]),
        ));
        let met = sample(&op, &f32s(&[3]), &ints(&[4], &[2, 0, -1, 2]), &updates);
        samples.push(if combiner == Combiner::Multiply { met.not_differentiable() } else { met });
    }
    for combiner in [Combiner::Set, Combiner::Add] {
        // Rows; windows that overlap in part; one window over the edge.
        let rows = Scatter::at(2, 1, 0, combiner);
        samples.push(sample(
            &rows,
            &f32s(&[4, 3]),
            &Array::ints(DType::U8, [2], &[200, 1]),
            &f32s(&[2, 3]),
        ));
        let pairs = Scatter {
            update_window_dims: vec![0],
            inserted_window_dims: vec![],
            input_batching_dims: vec![],
            scatter_indices_batching_dims: vec![],
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: 0,
            combiner,
            unique_indices: false,
        };
        samples.push(sample(&pairs, &f32s(&[5]), &ints(&[1, 3], &[1, 2, 4]), &f32s(&[2, 3])));
        // A separate column for each index, two components.
        let columns = Scatter {
            update_window_dims: vec![1],
            inserted_window_dims: vec![2],
            input_batching_dims: vec![1],
            scatter_indices_batching_dims: vec![0],
            scatter_dims_to_operand_dims: vec![2, 0],
            index_vector_dim: 1,
            combiner,
            unique_indices: true,
        };
        samples.push(sample(
            &columns,
            &f32s(&[3, 2, 2]),
            &ints(&[2, 2], &[1, 0, 0, 1]),
            &f32s(&[2, 2]),
        ));
    }
    samples.push(sample(
        &Scatter::at(1, 0, 0, Combiner::Set),
        &ramp(DType::Bool, [3]),
        &ints(&[], &[1]),
        &Array::bools([], &[true]),
    ));
    samples
}
