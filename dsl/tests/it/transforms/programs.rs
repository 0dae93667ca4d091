//! Programs as users of JAX write them, with composed transforms, loops, branches and random
//! numbers: `programs.json`.

use super::{check, check_record, records};
use podracer_dsl::prelude::*;

#[test]
fn a_recurrent_network_recomputed_under_vmap() {
    let outputs = ["loss", "grad.w", "grad.u"];
    check("remat_rnn", ["w", "u", "xs"], &outputs, |[w, u, xs]| {
        value_and_grad((w, u), |(w, u)| {
            let step = |h: Tensor, x: Tensor| {
                checkpoint(Save::Nothing, (h, x), |(h, x)| {
                    let h = (dot(w, h) + dot(u, x)).tanh();
                    (h, h.square().sum())
                })
            };
            vmap(xs, |xs| scan(zeros(F32, [4]), xs, step).1.sum()).mean()
        })
    });
}

#[test]
fn a_meta_gradient_through_learning() {
    let inputs = ["w", "rate", "x", "y"];
    check("maml", inputs, &["loss", "grad.w", "grad.rate"], |[w, rate, x, y]| {
        let task_loss = |w, x, y: Tensor| (dot(x, w).tanh() - y).square().mean();
        value_and_grad((w, rate), |(w, rate)| {
            let adapted = |(x, y): (Tensor, Tensor)| {
                let w = fori_loop(0..3, w, |_, w| {
                    w - rate * grad(w, |w| task_loss(w, x.index(0), y.index(0)))
                });
                task_loss(w, x.index(1), y.index(1))
            };
            vmap((x, y), adapted).mean()
        })
    });
}

#[test]
fn a_natural_gradient_by_products_of_the_metric() {
    let inputs = ["w", "x", "actions", "advantages"];
    check("natural_gradient", inputs, &["s", "residuals"], |[w, x, actions, advantages]| {
        let objective = |w| {
            let logp = dot(x, w).log_softmax(-1);
            let chosen = logp.take_along_axis(actions.expand_dims(1), 1);
            (chosen.index_axis(1, 0) * advantages).mean()
        };
        let product = |v: Tensor| {
            let (logits, d) = jvp(w, v, |w| dot(x, w));
            let probs = logits.softmax(-1);
            let mean = (probs * d).sum_axis(1).expand_dims(1);
            let metric = (probs * d - probs * mean) / 6.0;
            vjp(w, |w| dot(x, w)).1(metric) + 0.1 * v
        };
        let g = grad(w, objective);
        let begin = (g.zeros_like(), g, g, g.square().sum());
        let ((s, ..), residuals) = scan(begin, 0..4, |(s, r, d, rr), _| {
            let q = product(d);
            let alpha = rr / (d * q).sum();
            let (s, r) = (s + alpha * d, r - alpha * q);
            let after = r.square().sum();
            ((s, r, r + after / rr * d, after), after)
        });
        (s, residuals)
    });
}

#[test]
fn evolution_by_ranks() {
    check("evolution_strategies", ["theta", "key"], &["theta", "best"], |[theta, key]| {
        let fitness = |theta: Tensor| {
            -(theta - arange(5).astype(F32)).square().sum() + 3.0 * (4.0 * theta.index(0)).cos()
        };
        scan(theta, Key::from_words(key).split_n(3), |theta, key| {
            let noise = vmap(key.split_n(8), |key| key.normal([5]));
            let both = concatenate(&[noise, -noise], 0);
            let returns = vmap(both, |e| fitness(theta + 0.1 * e));
            let ranks = returns.argsort(0).argsort(0).astype(F32) / 15.0 - 0.5;
            (theta + 0.5 * dot(ranks, both) / 1.6, returns.max())
        })
    });
}

#[test]
fn subsets_by_gumbel_and_top_k() {
    let inputs = ["logits", "value", "key"];
    check("gumbel_top_k", inputs, &["loss", "chosen", "grad"], |[logits, value, key]| {
        let ((loss, chosen), slope) = value_and_grad(logits, |logits| {
            let keys = Key::from_words(key).split_n(3);
            let (values, chosen) = vmap((logits, value, keys), |(logits, value, key)| {
                let noisy = logits + key.gumbel([7]);
                let (_, chosen) = noisy.top_k(3);
                let hard = one_hot(chosen, 7).sum_axis(0);
                let soft = noisy.softmax(-1);
                let through = soft + stop_gradient(hard - soft);
                ((through * value).sum(), chosen)
            });
            (values.sum(), chosen)
        });
        (loss, chosen, slope)
    });
}

#[test]
fn loops_in_loops_with_branches_and_rules() {
    let outputs = ["loss", "grad.w", "grad.xs", "hvp"];
    check("scans_cond_custom_vjp", ["w", "xs"], &outputs, |[w, xs]| {
        let clipped = |x: Tensor| custom_vjp(x, |x| (x, ()), |(), ct: Tensor| ct.clamp(-0.3, 0.3));
        let loss = |w: Tensor, xs: Tensor| {
            let inner = |h: Tensor, x: Tensor| {
                let grown = h.sum().gt(0.0);
                let h = cond(grown, || (h * w).sin() + x, || clipped(h) * w - x);
                (h, h.max())
            };
            let (h, sums) = scan(ones(F32, [3]), xs, |h, xs| {
                let (h, peaks) = scan_reverse(h, xs, inner);
                (h / (1.0 + h.square().sum()), peaks.sum())
            });
            h.sum() + dot(sums, arange(4).astype(F32) + 1.0)
        };
        let (value, slopes) = value_and_grad((w, xs), |(w, xs)| loss(w, xs));
        let twice = grad(w, |w| grad(w, |w| loss(w, xs)).square().sum());
        (value, slopes, twice)
    });
}

#[test]
fn a_population_that_trains_and_copies() {
    let outputs = ["w", "rates", "means", "places"];
    check("population", ["w", "rates"], &outputs, |[w, rates]| {
        let (target, scale) = (constant([0.5, -1.0, 2.0]), constant([1.0, 2.0, 0.5]));
        let loss = |w: Tensor| ((w - target).square() * scale).sum();
        let ring = [(0, 1), (1, 2), (2, 3), (3, 0)];
        scan((w, rates), 0..3, |state, _| {
            let (w, rate, mean, place) = vmap_named("population", state, |(w, rate)| {
                let w = fori_loop(0..3, w, |_, w| w - rate * grad(w, loss));
                let (scores, all, rates) = all_gather((loss(w), w, rate), "population");
                let rank = scores.lt(loss(w)).astype(I32).sum();
                let best = scores.argmin(0);
                let copied = || (all.at(best), rates.at(best) * 1.2);
                let (w, rate) = cond(rank.ge(2).both(), copied, || (w, rate));
                let neighbour = ppermute(w, "population", &ring);
                let w = w + 0.1 * (neighbour - w);
                (w, rate, pmean(loss(w), "population"), axis_index("population"))
            });
            ((w, rate), (mean, place))
        })
    });
}

/// `f(f(..f(x0)))`, until it converges.
fn solve(f: impl Fn(Tensor) -> Tensor, x0: Tensor) -> Tensor {
    let far =
        |(x, before, n): (Tensor, Tensor, Tensor)| (x - before).abs().max().gt(1e-6) & n.lt(200);
    while_loop((f(x0), x0, 0), far, |(x, _, n)| (f(x), x, n + 1)).0
}

#[test]
fn a_fixed_point_differentiated_implicitly() {
    let outputs = ["x", "grad.w", "grad.b"];
    check("implicit_fixed_point", ["w", "b"], &outputs, |[w, b]| {
        let f = |w, b: Tensor, x| (dot(w, x) + b).tanh();
        let fixed = |w: Tensor, b: Tensor| {
            custom_vjp(
                (w, b),
                |(w, b)| {
                    let x = solve(|x| f(w, b, x), b.zeros_like());
                    (x, (w, b, x))
                },
                |(w, b, x), ct| {
                    let (_, by_x) = vjp(x, |x| f(w, b, x));
                    let (_, by_wb) = vjp((w, b), |(w, b)| f(w, b, x));
                    by_wb(solve(|u| ct + by_x(u), ct))
                },
            )
        };
        let points = |w: Tensor, b: Tensor| vmap(b, |b| fixed(w, b));
        let slopes = grad((w, b), |(w, b)| points(w, b).powi(3).sum());
        (points(w, b), slopes)
    });
}

/// Products of bf16 numbers in f32, without rounding: products and sums of `preferred_element_type=float32`.
#[test]
fn mixed_precision() {
    let inputs = ["w", "v", "x", "y"];
    check("mixed_precision", inputs, &["loss", "w", "v"], |[w, v, x, y]| {
        let half = |x: Tensor| x.astype(BF16);
        let product = |x: Tensor, y: Tensor| dot(x.astype(F32), y.astype(F32));
        let loss = |w: Tensor, v: Tensor| {
            let h = half(maximum(product(half(x), half(w)), 0.0));
            (product(h, half(v)) - y).square().mean()
        };
        let grads = grad((w, v), |(w, v)| 1024.0 * loss(w, v));
        let finite = grads.0.is_finite().all() & grads.1.is_finite().all();
        let step = |p: Tensor, g: Tensor| select(finite, p - 0.1 * g / 1024.0, p);
        (loss(w, v), step(w, grads.0), step(v, grads.1))
    });
}

#[test]
fn integers_and_bits() {
    let outputs = [
        "xorshift",
        "gray",
        "reversed",
        "ones",
        "rotated",
        "high",
        "packed",
        "root",
        "quantized",
        "signed",
        "shifted",
        "bytes",
    ];
    check("bits", ["x", "a"], &outputs, |[x, a]| {
        let xorshift = |x: Tensor| {
            let x = x ^ (x << 13);
            let x = x ^ (x >> 17);
            x ^ (x << 5)
        };
        let masks: [(i32, i64); 5] = [
            (1, 0x5555_5555),
            (2, 0x3333_3333),
            (4, 0x0F0F_0F0F),
            (8, 0x00FF_00FF),
            (16, 0x0000_FFFF),
        ];
        let reversed = masks
            .into_iter()
            .fold(x, |x, (shift, mask)| ((x >> shift) & mask) | ((x & mask) << shift));
        let y = x.reverse(0);
        let high = {
            let (a, b, c, d) = (x >> 16, x & 0xFFFF, y >> 16, y & 0xFFFF);
            let middle = a * d + ((b * d) >> 16);
            let low = b * c + (middle & 0xFFFF);
            a * c + (middle >> 16) + (low >> 16)
        };
        let places = iota(U32, [8], 0);
        let packed = (x.rem(3).eq(0).astype(U32) << places).sum();
        let signed = x.bitcast(I32);
        let guess = (0x5F37_59DF - (a.bitcast(I32) >> 1)).bitcast(F32);
        let bytes = stack(&[0, 8, 16, 24].map(|shift| ((x >> shift) & 0xFF).astype(U8)), 1);
        (
            (
                fori_loop(0..10, x, |_, x| xorshift(x)),
                x ^ (x >> 1),
                reversed,
                x.popcount(),
                (x << (x.rem(31) + 1)) | (x >> (31 - x.rem(31))),
                high,
            ),
            (
                packed,
                guess * (1.5 - 0.5 * a * guess * guess),
                (a * 100.0 - 90.0).round().clamp(-128.0, 127.0).astype(I8),
                (signed.floor_div(7) * 3).modulo(11),
                signed >> 5,
                bytes,
            ),
        )
    });
}

#[test]
fn a_ring_that_is_drawn_from_by_priority() {
    let outputs = ["loss", "drawn", "grad"];
    check("prioritized_ring", ["w", "xs", "key"], &outputs, |[w, xs, key]| {
        let ((loss, drawn), slope) = value_and_grad(w, |w| {
            let begin = (zeros(F32, [4, 3]), 0);
            let ((ring, _), ()) =
                scan(begin, xs, |(ring, place), x| ((ring.set(place, x * w), (place + 1) % 4), ()));
            let priority = stop_gradient(ring).abs().sum_axis(1);
            let total = priority.sum();
            let drawn = Key::from_words(key).uniform([6]) * total;
            // The first position with a cumulative sum of at least `drawn`.
            let below = priority.cumsum(0).expand_dims(0).lt(drawn.expand_dims(1));
            let drawn = below.astype(I32).sum_axis(1);
            let weight = 1.0 / (priority.at(drawn) / total * 4.0);
            ((weight.expand_dims(1) * ring.at(drawn).square()).sum(), drawn)
        });
        (loss, drawn, slope)
    });
}

#[test]
fn advantages_by_a_scan_of_pairs_and_clipped_gradients() {
    let inputs = ["w", "xs", "rewards", "ends"];
    check("gae_clipped", inputs, &["grad", "hessian"], |[w, xs, rewards, ends]| {
        let advantages = |values: Tensor, rewards: Tensor, ends: Tensor| {
            let discount = select(ends.slice(..-1), 0.0, 0.99);
            let deltas = rewards.slice(..-1) + discount * values.slice(1..) - values.slice(..-1);
            let join = |(a, later): (Tensor, Tensor), (b, earlier): (Tensor, Tensor)| {
                (b * a, earlier + b * later)
            };
            associative_scan_reverse((discount * 0.95, deltas), join).1
        };
        let one =
            |w, xs, rewards, ends| advantages(dot(xs, w).tanh(), rewards, ends).square().mean();
        let grads =
            vmap((xs, rewards, ends), |(xs, rewards, ends)| grad(w, |w| one(w, xs, rewards, ends)));
        let norms = vmap(grads, |g| g.norm());
        let clipped = grads * minimum(1.0, 0.5 / norms).expand_dims(1);
        let first = (xs.index(0), rewards.index(0), ends.index(0));
        let second = hessian(w, |w| one(w, first.0, first.1, first.2));
        (clipped.mean_axis(0), second)
    });
}

#[test]
fn sums_by_letters() {
    for record in records("einsum") {
        let subscripts = record["attrs"]["program"].as_str().expect("the subscripts");
        let f = |xs: &[Tensor]| einsum(subscripts, xs);
        let all = |xs: Vec<Tensor>| (f(&xs), grad(xs, |xs| f(&xs).sin().sum()));
        match record["inputs"].as_object().map_or(0, |inputs| inputs.len()) {
            1 => {
                let outputs = ["value", "grad.x0"];
                check_record(&record, ["x0"], &outputs, |xs| all(xs.to_vec()));
            }
            2 => {
                let outputs = ["value", "grad.x0", "grad.x1"];
                check_record(&record, ["x0", "x1"], &outputs, |xs| all(xs.to_vec()));
            }
            _ => {
                let outputs = ["value", "grad.x0", "grad.x1", "grad.x2"];
                check_record(&record, ["x0", "x1", "x2"], &outputs, |xs| all(xs.to_vec()));
            }
        }
    }
}
