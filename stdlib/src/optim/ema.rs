//! Exponential averages.

use super::{Optimizer, bias_correction, no_updates, zeros_like};
use crate::Number;
use crate::counter::next_count;
use podracer_dsl::prelude::*;

/// The exponential moving average of its inputs, returned in their place: `optax.ema`.
///
/// ```text
/// mean_t = decay mean_{t-1} + (1 - decay) x_t        given as mean_t / (1 - decay^t) if `debias`
/// ```
///
/// In a [`super::chain`] it averages updates. Used alone it averages anything, such as parameters
/// for an evaluation: `let (average, state) = average.update(params.clone(), state, &params)`. For
/// target networks, which have no state and begin as a copy, see [`super::incremental_update`].
#[derive(Clone, Copy, Debug)]
pub struct Ema {
    /// Decay of the average.
    pub decay: Number,
    /// True to correct the bias of the average, which begins at 0.
    pub debias: bool,
}

/// State of [`Ema`]: the average.
#[derive(Tree, Clone)]
pub struct EmaState<P: Tree> {
    /// Number of updates made, `i32[]`.
    pub count: Tensor,
    /// Average without correction.
    pub ema: P,
}

/// An [`Ema`] with bias correction.
pub fn ema(decay: impl Into<Number>) -> Ema {
    Ema { decay: decay.into(), debias: true }
}

impl Optimizer for Ema {
    type State<P: Tree> = EmaState<P>;

    #[track_caller]
    fn init<P: Tree>(&self, params: &P) -> EmaState<P> {
        EmaState { count: no_updates(), ema: zeros_like(params) }
    }

    #[track_caller]
    fn update<P: Tree>(&self, grads: P, state: EmaState<P>, _params: &P) -> (P, EmaState<P>) {
        let decay = self.decay;
        let count = next_count(state.count);
        let ema = grads.zip_with(&state.ema, |g, mean| (1.0 - decay) * g + decay * mean);
        let given = if self.debias {
            let correction = bias_correction(decay, count);
            tree_map(&ema, |mean| mean / correction.astype(mean.dtype()))
        } else {
            ema.clone()
        };
        (given, EmaState { count, ema })
    }
}
