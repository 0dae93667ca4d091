//! Layers, initialisers and activations against flax and jax.nn; orthogonality.

use crate::golden::{Of, Record, close, floats, records, run, words};
use podracer_dsl::prelude::*;
use podracer_rl::nn::*;

#[test]
fn a_dense_layer_is_that_of_flax() {
    for record in records("dense") {
        record.check_of(Of::Squares, 1e-6, |x| {
            let weight = x.get("kernel");
            let bias = if record.has("bias") { x.get("bias") } else { zeros(F32, [weight.dim(1)]) };
            let layer = Linear { weight, bias };
            vec![("value", vmap(x.get("x"), |x| layer.apply(x)))]
        });
    }
}

#[test]
fn a_perceptron_is_that_of_flax() {
    for record in records("mlp") {
        record.check_of(Of::Squares, 2e-6, |x| {
            let layer = |i: usize| Linear {
                weight: x.get(&format!("layers_{i}.kernel")),
                bias: x.get(&format!("layers_{i}.bias")),
            };
            let mlp = Mlp {
                layers: (0..3).map(layer).collect(),
                norms: Vec::new(),
                activation: Activation::Tanh,
            };
            vec![("value", vmap(x.get("x"), |x| mlp.apply(x)))]
        });
    }
}

#[test]
fn a_batch_through_a_layer_is_one_product_without_transposes() {
    let traced = trace((f32([8, 4]), f32([4, 3]), f32([3])), |(x, weight, bias)| {
        vmap(x, |x| Linear { weight, bias }.apply(x))
    });
    let text = traced.unwrap_or_else(|errors| panic!("{errors}")).to_string();
    assert_eq!(text.matches("dot_general").count(), 1, "{text}");
    assert!(!text.contains("transpose"), "{text}");
}

#[test]
fn activations_are_those_of_jax() {
    let names = [
        ("relu", Activation::Relu),
        ("sigmoid", Activation::Sigmoid),
        ("softplus", Activation::Softplus),
        ("silu", Activation::Silu),
        ("elu", Activation::Elu),
        ("leaky_relu", Activation::LeakyRelu),
        ("relu6", Activation::Relu6),
        ("hard_tanh", Activation::HardTanh),
        ("soft_sign", Activation::SoftSign),
        ("selu", Activation::Selu),
        ("mish", Activation::Mish),
    ];
    for (name, activation) in names {
        for record in records(name) {
            record.check(|x| vec![("value", activation.apply(x.get("x")))]);
        }
    }
    for record in records("gelu") {
        let approximate = record.flag("approximate") == Some(true);
        let gelu = |x: Tensor| if approximate { Activation::Gelu.apply(x) } else { x.gelu() };
        // XLA's tanh is 1 from 5 on.
        record.check_of(Of::Sum, 3e-6, |x| vec![("value", gelu(x.get("x")))]);
    }
    type Function = fn(Tensor) -> Tensor;
    let functions: [(&str, Function); 3] =
        [("tanh", Tensor::tanh), ("log_sigmoid", Tensor::log_sigmoid), ("celu", |x| x.celu(1.0))];
    for (name, function) in functions {
        for record in records(name) {
            record.check(|x| vec![("value", function(x.get("x")))]);
        }
    }
}

#[test]
fn functions_along_an_axis_are_those_of_jax() {
    type Along = fn(Tensor, isize) -> Tensor;
    let functions: [(&str, Along); 3] = [
        ("softmax", |x, axis| x.softmax(axis)),
        ("log_softmax", |x, axis| x.log_softmax(axis)),
        ("logsumexp", |x, axis| x.logsumexp(axis)),
    ];
    for (name, function) in functions {
        for record in records(name) {
            let axis = record.number("axis").expect("an axis") as isize;
            record.check(|x| {
                let value = function(x.get("x"), axis);
                let weights = record.has("weights").then(|| x.get("weights"));
                vec![("value", weights.map_or(value, |weights| weights * value))]
            });
        }
    }
    for record in records("one_hot") {
        let classes = record.count("num_classes").expect("a count");
        record.check(|x| vec![("value", x.get("x").one_hot(classes))]);
    }
}

fn initializer(record: &Record, initializer: Initializer) {
    let shape = record.shape("shape");
    record.check_of(Of::Sum, 2e-6, |x| {
        vec![("value", initializer.init(Key::from_words(x.get("key")), &shape))]
    });
}

#[test]
fn initializers_are_those_of_jax() {
    let names = [
        ("glorot_uniform", Initializer::glorot_uniform()),
        ("glorot_normal", Initializer::glorot_normal()),
        ("lecun_normal", Initializer::lecun_normal()),
        ("lecun_uniform", Initializer::lecun_uniform()),
        ("he_normal", Initializer::he_normal()),
        ("he_uniform", Initializer::he_uniform()),
    ];
    for (name, of) in names {
        records(name).iter().for_each(|record| initializer(record, of));
    }
    for record in records("variance_scaling") {
        initializer(
            &record,
            Initializer::VarianceScaling { scale: 2.0, fan: Fan::Out, law: Law::TruncatedNormal },
        );
    }
}

/// Gram and Schmidt in f64 on the same normals: the factor with a positive diagonal is unique.
fn reference(normals: &Array) -> Vec<Vec<f64>> {
    let (long, short) = (normals.ty().shape[0], normals.ty().shape[1]);
    let values = normals.to_f64();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for column in 0..short {
        let mut vector: Vec<f64> = (0..long).map(|row| values[row * short + column]).collect();
        for _ in 0..2 {
            for row in &rows {
                let along: f64 = row.iter().zip(&vector).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(row).for_each(|(x, a)| *x -= along * a);
            }
        }
        let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        rows.push(vector.into_iter().map(|x| x / norm).collect());
    }
    rows
}

#[test]
fn orthogonal_matrices_are_orthogonal_and_the_unique_factor() {
    for (inputs, outputs) in [(64, 64), (48, 3), (3, 48), (64, 1), (1, 1), (1, 7), (5, 5)] {
        let scale = 2f64.sqrt();
        let (long, short) = (inputs.max(outputs), inputs.min(outputs));
        let results = run(key(), &[words(9)], |key| {
            let normals = key.again().normal([long, short]);
            (Initializer::orthogonal(scale).init(key, &[inputs, outputs]), normals)
        });
        let weights = results[0].to_f64();
        let vector = |i: usize| -> Vec<f64> {
            let element = |j: usize| {
                if inputs > outputs { weights[j * outputs + i] } else { weights[i * outputs + j] }
            };
            (0..long).map(element).collect()
        };
        let expected = reference(&results[1]);
        for (i, expected) in expected.iter().enumerate() {
            for j in 0..short {
                let product: f64 = vector(i).iter().zip(vector(j)).map(|(a, b)| a * b).sum();
                let wanted = if i == j { scale * scale } else { 0.0 };
                assert!(
                    (product - wanted).abs() < 3e-6,
                    "{inputs} by {outputs}: product of {i} and {j} is {product}"
                );
            }
            let got = floats(&[long], &vector(i));
            let wanted = floats(&[long], &expected.iter().map(|x| scale * x).collect::<Vec<_>>());
            close("the factor", &got, &wanted, 2e-6);
        }
    }
}

#[test]
fn a_perceptron_has_the_given_initial_values() {
    let results = run(key(), &[words(1)], |key| {
        Mlp::init(
            key,
            &[6, 8, 8, 2],
            Activation::Relu,
            Initializer::orthogonal(1.0),
            Initializer::Zeros,
        )
        .layers
    });
    let shapes: Vec<Vec<usize>> = results.iter().map(|array| array.ty().shape.to_vec()).collect();
    assert_eq!(shapes, [vec![6, 8], vec![8], vec![8, 8], vec![8], vec![8, 2], vec![2]]);
    assert!(results[1].to_f64().iter().chain(&results[4].to_f64()).all(|&x| x == 0.0));
    assert_ne!(results[0].to_f64()[..8], results[2].to_f64()[..8]);
}

#[test]
fn a_grid_is_flattened_before_the_first_layer() {
    let results = run(f32([2, 3]), &[floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], |x| {
        let mlp = Mlp {
            layers: vec![Linear { weight: ones(F32, [6, 2]), bias: constant([0.0, 1.0]) }],
            norms: Vec::new(),
            activation: Activation::Tanh,
        };
        mlp.apply(x)
    });
    close("output", &results[0], &floats(&[2], &[21.0, 22.0]), 0.0);
}

#[test]
fn a_wrong_input_is_reported_with_both_types() {
    let error = trace((f32([5]), f32([4, 3]), f32([3])), |(x, weight, bias)| {
        Linear { weight, bias }.apply(x)
    })
    .unwrap_err()
    .to_string();
    assert!(error.contains("f32[5] and f32[4,3] do not multiply"), "{error}");
    assert!(error.contains("nn.rs"), "{error}");
}

#[test]
fn plain_initializers_do_what_they_say() {
    let results = run(key(), &[words(2)], |key| {
        let [a, b, c] = key.split_into();
        let constants =
            (Initializer::Zeros.init(a.again(), &[2, 2]), Initializer::Constant(0.5).init(a, &[2]));
        (
            constants,
            Initializer::Uniform(0.25).init(b, &[400]),
            Initializer::Normal(2.0).init(c, &[400]),
        )
    });
    assert_eq!(results[0].to_f64(), [0.0; 4]);
    assert_eq!(results[1].to_f64(), [0.5; 2]);
    assert!(results[2].to_f64().iter().all(|x| (0.0..0.25).contains(x)));
    let variance = results[3].to_f64().iter().map(|x| x * x).sum::<f64>() / 400.0;
    assert!((3.0..5.0).contains(&variance), "{variance}");
}
