//! Delayed chains: the effect of the first action, and its delay.

use podracer_dsl::prelude::*;
use podracer_envs::delayed_chains::{ChainTask, DelayedChains};
use podracer_envs::{Environment, Tasks};

/// Rewards, ends and observations of an episode of three steps with this first action.
fn episode(chains: DelayedChains, first: i32) -> Vec<Vec<f64>> {
    let traced = trace((), |()| {
        let world = chains.world(ChainTask { length: scalar(3), better: scalar(1) });
        let mut state = world.initial_state(Key::new(0));
        let mut steps = vec![stack(&[world.observe(state).astype(F32)], 0)];
        for (i, action) in [first, 1 - first, 0].into_iter().enumerate() {
            let step;
            (state, step) = world.step(state, scalar(action), Key::new(i as u32 + 1));
            let seen = step.observation.astype(F32);
            steps.push(stack(&[step.reward, step.terminated.astype(F32), seen], 0));
        }
        steps
    });
    let steps = traced.expect("it traces").eval(&[]).expect("it runs");
    steps.iter().map(|array| array.to_f64()).collect()
}

#[test]
fn the_first_action_decides_on_the_last_reward() {
    let chains = DelayedChains { longest: 4, ..DelayedChains::default() };
    // The number of a state is three times its position and the choice.
    let right = episode(chains, 1);
    assert_eq!(right[0], [2.0]);
    assert_eq!(right[1], [0.0, 0.0, 4.0]);
    assert_eq!(right[2], [0.0, 0.0, 7.0]);
    assert_eq!(right[3], [1.0, 1.0, 10.0]);
    let wrong = episode(chains, 0);
    assert_eq!(wrong[3], [-1.0, 1.0, 9.0]);
}

#[test]
fn noise_and_distractors_say_nothing_of_the_end() {
    let chains =
        DelayedChains { longest: 4, noisy: true, distractors: 2, ..DelayedChains::default() };
    let noisy = episode(chains, 1);
    for step in &noisy[1..3] {
        assert_eq!(step[0].abs(), 1.0);
    }
    assert_eq!(noisy[3][0], 1.0);
    assert_eq!((noisy[3][2] / 4.0).floor(), 10.0);
    assert_eq!(chains.observation_space().counts(), [15 * 4]);
}

#[test]
fn tasks_have_lengths_between_two_numbers() {
    let chains = DelayedChains { shortest: 3, longest: 5, ..DelayedChains::default() };
    let traced = trace((), |()| {
        let tasks = vmap(Key::new(0).split_n(200), |key| chains.draw(key));
        (tasks.length, tasks.better)
    });
    let arrays = traced.expect("it traces").eval(&[]).expect("it runs");
    let (length, better) = (arrays[0].to_f64(), arrays[1].to_f64());
    for known in [3.0, 4.0, 5.0] {
        assert!(length.contains(&known));
    }
    assert!(length.iter().all(|length| (3.0..=5.0).contains(length)));
    assert!(better.contains(&0.0) && better.contains(&1.0));
}
