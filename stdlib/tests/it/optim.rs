//! Optimizers and schedules against optax, ten steps each.

use crate::golden::{Record, close, floats, records, run};
use podracer_dsl::prelude::*;
use podracer_rl::Number;
use podracer_rl::optim::*;

/// Ten steps in a scan, as they run in a training loop, against the recorded updates and parameters.
fn ten_steps<O: Optimizer>(record: &Record, optimizer: O) {
    ten_steps_of(record, flatten(optimizer.clone()));
    ten_steps_of(record, optimizer);
}

fn ten_steps_of<O: Optimizer>(record: &Record, optimizer: O) {
    let inputs = ["params.w", "params.b", "grads.w", "grads.b"].map(|name| record.input(name));
    let spec: [TensorType; 4] = std::array::from_fn(|i| inputs[i].ty().clone());
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
            floats(&array.ty().shape, &array.to_f64().iter().map(|x| x / scale).collect::<Vec<_>>())
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
fn radam_is_that_of_optax() {
    for record in records("radam") {
        let mut optimizer = radam(learning_rate(&record));
        optimizer.b1 = record.number("b1").map_or(optimizer.b1, Number::from);
        optimizer.b2 = record.number("b2").map_or(optimizer.b2, Number::from);
        optimizer.eps = record.number("eps").map_or(optimizer.eps, Number::from);
        optimizer.eps_root = record.number("eps_root").map_or(optimizer.eps_root, Number::from);
        optimizer.threshold = record.number("threshold").map_or(optimizer.threshold, Number::from);
        ten_steps(&record, optimizer);
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
fn adagrad_is_that_of_optax() {
    for record in records("adagrad") {
        let mut optimizer = adagrad(learning_rate(&record));
        let first = record.number("initial_accumulator_value");
        optimizer.initial_accumulator_value =
            first.map_or(optimizer.initial_accumulator_value, Number::from);
        optimizer.eps = record.number("eps").map_or(optimizer.eps, Number::from);
        ten_steps(&record, optimizer);
    }
}

#[test]
fn lamb_is_that_of_optax() {
    for record in records("lamb") {
        let weight_decay = record.number("weight_decay").expect("weight_decay");
        // Not flattened: each leaf has its own norm.
        ten_steps_of(&record, lamb(learning_rate(&record)).weight_decay(weight_decay));
    }
}

/// True for the weights of the records, with parameters `(w, b)`.
fn is_w(path: &Path) -> bool {
    path.0 == [Step::Position(0)]
}

#[test]
fn optimizers_of_some_parameters_are_those_of_optax() {
    for record in records("masked") {
        ten_steps_of(&record, masked(adam(0.01), is_w));
    }
    for record in records("partition") {
        if record.word("note").is_some() {
            ten_steps_of(&record, partition(is_w, adam(0.01), set_to_zero()));
        } else {
            let clipped = chain(clip_by_global_norm(0.5), adam(0.01));
            let momentum = sgd(0.1).momentum(0.9);
            ten_steps_of(&record, partition(is_w, clipped.clone(), momentum.clone()));
            // The same with the sides changed, and each flattened by itself.
            let is_b = |path: &Path| !is_w(path);
            ten_steps_of(&record, partition(is_b, flatten(momentum), flatten(clipped)));
        }
    }
}

#[test]
fn gathered_gradients_are_those_of_optax() {
    for record in records("multi_steps") {
        let every = record.count("every").expect("a count");
        ten_steps(&record, multi_steps(adam(0.01), every));
    }
}

#[test]
fn averages_are_those_of_optax() {
    for record in records("ema") {
        let debias = record.flag("debias").expect("a switch");
        ten_steps(&record, Ema { debias, ..ema(record.number("decay").expect("a decay")) });
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

/// A rule that is trained through an agent's updates was NaN where an agent had gradients that cancel.
#[test]
fn gradients_flow_through_the_steps_of_gradients_that_are_zero() {
    fn slopes<O: Optimizer>(optimizer: O) -> Vec<f64> {
        let slopes = run(f32([3]), &[floats(&[3], &[0.0; 3])], |grads| {
            grad(grads, |grads| {
                let params = grads.zeros_like();
                let state = optimizer.init(&params);
                optimizer.update(grads, state, &params).0.sum()
            })
        });
        slopes[0].to_f64()
    }
    assert_eq!(slopes(chain(clip_by_global_norm(0.5), sgd(2.0))), [-2.0; 3]);
    let through_adam = slopes(adam(0.1).eps_root(1e-12));
    assert!(through_adam.iter().all(|slope| slope.is_finite()), "{through_adam:?}");
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
        stepped(adagrad(0.1)),
        stepped(lamb(0.1).weight_decay(0.1)),
        stepped(ema(0.5)),
        stepped(multi_steps(adam(0.1), 2)),
        stepped(partition(|path| path.0 == [Step::Position(1)], adam(0.1), sgd(0.1))),
        stepped(masked(rmsprop(0.1), |path| path.0 == [Step::Position(2)])),
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

/// The choice goes by the names of fields, however deep: biases of a network, with their own rate.
#[test]
fn parameters_are_chosen_by_the_names_of_their_paths() {
    use podracer_rl::nn::{Activation, Initializer, Mlp};
    let results = run((), &[], |()| {
        let weights = Initializer::Constant(0.0);
        let mlp = Mlp::init(Key::new(0), &[2, 3, 1], Activation::Tanh, weights, weights);
        let is_bias = |path: &Path| path.0.last() == Some(&Step::Field("bias"));
        let is_first = |path: &Path| path.to_string().starts_with("layers[0]");
        // An optimizer inside of a partition sees the paths of the whole network.
        let inner = partition(is_first, sgd(0.25), sgd(0.5).momentum(0.9));
        let optimizer = partition(is_bias, sgd(1.0), inner);
        let grads = tree_map(&mlp, Tensor::ones_like);
        optimizer.step(mlp.clone(), optimizer.init(&mlp), grads)
    });
    let firsts: Vec<f64> = results.iter().map(|result| result.to_f64()[0]).collect();
    assert_eq!(firsts[..4], [-0.25, -1.0, -0.5, -1.0]);
}

/// A state names its parameters, and so does a checkpoint.
#[test]
fn states_of_chosen_parameters_have_their_paths() {
    let program = trace((f32([2]), f32([3])), |params| {
        let optimizer = partition(is_w, adam(0.1), sgd(0.1).momentum(0.9));
        optimizer.init(&params)
    });
    assert_eq!(
        program.expect("it is right").results().to_string(),
        "{0.count: i32[], 0.mu.0: f32[2], 0.nu.0: f32[2], 1.count: i32[], 1.trace[0].1: f32[3]}"
    );
}

/// Three gradients gathered are the gradient of the batch of all three; a mean is not made twice.
#[test]
fn members_of_a_population_gather_gradients_apart() {
    let rates = floats(&[2], &[0.1, 0.2]);
    let grads = floats(&[4], &[1.0, 2.0, 6.0, -5.0]);
    let results = run((f32([2]), f32([4])), &[rates, grads], |(rates, grads)| {
        vmap(rates, |rate| {
            let optimizer = multi_steps(sgd(rate), 3);
            let start = (scalar(1.0), optimizer.init(&scalar(1.0)));
            let ((param, state), params) = scan(start, grads, |(param, state), g| {
                let (param, state) = optimizer.step(param, state, g);
                ((param, state), param)
            });
            (param, state.mini_step, state.gradient_step, params)
        })
    });
    close("parameters", &results[0], &floats(&[2], &[0.7, 0.4]), 1e-6);
    assert_eq!((results[1].to_f64(), results[2].to_f64()), (vec![1.0; 2], vec![1.0; 2]));
    assert_eq!(results[3].to_f64()[..2], [1.0; 2]);
}

#[test]
fn a_mean_of_no_gradients_is_an_error() {
    let mistake = trace(f32([]), |param| multi_steps(sgd(0.1), 0).init(&param));
    let mistake = mistake.map(|_| ()).unwrap_err().to_string();
    assert!(mistake.contains("multi_steps: a mean of 0 gradients"), "{mistake}");
    assert!(mistake.contains("optim.rs"), "{mistake}");
}

#[test]
fn a_large_leaf_is_a_vector_of_its_own() {
    let shapes: [&[usize]; 4] = [&[3], &[256, 256], &[2], &[70_000]];
    let spec: [TensorType; 4] = shapes.map(|shape| TensorType::new(F32, shape));
    let params: [Array; 4] = std::array::from_fn(|i| {
        let numbers = (0..spec[i].elements()).map(|at| ((at * 7 + i) % 11) as f64 * 0.3 - 1.0);
        floats(&spec[i].shape, &numbers.collect::<Vec<_>>())
    });
    let optimizer = flatten(adam(1e-3));
    let state = eval_shape(spec.clone(), |params| optimizer.init(&params)).expect("a trace");
    let mut sizes: Vec<usize> = state.leaves().iter().map(|(_, ty)| ty.elements()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 5, 5, 65_536, 65_536, 70_000, 70_000]);
    let results = run(spec, &params, |params| {
        let of = |grads: [Tensor; 4]| {
            let together = optimizer.update(grads, optimizer.init(&params), &params).0;
            let apart = optimizer.inner.update(grads, optimizer.inner.init(&params), &params).0;
            (together, apart)
        };
        of(params)
    });
    let (together, apart) = results.split_at(4);
    assert_eq!(together, apart);
}
