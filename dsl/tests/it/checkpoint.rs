//! The values that `checkpoint` keeps for the backward pass, and checks that no pass restores
//! values that it drops.

use crate::helpers::{close, f32s};
use podracer_compiler::Func;
use podracer_dsl::prelude::*;

const STEPS: usize = 7;

/// The gradient through a scan, with or without `checkpoint`. The derivative of a step reads three
/// values of the step.
fn through_a_scan(save: Option<Save>) -> Traced<(Tensor, Tensor), (Tensor, Tensor)> {
    let step = |w: Tensor, h: Tensor| {
        let product = checkpoint_name("product", dot(w, h));
        product.sin().exp().tanh()
    };
    let traced = trace((f32([3, 3]), f32([3])), |(w, h)| {
        grad((w, h), |(w, h)| {
            let (last, _) = scan(h, 0..STEPS, |h, _| {
                let next = match &save {
                    Some(save) => checkpoint(save.clone(), h, |h| step(w, h)),
                    None => step(w, h),
                };
                (next, ())
            });
            last.square().sum()
        })
    });
    traced.expect("no mistake")
}

/// The types of the values that a program's loops stack.
fn stacked(func: &Func) -> Vec<String> {
    let scans = func.eqns.iter().filter(|eqn| eqn.op.mnemonic() == "scan");
    let outputs = scans.flat_map(|eqn| &eqn.outputs).map(|&var| func.ty(var));
    let stacks = outputs.filter(|ty| ty.shape.first() == Some(&STEPS));
    stacks.map(ToString::to_string).collect()
}

/// Number of an op's equations in a program, bodies included.
fn count(func: &Func, mnemonic: &str) -> usize {
    let one = |eqn: &podracer_compiler::Eqn| {
        let attributes = eqn.op.attributes();
        let bodies = attributes.funcs().into_iter().map(|body| count(body, mnemonic));
        usize::from(eqn.op.mnemonic() == mnemonic) + bodies.sum::<usize>()
    };
    func.eqns.iter().map(one).sum()
}

#[test]
fn a_scan_stacks_what_the_policy_keeps() {
    let stacks = |save| stacked(through_a_scan(save).func()).len();
    // Per step: the carry, the product under sin, the exponential, the tanh.
    let everything = stacks(None);
    assert!(everything >= 4, "{everything}");
    assert_eq!(stacks(Some(Save::Everything)), everything);
    // The carry alone; the carry and the product.
    assert_eq!(stacks(Some(Save::Nothing)), 1);
    assert_eq!(stacks(Some(Save::Dots)), 2);
    assert_eq!(stacks(Some(Save::Names(vec!["product".to_string()]))), 2);
    assert_eq!(stacks(Some(Save::Names(vec!["other".to_string()]))), 1);
}

#[test]
fn gradients_are_the_same_to_the_bit() {
    let arguments = [
        f32s(&[3, 3], &[0.3, -0.2, 0.5, 0.1, 0.4, -0.6, 0.2, 0.7, -0.1]),
        f32s(&[3], &[0.5, -1.0, 0.25]),
    ];
    let run = |save| through_a_scan(save).eval(&arguments).expect("arguments fit");
    let plain = run(None);
    for save in [Save::Everything, Save::Nothing, Save::Dots] {
        assert_eq!(run(Some(save)), plain);
    }
}

/// Without a loop both computations are in one function, where equal computations are merged, by
/// this compiler or by XLA.
#[test]
fn equal_subexpressions_are_not_merged_across_the_barrier() {
    let program = |save: Option<Save>| {
        let traced = trace(f32([3]), |x| {
            let layer = |x: Tensor| x.sin().exp().tanh();
            grad(x, |x| match &save {
                Some(save) => checkpoint(save.clone(), x, layer).sum(),
                None => layer(x).sum(),
            })
        });
        let traced = traced.expect("no mistake");
        (count(traced.func(), "exponential"), count(traced.func(), "optimization_barrier"))
    };
    assert_eq!(program(None), (1, 0));
    // The value is no result, so that only the backward pass computes it.
    assert_eq!(program(Some(Save::Nothing)), (1, 1));
    let both = trace(f32([3]), |x| {
        value_and_grad(x, |x| checkpoint(Save::Nothing, x, |x| x.sin().exp().tanh()).sum())
    });
    let both = both.expect("no mistake");
    assert_eq!(count(both.func(), "exponential"), 2, "{both}");
    // The cotangent passes the barrier too: nothing is computed before the backward pass arrives.
    let barrier = both.func().eqns.iter().find(|eqn| eqn.op.mnemonic() == "optimization_barrier");
    assert_eq!(barrier.map(|eqn| eqn.inputs.len()), Some(2), "{both}");
}

#[test]
fn nothing_is_left_where_nothing_is_differentiated() {
    let program = |wrapped: bool| {
        let traced = trace((f32([3]), f32([])), |(x, c)| {
            let f = |x: Tensor| checkpoint_name("product", x * c).sin();
            if wrapped {
                let y = checkpoint(Save::Nothing, x, f);
                let y = custom_jvp(y, |y| y.exp(), |y, dy| (y.exp(), dy));
                custom_vjp(y, |y| (y.tanh(), y), |_, ct| ct)
            } else {
                (x * c).sin().exp().tanh()
            }
        });
        traced.expect("no mistake").to_string()
    };
    assert_eq!(program(true), program(false));
}

#[test]
fn captured_tensors_have_gradients_too() {
    let traced = trace((f32([2]), f32([])), |(x, c)| {
        grad(c, |c| vmap(x, |x| checkpoint(Save::Nothing, x, |x| (x * c).sin())).sum())
    });
    let results = traced.expect("no mistake").eval(&[f32s(&[2], &[0.5, -1.0]), f32s(&[], &[2.0])]);
    let expected = 0.5 * 1f64.cos() - 2f64.cos();
    close(&results.expect("arguments fit")[0], &[expected], 1e-6);
}
