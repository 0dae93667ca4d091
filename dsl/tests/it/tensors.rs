//! The methods of tensors, against values worked out by hand or known from NumPy.

use crate::helpers::{close, f32s, i32s, run, run_on};
use podracer_dsl::prelude::*;

#[test]
fn literals_take_the_dtype_beside_them() {
    let results = run_on(
        (f32([2]), i32([2]), u8([])),
        &[f32s(&[2], &[1.5, 2.0]), i32s(&[2], &[7, -7]), Array::ints(DType::U8, [], &[3])],
        |(x, n, small)| {
            let a = 2 * x + 1;
            let b = 1.0 - x;
            let c = n % 4;
            let d = n.modulo(4);
            let e = (n / 2, n.floor_div(2));
            let f = small + 250;
            let g = x + [10.0, 20.0];
            let h = select(x.gt(1.7), 1, 0.5);
            (a, b, c, d, e, f, g, h)
        },
    );
    close(&results[0], &[4.0, 5.0], 0.0);
    close(&results[1], &[-0.5, -1.0], 0.0);
    assert_eq!(results[2], i32s(&[2], &[3, -3]));
    assert_eq!(results[3], i32s(&[2], &[3, 1]));
    assert_eq!(results[4], i32s(&[2], &[3, -3]));
    assert_eq!(results[5], i32s(&[2], &[3, -4]));
    assert_eq!(results[6], Array::ints(DType::U8, [], &[253]));
    close(&results[7], &[11.5, 22.0], 0.0);
    assert_eq!(results[8], f32s(&[2], &[0.5, 1.0]));
}

#[test]
fn logic_and_bits() {
    let results = run(|| {
        let (p, q) = (constant([true, true, false]), constant([true, false, false]));
        let bits = constant([0b1100u32, 0b1010]);
        let negative = constant([-8, 8]);
        (
            p & q,
            p | q,
            p ^ q,
            !p,
            bits << 1,
            bits >> 2,
            negative >> 1,
            negative.shift_right_logical(28),
        )
    });
    assert_eq!(results[0], Array::bools([3], &[true, false, false]));
    assert_eq!(results[1], Array::bools([3], &[true, true, false]));
    assert_eq!(results[2], Array::bools([3], &[false, true, false]));
    assert_eq!(results[3], Array::bools([3], &[false, false, true]));
    assert_eq!(results[4].to_f64(), [24.0, 20.0]);
    assert_eq!(results[5].to_f64(), [3.0, 2.0]);
    assert_eq!(results[6].to_f64(), [-4.0, 4.0]);
    assert_eq!(results[7].to_f64(), [15.0, 0.0]);
}

#[test]
fn broadcasting_follows_numpy() {
    let results = run(|| {
        let column = constant([[1.0], [2.0]]);
        let row = constant([10.0, 20.0, 30.0]);
        (
            column + row,
            column.broadcast_to([2, 2, 3]).sum_axis([0, 2]),
            full([2, 2], 7),
            row.clamp(15, [12.0, 25.0, 25.0]),
        )
    });
    assert_eq!(results[0], f32s(&[2, 3], &[11.0, 21.0, 31.0, 12.0, 22.0, 32.0]));
    assert_eq!(results[1], f32s(&[2], &[6.0, 12.0]));
    assert_eq!(results[2], i32s(&[2, 2], &[7; 4]));
    assert_eq!(results[3], f32s(&[3], &[12.0, 20.0, 25.0]));
}

#[test]
fn shapes_change() {
    let results = run(|| {
        let x = arange(6).reshape([2, 3]);
        let pieces = x.split(3, 1);
        (
            (x.transpose(), x.swap_axes(0, -1), x.flatten(), x.expand_dims(1).squeeze(1)),
            (
                concatenate(&[x, x], 1),
                stack(&[x.index(0), x.index(-1)], 1),
                pieces[2],
                x.reverse(1),
            ),
            (x.roll(1, 1), x.roll(-1, 0), x.pad(&[(0, 1), (1, 0)], -1)),
            (
                x.slice((.., 1..)),
                x.slice((1..2, ..-1)),
                x.slice_strided(&[(0, 2), (0, 3)], &[1, 2]),
            ),
            (
                x.repeat(2, 0),
                x.index(1).tile(2, 0),
                iota(I32, [2, 2, 2], 1).move_axis(1, -1),
                x.tril(0),
                x.triu(1),
                eye(F32, 2),
                linspace(0.0, 1.0, 3),
            ),
        )
    });
    let expect: Vec<(Vec<usize>, Vec<f64>)> = vec![
        (vec![3, 2], vec![0., 3., 1., 4., 2., 5.]),
        (vec![3, 2], vec![0., 3., 1., 4., 2., 5.]),
        (vec![6], vec![0., 1., 2., 3., 4., 5.]),
        (vec![2, 3], vec![0., 1., 2., 3., 4., 5.]),
        (vec![2, 6], vec![0., 1., 2., 0., 1., 2., 3., 4., 5., 3., 4., 5.]),
        (vec![3, 2], vec![0., 3., 1., 4., 2., 5.]),
        (vec![2, 1], vec![2., 5.]),
        (vec![2, 3], vec![2., 1., 0., 5., 4., 3.]),
        (vec![2, 3], vec![2., 0., 1., 5., 3., 4.]),
        (vec![2, 3], vec![3., 4., 5., 0., 1., 2.]),
        (vec![3, 4], vec![-1., 0., 1., 2., -1., 3., 4., 5., -1., -1., -1., -1.]),
        (vec![2, 2], vec![1., 2., 4., 5.]),
        (vec![1, 2], vec![3., 4.]),
        (vec![2, 2], vec![0., 2., 3., 5.]),
        (vec![4, 3], vec![0., 1., 2., 0., 1., 2., 3., 4., 5., 3., 4., 5.]),
        (vec![6], vec![3., 4., 5., 3., 4., 5.]),
        (vec![2, 2, 2], vec![0., 1., 0., 1., 0., 1., 0., 1.]),
        (vec![2, 3], vec![0., 0., 0., 3., 4., 0.]),
        (vec![2, 3], vec![0., 1., 2., 0., 0., 5.]),
        (vec![2, 2], vec![1., 0., 0., 1.]),
        (vec![3], vec![0., 0.5, 1.]),
    ];
    for (i, (got, (shape, values))) in results.iter().zip(&expect).enumerate() {
        assert_eq!((&got.ty().shape[..], &got.to_f64()), (&shape[..], values), "result {i}");
    }
    assert_eq!(results.len(), expect.len());
}

#[test]
fn reductions() {
    let x = f32s(&[2, 3], &[1.0, -2.0, 3.0, 4.0, 0.5, -1.0]);
    let results = run_on(f32([2, 3]), &[x], |x| {
        (
            (x.sum(), x.sum_axis(0), x.mean_axis(-1), x.max(), x.min_axis(1), x.prod()),
            (x.var(), x.std_axis(0), x.argmax(1), x.argmin(0), x.gt(0).any_axis(0), x.gt(0).all()),
            (
                x.cumsum(1),
                x.cummax(0),
                x.cumprod(1),
                x.logsumexp(1),
                x.softmax(1).sum_axis(1),
                x.log_softmax(0).exp().sum_axis(0),
            ),
            (x.sort(1), x.argsort(1), x.top_k(2), x.norm()),
        )
    });
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    let lse = |row: [f64; 3]| row.iter().map(|x| x.exp()).sum::<f64>().ln();
    let mean = 5.5 / 6.0;
    let var =
        [1.0, -2.0, 3.0, 4.0, 0.5, -1.0].iter().map(|x: &f64| (x - mean).powi(2)).sum::<f64>()
            / 6.0;
    let expected: Vec<Vec<f64>> = vec![
        vec![5.5],
        vec![5.0, -1.5, 2.0],
        vec![2.0 / 3.0, 3.5 / 3.0],
        vec![4.0],
        vec![-2.0, -1.0],
        vec![12.0],
        vec![var],
        vec![1.5, 1.25, 2.0],
        vec![2.0, 0.0],
        vec![0.0, 0.0, 1.0],
        vec![1.0, 1.0, 1.0],
        vec![0.0],
        vec![1.0, -1.0, 2.0, 4.0, 4.5, 3.5],
        vec![1.0, -2.0, 3.0, 4.0, 0.5, 3.0],
        vec![1.0, -2.0, -6.0, 4.0, 2.0, -2.0],
        vec![lse([1.0, -2.0, 3.0]), lse([4.0, 0.5, -1.0])],
        vec![1.0, 1.0],
        vec![1.0, 1.0, 1.0],
        vec![-2.0, 1.0, 3.0, -1.0, 0.5, 4.0],
        vec![1.0, 0.0, 2.0, 2.0, 1.0, 0.0],
        vec![3.0, 1.0, 4.0, 0.5],
        vec![2.0, 0.0, 0.0, 1.0],
        vec![31.25f64.sqrt()],
    ];
    assert_eq!(values.len(), expected.len());
    for (i, (got, expected)) in results.iter().zip(&expected).enumerate() {
        println_if_wrong(i, got, expected);
        close(got, expected, 1e-6);
    }
}

fn println_if_wrong(i: usize, got: &Array, expected: &[f64]) {
    assert_eq!(got.ty().elements(), expected.len(), "result {i}: {got}");
}

#[test]
fn log_probabilities_of_infinite_logits() {
    let results = run(|| {
        let masked = constant([0.0, f64::NEG_INFINITY, 0.0]);
        let nothing = constant([f64::NEG_INFINITY, f64::NEG_INFINITY]);
        let huge = constant([1e30, 0.0]);
        (
            masked.log_softmax(0),
            masked.logsumexp(0),
            nothing.logsumexp(0),
            huge.softmax(0),
            huge.softplus(),
            constant([-200.0]).sigmoid(),
        )
    });
    let ln2 = std::f64::consts::LN_2;
    close(&results[0], &[-ln2, f64::NEG_INFINITY, -ln2], 1e-6);
    close(&results[1], &[ln2], 1e-6);
    assert_eq!(results[2].to_f64(), [f64::NEG_INFINITY]);
    assert_eq!(results[3].to_f64(), [1.0, 0.0]);
    close(&results[4], &[1e30, ln2], 1e-6);
    assert!(results[5].to_f64()[0] < 1e-30);
}

#[test]
fn products_of_matrices() {
    let results = run(|| {
        let a = iota(F32, [6], 0).reshape([2, 3]);
        let b = iota(F32, [6], 0).reshape([3, 2]);
        let v = constant([1.0, 0.0, 2.0]);
        let batch = stack(&[a, a + 1], 0);
        (
            (matmul(a, b), matmul(a, v), matmul(v, b), dot(v, v), outer(v, constant([1.0, 2.0]))),
            (
                matmul(batch, b),
                matmul(batch, stack(&[b, b * 2], 0)),
                matmul(a, stack(&[b, b * 2], 0)),
                matmul(v, stack(&[b, b * 2], 0)),
            ),
        )
    });
    let ab = [10.0, 13.0, 28.0, 40.0];
    close(&results[0], &ab, 0.0);
    close(&results[1], &[4.0, 13.0], 0.0);
    close(&results[2], &[8.0, 11.0], 0.0);
    close(&results[3], &[5.0], 0.0);
    close(&results[4], &[1.0, 2.0, 0.0, 0.0, 2.0, 4.0], 0.0);
    let a1b = [16.0, 22.0, 34.0, 49.0];
    close(&results[5], &[ab, a1b].concat(), 0.0);
    close(&results[6], &[ab, a1b.map(|x| 2.0 * x)].concat(), 0.0);
    close(&results[7], &[ab, ab.map(|x| 2.0 * x)].concat(), 0.0);
    close(&results[8], &[8.0, 11.0, 16.0, 22.0], 0.0);
    assert_eq!(results[8].ty().shape[..], [2, 2]);
}

#[test]
fn places_that_are_computed() {
    let results = run_on(
        (f32([4, 2]), i32([])),
        &[f32s(&[4, 2], &[0., 1., 2., 3., 4., 5., 6., 7.]), i32s(&[], &[2])],
        |(x, i)| {
            let along = constant([[0], [1], [1], [0]]);
            (
                (x.at(i), x.at(i + 9), x.take([3, 0], 0), x.take(i - 1, 1), x.take([[1, 0]], 1)),
                (
                    x.take_along_axis(along, 1),
                    x.set(i, 9.0),
                    x.set([0, 1], [[1.0], [2.0]]),
                    x.add_at([1, 1, 7], 1.0),
                    x.add_at(i, [1.0, 2.0]),
                ),
                (
                    x.max_at([0, 0], [[5.0, 0.0], [3.0, 0.0]]),
                    one_hot(i, 4),
                    one_hot(i + 9, 4),
                    dynamic_slice(x, &[i, i - 2], &[2, 1]),
                ),
            )
        },
    );
    let values: Vec<Vec<f64>> = results.iter().map(Array::to_f64).collect();
    let expected: Vec<Vec<f64>> = vec![
        vec![4., 5.],
        vec![6., 7.],
        vec![6., 7., 0., 1.],
        vec![1., 3., 5., 7.],
        vec![1., 0., 3., 2., 5., 4., 7., 6.],
        vec![0., 3., 5., 6.],
        vec![0., 1., 2., 3., 9., 9., 6., 7.],
        vec![1., 1., 2., 2., 4., 5., 6., 7.],
        vec![0., 1., 4., 5., 4., 5., 6., 7.],
        vec![0., 1., 2., 3., 5., 7., 6., 7.],
        vec![5., 1., 2., 3., 4., 5., 6., 7.],
        vec![0., 0., 1., 0.],
        vec![0., 0., 0., 0.],
        vec![4., 6.],
    ];
    assert_eq!(values, expected);
    assert_eq!(results[4].ty().shape[..], [4, 1, 2]);
}

#[test]
fn a_gradient_flows_through_places() {
    let results =
        run_on((f32([4, 2]), i32([])), &[f32s(&[4, 2], &[1.0; 8]), i32s(&[], &[2])], |(x, i)| {
            (
                grad(x, |x| x.at(i).sum()),
                grad(x, |x| x.take([1, 1], 0).sum()),
                grad(x, |x| x.set(i, 0.0).sum()),
            )
        });
    close(&results[0], &[0., 0., 0., 0., 1., 1., 0., 0.], 0.0);
    close(&results[1], &[0., 0., 2., 2., 0., 0., 0., 0.], 0.0);
    close(&results[2], &[1., 1., 1., 1., 0., 0., 1., 1.], 0.0);
}

#[test]
fn feistel_orders_are_orders() {
    for n in [1usize, 2, 7, 64, 96, 100, 512, 1021, 2048] {
        let keys =
            (0..3).map(|seed| run(|| Key::new(seed as u64).feistel_permutation(n)).remove(0));
        let orders: Vec<Vec<f64>> = keys.map(|order| order.to_f64()).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_by(f64::total_cmp);
            assert_eq!(sorted, (0..n).map(|i| i as f64).collect::<Vec<_>>(), "n = {n}");
        }
        assert!(n < 3 || orders[0] != orders[1], "n = {n}");
    }
}

#[test]
fn a_tensor_shows_its_type_and_where_it_was_made() {
    let mut kept = None;
    let traced = trace(f32([3, 4]), |x| {
        let (given, made) = (format!("{x:?}"), format!("{:?}", x.sum_axis(0)));
        assert!(given.starts_with("f32[3,4] made at "), "{given}");
        assert!(made.starts_with("f32[4] made at ") && made.contains("tensors.rs"), "{made}");
        kept = Some(x);
        x
    });
    assert!(traced.is_ok());
    let after = format!("{:?}", kept.expect("it was traced"));
    assert!(after.starts_with("a tensor of another trace, made at "), "{after}");
}
