//! Convolutional and recurrent layers and networks, pooling and factors of matrices, against flax and jax.

use crate::golden::{Named, Of, Record, close, floats, records, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::distributions::{
    Categorical, Distribution, MultiCategorical, MultivariateNormalDiag,
};
use podracer_rl::learn::Input;
use podracer_rl::net::{ActorCritic, Core, Networks, Policy};
use podracer_rl::nn::*;

fn same(record: &Record) -> Padding {
    match record.word("padding").as_deref() {
        Some("SAME") => Padding::Same,
        Some("VALID") => Padding::Valid,
        other => panic!("padding {other:?}"),
    }
}

fn pair(record: &Record, name: &str) -> [usize; 2] {
    record.shape(name).try_into().expect("two numbers")
}

#[test]
fn a_convolution_is_that_of_flax() {
    for record in records("conv") {
        record.check_of(Of::Squares, 1e-5, |x| {
            let layer = Conv2d {
                kernel: x.get("kernel"),
                bias: x.get("bias"),
                strides: pair(&record, "strides"),
                padding: same(&record),
            };
            vec![("value", vmap(x.get("x"), |x| layer.apply(x)))]
        });
    }
}

/// Windows side by side are one product in place of a convolution: the same values and gradients.
#[test]
fn windows_that_share_nothing_convolve_all_the_same() {
    let of = |convolve: &dyn Fn(Tensor, Tensor) -> Tensor| {
        let traced = trace((f32([2, 4, 6, 3]), f32([2, 3, 3, 5])), |both| {
            let loss = |(x, kernel)| vmap(x, |x| convolve(x, kernel)).square().sum();
            (vmap(both.0, |x| convolve(x, both.1)), grad(both, loss))
        });
        let traced = traced.expect("it traces");
        let array = |shape: &[usize]| {
            let count: usize = shape.iter().product();
            let numbers = (0..count).map(|i| ((i * 7919) % 23) as f64 / 11.0 - 1.0);
            floats(shape, &numbers.collect::<Vec<f64>>())
        };
        let values = traced.eval(&[array(&[2, 4, 6, 3]), array(&[2, 3, 3, 5])]);
        let convolves = traced.func().to_string().contains("convolution");
        (values.expect("arguments fit"), convolves)
    };
    let explicit = Padding::Explicit(vec![(2, 0), (0, 3)]);
    for padding in [Padding::Valid, Padding::Same, explicit] {
        let (layers, convolves) = of(&|x, kernel| {
            let layer =
                Conv2d { kernel, bias: zeros(F32, [5]), strides: [2, 3], padding: padding.clone() };
            layer.apply(x)
        });
        assert_eq!(convolves, matches!(padding, Padding::Explicit(_)));
        let (expected, convolves) = of(&|x, kernel| conv2d(x, kernel, [2, 3], padding.clone()));
        assert!(convolves);
        for (got, expected) in layers.iter().zip(&expected) {
            close("values and gradients", got, expected, 1e-5);
        }
    }
}

#[test]
fn pooling_is_that_of_flax() {
    for record in records("max_pool") {
        let (window, strides) = (pair(&record, "window"), pair(&record, "strides"));
        record.check(|x| {
            let y = max_pool(x.get("x"), window, strides, same(&record));
            vec![("value", x.get("weights") * y)]
        });
    }
    for record in records("avg_pool") {
        let (window, strides) = (pair(&record, "window"), pair(&record, "strides"));
        let count = record.flag("count_include_pad").expect("a switch");
        record.check(|x| {
            let y = avg_pool(x.get("x"), window, strides, same(&record), count);
            vec![("value", x.get("weights") * y)]
        });
    }
}

fn conv(x: &Named, name: &str, stride: usize, padding: Padding) -> Conv2d {
    Conv2d {
        kernel: x.get(&format!("{name}.kernel")),
        bias: x.get(&format!("{name}.bias")),
        strides: [stride; 2],
        padding,
    }
}

fn dense(x: &Named) -> Linear {
    Linear { weight: x.get("dense.kernel"), bias: x.get("dense.bias") }
}

#[test]
fn the_networks_of_impala_are_those_of_flax() {
    for record in records("impala_shallow") {
        record.check_of(Of::Squares, 2e-6, |x| {
            let net = ConvNet {
                convs: vec![
                    conv(x, "convs_0", 4, Padding::Valid),
                    conv(x, "convs_1", 2, Padding::Valid),
                ],
                dense: dense(x),
                norms: Vec::new(),
            };
            vec![("value", vmap(x.get("x"), |x| net.apply(x)))]
        });
    }
    for record in records("impala_deep") {
        // Sums of thousands cancel in some elements of the gradients.
        record.check_of(Of::Squares, 2e-4, |x| {
            let section = |i: usize| {
                let conv = |name: &str| conv(x, &format!("sections_{i}.{name}"), 1, Padding::Same);
                let block = |k: usize| ResidualBlock {
                    first: conv(&format!("blocks_{k}.first")),
                    second: conv(&format!("blocks_{k}.second")),
                };
                ResidualSection { conv: conv("conv"), blocks: vec![block(0), block(1)] }
            };
            let net = ResidualNet { sections: vec![section(0), section(1)], dense: dense(x) };
            vec![("value", vmap(x.get("x"), |x| net.apply(x)))]
        });
    }
}

#[test]
fn networks_begin_with_the_sizes_of_their_papers() {
    let image = || f32([84, 84, 4]);
    let sizes = |features: TensorType, parameters: &[TensorType]| {
        let count: usize = parameters.iter().map(TensorType::elements).sum();
        (features.shape.into_vec(), count)
    };
    let traced = trace((key(), image()), |(key, image)| {
        let net = ConvNet::dqn(key, [84, 84, 4]);
        (net.apply(image), net)
    });
    let types = traced.expect("the network").func().result_types();
    // Mnih et al.: 8 * 8 * 4 * 32 + ..., a last image of 7 by 7.
    let convs = 8 * 8 * 4 * 32 + 32 + 4 * 4 * 32 * 64 + 64 + 3 * 3 * 64 * 64 + 64;
    assert_eq!(sizes(types[0].clone(), &types[1..]), (vec![512], convs + 7 * 7 * 64 * 512 + 512));
    let traced = trace((key(), f32([72, 96, 3])), |(key, image)| {
        let net = ResidualNet::impala(key, [72, 96, 3]);
        let convs: usize = net.sections.iter().map(|section| 1 + 2 * section.blocks.len()).sum();
        assert_eq!(convs, 15);
        net.apply(image)
    });
    let types = traced.expect("the network").func().result_types();
    assert_eq!(types[0].shape[..], [256]);
}

fn lstm(x: &Named) -> Lstm {
    let joined = |of: &dyn Fn(&str) -> String, axis: isize| {
        concatenate(&["i", "f", "g", "o"].map(|gate| x.get(&of(gate))), axis)
    };
    Lstm {
        input: joined(&|gate| format!("i{gate}.kernel"), 1),
        hidden: joined(&|gate| format!("h{gate}.kernel"), 1),
        bias: joined(&|gate| format!("h{gate}.bias"), 0),
    }
}

#[test]
fn a_recurrent_step_is_that_of_flax() {
    for record in records("lstm_cell") {
        record.check(|x| {
            let lstm = lstm(x);
            let state = vmap(x.all(["c", "h", "x"]), |[c, h, x]| lstm.step(LstmState { c, h }, x));
            vec![("next.c", state.c), ("next.h", state.h)]
        });
    }
}

#[test]
fn a_recurrent_layer_forgets_where_an_episode_begins() {
    for record in records("lstm_unroll") {
        record.check(|x| {
            let [c, h, xs, reset] = x.all(["c", "h", "xs", "reset"]);
            let LstmState { c, h } = lstm(x).unroll(LstmState { c, h }, xs, reset);
            vec![("value", h), ("next.c", c.index(-1)), ("next.h", h.index(-1))]
        });
    }
    let result =
        run((key(), f32([5, 3])), &[words(1), floats(&[5, 3], &[0.5; 15])], |(key, xs)| {
            let lstm = Lstm::init(key, 3, 4);
            let reset = constant_of(&Array::bools([5], &[true, false, true, false, true]));
            lstm.unroll(LstmState::zeros(4), xs, reset).h
        });
    let outputs = &result[0];
    close("an episode like another", &outputs.index_leading(2), &outputs.index_leading(0), 0.0);
    close("and its second step", &outputs.index_leading(3), &outputs.index_leading(1), 0.0);
    assert_ne!(outputs.index_leading(0), outputs.index_leading(1));
}

#[test]
fn the_factors_of_a_matrix_are_those_of_lapack() {
    for record in records("qr") {
        record.check_of(Of::Sum, 4e-6, |x| {
            let (q, r) = x.get("x").qr();
            vec![("q", q * x.get("of_q")), ("r", r * x.get("of_r"))]
        });
    }
    // More columns than rows, and columns that depend on each other: a product all the same.
    for (shape, values) in [
        ([2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ([3, 2], vec![1.0, 2.0, 2.0, 4.0, -1.0, -2.0]),
        ([2, 2], vec![0.0; 4]),
    ] {
        let x = Array::floats(DType::F64, shape, &values);
        let ty = x.ty().clone();
        let results = run(Spec::<Tensor>(ty), std::slice::from_ref(&x), |x| {
            let (q, r) = x.qr();
            (matmul(q, r), matmul(q.transpose(), q))
        });
        close("q r", &results[0], &x, 1e-14);
        let one = Array::floats(DType::F64, [2, 2], &[1.0, 0.0, 0.0, 1.0]);
        close("q^T q", &results[1], &one, 1e-14);
    }
}

/// Log-probability, entropy and mode equal the parts' own distributions', from the same outputs of
/// the network.
#[test]
fn a_policy_of_parts_is_its_parts() {
    let space = Space::dict([
        ("gear", Space::discrete(3)),
        ("wheels", Space::bounded([2], -1.0, 1.0)),
        ("lamps", Space::multi_discrete([2, 4])),
        ("throttle", Space::bounded([1], 0.0, 1.0)),
    ]);
    let shape = Networks::default().shape(Initializer::lecun_normal(), Core::default(), false);
    let actions = [2.0, 0.25, -0.5, 1.0, 3.0, 0.75];
    let action = Array::floats(DType::F32, [6], &actions);
    let log_std = Array::floats(DType::F32, [3], &[-0.5, 0.25, 0.5]);
    let values = run(
        (key(), f32([6]), f32([3])),
        &[Array::key(1), action, log_std],
        |(key, action, log_std)| {
            let nets = ActorCritic::init(key, &Space::unbounded([5]), &space, &shape);
            let nets = ActorCritic { log_std: Some(log_std), ..nets };
            let features = arange(5).astype(F32);
            let output = nets.actor.apply(features);
            let gear = Categorical::new(output.slice(0..3));
            let gaussian = |outputs, stds| {
                MultivariateNormalDiag::from_log_std(output.slice(outputs), log_std.slice(stds))
            };
            let (wheels, throttle) = (gaussian(3..5, 0..2), gaussian(11..12, 2..3));
            let lamps = MultiCategorical::new(output.slice(5..11), &[2, 4]);
            let parts = space.split(action);
            let log_prob = gear.log_prob(parts[0])
                + wheels.log_prob(parts[1])
                + lamps.log_prob(parts[2])
                + throttle.log_prob(parts[3]);
            let entropy = gear.entropy() + wheels.entropy() + lamps.entropy() + throttle.entropy();
            let mode = [gear.mode(), wheels.mode(), lamps.mode(), throttle.mode()];
            let policy: Policy = nets.policy(features, None);
            (
                (policy.log_prob(action) - log_prob, policy.entropy() - entropy),
                policy.mode() - Space::join(&mode),
                space.unflatten(space.flatten(action)) - action,
            )
        },
    );
    assert!(values.iter().all(|value| value.to_f64().iter().all(|x| x.abs() < 1e-6)), "{values:?}");
}

/// A first step with an observation.
fn input(observation: Tensor) -> Input {
    Input {
        observation,
        legal_actions: None,
        last_action: scalar(0),
        last_reward: scalar(0.0),
        first: constant(true),
    }
}

/// Several agents with one network: each agent's logits are the network's for its row alone, and the value is the sum of the rows' values.
/// Closures of the library stood in the profile of a training, in place of the two lines of the loss that use the networks.
#[test]
fn the_work_of_a_network_belongs_to_the_line_that_asked_for_it() {
    let networks = Networks::default();
    for (rows, action, sharing) in
        [(f32([4]), Space::discrete(3), false), (f32([3, 4]), Space::multi_discrete([3; 3]), true)]
    {
        let core = Core { parameter_sharing: sharing, ..Core::default() };
        let shape = networks.shape(Initializer::lecun_normal(), core, false);
        let space = Space::unbounded(rows.shape.to_vec());
        let traced = trace((key(), rows), |(key, rows)| {
            let nets = ActorCritic::init(key, &space, &action, &shape);
            let features = nets.features(&input(rows));
            (nets.value(features), features)
        });
        let func = traced.expect("it traces").func().clone();
        let products = func.eqns.iter().filter(|eqn| eqn.op.mnemonic() == "dot_general");
        let lines: Vec<String> = products.map(|eqn| eqn.loc.to_string()).collect();
        assert!(lines.len() >= 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("it/networks.rs")), "{lines:?}");
    }
}

#[test]
fn agents_that_share_a_network_are_alike() {
    let networks = Networks { layer_norm: true, ..Networks::default() };
    let alone = networks.shape(Initializer::lecun_normal(), Core::default(), false);
    let core = Core { parameter_sharing: true, ..Core::default() };
    let shared = networks.shape(Initializer::lecun_normal(), core, false);
    let rows = [0.5, -1.0, 2.0, 0.0, 0.25, 1.5, -0.75, 1.0, -2.0, 0.125, 3.0, 0.0];
    let legal = [true, true, false, true, false, true, true, true, false];
    let rows = Array::floats(DType::F32, [3, 4], &rows);
    let arguments = [Array::key(1), Array::key(1), rows, Array::bools([9], &legal)];
    let values =
        run(((key(), key()), f32([3, 4]), bool([9])), &arguments, |(keys, rows, legal)| {
            let many = Space::multi_discrete([3; 3]);
            let nets = ActorCritic::init(keys.0, &Space::unbounded([3, 4]), &many, &shared);
            let one =
                ActorCritic::init(keys.1, &Space::unbounded([4]), &Space::discrete(3), &alone);
            let features = nets.features(&input(rows));
            let policy = nets.policy(features, Some(legal));
            let mut log_prob = scalar(0.0);
            let mut value = scalar(0.0);
            for (agent, action) in (0..).zip([1, 2, 0]) {
                let features = one.features(&input(rows.index(agent)));
                let mask = legal.slice(3 * agent..3 * agent + 3);
                log_prob += one.policy(features, Some(mask)).log_prob(scalar(action));
                value += one.value(features);
            }
            (policy.log_prob(constant([1, 2, 0])) - log_prob, nets.value(features) - value)
        });
    assert!(values.iter().all(|value| value.to_f64()[0].abs() < 1e-5), "{values:?}");
}

#[test]
fn networks_that_agents_cannot_share_are_refused() {
    let shape = |lstm| {
        let core = Core { lstm, parameter_sharing: true };
        Networks::default().shape(Initializer::lecun_normal(), core, false)
    };
    let check = |observation: &[usize], counts: &[usize]| {
        let observation = Space::unbounded(observation);
        shape(None).check(&observation, &Space::multi_discrete(counts))
    };
    check(&[3, 4], &[5, 5, 5]).expect("three agents");
    for (observation, counts) in [(&[2, 4][..], [5, 5, 5]), (&[3, 4], [5, 4, 5]), (&[], [5, 5, 5])]
    {
        let problem = check(observation, &counts).expect_err("they are not alike");
        let expected = "agent.parameter_sharing: each of N agents decides about one element";
        assert!(problem.contains(expected), "{problem}");
    }
    let (seen, many) = (Space::unbounded([3, 4]), Space::multi_discrete([5; 3]));
    let problem = shape(Some(8)).check(&seen, &many).expect_err("an LSTM");
    assert!(problem.contains("leave agent.lstm out"), "{problem}");
    let problem = shape(None).check(&seen, &Space::discrete(3)).expect_err("one choice");
    assert!(problem.contains("actions are Discrete"), "{problem}");
}
