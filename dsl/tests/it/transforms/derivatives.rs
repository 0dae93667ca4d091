//! Higher orders, user-defined derivatives, rematerialized values, and values next to the loss.

use super::{check, check_record, grad2, records};
use podracer_dsl::prelude::*;

#[test]
fn higher_orders() {
    check("scan_higher_orders", ["x"], &["value", "grad1", "grad2", "grad3"], |[x]| {
        let f =
            |x: Tensor| scan(x, constant([0.1, 0.2, 0.3, 0.4]), |c, t| ((c * x).sin() + t, ())).0;
        (f(x), grad(x, f), grad(x, |x| grad(x, f)), grad(x, |x| grad(x, |x| grad(x, f))))
    });
    let outputs = ["value", "jvp_grad", "grad_grad", "grad_jvp"];
    check("scan_hessian_vector_product", ["w", "v", "xs"], &outputs, |[w, v, xs]| {
        let f = |w: Tensor| {
            scan(zeros(F32, [3]), xs, |h, x| ((dot(w, h) + x).tanh(), ())).0.square().sum()
        };
        (
            f(w),
            jvp(w, v, |w| grad(w, f)).1,
            grad(w, |w| (grad(w, f) * v).sum()),
            grad(w, |w| jvp(w, v, f).1),
        )
    });
    check("mlp_hessian", ["flat", "x", "y"], &["loss", "grad", "hessian"], |[flat, x, y]| {
        let loss = |flat: Tensor| {
            let part = |from: usize, to: usize, shape: &[usize]| {
                flat.slice_axis(0, from..to).reshape(shape)
            };
            let hidden = (dot(x, part(0, 6, &[2, 3])) + part(6, 9, &[3])).tanh();
            (dot(hidden, part(9, 12, &[3, 1])) + part(12, 13, &[1]) - y).square().mean()
        };
        (loss(flat), grad(flat, loss), hessian(flat, loss))
    });
    check("jacobians", ["x"], &["value", "jacfwd", "jacrev", "second"], |[x]| {
        let f = |x: Tensor| {
            let [a, b, c] = [0, 1, 2].map(|i| x.index(i));
            stack(&[a * b.sin() + c.powi(3), (a * c).exp() - b], 0)
        };
        (f(x), jacfwd(x, f), jacrev(x, f), jacfwd(x, |x| jacrev(x, f)))
    });
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
fn derivatives_of_the_users() {
    check("custom_vjp_in_scan", ["x", "w"], &["loss", "grad.x", "grad.w"], |[x, w]| {
        let clipped = |x: Tensor| custom_vjp(x, |x| (x, ()), |(), ct: Tensor| ct.clamp(-0.5, 0.5));
        value_and_grad((x, w), |(x, w)| scan(x, w, |h, w| (clipped(h) * w + 0.1 * h, ())).0.sum())
    });
    let outputs = ["value", "grad", "jvp_grad", "grad_grad", "grad_jvp", "vmap_grad"];
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

/// sin(x w), with cotangents that are two and three times too large.
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
        let looped =
            while_loop((0, xs.index(0)), |(k, _)| k.lt(3), |(k, x)| (k + 1, wrong_sine(x, w))).1;
        (
            (each(xs, w), grad2(xs, w, each), vmap(xs, |x| grad(w, |w| wrong_sine(x, w)))),
            (steps(xs, w), grad2(xs, w, steps)),
            (grad2(xs, w, branch), grad2(xs, w, batched), looped),
            (jvp(w, 1.0.into_tree(), of_w).1, grad(w, of_w), hessian(xs, |xs| each(xs, w))),
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
            (of_jvp, of_linearize, of_vjp, of_grad, of_hessian, of_fwd, of_rev),
        )
    });
}

/// Combinations of the rules with combinators that jax's golden values lack, each compared with the
/// expanded function.
#[test]
fn rules_within_combinators() {
    let square = |x: Tensor| custom_jvp(x, |x| x * x, |x, dx| (x * x, 3.0 * x * dx));
    let inputs = [crate::helpers::f32s(&[3], &[0.5, -2.0, 3.0])];
    let results = crate::helpers::run_on(f32([3]), &inputs, |x| {
        let chosen = |x: Tensor| cond(x.gt(0).both(), || square(x), || -x);
        let looped =
            |x: Tensor| while_loop((0, x), |(n, _)| n.lt(2), |(n, x)| (n + 1, square(x))).1;
        let called = |x: Tensor| subroutine("square", x, square);
        let kept = |x: Tensor| checkpoint(Save::Nothing, x, square);
        let one = |f: &dyn Fn(Tensor) -> Tensor| vmap(x, |x| grad(x, f));
        (
            one(&chosen),
            vmap(x, |x| jvp(x, x.ones_like(), looped).1),
            one(&called),
            one(&kept),
            vmap(x, |x| hessian(x.expand_dims(0), |x| kept(x.index(0))).index(0).index(0)),
            grad(x, |x| fori_loop(0..2, x, |_, x| square(x)).sum()),
        )
    });
    let at = inputs[0].to_f64();
    let each = |f: &dyn Fn(f64) -> f64| at.iter().map(|&x| f(x)).collect::<Vec<_>>();
    let expected = [
        each(&|x| if x > 0.0 { 3.0 * x } else { -1.0 }),
        each(&|x| 3.0 * x * x * 3.0 * x),
        each(&|x| 3.0 * x),
        each(&|x| 3.0 * x),
        each(&|_| 3.0),
        each(&|x| 3.0 * x * x * 3.0 * x),
    ];
    for (got, expected) in results.iter().zip(&expected) {
        crate::helpers::close(got, expected, 1e-6);
    }
}

#[derive(Tree, Clone)]
struct Affine {
    w: Tensor,
    b: Tensor,
}

#[derive(Tree, Clone)]
struct Values {
    hidden: Tensor,
    sum: Tensor,
}

#[test]
fn jacobians_of_trees() {
    let names = [
        "fwd.hidden.w",
        "fwd.hidden.b",
        "fwd.sum.w",
        "fwd.sum.b",
        "rev.hidden.w",
        "rev.hidden.b",
        "rev.sum.w",
        "rev.sum.b",
        "hessian.w.w",
        "hessian.w.b",
        "hessian.b.w",
        "hessian.b.b",
    ];
    check("jacobians_of_trees", ["w", "b", "x"], &names, |[w, b, x]| {
        let f = |affine: Affine| {
            let hidden = (dot(affine.w, x) + affine.b).tanh();
            Values { hidden, sum: (hidden * affine.b).sum().square() }
        };
        let at = Affine { w, b };
        let forward = jacfwd(at.clone(), f);
        let reverse = jacrev(at.clone(), |at| {
            let Values { hidden, sum } = f(at);
            (hidden, sum)
        });
        let second = hessian(at, |at| f(at).sum);
        (
            (forward.hidden.clone(), forward.sum.clone()),
            reverse,
            ((second.w.w, second.w.b), [second.b.w, second.b.b]),
        )
    });
}
