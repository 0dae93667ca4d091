//! Returns and losses of action values, along trajectories and distributional, against rlax.

use crate::golden::{Named, Record, close, floats, records, run};
use podracer_dsl::prelude::*;
use podracer_rl::losses::*;
use podracer_rl::returns::*;

fn lambda(record: &Record) -> f64 {
    record.number("lambda").expect("lambda")
}

fn tx_pair(record: &Record) -> TxPair {
    match record.word("tx_pair").as_deref() {
        Some("signed_hyperbolic") => TxPair::SignedHyperbolic,
        Some("signed_logp1") => TxPair::SignedLogp1,
        other => panic!("transformation {other:?}"),
    }
}

#[test]
fn off_policy_returns_are_those_of_rlax() {
    for record in records("general_off_policy_returns_from_q_and_v") {
        record.check(|x| {
            let [q_t, v_t, r_t, discount_t, c_t] =
                x.all(["q_t", "v_t", "r_t", "discount_t", "c_t"]);
            let value = general_off_policy_returns_from_q_and_v(q_t, v_t, r_t, discount_t, c_t);
            vec![("value", value)]
        });
    }
    for record in records("general_off_policy_returns_from_action_values") {
        record.check(|x| {
            let [q_t, a_t, r_t, discount_t, c_t, pi_t] =
                x.all(["q_t", "a_t", "r_t", "discount_t", "c_t", "pi_t"]);
            let value =
                general_off_policy_returns_from_action_values(q_t, a_t, r_t, discount_t, c_t, pi_t);
            vec![("value", value)]
        });
    }
}

#[test]
fn errors_along_trajectories_are_those_of_rlax() {
    for record in records("td_lambda") {
        record.check(|x| {
            let [v_tm1, r_t, discount_t, v_t] = x.all(["v_tm1", "r_t", "discount_t", "v_t"]);
            vec![("errors", td_lambda(v_tm1, r_t, discount_t, v_t, lambda(&record)))]
        });
    }
    for record in records("sarsa_lambda") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t, a_t] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t", "a_t"]);
            let errors = sarsa_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, a_t, lambda(&record));
            vec![("errors", errors)]
        });
    }
    for record in records("watkins_q_lambda") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t, a_t] =
                x.all(["q_tm1", "a_tm1", "r_t", "discount_t", "q_t", "a_t"]);
            let errors = watkins_q_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, a_t, lambda(&record));
            vec![("errors", errors)]
        });
    }
    for record in records("retrace_continuous") {
        record.check(|x| {
            let [q_tm1, q_t, v_t, r_t, discount_t, log_rhos] =
                x.all(["q_tm1", "q_t", "v_t", "r_t", "discount_t", "log_rhos"]);
            let errors =
                retrace_continuous(q_tm1, q_t, v_t, r_t, discount_t, log_rhos, lambda(&record));
            vec![("errors", errors)]
        });
    }
}

/// The arguments of Q(lambda) in a record.
const OF_Q_LAMBDA: [&str; 5] = ["q_tm1", "a_tm1", "r_t", "discount_t", "q_t"];

#[test]
fn q_lambda_is_that_of_rlax() {
    for record in records("q_lambda") {
        record.check(|x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t] = x.all(OF_Q_LAMBDA);
            vec![("errors", q_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, lambda(&record)))]
        });
    }
    for record in records("transformed_q_lambda") {
        // rlax's inverse of the hyperbolic transformation cancels digits.
        record.check_of(crate::golden::Of::Sum, 2e-4, |x| {
            let [q_tm1, a_tm1, r_t, discount_t, q_t] = x.all(OF_Q_LAMBDA);
            let (lambda, tx) = (lambda(&record), tx_pair(&record));
            let errors = transformed_q_lambda(q_tm1, a_tm1, r_t, discount_t, q_t, lambda, tx);
            vec![("errors", errors)]
        });
    }
}

#[test]
fn retrace_is_that_of_rlax() {
    let arguments =
        |x: &Named| x.all(["q_tm1", "q_t", "a_tm1", "a_t", "r_t", "discount_t", "pi_t", "mu_t"]);
    for record in records("retrace") {
        record.check(|x| {
            let [q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t] = arguments(x);
            let of = |lambda: Tensor| {
                retrace(q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t, lambda)
            };
            let lambda = record.number("lambda").map(scalar);
            vec![("errors", of(lambda.unwrap_or_else(|| x.get("lambda_t"))))]
        });
    }
    for record in records("transformed_retrace") {
        record.check_of(crate::golden::Of::Sum, 2e-4, |x| {
            let [q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t] = arguments(x);
            let (lambda, tx) = (lambda(&record), tx_pair(&record));
            let errors = transformed_retrace(
                q_tm1, q_t, a_tm1, a_t, r_t, discount_t, pi_t, mu_t, lambda, tx,
            );
            vec![("errors", errors)]
        });
    }
}

#[test]
fn n_step_q_learning_of_transformed_values_is_that_of_rlax() {
    for record in records("transformed_n_step_q_learning") {
        let n = record.count("n").expect("n");
        record.check_of(crate::golden::Of::Sum, 2e-4, |x| {
            let [q_tm1, a_tm1, q_t, a_t, r_t, discount_t] =
                x.all(["q_tm1", "a_tm1", "q_t", "a_t", "r_t", "discount_t"]);
            let tx = tx_pair(&record);
            let errors =
                transformed_n_step_q_learning(q_tm1, a_tm1, q_t, a_t, r_t, discount_t, n, tx);
            vec![("errors", errors)]
        });
    }
}

/// A lambda of 0 truncates a step: the next episode does not flow into the episode before it.
#[test]
fn a_trace_that_is_cut_lets_nothing_through() {
    let errors = |rewards: &[f64]| {
        let lambda = floats(&[4], &[1.0, 0.0, 1.0, 1.0]);
        run((f32([4]), f32([4])), &[floats(&[4], rewards), lambda], |(r_t, lambda)| {
            let q = constant([[0.5, 1.0], [0.25, -1.0], [2.0, 0.0], [1.0, 1.5]]);
            let (a, mu) = (constant([0, 1, 1, 0]), constant([0.5, 0.25, 1.0, 0.5]));
            let pi = q.softmax(-1);
            retrace(q, q, a, a, r_t, full([4], 0.9), pi, mu, lambda)
        })
        .remove(0)
        .to_f64()
    };
    let (one, other) = (errors(&[1.0, 2.0, 3.0, 4.0]), errors(&[1.0, 2.0, -30.0, 40.0]));
    assert_eq!(one[..2], other[..2]);
    assert_ne!(one[2], other[2]);
}

#[test]
fn arrays_of_other_lengths_are_reported() {
    let mistake = |f: fn(Tensor, Tensor) -> Tensor| {
        trace((f32([4]), f32([3])), |(four, three)| f(four, three)).unwrap_err().to_string()
    };
    let error = mistake(|four, three| td_lambda(four, four, four, three, 0.9));
    assert!(error.contains("td_lambda: expected tensors of one shape"), "{error}");
    assert!(error.contains("v_t f32[3]") && error.contains("action_values.rs"), "{error}");
    let error =
        mistake(|four, _| general_off_policy_returns_from_q_and_v(four, four, four, four, four));
    assert!(error.contains("expected q_t of shape [3]"), "{error}");
    assert!(error.contains("action_values.rs"), "{error}");
    let batch =
        trace((f32([2, 4]), f32([2, 4, 3]), i32([2, 4])), |(r, q, a)| q_lambda(q, a, r, r, q, 0.9));
    let error = batch.unwrap_err().to_string();
    assert!(error.contains("a batch goes through `vmap`"), "{error}");
}

/// The arguments of C51 in a record.
const OF_C51: [&str; 7] =
    ["q_atoms_tm1", "q_logits_tm1", "a_tm1", "r_t", "discount_t", "q_atoms_t", "q_logits_t"];

#[test]
fn categorical_losses_are_those_of_rlax() {
    for record in records("categorical_l2_project") {
        record.check(|x| {
            let [z_p, probs, z_q] = x.all(["z_p", "probs", "z_q"]);
            vec![("probs", categorical_l2_project(z_p, probs, z_q))]
        });
    }
    for record in records("categorical_td_learning") {
        record.check(|x| {
            let [atoms_tm1, logits_tm1, r_t, discount_t, atoms_t, logits_t] = x.all([
                "v_atoms_tm1",
                "v_logits_tm1",
                "r_t",
                "discount_t",
                "v_atoms_t",
                "v_logits_t",
            ]);
            let loss =
                categorical_td_learning(atoms_tm1, logits_tm1, r_t, discount_t, atoms_t, logits_t);
            vec![("loss", loss)]
        });
    }
    for record in records("categorical_q_learning") {
        record.check(|x| {
            let [z, logits, a, r, discount, z_t, logits_t] = x.all(OF_C51);
            vec![("loss", categorical_q_learning(z, logits, a, r, discount, z_t, logits_t))]
        });
    }
    for record in records("categorical_double_q_learning") {
        record.check(|x| {
            let [z, logits, a, r, discount, z_t, logits_t] = x.all(OF_C51);
            let selector = x.get("q_t_selector");
            let loss =
                categorical_double_q_learning(z, logits, a, r, discount, z_t, logits_t, selector);
            vec![("loss", loss)]
        });
    }
}

#[test]
fn quantile_losses_are_those_of_rlax() {
    let huber = |record: &Record| record.number("huber_param").expect("huber_param");
    for record in records("quantile_regression_loss") {
        record.check(|x| {
            let [source, tau, target] = x.all(["dist_src", "tau_src", "dist_target"]);
            vec![("loss", quantile_regression_loss(source, tau, target, huber(&record)))]
        });
    }
    for record in records("quantile_q_learning") {
        record.check(|x| {
            let [q_tm1, tau, a, r, discount, selector, q_t] = x.all([
                "dist_q_tm1",
                "tau_q_tm1",
                "a_tm1",
                "r_t",
                "discount_t",
                "dist_q_t_selector",
                "dist_q_t",
            ]);
            let huber = huber(&record);
            vec![("loss", quantile_q_learning(q_tm1, tau, a, r, discount, selector, q_t, huber))]
        });
    }
    for record in records("quantile_expected_sarsa") {
        record.check(|x| {
            let [q_tm1, tau, a, r, discount, q_t, probs] = x.all([
                "dist_q_tm1",
                "tau_q_tm1",
                "a_tm1",
                "r_t",
                "discount_t",
                "dist_q_t",
                "probs_a_t",
            ]);
            let huber = huber(&record);
            vec![("loss", quantile_expected_sarsa(q_tm1, tau, a, r, discount, q_t, probs, huber))]
        });
    }
}

#[test]
fn a_batch_of_distributional_losses_is_the_loss_of_each() {
    let spec = (f32([3, 2, 5]), i32([3]), f32([3]));
    let numbers: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 13) / 6.0 - 1.0).collect();
    let inputs = [
        floats(&[3, 2, 5], &numbers),
        Array::ints(DType::I32, [3], &[0, 1, 1]),
        floats(&[3], &[0.5, -1.0, 0.25]),
    ];
    let results = run(spec, &inputs, |(logits, actions, rewards)| {
        let atoms = linspace(-1.0, 1.0, 5);
        let of = |(logits, action, reward): (Tensor, Tensor, Tensor)| {
            let loss = |logits| {
                let discount = scalar(0.9);
                categorical_q_learning(atoms, logits, action, reward, discount, atoms, logits)
            };
            (loss(logits), grad(logits, loss))
        };
        let batch = vmap((logits, actions, rewards), of);
        let each: Vec<_> =
            (0..3).map(|i| of((logits.index(i), actions.index(i), rewards.index(i)))).collect();
        let (losses, slopes): (Vec<_>, Vec<_>) = each.into_iter().unzip();
        (batch, stack(&losses, 0), stack(&slopes, 0))
    });
    close("losses", &results[0], &results[2], 1e-6);
    close("gradients", &results[1], &results[3], 1e-6);
}

#[test]
fn transformed_values_are_those_of_rlax() {
    let values = |op: &str, tolerance: f64, f: &dyn Fn(Tensor, &Record) -> Tensor| {
        for record in records(op) {
            let x = record.input("x");
            let results = run(f32(x.ty().shape.clone()), &[x], |x| f(x, &record));
            close(op, &results[0], &record.output("value"), tolerance);
        }
    };
    let eps = |record: &Record| record.number("eps").expect("eps");
    values("signed_hyperbolic", 1e-6, &|x, record| signed_hyperbolic(x, eps(record)));
    // rlax's formula cancels digits: at 0.001 it gives 0.00194 for 0.00200.
    values("signed_parabolic", 1e-4, &|x, record| signed_parabolic(x, eps(record)));
    values("signed_logp1", 1e-6, &|x, _| signed_logp1(x));
    values("signed_expm1", 1e-6, &|x, _| signed_expm1(x));
    values("transform_to_2hot", 1e-6, &|x, record| {
        let number = |name: &str| record.number(name).expect("a bound");
        let bins = record.count("num_bins").expect("a count");
        transform_to_2hot(x, number("min_value"), number("max_value"), bins)
    });
    for record in records("transform_from_2hot") {
        record.check(|x| {
            let number = |name: &str| record.number(name).expect("a bound");
            let bins = record.count("num_bins").expect("a count");
            let value =
                transform_from_2hot(x.get("probs"), number("min_value"), number("max_value"), bins);
            vec![("value", value)]
        });
    }
}

/// R2D2's `h(3)` is 1.003.
#[test]
fn transformations_and_their_inverses_undo_each_other() {
    let numbers = [3.0, -3.0, 0.0, 1e-3, -0.25, 0.5, 100.0, -1e3, 1e6, -1e-6];
    let x = floats(&[10], &numbers);
    for pair in [TxPair::Identity, TxPair::SignedHyperbolic, TxPair::SignedLogp1] {
        let results = run(f32([10]), std::slice::from_ref(&x), |x| {
            let slope = |f: fn(TxPair, Tensor) -> Tensor| grad(x, |x| f(pair, x).sum());
            let back = pair.apply_inv(pair.apply(x));
            (back / x, pair.apply(x), slope(TxPair::apply), slope(TxPair::apply_inv))
        });
        for (i, ratio) in results[0].to_f64().into_iter().enumerate() {
            // The logarithm of a number as large as 1e6 has few digits of it.
            assert!((ratio - 1.0).abs() < 4e-6 || numbers[i] == 0.0, "{pair:?}: {ratio}");
        }
        let (h, slopes) = (results[1].to_f64(), [results[2].to_f64(), results[3].to_f64()]);
        if pair == TxPair::SignedHyperbolic {
            assert!((h[0] - 1.003).abs() < 1e-6 && (h[1] + 1.003).abs() < 1e-6, "{h:?}");
            assert!((slopes[0][2] - 0.501).abs() < 1e-6, "{slopes:?}");
        }
        // At 0 too, the slope of the inverse is one over the slope.
        assert!((slopes[0][2] * slopes[1][2] - 1.0).abs() < 1e-6, "{slopes:?}");
    }
}

#[test]
fn slopes_of_transformations_are_those_of_rlax_away_from_0() {
    let slopes = |op: &str, tolerance: f64, f: &dyn Fn(Tensor) -> Tensor| {
        for record in records(op) {
            let (x, expected) = (record.input("x"), record.gradient("x"));
            let found = run(f32(x.ty().shape.clone()), std::slice::from_ref(&x), |x| {
                grad(x, |x| f(x).sum())
            });
            let away = |array: &Array| -> Vec<f64> {
                let both = array.to_f64().into_iter().zip(x.to_f64());
                both.filter(|(_, x)| *x != 0.0).map(|(slope, _)| slope).collect()
            };
            let (found, expected) = (away(&found[0]), away(&expected));
            close(
                op,
                &floats(&[found.len()], &found),
                &floats(&[found.len()], &expected),
                tolerance,
            );
        }
    };
    slopes("signed_hyperbolic", 1e-6, &|x| signed_hyperbolic(x, 1e-3));
    slopes("signed_parabolic", 1e-4, &|x| signed_parabolic(x, 1e-3));
    slopes("signed_logp1", 1e-6, &signed_logp1);
    slopes("signed_expm1", 1e-6, &signed_expm1);
}

#[test]
fn bins_that_make_no_sense_are_errors() {
    let mistakes = trace(f32([2]), |x| {
        (transform_to_2hot(x, 1.0, -1.0, 5), transform_from_2hot(x, -1.0, 1.0, 3))
    });
    let mistakes = mistakes.unwrap_err().to_string();
    assert!(mistakes.contains("min_value below max_value, got 5 bins from 1 to -1"), "{mistakes}");
    assert!(mistakes.contains("expected probabilities of 3 bins, got f32[2]"), "{mistakes}");
    assert_eq!(mistakes.matches("--> stdlib/tests/it/action_values.rs").count(), 2, "{mistakes}");
}
