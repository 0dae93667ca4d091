//! Parts of agents under transformations: gradients against finite differences in f64, and a batch of gradients inside a
//! scan against each by itself.

use crate::golden::{close, run};
use podracer_dsl::prelude::*;
use podracer_rl::distributions::*;
use podracer_rl::losses::*;
use podracer_rl::nn::*;
use podracer_rl::optim::*;
use podracer_rl::returns::*;

/// A function of 12 numbers, `[12]` to `[]`, in their dtype.
type Part = fn(Tensor) -> Tensor;

fn rows(x: Tensor, rows: usize) -> Tensor {
    x.reshape([rows, 12 / rows])
}

/// Numbers of the program's dtype, all different.
fn given(x: Tensor, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    (1.7 * arange(count).astype(x.dtype()) + 0.3).sin().reshape(shape)
}

/// Actions `[n]` of 3.
fn actions(n: usize) -> Tensor {
    (arange(n) * 2 + 1).rem(3)
}

/// A number of the program's dtype.
fn number(x: Tensor, value: f64) -> Tensor {
    x.index(0).full_like(value)
}

const PARTS: &[(&str, Part)] = &[
    ("retrace", |x| {
        let (q, given) = (rows(x, 4), given(x, &[4, 3]));
        let (a, discount) = (actions(4), 0.9 + 0.0 * given.index_axis(1, 0));
        let (pi, mu) = (given.softmax(-1), 0.5 + 0.0 * discount);
        retrace(q, given, a, a, discount, discount, pi, mu, 0.9).square().sum()
    }),
    ("returns of action values", |x| {
        let (q, pi) = (rows(x, 4), given(x, &[4, 3]).softmax(-1));
        let of = q.index_axis(1, 0);
        general_off_policy_returns_from_action_values(q, actions(4), of, of, of, pi).sum()
    }),
    ("n steps of transformed values", |x| {
        let (q, r) = (rows(x, 4), given(x, &[4]));
        let (a, discount) = (actions(4), 0.9 + 0.0 * r);
        let tx = TxPair::SignedHyperbolic;
        transformed_n_step_q_learning(q, a, q, a, r, discount, 2, tx).square().sum()
    }),
    ("transformations", |x| {
        let y = signed_parabolic(signed_logp1(3.0 * x), 1e-3) + signed_expm1(x);
        (y * transform_from_2hot(x.softmax(-1), -2.0, 2.0, 12)).sum()
            + (transform_to_2hot(x, -3.0, 3.0, 5) * given(x, &[12, 5])).sum()
    }),
    ("categorical", |x| {
        let (logits, z) = (rows(x, 3), linspace(-1.0, 1.0, 4).astype(x.dtype()));
        let (r, discount) = (number(x, 0.3), number(x, 0.9));
        categorical_q_learning(z, logits, scalar(1), r, discount, z, given(x, &[3, 4]))
    }),
    ("quantiles", |x| {
        let (r, discount) = (number(x, 0.3), number(x, 0.9));
        let (q, tau) = (rows(x, 4), given(x, &[4]).square());
        quantile_q_learning(q, tau, scalar(2), r, discount, q, given(x, &[4, 3]), 0.5)
    }),
    ("munchausen", |x| {
        let (r, given) = (number(x, 0.3), given(x, &[12]));
        munchausen_q_learning(x, scalar(4), r, r, given, given, 0.3, 0.9, -1.0).square()
    }),
    ("soft critics", |x| {
        let (q, r) = (x.slice(..2), number(x, 0.9));
        let errors = soft_q_learning(q, r, r, given(x, &[2]), r, 0.2).square().sum();
        let (q, logits) = (rows(x, 4).slice(..2), given(x, &[3]));
        errors + discrete_soft_q_learning(q, scalar(1), r, r, q, logits, 0.2).square().sum()
    }),
    ("soft actors", |x| {
        let (logits, q) = (x, given(x, &[2, 12]));
        let policy = TanhNormal::new(x.slice(..3), x.slice(3..6).exp());
        let action = (policy.normal.loc + policy.normal.scale * given(x, &[3])).tanh();
        let log_prob = policy.log_prob(action).sum();
        discrete_soft_actor_loss(logits, q, 0.3)
            + soft_actor_loss(log_prob, stack(&[action.sum(), action.square().sum()], 0), 0.3)
    }),
    ("temperatures", |x| {
        let loss = discrete_temperature_loss(x.index(0), given(x, &[4]), 0.9);
        loss + temperature_loss(x.index(1), number(x, 0.7), -2.0)
    }),
    ("policies", |x| {
        let policy = Categorical::softmax(rows(x, 4), 0.7);
        let prior = Categorical::new(given(x, &[4, 3]));
        let answers = Bernoulli::new(x);
        kl_regularizer(&policy, &prior, 0.5)
            + entropy_regularizer(&answers, 0.5)
            + answers.log_prob(actions(12)).sum()
    }),
    ("mixture", |x| {
        let parts = |i: isize| rows(x, 4).index(i);
        let components = Normal::new(parts(1), parts(2).exp());
        MixtureSameFamily::new(Categorical::new(parts(0)), components).log_prob(parts(3).index(0))
    }),
    ("normalisations", |x| {
        let rows = rows(x, 3);
        let layer = LayerNorm { scale: rows.index(1), bias: rows.index(2), epsilon: 1e-2 };
        let rms = RmsNorm { scale: rows.index(1), epsilon: 1e-2 };
        (layer.apply(rows) * rms.apply(rows) * given(x, &[3, 4])).sum()
    }),
    ("gated recurrent unit", |x| {
        let gru = Gru {
            input: given(x, &[3, 6]),
            hidden: x.reshape([2, 6]),
            bias: given(x, &[6]),
            hidden_bias: x.slice(..2),
        };
        let reset = constant([false, false, true, false]);
        gru.unroll(x.slice(..2), rows(x, 4), reset).square().sum()
    }),
    ("attention", |x| {
        let (heads, given) = (x.reshape([3, 2, 2]), given(x, &[3, 2, 2]));
        let mask = episode_mask(constant([true, false, true]));
        (dot_product_attention(heads, given, heads, Some(mask)) * given).sum()
    }),
    ("embedding", |x| {
        let layer = Embedding { weight: rows(x, 4) };
        layer.attend(layer.apply(scalar(2))).square().sum()
    }),
    ("a step of LAMB", |x| {
        let optimizer = partition(
            |path| path.0 == [Step::Position(0)],
            lamb(0.1).weight_decay(0.1),
            chain(ema(0.5), adagrad(0.1)),
        );
        let params = (x.slice(..6), x.slice(6..));
        let (state, grads) = (optimizer.init(&params), (x.slice(3..9).cos(), x.slice(6..)));
        let (params, _) = optimizer.step(params, state, grads);
        params.0.square().sum() + params.1.sin().sum()
    }),
    ("gathered gradients", |x| {
        let optimizer = multi_steps(sgd(0.1).momentum(0.9), 2);
        let first = x.slice(..4);
        let ((params, _), _) =
            scan((first, optimizer.init(&first)), rows(x, 3), |(p, state), g| {
                (optimizer.step(p, state, (g * p).sin().astype(p.dtype())), p)
            });
        params.square().sum()
    }),
];

fn numbers(n: usize, offset: f64) -> Vec<f64> {
    (0..n).map(|i| ((i as f64 + offset) * 2.399).sin() * 1.3).collect()
}

#[test]
fn gradients_are_the_slopes() {
    let mut complaints = Vec::new();
    for (name, part) in PARTS {
        let spec = TensorType::new(F64, [12]);
        let value = match trace(spec.clone(), part) {
            Ok(value) => value,
            Err(errors) => {
                complaints.push(format!("{name}: {errors}"));
                continue;
            }
        };
        let point = numbers(12, 0.4);
        let array = |values: &[f64]| Array::floats(DType::F64, [12], values);
        let at = |values: &[f64]| value.eval(&[array(values)]).expect("it fits")[0].to_f64()[0];
        let slopes = run(spec, &[array(&point)], |x| grad(x, part)).remove(0).to_f64();
        for i in 0..12 {
            let shifted = |by: f64| {
                let mut point = point.clone();
                point[i] += by;
                at(&point)
            };
            let (h, slope) = (1e-6, slopes[i]);
            let expected = (shifted(h) - shifted(-h)) / (2.0 * h);
            let error = (slope - expected).abs() / expected.abs().max(1.0);
            // What does not flow into a target is no part of the gradient.
            if !(error < 1e-7 || STOPPED.contains(name) && slope.is_finite()) {
                complaints.push(format!("{name}[{i}]: {slope}, not {expected}"));
            }
        }
        if slopes.iter().all(|x| *x == 0.0) {
            complaints.push(format!("{name}: no gradient"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Parts with a target that no gradient flows into, though their numbers are in it.
const STOPPED: &[&str] = &["n steps of transformed values", "soft critics"];

#[test]
fn a_batch_of_gradients_in_a_scan_is_each_by_itself() {
    for (name, part) in PARTS {
        let input = Array::floats(DType::F32, [2, 3, 12], &numbers(72, 0.8));
        let results = run(f32([2, 3, 12]), &[input], |xs| {
            let (_, all) = scan(scalar(0), xs, |step, batch| {
                (step + 1, vmap(batch, |x| (part(x), grad(x, part))))
            });
            let alone = |k: isize| {
                let x = xs.reshape([6, 12]).index(k);
                (part(x), grad(x, part))
            };
            (all, alone(0), alone(5))
        });
        let [values, slopes, first, of_first, last, of_last] = &results[..] else {
            panic!("{name}: {} results", results.len());
        };
        let at = |array: &Array, i: usize, k: usize| array.index_leading(i).index_leading(k);
        close(name, &at(values, 0, 0), first, 1e-5);
        close(name, &at(slopes, 0, 0), of_first, 1e-5);
        close(name, &at(values, 1, 2), last, 1e-5);
        close(name, &at(slopes, 1, 2), of_last, 1e-5);
    }
}
