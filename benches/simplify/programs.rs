//! The training loops that are simplified.

use std::time::Instant;

use anyhow::{Result, bail};
use podracer_compiler::simplify::{Options, simplify};
use podracer_compiler::{Builder, DType, Func, TensorType};
use podracer_dsl::Tree;
use podracer_dsl::prelude::{Key, Placed, Tensor, vmap};
use podracer_envs::{CartPole, Catch, Environment, MemoryChain, Space, TimeStep};
use podracer_rl::agents::{Impala, OnlineActorCritic, Ppo};
use podracer_rl::anakin::AgentLoop;
use podracer_rl::learn::Learn;
use podracer_rl::net::Torso;
use podracer_runtime::{AnakinLoop, Client, CompileOptions, ExecutableCache, ProgramOptions};

/// Times of one compilation and of the runs after it.
pub struct Measured {
    /// From the traced functions to the executables: the loop, and the program that makes the
    /// initial state.
    pub compile_seconds: f64,
    /// Seconds of each call.
    pub run_seconds: Vec<f64>,
}

/// A traced loop with any state.
pub trait Program {
    /// The time of the pass, and the equations that it leaves.
    fn simplify(&self, options: &Options) -> (f64, usize);
    /// Compiles the loop and runs some calls.
    fn compile(&self, client: &Client, options: &Options, runs: usize) -> Result<Measured>;
}

impl<R: Tree, S: Tree, M: Tree, E: Tree> Program for AnakinLoop<R, S, M, E> {
    fn simplify(&self, options: &Options) -> (f64, usize) {
        let start = Instant::now();
        let func = simplify(self.traced().func(), options);
        (start.elapsed().as_secs_f64(), func.eqn_count())
    }

    fn compile(&self, client: &Client, options: &Options, runs: usize) -> Result<Measured> {
        let options = ProgramOptions {
            compile: CompileOptions::default(),
            cache: ExecutableCache::disabled(),
            simplify: options.clone(),
        };
        let anakin = AnakinLoop::compile(self, client, &options)?;
        let compile_seconds = anakin.compile_time().as_secs_f64();
        let mut run_seconds = Vec::new();
        if runs > 0 {
            let (mut state, _) = anakin.run(anakin.init(0)?)?;
            for _ in 0..runs {
                let start = Instant::now();
                state = anakin.run(state)?.0;
                run_seconds.push(start.elapsed().as_secs_f64());
            }
        }
        Ok(Measured { compile_seconds, run_seconds })
    }
}

/// Catch, seen as an image of one channel.
#[derive(Clone)]
struct Pixels(Catch);

impl Environment for Pixels {
    type State = <Catch as Environment>::State;
    type Observation = Tensor;

    fn initial_state(&self, key: Key) -> Self::State {
        self.0.initial_state(key)
    }

    fn step(
        &self,
        state: Self::State,
        action: Tensor,
        key: Key,
    ) -> (Self::State, TimeStep<Tensor>) {
        let (state, mut step) = self.0.step(state, action, key);
        step.observation = step.observation.expand_dims(-1);
        (state, step)
    }

    fn observe(&self, state: Self::State) -> Tensor {
        self.0.observe(state).expand_dims(-1)
    }

    fn observation_space(&self) -> Space {
        Space::bounded([self.0.rows, self.0.columns, 1], 0.0, 1.0)
    }

    fn action_space(&self) -> Space {
        self.0.action_space()
    }
}

/// The programs by name.
pub const NAMES: [&str; 5] = ["ppo", "online", "lstm", "conv", "vmapped"];

/// PPO as in `podracer train cartpole-ppo`; an online actor-critic, differentiated through the
/// loop; IMPALA with an LSTM; IMPALA with convolutions with overlapping windows; eight runs of PPO
/// at once, by `vmap` over their keys.
pub fn find(name: &str) -> Result<Box<dyn Program>> {
    let environment = CartPole::default();
    let spaces = (environment.observation_space(), environment.action_space());
    match name {
        "ppo" => traced(name, 8, environment, Ppo::new(spaces.0, spaces.1), [64, 128]),
        "online" => {
            let agent = OnlineActorCritic::new(spaces.0, spaces.1);
            traced(name, 32, environment, agent, [256, 32])
        }
        "lstm" => {
            let environment = MemoryChain::default();
            let (observation, action) =
                (environment.observation_space(), environment.action_space());
            let mut agent = Impala::new(observation, action);
            agent.settings.core.lstm = Some(64);
            traced(name, 16, environment, agent, [64, 32])
        }
        "conv" => {
            let environment = Pixels(Catch::default());
            let (observation, action) =
                (environment.observation_space(), environment.action_space());
            let mut agent = Impala::new(observation, action);
            let networks = &mut agent.settings.networks;
            networks.torso = Torso::Conv;
            (networks.convs, networks.features) = (vec![[16, 3, 1], [16, 3, 1]], 64);
            traced(name, 4, environment, agent, [32, 16])
        }
        "vmapped" => {
            let agent_loop = AgentLoop::new(environment, Ppo::new(spaces.0, spaces.1), 8, 32);
            let init = |key: Key| vmap(key.split_n(8), |key| agent_loop.init(key));
            let iteration = |state: Placed<_, _>| vmap(state, |state| agent_loop.iterate(state));
            Ok(Box::new(AnakinLoop::trace(name, 1, 16, init, iteration)?))
        }
        _ => bail!("no program `{name}`: there are {}", NAMES.join(", ")),
    }
}

/// An agent's training loop, of some environments and steps of an iteration.
fn traced<E: Environment, A: Learn<Observation = E::Observation>>(
    name: &str,
    iterations: usize,
    environment: E,
    agent: A,
    [environments, unroll]: [usize; 2],
) -> Result<Box<dyn Program>> {
    let agent_loop = AgentLoop::new(environment, agent, environments, unroll);
    let init = |key| agent_loop.init(key);
    let iteration = |state| agent_loop.iterate(state);
    Ok(Box::new(AnakinLoop::trace(name, 1, iterations, init, iteration)?))
}

/// Five equations a round, each on the last: two of them are one for integers.
pub fn chain(rounds: usize) -> Func {
    let mut b = Builder::new();
    let ty = TensorType::new(DType::U32, [4]);
    let (mut x, mut y) = (b.param(ty.clone()), b.param(ty.clone()));
    for i in 0..rounds {
        let constant = b.full(&ty, (i % 5) as f64);
        let sum = b.add(x, constant);
        let more = b.add(sum, constant);
        let mixed = b.xor(y, more);
        (x, y) = (mixed, b.add(mixed, x));
    }
    b.finish("chain", vec![x, y])
}
