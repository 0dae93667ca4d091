//! Environments with reset-only steps: the run equals the run of environments that begin an episode
//! in the step that ends the last episode.

use podracer_dsl::Tensor;
use podracer_envs::host::{
    HostEnvironment, HostError, HostSpec, HostStep, NativeCartPole, Pool, StepMemory,
};
use podracer_envs::{CartPole, Environment};
use podracer_rl::agents::Ppo;
use podracer_rl::learn::{Learn, Normalized};
use podracer_rl::optim::{Sgd, sgd};
use podracer_runtime::setters::*;
use podracer_runtime::{Array, IterationReport};
use podracer_tests::compare::difference;

use super::{ENVIRONMENTS, cartpoles, quick, spec};
use crate::loops;
use podracer::sebulba::Sebulba;

/// One environment, and whether its next step is none.
type Lane = (Pool<NativeCartPole>, StepMemory, bool);

/// CartPoles with episodes of `steps` steps each, which are too few to fall.
pub struct NextStep {
    spec: HostSpec,
    lanes: Vec<Lane>,
    actions: Vec<u8>,
}

impl NextStep {
    pub fn new(limits: [usize; ENVIRONMENTS]) -> Self {
        let lane = |limit| {
            let pool = Pool::new(&NativeCartPole::new(limit), 1);
            let memory = StepMemory::new(pool.spec());
            (pool, memory, false)
        };
        NextStep {
            spec: HostSpec { skips: true, ..spec() },
            lanes: limits.map(lane).into(),
            actions: Vec::new(),
        }
    }
}

impl HostEnvironment for NextStep {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        let rows = step.observation.chunks_exact_mut(16);
        for (i, ((pool, memory, over), row)) in self.lanes.iter_mut().zip(rows).enumerate() {
            pool.reset(seed, first + i, &mut memory.step())?;
            row.copy_from_slice(memory.observation());
            *over = false;
        }
        step.begin();
        Ok(())
    }

    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        self.actions = actions.to_vec();
        Ok(())
    }

    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        for (i, (pool, memory, over)) in self.lanes.iter_mut().enumerate() {
            let row = 16 * i..16 * (i + 1);
            let (reward, ends, shown) = if *over {
                *over = false;
                (0.0, (true, true), memory.observation())
            } else {
                pool.step(&self.actions[4 * i..4 * (i + 1)], &mut memory.step())?;
                let ends = memory.done(0);
                *over = ends != (false, false);
                (memory.reward()[0], ends, memory.next_observation())
            };
            step.observation[row.clone()].copy_from_slice(shown);
            step.next_observation[row].copy_from_slice(shown);
            step.reward[i] = reward;
            (step.terminated[i], step.truncated[i]) = (u8::from(ends.0), u8::from(ends.1));
        }
        Ok(())
    }
}

const UPDATES: usize = 3;

/// The networks after some iterations, and the reports of these.
fn trained<A: Learn<Observation = Tensor>>(
    sebulba: Sebulba<A>,
    learners: &[usize],
    batch: impl Fn() -> Box<dyn HostEnvironment> + Sync,
) -> (Vec<(String, Array)>, Vec<IterationReport>) {
    let spec = batch().spec().clone();
    let mut run = quick(sebulba)
        .actors(vec![0])
        .learners(learners.to_vec())
        .threads(1)
        .start(&loops::client(3), &spec, 4, |_| Ok(batch()))
        .expect("the run starts");
    let reports = run.run(UPDATES).expect("the iterations");
    (super::parameters(&run), reports)
}

#[track_caller]
fn same(expected: &[(String, Array)], got: &[(String, Array)]) {
    assert_eq!(expected.len(), got.len());
    for ((path, expected), (same, got)) in expected.iter().zip(got) {
        assert_eq!(path, same);
        let difference = difference(expected, got, 2e-6);
        assert_eq!(difference, None, "{path}");
    }
}

fn next_step(limits: [usize; ENVIRONMENTS]) -> impl Fn() -> Box<dyn HostEnvironment> + Sync {
    move || Box::new(NextStep::new(limits))
}

/// Every episode has four steps: trajectories of five steps equal trajectories of four.
fn check<A: Learn<Observation = Tensor>>(agent: A) {
    let sebulba = |unroll| Sebulba::new(agent.clone()).unroll(unroll);
    let (expected, reports) = trained(sebulba(4), &[1], || Box::new(cartpoles(ENVIRONMENTS)));
    let (got, same_reports) = trained(sebulba(5), &[1], next_step([4; ENVIRONMENTS]));
    same(&expected, &got);
    for (expected, got) in reports.iter().zip(&same_reports) {
        assert_eq!(got.episodes.len(), ENVIRONMENTS);
        for (expected, got) in expected.episodes.iter().zip(&got.episodes) {
            assert_eq!((got.length, got.episode_return), (4, 4.0));
            assert_eq!(got.length, expected.length);
        }
        for (expected, got) in expected.metrics.iter().zip(&got.metrics) {
            assert!((expected - got).abs() < 1e-4, "{expected} and {got}");
        }
    }
}

#[test]
fn a_run_of_steps_that_are_none_is_that_without_them() {
    let environment = CartPole::default();
    check(loops::impala(&environment, Some(4), sgd(0.02)));
    let mut ppo: Ppo<Sgd> = loops::ppo(&environment, sgd(0.1));
    (ppo.settings.epochs, ppo.settings.minibatches) = (2, 1);
    check(Normalized::new(ppo, environment.observation_space(), 0.99));
}

/// The devices have different numbers of steps that are some.
#[test]
fn two_learner_devices_learn_of_them_as_one() {
    let agent = loops::impala(&CartPole::default(), None, sgd(0.02));
    let sebulba = || Sebulba::new(agent.clone()).unroll(6);
    let batch = || next_step([1, 2, 5, 5]);
    let (expected, _) = trained(sebulba(), &[1], batch());
    let (got, _) = trained(sebulba(), &[1, 2], batch());
    same(&expected, &got);
}
