//! Losses against rlax, and PPO's as PureJaxRL puts them together.

use crate::golden::{Of, records};
use podracer_dsl::prelude::*;
use podracer_rl::distributions::{Categorical, Distribution};
use podracer_rl::losses::*;

#[test]
fn policy_losses_are_those_of_rlax() {
    for record in records("policy_gradient_loss") {
        record.check(|x| {
            vec![(
                "value",
                policy_gradient_loss(x.get("logits_t"), x.get("a_t"), x.get("adv_t"), x.get("w_t")),
            )]
        });
    }
    for record in records("entropy_loss") {
        record.check(|x| vec![("value", entropy_loss(x.get("logits_t"), x.get("w_t")))]);
    }
    for record in records("clipped_surrogate_pg_loss") {
        let epsilon = record.number("epsilon").expect("epsilon");
        record.check(|x| {
            vec![(
                "value",
                clipped_surrogate_pg_loss(x.get("prob_ratios_t"), x.get("adv_t"), epsilon),
            )]
        });
    }
    for record in records("clipped_surrogate_from_logits") {
        let epsilon = record.number("epsilon").expect("epsilon");
        record.check(|x| {
            let log_prob = |logits: &str| Categorical::new(x.get(logits)).log_prob(x.get("a_t"));
            let ratio = (log_prob("logits_t") - log_prob("old_logits_t")).exp();
            vec![("loss", clipped_surrogate_pg_loss(ratio, x.get("adv_t"), epsilon))]
        });
    }
}

#[test]
fn the_parts_of_ppo_make_its_loss() {
    for record in records("clipped_value_loss") {
        let epsilon = record.number("epsilon").expect("epsilon");
        record.check(|x| {
            vec![(
                "loss",
                clipped_value_loss(x.get("values"), x.get("old_values"), x.get("targets"), epsilon),
            )]
        });
    }
    for record in records("ppo_loss") {
        let number = |name: &str| record.number(name).expect("a coefficient");
        let parts = |x: &crate::golden::Named| {
            let policy = Categorical::new(x.get("logits"));
            let ratio = (policy.log_prob(x.get("actions")) - x.get("old_log_prob")).exp();
            let actor = clipped_surrogate_pg_loss(
                ratio,
                normalize_advantages(x.get("advantages")),
                number("epsilon"),
            );
            let value = clipped_value_loss(
                x.get("values"),
                x.get("old_values"),
                x.get("targets"),
                number("epsilon"),
            );
            let entropy = policy.entropy().mean();
            (
                actor + number("value_coefficient") * value
                    - number("entropy_coefficient") * entropy,
                actor,
                value,
                entropy,
            )
        };
        // Only the gradients of the loss are recorded.
        record.check_of(Of::Sum, 1e-6, |x| vec![("loss", parts(x).0)]);
        let detached = |x: &crate::golden::Named| {
            let (loss, actor, value, entropy) = parts(x);
            vec![
                ("loss", loss),
                ("actor", stop_gradient(actor)),
                ("value", stop_gradient(value)),
                ("entropy", stop_gradient(entropy)),
            ]
        };
        record.check_of(Of::Sum, 1e-6, detached);
    }
}

#[test]
fn errors_of_values_are_those_of_rlax() {
    for record in records("td_learning") {
        record.check(|x| {
            vec![(
                "error",
                td_learning(x.get("v_tm1"), x.get("r_t"), x.get("discount_t"), x.get("v_t")),
            )]
        });
    }
    for record in records("q_learning") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t"]);
            vec![("error", q_learning(q_tm1, a_tm1, r_t, discount_t, q_t))]
        });
    }
    for record in records("double_q_learning") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, value, selector] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t_value", "q_t_selector"]);
            vec![("error", double_q_learning(q_tm1, a_tm1, r_t, discount_t, value, selector))]
        });
    }
    for record in records("sarsa") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t, a_t] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t", "a_t"]);
            vec![("error", sarsa(q_tm1, a_tm1, r_t, discount_t, q_t, a_t))]
        });
    }
    for record in records("expected_sarsa") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t, probs] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t", "probs_a_t"]);
            vec![("error", expected_sarsa(q_tm1, a_tm1, r_t, discount_t, q_t, probs))]
        });
    }
}

#[test]
fn elementwise_losses_are_those_of_rlax() {
    for record in records("l2_loss") {
        record.check(|x| vec![("value", l2_loss(x.get("x")))]);
    }
    for record in records("huber_loss") {
        let delta = record.number("delta").expect("delta");
        record.check(|x| vec![("value", huber_loss(x.get("x"), delta))]);
    }
}

#[test]
fn cross_entropies_are_those_of_optax() {
    type Loss = fn(Tensor, Tensor) -> Tensor;
    let losses: [(&str, Loss); 3] = [
        ("softmax_cross_entropy", softmax_cross_entropy),
        ("softmax_cross_entropy_with_integer_labels", softmax_cross_entropy_with_integer_labels),
        ("sigmoid_binary_cross_entropy", sigmoid_binary_cross_entropy),
    ];
    for (op, loss) in losses {
        for record in records(op) {
            record.check(|x| vec![("value", loss(x.get("logits"), x.get("labels")))]);
        }
    }
}
