//! Returns: sums of future rewards.

use super::{linear_recurrence, per_step};
use podracer_dsl::prelude::*;

/// Lambda returns, Sutton and Barto, "Reinforcement Learning", 2018, eq. 12.20:
///
/// ```text
/// G_t = r_t + discount_t ((1 - lambda_t) v_t + lambda_t G_{t+1})        with G_T = v_{T-1}
/// ```
///
/// `r_t`, `discount_t`, `v_t` are `f32[T]`; `lambda` is a number or `f32[T]`.
#[track_caller]
pub fn lambda_returns(
    r_t: Tensor,
    discount_t: Tensor,
    v_t: Tensor,
    lambda: impl IntoTensor,
) -> Tensor {
    let _scope = scope("lambda_returns");
    let lambda_t = per_step(lambda, discount_t);
    linear_recurrence(
        r_t + discount_t * (1.0 - lambda_t) * v_t,
        discount_t * lambda_t,
        v_t.index(-1),
    )
}

/// The sums of discounted rewards, bootstrapped at the end:
///
/// ```text
/// G_t = r_t + discount_t G_{t+1}        with G_T = v_T
/// ```
///
/// `r_t`, `discount_t` are `f32[T]`. `v_t` is `f32[]`, the value after the end, or `f32[T]` with
/// this value last.
#[track_caller]
pub fn discounted_returns(r_t: Tensor, discount_t: Tensor, v_t: impl IntoTensor) -> Tensor {
    let _scope = scope("discounted_returns");
    let v_t = v_t.into_tensor();
    let last = if v_t.rank() == 0 { v_t } else { v_t.index(-1) };
    linear_recurrence(r_t, discount_t, last)
}

/// Returns of `n` steps, bootstrapped from the value after them, or from the last value if fewer
/// steps are left:
///
/// ```text
/// G_t = r_t + discount_t ((1 - lambda_t) v_t + lambda_t (r_{t+1} + discount_{t+1} (.. v_{t+n-1})))
/// ```
///
/// `r_t`, `discount_t`, `v_t` are `f32[T]`, `n` at least 1; `lambda` is a number (1 for plain n-step returns) or `f32[T]`.
#[track_caller]
pub fn n_step_bootstrapped_returns(
    r_t: Tensor,
    discount_t: Tensor,
    v_t: Tensor,
    n: usize,
    lambda: impl IntoTensor,
) -> Tensor {
    let _scope = scope("n_step_bootstrapped_returns");
    let steps = r_t.len();
    // Beyond the last step all terms are zero.
    let n = n.clamp(1, steps.max(1));
    let lambda_t = per_step(lambda, discount_t);
    let last = v_t.index(-1);
    // A step of the recursion, with the tensors `i` steps later. Beyond the last step the last
    // value is used.
    let step = |targets: Tensor, [r, discount, v, lambda]: [Tensor; 4]| {
        r + discount * ((1.0 - lambda) * v + lambda * targets)
    };
    let all = [(r_t, scalar(0.0)), (discount_t, scalar(1.0)), (v_t, last), (lambda_t, scalar(1.0))];
    let all = all.map(|(x, after)| {
        let after = after.astype(x.dtype()).broadcast_to([n - 1]);
        concatenate(&[x, after], 0)
    });
    let targets = all[2].slice(n - 1..);
    if n > UNROLLED {
        return fori_loop(rev(0..n), targets, |i, targets| {
            step(targets, all.map(|x| dynamic_slice(x, &[i], &[steps])))
        });
    }
    (0..n).rev().fold(targets, |targets, i| step(targets, all.map(|x| x.slice(i..i + steps))))
}

/// Greatest number of steps of an unrolled recursion; more steps run in a loop, which compiles
/// faster.
const UNROLLED: usize = 8;
