//! Returns and advantages against rlax, and where episodes end.

use crate::golden::{Record, close, floats, records, run};
use podracer_dsl::prelude::*;
use podracer_rl::returns::*;

fn lambda(record: &Record) -> f64 {
    record.number("lambda").expect("lambda")
}

/// Names of the arguments of the functions of V-trace.
const NAMES: [&str; 5] = ["v_tm1", "v_t", "r_t", "discount_t", "rho_tm1"];

#[test]
fn discounted_returns_are_those_of_rlax() {
    for record in records("discounted_returns") {
        record.check(|x| {
            vec![("value", discounted_returns(x.get("r_t"), x.get("discount_t"), x.get("v_t")))]
        });
    }
}

#[test]
fn lambda_returns_are_those_of_rlax() {
    for record in records("lambda_returns") {
        record.check(|x| {
            let [r_t, discount_t, v_t] = x.all(["r_t", "discount_t", "v_t"]);
            let value = match record.number("lambda") {
                Some(lambda) => lambda_returns(r_t, discount_t, v_t, lambda),
                None => lambda_returns(r_t, discount_t, v_t, x.get("lambda_t")),
            };
            vec![("value", value)]
        });
    }
}

#[test]
fn n_step_returns_are_those_of_rlax() {
    for record in records("n_step_bootstrapped_returns") {
        let n = record.count("n").expect("n");
        record.check(|x| {
            vec![(
                "value",
                n_step_bootstrapped_returns(
                    x.get("r_t"),
                    x.get("discount_t"),
                    x.get("v_t"),
                    n,
                    lambda(&record),
                ),
            )]
        });
    }
}

#[test]
fn n_step_returns_trace_no_more_steps_than_there_are() {
    let of = |n: usize| {
        let traced = trace((f32([3]), f32([3]), f32([3])), |(r_t, discount_t, v_t)| {
            n_step_bootstrapped_returns(r_t, discount_t, v_t, n, 1.0)
        });
        traced.expect("it traces").to_string()
    };
    assert_eq!(of(usize::MAX), of(3));
}

#[test]
fn advantages_are_those_of_rlax() {
    for record in records("truncated_generalized_advantage_estimation") {
        record.check(|x| {
            let [r_t, discount_t, values] = x.all(["r_t", "discount_t", "values"]);
            vec![(
                "value",
                truncated_generalized_advantage_estimation(
                    r_t,
                    discount_t,
                    lambda(&record),
                    values,
                ),
            )]
        });
    }
}

#[test]
fn advantages_are_those_of_pure_jax_rl() {
    for record in records("gae_purejaxrl") {
        let gamma = record.number("gamma").expect("gamma");
        record.check(|x| {
            let [r_t, done_t, v_tm1, last] = x.all(["r_t", "done_t", "values", "last_value"]);
            let v_t = concatenate(&[v_tm1.slice(1..), last.reshape([1])], 0);
            let advantages = gae(r_t, select(done_t, 0.0, gamma), v_tm1, v_t, lambda(&record));
            vec![("advantages", advantages), ("targets", advantages + v_tm1)]
        });
    }
}

#[test]
fn truncated_episodes_bootstrap_and_do_not_leak() {
    for record in records("gae_with_truncation") {
        let gamma = record.number("gamma").expect("gamma");
        record.check(|x| {
            let [r_t, terminated, truncated, v_tm1, v_t] =
                x.all(["r_t", "terminated_t", "truncated_t", "v_tm1", "v_t"]);
            let discount_t = select(terminated, 0.0, gamma);
            let advantages = gae_with_ends(r_t, discount_t, v_tm1, v_t, truncated, lambda(&record));
            vec![("advantages", advantages), ("targets", advantages + v_tm1)]
        });
        // All ends in the mask give the same.
        record.check(|x| {
            let [r_t, terminated, truncated, v_tm1, v_t] =
                x.all(["r_t", "terminated_t", "truncated_t", "v_tm1", "v_t"]);
            let discount_t = select(terminated, 0.0, gamma);
            vec![(
                "advantages",
                gae_with_ends(r_t, discount_t, v_tm1, v_t, terminated | truncated, lambda(&record)),
            )]
        });
    }
}

#[test]
fn nothing_after_an_end_changes_what_is_before() {
    let spec = (f32([5]), f32([5]));
    let advantages = |rewards: &[f64], values: &[f64]| {
        let ended = Array::bools([5], &[false, false, true, false, false]);
        run(
            (spec.clone(), bool([5])),
            &[floats(&[5], rewards), floats(&[5], values), ended],
            |((r_t, v), ended)| {
                // The third step is truncated: its own v_t is known, independent of the next
                // episode.
                let v_t = concatenate(&[v.slice(1..3), constant([7.0, 0.25, 0.5])], 0);
                gae_with_ends(r_t, full([5], 0.9), v, v_t, ended, 0.8)
            },
        )
        .remove(0)
        .to_f64()
    };
    let one = advantages(&[1.0, 2.0, 3.0, 4.0, 5.0], &[0.1, 0.2, 0.3, 0.4, 0.5]);
    let other = advantages(&[1.0, 2.0, 3.0, -40.0, 50.0], &[0.1, 0.2, 0.3, -9.0, 9.0]);
    assert_eq!(one[..3], other[..3]);
    assert!((one[2] - (3.0 + 0.9 * 7.0 - 0.3)).abs() < 1e-6);
}

#[test]
fn v_trace_is_that_of_rlax() {
    for record in records("vtrace") {
        let clip = record.number("clip_rho_threshold").expect("threshold");
        record.check(|x| {
            let [v_tm1, v_t, r_t, discount_t, rho] = x.all(NAMES);
            vec![("errors", vtrace(v_tm1, v_t, r_t, discount_t, rho, lambda(&record), clip))]
        });
    }
    for record in records("leaky_vtrace") {
        let (clip, alpha) = (
            record.number("clip_rho_threshold").expect("threshold"),
            record.number("alpha").expect("alpha"),
        );
        record.check(|x| {
            let [v_tm1, v_t, r_t, discount_t, rho] = x.all(NAMES);
            vec![(
                "errors",
                leaky_vtrace(v_tm1, v_t, r_t, discount_t, rho, alpha, lambda(&record), clip),
            )]
        });
    }
    for record in records("vtrace_td_error_and_advantage") {
        let (clip, pg) = (
            record.number("clip_rho_threshold").expect("threshold"),
            record.number("clip_pg_rho_threshold").expect("threshold"),
        );
        record.check(|x| {
            let [v_tm1, v_t, r_t, discount_t, rho] = x.all(NAMES);
            let output = vtrace_td_error_and_advantage(
                v_tm1,
                v_t,
                r_t,
                discount_t,
                rho,
                lambda(&record),
                clip,
                pg,
            );
            vec![
                ("errors", output.errors),
                ("pg_advantage", output.pg_advantage),
                ("q_estimate", output.q_estimate),
            ]
        });
    }
}

#[test]
fn the_advantage_of_the_paper_bootstraps_from_the_next_target() {
    for record in records("vtrace_td_error_and_advantage") {
        let [v_tm1, v_t, r_t, discount_t, rho] = NAMES.map(|name| record.input(name).to_f64());
        let clip = record.number("clip_rho_threshold").expect("threshold");
        let pg = record.number("clip_pg_rho_threshold").expect("threshold");
        // The errors are rlax's: both definitions have the same.
        let errors = record.output("errors").to_f64();
        let steps = errors.len();
        let advantage: Vec<f64> = (0..steps)
            .map(|t| {
                let next = if t + 1 < steps { errors[t + 1] + v_tm1[t + 1] } else { v_t[t] };
                rho[t].min(pg) * (r_t[t] + discount_t[t] * next - v_tm1[t])
            })
            .collect();
        let inputs = NAMES.map(|name| record.input(name));
        let spec: Vec<TensorType> = inputs.iter().map(|input| input.ty().clone()).collect();
        let results = run(spec, &inputs, |x| {
            let lambda = lambda(&record);
            let output = impala_vtrace_td_error_and_advantage(
                x[0], x[1], x[2], x[3], x[4], lambda, clip, pg,
            );
            (output.errors, output.pg_advantage)
        });
        close("errors", &results[0], &record.output("errors"), 1e-6);
        close("advantage", &results[1], &floats(&[steps], &advantage), 1e-6);
    }
}

#[test]
fn a_batch_of_trajectories_is_one_scan_over_time() {
    let spec = (f32([4, 3]), f32([4, 3]), f32([4, 3]), f32([4, 3]));
    // [T, B], as a loop over steps leaves them.
    let traced = trace(spec.clone(), |(r, d, v, w)| {
        vmap((r.axis(1), d.axis(1), v.axis(1), w.axis(1)), |(r, d, v, w)| gae(r, d, v, w, 0.9))
    });
    let traced = traced.unwrap_or_else(|errors| panic!("{errors}"));
    let text = traced.to_string();
    assert_eq!(text.matches("scan").count(), 1, "{text}");
    let values: Vec<f64> = (0..12).map(|i| f64::from(i) * 0.37 % 1.0).collect();
    let inputs: Vec<Array> = (0..4)
        .map(|k| {
            floats(
                &[4, 3],
                &values.iter().map(|x| (x + 0.1 * f64::from(k)) % 1.0).collect::<Vec<_>>(),
            )
        })
        .collect();
    let batch = traced.eval(&inputs).expect("arguments fit").remove(0);
    assert_eq!(batch.ty().shape[..], [3, 4]);
    for b in 0..3 {
        let column = |array: &Array| {
            floats(&[4], &(0..4).map(|t| array.to_f64()[t * 3 + b]).collect::<Vec<_>>())
        };
        let single = (f32([4]), f32([4]), f32([4]), f32([4]));
        let alone = run(single, &inputs.iter().map(column).collect::<Vec<_>>(), |(r, d, v, w)| {
            gae(r, d, v, w, 0.9)
        })
        .remove(0);
        close("trajectory", &batch.index_leading(b), &alone, 1e-6);
    }
}

/// More steps than are unrolled, compared with the definition; also the sums' derivatives with
/// respect to the rewards.
#[test]
fn returns_of_many_steps_are_a_loop() {
    const STEPS: usize = 20;
    let number = |i: usize, scale: f64| (i as f64 * scale).sin();
    let r: Vec<f64> = (0..STEPS).map(|i| number(i, 1.3)).collect();
    let v: Vec<f64> = (0..STEPS).map(|i| number(i, 0.7)).collect();
    let discount: Vec<f64> = (0..STEPS).map(|i| if i == 6 { 0.0 } else { 0.9 }).collect();
    for (n, lambda) in [(9, 1.0), (12, 0.8), (STEPS, 0.5), (50, 1.0)] {
        // The value of step `t`, and its derivative by each reward.
        let of = |t: usize| {
            let n = n.min(STEPS);
            let at = |x: &[f64], i: usize, after: f64| x.get(t + i).copied().unwrap_or(after);
            let mut target = at(&v, n - 1, v[STEPS - 1]);
            let mut by = vec![0.0; STEPS];
            for i in (0..n).rev() {
                let inside = t + i < STEPS;
                let (discount, lambda) = (at(&discount, i, 1.0), if inside { lambda } else { 1.0 });
                let value = (1.0 - lambda) * at(&v, i, v[STEPS - 1]) + lambda * target;
                target = at(&r, i, 0.0) + discount * value;
                by.iter_mut().for_each(|by| *by *= discount * lambda);
                if inside {
                    by[t + i] += 1.0;
                }
            }
            (target, by)
        };
        let floats = |x: &[f64]| Array::floats(DType::F32, [STEPS], x);
        let arguments = [floats(&r), floats(&discount), floats(&v)];
        let results = run((f32([STEPS]), f32([STEPS]), f32([STEPS])), &arguments, |(r, d, v)| {
            let returns = |r| n_step_bootstrapped_returns(r, d, v, n, lambda);
            (returns(r), grad(r, |r| returns(r).sum()))
        });
        let all: Vec<_> = (0..STEPS).map(of).collect();
        let values: Vec<f64> = all.iter().map(|(value, _)| *value).collect();
        let by: Vec<f64> =
            (0..STEPS).map(|i| all.iter().map(|(_, by)| by[i]).sum::<f64>()).collect();
        close("returns", &results[0], &floats(&values), 1e-5);
        close("derivative", &results[1], &floats(&by), 1e-5);
    }
}
