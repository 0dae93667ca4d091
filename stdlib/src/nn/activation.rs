//! Activations by name, for configurations. The functions are methods of `Tensor`.

use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An elementwise function between layers.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// The positive part, max(x, 0).
    Relu,
    /// The product x sigmoid(x), also called swish.
    Silu,
    /// The product x Phi(x), approximated with tanh: Hendrycks and Gimpel, "Gaussian Error Linear
    /// Units", 2016.
    Gelu,
    /// The exponential linear unit, x above 0 and e^x - 1 below: Clevert et al., "Fast and Accurate
    /// Deep Network Learning by ELUs", 2016.
    Elu,
    /// The leaky rectified linear unit, x above 0 and x / 100 below.
    LeakyRelu,
    /// The logistic function, 1 / (1 + e^-x).
    Sigmoid,
    /// The logarithm of 1 + e^x.
    Softplus,
    /// The rectified linear unit with a limit, min(max(x, 0), 6).
    Relu6,
    /// The identity clamped to [-1, 1].
    HardTanh,
    /// The softsign function, x / (|x| + 1).
    SoftSign,
    /// The scaled exponential linear unit: Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    Selu,
    /// The function x tanh(softplus(x)): Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2020.
    Mish,
    /// The identity, x.
    Identity,
}

impl Activation {
    /// Applies the function, element by element.
    #[track_caller]
    pub fn apply(self, x: Tensor) -> Tensor {
        match self {
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.relu(),
            Activation::Silu => x.silu(),
            Activation::Gelu => x.gelu_tanh(),
            Activation::Elu => x.elu(),
            Activation::LeakyRelu => x.leaky_relu(0.01),
            Activation::Sigmoid => x.sigmoid(),
            Activation::Softplus => x.softplus(),
            Activation::Relu6 => x.relu6(),
            Activation::HardTanh => x.hard_tanh(),
            Activation::SoftSign => x.soft_sign(),
            Activation::Selu => x.selu(),
            Activation::Mish => x.mish(),
            Activation::Identity => x,
        }
    }
}
