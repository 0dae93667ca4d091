//! Distributions against distrax.

use crate::golden::{Named, close, floats, records, run, words};
use podracer_dsl::prelude::*;
use podracer_rl::distributions::*;

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

/// Independent values are as probable as each alone, multiplied: logits of 3, 1 and 2 values, the middle one a certainty.
#[test]
fn multi_categorical_is_the_sum_of_its_values() {
    const COUNTS: [usize; 3] = [3, 1, 2];
    let numbers = [0.5, -1.0, 2.0, 0.3, 1.5, -0.5, 0.0, 0.0, 0.0, -3.0, 0.7, 0.1];
    let others: Vec<f64> = numbers.iter().map(|x| 0.5 - x).collect();
    let arguments = [floats(&[2, 6], &numbers), floats(&[2, 6], &others)];
    let chosen = [[2, 0, 1], [0, 0, 0]];
    let traced = trace((f32([2, 6]), f32([2, 6])), |(logits, other)| {
        let all = |logits| MultiCategorical::new(logits, &COUNTS);
        let value = constant(chosen);
        let each = |i: usize, logits: Tensor| Categorical::new(logits.split_sizes(&COUNTS, -1)[i]);
        let sum = |f: &dyn Fn(usize) -> Tensor| f(0) + f(1) + f(2);
        let both = all(logits);
        let slope = |f: &dyn Fn(Tensor) -> Tensor| grad(logits, |logits| f(logits).sum());
        (
            (both.log_prob(value), sum(&|i| each(i, logits).log_prob(value.index_axis(-1, i)))),
            (both.entropy(), sum(&|i| each(i, logits).entropy())),
            (
                both.kl_divergence(&all(other)),
                sum(&|i| each(i, logits).kl_divergence(&each(i, other))),
            ),
            (slope(&|x| all(x).entropy()), slope(&|x| sum(&|i| each(i, x).entropy()))),
            (
                slope(&|x| all(x).log_prob(value)),
                slope(&|x| sum(&|i| each(i, x).log_prob(value.index_axis(-1, i)))),
            ),
            both.mode(),
        )
    });
    let got = traced.expect("it traces").eval(&arguments).expect("they fit");
    for pair in got[..10].chunks(2) {
        close("all and each", &pair[0], &pair[1], 1e-5);
        assert_eq!(pair[0].not_finite(), 0);
    }
    assert_eq!(got[10].to_vec::<i32>().expect("i32"), [2, 0, 0, 0, 0, 0]);
    // By hand: log softmax([0.5, -1, 2])[2] + log softmax([1.5, -0.5])[1].
    let by_hand =
        |logits: &[f64], i: usize| logits[i] - logits.iter().map(|x| x.exp()).sum::<f64>().ln();
    let expected = by_hand(&[0.5, -1.0, 2.0], 2) + by_hand(&[1.5, -0.5], 1);
    assert!((got[0].to_f64()[0] - expected).abs() < 1e-5);
}

#[test]
fn draws_of_multi_categorical_are_independent_and_as_probable() {
    let logits = [0.0, 1.0, -1.0, 0.5, -0.5];
    let counts = [2, 3];
    const DRAWS: usize = 3000;
    let traced = trace(u32([DRAWS, 2]), |words| {
        vmap(words, |words| {
            let policy = MultiCategorical::new(constant(logits), &counts);
            policy.sample(Key::from_words(words))
        })
    });
    let words: Vec<u32> = (0..2 * DRAWS as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    let words = Array::from_slice([DRAWS, 2], &words).expect("two each");
    let drawn = traced.expect("it traces").eval(&[words]).expect("they fit").remove(0);
    let mut found = [0.0; 6];
    for pair in drawn.to_vec::<i32>().expect("i32").chunks(2) {
        found[(3 * pair[0] + pair[1]) as usize] += 1.0;
    }
    let softmax = |logits: &[f64]| -> Vec<f64> {
        let sum: f64 = logits.iter().map(|x| x.exp()).sum();
        logits.iter().map(|x| x.exp() / sum).collect()
    };
    let (first, second) = (softmax(&logits[..2]), softmax(&logits[2..]));
    let chi_squared: f64 = (0..6)
        .map(|i| {
            let expected = first[i / 3] * second[i % 3] * DRAWS as f64;
            (found[i] - expected) * (found[i] - expected) / expected
        })
        .sum();
    // The 0.9999 quantile of five degrees of freedom.
    assert!(chi_squared < 25.7, "{chi_squared}: {found:?}");
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

#[test]
fn bernoulli_is_that_of_distrax() {
    both("bernoulli", |x| Bernoulli::new(x.get("logits")));
    for record in records("bernoulli.kl_divergence") {
        record.check(|x| {
            let (one, other) = (Bernoulli::new(x.get("logits")), Bernoulli::new(x.get("other")));
            vec![("value", one.kl_divergence(&other))]
        });
    }
    // A bool is also accepted; a certain value has entropy 0, not NaN.
    let results = run(f32([3]), &[floats(&[3], &[f64::INFINITY, f64::NEG_INFINITY, 0.5])], |x| {
        let log_prob = |value: Tensor| Bernoulli::new(x).log_prob(value);
        let answers = constant([true, false, true]);
        let entropy = |x| Bernoulli::new(x).entropy();
        (
            log_prob(answers) - log_prob(answers.astype(I32)),
            entropy(x),
            grad(x, |x| entropy(x).sum()),
        )
    });
    assert_eq!(results[0].to_f64()[2], 0.0);
    assert_eq!(results[1].to_f64()[..2], [0.0; 2]);
    assert_eq!(results[2].to_f64()[..2], [0.0; 2]);
}

#[test]
fn policies_that_explore_are_those_of_distrax() {
    for (name, parameter) in [("epsilon_greedy", "epsilon"), ("softmax_policy", "temperature")] {
        let check = |op: String, f: fn(&Categorical, &Named) -> Tensor| {
            for record in records(&op) {
                let number = record.number(parameter).expect("a number");
                record.check(|x| {
                    let preferences = x.get("preferences");
                    let policy = match name {
                        "epsilon_greedy" => Categorical::epsilon_greedy(preferences, number),
                        _ => Categorical::softmax(preferences, number),
                    };
                    vec![("value", f(&policy, x))]
                });
            }
        };
        check(format!("{name}.probs"), |policy, _| policy.probs());
        check(format!("{name}.log_prob"), |policy, x| policy.log_prob(x.get("value")));
        check(format!("{name}.entropy"), |policy, _| policy.entropy());
        check(format!("{name}.mode"), |policy, _| policy.mode());
        check(format!("{name}.sample"), |policy, x| policy.sample(Key::from_words(x.get("key"))));
    }
}

#[test]
fn exploration_keeps_to_legal_actions() {
    let preferences = floats(&[4], &[0.5, f64::NEG_INFINITY, 2.0, -1.0]);
    let results = run((f32([4]), f32([])), &[preferences, floats(&[], &[0.3])], |(x, epsilon)| {
        // A rate that the program computes, such as a lane's own.
        let policy = Categorical::epsilon_greedy(x, epsilon);
        (policy.probs(), policy.entropy(), Categorical::softmax(x, 0.5).probs())
    });
    close("epsilon-greedy", &results[0], &floats(&[4], &[0.1, 0.0, 0.8, 0.1]), 1e-6);
    assert!(results[1].to_f64()[0].is_finite());
    assert_eq!(results[2].to_f64()[1], 0.0);
}

#[test]
fn mixtures_are_those_of_distrax() {
    fn check<D: Distribution + Tree>(names: [&str; 2], of: impl Fn(&Named) -> D) {
        let mixture = |x: &Named| MixtureSameFamily::new(Categorical::new(x.get("weights")), of(x));
        for record in records(names[0]) {
            record.check(|x| vec![("value", mixture(x).log_prob(x.get("value")))]);
        }
        for record in records(names[1]) {
            record.check(|x| vec![("value", mixture(x).sample(Key::from_words(x.get("key"))))]);
        }
    }
    check(["mixture.normal.log_prob", "mixture.normal.sample"], |x| {
        Normal::new(x.get("loc"), x.get("scale"))
    });
    check(
        ["mixture.multivariate_normal_diag.log_prob", "mixture.multivariate_normal_diag.sample"],
        |x| MultivariateNormalDiag::new(x.get("loc"), x.get("scale")),
    );
    check(["mixture.categorical.log_prob", "mixture.categorical.sample"], |x| {
        Categorical::new(x.get("logits"))
    });
}

#[test]
fn the_mode_of_a_mixture_is_its_likeliest_peak() {
    let results = run((), &[], |()| {
        let loc = constant([[0.0, 5.0, 5.2], [3.0, -3.0, 0.0]]);
        let scale = constant([[1.0, 1.0, 1.0], [2.0, 0.1, 2.0]]);
        // The first component is the likeliest, but two others nearly coincide; the narrow one has the highest peak.
        let weights = constant([[0.4, 0.3, 0.3], [0.4, 0.2, 0.4]]).log();
        let mixture = MixtureSameFamily::new(Categorical::new(weights), Normal::new(loc, scale));
        let each = vmap((weights, loc, scale), |(weights, loc, scale)| {
            MixtureSameFamily::new(Categorical::new(weights), Normal::new(loc, scale)).mode()
        });
        (mixture.mode(), each)
    });
    assert!([5.0, 5.2].contains(&((results[0].to_f64()[0] * 10.0).round() / 10.0)));
    assert_eq!(results[0].to_f64()[1], -3.0);
    assert_eq!(results[0], results[1]);
}

#[test]
fn rates_out_of_range_are_errors() {
    let mistakes = trace(f32([3]), |x| {
        let policies = (Categorical::epsilon_greedy(x, 1.5), Categorical::softmax(x, 0.0));
        let mixture = MixtureSameFamily::new(
            Categorical::new(x.expand_dims(0)),
            Normal::new(x.expand_dims(0), x.exp().expand_dims(0)),
        );
        (policies, mixture.log_prob(scalar(1.0)))
    });
    let mistakes = mistakes.unwrap_err().to_string();
    assert!(mistakes.contains("expected epsilon in [0, 1], got 1.5"), "{mistakes}");
    assert!(mistakes.contains("expected temperature above 0, got 0"), "{mistakes}");
    assert!(mistakes.contains("(logits f32[1,3]), got f32[]"), "{mistakes}");
    assert_eq!(mistakes.matches("--> stdlib/tests/it/distributions.rs").count(), 3, "{mistakes}");
}

#[test]
fn the_slope_of_tanh_is_that_of_distrax() {
    for record in records("tanh.forward_log_det_jacobian") {
        record.check(|x| vec![("value", tanh_log_det_jacobian(x.get("x")))]);
    }
}
