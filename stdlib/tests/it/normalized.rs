//! Normalised observations and rewards, with the numbers of Gymnasium's `RunningMeanStd` and `NormalizeReward` (1.4).

use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_stdlib::agents::{Agent, Impala, Moments, Normalized, Trajectory};

fn floats(shape: &[usize], values: &[f64]) -> Tensor {
    constant_of(&Array::floats(F32, shape.to_vec(), values))
}

fn close(got: &Array, expected: &[f64]) {
    let got = got.to_f64();
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        let error = (got - expected).abs();
        assert!(error <= 1e-5 * expected.abs().max(1.0), "{got} {expected}");
    }
}

#[test]
fn moments_are_those_of_all_numbers() {
    let squares: Vec<f64> = (0..12).map(|i| f64::from(i * i) / 10.0).collect();
    let sines: Vec<f64> = (0..12).map(|i| f64::from(i).sin() * 100.0).collect();
    let traced = trace((), |()| {
        let moments = Moments::first(&[2]).with(floats(&[2, 3, 2], &squares), &[]);
        moments.with(floats(&[2, 3, 2], &sines), &[])
    });
    let results = traced.expect("it traces").eval(&[]).expect("values");
    close(&results[0], &[12.0001]);
    close(&results[1], &[4.48676735, 3.15648699]);
    close(&results[2], &[2286.59766867, 2717.75344177]);
}

/// Five steps of two environments: one episode is cut off, one ends.
#[test]
fn an_agent_sees_and_is_paid_in_normalised_numbers() {
    let rewards = [1.0, 2.0, 3.0, -1.0, 2.0, 2.0, 0.5, 1.0, 1.0, 4.0];
    let at = |at: usize| {
        let flags: Vec<bool> = (0..10).map(|i| i == at).collect();
        constant_of(&Array::bools([5, 2], &flags))
    };
    let space = Space::unbounded([1]);
    let agent = Impala::new(space.clone(), Space::discrete(2));
    let agent = Normalized::new(agent, space, 0.9);
    let traced = trace(key(), |key| {
        let [nets, key] = key.split_into();
        let nets = agent.init_nets(nets);
        let shown: Vec<f64> = (0..10).map(|i| f64::from(i) - 3.0).collect();
        let observation = floats(&[5, 2, 1], &shown);
        let trajectory = Trajectory {
            observation,
            action: zeros(I32, [5, 2]),
            reward: floats(&[5, 2], &rewards),
            terminated: at(3),
            truncated: at(4),
            skipped: vec![],
            next_observation: vec![observation],
            last_observation: floats(&[2, 1], &[-20.0, 0.5]),
            output: zeros(F32, [5, 2]),
        };
        let memory = vmap(zeros(F32, [2]), |_| agent.init_actor());
        let experience = agent.init_experience(2);
        let (experience, batch) =
            agent.update_experience(&nets, experience, memory, trajectory, key);
        let settled = agent.settle(nets, &batch);
        let seen = batch.batch.trajectory;
        let paid = (seen.reward, settled.returns, experience.returns);
        (
            paid,
            (seen.observation, seen.last_observation),
            settled.observations,
        )
    });
    let traced = traced.expect("it traces");
    let words = Array::ints(U32, [2], &[0, 7]);
    let results = traced.eval(&[words]).expect("values");
    let [
        reward,
        count,
        mean,
        variance,
        carried,
        seen,
        last,
        rest @ ..,
    ] = &results[..]
    else {
        panic!("{} results", results.len());
    };
    let std = 4.736299546635437f64.sqrt();
    close(reward, &rewards.map(|reward| reward / std));
    close(count, &[10.0001]);
    close(mean, &[2.4679753202467976]);
    close(variance, &[4.736299546635437]);
    close(carried, &[1.45, 6.52]);
    // With what was known when it was acted: nothing.
    let shown: Vec<f64> = (0..10).map(|i| f64::from(i) - 3.0).collect();
    close(seen, &shown);
    close(last, &[-10.0, 0.5]);
    // What is known now: the mean of -3 to 6, nearly.
    close(&rest[1], &[1.5 * 10.0 / 10.0001]);
}
