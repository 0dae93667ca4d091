//! Programs under every transform against jax: `transforms.json`, whose records say in words what each program is.

use crate::golden::{array, file};
use crate::helpers::run_on;
use podracer_dsl::prelude::*;
use serde_json::Value;

/// All records of a program.
fn records(op: &str) -> Vec<Value> {
    let found: Vec<Value> = file("transforms.json")
        .into_iter()
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
    let spec = arrays.clone().map(|array| Spec::<Tensor>(array.ty));
    let results = run_on(spec, &arrays, program);
    let what = record["op"].as_str().unwrap_or_default();
    assert_eq!(
        results.len(),
        outputs.len(),
        "{what}: results and their names"
    );
    for (got, &name) in results.iter().zip(outputs) {
        let wanted = array(&record["outputs"][name]);
        assert_eq!(got.ty, wanted.ty, "{what}: {name}");
        for (g, w) in got.to_f64().into_iter().zip(wanted.to_f64()) {
            let close =
                g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= 2e-5 * w.abs().max(1.0);
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
    let last = if reverse {
        scan_reverse(h0, a, step).0
    } else {
        scan(h0, a, step).0
    };
    dot(w, last)
}

fn rnn(a: Tensor, h0: Tensor, xs: Tensor, reverse: bool) -> (Tensor, Tensor) {
    let step = |h, x| {
        let h = (dot(a.index(0), h) + x).tanh();
        (h, h * h)
    };
    if reverse {
        scan_reverse(h0, xs, step)
    } else {
        scan(h0, xs, step)
    }
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
    check(
        "scan_matrix_product",
        ["a", "c"],
        &["loss", "grad.a"],
        |[a, c]| {
            value_and_grad(a, |a| {
                (c * scan(eye(F32, 3), a, |m, a| (dot(a, m), ())).0).sum()
            })
        },
    );
}

#[test]
fn recurrent_networks() {
    for (op, reverse) in [("scan_rnn", false), ("scan_rnn_reverse", true)] {
        let outputs = [
            "last", "ys", "loss", "grad.a", "grad.h0", "grad.xs", "grad.c",
        ];
        check(op, ["a", "h0", "xs", "c"], &outputs, |[a, h0, xs, c]| {
            let loss = |(a, h0, xs, c)| rnn_loss(a, h0, xs, c, reverse);
            (
                rnn(a, h0, xs, reverse),
                value_and_grad((a, h0, xs, c), loss),
            )
        });
    }
    let inputs = ["a", "h0", "xs", "d.a", "d.h0", "d.xs"];
    check(
        "scan_rnn_jvp",
        inputs,
        &["d.last", "d.ys"],
        |[a, h0, xs, da, dh0, dxs]| {
            jvp((a, h0, xs), (da, dh0, dxs), |(a, h0, xs)| {
                rnn(a, h0, xs, false)
            })
            .1
        },
    );
    check(
        "vmap_grad_scan",
        ["a", "h0", "xs", "c"],
        &["loss", "grad.h0"],
        |[a, h0, xs, c]| {
            vmap(h0, |h0| {
                value_and_grad(h0, |h0| rnn_loss(a, h0, xs, c, false))
            })
        },
    );
    let outputs = ["loss", "grad.a", "grad.h0", "grad.xs"];
    check(
        "grad_vmap_scan",
        ["a", "h0", "xs"],
        &outputs,
        |[a, h0, xs]| {
            value_and_grad((a, h0, xs), |(a, h0, xs)| {
                vmap((h0, xs.axis(1)), |(h0, xs)| {
                    rnn_loss(a, h0, xs, ones(F32, [5, 3]), false)
                })
                .sum()
            })
        },
    );
    check(
        "scan_in_scan",
        ["a", "h0", "xs"],
        &outputs,
        |[a, h0, xs]| {
            value_and_grad((a, h0, xs), |(a, h0, xs)| {
                let (last, ys) = scan(h0, xs, |h, x| {
                    let h = scan(h, a, |h, a| (dot(a, h).tanh() + x, ())).0;
                    (h, h.sum())
                });
                last.sum() + dot(ys, constant([1.0, 2.0, 3.0]))
            })
        },
    );
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
fn higher_orders() {
    check(
        "scan_higher_orders",
        ["x"],
        &["value", "grad1", "grad2", "grad3"],
        |[x]| {
            let f = |x: Tensor| {
                scan(x, constant([0.1, 0.2, 0.3, 0.4]), |c, t| {
                    ((c * x).sin() + t, ())
                })
                .0
            };
            (
                f(x),
                grad(x, f),
                grad(x, |x| grad(x, f)),
                grad(x, |x| grad(x, |x| grad(x, f))),
            )
        },
    );
    let outputs = ["value", "jvp_grad", "grad_grad", "grad_jvp"];
    check(
        "scan_hessian_vector_product",
        ["w", "v", "xs"],
        &outputs,
        |[w, v, xs]| {
            let f = |w: Tensor| {
                scan(zeros(F32, [3]), xs, |h, x| ((dot(w, h) + x).tanh(), ()))
                    .0
                    .square()
                    .sum()
            };
            (
                f(w),
                jvp(w, v, |w| grad(w, f)).1,
                grad(w, |w| (grad(w, f) * v).sum()),
                grad(w, |w| jvp(w, v, f).1),
            )
        },
    );
    check(
        "mlp_hessian",
        ["flat", "x", "y"],
        &["loss", "grad", "hessian"],
        |[flat, x, y]| {
            let loss = |flat: Tensor| {
                let part = |from: usize, to: usize, shape: &[usize]| {
                    flat.slice_axis(0, from..to).reshape(shape)
                };
                let hidden = (dot(x, part(0, 6, &[2, 3])) + part(6, 9, &[3])).tanh();
                (dot(hidden, part(9, 12, &[3, 1])) + part(12, 13, &[1]) - y)
                    .square()
                    .mean()
            };
            (loss(flat), grad(flat, loss), hessian(flat, loss))
        },
    );
    check(
        "jacobians",
        ["x"],
        &["value", "jacfwd", "jacrev", "second"],
        |[x]| {
            let f = |x: Tensor| {
                let [a, b, c] = [0, 1, 2].map(|i| x.index(i));
                stack(&[a * b.sin() + c.powi(3), (a * c).exp() - b], 0)
            };
            (
                f(x),
                jacfwd(x, f),
                jacrev(x, f),
                jacfwd(x, |x| jacrev(x, f)),
            )
        },
    );
    let outputs = ["loss", "grad.theta", "grad.eta", "grad.rate"];
    check(
        "meta_gradient",
        ["theta", "eta", "rate", "x", "x_val"],
        &outputs,
        |[theta, eta, rate, x, x_val]| {
            let inner = |theta: Tensor, eta: Tensor, x: Tensor| {
                (dot(x, theta).tanh() - eta * x.sum_axis(1)).square().mean()
            };
            value_and_grad((theta, eta, rate), |(theta, eta, rate)| {
                let theta = fori_loop(0..3, theta, |_, theta| {
                    theta - rate * grad(theta, |theta| inner(theta, eta, x))
                });
                inner(theta, scalar(0.5), x_val)
            })
        },
    );
}

#[test]
fn branches() {
    let choose = |x: Tensor, y: Tensor| cond(x.gt(0).both(), || x.square() * y, || x.sin() * y);
    for record in records("cond") {
        check_record(
            &record,
            ["x", "y"],
            &["value", "grad.x", "grad.y", "second.x"],
            |[x, y]| {
                (
                    choose(x, y),
                    grad2(x, y, choose),
                    grad(x, |x| grad(x, |x| choose(x, y))),
                )
            },
        );
    }
    check(
        "vmap_cond",
        ["x", "y"],
        &["value", "grad.x", "grad.y"],
        |[x, y]| {
            let each = |x, y| vmap(x, |x| choose(x, y));
            (each(x, y), grad2(x, y, |x, y| each(x, y).sum()))
        },
    );
    check("cond_guard", ["x"], &["value", "grad"], |[x]| {
        value_and_grad(x, |x| cond(x.gt(0), || x.sqrt(), || -x))
    });
    let outputs = ["loss", "taken", "grad.w", "grad.h0", "grad.xs"];
    check(
        "cond_in_scan",
        ["w", "h0", "xs"],
        &outputs,
        |[w, h0, xs]| {
            let ((loss, taken), grads) = value_and_grad((w, h0, xs), |(w, h0, xs)| {
                let (last, taken) = scan(h0, xs, |h, x| {
                    let positive = h.sum().gt(0);
                    (cond(positive, || dot(w, h) - x, || h * x + 1.0), positive)
                });
                (dot(last, constant([1.0, 2.0, 3.0])), taken)
            });
            (loss, taken, grads)
        },
    );
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
fn loops_of_unknown_length() {
    let halve = |x: Tensor, limit: Tensor| {
        while_loop((0, x), |(_, x)| x.gt(limit), |(k, x)| (k + 1, x * x * 0.1))
    };
    check("while_loop", ["x", "limit"], &["k", "x"], |[x, limit]| {
        halve(x, limit)
    });
    check("while_loop_jvp", ["x", "limit"], &["d.x"], |[x, limit]| {
        jvp(x, 1.0.into_tree(), |x| halve(x, limit).1).1
    });
    check(
        "vmap_while_loop",
        ["x", "limit"],
        &["k", "x"],
        |[x, limit]| vmap(x, |x| halve(x, limit)),
    );
    check(
        "vmap_while_trips",
        ["x", "n"],
        &["both", "x", "n", "d.both"],
        |[x, n]| {
            let trips = |x: Tensor, n: Tensor| {
                while_loop(
                    (x, 0),
                    |(_, k)| k.lt(n),
                    |(x, k)| (x * 1.5 + k.astype(F32), k + 1),
                )
                .0
            };
            let both = |x: Tensor| vmap((x, n), |(x, n)| trips(x, n));
            (
                both(x),
                vmap(x, |x| trips(x, n.index(2))),
                vmap(n, |n| trips(x.index(0), n)),
                jvp(x, x.ones_like(), both).1,
            )
        },
    );
    check("fori_loop", ["x"], &["value", "grad"], |[x]| {
        value_and_grad(x, |x| fori_loop(0..4, x, |k, c| c * x + k.astype(F32)))
    });
}

#[test]
fn named_axes() {
    check(
        "named_axis",
        ["x", "weights"],
        &["value", "loss", "grad.x"],
        |[x, weights]| {
            let normal = |x: Tensor| {
                vmap_named("batch", x, |row| {
                    let centred = row - pmean(row, "batch");
                    centred / (psum(centred.square(), "batch") + 1e-3).sqrt()
                })
            };
            (
                normal(x),
                value_and_grad(x, |x| (weights * normal(x)).sum()),
            )
        },
    );
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
                    (
                        psum(x.square(), "batch") * x,
                        pmean(x, "batch") * x,
                        index * x,
                    )
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
    check(
        "per_example_gradients",
        ["w", "x", "y"],
        &["grad"],
        |[w, x, y]| {
            vmap((x, y), |(x, y)| {
                grad(w, |w| (dot(w, x).tanh() - y).square())
            })
        },
    );
    check(
        "vmap_of_vmap",
        ["a", "b"],
        &["value", "grad.a"],
        |[a, b]| {
            let pairs = |a: Tensor| vmap(a, |a| vmap(b, |b| (a - b).square().sum()));
            (pairs(a), grad(a, |a| pairs(a).sqrt().sum()))
        },
    );
    check("vmap_axes", ["a", "b"], &["value"], |[a, b]| {
        out_axis(vmap((a.axis(1), b.axis(2)), |(a, b)| dot(a, b)), 1)
    });
}

#[test]
fn barriers() {
    check(
        "stop_gradient",
        ["v", "r"],
        &["loss", "grad.v"],
        |[v, r]| {
            value_and_grad(v, |v| {
                let target = stop_gradient(r.slice_axis(0, ..4) + 0.9 * v.slice_axis(0, 1..));
                0.5 * (target - v.slice_axis(0, ..4)).square().sum()
            })
        },
    );
    check(
        "straight_through",
        ["l", "w"],
        &["loss", "grad.l", "grad.w"],
        |[l, w]| {
            value_and_grad((l, w), |(l, w)| {
                let probs = l.softmax(-1);
                let hard = one_hot(l.argmax(0), 4);
                (w * (probs + stop_gradient(hard - probs)).square()).sum()
            })
        },
    );
}

#[test]
fn dynamics() {
    let step = |theta: Tensor, speed: Tensor, u: Tensor| {
        let cost = theta.square() + 0.1 * speed.square() + 0.001 * u.square();
        let speed = (speed + (15.0 * theta.sin() + 3.0 * u) * 0.05).clamp(-8.0, 8.0);
        ((theta + speed * 0.05, speed), cost)
    };
    let outputs = ["loss", "thetas", "grad.u", "grad.start"];
    check(
        "pendulum_gradient",
        ["u", "start"],
        &outputs,
        |[u, start]| {
            let ((loss, thetas), grads) = value_and_grad((u, start), |(u, start)| {
                let (_, (costs, thetas)) =
                    scan((start.index(0), start.index(1)), u, |(theta, speed), u| {
                        let (next, cost) = step(theta, speed, u);
                        (next, (cost, next.0))
                    });
                (costs.sum(), thetas)
            });
            (loss, thetas, grads)
        },
    );
    let outputs = ["loss", "grad.w", "hessian.w"];
    check(
        "policy_gradient_through_pendulum",
        ["w", "starts"],
        &outputs,
        |[w, starts]| {
            let loss = |w: Tensor| {
                let one = |start: Tensor| {
                    let (_, costs) = scan(
                        (start.index(0), start.index(1)),
                        0..10,
                        |(theta, speed), _| {
                            let u =
                                2.0 * dot(w, stack(&[theta.cos(), theta.sin(), speed], 0)).tanh();
                            step(theta, speed, u)
                        },
                    );
                    costs.mean()
                };
                vmap(starts, one).mean()
            };
            (loss(w), grad(w, loss), hessian(w, loss))
        },
    );
}

#[test]
fn derivatives_of_the_users() {
    check(
        "custom_vjp_in_scan",
        ["x", "w"],
        &["loss", "grad.x", "grad.w"],
        |[x, w]| {
            let clipped =
                |x: Tensor| custom_vjp(x, |x| (x, ()), |(), ct: Tensor| ct.clamp(-0.5, 0.5));
            value_and_grad((x, w), |(x, w)| {
                scan(x, w, |h, w| (clipped(h) * w + 0.1 * h, ())).0.sum()
            })
        },
    );
    let outputs = [
        "value",
        "grad",
        "jvp_grad",
        "grad_grad",
        "grad_jvp",
        "vmap_grad",
    ];
    check("custom_jvp", ["x"], &outputs, |[x]| {
        let f = |x: Tensor| {
            let f = |x: Tensor| x.exp().log1p();
            custom_jvp(x, f, |x, dx| (f(x), x.sigmoid() * dx))
        };
        let (total, one) = (|x| f(x).sum(), x.ones_like());
        (
            f(x),
            grad(x, total),
            jvp(x, one, |x| grad(x, total)).1,
            grad(x, |x| grad(x, total).sum()),
            grad(x, |x| jvp(x, one, f).1.sum()),
            vmap(x, |x| grad(x, f)),
        )
    });
    let outputs = ["value", "grad.x", "grad.w", "jvp", "second.w"];
    check("custom_jvp_with_a_loop", ["x", "w"], &outputs, |[x, w]| {
        let f = |(x, w): (Tensor, Tensor)| {
            let value = |(x, w): (Tensor, Tensor)| scan(0.0, x, |h, x| ((w * h + x).tanh(), ())).0;
            custom_jvp((x, w), value, |(x, w), (dx, dw)| {
                scan((0.0, 0.0), (x, dx), |(h, dh), (x, dx)| {
                    let y = (w * h + x).tanh();
                    ((y, 2.0 * (1.0 - y * y) * (w * dh + dw * h + dx)), ())
                })
                .0
            })
        };
        let second = grad(w, |w| grad(w, |w| f((x, w))));
        let along = jvp((x, w), (x.ones_like(), w.ones_like()), f).1;
        (value_and_grad((x, w), f), along, second)
    });
}

/// sin(x w), whose cotangents are twice and three times what they should be.
fn wrong_sine(x: Tensor, w: Tensor) -> Tensor {
    let forward = |(x, w): (Tensor, Tensor)| ((x * w).sin(), (x, w));
    custom_vjp((x, w), forward, |(x, w), ct| {
        let slope = ct * (x * w).cos();
        (2.0 * slope * w, 3.0 * slope * x)
    })
}

#[test]
fn passes_back_of_the_users() {
    let outputs = [
        "each",
        "each.xs",
        "each.w",
        "per_example.w",
        "steps",
        "steps.xs",
        "steps.w",
        "branch.xs",
        "branch.w",
        "batched.xs",
        "batched.w",
        "while",
        "jvp_grad",
        "grad_grad",
        "hessian.xs",
    ];
    check("custom_vjp", ["xs", "w"], &outputs, |[xs, w]| {
        let each = |xs: Tensor, w: Tensor| vmap(xs, |x| wrong_sine(x, w)).sum();
        let steps = |xs: Tensor, w: Tensor| {
            let (last, ys) = scan(0.1, xs, |h, x| (wrong_sine(h + x, w), h));
            last + ys.sum()
        };
        let branch = |xs: Tensor, w: Tensor| cond(w.gt(0), || each(xs, w), || w);
        let batched = |xs: Tensor, w: Tensor| {
            vmap(xs, |x| cond(x.gt(0).both(), || wrong_sine(x, w), || x * w)).sum()
        };
        let of_w = |w: Tensor| grad(w, |w| each(xs, w));
        let looped = while_loop(
            (0, xs.index(0)),
            |(k, _)| k.lt(3),
            |(k, x)| (k + 1, wrong_sine(x, w)),
        )
        .1;
        (
            (
                each(xs, w),
                grad2(xs, w, each),
                vmap(xs, |x| grad(w, |w| wrong_sine(x, w))),
            ),
            (steps(xs, w), grad2(xs, w, steps)),
            (grad2(xs, w, branch), grad2(xs, w, batched), looped),
            (
                jvp(w, 1.0.into_tree(), of_w).1,
                grad(w, of_w),
                hessian(xs, |xs| each(xs, w)),
            ),
        )
    });
    check("custom_vjp_nested", ["x"], &["grad", "grad_grad"], |[x]| {
        let inner = |x: Tensor| wrong_sine(x, scalar(0.5)) * x;
        let outer = |x: Tensor| custom_vjp(x, |x| (inner(x), x), |x, ct| ct * grad(x, inner) + 1.0);
        (grad(x, outer), grad(x, |x| grad(x, outer)))
    });
}

#[test]
fn checkpoints() {
    for record in records("checkpoint") {
        let program = record["attrs"]["program"].as_str().unwrap_or_default();
        let save = match program {
            _ if program.contains("everything") => Save::Everything,
            _ if program.contains("nothing") => Save::Nothing,
            _ if program.contains("dots") => Save::Dots,
            _ => Save::Names(vec!["hidden".to_string()]),
        };
        let outputs = [
            "loss",
            "grad.w",
            "grad.h0",
            "grad.xs",
            "hessian.h0",
            "grad_grad.h0",
            "per_example.h0",
        ];
        check_record(&record, ["w", "h0", "xs"], &outputs, |[w, h0, xs]| {
            let loss = |(w, h0, xs): (Tensor, Tensor, Tensor)| {
                let (last, ys) = scan(h0, xs, |h, x| {
                    let h = checkpoint(save.clone(), (h, x), |(h, x)| {
                        checkpoint_name("hidden", dot(w, h) + x).sin().tanh() * h
                    });
                    (h, h.index(0))
                });
                last.square().sum() + ys.sum()
            };
            let of_h0 = |h0: Tensor| loss((w, h0, xs));
            (
                value_and_grad((w, h0, xs), loss),
                hessian(h0, of_h0),
                grad(h0, |h0| grad(h0, of_h0).square().sum()),
                vmap(stack(&[h0, 2.0 * h0], 0), |h0| grad(h0, of_h0)),
            )
        });
    }
}

#[test]
fn prefixes_of_an_associative_operation() {
    for record in records("associative_scan") {
        let outputs = ["value", "grad.m", "reverse.value", "reverse.grad.m"];
        check_record(&record, ["m", "c"], &outputs, |[m, c]| {
            let forward = |m: Tensor| associative_scan(m, |a, b| dot(a, b));
            let reverse = |m: Tensor| associative_scan_reverse(m, |a, b| dot(a, b));
            (
                (forward(m), grad(m, |m| (c * forward(m)).sum())),
                (reverse(m), grad(m, |m| (c * reverse(m)).sum())),
            )
        });
    }
    let outputs = ["value", "grad.a", "grad.b", "vmap"];
    check(
        "associative_scan_of_pairs",
        ["a", "b"],
        &outputs,
        |[a, b]| {
            let pairs = |a, b| associative_scan((a, b), |(a, b), (c, d)| (a * c, b * c + d)).1;
            let slopes = grad2(a, b, |a, b| pairs(a, b).square().sum());
            let columns = vmap((a.axis(1), b.axis(1)), |(a, b)| pairs(a, b));
            (pairs(a, b), slopes, out_axis(columns, 1))
        },
    );
}

#[test]
fn maps_of_some_items_at_once() {
    for record in records("map_batched") {
        let program = record["attrs"]["program"].as_str().unwrap_or_default();
        let size = program
            .split(", ")
            .nth(2)
            .and_then(|text| text.split(' ').next());
        let size: usize = size
            .and_then(|size| size.parse().ok())
            .expect("a batch size");
        check_record(&record, ["x"], &["sums", "rows", "grad"], |[x]| {
            let mapped = |x: Tensor| map_batched(x, size, |row| (row.sum(), row.tanh()));
            let slope = grad(x, |x| {
                let (sums, rows) = mapped(x);
                sums.square().sum() + rows.square().sum()
            });
            (mapped(x), slope)
        });
    }
}

#[test]
fn loops_of_no_steps() {
    let outputs = ["last", "ys", "grad.h0", "grad.xs"];
    check("scan_of_nothing", ["h0", "xs"], &outputs, |[h0, xs]| {
        let run = |h0, xs| scan(h0, xs, |h, x| (h * x, h));
        let loss = |h0: Tensor, xs| {
            let (last, ys) = run(h0, xs);
            last.square().sum() + ys.sum()
        };
        (run(h0, xs), grad2(h0, xs, loss))
    });
}

#[test]
fn values_sent_along_an_axis() {
    for record in records("ppermute") {
        let program = record["attrs"]["program"].as_str().unwrap_or_default();
        let pairs: &[(usize, usize)] = if program.starts_with("rotate") {
            &[(0, 1), (1, 2), (2, 3), (3, 0)]
        } else {
            &[(0, 3), (3, 0), (1, 1), (2, 2)]
        };
        check_record(
            &record,
            ["x", "weights"],
            &["value", "grad.x"],
            |[x, weights]| {
                let sent = |x| vmap_named("batch", x, |row| ppermute(row, "batch", pairs));
                (sent(x), grad(x, |x| (weights * sent(x)).sum()))
            },
        );
    }
}

#[test]
fn something_beside_the_value() {
    let outputs = [
        "grad", "hessian", "jacfwd", "jacrev", "jvp", "jvp", "vjp", "aux", "aux", "aux", "aux",
        "aux", "aux", "aux",
    ];
    check("has_aux", ["x"], &outputs, |[x]| {
        let f = |x: Tensor| {
            let [a, b, c] = [0, 1, 2].map(|i| x.index(i));
            (stack(&[a * b.sin(), c.square() * a], 0), x * 3.0)
        };
        let loss = |x: Tensor| {
            let (y, aux) = f(x);
            (y.square().sum(), aux)
        };
        let ones = x.ones_like();
        let (_, slope, of_jvp) = jvp_with_aux(x, ones, f);
        let (_, derivative, of_linearize) = linearize_with_aux(x, f);
        let (_, back, of_vjp) = vjp_with_aux(x, f);
        let (gradient, of_grad) = grad_with_aux(x, loss);
        let (matrix, of_hessian) = hessian_with_aux(x, loss);
        let (fwd, of_fwd) = jacfwd_with_aux(x, f);
        let (rev, of_rev) = jacrev_with_aux(x, f);
        (
            (gradient, matrix, fwd, rev),
            (slope, derivative(ones), back(constant([1.0, 1.0]))),
            (
                of_jvp,
                of_linearize,
                of_vjp,
                of_grad,
                of_hessian,
                of_fwd,
                of_rev,
            ),
        )
    });
}
