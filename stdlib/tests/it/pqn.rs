//! PQN: its networks against flax, its loss against rlax, and its exploration.

use crate::agent_loop::{Iteration, input, tape};
use crate::golden::{Named, Of, Record, records};
use podracer_dsl::prelude::*;
use podracer_envs::{Environment, Space};
use podracer_rl::agents::{Pqn, PqnNetwork, PqnSettings};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{AgentSettings, Axes, Exploration, Input, RolloutOf, Task};
use podracer_rl::net::{Networks, TorsoNet};
use podracer_rl::nn::{Activation, Conv2d, ConvNet, LayerNorm, Linear, Mlp};

fn dense(x: &Named, name: &str) -> Linear {
    Linear { weight: x.get(&format!("{name}.kernel")), bias: x.get(&format!("{name}.bias")) }
}

fn norms(x: &Named) -> Vec<LayerNorm> {
    let norm = |i: usize| LayerNorm {
        scale: x.get(&format!("norms_{i}.scale")),
        bias: x.get(&format!("norms_{i}.bias")),
        epsilon: 1e-6,
    };
    vec![norm(0), norm(1)]
}

#[test]
fn normalised_networks_are_those_of_flax() {
    for record in records("layer_norm_conv_net") {
        record.check_of(Of::Squares, 1e-5, |x| {
            let conv = Conv2d {
                kernel: x.get("convs_0.kernel"),
                bias: x.get("convs_0.bias"),
                strides: [1, 1],
                padding: Padding::Valid,
            };
            let net = ConvNet { convs: vec![conv], dense: dense(x, "dense"), norms: norms(x) };
            vec![("value", vmap(x.get("x"), |x| net.apply(x)))]
        });
    }
    for record in records("layer_norm_mlp") {
        record.check_of(Of::Squares, 1e-5, |x| {
            let layers = (0..3).map(|i| dense(x, &format!("layers_{i}"))).collect();
            let net = Mlp { layers, norms: norms(x), activation: Activation::Relu };
            vec![("value", vmap(x.get("x"), |x| net.apply(x)))]
        });
    }
}

/// A new network has a normalisation after each layer except its last.
#[test]
fn layer_norm_is_a_setting() {
    let paths = |layer_norm: bool| {
        let networks = Networks { hidden: vec![5, 4], layer_norm, ..Networks::default() };
        let traced =
            trace((), |()| PqnNetwork::init(Key::new(0), &Space::unbounded([3]), 2, &networks));
        let paths = traced.expect("it traces").result_paths();
        paths.iter().filter(|path| path.to_string().contains("norms")).count()
    };
    assert_eq!((paths(false), paths(true)), (0, 4));
}

/// One minibatch of all steps.
fn settings(record: &Record) -> PqnSettings {
    let number = |name: &str| record.number(name).expect("a coefficient").into();
    PqnSettings {
        epochs: 1,
        minibatches: 1,
        discount: number("discount"),
        lambda: number("lambda"),
        ..PqnSettings::default()
    }
}

fn task(observation: Space, action: Space) -> Task {
    Task { observation, action, iterations: 10, model: None }
}

/// 200 batches, each with a network of its own. Episodes end and are cut off within the trajectories.
#[test]
fn the_loss_and_its_gradient_are_those_of_rlax() {
    for record in records("pqn_loss") {
        let task = task(Space::unbounded([2]), Space::discrete(3));
        let agent = Pqn::for_task(&settings(&record), &task).expect("settings that fit");
        record.check_of(Of::Sum, 1e-5, |x| {
            let weights = ["hidden.weight", "hidden.bias", "last.weight", "last.bias"];
            let weights = weights.map(|name| x.get(&format!("q.{name}")));
            let seen = ["observation", "next_observation", "last_observation"];
            let steps = ["action", "reward", "terminated", "truncated"];
            let batches = (weights, x.all(seen), x.all(steps));
            let loss = vmap(batches, |(weights, seen, steps)| {
                let [hidden, hidden_bias, last, last_bias] = weights;
                let layers = vec![
                    Linear { weight: hidden, bias: hidden_bias },
                    Linear { weight: last, bias: last_bias },
                ];
                let head = Mlp { layers, norms: Vec::new(), activation: Activation::Tanh };
                let network = PqnNetwork { torso: TorsoNet::Flat, head };
                let [observation, next_observation, last_observation] = seen;
                let [action, reward, terminated, truncated] = steps;
                let values =
                    |inputs: Input| vmap(inputs, |input| network.apply(input.observation).max());
                let rollout = RolloutOf {
                    extras: vmap(input(observation, 2), values),
                    input: input(observation, 2),
                    action,
                    reward,
                    terminated,
                    truncated,
                    skipped: None,
                    next_observation: Some(next_observation),
                    next_input: input(last_observation, 1),
                    taken_over: None,
                    memory: (),
                };
                let batch = agent.batch(&network, rollout, Key::new(3), &Axes::none());
                agent.loss(network, &batch, scalar(0)).0
            });
            vec![("loss", loss)]
        });
    }
}

/// Iterations act with the epsilon of their number, and it reaches its end.
#[test]
fn epsilon_falls_by_the_iteration() {
    let tape = tape();
    let settings = PqnSettings {
        minibatches: 2,
        exploration: Exploration {
            epsilon_start: 0.9.into(),
            epsilon_end: 0.1.into(),
            epsilon_fraction: 0.4,
        },
        networks: Networks { hidden: vec![], ..Networks::default() },
        ..PqnSettings::default()
    };
    let task = task(tape.observation_space(), tape.action_space());
    let agent = Pqn::for_task(&settings, &task).expect("settings that fit");
    let iterations = Iteration::several(&AgentLoop::new(tape, agent, 2, 1), 6);
    let epsilons: Vec<f64> = iterations.iter().map(|one| one.metric("epsilon")[0]).collect();
    for (got, expected) in epsilons.iter().zip([0.9, 0.7, 0.5, 0.3, 0.1, 0.1]) {
        assert!((got - expected).abs() < 1e-6, "{epsilons:?}");
    }
    for iteration in iterations {
        let acted = iteration.leaf(&iteration.before, "agent.epsilon");
        assert_eq!(acted, iteration.metric("epsilon"));
    }
}

#[test]
fn actions_that_are_not_discrete_are_an_error() {
    let task = task(Space::unbounded([3]), Space::unbounded([2]));
    let error = PqnSettings::default().agent(&task).err();
    assert!(error.as_ref().is_some_and(|text| text.contains("discrete actions")), "{error:?}");
}
