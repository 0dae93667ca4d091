//! Steps that are none: what is learnt of a trajectory with them is what is learnt of the one without.

use crate::golden::{close, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_stdlib::agents::{
    Agent, Impala, Learning, Normalized, OnlineActorCritic, Ppo, Trajectory,
};

const STEPS: usize = 8;
/// In the first environment one episode terminates and one is cut off; in the second one ended just before the trajectory,
/// and one is cut off in the last step but one.
const TERMINATED: [&[usize]; 2] = [&[1], &[]];
const TRUNCATED: [&[usize]; 2] = [&[5], &[6]];
const SKIPPED: [&[usize]; 2] = [&[2, 6], &[0, 7]];

/// bool `[T, N]`
fn flags(times: [&[usize]; 2]) -> Tensor {
    let flag = |at: usize| times[at % 2].contains(&(at / 2));
    let flags: Vec<bool> = (0..2 * STEPS).map(flag).collect();
    constant_of(&Array::bools([STEPS, 2], &flags))
}

/// f32 numbers of about unit size.
fn numbers(shape: &[usize], seed: f64) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| (i as f64 * 1.7 + seed).sin() * 1.5).collect();
    constant_of(&Array::floats(F32, shape, &numbers))
}

fn trajectory<A: Agent<Observation = Tensor>>(
    agent: &A,
    nets: &A::Nets,
    key: Key,
) -> Trajectory<Tensor, A::Output> {
    let observation = numbers(&[STEPS, 2, 3], 1.0);
    let rows = observation.reshape([2 * STEPS, 3]);
    let (action, output) = vmap((rows, key.split_n(2 * STEPS)), |(seen, key)| {
        let (action, _, output) = agent.act(nets, agent.init_actor(), seen, key);
        (action, output)
    });
    let unmerge = |leaf: Tensor| leaf.reshape([&[STEPS, 2], &leaf.shape()[1..]].concat());
    let skipped = flags(SKIPPED);
    Trajectory {
        observation,
        action: unmerge(action),
        reward: numbers(&[STEPS, 2], 2.0),
        terminated: flags(TERMINATED) | skipped,
        truncated: flags(TRUNCATED) | skipped,
        skipped: vec![skipped],
        next_observation: vec![numbers(&[STEPS, 2, 3], 3.0)],
        last_observation: numbers(&[2, 3], 4.0),
        output: tree_map(&output, unmerge),
    }
}

/// Without the steps that are none.
fn shortened<X: Tree>(trajectory: Trajectory<Tensor, X>) -> Trajectory<Tensor, X> {
    let last_observation = trajectory.last_observation;
    let of_steps =
        Trajectory { skipped: vec![], last_observation: zeros(F32, [STEPS, 2, 3]), ..trajectory };
    let rows = SKIPPED.map(|skipped| {
        let rows = (0..STEPS).filter(|time| !skipped.contains(time));
        let rows: Vec<i128> = rows.map(|time| time as i128).collect();
        constant_of(&Array::ints(I32, [rows.len()], &rows))
    });
    let kept = tree_map(&of_steps, |leaf| {
        let lanes = [0, 1].map(|i| leaf.index_axis(1, i as isize).take(rows[i], 0));
        stack(&lanes, 1)
    });
    Trajectory { last_observation, ..kept }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Marked,
    Shortened,
    Unmarked,
}

/// The loss, its gradient, the metrics, what outlives the cycle.
fn learnt<A: Agent<Observation = Tensor>>(agent: &A, kind: Kind) -> Vec<Array> {
    run(key(), &[words(5)], |key| {
        let keys = key.split_n(3);
        let nets = agent.init_nets(keys.at(0));
        value_and_grad(nets, |nets| {
            // The policy that learns is another than the one that acted.
            let acting = match agent.learning() {
                Learning::ThroughLoop => nets.clone(),
                Learning::FromBatch { .. } => tree_map(&nets, |leaf| stop_gradient(leaf) * 1.1),
            };
            let whole = trajectory(agent, &acting, keys.at(1));
            let trajectory = match kind {
                Kind::Marked => whole,
                Kind::Shortened => shortened(whole),
                Kind::Unmarked => Trajectory { skipped: vec![], ..whole },
            };
            // An episode is under way in the first environment. In the second one begins after a step that is none.
            let remembered = match kind {
                Kind::Shortened => [0.3, 0.0],
                Kind::Marked | Kind::Unmarked => [0.3, 0.3],
            };
            let remembered = constant_of(&Array::floats(F32, [2, 1], &remembered));
            let memory = vmap(zeros(F32, [2]), |_| agent.init_actor());
            let memory = tree_map(&memory, |leaf| leaf + remembered);
            let (experience, batch) = agent.update_experience(
                &acting,
                agent.init_experience(2),
                memory,
                trajectory,
                keys.at(2),
            );
            let (loss, metrics) = agent.loss(nets.clone(), &batch, scalar(0));
            (loss, (metrics, experience, agent.settle(nets, &batch)))
        })
    })
}

fn check<A: Agent<Observation = Tensor>>(agent: &A) {
    let [marked, shortened, unmarked] =
        [Kind::Marked, Kind::Shortened, Kind::Unmarked].map(|kind| learnt(agent, kind));
    for (i, (got, expected)) in marked.iter().zip(&shortened).enumerate() {
        close(&format!("result {i}"), got, expected, 2e-5);
    }
    // The loss.
    let difference = (unmarked[0].to_f64()[0] - marked[0].to_f64()[0]).abs();
    assert!(difference > 1e-3, "{difference}");
}

fn spaces() -> (Space, Space) {
    (Space::unbounded([3]), Space::discrete(3))
}

#[test]
fn ppo_learns_nothing_of_steps_that_are_none() {
    let (observation, action) = spaces();
    let agent = Ppo { epochs: 1, minibatches: 1, hidden: vec![8], ..Ppo::new(observation, action) };
    check(&agent);
    let continuous = Ppo { action: Space::unbounded([2]), ..agent.clone() };
    check(&continuous);
    check(&Ppo { lstm: Some(4), ..agent.clone() });
    let observation = agent.observation.clone();
    check(&Normalized::new(agent, observation, 0.9));
}

#[test]
fn impala_learns_and_remembers_nothing_of_them() {
    let (observation, action) = spaces();
    for lstm in [None, Some(4)] {
        check(&Impala {
            lstm,
            hidden: vec![8],
            ..Impala::new(observation.clone(), action.clone())
        });
    }
}

#[test]
fn neither_does_an_agent_that_learns_through_its_acting() {
    let (observation, action) = spaces();
    check(&OnlineActorCritic { hidden: vec![8], ..OnlineActorCritic::new(observation, action) });
}

/// Of the minibatches of several, each is normalised by itself.
#[test]
fn weights_are_of_mean_one_where_steps_count() {
    let traced = trace((), |()| {
        let count = Array::bools([2, 4], &[true, false, true, true, false, false, false, false]);
        vmap(constant_of(&count), podracer_stdlib::agents::step_weights)
    });
    let weights = traced.expect("it traces").eval(&[]).expect("values");
    let third = f64::from(4.0f32 / 3.0);
    assert_eq!(weights[0].to_f64(), [third, 0.0, third, third, 0.0, 0.0, 0.0, 0.0]);
}
