//! Branches, loops that end by a condition, and nested regions.

use super::*;

/// (choice: i32, x: [2], y: [2]): three branches with residuals of different kinds, an operand among them.
fn choice() -> Func {
    let branch = |number: usize| {
        let mut b = Builder::new();
        let (x, y) = (b.param(f64s([2])), b.param(f64s([2])));
        let result = match number {
            0 => b.sin(x),
            1 => {
                let product = b.mul(x, y);
                b.exp(product)
            }
            _ => b.neg(y),
        };
        Arc::new(b.finish(format!("branch{number}"), vec![result, x]))
    };
    let mut b = Builder::new();
    let index = b.param(TensorType::scalar(DType::I32));
    let (x, y) = (b.param(f64s([2])), b.param(f64s([2])));
    let outputs =
        b.emit(Cond { branches: (0..3).map(branch).collect(), rarely: false }, &[index, x, y]);
    b.finish("choice", outputs)
}

fn with_choice(ty: &TensorType, seed: usize) -> Array {
    if ty.dtype == DType::I32 {
        Array::ints(DType::I32, ty.shape.clone(), &[0, 2, 1][..ty.elements()])
    } else {
        values(ty, seed)
    }
}

#[test]
fn cond_gradient_and_vmap() {
    let func = choice();
    let slopes = grad(&func);
    for index in [-1, 0, 1, 2, 7] {
        let mut arguments = vec![Array::ints(DType::I32, [], &[index])];
        arguments.extend([values(&f64s([2]), 1), values(&f64s([2]), 2)]);
        assert_close(
            &slopes.eval(&arguments),
            &numeric_grad(&func, &arguments),
            1e-6,
            "gradient of cond",
        );
        let second = grad(&slopes);
        assert_close(
            &second.eval(&arguments),
            &numeric_grad(&slopes, &arguments),
            1e-6,
            "second order of cond",
        );
    }
    check_vmap(&func, with_choice);
    check_vmap(&slopes, with_choice);
}

/// A scan with a cond on a carried counter in its body, inside a call: nested regions.
fn nested() -> Func {
    let mut body = Builder::new();
    let (w, c, n) =
        (body.param(f64s([2])), body.param(f64s([2])), body.param(TensorType::scalar(DType::I32)));
    let x = body.param(f64s([2]));
    let scaled = body.mul(c, w);
    let outputs =
        body.emit(Call { body: Arc::new(choice()), form: CallForm::Inlined }, &[n, scaled, x]);
    let one = body.full_like(n, 1.0);
    let n = body.add(n, one);
    let body = Arc::new(body.finish("body", vec![outputs[0], n, outputs[1]]));
    let mut b = Builder::new();
    let (w, c, xs) = (b.param(f64s([2])), b.param(f64s([2])), b.param(f64s([4, 2])));
    let zero = b.zeros(&TensorType::scalar(DType::I32));
    let outputs =
        b.emit(Scan { body, length: 4, reverse: false, consts: 1, carries: 2 }, &[w, c, zero, xs]);
    b.finish("nested", vec![outputs[0], outputs[2]])
}

#[test]
fn regions_in_regions() {
    let func = nested();
    check_grad(&func);
    check_grad(&grad(&func));
    check_vmap(&func, values);
    check_vmap(&grad(&func), values);
    let inlined = inline_calls(&func);
    assert_close(&inlined.eval(&arguments(&func)), &func.eval(&arguments(&func)), 0.0, "inlined");
    assert!(!inlined.to_string().contains("call"), "no call is left:\n{inlined}");
}

/// (limit: i32, w: [2], x: [2]): x = sin(x) * w until the count passes the limit.
fn counted() -> Func {
    let int = TensorType::scalar(DType::I32);
    let mut b = Builder::new();
    let (limit, _, n) = (b.param(int.clone()), b.param(f64s([2])), b.param(int.clone()));
    let going = b.compare(Direction::Lt, n, limit);
    let condition = Arc::new(b.finish("condition", vec![going]));
    let mut b = Builder::new();
    let (w, x, n) = (b.param(f64s([2])), b.param(f64s([2])), b.param(int.clone()));
    let sine = b.sin(x);
    let next = b.mul(sine, w);
    let one = b.full_like(n, 1.0);
    let n = b.add(n, one);
    let body = Arc::new(b.finish("body", vec![next, n]));
    let mut b = Builder::new();
    let (limit, w, x) = (b.param(int.clone()), b.param(f64s([2])), b.param(f64s([2])));
    let zero = b.zeros(&int);
    let outputs = b
        .emit(While { condition, body, condition_consts: 1, body_consts: 1 }, &[limit, w, x, zero]);
    b.finish("counted", vec![outputs[0]])
}

#[test]
fn while_has_a_forward_derivative_and_says_that_it_has_no_reverse_one() {
    let func = counted();
    let (slope, _) = jvp(&func, &[false, true, true]).expect("forward mode");
    let limit = Array::ints(DType::I32, [], &[3]);
    let base = [values(&f64s([2]), 1), values(&f64s([2]), 2)];
    let direction = [values(&f64s([2]), 3), values(&f64s([2]), 4)];
    let arguments: Vec<Array> =
        std::iter::once(limit.clone()).chain(base.clone()).chain(direction.clone()).collect();
    let got = slope.eval(&arguments).remove(1).to_f64();
    let at = |h: f64| {
        let moved = base.iter().zip(&direction).map(|(x, d)| {
            let data: Vec<f64> =
                x.to_f64().iter().zip(d.to_f64()).map(|(x, d)| x + h * d).collect();
            Array::floats(DType::F64, [2], &data)
        });
        func.eval(&std::iter::once(limit.clone()).chain(moved).collect::<Vec<_>>())[0].to_f64()
    };
    for (i, got) in got.iter().enumerate() {
        let want = (at(1e-6)[i] - at(-1e-6)[i]) / 2e-6;
        assert!((got - want).abs() < 1e-8, "{got} against {want}");
    }
    let error = vjp(&func, &[false, true, true]).expect_err("no reverse mode");
    assert_eq!(error.op, "while");
    assert!(error.reason.contains("scan"), "{error}");
}

#[test]
fn vmap_of_while_is_right_for_every_lane() {
    check_vmap(&counted(), |ty, seed| {
        if ty.dtype == DType::I32 {
            Array::ints(DType::I32, ty.shape.clone(), &[2, 0, 5][..ty.elements()])
        } else {
            values(ty, seed)
        }
    });
}

#[test]
fn dce_drops_dead_carries_and_outputs() {
    let mut body = Builder::new();
    let (c, d, x) = (body.param(f64s([])), body.param(f64s([])), body.param(f64s([])));
    let next = body.add(c, x);
    let dead = body.mul(d, x);
    let body = Arc::new(body.finish("body", vec![next, dead, dead, next]));
    let mut b = Builder::new();
    let (c, d, xs) = (b.param(f64s([])), b.param(f64s([])), b.param(f64s([T])));
    let outputs =
        b.emit(Scan { body, length: T, reverse: false, consts: 0, carries: 2 }, &[c, d, xs]);
    let func = b.finish("f", vec![outputs[3]]);
    let small = dce(&func);
    assert_eq!(small.eqns[0].inputs.len(), 2, "the dead carry is gone:\n{small}");
    assert_eq!(small.eqn_count(), 2, "its equations too:\n{small}");
    assert_close(&small.eval(&arguments(&func)), &func.eval(&arguments(&func)), 0.0, "values");
}

#[test]
fn cse_merges_inside_bodies_too() {
    let mut body = Builder::new();
    let (c, x) = (body.param(f64s([])), body.param(f64s([])));
    let (one, two) = (body.sin(x), body.sin(x));
    let sum = body.add(one, two);
    let next = body.add(c, sum);
    let body = Arc::new(body.finish("body", vec![next]));
    let mut b = Builder::new();
    let (c, xs) = (b.param(f64s([])), b.param(f64s([T])));
    let op = Scan { body, length: T, reverse: false, consts: 0, carries: 1 };
    let first = b.emit(op.clone(), &[c, xs]);
    let again = b.emit(op, &[c, xs]);
    let sum = b.add(first[0], again[0]);
    let func = b.finish("f", vec![sum]);
    let small = cse(&func);
    assert_eq!(small.eqn_count(), 5, "one scan of three equations and a sum:\n{small}");
    assert_close(&small.eval(&arguments(&func)), &func.eval(&arguments(&func)), 0.0, "values");
}
