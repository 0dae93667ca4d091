//! Normalised observations and rewards, with the numbers of Gymnasium's `RunningMeanStd` and `NormalizeReward` (1.4).

use crate::golden::{close, floats, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_stdlib::agents::{Agent, Impala, Moments, Normalized, Trajectory};

#[test]
fn moments_are_those_of_all_numbers() {
    let squares: Vec<f64> = (0..12).map(|i| f64::from(i * i) / 10.0).collect();
    let sines: Vec<f64> = (0..12).map(|i| f64::from(i).sin() * 100.0).collect();
    let given = [squares, sines].map(|values| floats(&[2, 3, 2], &values));
    let spec = (f32([2, 3, 2]), f32([2, 3, 2]));
    let results = run(spec, &given, |(squares, sines)| {
        Moments::first(&[2]).with(squares, &[]).with(sines, &[])
    });
    let expected = [
        ("count", floats(&[], &[12.0001])),
        ("mean", floats(&[2], &[4.48676735, 3.15648699])),
        ("variance", floats(&[2], &[2286.59766867, 2717.75344177])),
    ];
    assert_eq!(results.len(), expected.len());
    for (got, (what, expected)) in results.iter().zip(&expected) {
        close(what, got, expected, 1e-5);
    }
}

/// Five steps of two environments: one episode is cut off, one ends.
#[test]
fn an_agent_sees_and_is_paid_in_normalised_numbers() {
    let rewards = [1.0, 2.0, 3.0, -1.0, 2.0, 2.0, 0.5, 1.0, 1.0, 4.0];
    let shown: Vec<f64> = (0..10).map(|i| f64::from(i) - 3.0).collect();
    let at = |at: usize| {
        let flags: Vec<bool> = (0..10).map(|i| i == at).collect();
        constant_of(&Array::bools([5, 2], &flags))
    };
    let space = Space::unbounded([1]);
    let agent = Impala::new(space.clone(), Space::discrete(2));
    let agent = Normalized::new(agent, space, 0.9);
    let given = |shape: &[usize], values: &[f64]| constant_of(&floats(shape, values));
    let results = run(key(), &[words(7)], |key| {
        let [nets, key] = key.split_into();
        let nets = agent.init_nets(nets);
        let observation = given(&[5, 2, 1], &shown);
        let trajectory = Trajectory {
            observation,
            action: zeros(I32, [5, 2]),
            reward: given(&[5, 2], &rewards),
            terminated: at(3),
            truncated: at(4),
            skipped: vec![],
            next_observation: vec![observation],
            last_observation: given(&[2, 1], &[-20.0, 0.5]),
            output: zeros(F32, [5, 2]),
        };
        let memory = vmap(zeros(F32, [2]), |_| agent.init_actor());
        let experience = agent.init_experience(2);
        let (experience, batch) =
            agent.update_experience(&nets, experience, memory, trajectory, key);
        let settled = agent.settle(nets, &batch);
        let seen = batch.batch.trajectory;
        let paid = (seen.reward, settled.returns, experience.returns);
        (paid, (seen.observation, seen.last_observation), settled.observations)
    });
    let [reward, count, mean, variance, carried, seen, last, rest @ ..] = &results[..] else {
        panic!("{} results", results.len());
    };
    let std = 4.736299546635437f64.sqrt();
    let check = |what: &str, got: &Array, shape: &[usize], expected: &[f64]| {
        close(what, got, &floats(shape, expected), 1e-5);
    };
    check("rewards", reward, &[5, 2], &rewards.map(|reward| reward / std));
    check("count", count, &[], &[10.0001]);
    check("mean", mean, &[], &[2.4679753202467976]);
    check("variance", variance, &[], &[4.736299546635437]);
    check("carried", carried, &[2], &[1.45, 6.52]);
    // With what was known when it was acted: nothing.
    check("seen", seen, &[5, 2, 1], &shown);
    check("last", last, &[2, 1], &[-10.0, 0.5]);
    // What is known now: the mean of -3 to 6, nearly.
    check("mean seen", &rest[1], &[1], &[1.5 * 10.0 / 10.0001]);
}
