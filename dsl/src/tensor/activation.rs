//! Activations of networks, composed of several ops.

use super::{Tensor, select};

/// Activations, element by element.
impl Tensor {
    /// The rectified linear unit, max(x, 0); its derivative at 0 is 0. NaN stays.
    #[track_caller]
    pub fn relu(self) -> Tensor {
        select(self.le(0), self.zeros_like(), self)
    }

    /// The softplus function, log(1 + e^x), without overflow.
    #[track_caller]
    pub fn softplus(self) -> Tensor {
        self.maximum(0) + (-self.abs()).exp().log1p()
    }

    /// The logarithm of [`Tensor::sigmoid`], without underflow.
    #[track_caller]
    pub fn log_sigmoid(self) -> Tensor {
        -(-self).softplus()
    }

    /// The sigmoid linear unit, x * sigmoid(x), also called swish.
    #[track_caller]
    pub fn silu(self) -> Tensor {
        self * self.sigmoid()
    }

    /// The exponential linear unit: x where positive, e^x - 1 elsewhere; its derivative at 0 is 1. Clevert et al., "Fast and
    /// Accurate Deep Network Learning by ELUs", 2016.
    #[track_caller]
    pub fn elu(self) -> Tensor {
        let positive = self.gt(0);
        // The exponential gets 0 where it is not taken: it must not overflow there, or the gradient is NaN.
        select(positive, self, select(positive, self.zeros_like(), self).expm1())
    }

    /// The Gaussian error linear unit: x times the normal distribution function of x, which is erfc(-x / sqrt 2) / 2 and
    /// has all its digits where it is small. Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016.
    #[track_caller]
    pub fn gelu(self) -> Tensor {
        0.5 * self * (-self * std::f64::consts::FRAC_1_SQRT_2).erfc()
    }

    /// The approximation of [`Tensor::gelu`] by the hyperbolic tangent, which many networks use in its place.
    #[track_caller]
    pub fn gelu_tanh(self) -> Tensor {
        let inner = 0.797_884_560_802_865_4 * (self + 0.044715 * self * self * self);
        0.5 * self * (1.0 + inner.tanh())
    }

    /// The leaky rectified linear unit: `slope` * x where negative, x elsewhere; its derivative at 0 is 1.
    #[track_caller]
    pub fn leaky_relu(self, slope: f64) -> Tensor {
        select(self.ge(0), self, self * slope)
    }
}
