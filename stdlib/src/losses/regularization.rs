//! Regularizers for policies with any distribution.

use crate::distributions::Distribution;
use podracer_dsl::prelude::*;

/// The negative entropy of policies, `-mean_t(w_t entropy_t)`, `f32[]`. Added to a loss, it
/// prevents early convergence: Williams and Peng, "Function optimization using connectionist
/// reinforcement learning algorithms", 1991. `policy` has the leading axis `[T]`, `w_t` is a number
/// or `f32[T]`. For logits it is [`super::entropy_loss`].
#[track_caller]
pub fn entropy_regularizer(policy: &impl Distribution, w_t: impl IntoTensor) -> Tensor {
    let _scope = scope("entropy_regularizer");
    -(policy.entropy() * w_t).mean()
}

/// The divergence of policies from a prior, `mean_t(w_t KL(policy_t || prior_t))`, `f32[]`. Added
/// to a loss, it keeps them near the prior, such as the policy before the update (Schulman et al.,
/// "Proximal Policy Optimization Algorithms", 2017, section 4) or a policy from demonstrations.
/// Both have the leading axis `[T]`, `w_t` is a number or `f32[T]`. No gradient flows into the
/// prior.
#[track_caller]
pub fn kl_regularizer<D: Distribution + Tree>(
    policy: &D,
    prior: &D,
    w_t: impl IntoTensor,
) -> Tensor {
    let _scope = scope("kl_regularizer");
    let prior = tree_map(prior, stop_gradient);
    (policy.kl_divergence(&prior) * w_t).mean()
}
