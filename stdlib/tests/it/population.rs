//! A population: members by `vmap`, with learning rates that the program is given.

use crate::golden::{close, floats, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::{Catch, Environment};
use podracer_rl::Number;
use podracer_rl::agents::{Ppo, PpoSettings};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::{AdamSettings, Axes};
use podracer_rl::net::Networks;

const RATES: [f64; 3] = [0.0, 0.01, 0.1];

/// The critic's weights after one iteration of a member.
fn member(key: Key, rate: Number) -> Tensor {
    let environment = Catch { rows: 3, columns: 3 };
    let settings = PpoSettings {
        optimizer: AdamSettings { learning_rate: rate, ..PpoSettings::default().optimizer },
        entropy_cost: rate,
        minibatches: 1,
        networks: Networks { hidden: vec![], ..Networks::default() },
        ..PpoSettings::default()
    };
    let (observation, action) = (environment.observation_space(), environment.action_space());
    let agent = Ppo::with(settings, observation, action);
    let agent_loop = AgentLoop::new(environment, agent, 2, 4).spread(Axes::none());
    let (state, _) = agent_loop.iterate(agent_loop.init(key));
    state.replicated.agent.params.critic.layers[0].weight
}

#[test]
fn members_learn_at_rates_of_their_own() {
    let several = run((key(), f32([3])), &[words(2), floats(&[3], &RATES)], |(key, rates)| {
        vmap((key.split_n(3), rates), |(key, rate)| member(key, Number::from(rate)))
    });
    for (i, rate) in RATES.into_iter().enumerate() {
        let one = run(key(), &[words(2)], |key| member(key.split_n(3).at(i), Number::from(rate)));
        let rows = several[0].to_f64();
        let size = rows.len() / RATES.len();
        let row = floats(&one[0].ty().shape, &rows[i * size..(i + 1) * size]);
        close(&format!("member {i}"), &row, &one[0], 1e-6);
    }
}

/// Settings of a program's own number have no value to write into a file.
#[test]
fn a_traced_number_cannot_be_written() {
    let traced = trace(f32([]), |rate| {
        let error = serde_json::to_string(&Number::from(rate)).expect_err("it has no value");
        assert!(error.to_string().contains("has no value to write"), "{error}");
        rate
    });
    traced.expect("it traces");
    assert_eq!(serde_json::to_string(&Number::from(0.5)).expect("a constant"), "0.5");
}
