//! Distributional values with fixed atoms: Bellemare, Dabney and Munos, "A Distributional
//! Perspective on Reinforcement Learning", 2017 (C51). A loss takes one transition; no gradient
//! flows into the target.

use super::softmax_cross_entropy;
use crate::expect;
use podracer_dsl::fail;
use podracer_dsl::prelude::*;

/// The projection of a distribution onto other atoms, which preserves the mean within their range,
/// Bellemare et al., 2017, eq. 7. Each probability is divided between the two neighbours among the
/// atoms `z_q`, in proportion to their closeness.
///
/// The distribution has the probabilities `probs` at `z_p`, both `f32[P]`; `z_q` is `f32[Q]` and
/// ascends. The result is `f32[Q]`. Probability outside the range of `z_q` goes to the nearest end.
#[track_caller]
pub fn categorical_l2_project(z_p: Tensor, probs: Tensor, z_q: Tensor) -> Tensor {
    let op = "categorical_l2_project";
    let _scope = scope(op);
    if let Some(wrong) = expect::one_shape(op, 1, &[("z_p", z_p), ("probs", probs)]) {
        return wrong;
    }
    if z_q.rank() != 1 || z_q.elements() == 0 {
        let message = format!("expected atoms z_q `[n]`, got {}", z_q.ty());
        return fail(op, message, &[z_q], probs.ty());
    }
    let z_p = z_p.clamp(z_q.index(0), z_q.index(-1)).expand_dims(0);
    // The inverse of the distance to the next atom; 0 at the ends, which have no next atom.
    let inverse = |distance: Tensor| {
        let positive = distance.gt(0);
        select(positive, 1.0 / select(positive, distance, 1.0), 0.0)
    };
    let above = inverse(z_q.roll(-1, 0) - z_q).expand_dims(1);
    let below = inverse(z_q - z_q.roll(1, 0)).expand_dims(1);
    let delta = z_p - z_q.expand_dims(1);
    let distance = select(delta.ge(0), delta * above, -delta * below);
    ((1.0 - distance).clamp(0.0, 1.0) * probs).sum_axis(-1)
}

/// The target's probabilities on the atoms `z`: the probabilities of `logits` at `r_t + discount_t
/// atoms`, projected, without a gradient.
#[track_caller]
fn target(
    op: &str,
    [r_t, discount_t]: [Tensor; 2],
    atoms: Tensor,
    logits: Tensor,
    z: Tensor,
) -> Tensor {
    let scalars = [("r_t", r_t), ("discount_t", discount_t)];
    if let Some(wrong) = expect::one_shape(op, 0, &scalars) {
        return logits + wrong.sum();
    }
    let projected = categorical_l2_project(r_t + discount_t * atoms, logits.softmax(-1), z);
    stop_gradient(projected)
}

/// Selects the logits of an action, `f32[n]`, from every action's logits, `f32[A, n]`; the action
/// is `i32[]`.
#[track_caller]
fn of_action(op: &str, name: &str, logits: Tensor, action: Tensor) -> Tensor {
    if logits.rank() != 2 {
        let message =
            format!("expected {name} `[A, n]`, got {}: a batch goes through `vmap`", logits.ty());
        return fail(op, message, &[logits], TensorType::new(F32, [1]));
    }
    let chosen = iota(I32, [logits.dim(0), 1], 0).eq(action);
    select(chosen, logits, 0.0).sum_axis(0)
}

/// Distributional TD(0): the cross entropy between the projected target and `v_logits_tm1`,
/// `f32[]`. Atoms and logits are `f32[n]`, `r_t` and `discount_t` `f32[]`.
#[track_caller]
pub fn categorical_td_learning(
    v_atoms_tm1: Tensor,
    v_logits_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    v_atoms_t: Tensor,
    v_logits_t: Tensor,
) -> Tensor {
    let op = "categorical_td_learning";
    let _scope = scope(op);
    let target = target(op, [r_t, discount_t], v_atoms_t, v_logits_t, v_atoms_tm1);
    softmax_cross_entropy(v_logits_tm1, target)
}

/// Distributional Q-learning (C51), Bellemare et al., 2017, algorithm 1: the cross entropy,
/// `f32[]`, between the projected target for the action with the greatest mean and the logits of
/// `a_tm1`.
///
/// Atoms are `f32[n]`, `q_logits_tm1` and `q_logits_t` `f32[A, n]`, `a_tm1` `i32[]`, `r_t` and `discount_t` `f32[]`.
#[track_caller]
pub fn categorical_q_learning(
    q_atoms_tm1: Tensor,
    q_logits_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_atoms_t: Tensor,
    q_logits_t: Tensor,
) -> Tensor {
    let _scope = scope("categorical_q_learning");
    let means = (q_logits_t.softmax(-1) * q_atoms_t).sum_axis(-1);
    categorical_double_q_learning(
        q_atoms_tm1,
        q_logits_tm1,
        a_tm1,
        r_t,
        discount_t,
        q_atoms_t,
        q_logits_t,
        means,
    )
}

/// [`categorical_q_learning`] with the action selected by other action values, `q_t_selector`
/// `f32[A]`. They come from the online network; `q_logits_t` comes from the target network (Hessel
/// et al., "Rainbow", 2018).
#[track_caller]
#[allow(clippy::too_many_arguments, reason = "the arguments and order of rlax")]
pub fn categorical_double_q_learning(
    q_atoms_tm1: Tensor,
    q_logits_tm1: Tensor,
    a_tm1: Tensor,
    r_t: Tensor,
    discount_t: Tensor,
    q_atoms_t: Tensor,
    q_logits_t: Tensor,
    q_t_selector: Tensor,
) -> Tensor {
    let op = "categorical_q_learning";
    let _scope = scope(op);
    let best = of_action(op, "q_logits_t", q_logits_t, q_t_selector.argmax(-1));
    let target = target(op, [r_t, discount_t], q_atoms_t, best, q_atoms_tm1);
    softmax_cross_entropy(of_action(op, "q_logits_tm1", q_logits_tm1, a_tm1), target)
}
