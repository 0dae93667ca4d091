//! What changes over a run of PPO: the clip, the entropy cost, the learning rate.

use crate::agent_loop::{Iteration, ppo, tape};
use podracer_dsl::prelude::*;
use podracer_rl::agents::PpoSettings;
use podracer_rl::anakin::AgentLoop;

/// Clip and entropy cost in an iteration of a run of eight.
fn scheduled(settings: &PpoSettings, iteration: i32) -> [f64; 2] {
    let traced = trace((), |()| {
        let now = settings.at(scalar(iteration), Some(8));
        (now.clip.into_tensor(), now.entropy_cost.into_tensor())
    });
    let values = traced.expect("it traces").eval(&[]).expect("it has values");
    [0, 1].map(|i| values[i].to_f64()[0])
}

#[test]
fn clip_and_entropy_cost_go_in_a_straight_line_over_the_run() {
    let settings = PpoSettings {
        clip: 0.5.into(),
        clip_end: Some(0.25.into()),
        entropy_cost: 0.0.into(),
        entropy_cost_end: Some(1.0.into()),
        ..PpoSettings::default()
    };
    // The first, the middle and the last iteration, and an iteration of a run that continues.
    let expected = [[0.5, 0.0], [0.375, 0.5], [0.28125, 0.875], [0.25, 1.0]];
    assert_eq!([0, 4, 7, 9].map(|iteration| scheduled(&settings, iteration)), expected);
}

#[test]
fn what_has_no_end_is_a_constant_of_the_program() {
    let settings = PpoSettings { clip_end: Some(0.1.into()), ..PpoSettings::default() };
    let traced = trace((), |()| {
        let now = settings.at(scalar(3), Some(8));
        assert!(now.clip.constant().is_none(), "it goes in a line");
        assert_eq!(now.entropy_cost, settings.entropy_cost);
        // Without a run there is nothing to go along.
        assert_eq!(settings.at(scalar(3), None).clip, settings.clip);
        scalar(0)
    });
    traced.expect("it traces");
}

/// The loss takes the values of the iteration: with an entropy cost of 0 at the end of a run of one iteration nothing changes in the
/// first iteration, and the second has no entropy bonus.
#[test]
fn the_loss_has_the_entropy_cost_of_its_iteration() {
    let mut agent = ppo(&tape());
    agent.iterations = Some(1);
    agent.settings.entropy_cost = 0.5.into();
    agent.settings.entropy_cost_end = Some(0.0.into());
    let value_cost = agent.settings.value_cost.constant().expect("a constant");
    let run = Iteration::several(&AgentLoop::new(tape(), agent, 1, 4), 2);
    for (iteration, entropy_cost) in run.iter().zip([0.5, 0.0]) {
        let [loss, policy_loss, value_loss, entropy] =
            ["loss", "policy_loss", "value_loss", "entropy"].map(|name| iteration.metric(name)[0]);
        let expected = policy_loss + value_cost * value_loss - entropy_cost * entropy;
        assert!((loss - expected).abs() < 1e-5, "{loss} and {expected}");
    }
}

#[test]
fn the_metric_is_the_learning_rate_of_the_last_gradient_step() {
    let mut agent = ppo(&tape());
    agent.iterations = Some(4);
    agent.settings.optimizer.learning_rate = 0.5.into();
    let steps = (agent.settings.epochs * agent.settings.minibatches) as f64;
    let run = Iteration::several(&AgentLoop::new(tape(), agent, 1, 4), 2);
    for (i, iteration) in run.iter().enumerate() {
        let before = i as f64 * steps + steps - 1.0;
        let expected = 0.5 * (1.0 - before / (4.0 * steps));
        let rate = iteration.metric("learning_rate")[0];
        assert!((rate - expected).abs() < 1e-6, "{rate} and {expected}");
    }
}
