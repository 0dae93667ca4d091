//! Losses of Munchausen DQN, of deterministic and of soft actor-critics, and regularizers, against their equations in jax.

use crate::golden::{Record, close, floats, records, run};
use podracer_dsl::prelude::*;
use podracer_rl::distributions::{Categorical, MultivariateNormalDiag};
use podracer_rl::losses::*;

fn number(record: &Record, name: &str) -> f64 {
    record.number(name).unwrap_or_else(|| panic!("the record has no number {name}"))
}

#[test]
fn munchausen_q_learning_is_the_equation_of_the_paper() {
    for record in records("munchausen_q_learning") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, target_q_tm1, q_t] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "target_q_tm1", "q_t"]);
            let [tau, coefficient, low] = ["tau", "munchausen_coefficient", "clip_value_min"]
                .map(|name| number(&record, name));
            let error = munchausen_q_learning(
                q_tm1,
                a_tm1,
                r_t,
                discount_t,
                target_q_tm1,
                q_t,
                tau,
                coefficient,
                low,
            );
            vec![("error", error)]
        });
    }
}

#[test]
fn losses_of_deterministic_policies_are_those_of_rlax_and_of_td3() {
    for record in records("dpg_loss") {
        let clipping = record.number("dqda_clipping");
        record.check(|x| vec![("value", dpg_loss(x.get("a_t"), x.get("dqda_t"), clipping))]);
    }
    for record in records("clipped_double_q_learning") {
        record.check(|x| {
            let [q_tm1, r_t, discount_t, q_t] = x.all(["q_tm1", "r_t", "discount_t", "q_t"]);
            vec![("errors", clipped_double_q_learning(q_tm1, r_t, discount_t, q_t))]
        });
    }
    for record in records("target_policy_smoothing") {
        let [sigma, noise_clip, low, high] =
            ["sigma", "noise_clip", "low", "high"].map(|name| number(&record, name));
        record.check(|x| {
            let key = Key::from_words(x.get("key"));
            let action = target_policy_smoothing(key, x.get("a_t"), sigma, noise_clip, low, high);
            vec![("value", action)]
        });
    }
    for record in records("qpg_loss") {
        record.check(|x| vec![("value", qpg_loss(x.get("logits_t"), x.get("q_t")))]);
    }
    for record in records("awr_weights") {
        let (beta, max_weight) = (number(&record, "beta"), number(&record, "max_weight"));
        record.check(|x| vec![("value", awr_weights(x.get("adv_t"), beta, max_weight))]);
    }
}

/// The loss of a deterministic policy has the gradient of minus the critic's value, through the policy.
#[test]
fn the_deterministic_policy_gradient_is_that_of_the_critic() {
    let results = run(f32([3]), &[floats(&[3], &[0.3, -0.8, 1.5])], |weights| {
        let policy = |w: Tensor| (w * constant([1.0, 2.0, -0.5])).tanh();
        let critic = |a: Tensor| (a * constant([0.5, -1.0, 2.0])).sin().sum() + a.square().sum();
        let action = policy(weights);
        let slope = grad(action, critic);
        let by_loss = grad(weights, |w| dpg_loss(policy(w), slope, None).sum());
        (by_loss, grad(weights, |w| -critic(policy(w))))
    });
    close("gradient", &results[0], &results[1], 1e-6);
}

#[test]
fn losses_of_soft_actor_critics_are_their_equations() {
    for record in records("soft_q_learning") {
        record.check(|x| {
            let [q_tm1, r_t, discount_t, q_t, log_prob_t, temperature] =
                x.all(["q_tm1", "r_t", "discount_t", "q_t", "log_prob_t", "temperature"]);
            let errors = soft_q_learning(q_tm1, r_t, discount_t, q_t, log_prob_t, temperature);
            vec![("errors", errors)]
        });
    }
    for record in records("soft_actor_loss") {
        record.check(|x| {
            let [log_prob, q, temperature] = x.all(["log_prob", "q", "temperature"]);
            vec![("loss", soft_actor_loss(log_prob, q, temperature))]
        });
    }
    for record in records("temperature_loss") {
        let target = number(&record, "target_entropy");
        record.check(|x| {
            let [log_temperature, log_prob] = x.all(["log_temperature", "log_prob"]);
            vec![("loss", temperature_loss(log_temperature, log_prob, target))]
        });
    }
    for record in records("discrete_soft_q_learning") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t, logits_t, temperature] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t", "logits_t", "temperature"]);
            let errors =
                discrete_soft_q_learning(q_tm1, a_tm1, r_t, discount_t, q_t, logits_t, temperature);
            vec![("errors", errors)]
        });
    }
    for record in records("discrete_soft_actor_loss") {
        record.check(|x| {
            let [logits, q, temperature] = x.all(["logits", "q", "temperature"]);
            vec![("loss", discrete_soft_actor_loss(logits, q, temperature))]
        });
    }
    for record in records("discrete_temperature_loss") {
        let target = number(&record, "target_entropy");
        record.check(|x| {
            let [log_temperature, logits] = x.all(["log_temperature", "logits"]);
            vec![("loss", discrete_temperature_loss(log_temperature, logits, target))]
        });
    }
}

#[test]
fn an_action_that_is_not_legal_adds_nothing() {
    let inputs = [floats(&[3], &[0.5, f64::NEG_INFINITY, -1.0]), floats(&[2, 3], &[1.0; 6])];
    let results = run((f32([3]), f32([2, 3])), &inputs, |(logits, q)| {
        let actor = |logits| discrete_soft_actor_loss(logits, q, 0.5);
        let critic =
            discrete_soft_q_learning(q, scalar(0), scalar(1.0), scalar(0.9), q, logits, 0.5);
        (actor(logits), grad(logits, actor), critic)
    });
    for result in &results {
        assert!(result.to_f64().iter().all(|x| x.is_finite()), "{:?}", result.to_f64());
    }
    assert_eq!(results[1].to_f64()[1], 0.0);
}

#[test]
fn regularizers_are_those_of_distrax() {
    for record in records("kl_regularizer") {
        record.check(|x| {
            let [logits, prior, w_t] = x.all(["logits", "prior", "w_t"]);
            let (policy, prior) = (Categorical::new(logits), Categorical::new(prior));
            vec![("value", kl_regularizer(&policy, &prior, w_t))]
        });
    }
    for record in records("entropy_regularizer") {
        record.check(|x| {
            let policy = MultivariateNormalDiag::new(x.get("loc"), x.get("scale"));
            vec![("value", entropy_regularizer(&policy, x.get("w_t")))]
        });
    }
}

#[test]
fn constants_out_of_range_and_batches_without_vmap_are_errors() {
    let mistakes = trace((f32([4]), f32([2])), |(q, twin)| {
        let [a, r] = [scalar(1), scalar(0.5)];
        (
            munchausen_q_learning(q, a, r, r, q, q, 0.0, 0.9, -1.0),
            awr_weights(q, -1.0, 20.0),
            clipped_double_q_learning(q, r, r, twin),
            temperature_loss(r, q, -1.0),
            dpg_loss(q, twin, None),
        )
    });
    let mistakes = mistakes.unwrap_err().to_string();
    for expected in [
        "munchausen_q_learning: expected tau above 0, got 0",
        "awr_weights: expected beta above 0, got -1",
        "clipped_double_q_learning: expected tensors of one shape `[n]`, got q_tm1 f32[4], q_t f32[2]",
        "temperature_loss: expected tensors that are scalars, got log_temperature f32[], log_prob f32[4]",
        "dpg_loss: expected tensors of one shape `[n]`, got a_t f32[4], dqda_t f32[2]",
    ] {
        assert!(mistakes.contains(expected), "{expected}\n{mistakes}");
    }
    assert_eq!(mistakes.matches("--> stdlib/tests/it/off_policy.rs").count(), 5, "{mistakes}");
}
