//! Tests of loops with fewer kernels.

use crate::ops::{Call, CallForm, Cond, Launched, Scan};
use crate::stablehlo::{ModuleSpec, stablehlo};
use crate::transform::{inline_calls, launch_less, settle_launched};
use crate::{Array, Builder, DType, Func, TensorType, Var};
use std::sync::Arc;

/// A loop over `[length, width]` with a carry `c -> c x + x`, or the sum of `c`'s elements with
/// them if it is `heavy`. The outputs are the carries, whole numbers and two bools.
fn looped(length: usize, width: usize, reverse: bool, heavy: bool) -> Func {
    let vector = TensorType::new(DType::F32, [width]);
    let mut inner = Builder::new();
    let [carry, x] = [(); 2].map(|()| inner.param(vector.clone()));
    let product = inner.mul(carry, x);
    let mut next = inner.add(product, x);
    if heavy {
        let sum = inner.reduce_sum(next, &[0]);
        let sums = inner.broadcast_in_dim(sum, &[width], &[]);
        next = inner.add(next, sums);
    }
    let whole = inner.convert(next, DType::I32);
    let greater = inner.compare(crate::ops::Direction::Gt, next, x);
    let less = inner.compare(crate::ops::Direction::Lt, next, x);
    let body = Arc::new(inner.finish("body", vec![next, next, whole, greater, less]));
    let mut b = Builder::new();
    let [initial, xs] = [vector.clone(), vector.stacked(length)].map(|ty| b.param(ty));
    let scan = Scan { body, length, reverse, consts: 0, carries: 1 };
    let results: Vec<Var> = b.emit(scan, &[initial, xs]);
    b.finish("looped", results)
}

/// The number of iterations of the single loop, and the number of its outputs.
fn shape(func: &Func) -> (usize, usize) {
    let scans: Vec<&Scan> = func.eqns.iter().filter_map(|eqn| eqn.op.downcast()).collect();
    assert_eq!(scans.len(), 1);
    (scans[0].length, scans[0].body.results.len() - scans[0].carries)
}

fn check(func: &Func, length: usize, width: usize, expected: (usize, usize)) {
    let less = launch_less(func);
    assert_eq!(shape(&less), expected);
    assert_eq!(launch_less(&less), less);
    let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11) as f32 * 0.3 - 1.0).collect();
    let [initial, xs]: [Vec<f32>; 2] = [width, length * width].map(numbers);
    let arguments = [
        Array::from_slice([width], &initial).expect("as many numbers"),
        Array::from_slice([length, width], &xs).expect("as many numbers"),
    ];
    assert_eq!(less.eval(&arguments), func.eval(&arguments));
}

#[test]
fn short_bodies_run_several_times_an_iteration() {
    for reverse in [false, true] {
        check(&looped(16, 3, reverse, false), 16, 3, (2, 2));
        check(&looped(10, 3, reverse, false), 10, 3, (2, 2));
        check(&looped(13, 3, reverse, false), 13, 3, (13, 2));
    }
}

#[test]
fn outputs_of_one_size_are_written_together() {
    // 32-bit numbers, and bools.
    check(&looped(16, 3, false, true), 16, 3, (16, 2));
    check(&looped(16, 1, true, true), 16, 1, (16, 2));
}

#[test]
fn large_outputs_are_written_by_themselves() {
    let width = (1 << 16) + 1;
    check(&looped(2, width, false, true), 2, width, (2, 3));
}

/// A branch that returns one number.
fn gives(value: f64) -> Arc<Func> {
    let mut b = Builder::new();
    let value = b.constant(Array::floats(DType::F32, [], &[value]));
    Arc::new(b.finish("branch", vec![value]))
}

#[test]
fn a_choice_by_the_platform_is_the_branch_that_it_takes() {
    let number = TensorType::new(DType::F32, []);
    let choice = |b: &mut Builder, choice: Var, branches: [Arc<Func>; 2]| {
        b.emit1(Cond { branches: branches.into(), rarely: false }, &[choice])
    };
    // A choice inside a branch of a choice, inside a loop, next to a choice that gets the
    // platform's value from outside.
    let inner = {
        let mut b = Builder::new();
        let launched = b.emit1(Launched {}, &[]);
        let value = choice(&mut b, launched, [gives(1.0), gives(2.0)]);
        Arc::new(b.finish("inner", vec![value]))
    };
    let body = {
        let mut b = Builder::new();
        let [outer, total] = [TensorType::scalar(DType::Bool), number].map(|ty| b.param(ty));
        let launched = b.emit1(Launched {}, &[]);
        let value = choice(&mut b, launched, [gives(10.0), inner]);
        let other = choice(&mut b, outer, [gives(100.0), gives(200.0)]);
        let total = b.add(total, value);
        let total = b.add(total, other);
        Arc::new(b.finish("body", vec![total]))
    };
    let mut b = Builder::new();
    let launched = b.emit1(Launched {}, &[]);
    let zero = b.constant(Array::floats(DType::F32, [], &[0.0]));
    let scan = Scan { body, length: 3, reverse: false, consts: 1, carries: 1 };
    let total = b.emit1(scan, &[launched, zero]);
    let func = b.finish("chosen", vec![total]);
    let run = |func: &Func| func.eval(&[])[0].get(0).float();
    assert_eq!(run(&func), 330.0);
    for (launches, expected) in [(false, 330.0), (true, 606.0)] {
        let settled = settle_launched(&func, launches);
        assert_eq!(run(&settled), expected);
        let text = settled.to_string();
        assert_eq!(text.matches("launched").count(), 0, "{text}");
        assert_eq!(text.matches("cond").count(), 1, "{text}");
    }
}

/// A loop with a call in its body.
fn calling(form: CallForm) -> Func {
    let number = TensorType::scalar(DType::F32);
    let mut b = Builder::new();
    let x = b.param(number.clone());
    let sine = b.sin(x);
    let body = Arc::new(b.finish("sine", vec![sine]));
    let mut b = Builder::new();
    let carry = b.param(number.clone());
    let next = b.emit1(Call { body, form }, &[carry]);
    let body = Arc::new(b.finish("body", vec![next]));
    let mut b = Builder::new();
    let x = b.param(number);
    let scan = Scan { body, length: 3, reverse: false, consts: 0, carries: 1 };
    let result = b.emit1(scan, &[x]);
    b.finish("fences", vec![result])
}

#[test]
fn fences_stay_calls_unless_kernels_are_launched() {
    for form in [CallForm::Fenced, CallForm::Kernel] {
        let func = calling(form);
        assert_eq!(inline_calls(&func), func);
        assert_eq!(*settle_launched(&func, false), func);
        let launched = settle_launched(&func, true);
        assert_eq!(launched.to_string().matches("call[").count(), 0);
        let x = [Array::floats(DType::F32, [], &[0.7])];
        assert_eq!(launched.eval(&x), func.eval(&x));
    }
}

#[test]
fn calls_have_the_attributes_that_xla_reads() {
    let fence = "inlineable = \"false\"";
    for (form, attributes) in [
        (CallForm::Fenced, fence.to_owned()),
        (CallForm::Kernel, format!("{fence}, xla_cpu_small_call = \"true\"")),
    ] {
        let func = calling(form);
        let text = stablehlo(&func, &ModuleSpec::new("calls", &func)).expect("a module").text;
        // XLA's CPU compiler never divides a tuple among threads.
        let call = format!(
            "func.call @sine(%arg2) {{mhlo.frontend_attributes = {{{attributes}}}}} : (tensor<f32>) -> (tensor<f32>, tensor<f32>)"
        );
        assert_eq!(text.matches(&call).count(), 1, "{text}");
    }
}
