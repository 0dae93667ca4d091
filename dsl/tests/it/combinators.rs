//! vmap, loops, branches, subroutines, collectives: values, captures, nesting.

use crate::helpers::{close, f32s, i32s, run, run_on};
use podracer_dsl::prelude::*;

#[test]
fn vmap_goes_over_axes_and_captures() {
    let x = f32s(&[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let results = run_on((f32([2, 3]), f32([])), &[x, f32s(&[], &[10.0])], |(x, c)| {
        let rows = vmap(x, |row| row.sum() + c);
        let columns = vmap(x.axis(1), |column| column.sum() * c);
        let both = vmap((x, whole(c), 0..2), |(row, c, i)| row.index(0) + c + i.astype(F32));
        let constant_result = vmap(x, |_| c);
        let nested = vmap(x, |row| vmap(row, |x| x * c + row.sum()));
        let outer_product = vmap(x.index(0), |a| vmap(x.index(1), |b| a * b));
        (rows, columns, both, constant_result, nested, outer_product)
    });
    close(&results[0], &[16.0, 25.0], 0.0);
    close(&results[1], &[50.0, 70.0, 90.0], 0.0);
    close(&results[2], &[11.0, 15.0], 0.0);
    close(&results[3], &[10.0, 10.0], 0.0);
    close(&results[4], &[16., 26., 36., 55., 65., 75.], 0.0);
    close(&results[5], &[4., 5., 6., 8., 10., 12., 12., 15., 18.], 0.0);
}

#[test]
fn scans() {
    let results = run_on(f32([3]), &[f32s(&[3], &[1., 2., 3.])], |x| {
        let c = x.sum();
        let forward = scan(0.0, x, |sum, x| (sum + x, sum * c));
        let backward = scan_reverse(0.0, x, |sum, x| (sum + x, sum));
        let rev_twice = scan_reverse(0, rev((x, 0..3)), |last, (_, i)| (i, last));
        let counted = scan((0, 1.0), 1..4, |(n, y), i| ((n + i, y * i.astype(F32)), ()));
        let mapped = map((x, 0..3), |(x, i)| x * i.astype(F32));
        (forward, backward, rev_twice, counted.0, mapped)
    });
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(
        values,
        [
            vec![6.0],
            vec![0.0, 6.0, 18.0],
            vec![6.0],
            vec![5.0, 3.0, 0.0],
            vec![2.0],
            vec![0.0, 0.0, 1.0],
            vec![6.0],
            vec![6.0],
            vec![0.0, 2.0, 6.0]
        ]
    );
}

#[test]
fn loops() {
    let results = run_on((f32([]), i32([])), &[f32s(&[], &[3.0]), i32s(&[], &[4])], |(x, n)| {
        let power = fori_loop(0..3, 1.0, |_, y| y * x);
        let (count, _) = while_loop((0, 1.0), |(i, _)| i.lt(n), |(i, y)| (i + 1, y * x));
        let doubled = while_loop(x, |y| y.lt(20.0), |y| y * 2.0);
        (power, count, doubled)
    });
    close(&results[0], &[27.0], 0.0);
    assert_eq!(results[1], i32s(&[], &[4]));
    close(&results[2], &[24.0], 0.0);
}

#[test]
fn branches_share_what_they_capture() {
    let results = run_on(
        (f32([]), f32([]), i32([])),
        &[f32s(&[], &[3.0]), f32s(&[], &[4.0]), i32s(&[], &[7])],
        |(x, y, n)| {
            let a = cond(x.lt(y), || x * 2.0, || y + x);
            let b = cond(x.gt(y), || (x, 0), || (y, 1));
            let c = switch(n, 3, |i| if i == 0 { x } else { y * i as f64 });
            let nested = cond(x.lt(y), || cond(x.gt(0), || x + y, || y), || x);
            let in_scan = scan(0.0, 0..4, |sum, i| (cond(i.lt(2), || sum + x, || sum), ())).0;
            let batched = vmap(arange(3), |i| cond(i.eq(1).both(), || x, || y));
            (a, b, c, nested, in_scan, batched)
        },
    );
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(
        values,
        [vec![6.0], vec![4.0], vec![1.0], vec![8.0], vec![7.0], vec![6.0], vec![4.0, 3.0, 4.0]]
    );
}

/// An expensive branch runs for the examples of a batch that take it: values and derivatives are
/// the same as if it ran for every example.
#[test]
fn a_branch_that_few_take_is_that_of_all() {
    // A loop of a thousand rounds over four numbers.
    let long = |x: Tensor, w: Tensor| fori_loop(0..1000, x, |_, x| (x * w).sin() + x * 0.5);
    let program = |rarely: bool| {
        trace((f32([2, 40, 4]), f32([])), move |(xs, w)| {
            let each = move |x: Tensor| {
                let takes = (x.index(0) * 10.0).sin().gt(0.8);
                let takes = if rarely { takes.rarely() } else { takes.both() };
                cond(takes, || (long(x, w), 1), || (x * w, 0))
            };
            let loss = move |x: Tensor| each(x).0.sum();
            let inside = vmap(xs.index(0), move |x| grad(x, loss));
            let outside = grad(xs, move |xs| vmap(xs, move |xs| vmap(xs, loss)).sum());
            let forward = jvp(xs.index(1), xs.index(0), move |xs| vmap(xs, each).0);
            // If the predicate has no batch axis, it chooses for all examples.
            let one = vmap(xs.index(0), move |x| {
                let takes = w.gt(0);
                cond(if rarely { takes.rarely() } else { takes.both() }, || long(x, w), || x)
            });
            (vmap(xs, move |xs| vmap(xs, each)), inside, outside, forward, one)
        })
        .expect("it traces")
    };
    let loops = |text: &str| text.matches("while[").count();
    let (few, all) = (program(true), program(false));
    assert!(few.warnings().is_empty());
    let texts = [few.func().to_string(), all.func().to_string()];
    assert_eq!((loops(&texts[0]) > 0, loops(&texts[1])), (true, 0));
    for scale in [1.0, 0.0] {
        let xs: Vec<f64> = (0..320).map(|i| scale * (f64::from(i) * 0.37).sin()).collect();
        let arguments = [f32s(&[2, 40, 4], &xs), f32s(&[], &[0.9])];
        let [few, all] = [&few, &all].map(|program| program.eval(&arguments).expect("it fits"));
        assert_eq!(few, all);
    }
}

#[test]
fn fences_change_no_value_and_last_through_transforms() {
    let inner = |x: Tensor, c: Tensor| (x * c).sin() + x.square();
    let x = f32s(&[3], &[0.5, -1., 2.]);
    let all = |one: &dyn Fn(Tensor, Tensor) -> Tensor| {
        trace((f32([3]), f32([])), |(x, c)| {
            let mapped = vmap(x, |x| one(x, c));
            let slope = grad(c, |c| one(x, c).sum());
            let (_, tangent) = jvp(x, x.ones_like(), |x| one(x, c));
            let scanned = scan(0.0, x, |sum, x| (sum + one(x, c), one(sum, c)));
            (one(x, c), mapped, slope, tangent, scanned)
        })
        .expect("it traces")
    };
    let plain = all(&inner);
    // One captures `c`, the other takes it as an argument.
    let captured = all(&|x, c| fence(x, |x| inner(x, c)));
    let given = all(&|x, c| fence((x, c), |(x, c)| inner(x, c)));
    let arguments = [x, f32s(&[], &[0.7])];
    let expected = plain.eval(&arguments).expect("it fits");
    for fenced in [captured, given] {
        let results = fenced.eval(&arguments).expect("it fits");
        for (result, expected) in results.iter().zip(&expected) {
            close(result, &expected.to_f64(), 1e-6);
        }
        let text = fenced.func().to_string();
        assert!(text.matches("form=FENCED").count() >= 6, "{text}");
        assert_eq!(text.matches("form=INLINED").count(), 0, "{text}");
    }
}

#[test]
fn a_fence_that_nothing_reads_goes() {
    let traced = trace(f32([3]), |x| {
        let _ = fence(x, |x| x.sin());
        // Of two equal fences one is left.
        fence(x, |x| x.cos()) + fence(x, |x| x.cos())
    });
    let traced = traced.expect("it traces");
    assert_eq!(traced.func().to_string().matches("form=FENCED").count(), 1);
}

#[test]
fn subroutines_are_emitted_once() {
    let traced = trace(f32([3]), |x| {
        let double = |x: Tensor| subroutine("double", x, |x| x * 2.0 + x.sum());
        double(double(x))
    })
    .expect("it traces");
    let bodies = traced
        .func()
        .eqns
        .iter()
        .flat_map(|eqn| eqn.op.attributes().funcs().into_iter().cloned().collect::<Vec<_>>());
    let bodies: Vec<_> = bodies.collect();
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
    close(
        &traced.eval(&[f32s(&[3], &[1., 2., 3.])]).expect("it fits")[0],
        &[46.0, 50.0, 54.0],
        0.0,
    );
}

#[test]
fn collectives_over_a_named_axis() {
    let results = run_on(f32([4, 2]), &[f32s(&[4, 2], &[1., 2., 3., 4., 5., 6., 7., 8.])], |x| {
        vmap_named("batch", x, |x| {
            let (sum, count) = psum((x, 1), "batch");
            let normal = x - pmean(x, "batch");
            (
                sum,
                count,
                normal,
                pmax(x, "batch"),
                pmin(x.index(0), "batch"),
                axis_index("batch"),
                all_gather(x.index(1), "batch"),
            )
        })
    });
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(values[0][..2], [16.0, 20.0]);
    assert_eq!(values[1], [4.0; 4]);
    assert_eq!(values[2], [-3., -3., -1., -1., 1., 1., 3., 3.]);
    assert_eq!(values[3][..2], [7.0, 8.0]);
    assert_eq!(values[4], [1.0; 4]);
    assert_eq!(values[5], [0., 1., 2., 3.]);
    assert_eq!(values[6][4..8], [2., 4., 6., 8.]);
}

#[test]
fn one_collective_for_a_tree_over_the_replicas() {
    let traced = trace((f32([2]), f32([3]), i32([])), |(x, y, n)| {
        (pmean((x, y), Replicas), psum(n, Replicas))
    })
    .expect("it traces");
    let count =
        |mnemonic| traced.func().eqns.iter().filter(|eqn| eqn.op.mnemonic() == mnemonic).count();
    assert_eq!(count("all_reduce"), 2);
    let results = traced
        .eval(&[f32s(&[2], &[1., 2.]), f32s(&[3], &[3., 4., 5.]), i32s(&[], &[6])])
        .expect("it fits");
    close(&results[0], &[1.0, 2.0], 0.0);
    let gathered = podracer_dsl::trace_replicated(4, f32([2]), |x| all_gather(x, Replicas))
        .expect("it traces");
    assert_eq!(gathered.results().types(), [TensorType::new(DType::F32, [4, 2])]);
}

#[test]
fn keys_go_through_loops() {
    let results = run(|| {
        let [one, two, three] = Key::new(7u64).split_into();
        let direct = vmap(two.again().split_n(3), |key| key.uniform([]));
        let scanned = scan(one, two.split_n(3), |key, item| {
            let (next, draw) = key.split();
            (next, (item.uniform([]), draw.uniform([2])))
        });
        let chained = fori_loop(0..3, three, |_, key| key.split().0);
        (direct, scanned.1.0, scanned.1.1, scanned.0, chained)
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[2].ty().shape[..], [3, 2]);
    assert_eq!(*results[3].ty(), TensorType::new(DType::U32, [2]));
}

/// jax requires every member to be a target under `vmap`. Over devices, a member that is no target
/// gets zeros; here it gets zeros in both cases.
#[test]
fn members_that_nobody_sends_to_get_zeros() {
    let results = run_on(f32([3]), &[f32s(&[3], &[1., 2., 4.])], |x| {
        let shift = |x: Tensor| vmap_named("ring", x, |x| ppermute(x, "ring", &[(0, 1), (1, 2)]));
        let slope = grad(x, |x| (shift(x) * constant([1.0, 10.0, 100.0])).sum());
        let same = vmap_named("ring", 0..3, |_| ppermute(x.index(1), "ring", &[(0, 2)]));
        let alone = ppermute((x, 5), Replicas, &[(0, 0)]);
        (shift(x), slope, same, alone, ppermute(x, Replicas, &[]))
    });
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    assert_eq!(
        values,
        [
            vec![0.0, 1.0, 2.0],
            vec![10.0, 100.0, 0.0],
            vec![0.0, 0.0, 2.0],
            vec![1.0, 2.0, 4.0],
            vec![5.0],
            vec![0.0; 3]
        ]
    );
}

/// As in jax, the name refers to the innermost axis.
#[test]
fn an_axis_hides_another_of_its_name() {
    let results =
        run_on(f32([2, 3]), &[Array::floats(F32, [2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])], |x| {
            vmap_named("i", x, |row| {
                let inner = vmap_named("i", row, |x| psum(x, "i"));
                (inner, psum(row, "i"))
            })
        });
    close(&results[0], &[3.0, 3.0, 3.0, 12.0, 12.0, 12.0], 0.0);
    close(&results[1], &[3.0, 5.0, 7.0, 3.0, 5.0, 7.0], 0.0);
}
