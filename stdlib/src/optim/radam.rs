//! Rectified Adam.

use super::{AdamState, Optimizer, Schedule, bias_correction, no_updates, times, zeros_like};
use crate::Number;
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// Rectified Adam: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2020,
/// algorithm 2. While the second moment averages too few gradients, the update is momentum alone:
///
/// ```text
/// rho_t = rho_inf - 2 t b2^t / (1 - b2^t)                          rho_inf = 2 / (1 - b2) - 1
/// update_t = -learning_rate mu_t / (1 - b1^t)                      where rho_t < threshold, and else
/// update_t = -learning_rate r_t (mu_t / (1 - b1^t)) / (sqrt(nu_t / (1 - b2^t) + eps_root) + eps)
/// r_t = sqrt((rho_t - 4) (rho_t - 2) rho_inf / ((rho_inf - 4) (rho_inf - 2) rho_t))
/// ```
///
/// `mu_t` and `nu_t` are as in [`Adam`](super::Adam).
#[derive(Clone, Debug)]
pub struct RAdam {
    /// Learning rate as a function of the number of earlier updates.
    pub learning_rate: Schedule,
    /// Decay of the mean of the gradients.
    pub b1: Number,
    /// Decay of the mean of the gradients' squares.
    pub b2: Number,
    /// Number added to the square root.
    pub eps: Number,
    /// Number added inside the square root; above 0 if gradients flow through the optimizer.
    pub eps_root: Number,
    /// Threshold of `rho_t`, at least 4; from it on the update is divided by the square root.
    pub threshold: Number,
}

/// RAdam with `b1` 0.9, `b2` 0.999, `eps` 1e-8, `threshold` 5: optax's defaults.
pub fn radam(learning_rate: impl Into<Schedule>) -> RAdam {
    RAdam {
        learning_rate: learning_rate.into(),
        b1: 0.9.into(),
        b2: 0.999.into(),
        eps: 1e-8.into(),
        eps_root: 0.0.into(),
        threshold: 5.0.into(),
    }
}

setters!(RAdam: b1, b2, eps, eps_root, threshold);

impl Optimizer for RAdam {
    type State<P: Tree> = AdamState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> AdamState<P> {
        AdamState { count: no_updates(), mu: zeros_like(params), nu: zeros_like(params) }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: AdamState<P>, _: &P) -> (P, AdamState<P>) {
        let &RAdam { b1, b2, eps, eps_root, threshold, .. } = self;
        let rate = self.learning_rate.value(state.count);
        let count = next_count(state.count);
        let mu = grads.zip_with(&state.mu, |g, mu| (1.0 - b1) * g + b1 * mu);
        let nu = grads.zip_with(&state.nu, |g, nu| (1.0 - b2) * g.square() + b2 * nu);
        let (of_mu, of_nu) = (bias_correction(b1, count), bias_correction(b2, count));
        let number = Number::from;
        let rho_inf = number(2.0) / (number(1.0) - b2) - number(1.0);
        // The order of optax: the difference is small compared with its terms.
        let t = count.astype(F32);
        let power = pow(b2.into_tensor(), t);
        let rho = rho_inf - 2.0 * t * power / (1.0 - power);
        let tractable = rho.ge(threshold);
        // If the ratio is unused, it may be the root of a negative number with a NaN derivative.
        let rho = select(tractable, rho, 5.0);
        let of_all = (rho_inf - number(4.0)) * (rho_inf - number(2.0));
        let rectification = ((rho - 4.0) * (rho - 2.0) * rho_inf / (of_all * rho)).sqrt();
        let updates = mu.zip_with(&nu, |mu, nu| {
            let dtype = mu.dtype();
            let mean = mu / of_mu.astype(dtype);
            let root = (nu / of_nu.astype(dtype) + eps_root).sqrt() + eps;
            let divided = rectification.astype(dtype) * mean / root;
            times(-rate, select(tractable, divided, mean))
        });
        (updates, AdamState { count, mu, nu })
    }
}
