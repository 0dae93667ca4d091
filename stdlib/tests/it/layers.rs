//! Normalisation, recurrent, embedding, attention and noisy layers against flax and their papers' equations.

use crate::golden::{Named, Of, close, floats, records, run, words};
use podracer_dsl::prelude::*;
use podracer_rl::nn::*;

#[test]
fn normalisations_are_those_of_flax() {
    for record in records("layer_norm") {
        record.check_of(Of::Squares, 2e-6, |x| {
            let epsilon = record.number("epsilon").expect("epsilon");
            let layer = LayerNorm { scale: x.get("scale"), bias: x.get("bias"), epsilon };
            vec![("value", vmap(x.get("x"), |x| layer.apply(x)))]
        });
    }
    for record in records("rms_norm") {
        record.check_of(Of::Squares, 2e-6, |x| {
            let epsilon = record.number("epsilon").expect("epsilon");
            let layer = RmsNorm { scale: x.get("scale"), epsilon };
            vec![("value", vmap(x.get("x"), |x| layer.apply(x)))]
        });
    }
}

/// The mean of numbers far from 0 does not cancel their differences.
#[test]
fn a_normalised_vector_has_mean_0_and_variance_1() {
    let x = floats(&[4], &[1000.0, 1001.0, 1002.0, 1003.0]);
    let results = run(f32([4]), &[x], |x| {
        let y = LayerNorm::init(4).apply(x);
        (y.mean(), y.square().mean(), RmsNorm::init(4).apply(x).square().mean())
    });
    for (result, expected) in results.iter().zip([0.0, 1.0, 1.0]) {
        close("moment", result, &floats(&[], &[expected]), 2e-6);
    }
}

fn gru(x: &Named) -> Gru {
    let gates = |side: &str, what: &str| {
        let names = ["r", "z", "n"].map(|gate| x.get(&format!("{side}{gate}.{what}")));
        concatenate(&names, -1)
    };
    Gru {
        input: gates("i", "kernel"),
        hidden: gates("h", "kernel"),
        bias: gates("i", "bias"),
        hidden_bias: x.get("hn.bias"),
    }
}

#[test]
fn a_gated_recurrent_unit_is_that_of_flax() {
    for record in records("gru_cell") {
        record.check(|x| {
            let gru = gru(x);
            vec![("next.h", vmap((x.get("h"), x.get("x")), |(h, x)| gru.step(h, x)))]
        });
    }
    for record in records("gru_unroll") {
        record.check_of(Of::Squares, 2e-6, |x| {
            vec![("value", gru(x).unroll(x.get("h"), x.get("x"), x.get("reset")))]
        });
    }
}

#[test]
fn a_new_gated_recurrent_unit_has_the_weights_of_flax() {
    let results = run(key(), &[words(3)], |key| {
        let gru = Gru::init(key, 6, 4);
        let gate = gru.hidden.slice((.., 4..8));
        (gru.input, dot(gate.transpose(), gate), gru.bias, gru.hidden_bias)
    });
    assert_eq!(results[0].ty().shape[..], [6, 12]);
    let identity: Vec<f64> = (0..16).map(|i| f64::from(i % 5 == 0)).collect();
    close("orthogonal", &results[1], &floats(&[4, 4], &identity), 2e-6);
    assert!(results[2].to_f64().iter().chain(&results[3].to_f64()).all(|&x| x == 0.0));
}

#[test]
fn an_embedding_is_that_of_flax() {
    for record in records("embed") {
        record.check_of(Of::Squares, 1e-6, |x| {
            let layer = Embedding { weight: x.get("embedding") };
            vec![("value", vmap(x.get("x"), |x| layer.apply(x)))]
        });
    }
    for record in records("embed_attend") {
        record.check_of(Of::Squares, 1e-6, |x| {
            let layer = Embedding { weight: x.get("embedding") };
            vec![("value", vmap(x.get("x"), |x| layer.attend(x)))]
        });
    }
    for record in records("embed_init") {
        let shape = record.shape("shape");
        record.check(|x| {
            let layer = Embedding::init(Key::from_words(x.get("key")), shape[0], shape[1]);
            vec![("value", layer.weight)]
        });
    }
}

#[test]
fn attention_is_that_of_flax() {
    for record in records("dot_product_attention") {
        record.check_of(Of::Squares, 2e-6, |x| {
            let [query, key, value] = x.all(["x", "key", "value"]);
            let mask = record.has("mask").then(|| x.get("mask"));
            vec![("value", dot_product_attention(query, key, value, mask))]
        });
    }
    for record in records("multi_head_attention") {
        // The gradient of the keys' bias is 0, of numbers that cancel.
        record.check_of(Of::Squares, 1e-5, |x| {
            let layer = |name: &str| {
                let kernel = x.get(&format!("{name}.kernel"));
                let bias = x.get(&format!("{name}.bias")).flatten();
                let outputs = bias.elements();
                let weight = kernel.reshape([kernel.elements() / outputs, outputs]);
                Linear { weight, bias }
            };
            let attention = MultiHeadAttention {
                query: layer("query"),
                key: layer("key"),
                value: layer("value"),
                out: layer("out"),
                heads: record.count("heads").expect("a count"),
            };
            let queries = x.get("x");
            let value = if record.has("memory") {
                let mask = record.has("mask").then(|| x.get("mask"));
                attention.apply(queries, x.get("memory"), mask)
            } else {
                attention.apply(queries, queries, Some(causal_mask(queries.dim(0))))
            };
            vec![("value", value)]
        });
    }
}

#[test]
fn an_episode_sees_its_own_past() {
    let results = run((), &[], |()| episode_mask(constant([true, false, true, false])));
    let seen: Vec<i32> = results[0].to_f64().into_iter().map(|x| x as i32).collect();
    assert_eq!(seen, [1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1]);
}

#[test]
fn a_batch_of_trajectories_attends_each_to_itself() {
    let numbers: Vec<f64> = (0..24).map(|i| f64::from(i * 5 % 11) / 5.0 - 1.0).collect();
    let results =
        run((f32([2, 3, 4]), key()), &[floats(&[2, 3, 4], &numbers), words(5)], |(xs, key)| {
            let attention = MultiHeadAttention::init(key, 4, 2, 3);
            let loss = |attention: &MultiHeadAttention, x: Tensor| {
                attention.apply(x, x, Some(causal_mask(3))).square().sum()
            };
            let batch =
                grad(attention.clone(), |attention| vmap(xs, |x| loss(&attention, x)).sum());
            let each = grad(attention, |attention| {
                loss(&attention, xs.index(0)) + loss(&attention, xs.index(1))
            });
            (batch, each)
        });
    let (batch, each) = results.split_at(8);
    for (batch, each) in batch.iter().zip(each) {
        close("gradient", batch, each, 2e-6);
    }
}

#[test]
fn a_noisy_layer_is_the_equation_of_its_paper() {
    let layer = |x: &Named| NoisyLinear {
        weight: x.get("weight"),
        bias: x.get("bias"),
        weight_sigma: x.get("weight_sigma"),
        bias_sigma: x.get("bias_sigma"),
    };
    for record in records("noisy_linear") {
        record.check_of(Of::Squares, 2e-6, |x| {
            vec![("value", layer(x).apply(x.get("x"), Key::from_words(x.get("key"))))]
        });
    }
    let results = run((key(), f32([9])), &[words(1), floats(&[9], &[0.5; 9])], |(key, x)| {
        let [of_layer, first, second] = key.split_into();
        let layer = NoisyLinear::init(of_layer, 9, 4, 0.5);
        let noise = |key: Key| layer.apply(x, key) - layer.mean().apply(x);
        (layer, noise(first), noise(second))
    });
    let means = results[0].to_f64().into_iter().chain(results[1].to_f64());
    assert!(means.into_iter().all(|x| x.abs() <= 1.0 / 3.0));
    for sigma in [&results[2], &results[3]] {
        assert!(sigma.to_f64().iter().all(|x| (x - 0.5 / 3.0).abs() < 1e-7));
    }
    assert_ne!(results[4].to_f64(), results[5].to_f64());
}

#[test]
fn a_dueling_head_is_the_equation_of_its_paper() {
    for record in records("dueling") {
        record.check_of(Of::Squares, 2e-6, |x| {
            let stream = |name: &str| {
                let layer = |i: usize| Linear {
                    weight: x.get(&format!("{name}.{i}.kernel")),
                    bias: x.get(&format!("{name}.{i}.bias")),
                };
                Mlp {
                    layers: vec![layer(0), layer(1)],
                    norms: Vec::new(),
                    activation: Activation::Relu,
                }
            };
            let head = DuelingHead { value: stream("value"), advantage: stream("advantage") };
            vec![("value", head.apply(x.get("x")))]
        });
    }
    let weights = Initializer::lecun_normal();
    let spec = trace((key(), f32([7])), |(key, x)| {
        let head = DuelingHead::init(key, 7, &[16, 8], 3, Activation::Relu, weights);
        (head.apply(x), head.value.apply(x))
    });
    assert_eq!(spec.expect("it traces").results().to_string(), "{0: f32[3], 1: f32[1]}");
}

#[test]
fn members_of_an_ensemble_begin_and_learn_apart() {
    let results =
        run((key(), f32([3])), &[words(2), floats(&[3], &[1.0, -0.5, 2.0])], |(key, x)| {
            let weights = Initializer::lecun_normal();
            let sizes = [3, 4, 1];
            let critics = Ensemble::init(key, 2, |key| {
                Mlp::init(key, &sizes, Activation::Tanh, weights, weights)
            });
            let q = |critics: &Ensemble<Mlp>| critics.apply(|critic| critic.apply(x).index(0));
            let slopes = grad(critics.clone(), |critics| q(&critics).index(0));
            (q(&critics), slopes.members[0].layers[0].weight, slopes.members[1].layers[0].weight)
        });
    let q = results[0].to_f64();
    assert!(q.len() == 2 && q[0] != q[1], "{q:?}");
    assert!(results[1].to_f64().iter().any(|&x| x != 0.0));
    assert!(results[2].to_f64().iter().all(|&x| x == 0.0));
}

#[test]
fn wrong_inputs_of_layers_are_told() {
    let mistakes = trace((key(), f32([2, 5, 4]), f32([3])), |(key, x, index)| {
        let [of_embedding, of_attention] = key.split_into();
        let attention = MultiHeadAttention::init(of_attention, 4, 3, 2);
        let uneven = MultiHeadAttention { heads: 4, ..attention.clone() };
        (
            Embedding::init(of_embedding, 5, 2).apply(index),
            attention.apply(x, x, None),
            uneven.apply(x.index(0), x.index(0), None),
            attention.apply(x.index(0), x.index(1), Some(x.index(0))),
            LayerNorm::init(5).apply(x),
        )
    });
    let mistakes = mistakes.unwrap_err().to_string();
    for expected in [
        "Embedding::apply: expected integers, got f32[3]",
        "expected [T, in] and [S, in], got f32[2,5,4] and f32[2,5,4]: a batch goes through `vmap`",
        "6 features do not divide into 4 heads",
        "expected a bool mask, got f32[5,4]",
        "f32[2,5,4] and f32[2,5,5] do not broadcast",
    ] {
        assert!(mistakes.contains(expected), "{expected}\n{mistakes}");
    }
    assert_eq!(mistakes.matches("--> stdlib/tests/it/layers.rs").count(), 5, "{mistakes}");
}
