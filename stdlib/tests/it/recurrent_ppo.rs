//! PPO with a core: minibatches of whole trajectories, gone through as acting went.

use crate::golden::{close, run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_stdlib::agents::{ActorCritic, Agent, Memory, Ppo, PpoOutput, Trajectory};
use podracer_stdlib::losses::{clipped_surrogate_pg_loss, clipped_value_loss};
use podracer_stdlib::returns::gae_with_ends;

const STEPS: usize = 5;
const ENVIRONMENTS: usize = 4;
/// Step and environment.
const TERMINATED: [(usize, usize); 2] = [(1, 0), (4, 2)];
const TRUNCATED: [(usize, usize); 3] = [(0, 1), (3, 0), (4, 3)];

fn agent() -> Ppo {
    Ppo {
        lstm: Some(3),
        hidden: vec![4],
        epochs: 3,
        minibatches: 2,
        ..Ppo::new(Space::unbounded([2]), Space::discrete(3))
    }
}

fn numbers(shape: &[usize], seed: f64) -> Tensor {
    let numbers: Vec<f64> =
        (0..shape.iter().product::<usize>()).map(|i| (i as f64 * 2.3 + seed).sin()).collect();
    constant_of(&Array::floats(F32, shape, &numbers))
}

fn flags(at: &[(usize, usize)]) -> Tensor {
    let flag = |i: usize| at.contains(&(i / ENVIRONMENTS, i % ENVIRONMENTS));
    let flags: Vec<bool> = (0..STEPS * ENVIRONMENTS).map(flag).collect();
    constant_of(&Array::bools([STEPS, ENVIRONMENTS], &flags))
}

/// The memory of each environment at the trajectory's start.
fn start() -> Memory {
    let memory = vmap(zeros(F32, [ENVIRONMENTS]), |_| agent().init_actor());
    tree_map(&memory, |leaf| leaf + numbers(&[ENVIRONMENTS, 3], 9.0))
}

/// A trajectory as the loop of agent and environment acts it, one step after another.
fn trajectory(nets: &ActorCritic, key: Key) -> Trajectory<Tensor, PpoOutput> {
    let observation = numbers(&[STEPS, ENVIRONMENTS, 2], 1.0);
    let (terminated, truncated) = (flags(&TERMINATED), flags(&TRUNCATED));
    let keys = key.split_n(STEPS);
    let (mut memory, mut acted) = (start(), Vec::new());
    for time in 0..STEPS {
        let lanes = (memory, observation.index(time as isize), keys.at(time).split_n(4));
        let (action, after, output) =
            vmap(lanes, |(memory, seen, key)| agent().act(nets, memory, seen, key));
        let ended = (terminated | truncated).index(time as isize);
        memory = vmap((ended, after), |(ended, after)| {
            tree_select(ended, &agent().init_actor(), &after)
        });
        acted.push((action, output));
    }
    let leaves: Vec<Vec<Tensor>> = acted.iter().map(Tree::leaves).collect();
    let stacked = |i| {
        let each: Vec<Tensor> = leaves.iter().map(|leaves| leaves[i]).collect();
        stack(&each, 0)
    };
    let stacked: Vec<Tensor> = (0..leaves[0].len()).map(stacked).collect();
    let (action, output) = acted[0].with_leaves(&stacked);
    Trajectory {
        observation,
        action,
        reward: numbers(&[STEPS, ENVIRONMENTS], 2.0),
        terminated,
        truncated,
        skipped: vec![],
        next_observation: vec![numbers(&[STEPS, ENVIRONMENTS, 2], 3.0)],
        last_observation: numbers(&[ENVIRONMENTS, 2], 4.0),
        output,
    }
}

/// What one environment's trajectory is learnt with: what the learning policy says of each step, and the advantages.
struct Gone {
    log_ratio: Vec<Tensor>,
    entropy: Vec<Tensor>,
    value: Vec<Tensor>,
    old_value: Tensor,
    advantage: Tensor,
}

/// One environment, step by step.
fn gone_through(
    nets: &ActorCritic,
    acting: &ActorCritic,
    trajectory: &Trajectory<Tensor, PpoOutput>,
    lane: isize,
) -> Gone {
    let of = |x: Tensor| x.index_axis(1, lane);
    let at = |x: Tensor, time: usize| of(x).index(time as isize);
    let start = tree_map(&start(), |leaf| leaf.index(lane));
    let (mut memory, mut old_memory) = (start.clone(), start);
    let (mut log_ratio, mut entropy, mut value) = (vec![], vec![], vec![]);
    let (mut old_values, mut next_values) = (vec![], vec![]);
    for time in 0..STEPS {
        let seen = at(trajectory.observation, time);
        let remembered = nets.see(memory, seen);
        let features = remembered.1;
        let policy = nets.policy(features);
        log_ratio.push(
            policy.log_prob(at(trajectory.action, time)) - at(trajectory.output.log_prob, time),
        );
        entropy.push(policy.entropy());
        value.push(nets.value(features));
        let (after, features) = acting.see(old_memory, seen);
        old_values.push(acting.value(features));
        let shown = at(trajectory.next_observation[0], time);
        let (_, features) = acting.see(after.clone(), shown);
        let v_shown = acting.value(features);
        let is_last = time + 1 == STEPS;
        let ended = |at: &[(usize, usize)]| at.contains(&(time, lane as usize));
        let follows = if is_last {
            let last = trajectory.last_observation.index(lane);
            acting.see(after.clone(), last).1
        } else {
            let next = at(trajectory.observation, time + 1);
            acting.see(after.clone(), next).1
        };
        next_values.push(if ended(&TRUNCATED) { v_shown } else { acting.value(follows) });
        (memory, old_memory) = if ended(&TERMINATED) || ended(&TRUNCATED) {
            (agent().init_actor(), agent().init_actor())
        } else {
            (remembered.0, after)
        };
    }
    let terminated = of(trajectory.terminated);
    let old_value = stack(&old_values, 0);
    let advantage = gae_with_ends(
        of(trajectory.reward),
        select(terminated, 0.0, terminated.astype(F32) * 0.0 + agent().discount),
        old_value,
        stack(&next_values, 0),
        terminated | of(trajectory.truncated),
        agent().lambda,
    );
    Gone { log_ratio, entropy, value, old_value, advantage }
}

/// The loss of a minibatch of these environments, written down once more.
fn loss_by_hand(
    nets: &ActorCritic,
    acting: &ActorCritic,
    trajectory: &Trajectory<Tensor, PpoOutput>,
    lanes: [isize; 2],
) -> Tensor {
    let lanes = lanes.map(|lane| gone_through(nets, acting, trajectory, lane));
    let all = |of: &dyn Fn(&Gone) -> Tensor| concatenate(&[of(&lanes[0]), of(&lanes[1])], 0);
    let advantage = all(&|gone| gone.advantage);
    let normalised = (advantage - advantage.mean()) / (advantage.std() + 1e-8);
    let ratio = all(&|gone| stack(&gone.log_ratio, 0)).exp();
    let value = all(&|gone| stack(&gone.value, 0));
    let old_value = all(&|gone| gone.old_value);
    let Ppo { clip, value_cost, entropy_cost, .. } = agent();
    let value_loss = clipped_value_loss(value, old_value, old_value + advantage, clip);
    let entropy = all(&|gone| stack(&gone.entropy, 0)).mean();
    clipped_surrogate_pg_loss(ratio, normalised, clip) + value_cost * value_loss
        - entropy_cost * entropy
}

#[test]
fn the_loss_of_a_minibatch_is_that_of_its_environments_one_after_another() {
    let results = run(key(), &[words(3)], |key| {
        let keys = key.split_n(3);
        let nets = agent().init_nets(keys.at(0));
        // The policy that learns is another than the one that acted.
        let acting = tree_map(&nets, |leaf| stop_gradient(leaf) * 0.9);
        let trajectory = trajectory(&acting, keys.at(1));
        let ((), batch) =
            agent().update_experience(&acting, (), start(), trajectory.clone(), keys.at(2));
        let got = value_and_grad(nets.clone(), |nets| agent().loss(nets, &batch, scalar(4)).0);
        // Of the six pairs of environments, the one that was drawn.
        let pairs: [[isize; 2]; 6] = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        let by_hand = pairs.map(|lanes| {
            value_and_grad(nets.clone(), |nets| loss_by_hand(&nets, &acting, &trajectory, lanes))
        });
        (batch.minibatch, got, by_hand.to_vec())
    });
    let minibatch = results[0].to_f64();
    for epoch in minibatch.chunks(ENVIRONMENTS) {
        let mut epoch = epoch.to_vec();
        epoch.sort_by(f64::total_cmp);
        assert_eq!(epoch, [0.0, 1.0, 2.0, 3.0]);
    }
    let mut drawn = minibatch[8..10].to_vec();
    drawn.sort_by(f64::total_cmp);
    let pairs = [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [1.0, 2.0], [1.0, 3.0], [2.0, 3.0]];
    let pair = pairs.iter().position(|pair| *pair == drawn[..]).expect("a pair");
    let leaves = (results.len() - 1) / 7;
    let (got, by_hand) = results[1..].split_at(leaves);
    for (i, (got, expected)) in got.iter().zip(&by_hand[pair * leaves..]).enumerate() {
        close(&format!("result {i}"), got, expected, 2e-5);
    }
    let other = &by_hand[(pair + 1) % 6 * leaves];
    assert!((other.to_f64()[0] - got[0].to_f64()[0]).abs() > 1e-4);
}

#[test]
fn environments_that_do_not_divide_are_an_error() {
    let agent = Ppo { minibatches: 3, ..agent() };
    let traced = trace(key(), |key| {
        let keys = key.split_n(2);
        let nets = agent.init_nets(keys.at(0));
        let trajectory = trajectory(&nets, keys.at(1));
        agent.update_experience(&nets, (), start(), trajectory, keys.at(0))
    });
    let mistakes = traced.err();
    let message = mistakes.expect("a mistake was made").to_string();
    let expected = "the trajectories of 4 environments, each whole for the core, do not divide into 3 minibatches";
    assert!(message.contains(expected), "{message}");
}
