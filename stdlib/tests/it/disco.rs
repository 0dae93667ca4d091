//! DiscoRL's update rule against a port of the authors' package, with arrays of the published shapes.

use crate::golden::{Named, Record, records_in};
use podracer_dsl::prelude::*;
use podracer_rl::learn::Axes;
use podracer_rl::meta::{
    DiscoMemory, DiscoOutputs, DiscoRule, DiscoSeen, DiscoShape, DiscoValues, KeptRule, Rule, Steps,
};
use podracer_rl::nn::LstmState;
use std::collections::BTreeMap;

/// An array as `make_disco.py` makes it of a name and a shape.
fn numbers(name: &str, shape: &[usize]) -> Array {
    let begin = name.bytes().map(u64::from).sum::<u64>() * 40503;
    let fan = if shape.len() > 1 { shape[shape.len() - 2] } else { 16 };
    let number = |i: u64| {
        let hashed = (i * 2_654_435_761 + begin) % (1 << 32);
        let hashed = (hashed * 1_664_525 + 1_013_904_223) % (1 << 32);
        (hashed as f64 / f64::from(2u32).powi(32) - 0.5) * 3.0 / (fan as f64).sqrt()
    };
    let count = shape.iter().product::<usize>() as u64;
    Array::floats(F32, shape, &(0..count).map(number).collect::<Vec<_>>())
}

/// Arrays with the names and shapes of the published file, for this number of predictions.
fn arrays(predictions: usize) -> BTreeMap<String, Array> {
    let shape = DiscoShape { predictions, ..DiscoShape::default() };
    let types = KeptRule::haiku_types(&shape).into_iter();
    types.map(|(name, ty)| (name.clone(), numbers(&name, &ty.shape))).collect()
}

/// The file that the authors published has 42 arrays with 754,778 numbers.
#[test]
fn a_rule_has_the_arrays_of_the_published_one() {
    let types = KeptRule::haiku_types(&DiscoShape::default());
    assert_eq!(types.len(), 42);
    assert_eq!(types.values().map(TensorType::elements).sum::<usize>(), 754_778);
    let ty = |name: &str| types[name].to_string();
    assert_eq!(ty("lstm/lstm/linear/w"), "f32[283,1024]");
    assert_eq!(ty("lstm/~/meta_lstm/~unroll/lstm/linear/w"), "f32[144,512]");
    assert_eq!(ty("lstm/sequential_1/conv1_d/w"), "f32[1,516,16]");
    assert_eq!(ty("lstm/~/meta_lstm/~unroll/mlp_2/~/linear_0/w"), "f32[29,16]");
}

fn outputs(x: &Named, prefix: &str) -> DiscoOutputs {
    let names = ["logits", "y", "z", "aux_pi", "q"];
    let [logits, y, z, next_policy, q] = names.map(|name| x.get(&format!("{prefix}.{name}")));
    DiscoOutputs { logits, y, z, next_policy, q }
}

fn of_record(record: &Record, rule: &Rule<DiscoRule>, x: &Named) -> Vec<(&'static str, Tensor)> {
    let [action, reward, terminated, behaviour] =
        x.all(["action", "reward", "terminated", "behaviour"]);
    let seen = DiscoSeen {
        action,
        reward,
        terminated,
        done: terminated,
        behaviour,
        now: outputs(x, "now"),
        after: outputs(x, "now_after"),
        target: outputs(x, "target"),
        target_after: outputs(x, "target_after"),
    };
    let [h, c, mean, square, begun] =
        x.all(["memory.h", "memory.c", "memory.mean", "memory.square", "memory.begun"]);
    let memory = DiscoMemory { core: LstmState { c, h }, mean, square, begun };
    let number = |name: &str| record.number(name).expect("a number").into();
    let values = DiscoValues::of(&seen, number("discount"), number("lambda"));
    let steps = Steps { weights: None, axes: Axes::none() };
    let (targets, after) = rule.tensors().targets(&seen, &values, memory, &steps);
    let losses = targets.losses(&seen.now, &seen, &values);
    vec![
        ("q_target", values.q_target),
        ("advantage", values.advantage),
        ("policy", targets.policy),
        ("y", targets.y),
        ("z", targets.z),
        ("memory.h", after.core.h),
        ("memory.c", after.core.c),
        ("memory.mean", after.mean),
        ("memory.square", after.square),
        ("loss.policy", losses.policy),
        ("loss.y", losses.y),
        ("loss.z", losses.z),
        ("loss.next_policy", losses.next_policy),
        ("loss.value", losses.value),
    ]
}

#[test]
fn targets_are_those_of_the_authors() {
    for record in records_in("disco", "disco_targets") {
        let predictions = record.count("predictions").expect("a count");
        let rule = KeptRule::from_haiku(&arrays(predictions)).expect("a rule");
        let rule = Rule::Kept(rule);
        record.check_of(crate::golden::Of::Sum, 1e-4, |x| of_record(&record, &rule, x));
    }
}

#[test]
fn arrays_that_are_no_rule_are_refused() {
    let whole = arrays(12);
    let problem = |change: &dyn Fn(&mut BTreeMap<String, Array>)| {
        let mut arrays = whole.clone();
        change(&mut arrays);
        KeptRule::from_haiku(&arrays).expect_err("no rule")
    };
    let missing = problem(&|arrays| {
        arrays.remove("lstm/linear_4/w");
    });
    assert_eq!(missing, "it has no array `lstm/linear_4/w`");
    let more = problem(&|arrays| {
        arrays.insert("lstm/linear_5/w".to_owned(), numbers("", &[2, 2]));
    });
    assert_eq!(more, "a rule has no array `lstm/linear_5/w`");
    let other = problem(&|arrays| {
        arrays.insert("lstm/linear_3/b".to_owned(), numbers("", &[7]));
    });
    assert_eq!(other, "`lstm/linear_3/b` must be f32[12] and is f32[7]");
    let scalar = problem(&|arrays| {
        arrays.insert("lstm/linear/w".to_owned(), Array::floats(F32, [0; 0], &[1.0]));
    });
    assert_eq!(scalar, "`lstm/linear/w` must have 2 axes and is f32[]");
}
