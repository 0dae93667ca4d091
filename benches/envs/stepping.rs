//! Ours: environments stepped by a random policy, as one program for all devices.

use std::time::Instant;

use anyhow::{Context, Result};
use podracer_dsl::prelude::*;
use podracer_envs::{AutoReset, Environment, Space};
use podracer_runtime::{
    Array, Client, CompileOptions, Compiled, ExecutableCache, HloModule, Placement, Program,
    ProgramOptions, XlaOptions,
};

/// Number of steps with actions and keys that are drawn together.
const BLOCK: usize = 32;
/// Actions that are made of the two words of one key.
const PER_KEY: usize = 4;

/// Size of a measurement: environments and steps.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Environments in all.
    pub environments: usize,
    /// Steps of each in a run, in whole blocks of 32.
    pub steps: usize,
}

/// Sums over all environments and steps of a device.
#[derive(Tree, Clone)]
pub struct Totals {
    /// All observations. f32 `[1]`
    observations: Tensor,
    /// All rewards. f32 `[1]`
    rewards: Tensor,
    /// Episodes that ended. i32 `[1]`
    ends: Tensor,
}

/// The environments of a device on their way, `[N]` each.
#[derive(Tree, Clone)]
struct Sums<S: Tree> {
    state: S,
    /// Sums over the steps: all that came out of the environments is read, so that nothing of it can be left out.
    /// f32 `[..., N]`
    observations: Tensor,
    /// Sums of the masks of legal actions, i32 `[n, N]`, if there are some.
    masks: Option<Tensor>,
    rewards: Tensor,
    ends: Tensor,
}

/// The compiled program.
pub struct Stepping {
    program: Program<(Tensor,), Totals>,
    shape: Shape,
    compile_seconds: f64,
}

/// Result of one run.
pub struct Run {
    /// Seconds from the dispatch to the arrival of the totals.
    pub seconds: f64,
    /// Mean return over all episodes.
    pub mean_return: f64,
}

impl Stepping {
    /// For all devices of the client, with every loop as one kernel, and without a cache.
    pub fn compile<E: Environment<Observation = Tensor>>(
        client: &Client,
        environment: E,
        shape: Shape,
    ) -> Result<Self> {
        let xla = XlaOptions::for_platform(client.platform()).whole_loop().pairs();
        let compile = CompileOptions { xla, ..CompileOptions::default() };
        let cache = ExecutableCache::disabled();
        let options = ProgramOptions { compile, cache, ..ProgramOptions::default() };
        Stepping::compile_with(client, environment, shape, options)
    }

    /// For all devices of the client, with other options.
    pub fn compile_with<E: Environment<Observation = Tensor>>(
        client: &Client,
        environment: E,
        shape: Shape,
        mut options: ProgramOptions,
    ) -> Result<Self> {
        let start = Instant::now();
        let devices = client.devices().len();
        let per_device = shape.environments / devices;
        let environment = environment.auto_reset();
        let traced = trace((u32([2]),), |(seed,)| {
            totals(&environment, Key::from_words(seed), per_device, shape.steps)
        })?;
        options.compile.replicas = devices;
        let program =
            Program::compile(client, "stepping", &traced, vec![Placement::Sharded; 3], &options)?;
        Ok(Stepping { program, shape, compile_seconds: start.elapsed().as_secs_f64() })
    }

    /// From the trace to the executable.
    pub fn compile_seconds(&self) -> f64 {
        self.compile_seconds
    }

    /// The devices that share the environments.
    pub fn devices(&self) -> usize {
        self.program.executable().devices().len()
    }

    /// Environment steps of a run, over all environments.
    pub fn env_steps(&self) -> usize {
        self.shape.environments / self.devices() * self.devices() * self.steps()
    }

    /// Steps of each environment in a run.
    pub fn steps(&self) -> usize {
        self.shape.steps / BLOCK * BLOCK
    }

    /// The compiled program.
    pub fn compiled(&self) -> &Compiled {
        self.program.executable().compiled()
    }

    /// The program as XLA optimized it.
    pub fn hlo(&self) -> Result<HloModule> {
        Ok(self.compiled().optimized()?)
    }

    /// Steps all environments from their first states.
    pub fn run(&self, seed: u64) -> Result<Run> {
        let words = self.program.upload(Array::key(seed))?;
        let start = Instant::now();
        let totals = self.program.run((words,))?.to_host()?;
        let seconds = start.elapsed().as_secs_f64();
        let observations: f32 = totals.observations.to_vec::<f32>()?.iter().sum();
        let rewards: f32 = totals.rewards.to_vec::<f32>()?.iter().sum();
        let ends: i32 = totals.ends.to_vec::<i32>()?.iter().sum();
        observations
            .is_finite()
            .then_some(())
            .context("the observations do not add up to a number")?;
        Ok(Run { seconds, mean_return: f64::from(rewards) / f64::from(ends.max(1)) })
    }
}

/// The words of the key of a number, `u32[]` each.
fn words(key: &Key, number: Tensor) -> (Tensor, Tensor) {
    let words = key.fold_in(number).words();
    (words.index(0), words.index(1))
}

/// One device's part.
///
/// The keys of resets are drawn ahead: split from the step's key they would be computed again for every field of the state.
fn totals<E: Environment<Observation = Tensor>>(
    env: &AutoReset<E>,
    key: Key,
    environments: usize,
    steps: usize,
) -> Totals {
    let space = env.action_space();
    // Every environment has keys of its own, by its number among all.
    let first = axis_index(Replicas) * environments as i32;
    let indices = arange(environments) + first;
    let keys = vmap((indices, whole(key)), |(index, key)| {
        let [start, actions, steps, resets] = key.fold_in(index).split_into();
        (start, actions, steps, resets)
    });
    let (start_keys, action_keys, step_keys, reset_keys) = keys;
    let sums = vmap(start_keys, |key| {
        let state = env.initial_state(key);
        let observations = env.observe(state.clone()).zeros_like();
        let masks = env.legal_actions(&state).map(|mask| mask.astype(I32).zeros_like());
        Sums { state, observations, masks, rewards: scalar(0.0), ends: scalar(0) }
    });
    let sums = Sums {
        observations: environments_last(sums.observations),
        masks: sums.masks.map(environments_last),
        ..sums
    };
    let (sums, ()) = scan(sums, 0..steps / BLOCK, |sums, block| {
        let numbers = arange(BLOCK) + block * BLOCK as i32;
        // Drawn before the steps, because XLA computes a value again in every fusion that reads it, and many read these.
        let actions = match &space {
            Space::Box { .. } => vmap(numbers, |step| {
                vmap(action_keys.clone(), |key| space.sample(key.fold_in(step)))
            }),
            _ => choices(&space, &action_keys, block, environments),
        };
        let resets = vmap(numbers, |step| vmap(reset_keys.clone(), |key| words(&key, step)));
        let draws = (actions, resets);
        scan(sums, (numbers, draws), |sums, (step, (action, (high, low)))| {
            let lanes = (sums.state, action, step_keys.clone(), high, low);
            let (state, timestep) = vmap(lanes, |(state, action, step_key, high, low)| {
                let reset_key = Key::from_words(stack(&[high, low], 0));
                env.step_with_keys(state, action, step_key.fold_in(step), reset_key)
            });
            let masks = vmap(state.clone(), |state| env.legal_actions(&state));
            let masks = masks.map(|masks| environments_last(masks.astype(I32)));
            let sums = Sums {
                masks: sums.masks.zip(masks).map(|(sum, masks)| sum + masks),
                state,
                observations: sums.observations + environments_last(timestep.observation),
                rewards: sums.rewards + timestep.reward,
                ends: sums.ends + timestep.done().astype(I32),
            };
            (sums, ())
        })
    });
    let total = |x: Tensor| x.sum().reshape([1]);
    let masks = sums.masks.map_or_else(|| scalar(0.0), |masks| masks.astype(F32).sum());
    Totals {
        observations: total(sums.observations) + masks,
        rewards: total(sums.rewards),
        ends: total(sums.ends),
    }
}

/// Uniform actions of a block's steps in a space of choices, i32 `[BLOCK, environments, ..]`.
fn choices(space: &Space, keys: &Key, block: Tensor, environments: usize) -> Tensor {
    let (actions, count, shape) = (space.bounds(0).1 as u32 + 1, space.elements(), space.shape());
    let fours = arange(BLOCK / PER_KEY) + block * (BLOCK / PER_KEY) as i32;
    let (high, low) = vmap(fours, |four| {
        let elements = arange(count) + four * count as i32;
        vmap(keys.clone(), |key| vmap(elements, |element| words(&key, element)))
    });
    // 16 bits are enough: no action is likelier than another by more than 1 in 20,000.
    let parts = [high >> 16, high & 0xffffu32, low >> 16, low & 0xffffu32];
    let drawn = parts.map(|part| ((part * actions) >> 16).astype(I32));
    concatenate(&drawn, 0).reshape([&[BLOCK, environments], &shape[..]].concat())
}

/// The axis of the environments comes last, where vectors of the machine run along it.
fn environments_last(x: Tensor) -> Tensor {
    x.move_axis(0, -1)
}
