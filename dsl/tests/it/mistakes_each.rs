//! One test for each mistake: what is told, whole, and the place that it is told of.

use crate::helpers::errors;
use podracer_dsl::prelude::*;

const SOURCE: &str = include_str!("mistakes_each.rs");

/// Checks that there is one report, its text, and the source text at its place.
#[track_caller]
fn check_report(report: &TraceErrors, text: &str, at: &str) {
    assert_eq!(report.errors.len(), 1, "{report}");
    let error = &report.errors[0];
    let op = if error.op.is_empty() {
        String::new()
    } else {
        format!("{}: ", error.op)
    };
    assert_eq!(format!("{op}{}", error.message), text);
    let (file, line, column) = error.loc.parts().unwrap_or((file!(), 1, 1));
    assert_eq!(file, file!(), "{report}");
    let line = SOURCE.lines().nth(line as usize - 1).unwrap_or_default();
    let found = &line[column as usize - 1..];
    assert!(
        found.starts_with(at),
        "told of `{found}`, not of `{at}`: {report}"
    );
}

#[test]
fn matrices_of_the_wrong_order() {
    let report = errors((f32([2, 3]), f32([2, 3])), |(x, y)| dot(x, y));
    check_report(
        &report,
        "dot: f32[2,3] and f32[2,3] do not multiply (axis 1 of the left against axis 0 of the right)",
        "dot(x, y",
    );
}

#[test]
fn matmul_of_scalars() {
    let report = errors((f32([]), f32([3])), |(x, y)| matmul(x, y));
    check_report(
        &report,
        "matmul: f32[] and f32[3] must both have axes: scale with `*`",
        "matmul(x, y",
    );
}

#[test]
fn dot_of_different_dtypes() {
    let report = errors((f32([3]), i32([3])), |(x, y)| dot(x, y));
    check_report(
        &report,
        "dot: f32[3] and i32[3] must have one dtype: cast one of them",
        "dot(x, y",
    );
}

#[test]
fn two_float_types() {
    let report = errors((f32([3]), bf16([3])), |(x, y)| x * y);
    check_report(
        &report,
        "multiply: operands must have one dtype, got f32 and bf16: cast one of them",
        "x * y",
    );
}

#[test]
fn an_integer_and_a_float() {
    let report = errors((f32([3]), i32([3])), |(x, n)| x - n);
    check_report(
        &report,
        "subtract: operands must have one dtype, got f32 and i32: cast one of them",
        "x - n",
    );
}

#[test]
fn two_widths_of_integers() {
    let report = errors((i32([]), i64([])), |(x, n)| x + n);
    check_report(
        &report,
        "add: operands must have one dtype, got i32 and i64: cast one of them",
        "x + n",
    );
}

#[test]
fn a_bool_as_a_number() {
    let report = errors((f32([3]), bool([3])), |(x, p)| x * p);
    check_report(
        &report,
        "multiply: operands must have one dtype, got f32 and bool: cast one of them",
        "x * p",
    );
}

#[test]
fn a_float_literal_beside_an_integer() {
    let report = errors(i32([3]), |n| n * 0.5);
    check_report(
        &report,
        "multiply: the literal 0.5 does not become an integer: cast the i32 tensor with `.astype(F32)`",
        "n * 0.5",
    );
}

#[test]
fn an_integer_that_is_too_large() {
    let report = errors(u8([]), |n| n + 256);
    check_report(
        &report,
        "add: 256 is outside of u8's range [0, 255]",
        "n + 256",
    );
}

#[test]
fn a_negative_literal_beside_unsigned() {
    let report = errors(u32([]), |n| n.maximum(-1));
    check_report(
        &report,
        "maximum: -1 is outside of u32's range [0, 4294967295]",
        "maximum(-1",
    );
}

#[test]
fn a_number_beside_a_bool() {
    let report = errors(bool([]), |p| p & 1);
    check_report(
        &report,
        "and: the literal 1 does not become a bool: compare the tensor, or cast it",
        "p & 1",
    );
}

#[test]
fn an_exponential_of_integers() {
    let report = errors(i32([]), |n| n.exp());
    check_report(
        &report,
        "exponential: expected floats, got i32: convert it first",
        "exp(",
    );
}

#[test]
fn a_mean_of_integers() {
    let report = errors(i32([3]), |n| n.mean());
    check_report(
        &report,
        "mean: expected floats, got i32[3]: cast with `.astype(F32)`",
        "mean(",
    );
}

#[test]
fn bits_of_floats() {
    let report = errors(f32([]), |x| x & x);
    check_report(
        &report,
        "and: expected bools or integers, got f32: convert it first",
        "x & x",
    );
}

#[test]
fn a_shift_of_floats() {
    let report = errors(f32([]), |x| x << 1);
    check_report(
        &report,
        "shift_left: expected integers, got f32: convert it first",
        "x << 1",
    );
}

#[test]
fn negating_a_bool() {
    let report = errors(bool([]), |p| -p);
    check_report(
        &report,
        "negate: expected numbers, got bool: convert it first",
        "-p",
    );
}

#[test]
fn not_of_a_float() {
    let report = errors(f32([]), |x| !x);
    check_report(
        &report,
        "not: expected bools or integers, got f32: convert it first",
        "!x",
    );
}

#[test]
fn a_sum_over_an_axis_that_is_not_there() {
    let report = errors(f32([3, 4]), |x| x.sum_axis(2));
    check_report(
        &report,
        "sum_axis: axis 2 is outside of rank 2",
        "sum_axis(2",
    );
}

#[test]
fn a_sum_over_an_axis_twice() {
    let report = errors(f32([3, 4]), |x| x.sum_axis([0, 0]));
    check_report(
        &report,
        "sum_axis: axis 0 is named twice",
        "sum_axis([0, 0]",
    );
}

#[test]
fn a_softmax_of_a_scalar() {
    let report = errors(f32([]), |x| x.softmax(-1));
    check_report(
        &report,
        "softmax: axis -1 is outside of rank 0",
        "softmax(-1",
    );
}

#[test]
fn an_argmax_of_bools() {
    let report = errors(bool([3]), |p| p.argmax(0));
    check_report(
        &report,
        "argmax: expected numbers, got bool[3]: convert bools to an integer",
        "argmax(0",
    );
}

#[test]
fn reshaping_to_another_size() {
    let report = errors(f32([3, 4]), |x| x.reshape([5, 2]));
    check_report(
        &report,
        "reshape: f32[3,4] has 12 elements, f32[5,2] has 10",
        "reshape([5, 2]",
    );
}

#[test]
fn transposing_with_a_repeated_axis() {
    let report = errors(f32([3, 4]), |x| x.permute([0, 0]));
    check_report(
        &report,
        "permute: [0, 0] is not an order of the 2 axes of f32[3,4]",
        "permute([0, 0]",
    );
}

#[test]
fn a_permutation_of_the_wrong_length() {
    let report = errors(f32([3, 4]), |x| x.permute([0]));
    check_report(
        &report,
        "permute: [0] is not an order of the 2 axes of f32[3,4]",
        "permute([0]",
    );
}

#[test]
fn squeezing_an_axis_of_three() {
    let report = errors(f32([3, 1]), |x| x.squeeze(0));
    check_report(
        &report,
        "squeeze: axis 0 of f32[3,1] has extent 3, not 1",
        "squeeze(0",
    );
}

#[test]
fn expanding_beyond_the_rank() {
    let report = errors(f32([3]), |x| x.expand_dims(3));
    check_report(
        &report,
        "expand_dims: axis 3 is outside of rank 2",
        "expand_dims(3",
    );
}

#[test]
fn broadcasting_down() {
    let report = errors(f32([3, 4]), |x| x.broadcast_to([4]));
    check_report(
        &report,
        "broadcast_to: f32[3,4] does not broadcast to f32[4]",
        "broadcast_to([4]",
    );
}

#[test]
fn concatenating_different_shapes() {
    let report = errors((f32([2, 3]), f32([2, 4])), |(x, y)| concatenate(&[x, y], 0));
    check_report(
        &report,
        "concatenate: operands must agree in dtype and in all axes but 0, got f32[2,3] and f32[2,4]",
        "concatenate(&[x, y], 0",
    );
}

#[test]
fn concatenating_nothing() {
    let report = errors((), |()| concatenate(&[], 0));
    check_report(
        &report,
        "concatenate: expected at least one tensor",
        "concatenate(&[], 0",
    );
}

#[test]
fn concatenating_different_dtypes() {
    let report = errors((f32([2]), i32([2])), |(x, y)| concatenate(&[x, y], 0));
    check_report(
        &report,
        "concatenate: operands must agree in dtype and in all axes but 0, got f32[2] and i32[2]",
        "concatenate(&[x, y], 0",
    );
}

#[test]
fn stacking_different_shapes() {
    let report = errors((f32([2]), f32([3])), |(x, y)| stack(&[x, y], 0));
    check_report(
        &report,
        "stack: expected tensors of one type, got f32[2] and f32[3]",
        "stack(&[x, y], 0",
    );
}

#[test]
fn splitting_unevenly() {
    let report = errors(f32([5]), |x| x.split(2, 0));
    check_report(
        &report,
        "split: axis 0 of f32[5] has extent 5, which is no multiple of 2",
        "split(2, 0",
    );
}

#[test]
fn padding_with_too_few_pairs() {
    let report = errors(f32([2, 3]), |x| x.pad(&[(1, 1)], 0.0));
    check_report(
        &report,
        "pad: expected 2 pairs, one for each axis of f32[2,3], got 1",
        "pad(&[(1, 1)], 0.0",
    );
}

#[test]
fn an_index_out_of_range() {
    let report = errors(f32([3]), |x| x.index(3));
    check_report(
        &report,
        "index: position 3 is outside of axis 0 of f32[3]",
        "index(3",
    );
}

#[test]
fn an_index_of_a_scalar() {
    let report = errors(f32([]), |x| x.index(0));
    check_report(&report, "index: axis 0 is outside of rank 0", "index(0");
}

#[test]
fn a_slice_out_of_range() {
    let report = errors(f32([3]), |x| x.slice_axis(0, 1..5));
    check_report(
        &report,
        "slice: 1..5 is not a part of axis 0 of f32[3]",
        "slice_axis(0, 1..5",
    );
}

#[test]
fn a_slice_backwards() {
    let report = errors(f32([3]), |x| x.slice_axis(0, 2..1));
    check_report(
        &report,
        "slice: 2..1 is not a part of axis 0 of f32[3]",
        "slice_axis(0, 2..1",
    );
}

#[test]
fn taking_with_floats() {
    let report = errors((f32([3]), f32([2])), |(x, i)| x.take(i, 0));
    check_report(
        &report,
        "take: expected integer indices, got f32[2]: cast with `.astype(I32)`",
        "take(i, 0",
    );
}

#[test]
fn setting_with_another_shape() {
    let report = errors(f32([3, 2]), |x| x.set(0, constant([1.0, 2.0, 3.0])));
    check_report(
        &report,
        "set: f32[3] does not broadcast to a slice, f32[2]",
        "set(0, constant([1.0, 2.0, 3.0])",
    );
}

#[test]
fn a_one_hot_of_floats() {
    let report = errors(f32([3]), |x| one_hot(x, 4));
    check_report(
        &report,
        "one_hot: expected an integer index, got f32[3]",
        "one_hot(x, 4",
    );
}

#[test]
fn selecting_with_numbers() {
    let report = errors((f32([3]), f32([3])), |(p, x)| select(p, x, 0.0));
    check_report(
        &report,
        "select: expected a bool predicate, got f32[3]: compare it with something",
        "select(p, x, 0.0",
    );
}

#[test]
fn selecting_between_types() {
    let report = errors((bool([]), f32([]), i32([])), |(p, x, n)| select(p, x, n));
    check_report(
        &report,
        "select: both branches must have one type, got f32[] and i32[]",
        "select(p, x, n",
    );
}

#[test]
fn a_triangle_of_a_vector() {
    let report = errors(f32([3]), |x| x.tril(0));
    check_report(
        &report,
        "tril: expected at least 2 axes, got f32[3]",
        "tril(0",
    );
}

#[test]
fn too_many_top_values() {
    let report = errors(f32([3]), |x| x.top_k(4).0);
    check_report(
        &report,
        "top_k: f32[3] has no 4 elements along its last axis",
        "top_k(4).0",
    );
}

#[test]
fn a_clamp_of_another_type() {
    let report = errors((f32([3]), i32([])), |(x, n)| x.clamp(n, 1.0));
    check_report(
        &report,
        "clamp: expected the lower bound to be a scalar f32 or to have the operand's type f32[3], got i32[3]",
        "clamp(n, 1.0",
    );
}

#[test]
fn a_predicate_that_is_a_number() {
    let report = errors(f32([]), |x| cond(x, || x, || -x));
    check_report(
        &report,
        "cond: the predicate must be bool[], got f32[] (for one choice per element use `select`)",
        "cond(x, || x, || -x",
    );
}

#[test]
fn branches_of_different_types() {
    let report = errors((bool([]), f32([])), |(p, x)| {
        cond(p, || x, || x.astype(I32))
    });
    check_report(
        &report,
        "cond: branches differ at `result`: `true` gives f32[], `false` gives i32[]",
        "cond(p, || x, || x.astype(I32))",
    );
}

#[test]
fn a_switch_on_a_float() {
    let report = errors(f32([]), |x| switch(x, 2, |i| x * i as f64));
    check_report(
        &report,
        "switch: the index must be i32[], got f32[]: cast with `.astype(I32)`",
        "switch(x, 2, |i| x * i as f64",
    );
}

#[test]
fn a_switch_without_branches() {
    let report = errors(i32([]), |i| switch(i, 0, |_| i));
    check_report(
        &report,
        "switch: expected at least one branch",
        "switch(i, 0, |_| i",
    );
}

#[test]
fn switch_branches_that_differ() {
    let report = errors(i32([]), |i| {
        switch(i, 3, |b| {
            if b == 1 {
                ones(F32, [2])
            } else {
                ones(F32, [3])
            }
        })
    });
    check_report(
        &report,
        "switch: branches differ at `result`: `branch 2` gives f32[3], `branch 1` gives f32[2]",
        "switch(i, 3, |b| {",
    );
}

#[test]
fn a_carry_of_another_dtype() {
    let report = errors(f32([3]), |x| {
        scan(0, x, |sum, x| ((sum.astype(F32) + x).exp(), ())).0
    });
    check_report(
        &report,
        "scan: carry changed type at `carry`: i32[] going in, f32[] coming out",
        "exp(), ())).0",
    );
}

#[test]
fn a_carry_of_another_shape() {
    let report = errors(f32([3, 2]), |x| scan(0.0, x, |sum, x| (sum + x, ())).0);
    check_report(
        &report,
        "scan: carry changed type at `carry`: f32[] going in, f32[2] coming out",
        "sum + x, ())).0",
    );
}

#[test]
fn a_scan_over_a_scalar() {
    let report = errors(f32([]), |x| scan(0.0, x, |sum, x| (sum + x, ())).0);
    check_report(
        &report,
        "scan: `xs` is a scalar, f32[]: it has no axis to go over (use `whole(..)` or capture it)",
        "scan(0.0, x, |sum, x| (sum + x, ())).0",
    );
}

#[test]
fn a_scan_over_lengths_that_differ() {
    let report = errors((f32([3]), f32([4])), |(x, y)| {
        scan(0.0, (x, y), |sum, (x, y)| (sum + x * y, ())).0
    });
    check_report(
        &report,
        "scan: lengths differ: `xs.0` has 3, `xs.1` has 4 (f32[4])",
        "scan(0.0, (x, y), |sum, (x, y)| (sum + x * y, ())).0",
    );
}

#[test]
fn a_fori_loop_that_changes_its_carry() {
    let report = errors(f32([]), |x| fori_loop(0..3, x, |i, _| i));
    check_report(
        &report,
        "fori_loop: carry changed type at `carry`: f32[] going in, i32[] coming out",
        "fori_loop(0..3, x, |i, _| i",
    );
}

#[test]
fn a_while_condition_that_is_no_bool() {
    let report = errors(f32([]), |x| while_loop(x, |x| x, |x| x * 2.0));
    check_report(
        &report,
        "while_loop: the condition must be bool[], got f32[]",
        "while_loop(x, |x| x, |x| x * 2.0",
    );
}

#[test]
fn a_while_carry_that_changes() {
    let report = errors(f32([]), |x| {
        while_loop(x, |x| x.lt(3.0), |x| x.expand_dims(0))
    });
    check_report(
        &report,
        "while_loop: carry changed type at `carry`: f32[] going in, f32[1] coming out",
        "expand_dims(0))",
    );
}

#[test]
fn mapping_over_different_lengths() {
    let report = errors((f32([3]), f32([4])), |(x, y)| vmap((x, y), |(x, y)| x + y));
    check_report(
        &report,
        "vmap: lengths differ: `xs.0` has 3, `xs.1` has 4 (f32[4])",
        "vmap((x, y), |(x, y)| x + y",
    );
}

#[test]
fn mapping_over_a_scalar() {
    let report = errors(f32([]), |x| vmap(x, |x| x));
    check_report(
        &report,
        "vmap: `xs` is a scalar, f32[]: it has no axis to go over (use `whole(..)` or capture it)",
        "vmap(x, |x| x",
    );
}

#[test]
fn mapping_over_an_axis_that_is_not_there() {
    let report = errors(f32([3, 4]), |x| vmap(x.axis(2), |x| x));
    check_report(
        &report,
        "move_axis: axis 2 is outside of rank 2",
        "vmap(x.axis(2), |x| x",
    );
}

#[test]
fn mapping_batches_of_nothing() {
    let report = errors(f32([3]), |x| map_batched(x, 0, |x| x));
    check_report(
        &report,
        "map_batched: a batch must have at least one item, got 0",
        "map_batched(x, 0, |x| x",
    );
}

#[test]
fn an_out_axis_that_is_not_there() {
    let report = errors(f32([3, 4]), |x| out_axis(vmap(x, |x| x), 2));
    check_report(
        &report,
        "move_axis: axis 2 is outside of rank 2",
        "out_axis(vmap(x, |x| x), 2",
    );
}

#[test]
fn a_combination_of_another_shape() {
    let report = errors(f32([4, 2]), |x| associative_scan(x, |a, b| (a * b).sum()));
    check_report(
        &report,
        "associative_scan: changed type at `element`: f32[2] going in, f32[] coming out",
        "sum()",
    );
}

#[test]
fn a_gradient_of_a_vector() {
    let report = errors(f32([3]), |x| grad(x, |x| x * x));
    check_report(
        &report,
        "grad: the loss must be a float scalar, got f32[3]: take its mean or sum",
        "x * x",
    );
}

#[test]
fn a_gradient_of_an_integer_loss() {
    let report = errors(f32([3]), |x| grad(x, |x| x.sum().astype(I32)));
    check_report(
        &report,
        "grad: the loss must be a float scalar, got i32[]: take its mean or sum",
        "astype(I32)",
    );
}

#[test]
fn a_gradient_by_integers() {
    let report = errors(i32([3]), |n| grad(n, |n| n.astype(F32).sum()));
    check_report(
        &report,
        "grad: `argument` is i32[3]: only floats have gradients; capture it, or return it beside the loss",
        "grad(n, |n| n.astype(F32).sum()",
    );
}

#[test]
fn a_gradient_of_a_while_loop() {
    let report = errors(f32([]), |x| {
        grad(x, |x| while_loop(x, |x| x.lt(9.0), |x| x * x))
    });
    check_report(
        &report,
        "grad: `while` cannot be differentiated so: a loop of unknown length cannot run backward; use `scan` or `fori_loop` with a fixed number of steps, or `jvp` for forward mode",
        "grad(x, |x| while_loop(x, |x| x.lt(9.0), |x| x * x))",
    );
}

#[test]
fn a_tangent_of_another_shape() {
    let report = errors(f32([3]), |x| jvp(x, zeros(F32, [2]), |x| x.exp()).1);
    check_report(
        &report,
        "jvp: the tangent must be like the argument; it changed type at `tangent`: f32[3] going in, f32[2] coming out",
        "jvp(x, zeros(F32, [2]), |x| x.exp()).1",
    );
}

#[test]
fn a_cotangent_of_another_shape() {
    let report = errors(f32([3]), |x| vjp(x, |x| x.exp()).1(zeros(F32, [2])));
    check_report(
        &report,
        "vjp: the cotangent must be like the result; it changed type at `cotangent`: f32[3] going in, f32[2] coming out",
        "vjp(x, |x| x.exp()).1(zeros(F32, [2])",
    );
}

#[test]
fn a_custom_rule_of_another_shape() {
    let report = errors(f32([3]), |x| {
        custom_jvp(x, |x| x.exp(), |x, dx| (x.exp(), dx.sum()))
    });
    check_report(
        &report,
        "custom_jvp: `rule(..).1` must be f32[3], got f32[]",
        "sum()))",
    );
}

#[test]
fn a_custom_value_of_another_type() {
    let report = errors(f32([3]), |x| {
        custom_jvp(x, |x| x.exp(), |x, dx| (x.astype(I32), dx))
    });
    check_report(
        &report,
        "custom_jvp: `rule(..).0` must be f32[3], got i32[3]",
        "astype(I32), dx))",
    );
}

#[test]
fn a_custom_rule_that_is_not_linear() {
    let report = errors(f32([]), |x| {
        grad(x, |x| {
            custom_jvp(x, |x| x.exp(), |x, dx| (x.exp(), dx * dx))
        })
    });
    check_report(
        &report,
        "grad: `custom_jvp` cannot be differentiated so: the tangent that its rule gives is not linear in the tangents that it takes, or its value depends on them",
        "grad(x, |x| {",
    );
}

#[test]
fn a_cotangent_not_like_the_argument() {
    let report = errors(f32([3]), |x| custom_vjp(x, |x| (x.sum(), ()), |(), ct| ct));
    check_report(
        &report,
        "custom_vjp: `backward(..)` must be f32[3], got f32[]",
        "custom_vjp(x, |x| (x.sum(), ()), |(), ct| ct",
    );
}

#[test]
fn forward_mode_of_a_custom_pass_back() {
    let report = errors(f32([]), |x| {
        jvp(x, x, |x| custom_vjp(x, |x| (x, ()), |(), ct| ct)).1
    });
    check_report(
        &report,
        "jvp: `custom_vjp` cannot be differentiated so: it has a reverse derivative only; use `custom_jvp`, whose rule serves forward and reverse mode",
        "jvp(x, x, |x| custom_vjp(x, |x| (x, ()), |(), ct| ct)).1",
    );
}

#[test]
fn linearizing_a_custom_pass_back() {
    let report = errors(f32([]), |x| {
        linearize(x, |x| custom_vjp(x, |x| (x, ()), |(), ct| ct)).1(x)
    });
    check_report(
        &report,
        "linearize: `custom_vjp` cannot be differentiated so: it has a reverse derivative only; use `custom_jvp`, whose rule serves forward and reverse mode",
        "linearize(x, |x| custom_vjp(x, |x| (x, ()), |(), ct| ct)).1(",
    );
}

#[test]
fn a_custom_rule_that_captures() {
    let report = errors(f32([]), |x| {
        grad(x, |x| custom_vjp(1.0, |y| (y * x, y), |y, ct| ct * y * x))
    });
    check_report(
        &report,
        "grad: `custom_vjp` cannot be differentiated so: a tensor that its closures capture is differentiated, and the rule says nothing of it; pass it among the arguments",
        "grad(x, |x| custom_vjp(1.0, |y| (y * x, y), |y, ct| ct * y *",
    );
}

#[test]
fn a_captured_tensor_in_a_custom_rule() {
    let report = errors(f32([]), |x| {
        grad(x, |x| custom_jvp(1.0, |y| y * x, |y, dy| (y * x, dy * x)))
    });
    check_report(
        &report,
        "grad: `custom_jvp` cannot be differentiated so: a tensor that its closures capture is differentiated, and the rule says nothing of it; pass it among the arguments",
        "grad(x, |x| custom_jvp(1.0, |y| y * x, |y, dy| (y * x, dy * ",
    );
}

#[test]
fn a_sum_over_an_unknown_axis() {
    let report = errors(f32([]), |x| psum(x, "batch"));
    check_report(
        &report,
        "psum: there is no axis `batch` around: name one with `vmap_named(\"batch\", ..)`",
        "psum(x, \"batch\"",
    );
}

#[test]
fn a_mean_of_counts_over_an_axis() {
    let report = errors(i32([3]), |n| vmap_named("batch", n, |n| pmean(n, "batch")));
    check_report(
        &report,
        "pmean: `argument` is i32[]: only floats have a mean; cast with `.astype(F32)`",
        "pmean(n, \"batch\")",
    );
}

#[test]
fn gathering_from_an_unknown_number_of_replicas() {
    let report = errors(f32([]), |x| all_gather(x, Replicas));
    check_report(
        &report,
        "all_gather: the number of replicas is not known here: trace with `trace_replicated`",
        "all_gather(x, Replicas",
    );
}

#[test]
fn a_permutation_of_members_that_are_not_there() {
    let report = errors(f32([3]), |x| {
        vmap_named("ring", x, |x| ppermute(x, "ring", &[(0, 3)]))
    });
    check_report(
        &report,
        "ppermute: there is no member 3: the axis `ring` has 3",
        "ppermute(x, \"ring\", &[(0, 3)]))",
    );
}

#[test]
fn a_permutation_with_two_senders() {
    let report = errors(f32([3]), |x| {
        vmap_named("ring", x, |x| ppermute(x, "ring", &[(0, 1), (2, 1)]))
    });
    check_report(
        &report,
        "collective_permute: member 1 is a target twice",
        "ppermute(x, \"ring\", &[(0, 1), (2, 1)]))",
    );
}

#[test]
fn a_key_captured_by_a_loop() {
    let report = errors(key(), |k| {
        scan(0.0, 0..3, |sum, _| (sum + k.normal([]), ())).0
    });
    check_report(
        &report,
        "key: a key from outside is used in the body of `scan`: every round draws the same numbers; pass `key.split_n(n)` to `scan`, carry it, or `fold_in` the index (`key.again()` if the same numbers are meant)",
        "normal([]), ())).0",
    );
}

#[test]
fn a_stack_of_keys_as_one() {
    let report = errors(key(), |k| vmap(k.split_n(2), |k| k).normal([]));
    check_report(
        &report,
        "key: expected one key, u32[2], got u32[2,2]: go over a stack of keys with `vmap` or `scan`",
        "normal([]",
    );
}

#[test]
fn a_key_of_the_wrong_words() {
    let report = errors(u32([3]), |words| Key::from_words(words).normal([]));
    check_report(
        &report,
        "Key::from_words: expected u32[2], got u32[3]",
        "Key::from_words(words).normal([]",
    );
}

#[test]
fn a_row_of_another_extent() {
    let report = errors((f32([3, 4]), f32([3])), |(x, y)| x + y);
    check_report(
        &report,
        "add: f32[3,4] and f32[3] do not broadcast (axis 1: 4 against 3)",
        "x + y",
    );
}

#[test]
fn six_axes_for_three() {
    let report = errors(f32([2, 3]), |x| x.reshape([2, 3, 0]));
    check_report(
        &report,
        "reshape: f32[2,3] has 6 elements, f32[2,3,0] has 0",
        "reshape([2, 3, 0]",
    );
}

#[test]
fn folding_in_a_float() {
    let report = errors((key(), f32([])), |(k, x)| k.fold_in(x).normal([]));
    check_report(
        &report,
        "fold_in: expected an integer scalar, got f32[]",
        "fold_in(x).normal([]",
    );
}

#[test]
fn a_seed_that_is_a_float() {
    let report = errors(f32([]), |x| Key::new(x).normal([]));
    check_report(
        &report,
        "Key::new: expected an integer scalar as the seed, got f32[]",
        "Key::new(x).normal([]",
    );
}

#[test]
fn a_uniform_of_integers() {
    let report = errors(key(), |k| k.uniform_of(I32, [3]));
    check_report(
        &report,
        "uniform: expected a float type, got i32",
        "uniform_of(I32, [3]",
    );
}

#[test]
fn a_choice_of_nothing() {
    let report = errors((key(), f32([0])), |(k, x)| k.choice(x, [2]));
    check_report(
        &report,
        "choice: expected at least one item, got f32[0]",
        "choice(x, [2]",
    );
}

#[test]
fn more_distinct_choices_than_items() {
    let report = errors((key(), f32([2])), |(k, x)| k.choice_distinct(x, 3));
    check_report(
        &report,
        "choice_distinct: expected at least 3 items, got f32[2]",
        "choice_distinct(x, 3",
    );
}

#[test]
fn weights_for_other_items() {
    let report = errors((key(), f32([3]), f32([2])), |(k, x, w)| {
        k.choice_weighted(x, w, [])
    });
    check_report(
        &report,
        "choice_weighted: expected one float weight for each item, got f32[2] for f32[3]",
        "choice_weighted(x, w, [])",
    );
}

#[test]
fn logits_that_are_integers() {
    let report = errors((key(), i32([3])), |(k, x)| k.categorical(x));
    check_report(
        &report,
        "categorical: expected float logits with an axis of choices, got i32[3]",
        "categorical(x",
    );
}

#[test]
fn a_probability_that_is_an_integer() {
    let report = errors((key(), i32([])), |(k, p)| k.bernoulli([3], p));
    check_report(
        &report,
        "bernoulli: expected a float probability, got i32[]",
        "bernoulli([3], p",
    );
}

#[test]
fn a_gamma_of_a_vector_of_integers() {
    let report = errors((key(), i32([3])), |(k, a)| k.gamma([3], a));
    check_report(
        &report,
        "gamma: expected f32 parameters, got i32[3]",
        "gamma([3], a",
    );
}

#[test]
fn concentrations_without_an_axis() {
    let report = errors((key(), f32([])), |(k, a)| k.dirichlet([3], a));
    check_report(
        &report,
        "dirichlet: expected concentrations along an axis, got f32[]",
        "dirichlet([3], a",
    );
}

#[test]
fn a_check_of_a_number() {
    let report = errors(f32([]), |x| collect(|| check(x, "wrong", ())).1);
    check_report(
        &report,
        "check: the condition must be bool, got f32[]",
        "check(x, \"wrong\", ())).1",
    );
}

#[test]
fn a_message_with_too_few_values() {
    let report = errors(f32([]), |x| collect(|| debug_print("{} and {}", x)).1);
    check_report(
        &report,
        "debug_print: the message has 2 `{}`, got 1 values",
        "debug_print(\"{} and {}\", x)).1",
    );
}
