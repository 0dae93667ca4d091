//! Values at the edges: bounds of 0 and infinity, and labels that do not exist.

use crate::golden::run;
use podracer_dsl::prelude::*;
use podracer_rl::Number;
use podracer_rl::distributions::{Categorical, Distribution, MultiCategorical};
use podracer_rl::learn::AdamSettings;
use podracer_rl::losses::softmax_cross_entropy_with_integer_labels;
use podracer_rl::nn::{LayerNorm, RmsNorm};
use podracer_rl::optim::*;

#[test]
fn clipping_to_a_norm_of_zero_or_infinity_is_finite() {
    let clipped = |max_norm: Number, grads: [f64; 2]| {
        let grads = constant(grads);
        clip_by_global_norm(max_norm).update(grads, (), &grads).0
    };
    let cases = [
        (0.0, [0.0, 0.0], [0.0, 0.0]),
        (0.0, [3.0, 4.0], [0.0, 0.0]),
        (f64::INFINITY, [3.0, 4.0], [3.0, 4.0]),
        (f64::INFINITY, [0.0, 0.0], [0.0, 0.0]),
        (2.5, [3.0, 4.0], [1.5, 2.0]),
        (10.0, [3.0, 4.0], [3.0, 4.0]),
    ];
    for (max_norm, grads, expected) in cases {
        let results = run((), &[], |()| {
            let traced = scalar(max_norm);
            (clipped(max_norm.into(), grads), clipped(traced.into(), grads))
        });
        assert_eq!(results[0].to_f64(), expected, "{grads:?} to {max_norm}");
        assert_eq!(results[1].to_f64(), expected, "{grads:?} to {max_norm}, traced");
    }
    let nan = run((), &[], |()| clipped(1.0.into(), [f64::NAN, 4.0]));
    assert!(nan[0].to_f64().iter().all(|x| x.is_nan()));
}

#[test]
fn the_norm_of_f16_gradients_overflowed() {
    let results = run((), &[], |()| global_norm(&constant([300.0, 400.0]).astype(F16)));
    assert_eq!(results[0].to_f64(), [500.0]);
}

#[test]
fn a_setting_that_is_0_or_infinite_in_f32_is_an_error() {
    let parse = |text: &str| serde_json::from_str::<AdamSettings>(text).map(|_| ());
    let error = parse(r#"{"max_gradient_norm": 1e-46}"#).expect_err("it is 0 in f32").to_string();
    assert!(error.contains("1e-46") && error.contains("0 in f32"), "{error}");
    let error = parse(r#"{"learning_rate": -1e39}"#).expect_err("it is infinite").to_string();
    assert!(error.contains("-1e39") && error.contains("infinite in f32"), "{error}");
    parse(r#"{"max_gradient_norm": 1e-38, "adam_epsilon": 0, "learning_rate": 3e38}"#)
        .expect("f32");
}

#[test]
fn an_action_that_does_not_exist_has_probability_0() {
    let impossible = f64::NEG_INFINITY;
    let results = run((), &[], |()| {
        let one = Categorical::new(constant([[0.0, 0.0, 0.0]; 4]));
        let several = MultiCategorical::new(constant([0.0; 5]), &[2, 3]);
        let values = constant([[0, 2], [1, 3], [2, 0], [-1, 0]]);
        let slope = grad(constant([0.0, 1.0]), |logits| {
            select(constant(true), 1.0, Categorical::new(logits).log_prob(scalar(2)).sum())
        });
        (one.log_prob(constant([2, 3, -1, 0])), vmap(values, |v| several.log_prob(v)), slope)
    });
    let third = results[0].to_f64()[0];
    assert!((third + 3.0f64.ln()).abs() < 1e-6);
    assert_eq!(results[0].to_f64(), [third, impossible, impossible, third]);
    let joint = results[1].to_f64();
    assert!((joint[0] + 6.0f64.ln()).abs() < 1e-6);
    assert_eq!(joint[1..], [impossible; 3]);
    assert_eq!(results[2].to_f64(), [0.0, 0.0]);
}

#[test]
fn the_cross_entropy_of_a_label_that_does_not_exist_is_not_finite() {
    let results = run((), &[], |()| {
        let logits = constant([[1.0, 2.0, 3.0]; 4]);
        softmax_cross_entropy_with_integer_labels(logits, constant([2, 3, -1, 0]))
    });
    let losses = results[0].to_f64();
    assert!(losses[1].is_nan() && losses[2].is_nan(), "{losses:?}");
    assert!((losses[0] - 0.40760596).abs() < 1e-6 && (losses[3] - 2.40760596).abs() < 1e-6);
}

#[test]
fn layers_of_f16_normalised_with_infinite_moments() {
    let results = run((), &[], |()| {
        let narrow = |x: Tensor| x.astype(F16);
        let x = narrow(constant([-300.0, 300.0]));
        let (layer, rms) = (LayerNorm::init(2), RmsNorm::init(2));
        (tree_map(&layer, narrow).apply(x), tree_map(&rms, narrow).apply(x), layer.apply(x))
    });
    for result in results {
        assert_eq!(result.ty().dtype, F16);
        assert_eq!(result.to_f64(), [-1.0, 1.0]);
    }
}
