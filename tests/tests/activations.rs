//! Activations and their slopes against jax.nn's, at their kinks and far out: by the reference semantics and by XLA.

use podracer_compiler::Array;
use podracer_dsl::prelude::*;
use podracer_tests::compare::ulps;
use podracer_tests::xla::run;
use podracer_tests::{check_all, golden};

type Function = fn(Tensor) -> Tensor;

/// An activation by jax's name, with the greatest distance of value and slope from jax's in units
/// in the last place of f32. For the reference semantics, with functions that are rounded
/// differently from XLA's, there is also an absolute distance where digits cancel.
const ACTIVATIONS: &[(&str, Function, f64, f64)] = &[
    ("relu", Tensor::relu, 0.0, 0.0),
    ("sigmoid", Tensor::sigmoid, 2.0, 0.0),
    // 1 - y^2 has few digits of y left where y is almost 1.
    ("tanh", Tensor::tanh, 2.0, 2e-7),
    // jax's slope is exp(x - softplus(x)); the difference has few digits.
    ("softplus", Tensor::softplus, 6.0, 0.0),
    ("log_sigmoid", Tensor::log_sigmoid, 6.0, 0.0),
    ("silu", Tensor::silu, 2.0, 0.0),
    ("elu", Tensor::elu, 2.0, 0.0),
    ("leaky_relu", |x| x.leaky_relu(0.01), 2.0, 0.0),
    ("relu6", Tensor::relu6, 0.0, 0.0),
    ("hard_tanh", Tensor::hard_tanh, 0.0, 0.0),
    // The slope is a difference of two numbers with few remaining digits far out: in jax, too.
    ("soft_sign", Tensor::soft_sign, 128.0, 0.0),
    ("celu", |x| x.celu(1.0), 2.0, 0.0),
    ("selu", Tensor::selu, 2.0, 0.0),
    ("mish", Tensor::mish, 9.0, 0.0),
    ("gelu", Tensor::gelu, 16.0, 0.0),
    // XLA's tanh is 1 from 5 on.
    ("gelu, approximate", Tensor::gelu_tanh, 5.0, 3e-6),
];

#[test]
fn activations_and_their_slopes_are_those_of_jax_at_kinks_and_far_out() {
    let mut complaints = Vec::new();
    let records = golden::records("rl.json").expect("it parses").expect("it is checked in");
    for (name, function, allowed, cancelled) in ACTIVATIONS {
        let record = records.iter().find(|record| {
            let approximate = record["attrs"]["approximate"] == true;
            let (op, wanted) = name.split_once(',').map_or((*name, false), |(op, _)| (op, true));
            record["attrs"]["note"] == "slopes" && record["op"] == op && approximate == wanted
        });
        let record = record.unwrap_or_else(|| panic!("no record of {name}"));
        let array = |value: &serde_json::Value| golden::array(value).expect("an array");
        let x = array(&record["inputs"]["x"]);
        let expected = [array(&record["outputs"]["value"]), array(&record["gradients"]["x"])];
        let traced = trace((Spec::<Tensor>(x.ty().clone()),), |(x,)| {
            (function(x), grad(x, |x| function(x).sum()))
        });
        let traced = traced.expect("it traces");
        let ours = [
            ("eval", traced.eval(std::slice::from_ref(&x)).expect("it fits")),
            ("xla", run(traced.func(), std::slice::from_ref(&x)).expect("it runs")),
        ];
        for (how, got) in ours {
            for (what, (got, expected)) in ["value", "slope"].iter().zip(got.iter().zip(&expected))
            {
                let at = |array: &Array, i: usize| array.get(i).float();
                for i in 0..x.ty().elements() {
                    let (got, expected) = (at(got, i), at(expected, i));
                    let apart = ulps(expected, got);
                    let forgiven = how == "eval" && (got - expected).abs() <= *cancelled;
                    if apart > *allowed && !forgiven {
                        let x = at(&x, i);
                        complaints.push(format!(
                            "{how}: {what} of {name} at {x}: got {got}, jax has {expected}: {apart} ulp"
                        ));
                    }
                }
            }
        }
    }
    check_all(&complaints);
}
