//! Ours: a store that is added to, drawn from and given priorities, in one program.

use std::time::Instant;

use anyhow::Result;
use podracer_dsl::prelude::*;
use podracer_rl::learn::{Axes, RolloutShape};
use podracer_rl::replay::{Priorities, Replay, Stored};
use podracer_runtime::{
    Array, Client, Device, ExecutableCache, HloModule, Placement, Program, ProgramOptions,
};

/// Settings of a replay and of the rounds that are timed.
#[derive(Clone, Debug)]
pub struct Case {
    /// Steps in the store.
    pub items: usize,
    /// Frames of 84 x 84 x 4 bytes, or four floats.
    pub large: bool,
    /// Windows are drawn by priority.
    pub prioritized: bool,
    /// Axes of a rollout.
    pub shape: RolloutShape,
    /// Windows drawn in a round.
    pub batch: usize,
    /// Steps of a window.
    pub length: usize,
    /// Rounds of a run.
    pub rounds: usize,
}

/// One step of one lane.
#[derive(Tree, Clone)]
struct Step {
    observation: Tensor,
    action: Tensor,
    reward: Tensor,
    done: Tensor,
}

type State = (Stored<Step>, Step);

/// The compiled programs.
pub struct Rounds {
    program: Program<(State, Key), (State, Tensor)>,
    state: Option<Device<State>>,
    rounds: usize,
    /// From the trace to the executable.
    pub compile_seconds: f64,
}

impl Case {
    fn steps(&self, number: Tensor, leading: &[usize]) -> Step {
        let each =
            |dtype, rest: &[usize]| number.astype(dtype).broadcast_to([leading, rest].concat());
        let observation = if self.large { each(U8, &[84, 84, 4]) } else { each(F32, &[4]) };
        Step {
            observation,
            action: each(I32, &[]),
            reward: each(F32, &[]),
            done: each(BOOL, &[]) & false,
        }
    }

    fn replay(&self) -> Replay {
        let priorities = self.prioritized.then_some(Priorities { exponent: 0.6.into() });
        Replay { capacity: self.items, length: self.length, period: 1, priorities }
    }

    /// A full store, and a batch.
    fn init(&self) -> State {
        let RolloutShape { lanes, unroll } = self.shape;
        let replay = self.replay();
        let step = eval_shape(f32([]), |number| self.steps(number, &[])).expect("a step traces");
        let empty = replay.init(&step, &Spec(()), self.shape);
        let stored = fori_loop(0..self.items / (lanes * unroll), empty, |number, state| {
            replay.add(state, self.steps(number, &[unroll, lanes]), ())
        });
        (stored, self.steps(scalar(0), &[self.length, self.batch]))
    }

    fn round(&self, number: Tensor, (stored, _): State, key: Key) -> State {
        let replay = self.replay();
        let axes = Axes::none();
        let RolloutShape { lanes, unroll } = self.shape;
        let [sample_key, priority_key] = key.fold_in(number).split_into();
        let stored = replay.add(stored, self.steps(number, &[unroll, lanes]), ());
        let sample = replay.sample(&stored, self.batch, sample_key, &axes);
        let priorities = priority_key.uniform([self.batch]) + 0.1;
        let stored = replay.set_priorities(stored, sample.indices, priorities, &axes);
        (stored, sample.steps)
    }

    /// Compiles the program of all rounds, and fills the store.
    pub fn compile(&self, client: &Client) -> Result<Rounds> {
        let options =
            ProgramOptions { cache: ExecutableCache::disabled(), ..ProgramOptions::default() };
        let placements = |count| vec![Placement::Replicated; count];
        let init = trace((f32([]),), |_| self.init())?;
        let count = init.result_paths().len();
        let init = Program::compile(client, "init", &init, placements(count), &options)?;
        let state = init.run((init.upload(Array::scalar(0.0_f32))?,))?;
        let start = Instant::now();
        let spec = eval_shape((), |()| self.init())?;
        let traced = trace((spec, key()), |(state, key)| {
            let state = fori_loop(0..self.rounds, state, |number, state| {
                self.round(number, state, key.again())
            });
            (state, scalar(0))
        })?;
        let program = Program::compile(client, "rounds", &traced, placements(count + 1), &options)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        Ok(Rounds { program, state: Some(state), rounds: self.rounds, compile_seconds })
    }
}

impl Rounds {
    /// Runs all rounds on the state that the run before left; rounds per second.
    pub fn run(&mut self, seed: u64) -> Result<f64> {
        let key = self.program.upload(Array::key(seed))?;
        let state = self.state.take().expect("each run gives the state back");
        let start = Instant::now();
        let (state, done) = self.program.run((state, key))?.split();
        done.to_host()?;
        self.state = Some(state);
        Ok(self.rounds as f64 / start.elapsed().as_secs_f64())
    }

    /// The optimized program of the rounds.
    pub fn hlo(&self) -> Result<HloModule> {
        Ok(self.program.executable().compiled().optimized()?)
    }
}
