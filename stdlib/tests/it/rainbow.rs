//! Rainbow, all extensions of DQN at once: its loss, priorities, importance weights and gradient against rlax.

use crate::dqn::{dqn, draw, settings, windows};
use crate::golden::{Record, close, records_in, run, words};
use podracer_dsl::prelude::*;
use podracer_rl::agents::{Dqn, DqnSettings, RewardClipping};
use podracer_rl::learn::{Axes, LearnFromReplay, Step, Windows};
use podracer_rl::net::{Networks, QDense, QNetwork};
use podracer_rl::nn::NoisyLinear;
use podracer_rl::replay::Sample;

const BATCHES: usize = 20;
/// Windows in the replay.
const KEPT: usize = 16;

/// The agent of a record.
fn rainbow(record: &Record) -> Dqn {
    let settings = settings(record);
    let clips = record.flag("clips").expect("a switch");
    dqn(DqnSettings {
        noisy: record.flag("noisy").expect("a switch"),
        reward_clipping: if clips { RewardClipping::AbsOne } else { RewardClipping::None },
        networks: Networks { hidden: record.shape("hidden"), ..settings.networks.clone() },
        ..settings
    })
}

/// A network with uniform numbers as means and noise sizes, layer by layer.
fn network(agent: &Dqn, key: &Key) -> QNetwork {
    let mut network = agent.init(Key::new(0)).target;
    let mut drawn = 0;
    let head = &mut network.head;
    let value = head.value.iter_mut().flatten();
    for layer in head.shared.iter_mut().chain(&mut head.advantage).chain(value) {
        let QDense::Noisy(noisy) = &layer.dense else { unreachable!("layers have noise") };
        let mut next = |leaf: Tensor, most: f64| {
            drawn += 1;
            draw(key, drawn - 1, &leaf.shape(), -most, most)
        };
        layer.dense = QDense::Noisy(NoisyLinear {
            weight: next(noisy.weight, 1.0),
            bias: next(noisy.bias, 1.0),
            weight_sigma: next(noisy.weight_sigma, 0.5),
            bias_sigma: next(noisy.bias_sigma, 0.5),
        });
    }
    network
}

/// The weights of windows that were drawn from all of the replay by their priorities. f32 `[B]`
fn importance_weights(record: &Record, key: &Key, windows: &Windows<Step>) -> Tensor {
    let number = |name: &str| record.number(name).expect("an exponent");
    let scaled = pow(draw(key, 0, &[KEPT], 0.05, 2.0), number("priority_exponent"));
    let indices = key.fold_in(1).randint([windows.weights.len()], 0..KEPT as i32);
    let sample = Sample {
        steps: windows.steps.clone(),
        starts: (),
        indices,
        ages: indices,
        probabilities: scaled.take(indices, 0) / scaled.sum(),
        windows: full([], KEPT as f64),
    };
    sample.importance_weights(number("importance_exponent"), &Axes::replicas(1))
}

/// Windows have ends, cuts and reset-only steps. A network's noise is one draw for all of its layers and for all windows.
#[test]
fn losses_priorities_weights_and_gradients_are_those_of_rlax() {
    let mut batches = 0;
    for record in records_in("rainbow", "rainbow_loss") {
        let agent = rainbow(&record);
        let seed = record.count("key").expect("a key") as i128;
        let found = run(key(), &[words(seed)], |key| {
            vmap((arange(BATCHES), whole(key)), |(i, key)| {
                let keys = key.fold_in(i).split_n(5);
                let [online, target] = [0, 1].map(|i| network(&agent, &keys.at(i)));
                let windows = windows(&record, &keys.at(2));
                let weights = importance_weights(&record, &keys.at(4), &windows);
                let windows = Windows { weights, ..windows };
                let ((loss, priorities), grads) = value_and_grad(online, |online| {
                    let found = agent.loss(&online, &target, &windows, &keys.at(3));
                    (found.loss, found.priorities)
                });
                let grads: Vec<Tensor> = grads
                    .leaves()
                    .into_iter()
                    .map(|grad| grad.reshape([grad.elements()]))
                    .collect();
                (weights, loss, priorities, concatenate(&grads, 0))
            })
        });
        for (name, found) in ["weights", "loss", "priority", "gradient"].into_iter().zip(&found) {
            close(&format!("{:?}: {name}", agent.settings), found, &record.output(name), 1e-5);
        }
        batches += BATCHES;
    }
    assert_eq!(batches, 100);
}
