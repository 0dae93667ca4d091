//! Optimizers and schedules against optax, ten steps each.

use crate::golden::{Record, close, floats, records, run};
use podracer_dsl::prelude::*;
use podracer_stdlib::Number;
use podracer_stdlib::optim::*;

/// Ten steps in a scan, as they run in a training loop, against the recorded updates and parameters.
fn ten_steps<O: Optimizer>(record: &Record, optimizer: O) {
    ten_steps_of(record, flatten(optimizer.clone()));
    ten_steps_of(record, optimizer);
}

fn ten_steps_of<O: Optimizer>(record: &Record, optimizer: O) {
    let inputs = ["params.w", "params.b", "grads.w", "grads.b"].map(|name| record.input(name));
    let spec: [TensorType; 4] = std::array::from_fn(|i| inputs[i].ty.clone());
    let results = run(spec, &inputs, |[w, b, grads_w, grads_b]| {
        let params = (w, b);
        let state = optimizer.init(&params);
        let (_, trace) = scan((params, state), (grads_w, grads_b), |(params, state), grads| {
            let (updates, next) = optimizer.update(grads, state, &params);
            let params = apply_updates(params, updates);
            ((params, next), (updates, params))
        });
        trace
    });
    for (name, result) in ["updates.w", "updates.b", "params.w", "params.b"].iter().zip(&results) {
        // Updates are small: compare them at the scale of the learning rate.
        let expected = record.output(name);
        let scale =
            expected.to_f64().iter().fold(0f64, |scale, x| scale.max(x.abs())).clamp(1e-12, 1.0);
        let scaled = |array: &Array| {
            floats(&array.ty.shape, &array.to_f64().iter().map(|x| x / scale).collect::<Vec<_>>())
        };
        close(name, &scaled(result), &scaled(&expected), 1e-6);
    }
}

fn learning_rate(record: &Record) -> f64 {
    record.number("learning_rate").expect("learning_rate")
}

#[test]
fn adam_is_that_of_optax() {
    for record in records("adam") {
        let mut optimizer = adam(learning_rate(&record));
        optimizer.b1 = record.number("b1").map_or(optimizer.b1, Number::from);
        optimizer.b2 = record.number("b2").map_or(optimizer.b2, Number::from);
        optimizer.eps = record.number("eps").map_or(optimizer.eps, Number::from);
        optimizer.eps_root = record.number("eps_root").map_or(optimizer.eps_root, Number::from);
        optimizer.nesterov = record.flag("nesterov").unwrap_or(false);
        ten_steps(&record, optimizer);
    }
    for record in records("adamw") {
        let optimizer = adamw(learning_rate(&record));
        let weight_decay =
            record.number("weight_decay").map_or(optimizer.weight_decay, Number::from);
        ten_steps(&record, optimizer.weight_decay(weight_decay));
    }
}

#[test]
fn sgd_is_that_of_optax() {
    for record in records("sgd") {
        let optimizer =
            sgd(learning_rate(&record)).momentum(record.number("momentum").unwrap_or(0.0));
        let nesterov = record.flag("nesterov").unwrap_or(false);
        ten_steps(&record, if nesterov { optimizer.nesterov() } else { optimizer });
    }
}

#[test]
fn rmsprop_is_that_of_optax() {
    for record in records("rmsprop") {
        let mut optimizer = rmsprop(learning_rate(&record));
        optimizer.decay = record.number("decay").map_or(optimizer.decay, Number::from);
        optimizer.eps = record.number("eps").map_or(optimizer.eps, Number::from);
        optimizer.eps_in_sqrt = record.flag("eps_in_sqrt").unwrap_or(true);
        optimizer.initial_scale = record.number("initial_scale").unwrap_or(0.0);
        optimizer.centered = record.flag("centered").unwrap_or(false);
        optimizer.momentum = record.number("momentum").unwrap_or(0.0).into();
        ten_steps(&record, optimizer);
    }
}

#[test]
fn lion_is_that_of_optax() {
    for record in records("lion") {
        ten_steps(
            &record,
            lion(learning_rate(&record))
                .weight_decay(record.number("weight_decay").expect("weight_decay")),
        );
    }
}

#[test]
fn clipping_is_that_of_optax() {
    for record in records("clip_by_global_norm") {
        ten_steps(&record, clip_by_global_norm(record.number("max_norm").expect("max_norm")));
    }
    for record in records("clip") {
        ten_steps(&record, clip(record.number("max_delta").expect("max_delta")));
    }
}

#[test]
fn a_chain_with_a_schedule_is_that_of_optax() {
    for record in records("chain") {
        ten_steps(
            &record,
            chain(clip_by_global_norm(0.5), adam(Schedule::linear(2.5e-4, 0.0, 8)).eps(1e-5)),
        );
    }
}

/// The types after a step.
fn stepped<O: Optimizer>(optimizer: O) -> String {
    let params = (f32([2, 3]), TensorType::new(BF16, [2]), f32([]));
    let program = trace((params.clone(), params), |(params, grads)| {
        optimizer.step(params, optimizer.init(&params), grads)
    });
    program.expect("it is right").results().to_string()
}

#[test]
fn parameters_keep_their_dtypes() {
    let first = "{0.0: f32[2,3], 0.1: bf16[2], 0.2: f32[]";
    let clipped = chain(clip_by_global_norm(0.5), adamw(0.1).nesterov());
    for types in [
        stepped(clipped),
        stepped(sgd(0.1).momentum(0.5)),
        stepped(rmsprop(0.1)),
        stepped(lion(0.1)),
    ] {
        assert!(types.starts_with(first), "{types}");
    }
}

#[test]
fn flattened_parameters_of_two_dtypes_are_two_vectors() {
    assert_eq!(
        stepped(flatten(sgd(0.1).momentum(0.5))),
        "{0.0: f32[2,3], 0.1: bf16[2], 0.2: f32[], 1.count: i32[], 1.trace[0][0]: f32[7], 1.trace[0][1]: bf16[2]}"
    );
}

#[test]
fn a_step_is_an_update_applied() {
    let inputs = [floats(&[2], &[1.0, -2.0]), floats(&[2], &[0.5, 0.25])];
    let results = run((f32([2]), f32([2])), &inputs, |(params, grads)| {
        let optimizer = sgd(0.1).momentum(0.5);
        let (params, state) = optimizer.step(params, optimizer.init(&params), grads);
        optimizer.step(params, state, grads).0
    });
    close("params", &results[0], &floats(&[2], &[1.0 - 0.05 - 0.075, -2.0 - 0.025 - 0.0375]), 1e-6);
}

fn schedule(record: &Record, schedule: Schedule) {
    record.check(|x| vec![("value", vmap(x.get("count"), |count| schedule.value(count)))]);
}

#[test]
fn schedules_are_those_of_optax() {
    let polynomial = |record: &Record| Schedule::Polynomial {
        init: record.number("init_value").expect("init_value").into(),
        end: record.number("end_value").expect("end_value").into(),
        power: record.number("power").unwrap_or(1.0),
        steps: record.count("transition_steps").expect("transition_steps"),
        begin: record.count("transition_begin").unwrap_or(0),
    };
    for record in records("linear_schedule").iter().chain(&records("polynomial_schedule")) {
        schedule(record, polynomial(record));
    }
    for record in records("constant_schedule") {
        let value = record.number("value").expect("value");
        schedule(
            &record,
            Schedule::Joined { schedules: vec![value.into()], boundaries: Vec::new() },
        );
        schedule(&record, Schedule::constant(value));
    }
    for record in records("cosine_decay_schedule") {
        let cosine = Schedule::Cosine {
            init: record.number("init_value").expect("init_value"),
            steps: record.count("decay_steps").expect("decay_steps"),
            alpha: record.number("alpha").unwrap_or(0.0),
            exponent: record.number("exponent").unwrap_or(1.0),
        };
        schedule(&record, cosine);
    }
    for record in records("exponential_decay") {
        let exponential = Schedule::Exponential {
            init: record.number("init_value").expect("init_value"),
            steps: record.count("transition_steps").expect("transition_steps"),
            rate: record.number("decay_rate").expect("decay_rate"),
            staircase: record.flag("staircase").unwrap_or(false),
            end: record.number("end_value"),
        };
        schedule(&record, exponential);
    }
    for record in records("warmup_cosine_decay_schedule") {
        let number = |name: &str| record.number(name).expect("a value");
        let count = |name: &str| record.count(name).expect("a count");
        schedule(
            &record,
            Schedule::warmup_cosine(
                number("init_value"),
                number("peak_value"),
                count("warmup_steps"),
                count("decay_steps"),
                number("end_value"),
            ),
        );
    }
}

#[test]
fn schedules_change_in_pieces_and_by_functions() {
    let counts = Array::ints(DType::I32, [5], &[0, 2, 3, 6, 9]);
    let values = run(i32([5]), &[counts], |counts| {
        let pieces = Schedule::piecewise_constant(1.0, &[(3, 0.5), (7, 0.1)]);
        let custom = Schedule::custom(|count| 1.0 / (count + 1).astype(F32));
        vmap(counts, |count| (pieces.value(count), custom.value(count)))
    });
    close("pieces", &values[0], &floats(&[5], &[1.0, 1.0, 0.5, 0.5, 0.05]), 1e-6);
    close("custom", &values[1], &floats(&[5], &[1.0, 1.0 / 3.0, 0.25, 1.0 / 7.0, 0.1]), 1e-6);
}

#[test]
fn norms_and_averages_are_those_of_optax() {
    for record in records("global_norm") {
        record.check(|x| vec![("value", global_norm(&(x.get("a"), x.get("b"))))]);
    }
    for record in records("incremental_update") {
        let step_size = record.number("step_size").expect("step_size");
        record.check(|x| {
            vec![("value", incremental_update(&x.get("new"), &x.get("old"), step_size))]
        });
    }
}
