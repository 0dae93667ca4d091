//! Tests that simplified functions give bit-identical results.

mod programs;
mod regions;
mod rules;

use super::{Options, simplify};
use crate::array::Array;
use crate::ir::Func;
use crate::scalar::Scalar;
use crate::types::{DType, TensorType};

/// Numbers without pattern, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // Steele, Lea and Flood's splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A value of a dtype: an edge value, a small value, or any value.
    fn scalar(&mut self, dtype: DType) -> Scalar {
        let small = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0];
        let edges = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.4e38, -1e-39, 5e-324, 1e308];
        match (dtype, self.below(3)) {
            (DType::Bool, _) => Scalar::Bool(self.below(2) == 0),
            (dtype, 0) if dtype.is_float() => Scalar::Float(edges[self.below(edges.len())]),
            (dtype, 1) if dtype.is_float() => Scalar::Float(small[self.below(small.len())]),
            (dtype, _) if dtype.is_float() => {
                Scalar::Float((self.next() as f64 / u64::MAX as f64 - 0.5) * 200.0)
            }
            (dtype, 0) => {
                let (least, greatest) = dtype.integer_range();
                Scalar::Int([least, greatest, least + 1, greatest - 1][self.below(4)])
            }
            (_, 1) => Scalar::Int([0, 1, -1, 2, 3, 31][self.below(6)]),
            _ => Scalar::Int(i128::from(self.next())),
        }
    }

    fn array(&mut self, ty: &TensorType) -> Array {
        let data = (0..ty.elements()).map(|_| self.scalar(ty.dtype));
        Array::new(ty.clone(), data)
    }
}

/// Compares types and values on some arguments.
fn assert_same(func: &Func, after: &Func, seed: u64) {
    crate::ir::verify(after).unwrap_or_else(|error| panic!("{error}\nfrom\n{func}"));
    assert_eq!(after.param_types(), func.param_types(), "{func}\n{after}");
    let mut random = Random(seed);
    for _ in 0..8 {
        let arguments: Vec<Array> =
            (func.param_types().iter()).map(|ty| random.array(ty)).collect();
        let (expected, got) = (func.eval(&arguments), after.eval(&arguments));
        assert_eq!(expected, got, "on {arguments:?}\n{func}\nbecame\n{after}");
    }
}

/// Simplifies, and checks that the results are the same and that a second simplification changes
/// nothing.
fn check(func: &Func, options: &Options, seed: u64) -> Func {
    let after = simplify(func, options);
    assert_same(func, &after, seed);
    let again = simplify(&after, options);
    assert_eq!(again.to_string(), after.to_string(), "a second time changes it");
    after
}
