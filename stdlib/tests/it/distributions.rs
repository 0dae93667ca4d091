//! Distributions against distrax.

use crate::golden::{Named, close, floats, records, run, words};
use podracer_dsl::prelude::*;
use podracer_stdlib::distributions::*;

fn both<D: Distribution>(name: &str, of: impl Fn(&Named) -> D) {
    for record in records(&format!("{name}.entropy")) {
        record.check(|x| vec![("value", of(x).entropy())]);
    }
    for record in records(&format!("{name}.mode")) {
        record.check(|x| vec![("value", of(x).mode())]);
    }
    for record in records(&format!("{name}.log_prob")) {
        record.check(|x| vec![("value", of(x).log_prob(x.get("value")))]);
    }
    for record in records(&format!("{name}.sample")) {
        record.check(|x| vec![("value", of(x).sample(Key::from_words(x.get("key"))))]);
    }
}

#[test]
fn categorical_is_that_of_distrax() {
    both("categorical", |x| Categorical::new(x.get("logits")));
    for record in records("categorical.probs") {
        record.check(|x| vec![("value", Categorical::new(x.get("logits")).probs())]);
    }
    for record in records("categorical.kl_divergence") {
        record.check(|x| {
            vec![(
                "value",
                Categorical::new(x.get("logits")).kl_divergence(&Categorical::new(x.get("other"))),
            )]
        });
    }
}

#[test]
fn normal_is_that_of_distrax() {
    both("normal", |x| Normal::new(x.get("loc"), x.get("scale")));
    for record in records("normal.kl_divergence") {
        let of = |x: &Named, loc: &str, scale: &str| Normal::new(x.get(loc), x.get(scale));
        record.check(|x| {
            vec![("value", of(x, "loc", "scale").kl_divergence(&of(x, "other_loc", "other_scale")))]
        });
    }
    for record in records("normal.cdf") {
        record.check(|x| {
            vec![("value", Normal::new(x.get("loc"), x.get("scale")).cdf(x.get("value")))]
        });
    }
}

#[test]
fn multivariate_normal_is_that_of_distrax() {
    both("multivariate_normal_diag", |x| MultivariateNormalDiag::new(x.get("loc"), x.get("scale")));
    for record in records("multivariate_normal_diag.kl_divergence") {
        let of = |x: &Named, loc: &str, scale: &str| {
            MultivariateNormalDiag::new(x.get(loc), x.get(scale))
        };
        record.check(|x| {
            vec![("value", of(x, "loc", "scale").kl_divergence(&of(x, "other_loc", "other_scale")))]
        });
    }
}

#[test]
fn tanh_normal_is_that_of_distrax() {
    for record in records("tanh_normal.log_prob") {
        record.check(|x| {
            vec![("value", TanhNormal::new(x.get("loc"), x.get("scale")).log_prob(x.get("value")))]
        });
    }
}

#[test]
fn a_squashed_draw_comes_with_its_density() {
    let results = run(key(), &[words(4)], |key| {
        let policy = TanhNormal::new(constant([0.0, 0.5, -1.0]), constant([0.5, 1.0, 0.25]));
        let (value, log_prob) = policy.sample_and_log_prob(key);
        (value, log_prob, policy.log_prob(value), policy.mode())
    });
    assert!(results[0].to_f64().iter().all(|x| x.abs() < 1.0));
    close("log_prob", &results[1], &results[2], 1e-6);
    close("mode", &results[3], &floats(&[3], &[0.0, 0.5f64.tanh(), (-1f64).tanh()]), 1e-6);
}

#[test]
fn an_impossible_action_has_no_gradient_and_no_nan() {
    let logits = floats(&[3], &[0.5, f64::NEG_INFINITY, -1.0]);
    let gradients = run(f32([3]), &[logits], |logits| {
        let entropy = grad(logits, |logits| Categorical::new(logits).entropy());
        let log_prob = grad(logits, |logits| Categorical::new(logits).log_prob(scalar(2)));
        (entropy, log_prob)
    });
    for gradient in gradients {
        let gradient = gradient.to_f64();
        assert!(gradient.iter().all(|x| x.is_finite()) && gradient[1] == 0.0, "{gradient:?}");
    }
}

#[test]
fn a_batch_of_policies_needs_no_gather() {
    let traced = trace((f32([6, 4]), i32([6])), |(logits, actions)| {
        grad(logits, |logits| {
            vmap((logits, actions), |(logits, action)| Categorical::new(logits).log_prob(action))
                .sum()
        })
    });
    let text = traced.unwrap_or_else(|errors| panic!("{errors}")).to_string();
    assert!(!text.contains("gather") && !text.contains("scatter"), "{text}");
}

#[test]
fn a_learned_deviation_broadcasts() {
    let results = run(
        (f32([2]), f32([])),
        &[floats(&[2], &[1.0, 2.0]), floats(&[], &[0.0])],
        |(loc, log_std)| MultivariateNormalDiag::from_log_std(loc, log_std).log_prob(loc),
    );
    close("log_prob", &results[0], &floats(&[], &[-(2.0 * std::f64::consts::PI).ln()]), 1e-6);
}
