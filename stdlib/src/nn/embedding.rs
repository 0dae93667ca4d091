//! Learned vectors for integers.

use super::initializer::Initializer;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// A learned vector for each of `count` integers, such as words, tiles or actions.
#[derive(Tree, Clone, Copy)]
pub struct Embedding {
    /// Vectors, `f32[count, features]`.
    pub weight: Tensor,
}

impl Embedding {
    /// Vectors drawn as in flax: normal with variance 1 / `features`.
    #[track_caller]
    pub fn init(key: Key, count: usize, features: usize) -> Embedding {
        let deviation = 1.0 / (features.max(1) as f64).sqrt();
        Embedding { weight: Initializer::Normal(deviation).init(key, &[count, features]) }
    }

    /// The vectors of integers: `i32[..]` to `f32[.., features]`. An integer out of range gets the
    /// vector of the nearest valid integer.
    #[track_caller]
    pub fn apply(&self, index: Tensor) -> Tensor {
        let op = "Embedding::apply";
        let _scope = scope(op);
        if !index.dtype().is_integer() {
            let message = format!("expected integers, got {}", index.ty());
            let features = self.weight.shape().last().copied().unwrap_or(1);
            let shape = [index.shape(), vec![features]].concat();
            return fail(op, message, &[index], TensorType::new(F32, shape));
        }
        self.weight.take(index, 0)
    }

    /// The products of a vector with all vectors, `f32[.., features]` to `f32[.., count]`: logits
    /// of the integers, computed with the embedding's own weights.
    #[track_caller]
    pub fn attend(&self, x: Tensor) -> Tensor {
        dot(x, self.weight.transpose())
    }
}
