//! Activations by name, for configurations. The functions are methods of `Tensor`.

use podracer_dsl::prelude::*;

/// An elementwise function between layers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// The positive part, max(x, 0).
    Relu,
    /// The product x sigmoid(x), also called swish.
    Silu,
    /// The product x Phi(x) in the approximation by tanh: Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    Gelu,
    /// x above 0, e^x - 1 below: Clevert et al., "Fast and Accurate Deep Network Learning by ELUs", 2016.
    Elu,
    /// x above 0, a hundredth of it below.
    LeakyRelu,
    /// The logistic function, 1 / (1 + e^-x).
    Sigmoid,
    /// The logarithm of 1 + e^x.
    Softplus,
    /// The identity, x.
    Identity,
}

impl Activation {
    /// Applies the function, element by element.
    #[track_caller]
    pub fn apply(self, x: Tensor) -> Tensor {
        match self {
            Activation::Tanh => x.tanh(),
            // Written so that NaN stays NaN; the derivative at 0 is 0.
            Activation::Relu => select(x.le(0), x.zeros_like(), x),
            Activation::Silu => x.silu(),
            Activation::Gelu => {
                0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x)).tanh())
            }
            // The exponential gets 0 where it is not taken: it must not overflow there, or the gradient is NaN.
            Activation::Elu => select(x.gt(0), x, select(x.gt(0), x.zeros_like(), x).expm1()),
            Activation::LeakyRelu => select(x.ge(0), x, 0.01 * x),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Softplus => x.softplus(),
            Activation::Identity => x,
        }
    }
}
