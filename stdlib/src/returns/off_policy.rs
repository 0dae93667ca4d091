//! V-trace: returns of one policy from the trajectories of another policy.

use super::{linear_recurrence, per_step};
use crate::Number;
use podracer_dsl::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results of [`vtrace_td_error_and_advantage`] and [`impala_vtrace_td_error_and_advantage`], all `f32[T]`.
#[derive(Tree, Clone, Copy)]
pub struct VtraceOutput {
    /// Targets minus values: the value error at the step's first state.
    pub errors: Tensor,
    /// The advantage that weights the policy gradient.
    pub pg_advantage: Tensor,
    /// The estimate of the action's value.
    pub q_estimate: Tensor,
}

impl VtraceOutput {
    /// The output for V-trace errors. `bootstrap` is the value after the step that an action's
    /// value bootstraps from, in place of `v_t`; `rho` is clipped. Both are `f32[T]`.
    #[track_caller]
    fn new(
        errors: Tensor,
        [v_tm1, v_t, r_t, discount_t]: [Tensor; 4],
        bootstrap: Tensor,
        rho: Tensor,
    ) -> VtraceOutput {
        let bootstrap = bootstrap.slice(..-1);
        let targets = (errors + v_tm1).slice(1..);
        let mixed = bootstrap * targets + (1.0 - bootstrap) * v_t.slice(..-1);
        let q_estimate = r_t + discount_t * concatenate(&[mixed, v_t.slice(-1..)], 0);
        VtraceOutput { errors, pg_advantage: rho * (q_estimate - v_tm1), q_estimate }
    }
}

/// Values that the advantage of the policy gradient bootstraps from.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PgAdvantage {
    /// The next target, for any lambda, as in the paper: [`impala_vtrace_td_error_and_advantage`].
    #[default]
    Impala,
    /// Targets and values, mixed as in the traces, as in rlax: [`vtrace_td_error_and_advantage`].
    Rlax,
}

/// V-trace with its thresholds, for trajectories that contain ends of episodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vtrace {
    /// Lambda, the decay of the traces.
    pub lambda: Number,
    /// Greatest importance weight in an error.
    pub clip_rho: Number,
    /// Greatest importance weight in a trace.
    pub clip_c: Number,
    /// Greatest importance weight in the advantage of the policy gradient.
    pub clip_pg_rho: Number,
    /// Form of the policy gradient's advantage.
    pub advantage: PgAdvantage,
}

/// The paper's thresholds, which are all 1.
impl Default for Vtrace {
    fn default() -> Self {
        Vtrace {
            lambda: 1.0.into(),
            clip_rho: 1.0.into(),
            clip_c: 1.0.into(),
            clip_pg_rho: 1.0.into(),
            advantage: PgAdvantage::Impala,
        }
    }
}

impl Vtrace {
    /// Errors and advantages. `ended_t` is `bool[T]`, true if step `t` ended an episode: traces
    /// stop at it, and the next value is `v_t`. If the episode was truncated, `v_t` is the value of
    /// its last observation; if it terminated, `discount_t` is 0. In all other steps `v_t` is the
    /// next step's `v_tm1`. Gradients are as in [`vtrace`].
    #[track_caller]
    pub fn apply(
        &self,
        v_tm1: Tensor,
        v_t: Tensor,
        r_t: Tensor,
        discount_t: Tensor,
        rho_tm1: Tensor,
        ended_t: Tensor,
    ) -> VtraceOutput {
        let _scope = scope("Vtrace::apply");
        let goes_on = select(ended_t, 0.0, v_tm1.full_like(1.0));
        let lambda_t = self.lambda * goes_on;
        let steps = [v_tm1, v_t, r_t, discount_t];
        let c = lambda_t * rho_tm1.minimum(self.clip_c);
        let errors = errors(steps, rho_tm1.minimum(self.clip_rho), c);
        let bootstrap = match self.advantage {
            PgAdvantage::Impala => goes_on,
            PgAdvantage::Rlax => lambda_t,
        };
        VtraceOutput::new(errors, steps, bootstrap, rho_tm1.minimum(self.clip_pg_rho))
    }
}

/// Errors from clipped importance weights and trace coefficients, `f32[T]`.
#[track_caller]
fn errors([v_tm1, v_t, r_t, discount_t]: [Tensor; 4], rho: Tensor, c: Tensor) -> Tensor {
    let delta_t = rho * (r_t + discount_t * v_t - v_tm1);
    let errors = linear_recurrence(delta_t, discount_t * c, delta_t.zeros_like().index(0));
    stop_gradient(errors + v_tm1) - v_tm1
}

/// V-trace errors, Espeholt et al., "IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner
/// Architectures", 2018, eq. 1:
///
/// ```text
/// delta_t = min(clip, rho_t) (r_t + discount_t v_t - v_tm1)
/// error_t = delta_t + discount_t lambda_t min(1, rho_t) error_{t+1}
/// ```
///
/// All are `f32[T]`. `rho_tm1` is the ratio of the action's probabilities under the learner's and
/// the actor's policy. `lambda` is a number or `f32[T]`. Gradients flow only into `v_tm1`: the
/// targets are constants.
#[track_caller]
pub fn vtrace(
    v_tm1: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    rho_tm1: Tensor,
    lambda: impl IntoTensor,
    clip_rho_threshold: impl IntoTensor,
) -> Tensor {
    leaky_vtrace(v_tm1, v_t, r_t, discount_t, rho_tm1, 1.0, lambda, clip_rho_threshold)
}

/// [`vtrace`] with a mixture of clipped and plain importance weights: `alpha min(clip, rho) + (1 -
/// alpha) rho`, and likewise for the traces; Zahavy et al., "A Self-Tuning Actor-Critic Algorithm",
/// 2020. `alpha` 1 is V-trace.
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn leaky_vtrace(
    v_tm1: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    rho_tm1: Tensor,
    alpha: f64,
    lambda: impl IntoTensor,
    clip_rho_threshold: impl IntoTensor,
) -> Tensor {
    let _scope = scope("vtrace");
    let leaky = |clipped: Tensor| {
        if alpha == 1.0 { clipped } else { alpha * clipped + (1.0 - alpha) * rho_tm1 }
    };
    let rho = leaky(rho_tm1.minimum(clip_rho_threshold));
    let c = leaky(rho_tm1.minimum(1.0)) * per_step(lambda, discount_t);
    errors([v_tm1, v_t, r_t, discount_t], rho, c)
}

/// V-trace errors with the advantage of the policy gradient as in rlax, which mixes targets and
/// values like the traces: `q_t = r_t + discount_t (lambda_t vs_{t+1} + (1 - lambda_t) v_t)`,
/// bootstrapped from `v_t` at the end, and
///
/// ```text
/// pg_advantage_t = min(clip_pg, rho_t) (q_t - v_tm1)
/// ```
///
/// With `lambda` 1 it equals the paper's, [`impala_vtrace_td_error_and_advantage`].
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn vtrace_td_error_and_advantage(
    v_tm1: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    rho_tm1: Tensor,
    lambda: impl IntoTensor,
    clip_rho_threshold: impl IntoTensor,
    clip_pg_rho_threshold: impl IntoTensor,
) -> VtraceOutput {
    let _scope = scope("vtrace_td_error_and_advantage");
    let lambda_t = per_step(lambda, discount_t);
    let errors = vtrace(v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_t, clip_rho_threshold);
    let rho = rho_tm1.minimum(clip_pg_rho_threshold);
    VtraceOutput::new(errors, [v_tm1, v_t, r_t, discount_t], lambda_t, rho)
}

/// V-trace errors with the advantage of the policy gradient as in the paper (Espeholt et al., 2018,
/// section 4.2), which bootstraps from the next target for any `lambda`: `q_t = r_t + discount_t
/// vs_{t+1}`, from `v_t` at the end, and
///
/// ```text
/// pg_advantage_t = min(clip_pg, rho_t) (q_t - v_tm1)
/// ```
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn impala_vtrace_td_error_and_advantage(
    v_tm1: Tensor,
    v_t: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    rho_tm1: Tensor,
    lambda: impl IntoTensor,
    clip_rho_threshold: impl IntoTensor,
    clip_pg_rho_threshold: impl IntoTensor,
) -> VtraceOutput {
    let _scope = scope("impala_vtrace_td_error_and_advantage");
    let errors = vtrace(v_tm1, v_t, r_t, discount_t, rho_tm1, lambda, clip_rho_threshold);
    let rho = rho_tm1.minimum(clip_pg_rho_threshold);
    let bootstrap = v_t.full_like(1.0);
    VtraceOutput::new(errors, [v_tm1, v_t, r_t, discount_t], bootstrap, rho)
}
