//! The function that combines an element of a scatter with its update.

use crate::scalar::Scalar;
use crate::words;

words! {
    /// The function that combines an element of a [`Scatter`](super::Scatter) with its update.
    Combiner {
        /// The update alone.
        Set = "set",
        /// The sum of both.
        Add = "add",
        /// The product of both.
        Multiply = "multiply",
        /// The lesser of both; NaN if either is NaN.
        Min = "min",
        /// The greater of both; NaN if either is NaN.
        Max = "max",
    }
}

impl Combiner {
    /// The combination of two elements, before conversion to the dtype.
    pub(super) fn scalar(self, x: Scalar, update: Scalar) -> Scalar {
        match (self, x, update) {
            (Combiner::Set, _, update) => update,
            (Combiner::Add, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.wrapping_add(y)),
            (Combiner::Multiply, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.wrapping_mul(y)),
            (Combiner::Min, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.min(y)),
            (Combiner::Max, Scalar::Int(x), Scalar::Int(y)) => Scalar::Int(x.max(y)),
            (Combiner::Add, x, y) => Scalar::Float(x.float() + y.float()),
            (Combiner::Multiply, x, y) => Scalar::Float(x.float() * y.float()),
            (_, x, y) if x.float().is_nan() || y.float().is_nan() => Scalar::Float(f64::NAN),
            (Combiner::Min, x, y) => Scalar::Float(x.float().min(y.float())),
            (Combiner::Max, x, y) => Scalar::Float(x.float().max(y.float())),
        }
    }

    /// The StableHLO op in the region, if there is one.
    pub(super) fn hlo(self) -> Option<&'static str> {
        match self {
            Combiner::Set => None,
            Combiner::Add => Some("stablehlo.add"),
            Combiner::Multiply => Some("stablehlo.multiply"),
            Combiner::Min => Some("stablehlo.minimum"),
            Combiner::Max => Some("stablehlo.maximum"),
        }
    }
}
