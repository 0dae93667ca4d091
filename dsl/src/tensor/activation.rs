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
        // The exponential gets 0 in the branch that is not taken: an overflow would make the
        // gradient NaN.
        select(positive, self, select(positive, self.zeros_like(), self).expm1())
    }

    /// The Gaussian error linear unit: x times the normal distribution function of x. That function
    /// is erfc(-x / sqrt 2) / 2, which keeps all its digits where it is small. Hendrycks and
    /// Gimpel, "Gaussian Error Linear Units", 2016.
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

    /// The rectified linear unit with a limit, min(max(x, 0), 6); its derivative at 0 is 0, and 1/2 at 6. Krizhevsky,
    /// "Convolutional Deep Belief Networks on CIFAR-10", 2010.
    #[track_caller]
    pub fn relu6(self) -> Tensor {
        self.relu().minimum(6)
    }

    /// The identity clamped to [-1, 1]; its derivative at the ends is 1.
    #[track_caller]
    pub fn hard_tanh(self) -> Tensor {
        select(self.gt(1), 1, select(self.lt(-1), -1, self))
    }

    /// The softsign function, x / (|x| + 1).
    #[track_caller]
    pub fn soft_sign(self) -> Tensor {
        self / (self.abs() + 1)
    }

    /// The continuously differentiable [`Tensor::elu`]: x where positive, `alpha` (e^(x / alpha) - 1) elsewhere. Barron,
    /// "Continuously Differentiable Exponential Linear Units", 2017.
    #[track_caller]
    pub fn celu(self, alpha: f64) -> Tensor {
        let positive = self.gt(0);
        // The exponential gets 0 in the branch that is not taken, as in `elu`.
        let negative = select(positive, self.zeros_like(), self);
        select(positive, self, alpha * (negative / alpha).expm1())
    }

    /// The scaled exponential linear unit, which preserves the mean and variance of its input:
    /// 1.0507 x where positive, 1.7581 (e^x - 1) elsewhere. Klambauer et al., "Self-Normalizing
    /// Neural Networks", 2017.
    #[track_caller]
    pub fn selu(self) -> Tensor {
        let (scale, alpha) = (1.050_700_987_355_480_5, 1.673_263_242_354_377_2);
        let positive = self.gt(0);
        let negative = select(positive, self.zeros_like(), self);
        scale * select(positive, self, alpha * negative.expm1())
    }

    /// The function x tanh(softplus(x)): Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2020.
    #[track_caller]
    pub fn mish(self) -> Tensor {
        self * self.softplus().tanh()
    }
}
