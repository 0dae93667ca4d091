//! Tests of each rule alone, and of the rewrites that no rule may make.

use super::{assert_same, check};
use crate::ir::{Builder, Func, Var};
use crate::ops::registry;
use crate::simplify::{Group, Options, region, rules, tidy};
use crate::types::{DType, TensorType};
use std::collections::BTreeSet;

fn example(rule: &rules::Rule, dtype: DType) -> Func {
    let mut b = Builder::new();
    let ty = TensorType::new(dtype, [2, 3]);
    let (x, y) = (b.param(ty.clone()), b.param(ty));
    let p = b.param(TensorType::new(DType::Bool, [2, 3]));
    let result = (rule.example)(&mut b, x, y, p);
    b.finish("example", vec![result])
}

#[test]
fn every_rule_applies_to_its_example_and_keeps_all_bits() {
    for rule in rules::all() {
        assert!(!rule.dtypes.is_empty(), "{} has no example", rule.name);
        for (i, &dtype) in rule.dtypes.iter().enumerate() {
            let func = tidy(&example(rule, dtype));
            assert!(
                region::applies(&func, rule),
                "`{}` does not apply in {dtype}\n{func}",
                rule.name
            );
            // The rule alone, and together with the rules that it enables.
            let after = [
                region::simplify_by(&func, &Options::default(), &[rule]),
                check(&func, &Options::default().with(rule.group), 7),
            ];
            assert!(
                after.iter().any(|after| *after != func),
                "`{}` gains nothing in {dtype}",
                rule.name
            );
            for after in &after {
                (0..8).for_each(|seed| assert_same(&func, after, 8 * i as u64 + seed));
            }
        }
    }
}

#[test]
fn names_of_rules_are_distinct() {
    let names: BTreeSet<&str> = rules::all().map(|rule| rule.name).collect();
    assert_eq!(names.len(), rules::all().count());
}

/// A slice of its whole operand with unused steps is a slice of itself, any number of times.
#[test]
fn steps_that_are_not_taken_do_not_grow() {
    let mut b = Builder::new();
    let x = b.param(TensorType::new(DType::F32, [2]));
    let one = b.slice(x, &[1], &[2], &[3]);
    let again = b.slice(one, &[0], &[1], &[usize::MAX / 2]);
    let func = b.finish("steps", vec![again]);
    let after = check(&func, &Options::all(), 7);
    assert_eq!(after.eqn_count(), 1, "{after}");
}

/// A function of one tensor.
type Case = fn(&mut Builder, Var) -> Var;

/// Rules for integers that do not hold for floats are not applied to floats.
#[test]
fn what_would_change_a_float_stays() {
    let cases: [(&str, Case); 8] = [
        ("x + 0", |b, x| {
            let zero = b.full_like(x, 0.0);
            b.add(x, zero)
        }),
        ("0 + x", |b, x| {
            let zero = b.full_like(x, 0.0);
            b.add(zero, x)
        }),
        ("x - -0", |b, x| {
            let zero = b.full_like(x, -0.0);
            b.sub(x, zero)
        }),
        ("0 - x", |b, x| {
            let zero = b.full_like(x, 0.0);
            b.sub(zero, x)
        }),
        ("x * 0", |b, x| {
            let zero = b.full_like(x, 0.0);
            b.mul(x, zero)
        }),
        ("x - x", |b, x| b.sub(x, x)),
        ("x / x", |b, x| b.div(x, x)),
        ("(x + 1) + 2", |b, x| {
            let (one, two) = (b.full_like(x, 1.0), b.full_like(x, 2.0));
            let sum = b.add(x, one);
            b.add(sum, two)
        }),
    ];
    for (name, case) in cases {
        for dtype in [DType::F32, DType::F64, DType::BF16, DType::F16] {
            let mut b = Builder::new();
            let x = b.param(TensorType::new(dtype, [3]));
            let y = case(&mut b, x);
            let func = tidy(&b.finish(name, vec![y]));
            assert_eq!(
                check(&func, &Options::all(), 3).to_string(),
                func.to_string(),
                "{name} in {dtype}"
            );
        }
    }
}

#[test]
fn ops_that_are_exact_match_xla_to_the_bit_in_all_their_samples() {
    for entry in registry::all() {
        for sample in (entry.samples)() {
            assert!(!sample.op.exact() || sample.tolerance == 0.0, "{}", entry.mnemonic);
        }
    }
}

/// Values computed at compile time are those that XLA would compute.
#[test]
fn only_exact_ops_are_folded() {
    let mut b = Builder::new();
    let x = b.constant(crate::Array::floats(DType::F32, [2, 2], &[2.0; 4]));
    let (product, log) = (b.mul(x, x), b.log(x));
    let subnormal = b.constant(crate::Array::floats(DType::F32, [], &[1e-39]));
    let doubled = b.add(subnormal, subnormal);
    let func = b.finish("constants", vec![product, log, doubled]);
    let after = check(&func, &Options::default().with(Group::Fold), 1);
    let ops: Vec<&str> = after.eqns.iter().map(|eqn| eqn.op.mnemonic()).collect();
    assert_eq!(ops.iter().filter(|op| **op == "multiply").count(), 0, "{after}");
    assert_eq!(ops.iter().filter(|op| **op == "log").count(), 1, "{after}");
    assert_eq!(ops.iter().filter(|op| **op == "add").count(), 1, "{after}");
}
