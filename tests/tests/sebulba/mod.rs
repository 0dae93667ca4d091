//! Actors and learners on separate devices: their results, their transfers, and their ends.

mod checkpoints;
mod equality;
mod faults;
mod host_replay;
mod leaks;
mod log;
mod pressure;
mod schedules;
pub mod skipped;
mod split;
mod transfers;

use podracer::sebulba::Sebulba;
use podracer_envs::host::{HostEnvironment, HostError, HostSpec, HostStep, NativeCartPole, Pool};
use podracer_rl::agents::Ppo;
use podracer_rl::optim::{Sgd, sgd};
use podracer_runtime::setters::*;
use podracer_runtime::{Array, ExecutableCache, SebulbaRun, XlaOptions};

use crate::loops;

/// Environments of a thread.
const ENVIRONMENTS: usize = 4;
/// Steps of a trajectory.
const UNROLL: usize = 6;

/// CartPoles with short episodes, `environments` of them.
fn cartpoles(environments: usize) -> Pool<NativeCartPole> {
    Pool::new(&NativeCartPole::new(4), environments)
}

fn spec() -> HostSpec {
    cartpoles(ENVIRONMENTS).spec().clone()
}

/// Quickly compiled, and nothing cached.
pub fn quick<A: podracer_rl::learn::Learn<Observation = podracer_dsl::Tensor>>(
    sebulba: Sebulba<A>,
) -> Sebulba<A> {
    sebulba.xla(XlaOptions::unoptimized().to_vec()).cache(ExecutableCache::disabled()).patience(60)
}

/// PPO on device 1, acting on device 0.
fn small() -> Sebulba<Ppo<Sgd>> {
    let agent = loops::ppo(&podracer_envs::CartPole::default(), sgd(0.1));
    quick(Sebulba::new(agent)).unroll(UNROLL)
}

/// Starts a run in CartPole on a client of its own.
fn start(sebulba: &Sebulba<Ppo<Sgd>>, devices: usize, seed: u64) -> SebulbaRun {
    let batch =
        |_| -> anyhow::Result<Box<dyn HostEnvironment>> { Ok(Box::new(cartpoles(ENVIRONMENTS))) };
    sebulba.start(&loops::client(devices), &spec(), seed, batch).expect("the run starts")
}

fn parameters(run: &SebulbaRun) -> Vec<(String, Array)> {
    run.parameters().expect("the parameters are there")
}

/// CartPoles that do something of the test's at every step.
struct With<F> {
    inner: Pool<NativeCartPole>,
    before_step: F,
}

fn with<F: FnMut() -> Result<(), HostError> + Send>(before_step: F) -> With<F> {
    With { inner: cartpoles(ENVIRONMENTS), before_step }
}

impl<F: FnMut() -> Result<(), HostError> + Send> HostEnvironment for With<F> {
    fn spec(&self) -> &HostSpec {
        self.inner.spec()
    }
    fn reset(&mut self, seed: u64, first: usize, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.inner.reset(seed, first, step)
    }
    fn send(&mut self, actions: &[u8]) -> Result<(), HostError> {
        (self.before_step)()?;
        self.inner.send(actions)
    }
    fn receive(&mut self, step: &mut HostStep<'_>) -> Result<(), HostError> {
        self.inner.receive(step)
    }
}
