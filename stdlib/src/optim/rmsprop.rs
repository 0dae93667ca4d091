//! RMSProp, optionally centered and with momentum.

use super::sgd::follow;
use super::{Optimizer, Schedule, no_updates, times, zeros_like};
use crate::Number;
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// RMSProp: Tieleman and Hinton, "Lecture 6.5", 2012; `centered` as Graves, "Generating Sequences With Recurrent Neural
/// Networks", 2013, eq. 38-45:
///
/// ```text
/// nu_t = decay nu_{t-1} + (1 - decay) g_t^2          update_t = -learning_rate g_t / sqrt(nu_t + eps)
/// ```
///
/// The centered form subtracts the square of the mean gradient from `nu_t`; momentum is applied
/// after the learning rate.
#[derive(Clone, Debug)]
pub struct RmsProp {
    /// Learning rate as a function of the number of earlier updates.
    pub learning_rate: Schedule,
    /// Decay of the means.
    pub decay: Number,
    /// Number added to `nu_t`, or to its square root.
    pub eps: Number,
    /// True to add `eps` inside the square root (optax, the original code of Atari agents), false
    /// to add it outside (PyTorch).
    pub eps_in_sqrt: bool,
    /// Initial value of the mean of squares, `nu_0`.
    pub initial_scale: f64,
    /// True to divide by the standard deviation instead of the root mean square.
    pub centered: bool,
    /// Share of the last step that is added to the next; 0 for no momentum.
    pub momentum: Number,
}

/// State of [`RmsProp`]: the means, and the trace of steps.
#[derive(Tree, Clone)]
pub struct RmsPropState<P: Tree> {
    /// Number of updates made, `i32[]`.
    pub count: Tensor,
    /// Mean of the squared gradients.
    pub nu: P,
    /// Mean of the gradients, if centered.
    pub mu: Option<P>,
    /// Trace of steps, with momentum.
    pub trace: Option<P>,
}

/// RMSProp with `decay` 0.9, `eps` 1e-8 inside the square root.
pub fn rmsprop(learning_rate: impl Into<Schedule>) -> RmsProp {
    RmsProp {
        learning_rate: learning_rate.into(),
        decay: 0.9.into(),
        eps: 1e-8.into(),
        eps_in_sqrt: true,
        initial_scale: 0.0,
        centered: false,
        momentum: 0.0.into(),
    }
}

setters!(RmsProp: decay, eps, momentum);

impl RmsProp {
    /// Adds `eps` outside the square root.
    pub fn eps_outside(self) -> Self {
        RmsProp { eps_in_sqrt: false, ..self }
    }

    /// Turns on [`RmsProp::centered`].
    pub fn centered(self) -> Self {
        RmsProp { centered: true, ..self }
    }
}

impl Optimizer for RmsProp {
    type State<P: Tree> = RmsPropState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> RmsPropState<P> {
        let nu = tree_map(params, |param| param.full_like(self.initial_scale));
        RmsPropState {
            count: no_updates(),
            nu,
            mu: self.centered.then(|| zeros_like(params)),
            trace: (!self.momentum.is(0.0)).then(|| zeros_like(params)),
        }
    }

    #[track_caller]
    fn update<P: Tree>(
        &self,
        grads: P,
        state: RmsPropState<P>,
        _params: &P,
    ) -> (P, RmsPropState<P>) {
        let &RmsProp { decay, eps, eps_in_sqrt, momentum, .. } = self;
        let nu = grads.zip_with(&state.nu, |g, nu| (1.0 - decay) * g.square() + decay * nu);
        let mu = state.mu.map(|mu| grads.zip_with(&mu, |g, mu| (1.0 - decay) * g + decay * mu));
        let square = match &mu {
            Some(mu) => nu.zip_with(mu, |nu, mu| nu - mu.square()),
            None => nu.clone(),
        };
        let learning_rate = self.learning_rate.value(state.count);
        let go = grads.zip_with(&square, |g, square| {
            let step =
                if eps_in_sqrt { g * (square + eps).rsqrt() } else { g / (square.sqrt() + eps) };
            times(-learning_rate, step)
        });
        let (go, trace) = match &state.trace {
            Some(trace) => {
                let (go, next) = follow(go, trace, momentum, false);
                (go, Some(next))
            }
            None => (go, None),
        };
        (go, RmsPropState { count: next_count(state.count), nu, mu, trace })
    }
}
