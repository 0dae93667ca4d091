//! PPO with a core: minibatches of whole trajectories, gone through as acting went.

use crate::agent_loop::input;
use crate::golden::{run, words};
use podracer_dsl::prelude::*;
use podracer_envs::Space;
use podracer_rl::agents::{Ppo, PpoSettings};
use podracer_rl::learn::{Act, Agent, Axes, Cx, LaneId, Learn, Mode, Rollout, RolloutOf};
use podracer_rl::losses::{clipped_surrogate_pg_loss, clipped_value_loss};
use podracer_rl::net::{ActorCritic, Core, Memory, Networks};
use podracer_rl::nn::LstmState;
use podracer_rl::optim::{Sgd, sgd};
use podracer_rl::returns::gae_with_ends;

const STEPS: usize = 5;
const ENVIRONMENTS: usize = 4;
/// Step and environment of each termination.
const TERMINATED: [(usize, usize); 2] = [(1, 0), (4, 2)];
const TRUNCATED: [(usize, usize); 3] = [(0, 1), (3, 0), (4, 3)];

const RATE: f64 = 0.1;

fn agent() -> Ppo<Sgd> {
    Ppo {
        observation: Space::unbounded([2]),
        action: Space::discrete(3),
        optimizer: sgd(RATE),
        iterations: None,
        settings: PpoSettings {
            core: Core { lstm: Some(3), ..Core::default() },
            networks: Networks { hidden: vec![4], ..Networks::default() },
            epochs: 1,
            minibatches: 2,
            ..PpoSettings::default()
        },
    }
}

fn no_memory() -> Memory {
    Some(LstmState::zeros(3))
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
    let memory = vmap(arange(ENVIRONMENTS), |index| {
        agent().init_memory(LaneId { index, lanes: ENVIRONMENTS })
    });
    tree_map(&memory, |leaf| leaf + numbers(&[ENVIRONMENTS, 3], 9.0))
}

/// A rollout as the loop of agent and environment acts it, one step after another.
fn rollout(params: &ActorCritic, key: Key) -> Rollout<Ppo<Sgd>> {
    let acted_on = input(numbers(&[STEPS, ENVIRONMENTS, 2], 1.0), 2);
    let (terminated, truncated) = (flags(&TERMINATED), flags(&TRUNCATED));
    let keys = key.split_n(STEPS);
    let (mut memory, mut acted) = (start(), Vec::new());
    for time in 0..STEPS {
        let now = tree_map(&acted_on, |leaf| leaf.index(time as isize));
        let lanes = (memory, now, keys.at(time).split_n(ENVIRONMENTS));
        let Act { action, memory: after, extras } = vmap(lanes, |(memory, input, key)| {
            agent().act(params, memory, input, Mode::Explore, key)
        });
        let ended = (terminated | truncated).index(time as isize);
        memory = vmap((ended, after), |(ended, after): (Tensor, Memory)| {
            tree_select(ended, &agent().begin_episode(after), &after)
        });
        acted.push((action, extras));
    }
    let leaves: Vec<Vec<Tensor>> = acted.iter().map(Tree::leaves).collect();
    let stacked = |i| {
        let each: Vec<Tensor> = leaves.iter().map(|leaves| leaves[i]).collect();
        stack(&each, 0)
    };
    let stacked: Vec<Tensor> = (0..leaves[0].len()).map(stacked).collect();
    let (action, extras) = acted[0].with_leaves(&stacked);
    RolloutOf {
        input: acted_on,
        action,
        reward: numbers(&[STEPS, ENVIRONMENTS], 2.0),
        terminated,
        truncated,
        skipped: None,
        next_observation: Some(numbers(&[STEPS, ENVIRONMENTS, 2], 3.0)),
        next_input: input(numbers(&[ENVIRONMENTS, 2], 4.0), 1),
        taken_over: None,
        memory: start(),
        extras,
    }
}

/// One lane's rollout: log-ratio, entropy and value by the learning policy, value and advantage by the acting one.
struct Gone {
    log_ratio: Vec<Tensor>,
    entropy: Vec<Tensor>,
    value: Vec<Tensor>,
    old_value: Tensor,
    advantage: Tensor,
}

/// One environment, step by step.
fn gone_through(
    params: &ActorCritic,
    acting: &ActorCritic,
    rollout: &Rollout<Ppo<Sgd>>,
    lane: isize,
) -> Gone {
    let of = |x: Tensor| x.index_axis(1, lane);
    let at = |x: Tensor, time: usize| of(x).index(time as isize);
    let start = tree_map(&start(), |leaf| leaf.index(lane));
    let (mut memory, mut old_memory) = (start, start);
    let (mut log_ratio, mut entropy, mut value) = (vec![], vec![], vec![]);
    let (mut old_values, mut next_values) = (vec![], vec![]);
    for time in 0..STEPS {
        let seen = |observation| input(observation, 0);
        let now = seen(at(rollout.input.observation, time));
        let remembered = params.see(memory, &now);
        let features = remembered.1;
        let policy = params.policy(features, None);
        let acted = at(rollout.extras.log_prob, time);
        log_ratio.push(policy.log_prob(at(rollout.action, time)) - acted);
        entropy.push(policy.entropy());
        value.push(params.value(features));
        let (after, features) = acting.see(old_memory, &now);
        old_values.push(acting.value(features));
        let shown = rollout.next_observation.expect("the environment truncates");
        let (_, features) = acting.see(after, &seen(at(shown, time)));
        let v_shown = acting.value(features);
        let is_last = time + 1 == STEPS;
        let ended = |at: &[(usize, usize)]| at.contains(&(time, lane as usize));
        let follows = if is_last {
            acting.see(after, &seen(rollout.next_input.observation.index(lane))).1
        } else {
            acting.see(after, &seen(at(rollout.input.observation, time + 1))).1
        };
        next_values.push(if ended(&TRUNCATED) { v_shown } else { acting.value(follows) });
        (memory, old_memory) = if ended(&TERMINATED) || ended(&TRUNCATED) {
            (no_memory(), no_memory())
        } else {
            (remembered.0, after)
        };
    }
    let terminated = of(rollout.terminated);
    let old_value = stack(&old_values, 0);
    let advantage = gae_with_ends(
        of(rollout.reward),
        select(terminated, 0.0, terminated.astype(F32) * 0.0 + agent().settings.discount),
        old_value,
        stack(&next_values, 0),
        terminated | of(rollout.truncated),
        agent().settings.lambda,
    );
    Gone { log_ratio, entropy, value, old_value, advantage }
}

/// The loss of a minibatch of these environments, written down once more.
fn loss_by_hand(
    params: &ActorCritic,
    acting: &ActorCritic,
    rollout: &Rollout<Ppo<Sgd>>,
    lanes: [isize; 2],
) -> Tensor {
    let lanes = lanes.map(|lane| gone_through(params, acting, rollout, lane));
    let all = |of: &dyn Fn(&Gone) -> Tensor| concatenate(&[of(&lanes[0]), of(&lanes[1])], 0);
    let advantage = all(&|gone| gone.advantage);
    let normalised = (advantage - advantage.mean()) / (advantage.std() + 1e-8);
    let ratio = all(&|gone| stack(&gone.log_ratio, 0)).exp();
    let value = all(&|gone| stack(&gone.value, 0));
    let old_value = all(&|gone| gone.old_value);
    let PpoSettings { clip, value_cost, entropy_cost, .. } = agent().settings;
    let value_loss = clipped_value_loss(value, old_value, old_value + advantage, clip);
    let entropy = all(&|gone| stack(&gone.entropy, 0)).mean();
    clipped_surrogate_pg_loss(ratio, normalised, clip) + value_cost * value_loss
        - entropy_cost * entropy
}

/// Two gradient steps, each of two lanes: which two come first is drawn.
#[test]
fn a_gradient_step_is_that_of_its_lanes_one_after_another() {
    let orders: [[[isize; 2]; 2]; 6] = [
        [[0, 1], [2, 3]],
        [[0, 2], [1, 3]],
        [[0, 3], [1, 2]],
        [[1, 2], [0, 3]],
        [[1, 3], [0, 2]],
        [[2, 3], [0, 1]],
    ];
    let results = run(key(), &[words(3)], |key| {
        let keys = key.split_n(3);
        let state = agent().init(keys.at(0));
        let acting = state.params.clone();
        let rollout = rollout(&acting, keys.at(1));
        let cx = Cx { key: keys.at(2), iteration: scalar(0), axes: Axes::none() };
        let (got, (), _) = agent().learn(state, (), rollout.clone(), cx);
        let by_hand = orders.map(|order| {
            order.iter().fold(acting.clone(), |params, &lanes| {
                let grads =
                    grad(params.clone(), |params| loss_by_hand(&params, &acting, &rollout, lanes));
                params.zip_with(&grads, |param, grad| param - RATE * grad)
            })
        });
        (got.params, by_hand.to_vec())
    });
    let leaves = results.len() / 7;
    let (got, by_hand) = results.split_at(leaves);
    let distance = |expected: &[Array]| {
        let pairs = got
            .iter()
            .zip(expected)
            .flat_map(|(got, expected)| got.to_f64().into_iter().zip(expected.to_f64()));
        pairs.map(|(got, expected)| (got - expected).abs()).fold(0.0, f64::max)
    };
    let mut distances: Vec<f64> = by_hand.chunks(leaves).map(distance).collect();
    distances.sort_by(f64::total_cmp);
    assert!(distances[0] < 1e-6 && distances[1] > 1e-4, "{distances:?}");
}

#[test]
fn lanes_that_do_not_divide_are_an_error() {
    let mut agent = agent();
    agent.settings.minibatches = 3;
    let traced = trace(key(), |key| {
        let keys = key.split_n(3);
        let state = agent.init(keys.at(0));
        let rollout = rollout(&state.params, keys.at(1));
        let cx = Cx { key: keys.at(2), iteration: scalar(0), axes: Axes::none() };
        agent.learn(state, (), rollout, cx)
    });
    let mistakes = traced.err();
    let message = mistakes.expect("a mistake was made").to_string();
    let expected = "the trajectories of 4 environments, each whole for the core, do not divide into 3 minibatches";
    assert!(message.contains(expected), "{message}");
}
