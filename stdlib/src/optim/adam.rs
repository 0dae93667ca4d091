//! Adam, and Adam with decoupled weight decay.

use super::{Optimizer, Schedule, bias_correction, no_updates, times, zeros_like};
use crate::Number;
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// Adam: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, algorithm 1:
///
/// ```text
/// mu_t = b1 mu_{t-1} + (1 - b1) g_t            nu_t = b2 nu_{t-1} + (1 - b2) g_t^2
/// update_t = -learning_rate (mu_t / (1 - b1^t)) / (sqrt(nu_t / (1 - b2^t) + eps_root) + eps)
/// ```
///
/// With `weight_decay` above 0 it is AdamW (Loshchilov and Hutter, "Decoupled Weight Decay
/// Regularization", 2019): the decay term is added before the learning rate is applied.
#[derive(Clone, Debug)]
pub struct Adam {
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
    /// Share of the parameters that each update subtracts, times the learning rate.
    pub weight_decay: Number,
    /// True for Nesterov's momentum: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
    pub nesterov: bool,
}

/// State of [`Adam`]: the means of gradients and of their squares.
#[derive(Tree, Clone)]
pub struct AdamState<P: Tree> {
    /// Number of updates made, `i32[]`.
    pub count: Tensor,
    /// Mean of the gradients.
    pub mu: P,
    /// Mean of the gradients' squares.
    pub nu: P,
}

/// Adam with `b1` 0.9, `b2` 0.999, `eps` 1e-8.
pub fn adam(learning_rate: impl Into<Schedule>) -> Adam {
    Adam {
        learning_rate: learning_rate.into(),
        b1: 0.9.into(),
        b2: 0.999.into(),
        eps: 1e-8.into(),
        eps_root: 0.0.into(),
        weight_decay: 0.0.into(),
        nesterov: false,
    }
}

/// [`adam`] with a weight decay of 1e-4, optax's default.
pub fn adamw(learning_rate: impl Into<Schedule>) -> Adam {
    adam(learning_rate).weight_decay(1e-4)
}

setters!(Adam: b1, b2, eps, eps_root, weight_decay);

impl Adam {
    /// Turns on [`Adam::nesterov`].
    pub fn nesterov(self) -> Self {
        Adam { nesterov: true, ..self }
    }

    /// The updates before the learning rate is applied, with the sign of the gradients, and the
    /// next state.
    #[track_caller]
    pub(super) fn direction<P: Tree>(
        &self,
        grads: P,
        state: AdamState<P>,
        params: &P,
    ) -> (P, AdamState<P>) {
        let &Adam { b1, b2, eps, eps_root, weight_decay, nesterov, .. } = self;
        let count = next_count(state.count);
        let mu = grads.zip_with(&state.mu, |g, mu| (1.0 - b1) * g + b1 * mu);
        let nu = grads.zip_with(&state.nu, |g, nu| (1.0 - b2) * g.square() + b2 * nu);
        let mean = if nesterov {
            let (of_mu, of_g) =
                (bias_correction(b1, next_count(count)), bias_correction(b1, count));
            mu.zip_with(&grads, |mu, g| {
                let (of_mu, of_g) = (of_mu.astype(mu.dtype()), of_g.astype(g.dtype()));
                b1 * (mu / of_mu) + (1.0 - b1) * (g / of_g)
            })
        } else {
            let correction = bias_correction(b1, count);
            tree_map(&mu, |mu| mu / correction.astype(mu.dtype()))
        };
        let correction = bias_correction(b2, count);
        let mut updates = mean.zip_with(&nu, |mean, nu| {
            let correction = correction.astype(nu.dtype());
            mean / ((nu / correction + eps_root).sqrt() + eps)
        });
        if !weight_decay.is(0.0) {
            updates = updates.zip_with(params, |update, param| update + weight_decay * param);
        }
        (updates, AdamState { count, mu, nu })
    }
}

impl Optimizer for Adam {
    type State<P: Tree> = AdamState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> AdamState<P> {
        AdamState { count: no_updates(), mu: zeros_like(params), nu: zeros_like(params) }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: AdamState<P>, params: &P) -> (P, AdamState<P>) {
        let count = state.count;
        let (direction, state) = self.direction(grads, state, params);
        let learning_rate = self.learning_rate.value(count);
        (tree_map(&direction, |update| times(-learning_rate, update)), state)
    }
}
