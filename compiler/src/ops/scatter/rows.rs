//! Rows that are set one after the other: a scatter keeps XLA from compiling the surrounding loop
//! to one kernel.

use super::{Combiner, Scatter};
use crate::array::Array;
use crate::ir::{Builder, Func};
use crate::ops::{Direction, OpRef, Scan};
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};
use std::sync::Arc;

impl Scatter {
    /// The loop that sets whole rows of `x` at a list of positions, in order; `None` for any other
    /// scatter.
    pub(super) fn row_by_row(&self, inputs: &[TensorType]) -> Option<Scan> {
        let [x, places, rows] = inputs else { return None };
        let whole = Scatter {
            unique_indices: self.unique_indices,
            ..Scatter::at(x.rank(), 1, 0, Combiner::Set)
        };
        let are_rows = OpRef::new(self.clone()) == OpRef::new(whole)
            && places.rank() == 1
            && places.dtype == DType::I32;
        (are_rows && x.elements() > 0 && rows.shape[1..] == x.shape[1..]).then(|| Scan {
            body: Arc::new(set_row(x)),
            length: rows.shape[0],
            reverse: false,
            consts: 0,
            carries: 1,
        })
    }
}

/// `(x, place, row) -> x` with the row at the position `place`, if it lies inside.
fn set_row(x: &TensorType) -> Func {
    let mut b = Builder::new();
    let one = x.unstacked().stacked(1);
    let all = b.param(x.clone());
    let place = b.param(TensorType::scalar(DType::I32));
    let row = b.param(x.unstacked());
    let [zero, end] = [0, x.shape[0]]
        .map(|number| b.constant(Array::single(DType::I32, Scalar::Int(number as i128))));
    let (from, to) = (b.compare(Direction::Ge, place, zero), b.compare(Direction::Lt, place, end));
    let inside = b.and(from, to);
    let mut starts = vec![zero; x.rank()];
    starts[0] = place;
    let old = b.dynamic_slice(all, &starts, &one.shape);
    let row = b.reshape(row, &one.shape);
    let inside = b.broadcast_in_dim(inside, &one.shape, &[]);
    let row = b.select(inside, row, old);
    let all = b.dynamic_update_slice(all, row, &starts);
    b.finish("set_row", vec![all])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Op;
    use crate::ops::samples::ramp;

    #[test]
    fn rows_one_after_the_other_are_those_of_a_scatter() {
        let places = |places: &[i128]| Array::ints(DType::I32, [places.len()], places);
        let numbers =
            [ramp(DType::F32, [4, 3]), places(&[3, -1, 7, 1, 1]), ramp(DType::F32, [5, 3])];
        let single = [ramp(DType::I32, [4]), places(&[4, 0]), ramp(DType::I32, [2])];
        for inputs in [numbers, single] {
            let types = inputs.each_ref().map(|input| input.ty().clone());
            let op = Scatter::at(types[0].rank(), 1, 0, Combiner::Set);
            let scan = op.row_by_row(&types).expect("rows are set");
            let [x, places, rows] = inputs.clone();
            assert_eq!(scan.eval(&[x, places, rows]), op.eval(&inputs));
        }
    }

    #[test]
    fn other_scatters_are_no_rows() {
        let [f32s, i32s] = [DType::F32, DType::I32]
            .map(|dtype| move |shape: &[usize]| TensorType::new(dtype, shape));
        let types = [f32s(&[4, 3]), i32s(&[2]), f32s(&[2, 3])];
        assert!(Scatter::at(2, 1, 0, Combiner::Add).row_by_row(&types).is_none());
        let columns = [f32s(&[4, 3]), i32s(&[2]), f32s(&[4, 2])];
        assert!(Scatter::at(2, 1, 1, Combiner::Set).row_by_row(&columns).is_none());
        let [x, _, rows] = types;
        let wide = [x, TensorType::new(DType::I64, [2]), rows];
        assert!(Scatter::at(2, 1, 0, Combiner::Set).row_by_row(&wide).is_none());
    }
}
