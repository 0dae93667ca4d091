//! Loops of unknown length, of no rounds, in batches, and prefixes; values sent along an axis.

use super::{check, check_record, grad2, records};
use podracer_dsl::prelude::*;

#[test]
fn loops_of_unknown_length() {
    let halve = |x: Tensor, limit: Tensor| {
        while_loop((0, x), |(_, x)| x.gt(limit), |(k, x)| (k + 1, x * x * 0.1))
    };
    check("while_loop", ["x", "limit"], &["k", "x"], |[x, limit]| halve(x, limit));
    check("while_loop_jvp", ["x", "limit"], &["d.x"], |[x, limit]| {
        jvp(x, 1.0.into_tree(), |x| halve(x, limit).1).1
    });
    check("vmap_while_loop", ["x", "limit"], &["k", "x"], |[x, limit]| {
        vmap(x, |x| halve(x, limit))
    });
    check("vmap_while_trips", ["x", "n"], &["both", "x", "n", "d.both"], |[x, n]| {
        let trips = |x: Tensor, n: Tensor| {
            while_loop((x, 0), |(_, k)| k.lt(n), |(x, k)| (x * 1.5 + k.astype(F32), k + 1)).0
        };
        let both = |x: Tensor| vmap((x, n), |(x, n)| trips(x, n));
        (
            both(x),
            vmap(x, |x| trips(x, n.index(2))),
            vmap(n, |n| trips(x.index(0), n)),
            jvp(x, x.ones_like(), both).1,
        )
    });
    check("fori_loop", ["x"], &["value", "grad"], |[x]| {
        value_and_grad(x, |x| fori_loop(0..4, x, |k, c| c * x + k.astype(F32)))
    });
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
    check("associative_scan_of_pairs", ["a", "b"], &outputs, |[a, b]| {
        let pairs = |a, b| associative_scan((a, b), |(a, b), (c, d)| (a * c, b * c + d)).1;
        let slopes = grad2(a, b, |a, b| pairs(a, b).square().sum());
        let columns = vmap((a.axis(1), b.axis(1)), |(a, b)| pairs(a, b));
        (pairs(a, b), slopes, out_axis(columns, 1))
    });
}

#[test]
fn maps_of_some_items_at_once() {
    for record in records("map_batched") {
        let program = record["attrs"]["program"].as_str().unwrap_or_default();
        let size = program.split(", ").nth(2).and_then(|text| text.split(' ').next());
        let size: usize = size.and_then(|size| size.parse().ok()).expect("a batch size");
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
        check_record(&record, ["x", "weights"], &["value", "grad.x"], |[x, weights]| {
            let sent = |x| vmap_named("batch", x, |row| ppermute(row, "batch", pairs));
            (sent(x), grad(x, |x| (weights * sent(x)).sum()))
        });
    }
}
