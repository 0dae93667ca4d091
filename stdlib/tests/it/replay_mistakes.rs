//! Errors of a replay for wrong settings, rollouts and priorities.

use crate::golden::{floats, run, words};
use podracer_dsl::prelude::*;
use podracer_dsl::{Report, trace_replicated};
use podracer_rl::learn::{Axes, RolloutShape};
use podracer_rl::replay::{Priorities, Replay, Stored};

const SHAPE: RolloutShape = RolloutShape { lanes: 2, unroll: 4 };

fn replay(exponent: f64) -> Replay {
    let priorities = Some(Priorities { exponent: exponent.into() });
    Replay { capacity: 8, length: 1, period: 1, priorities }
}

/// All errors of a replay that is made, added to, drawn from and given priorities.
#[track_caller]
fn errors<S: Tree>(replay: &Replay, step: &Spec<S>, shape: RolloutShape, batch: usize) -> String {
    let traced = trace_replicated(2, key(), |key| {
        let axes = Axes::replicas(2);
        let state = replay.init(step, &f32([2]), shape);
        let steps = step.stacked(shape.lanes).stacked(shape.unroll);
        let state = replay.add(state, steps.zeros(), zeros(F32, [shape.lanes, 2]));
        let sample = replay.sample(&state, batch, key, &axes);
        let weights = sample.importance_weights(1.0, &axes);
        replay.set_priorities(state, sample.indices, weights, &axes)
    });
    let Err(errors) = traced else { panic!("{replay:?} is not refused") };
    let text = errors.to_string();
    assert!(!text.contains("panicked"), "{replay:?}: {text}");
    text
}

/// Each mistake is reported once, with the user's line, and the rest is traced without a panic.
#[test]
fn settings_that_make_no_replay_are_errors() {
    let good = Replay { period: 4, ..replay(0.5) };
    let many = usize::MAX;
    let cases = [
        (Replay { length: 0, ..good.clone() }, "windows of 0 steps, one every 4 steps: expected 1"),
        (
            Replay { length: many, ..good.clone() },
            "steps, and a capacity of 8 is 4 steps of each of",
        ),
        (Replay { length: 5, ..good.clone() }, "a window has 5 steps, and a capacity of 8 is 4 st"),
        // Windows that overlap in all of their steps.
        (Replay { period: 0, ..good.clone() }, "windows of 1 steps, one every 0 steps: expected 1"),
        (Replay { period: 6, ..good.clone() }, "a window begins every 6 steps and a rollout has 4"),
        (Replay { period: many, ..good.clone() }, "one must be a multiple of the other"),
        (Replay { period: 2, ..good.clone() }, "a multiple of the rollout's 4 steps, got 2"),
        (Replay { capacity: many, ..good.clone() }, "lanes, is more than 2^30 steps: lower it"),
        (Replay { capacity: 1 << 31, ..good.clone() }, "a capacity of 2147483648 steps, in whole"),
        (Replay { capacity: 1 << 31, ..good.clone() }, "lower it; its steps take 8.00 GiB"),
        (Replay { period: 4, ..replay(-1.0) }, "to the power of -1: expected 0 or more"),
        (Replay { period: 4, ..replay(f64::NAN) }, "to the power of NaN: expected 0 or more"),
    ];
    for (replay, expected) in cases {
        let text = errors(&replay, &f32([1]), SHAPE, 2);
        assert!(text.contains(expected), "{replay:?}: {text}");
        assert!(text.contains("error: Replay::init: "), "{text}");
        assert!(text.contains("--> stdlib/tests/it/replay_mistakes.rs:"), "{text}");
    }
    for shape in [RolloutShape { lanes: 0, ..SHAPE }, RolloutShape { unroll: 0, ..SHAPE }] {
        let text = errors(&good, &f32([1]), shape, 2);
        let RolloutShape { lanes, unroll } = shape;
        let expected = format!("rollouts of {unroll} steps of {lanes} lanes: expected 1 or more");
        assert!(text.contains(&expected), "{text}");
    }
    let wide = RolloutShape { lanes: 1 << 28, unroll: 4 };
    let text = errors(&replay(0.5), &f32([1]), wide, 2);
    assert!(text.contains("1073741824 steps on each of 2 devices are 2^31 or more"), "{text}");
    let text = errors(&good, &Spec::<()>(()), SHAPE, 2);
    assert!(text.contains("the steps to keep have no leaves: expected a tree with a"), "{text}");
    for (batch, expected) in [
        (3, "a batch of 3 windows is not shared evenly by 2 devices"),
        (0, "a batch of 0 windows is not shared evenly by 2 devices"),
        (1 << 40, "a batch of 1099511627776 windows is more than 2^24"),
    ] {
        let text = errors(&good, &f32([1]), SHAPE, batch);
        assert!(text.contains(expected), "{text}");
    }
}

/// A loop that is traced without the devices that its axes name.
#[test]
fn devices_that_the_trace_does_not_have_are_errors() {
    for (axes, expected) in [
        (Axes::replicas(2), "the number of replicas is not known here: trace with `trace_repl"),
        (Axes::none().and("members", 3), "there is no axis `members` around: name one with"),
    ] {
        let traced = trace((), |()| {
            let state: Stored<Tensor> = replay(0.5).init(&f32([1]), &Spec(()), SHAPE);
            replay(0.5).set_priorities(state, arange(2), zeros(F32, [2]), &axes)
        });
        let Err(errors) = traced else { panic!("there is no such axis") };
        let text = errors.to_string();
        assert!(text.contains(expected) && !text.contains("panicked"), "{text}");
    }
}

/// Priorities that do not match the drawn windows, and steps with a type other than the store's.
#[test]
fn priorities_and_steps_of_other_shapes_are_errors() {
    let replay = replay(0.5);
    for shape in [&[3][..], &[2, 1], &[]] {
        let traced = trace((), |()| {
            let state: Stored<Tensor> = replay.init(&f32([1]), &Spec(()), SHAPE);
            replay.set_priorities(state, arange(2), zeros(F32, shape), &Axes::none())
        });
        let Err(errors) = traced else { panic!("priorities {shape:?} of 2 windows are taken") };
        let text = errors.to_string();
        let expected =
            "expected a priority for each index, i32 `[B]` and f32 `[B]`, got i32[2] and";
        assert!(text.contains(expected), "{text}");
    }
    let traced = trace((), |()| {
        let state: Stored<Tensor> = replay.init(&f32([1]), &Spec(()), SHAPE);
        replay.add(state, zeros(I32, [4, 2, 1]), ())
    });
    let Err(errors) = traced else { panic!("integers are kept as floats") };
    let text = errors.to_string();
    assert!(text.contains("f32[4,2,1]") && text.contains("i32[4,2,1]"), "{text}");
}

/// The tree's values and total, and what `check` reports, where eight windows were given these priorities and eight came after.
fn after(exponent: f64, priorities: &[f64]) -> (Vec<f64>, f64, Vec<Report>) {
    let count = priorities.len();
    let mut spec = None;
    let results = run(f32([count]), &[floats(&[count], priorities)], |priorities| {
        let (tree, log) = collect(|| {
            let replay = Replay { capacity: 16, ..replay(exponent) };
            let state: Stored<Tensor> = replay.init(&f32([1]), &Spec(()), SHAPE);
            let state = replay.add(state, zeros(F32, [4, 2, 1]), ());
            let state = replay.set_priorities(state, arange(count), priorities, &Axes::none());
            // New windows get the greatest priority so far.
            let state = replay.add(state, zeros(F32, [4, 2, 1]), ());
            let tree = state.priorities.expect("it has priorities").tree;
            (tree.values(), tree.total())
        });
        spec = Some(log.spec());
        (tree, log)
    });
    let reports = Log::read(&spec.expect("it is traced"), &results[2..]);
    (results[0].to_f64(), results[1].to_f64()[0], reports)
}

#[test]
fn negative_priorities_are_reported_and_their_windows_keep_theirs() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let (values, total, reports) = after(0.5, &[nan, -1.0, inf, -inf, 4.0, 9.0, 0.25, 1.0]);
    assert_eq!(values[..8], [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 0.5, 1.0]);
    assert_eq!(values[8..], [3.0; 8]);
    assert_eq!(total, 34.5);
    let [report] = &reports[..] else { panic!("{reports:?}") };
    let expected = "expected priorities of 0 or more, got [NaN, -1, inf, -inf, 4";
    assert!(report.is_check && report.text.starts_with(expected), "{report}");
    let (.., reports) = after(0.5, &[0.0, 1e-30, 1e30, 4.0, 4.0, 9.0, 0.25, 1.0]);
    assert!(reports.is_empty(), "{reports:?}");
}

/// They come of an agent that diverges: its metrics are not finite either, and the run's reaction to that is a setting.
#[test]
fn priorities_that_are_not_finite_fail_no_check_and_their_windows_keep_theirs() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let (values, total, reports) = after(0.5, &[nan, inf, nan, 4.0, 4.0, 9.0, 0.25, 1.0]);
    assert!(reports.is_empty() && total.is_finite(), "{total} {reports:?}");
    assert_eq!(values[..8], [1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 0.5, 1.0]);
}

/// Powers of priorities and their sums stay finite, and so what comes after has a chance.
#[test]
fn priorities_of_any_size_have_a_finite_sum() {
    for exponent in [0.5, 1.0, 2.0] {
        let (values, total, reports) = after(exponent, &[3e38; 8]);
        assert!(reports.is_empty() && total.is_finite(), "{exponent}: {total} {reports:?}");
        assert_eq!(values, [values[0]; 16], "{exponent}");
        assert!(values[0] > 1e18, "{exponent}: {}", values[0]);
    }
}

/// A task without rewards and a network that says 0 have errors of 0 everywhere.
#[test]
fn windows_whose_priorities_are_all_0_are_drawn_alike() {
    let arguments = [words(3), floats(&[8], &[0.0; 8])];
    let results = run((key(), f32([8])), &arguments, |(key, priorities)| {
        let (replay, axes) = (Replay { capacity: 20, length: 2, ..replay(0.6) }, Axes::none());
        let mut state = replay.init(&f32([1]), &Spec(()), SHAPE);
        for _ in 0..4 {
            state = replay.add(state, zeros(F32, [4, 2, 1]), ());
        }
        // Four steps were written over the oldest: a window before the newest step would join steps
        // that are far apart.
        let windows = replay.windows(&state);
        for from in [0, 8, 16] {
            state = replay.set_priorities(state, arange(8) + from, priorities, &axes);
        }
        let sample = replay.sample(&state, 2200, key, &axes);
        (windows, sample.indices, sample.probabilities, sample.importance_weights(0.4, &axes))
    });
    assert_eq!(results[0].to_f64(), [22.0]);
    let mut counts = [0; 24];
    for index in results[1].to_f64() {
        counts[index as usize] += 1;
    }
    for (leaf, count) in counts.into_iter().enumerate() {
        // The last of four rollouts of four steps ended at step 4 of 12.
        let expected = if leaf / 2 == 3 { 0..=0 } else { 98..=102 };
        assert!(expected.contains(&count), "window {leaf} came {count} times");
    }
    for (probability, weight) in results[2].to_f64().into_iter().zip(results[3].to_f64()) {
        assert!((probability - 1.0 / 22.0).abs() < 1e-5 && (weight - 1.0).abs() < 1e-5);
    }
}
