//! Numbers for tests.

use podracer_compiler::{Array, Scalar, TensorType};

/// Numbers without pattern from a seed: the same in every run.
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A float in [-1, 1), away from zero.
    pub fn float(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        if unit < 0.5 { -0.1 - 1.8 * unit } else { 0.1 + 1.8 * (unit - 0.5) }
    }

    /// Floats of a type.
    pub fn array(&mut self, ty: &TensorType) -> Array {
        Array::from_fn(ty.clone(), |_| Scalar::Float(self.float()))
    }
}
