//! Activations by name, for configurations. The functions are methods of `Tensor`.

use podracer_dsl::prelude::*;

/// An elementwise function between layers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// max(x, 0).
    Relu,
    /// x sigmoid(x), also called swish.
    Silu,
    /// x Phi(x) in the approximation by tanh: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    Gelu,
    /// x above 0, e^x - 1 below: Clevert et al., "Fast and Accurate Deep Network Learning by ELUs", 2016.
    Elu,
    /// x above 0, a hundredth of it below.
    LeakyRelu,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// log(1 + e^x).
    Softplus,
    /// x itself.
    Identity,
}

impl Activation {
    /// Applies it, element by element.
    #[track_caller]
    pub fn apply(self, x: Tensor) -> Tensor {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.relu(),
            Activation::Silu => x.silu(),
            Activation::Gelu => 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x)).tanh()),
            // Kept below 0 before the exponential: where x is large the side not taken must not overflow.
            Activation::Elu => select(x.gt(0), x, x.minimum(0).expm1()),
            Activation::LeakyRelu => select(x.ge(0), x, 0.01 * x),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Softplus => x.softplus(),
            Activation::Identity => x,
        }
    }
}
