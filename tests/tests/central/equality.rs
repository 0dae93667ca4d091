//! With one worker, present parameters, and batches with all lanes, the iterations are
//! bit-identical to Sebulba's.

use podracer::central::{CentralInference, local};
use podracer::sebulba::{Sebulba, compiled_environments};
use podracer_dsl::Tensor;
use podracer_envs::boards::TicTacToe;
use podracer_envs::host::{HostEnvironment, HostSpec};
use podracer_envs::{CartPole, Environment};
use podracer_rl::learn::Learn;
use podracer_rl::optim::sgd;
use podracer_runtime::setters::*;
use podracer_runtime::{Array, Client, IterationReport, Origin, ReplayMemory};

use super::quick;
use crate::loops;

const LANES: usize = 4;
const UNROLL: usize = 6;
const ITERATIONS: usize = 4;
const SEED: u64 = 9;

type Learnt = (Vec<(String, Array)>, Vec<IterationReport>);

fn batch<E: Environment<Observation = Tensor>>(
    client: &Client,
    environment: &E,
    lanes: usize,
) -> Box<dyn HostEnvironment> {
    let batch = compiled_environments(client, 1, environment.clone(), lanes, UNROLL);
    Box::new(batch.expect("the environments compile"))
}

fn sebulba<E: Environment<Observation = Tensor>, A: Learn<Observation = Tensor>>(
    environment: &E,
    agent: &A,
    (threads, learners): (usize, &[usize]),
    on_host: bool,
) -> Learnt {
    let client = loops::client(4);
    let spec = batch(&client, environment, LANES).spec().clone();
    let sebulba = Sebulba::new(agent.clone())
        .actors(vec![0])
        .learners(learners.to_vec())
        .threads(threads)
        .unroll(UNROLL)
        .lag(0);
    let sebulba =
        crate::sebulba::quick(if on_host { sebulba.replay(ReplayMemory::Host) } else { sebulba });
    let mut run = sebulba
        .start(&client, &spec, SEED, |_| Ok(batch(&client, environment, LANES)))
        .expect("the run starts");
    let reports = run.run(ITERATIONS).expect("the iterations");
    (run.parameters().expect("the parameters"), reports)
}

/// Central inference with the same agent: workers with `lanes` lanes each.
fn seed<E: Environment<Observation = Tensor>, A: Learn<Observation = Tensor>>(
    environment: &E,
    agent: &A,
    (inference, learners): (&[usize], &[usize]),
    on_host: bool,
) -> Learnt {
    let client = loops::client(4);
    let workers = inference.iter().map(|_| vec![batch(&client, environment, LANES)]).collect();
    let spec =
        HostSpec { environments: LANES, ..batch(&client, environment, LANES).spec().clone() };
    let seed = CentralInference::new(agent.clone())
        .actors(inference.to_vec())
        .learners(learners.to_vec())
        .unroll(UNROLL)
        .capacity(Some(LANES))
        .lag(0);
    let seed = quick(if on_host { seed.replay(ReplayMemory::Host) } else { seed });
    let workers = local(workers).expect("the workers start");
    let mut run = seed.start(&client, &spec, Origin::Seed(SEED), workers).expect("the run starts");
    let reports = run.run(ITERATIONS).expect("the iterations");
    let measures = run.measures();
    assert_eq!((measures.most_versions, measures.lost), (1, 0));
    assert_eq!(measures.versions, measures.unrolls);
    (run.parameters().expect("the parameters"), reports)
}

fn check<E: Environment<Observation = Tensor>, A: Learn<Observation = Tensor>>(
    environment: &E,
    agent: &A,
    (inference, learners): (&[usize], &[usize]),
    on_host: bool,
) {
    let (expected, of_sebulba) = sebulba(environment, agent, (inference.len(), learners), on_host);
    let (got, reports) = seed(environment, agent, (inference, learners), on_host);
    assert_eq!(got, expected);
    for (one, other) in reports.iter().zip(&of_sebulba) {
        assert_eq!((&one.metrics, one.lag), (&other.metrics, other.lag));
        assert_eq!(one.episodes, other.episodes);
    }
    assert!(reports.iter().any(|report| !report.episodes.is_empty()));
}

fn cartpole() -> CartPole {
    CartPole { time_limit: 4, ..CartPole::default() }
}

/// Episodes are truncated within the unrolls, and minibatches are drawn.
#[test]
fn ppo() {
    let environment = cartpole();
    check(&environment, &loops::ppo(&environment, sgd(0.5)), (&[0], &[2]), false);
}

/// Two learner devices divide the lanes, and one of them infers, too.
#[test]
fn ppo_on_two_learner_devices_of_which_one_infers() {
    let environment = cartpole();
    check(&environment, &loops::ppo(&environment, sgd(0.5)), (&[2], &[2, 3]), false);
}

/// Unrolls begin within episodes, and the memory travels with them.
#[test]
fn v_trace_with_a_memory() {
    let environment = cartpole();
    check(&environment, &loops::impala(&environment, Some(4), sgd(0.02)), (&[0], &[2]), false);
}

/// Windows of the replay begin with the memory that acting had; each inference device has its own lanes.
#[test]
fn r2d2_on_two_inference_devices() {
    let environment = cartpole();
    let agent = loops::r2d2(&environment, sgd(0.02));
    check(&environment, &agent, (&[0, 3], &[2]), false);
}

#[test]
fn r2d2_with_its_replay_on_the_host() {
    let environment = cartpole();
    check(&environment, &loops::r2d2(&environment, sgd(0.02)), (&[0], &[2]), true);
}

/// Workers did not say which actions are legal.
#[test]
fn actions_that_are_not_legal() {
    let environment = TicTacToe::default();
    check(&environment, &loops::ppo(&environment, sgd(0.5)), (&[0], &[2]), false);
    check(&environment, &loops::r2d2(&environment, sgd(0.02)), (&[0, 3], &[2]), false);
}

#[test]
fn dqn_with_its_replay_on_the_device() {
    let environment = cartpole();
    check(&environment, &loops::dqn(&environment), (&[0], &[2]), false);
}
