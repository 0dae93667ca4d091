//! Functions that are several operations, against jax: `functions.json`, values and gradients.

use crate::golden::{array, file, float};
use crate::helpers::run_on;
use podracer_dsl::prelude::*;
use serde_json::Value;

/// The function of a record on its inputs.
fn apply(record: &Value, x: &[Tensor]) -> Vec<Tensor> {
    let attrs = &record["attrs"];
    let op = record["op"].as_str().expect("a name");
    let integer = |name: &str| attrs[name].as_i64().expect("an integer");
    let axis = || integer("axis") as isize;
    let size = |name: &str| integer(name) as usize;
    let list = |name: &str| -> Vec<f64> {
        attrs[name].as_array().expect("a list").iter().map(float).collect()
    };
    let padding = || match &attrs["padding"] {
        Value::String(word) if word == "SAME" => Padding::Same,
        Value::String(_) => Padding::Valid,
        pairs => {
            let pairs = pairs.as_array().expect("pairs").iter();
            let amount = |x: &Value| x.as_u64().expect("an amount") as usize;
            Padding::Explicit(pairs.map(|pair| (amount(&pair[0]), amount(&pair[1]))).collect())
        }
    };
    let axes = || keepdims(list("axes").into_iter().map(|axis| axis as isize).collect::<Vec<_>>());
    let one = match op {
        "log2" => x[0].log2(),
        "log10" => x[0].log10(),
        "exp2" => x[0].exp2(),
        "trunc" => x[0].trunc(),
        "isinf" => x[0].is_inf(),
        "isnan" => x[0].is_nan(),
        "isfinite" => x[0].is_finite(),
        "nan_to_num" => x[0].nan_to_num(),
        "hypot" => hypot(x[0], x[1]),
        "arange" => {
            let args = &attrs["args"];
            match [0, 1, 2].map(|i| args[i].as_i64()) {
                [Some(start), Some(stop), Some(step)] => {
                    arange((start as i32, stop as i32, step as i32))
                }
                _ => {
                    let [start, stop, step] = [0, 1, 2].map(|i| float(&args[i]));
                    arange((start, stop, step))
                }
            }
        }
        "diagonal" => x[0].diagonal(integer("offset") as i32),
        "diag" => x[0].diag(integer("offset") as i32),
        "trace" => x[0].trace(),
        "kron" => x[0].kron(x[1]),
        "cross" => x[0].cross(x[1]),
        "solve" => x[0].solve(x[1]),
        "inv" => x[0].inv(),
        "det" => x[0].det(),
        "slogdet" => {
            let (sign, log) = x[0].slogdet();
            return vec![sign, log];
        }
        "vector_norm" => x[0].vector_norm(float(&attrs["order"]), -1),
        "matrix_norm" => x[0].matrix_norm(match attrs["order"].as_str() {
            Some("fro") => MatrixNorm::Frobenius,
            Some("1") => MatrixNorm::One,
            _ => MatrixNorm::Infinity,
        }),
        "searchsorted" => {
            let left = attrs["side"] == "left";
            x[0].searchsorted(x[1], if left { Side::Left } else { Side::Right })
        }
        "interp" => x[0].interp(x[1], x[2]),
        "quantile" => x[0].quantile(float(&attrs["q"])),
        "quantile_axis" if attrs["q"].is_array() => x[0].quantile_axis(list("q"), axis()),
        "quantile_axis" => x[0].quantile_axis(float(&attrs["q"]), axis()),
        "median" => x[0].median(),
        "median_axis" => x[0].median_axis(axis()),
        "diff" => x[0].diff(axis()),
        "bincount" => x[0].bincount(size("length")),
        "nonzero" => return x[0].nonzero(size("size"), integer("fill") as i32),
        "segment_sum" => segment_sum(x[0], x[1], size("segments")),
        "conv1d" => conv1d(x[0], x[1], size("stride"), padding()),
        "conv_transpose" => {
            let strides: Vec<usize> = list("strides").into_iter().map(|n| n as usize).collect();
            conv_transpose(x[0], x[1], strides, padding())
        }
        "sum" => x[0].sum_axis(axes()),
        "prod" => x[0].prod_axis(axes()),
        "max" => x[0].max_axis(axes()),
        "min" => x[0].min_axis(axes()),
        "any" => x[0].any_axis(axes()),
        "mean" => x[0].mean_axis(axes()),
        "var" => x[0].var_axis(axes()),
        "std" => x[0].std_axis(axes()),
        "logsumexp" => x[0].logsumexp(axes()),
        other => panic!("no function {other}"),
    };
    vec![one]
}

/// The first difference between `got` and `expected`. It is relative to the greatest finite
/// magnitude if `solved`, otherwise to each number's own magnitude.
fn difference(got: &Array, expected: &Array, tolerance: f64, solved: bool) -> Option<String> {
    if got.ty() != expected.ty() {
        return Some(format!("{} in place of {}", got.ty(), expected.ty()));
    }
    let (got, expected) = (got.to_f64(), expected.to_f64());
    let finite = expected.iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    let close = |(g, e): (&f64, &f64)| {
        let scale = if solved { finite.max(1.0) } else { e.abs().max(1e-3) };
        g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= tolerance * scale
    };
    let all = got.iter().zip(&expected).all(close);
    (!all).then(|| format!("{got:?}\n  jax has {expected:?}"))
}

/// Intended differences from jax: the beginning of a complaint, and the reason.
const DIFFERENT: &[(&str, &str)] =
    &[("value of nonzero {\"fill\":-1,\"size\":3} null [\"i32[0]\"]", "jax forgets `fill_value`")];

#[test]
fn functions_have_the_values_and_gradients_of_jax() {
    let mut complaints = Vec::new();
    for mut record in file("functions.json") {
        // The order of keys depends on how the whole workspace is built; a complaint must not
        // depend on it.
        record["attrs"].sort_all_objects();
        let some = |field: &str| -> Vec<Option<Array>> {
            let list = record[field].as_array().expect("a list");
            list.iter().map(|x| (!x.is_null()).then(|| array(x))).collect()
        };
        let inputs: Vec<Array> = some("inputs").into_iter().flatten().collect();
        let (outputs, weights, gradients) = (some("outputs"), some("weights"), some("gradients"));
        let wrt: Vec<usize> = (0..inputs.len()).filter(|&i| gradients[i].is_some()).collect();
        let spec: Vec<Spec<Tensor>> = inputs.iter().map(|x| Spec(x.ty().clone())).collect();
        let got = run_on(spec, &inputs, |x| {
            let values = apply(&record, &x);
            if wrt.is_empty() {
                return (values, Vec::new());
            }
            let chosen: Vec<Tensor> = wrt.iter().map(|&i| x[i]).collect();
            let slopes = grad(chosen, |chosen| {
                let mut all = x.clone();
                for (&i, x) in wrt.iter().zip(chosen) {
                    all[i] = x;
                }
                let results = apply(&record, &all).into_iter().zip(&weights);
                results
                    .filter_map(|(y, w)| Some((y * constant_of(w.as_ref()?)).sum()))
                    .sum::<Tensor>()
            });
            (values, slopes)
        });
        let expected = outputs.iter().chain(gradients.iter()).flatten();
        let op = record["op"].as_str().unwrap_or_default();
        let name = format!(
            "{op} {} {} {:?}",
            record["attrs"],
            record["note"],
            inputs[..].iter().map(|x| x.ty().to_string()).collect::<Vec<_>>()
        );
        if got.len() != expected.clone().count() {
            complaints.push(format!("{name}: {} results", got.len()));
            continue;
        }
        let solved = ["solve", "inv", "det", "slogdet"].contains(&op);
        for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
            let is_gradient = i >= outputs.len();
            let tolerance = if solved { 2e-4 } else { 1e-5 };
            if let Some(problem) = difference(got, expected, tolerance, solved) {
                let what = if is_gradient { "gradient" } else { "value" };
                complaints.push(format!("{what} of {name}: {problem}"));
            }
        }
    }
    for (start, reason) in DIFFERENT {
        let before = complaints.len();
        complaints.retain(|complaint| !complaint.starts_with(start));
        assert!(complaints.len() < before, "no difference any more in {start}: {reason}");
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// However badly conditioned a matrix is, the solution solves a system very near it: the residual
/// is a few roundings of the numbers that went into it.
#[test]
fn solving_is_backward_stable() {
    let hilbert = |n: usize| -> Vec<f64> {
        (0..n * n).map(|i| f64::from(1.0 / (i / n + i % n + 1) as f32)).collect()
    };
    let mixed = |n: usize| -> Vec<f64> {
        (0..n * n).map(|i| f64::from(((i * i + 7 * i) % 31) as f32 / 31.0 - 0.4)).collect()
    };
    for (n, matrix) in [(6, hilbert(6)), (10, hilbert(10)), (24, mixed(24))] {
        let right: Vec<f64> = (0..n).map(|i| f64::from(i as f32 - 2.5)).collect();
        let inputs =
            [Array::floats(DType::F32, [n, n], &matrix), Array::floats(DType::F32, [n], &right)];
        let x = run_on((f32([n, n]), f32([n])), &inputs, |(a, b)| a.solve(b)).remove(0).to_f64();
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
        let residual: Vec<f64> = (0..n)
            .map(|row| (0..n).map(|i| matrix[row * n + i] * x[i]).sum::<f64>() - right[row])
            .collect();
        let error = norm(&residual) / (norm(&matrix) * norm(&x) + norm(&right));
        assert!(error < 1e-6, "{n}: {error}");
    }
}

#[test]
fn mistakes_in_what_is_solved_are_named() {
    use crate::helpers::errors;
    let message = |errors: TraceErrors| errors.errors[0].message.clone();
    let of_square = message(errors(f32([2, 3]), |x| x.det()));
    assert_eq!(of_square, "expected square matrices of floats, got f32[2,3]");
    let of_right = message(errors((f32([2, 2]), f32([3])), |(a, b)| a.solve(b)));
    assert_eq!(of_right, "the right side f32[3] does not fit the matrices f32[2,2]");
    let of_step = message(errors((), |()| arange((0, 3, 0))));
    assert_eq!(of_step, "there are no numbers from 0 to 3 in steps of 0: the step must not be 0");
}
