//! Programs under every transform, compared with jax: `transforms.json` and `programs.json`. Their
//! records describe each program in words.

mod derivatives;
mod loops;
mod programs;

use crate::golden::{array, file};
use crate::helpers::run_on;
use podracer_dsl::prelude::*;
use serde_json::Value;

/// All records of a program.
fn records(op: &str) -> Vec<Value> {
    let found: Vec<Value> = ["transforms.json", "programs.json"]
        .into_iter()
        .flat_map(file)
        .filter(|record| record["op"] == op)
        .collect();
    assert!(!found.is_empty(), "no records of {op}");
    found
}

/// Runs a program on the inputs of a record, by name, and compares its leaves with the outputs, by name.
#[track_caller]
fn check_record<const N: usize, R: IntoTree>(
    record: &Value,
    inputs: [&str; N],
    outputs: &[&str],
    program: impl FnOnce([Tensor; N]) -> R,
) {
    let arrays = inputs.map(|name| array(&record["inputs"][name]));
    let spec = arrays.clone().map(|array| Spec::<Tensor>(array.ty().clone()));
    let results = run_on(spec, &arrays, program);
    let what = record["op"].as_str().unwrap_or_default();
    assert_eq!(results.len(), outputs.len(), "{what}: results and their names");
    for (got, &name) in results.iter().zip(outputs) {
        let wanted = array(&record["outputs"][name]);
        assert_eq!(got.ty(), wanted.ty(), "{what}: {name}");
        for (g, w) in got.to_f64().into_iter().zip(wanted.to_f64()) {
            let close =
                g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= 6e-6 * w.abs().max(1.0);
            assert!(close, "{what}: {name} is {g}, jax has {w}\n{got}\n{wanted}");
        }
    }
}

#[track_caller]
fn check<const N: usize, R: IntoTree>(
    op: &str,
    inputs: [&str; N],
    outputs: &[&str],
    program: impl FnOnce([Tensor; N]) -> R,
) {
    check_record(&records(op)[0], inputs, outputs, program);
}

/// `grad` of a function of two tensors, by the first or the second.
#[track_caller]
fn grad2(x: Tensor, y: Tensor, f: impl FnOnce(Tensor, Tensor) -> Tensor) -> (Tensor, Tensor) {
    grad((x, y), |(x, y)| f(x, y))
}

fn linear(a: Tensor, h0: Tensor, w: Tensor, reverse: bool) -> Tensor {
    let step = |h, a| (dot(a, h), ());
    let last = if reverse { scan_reverse(h0, a, step).0 } else { scan(h0, a, step).0 };
    dot(w, last)
}

fn rnn(a: Tensor, h0: Tensor, xs: Tensor, reverse: bool) -> (Tensor, Tensor) {
    let step = |h, x| {
        let h = (dot(a.index(0), h) + x).tanh();
        (h, h * h)
    };
    if reverse { scan_reverse(h0, xs, step) } else { scan(h0, xs, step) }
}

fn rnn_loss(a: Tensor, h0: Tensor, xs: Tensor, c: Tensor, reverse: bool) -> Tensor {
    let (last, ys) = rnn(a, h0, xs, reverse);
    (c * ys).sum() + last.sum()
}

#[test]
fn linear_recurrences() {
    for (op, reverse) in [("scan_linear", false), ("scan_linear_reverse", true)] {
        let outputs = ["loss", "grad.a", "grad.h0", "grad.w"];
        check(op, ["a", "h0", "w"], &outputs, |[a, h0, w]| {
            value_and_grad((a, h0, w), |(a, h0, w)| linear(a, h0, w, reverse))
        });
    }
    check("scan_matrix_product", ["a", "c"], &["loss", "grad.a"], |[a, c]| {
        value_and_grad(a, |a| (c * scan(eye(F32, 3), a, |m, a| (dot(a, m), ())).0).sum())
    });
}

#[test]
fn recurrent_networks() {
    for (op, reverse) in [("scan_rnn", false), ("scan_rnn_reverse", true)] {
        let outputs = ["last", "ys", "loss", "grad.a", "grad.h0", "grad.xs", "grad.c"];
        check(op, ["a", "h0", "xs", "c"], &outputs, |[a, h0, xs, c]| {
            let loss = |(a, h0, xs, c)| rnn_loss(a, h0, xs, c, reverse);
            (rnn(a, h0, xs, reverse), value_and_grad((a, h0, xs, c), loss))
        });
    }
    let inputs = ["a", "h0", "xs", "d.a", "d.h0", "d.xs"];
    check("scan_rnn_jvp", inputs, &["d.last", "d.ys"], |[a, h0, xs, da, dh0, dxs]| {
        jvp((a, h0, xs), (da, dh0, dxs), |(a, h0, xs)| rnn(a, h0, xs, false)).1
    });
    check("vmap_grad_scan", ["a", "h0", "xs", "c"], &["loss", "grad.h0"], |[a, h0, xs, c]| {
        vmap(h0, |h0| value_and_grad(h0, |h0| rnn_loss(a, h0, xs, c, false)))
    });
    let outputs = ["loss", "grad.a", "grad.h0", "grad.xs"];
    check("grad_vmap_scan", ["a", "h0", "xs"], &outputs, |[a, h0, xs]| {
        value_and_grad((a, h0, xs), |(a, h0, xs)| {
            vmap((h0, xs.axis(1)), |(h0, xs)| rnn_loss(a, h0, xs, ones(F32, [5, 3]), false)).sum()
        })
    });
    check("scan_in_scan", ["a", "h0", "xs"], &outputs, |[a, h0, xs]| {
        value_and_grad((a, h0, xs), |(a, h0, xs)| {
            let (last, ys) = scan(h0, xs, |h, x| {
                let h = scan(h, a, |h, a| (dot(a, h).tanh() + x, ())).0;
                (h, h.sum())
            });
            last.sum() + dot(ys, constant([1.0, 2.0, 3.0]))
        })
    });
    let outputs = ["loss", "steps", "ys", "grad.h0", "grad.xs"];
    check("scan_mixed_carry", ["h0", "xs"], &outputs, |[h0, xs]| {
        let ((loss, (steps, ys)), grads) = value_and_grad((h0, xs), |(h0, xs)| {
            let ((steps, h, best), ys) =
                scan((0, h0, full([3], -10.0)), xs, |(step, h, best), x| {
                    let h = select((step % 2).eq(0), h * x, h + x);
                    ((step + 1, h, maximum(best, h)), step)
                });
            (h.sum() + 2.0 * best.sum(), (steps, ys))
        });
        (loss, steps, ys, grads)
    });
}

#[test]
fn branches() {
    let choose = |x: Tensor, y: Tensor| cond(x.gt(0).both(), || x.square() * y, || x.sin() * y);
    for record in records("cond") {
        check_record(&record, ["x", "y"], &["value", "grad.x", "grad.y", "second.x"], |[x, y]| {
            (choose(x, y), grad2(x, y, choose), grad(x, |x| grad(x, |x| choose(x, y))))
        });
    }
    check("vmap_cond", ["x", "y"], &["value", "grad.x", "grad.y"], |[x, y]| {
        let each = |x, y| vmap(x, |x| choose(x, y));
        (each(x, y), grad2(x, y, |x, y| each(x, y).sum()))
    });
    check("cond_guard", ["x"], &["value", "grad"], |[x]| {
        value_and_grad(x, |x| cond(x.gt(0), || x.sqrt(), || -x))
    });
    let outputs = ["loss", "taken", "grad.w", "grad.h0", "grad.xs"];
    check("cond_in_scan", ["w", "h0", "xs"], &outputs, |[w, h0, xs]| {
        let ((loss, taken), grads) = value_and_grad((w, h0, xs), |(w, h0, xs)| {
            let (last, taken) = scan(h0, xs, |h, x| {
                let positive = h.sum().gt(0);
                (cond(positive, || dot(w, h) - x, || h * x + 1.0), positive)
            });
            (dot(last, constant([1.0, 2.0, 3.0])), taken)
        });
        (loss, taken, grads)
    });
    let switched = |i: Tensor, x: Tensor| {
        switch(i, 3, |i| match i {
            0 => x.square(),
            1 => x.sin(),
            _ => 3.0 * x,
        })
    };
    for record in records("switch") {
        check_record(&record, ["i", "x"], &["value", "grad.x"], |[i, x]| {
            value_and_grad(x, |x| switched(i, x))
        });
    }
    check("vmap_switch", ["i", "x"], &["value", "grad.x"], |[i, x]| {
        let chosen = |x| vmap((i, x), |(i, x)| switched(i, x));
        (chosen(x), grad(x, |x| chosen(x).sum()))
    });
}

#[test]
fn named_axes() {
    check("named_axis", ["x", "weights"], &["value", "loss", "grad.x"], |[x, weights]| {
        let normal = |x: Tensor| {
            vmap_named("batch", x, |row| {
                let centred = row - pmean(row, "batch");
                centred / (psum(centred.square(), "batch") + 1e-3).sqrt()
            })
        };
        (normal(x), value_and_grad(x, |x| (weights * normal(x)).sum()))
    });
    check("named_axis_gather", ["x"], &["value", "grad.x"], |[x]| {
        let gathered = |x: Tensor| {
            vmap_named("batch", x, |row| {
                let before = (axis_index("batch") + 3) % 4;
                all_gather(row, "batch").take(before, 0) * row
            })
        };
        (gathered(x), grad(x, |x| gathered(x).square().sum()))
    });
    check(
        "named_axis_sums",
        ["x", "weights"],
        &["psum", "pmean", "index", "grad.x"],
        |[x, weights]| {
            let all = |x: Tensor| {
                vmap_named("batch", x, |x| {
                    let index = axis_index("batch").astype(F32);
                    (psum(x.square(), "batch") * x, pmean(x, "batch") * x, index * x)
                })
            };
            let slope = grad(x, |x| {
                let (a, b, c) = all(x);
                (weights * (a + b + c)).sum()
            });
            (all(x), slope)
        },
    );
}

#[test]
fn batches() {
    check("per_example_gradients", ["w", "x", "y"], &["grad"], |[w, x, y]| {
        vmap((x, y), |(x, y)| grad(w, |w| (dot(w, x).tanh() - y).square()))
    });
    check("vmap_of_vmap", ["a", "b"], &["value", "grad.a"], |[a, b]| {
        let pairs = |a: Tensor| vmap(a, |a| vmap(b, |b| (a - b).square().sum()));
        (pairs(a), grad(a, |a| pairs(a).sqrt().sum()))
    });
    check("vmap_axes", ["a", "b"], &["value"], |[a, b]| {
        out_axis(vmap((a.axis(1), b.axis(2)), |(a, b)| dot(a, b)), 1)
    });
}

#[test]
fn barriers() {
    check("stop_gradient", ["v", "r"], &["loss", "grad.v"], |[v, r]| {
        value_and_grad(v, |v| {
            let target = stop_gradient(r.slice_axis(0, ..4) + 0.9 * v.slice_axis(0, 1..));
            0.5 * (target - v.slice_axis(0, ..4)).square().sum()
        })
    });
    check("straight_through", ["l", "w"], &["loss", "grad.l", "grad.w"], |[l, w]| {
        value_and_grad((l, w), |(l, w)| {
            let probs = l.softmax(-1);
            let hard = one_hot(l.argmax(0), 4);
            (w * (probs + stop_gradient(hard - probs)).square()).sum()
        })
    });
}

#[test]
fn dynamics() {
    let step = |theta: Tensor, speed: Tensor, u: Tensor| {
        let cost = theta.square() + 0.1 * speed.square() + 0.001 * u.square();
        let speed = (speed + (15.0 * theta.sin() + 3.0 * u) * 0.05).clamp(-8.0, 8.0);
        ((theta + speed * 0.05, speed), cost)
    };
    let outputs = ["loss", "thetas", "grad.u", "grad.start"];
    check("pendulum_gradient", ["u", "start"], &outputs, |[u, start]| {
        let ((loss, thetas), grads) = value_and_grad((u, start), |(u, start)| {
            let (_, (costs, thetas)) =
                scan((start.index(0), start.index(1)), u, |(theta, speed), u| {
                    let (next, cost) = step(theta, speed, u);
                    (next, (cost, next.0))
                });
            (costs.sum(), thetas)
        });
        (loss, thetas, grads)
    });
    let outputs = ["loss", "grad.w", "hessian.w"];
    check("policy_gradient_through_pendulum", ["w", "starts"], &outputs, |[w, starts]| {
        let loss = |w: Tensor| {
            let one = |start: Tensor| {
                let (_, costs) =
                    scan((start.index(0), start.index(1)), 0..10, |(theta, speed), _| {
                        let u = 2.0 * dot(w, stack(&[theta.cos(), theta.sin(), speed], 0)).tanh();
                        step(theta, speed, u)
                    });
                costs.mean()
            };
            vmap(starts, one).mean()
        };
        (loss(w), grad(w, loss), hessian(w, loss))
    });
}
