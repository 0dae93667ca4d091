//! The same agent in the same environment, in Anakin and in Sebulba: with parameters that are not old, the same iterations.

use podracer::sebulba::{Sebulba, compiled_environments};
use podracer_dsl::prelude::*;
use podracer_envs::boards::TicTacToe;
use podracer_envs::host::HostEnvironment;
use podracer_envs::{CartPole, Catch, Connector, Environment, Pendulum, Space, TimeStep};
use podracer_rl::learn::{Learn, Normalized};
use podracer_rl::optim::{adam, sgd};
use podracer_runtime::setters::*;
use podracer_runtime::{Array, Checkpoint};
use podracer_tests::compare::difference;

use super::quick;
use crate::loops::{self, Size};

const UPDATES: usize = 3;
const SEED: u64 = 9;
const TAKEN_OVER: &str = ".replay.steps.taken_over[0]";

/// The networks after some iterations of Anakin.
/// The paths of the store's leaves, which a partial checkpoint has not.
fn store(mut checkpoint: Checkpoint<'_>, part: &str) -> Vec<String> {
    let all: Vec<String> = checkpoint.arrays.keys().cloned().collect();
    checkpoint.leave_out(part);
    let left_out = all.iter().filter(|name| !checkpoint.arrays.contains_key(*name));
    left_out.map(|name| name[part.len()..].to_owned()).collect()
}

fn anakin<E: Environment, A: Learn<Observation = E::Observation>>(
    environment: &E,
    agent: &A,
    size: Size,
) -> (Vec<(String, Array)>, Vec<String>) {
    let program = loops::compiled(&loops::client(size.replicas), environment, agent, size);
    let (state, _) = program.run(program.init(SEED).expect("a seed")).expect("a call");
    let leaves = state.replicated.agent.named_arrays().expect("on the host");
    let spec = eval_shape((key(),), |(key,)| agent.init(key)).expect("it traces");
    let positions =
        podracer::parameters::positions(agent, &spec).expect("they are parts of the state");
    let parameters = positions.into_iter().map(|(leaf, path)| (path, leaves[leaf].1.clone()));
    let mut checkpoint = Checkpoint::default();
    checkpoint.insert("state.", state.named_sources());
    (parameters.collect(), store(checkpoint, podracer::anakin::STORE))
}

/// The same of Sebulba, with parameters that are not old.
pub fn sebulba<E: Environment<Observation = Tensor>, A: Learn<Observation = Tensor>>(
    environment: &E,
    agent: &A,
    size: Size,
    threads: usize,
) -> (Vec<(String, Array)>, Vec<String>) {
    let client = loops::client(2 + size.replicas);
    let learners: Vec<usize> = (2..2 + size.replicas).collect();
    let environments = size.environments / threads;
    let batch = || {
        compiled_environments(&client, 1, environment.clone(), environments, size.unroll)
            .expect("the environments compile")
    };
    let spec = batch().spec().clone();
    let mut run = quick(Sebulba::new(agent.clone()))
        .actors(vec![0])
        .learners(learners)
        .threads(threads)
        .unroll(size.unroll)
        .lag(0)
        .start(&client, &spec, SEED, |_| Ok(Box::new(batch())))
        .expect("the run starts");
    let reports = run.run(UPDATES).expect("the iterations");
    assert!(reports.iter().all(|report| report.lag == 0.0));
    let parameters = super::parameters(&run);
    (parameters, store(run.checkpoint().expect("a checkpoint"), podracer::sebulba::STORE))
}

/// Returns the paths of the store's leaves. Sebulba's replay has one more: the flag for a rollout
/// that does not follow the previous rollout.
fn check<E: Environment<Observation = Tensor>, A: Learn<Observation = Tensor>>(
    environment: &E,
    agent: &A,
    (replicas, threads): (usize, usize),
) -> Vec<String> {
    let size = Size { replicas, environments: 4, unroll: 6, iterations: UPDATES };
    let (begun, _) = anakin(environment, agent, Size { iterations: 1, ..size });
    let (expected, stored) = anakin(environment, agent, size);
    let (got, store) = sebulba(environment, agent, size, threads);
    let alike: Vec<&String> = store.iter().filter(|name| !name.ends_with(TAKEN_OVER)).collect();
    assert_eq!(alike, stored.iter().collect::<Vec<_>>());
    assert_eq!(alike.len() < store.len(), store.iter().any(|name| name.contains(".steps.")));
    assert_eq!(expected.len(), got.len());
    let mut moved = 0;
    for (((path, expected), (same, got)), (_, before)) in expected.iter().zip(&got).zip(&begun) {
        assert_eq!(path, same);
        let difference = difference(expected, got, 2e-6);
        assert_eq!(difference, None, "{path}");
        moved += usize::from(before != expected);
    }
    assert!(moved >= 4, "{moved} leaves moved after the first iteration");
    store
}

/// Episodes are truncated within the trajectories, and minibatches are drawn.
#[test]
fn ppo_with_two_threads() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::ppo(&environment, sgd(0.5)), (1, 2));
}

#[test]
fn ppo_with_two_learner_devices() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::ppo(&environment, sgd(0.5)), (2, 1));
}

/// The statistics, over all learner devices, are part of the equality.
#[test]
fn normalised_observations_and_rewards() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = loops::ppo(&environment, sgd(0.5));
    let agent = Normalized::new(agent, environment.observation_space(), 0.99);
    assert_eq!(check(&environment, &agent, (2, 1)), [".returns[0]"]);
    check(&environment, &agent, (1, 2));
}

/// Trajectories begin within episodes, and the memory travels with them.
#[test]
fn a_recurrent_agent_with_two_threads() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = loops::impala(&environment, Some(4), sgd(0.02));
    check(&environment, &agent, (1, 2));
}

/// Minibatches consist of whole trajectories: each device draws one of its two at a time.
#[test]
fn a_recurrent_agent_that_draws_on_two_learner_devices() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let mut agent = loops::ppo(&environment, sgd(0.5));
    (agent.settings.core.lstm, agent.settings.minibatches) = (Some(4), 2);
    check(&environment, &agent, (2, 1));
}

/// Windows of the replay begin with the memory that acting had.
#[test]
fn r2d2_with_two_threads() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::r2d2(&environment, sgd(0.02)), (1, 2));
}

/// Windows are drawn by priority over both devices.
#[test]
fn r2d2_with_two_learner_devices() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::r2d2(&environment, sgd(0.02)), (2, 1));
}

#[test]
fn v_trace_with_two_learner_devices() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = loops::impala(&environment, None, sgd(0.02));
    check(&environment, &agent, (2, 1));
}

/// Agents in Sebulba get the mask of legal actions, as in Anakin.
#[test]
fn actions_that_are_not_legal_with_and_without_a_replay() {
    let environment = TicTacToe::default();
    check(&environment, &loops::ppo(&environment, sgd(0.5)), (1, 2));
    check(&environment, &loops::pqn(&environment, sgd(0.05)), (2, 1));
    check(&environment, &loops::dqn(&environment), (1, 2));
}

/// Actions are random in the first iteration and drawn from the policy then; episodes are truncated within the trajectories.
#[test]
fn sac_with_continuous_actions_and_two_threads() {
    let environment = Pendulum { time_limit: 4 };
    let store = check(&environment, &loops::sac(&environment, sgd(1e-3)), (1, 2));
    assert!(store.iter().any(|path| path.starts_with(".replay.steps")), "{store:?}");
}

/// Windows are drawn by priority from the replays of both devices.
#[test]
fn sac_with_discrete_actions_and_two_learner_devices() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::sac(&environment, sgd(0.02)), (2, 1));
}

#[test]
fn td3_with_two_threads() {
    let environment = Pendulum { time_limit: 4 };
    check(&environment, &loops::td3(&environment, sgd(1e-3)), (1, 2));
}

/// Trajectories begin within episodes, and the memory travels with them.
#[test]
fn a2c_with_and_without_a_memory() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::a2c(&environment, Some(4), sgd(0.1)), (1, 2));
    check(&environment, &loops::a2c(&environment, None, sgd(0.1)), (2, 1));
}

/// Epsilon is a part of the parameters that actors get.
#[test]
fn action_values_without_a_replay() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = loops::pqn(&environment, sgd(0.05));
    check(&environment, &agent, (1, 2));
    check(&environment, &agent, (2, 1));
}

/// The online actor-critic's gradient goes through acting, which the learner does again.
#[test]
fn an_agent_that_learns_through_its_acting() {
    let environment = Catch { rows: 4, columns: 3 };
    check(&environment, &loops::online(&environment, adam(1e-2)), (1, 2));
}

/// Both loops keep the same steps, draw the same windows, and change the same priorities.
#[test]
fn an_agent_with_a_replay() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = loops::dqn(&environment);
    let store = check(&environment, &agent, (1, 2));
    assert!(store.iter().any(|path| path.ends_with("priorities[0].tree.nodes")), "{store:?}");
    check(&environment, &agent, (2, 1));
}

/// A lane follows one of the networks to the end of its episode, which may lie in a later trajectory, and draws for each step which networks
/// learn from it.
#[test]
fn networks_side_by_side_that_learn_from_steps_of_their_own() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    let agent = loops::bootstrapped(&environment);
    let store = check(&environment, &agent, (1, 2));
    assert!(store.iter().any(|path| path.ends_with(".mask[0]")), "{store:?}");
    check(&environment, &agent, (2, 1));
}

/// Actors search in threads. Each of two gradient steps learns from half of the lanes.
#[test]
fn a_search_that_learns_from_a_split_batch() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::muzero(&environment, 2), (1, 2));
}

#[test]
fn a_search_that_learns_from_a_replay() {
    let environment = CartPole { time_limit: 4, ..CartPole::default() };
    check(&environment, &loops::muzero(&environment, 0), (1, 2));
}

/// Boards of one wire: it is connected when an episode ends, or not.
#[test]
fn episodes_have_the_successes_of_anakin() {
    let environment = Connector { size: 3, wires: 1, time_limit: 6, ..Connector::default() };
    let agent = loops::ppo(&environment, sgd(0.5));
    let size = Size { replicas: 1, environments: 4, unroll: 12, iterations: UPDATES };
    let program = loops::compiled(&loops::client(1), &environment, &agent, size);
    let (_, metrics) = program.run(program.init(SEED).expect("a seed")).expect("a call");
    let sums = metrics.sharded.success_sum.as_ref().expect("wires are connected or not").to_f64();
    let expected: Vec<f64> =
        sums.iter().zip(metrics.sharded.count.to_f64()).map(|(sum, count)| sum / count).collect();

    let client = loops::client(2);
    let batch = || compiled_environments(&client, 0, environment.clone(), 4, size.unroll);
    let batch = || batch().expect("the environments compile");
    let spec = batch().spec().clone();
    let mut run = quick(Sebulba::new(agent).actors(vec![0]).learners(vec![1]))
        .threads(1)
        .unroll(size.unroll)
        .lag(0)
        .start(&client, &spec, SEED, |_| Ok(Box::new(batch())))
        .expect("the run starts");
    let mut different = Vec::new();
    for (report, expected) in run.run(UPDATES).expect("the iterations").iter().zip(expected) {
        let successes: Option<Vec<f32>> =
            report.episodes.iter().map(|episode| episode.success).collect();
        let successes = successes.expect("each episode has one");
        let mean = f64::from(successes.iter().sum::<f32>()) / successes.len() as f64;
        assert!((mean - expected).abs() < 1e-6, "{mean} and {expected}");
        different.extend(successes);
    }
    assert!(different.contains(&0.0) && different.contains(&1.0), "{different:?}");
}

/// An environment that rewards the magnitude of the action. The action is in [-0.1, 0.1].
#[derive(Clone)]
struct Echo;

impl Environment for Echo {
    type State = Tensor;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Tensor {
        key.normal([1])
    }

    fn step(&self, state: Tensor, action: Tensor, _: Key) -> (Tensor, TimeStep) {
        let (terminated, truncated) = (constant(true), constant(false));
        let reward = action.reshape([]).abs();
        (state, TimeStep { observation: state, reward, terminated, truncated })
    }

    fn observe(&self, state: Tensor) -> Tensor {
        state
    }

    fn observation_space(&self) -> Space {
        Space::unbounded([1])
    }

    fn action_space(&self) -> Space {
        Space::bounded([1], -0.1, 0.1)
    }
}

/// The policy's standard deviation is 1 at first, so that nearly all actions are clipped.
#[test]
fn environments_get_actions_within_their_bounds() {
    let agent = loops::ppo(&Echo, sgd(0.1));
    check(&Echo, &agent, (1, 2));

    let size = Size { replicas: 1, environments: 4, unroll: 12, iterations: UPDATES };
    let program = loops::compiled(&loops::client(1), &Echo, &agent, size);
    let (_, metrics) = program.run(program.init(SEED).expect("a seed")).expect("a call");
    let returns = metrics.sharded.return_sum.to_f64();
    let count = metrics.sharded.count.to_f64();
    let means: Vec<f64> = returns.iter().zip(&count).map(|(sum, count)| sum / count).collect();
    assert!(count.iter().all(|&count| count == 48.0), "{count:?}");
    assert!(means.iter().all(|&mean| 0.08 < mean && mean < 0.1 + 1e-6), "{means:?}");
}

#[test]
fn such_an_agent_needs_parameters_that_are_not_old() {
    let environment = Catch::default();
    let agent = loops::online(&environment, adam(1e-2));
    let client = loops::client(2);
    let batch = compiled_environments(&client, 0, environment, 2, 4).expect("it compiles");
    let refused = Sebulba::new(agent).trace(batch.spec());
    let message = refused.err().map(|error| error.to_string());
    assert!(message.as_ref().is_some_and(|text| text.contains("lag = 0")), "{message:?}");
}
