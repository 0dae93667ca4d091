//! Counters at the end of i32: agents and optimizers continue to learn after 2^31 gradient steps.

use crate::agent_loop::{ppo, tape};
use crate::golden::run;
use podracer_dsl::prelude::*;
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::DescribesOptimizer;
use podracer_rl::optim::*;

/// The updates of ten steps. Before the first step all counters, which are the i32 leaves, are `i32::MAX - 5`.
#[track_caller]
fn ten_updates<O: Optimizer>(name: &str, optimizer: O) -> Vec<f64> {
    let results = run((), &[], |()| {
        let params = constant([1.0, -2.0]);
        let late = |leaf: Tensor| match leaf.dtype() == I32 {
            true => leaf.full_like(i32::MAX - 5),
            false => leaf,
        };
        let state = tree_map(&optimizer.init(&params), late);
        let (_, (updates, counts)) = scan(state, 0..10, |state, _| {
            let (update, state) = optimizer.update(constant([0.5, -1.0]), state, &params);
            let mut leaves = state.leaves();
            leaves.retain(|leaf| leaf.dtype() == I32);
            (state, (update, leaves))
        });
        (updates, counts)
    });
    for counts in &results[1..] {
        let counts = counts.to_f64();
        assert!(counts.iter().all(|&count| count >= 0.0), "{name}: {counts:?}");
    }
    results[0].to_f64()
}

#[test]
fn optimizers_learn_after_2_to_the_31_updates() {
    let learns = |name, updates: Vec<f64>| {
        let moves = |update: &f64| (1e-5..2.0).contains(&update.abs());
        assert!(updates.iter().all(moves), "{name}: {updates:?}");
    };
    learns("adam", ten_updates("adam", adam(0.1)));
    learns("nadam", ten_updates("nadam", adam(0.1).nesterov()));
    learns("lamb", ten_updates("lamb", lamb(0.1)));
    learns("radam", ten_updates("radam", radam(0.1)));
    learns("adagrad", ten_updates("adagrad", adagrad(0.1)));
    learns("ema", ten_updates("ema", ema(0.5)));
    learns("lion", ten_updates("lion", lion(0.1)));
    learns("rmsprop", ten_updates("rmsprop", rmsprop(0.1)));
    // The number of gradients in a mean is late too, and makes the first mean small.
    learns("multi_steps", ten_updates("multi_steps", multi_steps(adam(0.1), 1)));
    // The last rate of a schedule stays, and does not begin anew.
    let decay = Schedule::linear(50.0, 0.1, 1000);
    learns("sgd", ten_updates("sgd", sgd(decay.clone())));
    learns("momentum", ten_updates("momentum", sgd(decay).momentum(0.1)));
}

#[test]
fn iterations_after_2_to_the_31_keep_the_last_learning_rate() {
    let mut agent = ppo(&tape());
    agent.iterations = Some(8);
    agent.settings.optimizer.anneal_learning_rate = true;
    agent.settings.epochs = 3;
    let first = agent.settings.optimizer.learning_rate().constant().expect("a constant");
    let agent_loop = AgentLoop::new(tape(), agent, 1, 4);
    for (start, expected) in [(0, Some(first)), (i32::MAX / 2, Some(0.0)), (i32::MAX, Some(0.0))] {
        let results = run(key(), &[crate::golden::words(1)], |key| {
            let mut state = agent_loop.init(key);
            state.replicated.iteration = scalar(start);
            let (state, told) = agent_loop.iterate(state);
            (state.replicated.iteration, told.replicated.learning_rate)
        });
        let next = start.saturating_add(1);
        assert_eq!(results[0].to_f64(), [f64::from(next)]);
        let rate = results[1].to_f64()[0];
        let expected = expected.filter(|_| start > 0).unwrap_or(first * (1.0 - 2.0 / 24.0));
        assert!((rate - expected).abs() < 1e-9, "{start}: {rate} and {expected}");
    }
}
