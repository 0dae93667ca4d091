//! Initial weights of layers.

use super::orthogonal::orthogonal;
use podracer_dsl::prelude::*;

/// A distribution of initial weights. Shapes are `[.., in, out]`; axes before the last two are a convolution's window.
/// Values equal those of `jax.nn.initializers` for the same key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initializer {
    /// Zeros everywhere.
    Zeros,
    /// One number everywhere.
    Constant(f64),
    /// Uniform on `[0, scale)`.
    Uniform(f64),
    /// Normal with mean 0 and this standard deviation.
    Normal(f64),
    /// Uniformly distributed among the matrices with orthonormal rows or columns, times a scale:
    /// Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep
    /// linear neural networks", 2014.
    Orthogonal(f64),
    /// Mean 0 and variance `scale / fan`.
    VarianceScaling {
        /// Numerator of the variance.
        scale: f64,
        /// Denominator of the variance.
        fan: Fan,
        /// Shape of the distribution.
        law: Law,
    },
}

/// The divisor of the variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fan {
    /// Number of inputs of an output.
    In,
    /// Number of outputs that depend on an input.
    Out,
    /// Mean of the numbers of inputs and outputs.
    Average,
}

/// The shape of a distribution with given variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Normal, truncated at two standard deviations of the original.
    TruncatedNormal,
    /// Normal, not truncated.
    Normal,
    /// Uniform around 0.
    Uniform,
}

/// The standard deviation of a standard normal truncated at -2 and 2.
const TRUNCATED_DEVIATION: f64 = 0.879_625_661_034_239_8;

impl Initializer {
    /// An [`Initializer::Orthogonal`].
    pub fn orthogonal(scale: f64) -> Self {
        Initializer::Orthogonal(scale)
    }

    /// Glorot's uniform weights: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
    /// networks", 2010, eq. 16.
    pub fn glorot_uniform() -> Self {
        Initializer::VarianceScaling { scale: 1.0, fan: Fan::Average, law: Law::Uniform }
    }

    /// Glorot's truncated normal weights, with the variance of [`Initializer::glorot_uniform`].
    pub fn glorot_normal() -> Self {
        Initializer::VarianceScaling { scale: 1.0, fan: Fan::Average, law: Law::TruncatedNormal }
    }

    /// LeCun's truncated normal weights: LeCun et al., "Efficient BackProp", 1998, eq. 16. Flax's default for dense layers.
    pub fn lecun_normal() -> Self {
        Initializer::VarianceScaling { scale: 1.0, fan: Fan::In, law: Law::TruncatedNormal }
    }

    /// LeCun's uniform weights, with the variance of [`Initializer::lecun_normal`].
    pub fn lecun_uniform() -> Self {
        Initializer::VarianceScaling { scale: 1.0, fan: Fan::In, law: Law::Uniform }
    }

    /// He's truncated normal weights: He et al., "Delving Deep into Rectifiers", 2015, eq. 10.
    pub fn he_normal() -> Self {
        Initializer::VarianceScaling { scale: 2.0, fan: Fan::In, law: Law::TruncatedNormal }
    }

    /// He's uniform weights, with the variance of [`Initializer::he_normal`].
    pub fn he_uniform() -> Self {
        Initializer::VarianceScaling { scale: 2.0, fan: Fan::In, law: Law::Uniform }
    }

    /// Draws f32 weights of a shape.
    #[track_caller]
    pub fn init(self, key: Key, shape: &[usize]) -> Tensor {
        match self {
            Initializer::Zeros => zeros(F32, shape),
            Initializer::Constant(value) => full(shape, value),
            Initializer::Uniform(scale) => key.uniform_range(shape, 0.0, scale),
            Initializer::Normal(deviation) => key.normal(shape) * deviation,
            Initializer::Orthogonal(scale) => orthogonal(key, shape, scale),
            Initializer::VarianceScaling { scale, fan, law } => {
                let variance = scale / fan.divisor(shape);
                match law {
                    Law::TruncatedNormal => {
                        key.truncated_normal(shape, -2.0, 2.0)
                            * (variance.sqrt() / TRUNCATED_DEVIATION)
                    }
                    Law::Normal => key.normal(shape) * variance.sqrt(),
                    Law::Uniform => key.uniform_range(shape, -1.0, 1.0) * (3.0 * variance).sqrt(),
                }
            }
        }
    }
}

impl Fan {
    /// The divisor for weights of a shape `[.., in, out]`; a vector's extent counts as both inputs and outputs.
    fn divisor(self, shape: &[usize]) -> f64 {
        let (window, inputs, outputs) = match shape {
            [] => (1, 1, 1),
            [n] => (1, *n, *n),
            [window @ .., inputs, outputs] => (window.iter().product(), *inputs, *outputs),
        };
        let (inputs, outputs) = ((window * inputs) as f64, (window * outputs) as f64);
        match self {
            Fan::In => inputs.max(1.0),
            Fan::Out => outputs.max(1.0),
            Fan::Average => ((inputs + outputs) / 2.0).max(1.0),
        }
    }
}
